# SPDX-License-Identifier: Apache-2.0
"""The manager as a whole: builds its parts, and implements the interface that the API uses."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from datetime import timedelta

from blazar.enforcement import Enforcement
from blazar.manager.common.claims import Claims
from blazar.manager.common.notifications import Notifier
from blazar.manager.common.runtime import Runtime
from blazar.manager.common.settings import Settings
from blazar.manager.events.cloud_change import CloudChanges
from blazar.manager.events.engine import Engine
from blazar.manager.events.starting import StartReplacements
from blazar.manager.events.sweep import Sweep
from blazar.manager.events.worker import Worker
from blazar.manager.health.healing import Healing
from blazar.manager.health.health import Health
from blazar.manager.health.monitor import Monitor, Watch
from blazar.manager.lease.booking import Booking
from blazar.manager.lease.replanning import Replanner
from blazar.manager.outbox.outbox import Outbox
from blazar.manager.requests.creation import Creation
from blazar.manager.requests.deletion import Deletion
from blazar.manager.requests.leases import LeaseService
from blazar.manager.requests.updates import Updates
from blazar.model.allocations import ResourceAllocations
from blazar.model.clock import Clock
from blazar.model.errors import Contention
from blazar.model.lease import Lease, LeaseRevision
from blazar.model.requests import FloatingIpRequest, HostChange, HostRequest, LeaseChange, LeaseRequest
from blazar.model.resource import PropertyValues, Resource, ResourceProperty
from blazar.resources.base import ResourceType
from blazar.resources.complete import CompleteType
from blazar.resources.floating_ips.registration import AddressRegistration
from blazar.resources.floating_ips.service import AddressWatch, FloatingIpService
from blazar.resources.hosts.registration import HostRegistration
from blazar.resources.hosts.service import HostService, HostWatch
from blazar.store.store import Store

LOG = logging.getLogger(__name__)


class ManagerService:
    """A manager: answers requests in the caller's thread, and works on events in its own threads."""

    def __init__(
        self,
        store: Store,
        types: Iterable[ResourceType],
        registration: HostRegistration,
        addresses: AddressRegistration,
        notifier: Notifier,
        clock: Clock,
        settings: Settings,
        enforcement: Enforcement | None = None,
    ) -> None:
        enforcement = enforcement or Enforcement()
        by_name = {kind.resource_type: CompleteType(kind) for kind in types}
        self._store = store
        self.clock = clock
        self.claims = Claims(store, clock, settings.claim_ttl)
        runtime = Runtime(store, clock, self.claims, settings, notifier, by_name, wake=lambda: self.engine.wake())
        self.outbox = Outbox(store, enforcement, clock, settings)
        booking = Booking(store, clock, settings)
        replanner = Replanner(store, by_name, booking)
        replacements = StartReplacements(runtime, replanner, booking)
        self.sweep = Sweep(runtime)
        worker = Worker(runtime, self.outbox, replacements, taken_over=lambda: self.sweep.soon())
        changes = CloudChanges(runtime, worker)
        self.engine = Engine(store, worker, clock, settings)
        self._healing = Healing(runtime, replanner, booking, changes)
        self._leases = LeaseService(
            runtime,
            booking,
            Creation(runtime, booking, changes, self.outbox),
            Updates(runtime, booking, changes, self.outbox, self._healing),
            Deletion(runtime, worker, self.outbox),
        )
        self._hosts = HostService(store, registration, clock, settings.request_limit, by_name)
        watches: list[Watch] = [HostWatch(self._hosts, self._on_return)]
        if any(kind.kind is AddressWatch.kind for kind in by_name.values()):
            watches.append(AddressWatch(store, addresses))
        self.monitor = Monitor(watches, Health(store, clock, settings), self._healing, clock, settings)
        self._floating_ips = FloatingIpService(store, addresses, clock, settings.request_limit)

    def start(self, *, alone: bool = False) -> None:
        """Start working on events. ``alone``: no other manager runs, so all old claims are dropped at once."""
        if alone:
            self._store.events.drop_claims(at=self.clock.now() - timedelta(seconds=1))
        self.claims.start()
        self.engine.start()
        self.outbox.start()
        self.monitor.start()
        self.sweep.start()

    def begin_stop(self) -> None:
        """Begin no new work in any part; work in progress continues, and ``stop`` waits for it."""
        self.engine.begin_stop()
        self.monitor.begin_stop()
        self.sweep.begin_stop()

    def stop(self) -> None:
        """Finish the work in progress and stop; its claims are renewed until then."""
        # Tell all parts first, and wait after that: waiting for one after the other could exceed the time for a stop.
        self.begin_stop()
        self.sweep.stop()
        self.monitor.stop()
        self.engine.stop()
        self.outbox.stop()
        self.claims.stop()

    def leases(self, project_id: str | None) -> tuple[Lease, ...]:
        """Return the leases of one project, or of all."""
        return self._leases.all(project_id)

    def lease_revisions(self, project_id: str | None) -> tuple[LeaseRevision, ...]:
        """Return the ids and revisions of the leases of one project, or of all."""
        return self._leases.revisions(project_id)

    def leases_by_id(self, lease_ids: Collection[str]) -> tuple[Lease, ...]:
        """Return leases by their ids."""
        return self._leases.by_id(lease_ids)

    def lease(self, lease_id: str) -> Lease:
        """Return one lease."""
        return self._leases.one(lease_id)

    def create_lease(self, request: LeaseRequest) -> Lease:
        """Book a lease."""
        return self._leases.create(request)

    def update_lease(self, lease_id: str, change: LeaseChange) -> Lease:
        """Change a lease."""
        return self._leases.update(lease_id, change)

    def delete_lease(self, lease_id: str) -> None:
        """Delete a lease."""
        self._leases.delete(lease_id)

    def hosts(self) -> tuple[Resource, ...]:
        """Return the registered hosts."""
        return self._hosts.all()

    def host(self, host_id: str) -> Resource:
        """Return one host."""
        return self._hosts.one(host_id)

    def create_host(self, request: HostRequest) -> Resource:
        """Register a host."""
        return self._hosts.create(request)

    def update_host(self, host_id: str, change: HostChange) -> Resource:
        """Change capabilities of a host."""
        return self._hosts.update(host_id, change)

    def refresh_host(self, host_id: str) -> Resource:
        """Update a host from Nova and Placement."""
        host = self._hosts.refresh(host_id, on_return=self._on_return)
        self.monitor.heal_soon()
        return host

    def move_reservation(self, host_id: str, reservation_id: str) -> ResourceAllocations:
        """Replace this host of a reservation by another one."""
        self._healing.move_off(self._hosts.one(host_id), reservation_id)
        return self._hosts.allocations(host_id=host_id, lease_id=None, reservation_id=None)[0]

    def delete_host(self, host_id: str) -> None:
        """Unregister a host."""
        self._hosts.delete(host_id)

    def _on_return(self, host: Resource, reservation_ids: Collection[str]) -> None:
        """Record that reservations in use lack a host, so that it is assigned again."""
        try:
            if self._healing.record_missing(host, reservation_ids):
                self.monitor.heal_soon()
        except Contention as error:
            LOG.info("Host %s is back in the cloud, but cannot be assigned again yet: %s", host.name, error.message)
            self.monitor.poll_again()

    def host_allocations(
        self, *, host_id: str | None = None, lease_id: str | None = None, reservation_id: str | None = None
    ) -> tuple[ResourceAllocations, ...]:
        """Return live allocations by host."""
        return self._hosts.allocations(host_id=host_id, lease_id=lease_id, reservation_id=reservation_id)

    def host_properties(self, *, include_private: bool) -> tuple[PropertyValues, ...]:
        """Return the capabilities that hosts have."""
        return self._hosts.properties(include_private=include_private)

    def set_host_property(self, name: str, *, private: bool) -> ResourceProperty:
        """Show a capability to everybody or only to operators."""
        return self._hosts.set_property(name, private=private)

    def floating_ips(self) -> tuple[Resource, ...]:
        """Return the registered addresses."""
        return self._floating_ips.all()

    def floating_ip(self, floating_ip_id: str) -> Resource:
        """Return one address."""
        return self._floating_ips.one(floating_ip_id)

    def create_floating_ip(self, request: FloatingIpRequest) -> Resource:
        """Register an address."""
        return self._floating_ips.create(request)

    def delete_floating_ip(self, floating_ip_id: str) -> None:
        """Unregister an address."""
        self._floating_ips.delete(floating_ip_id)

    def floating_ip_allocations(
        self, *, floating_ip_id: str | None = None, lease_id: str | None = None, reservation_id: str | None = None
    ) -> tuple[ResourceAllocations, ...]:
        """Return live allocations by address."""
        return self._floating_ips.allocations(
            floating_ip_id=floating_ip_id, lease_id=lease_id, reservation_id=reservation_id
        )
