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
from blazar.manager.health.missing import MissingResources
from blazar.manager.health.monitor import Monitor, Watch
from blazar.manager.lease.booking import Booking
from blazar.manager.lease.replanning import Replanner
from blazar.manager.outbox.outbox import Outbox
from blazar.manager.requests.creation import Creation
from blazar.manager.requests.deletion import Deletion
from blazar.manager.requests.leases import LeaseService
from blazar.manager.requests.resources import ResourceService
from blazar.manager.requests.updates import Updates
from blazar.model.clock import Clock
from blazar.model.errors import Contention
from blazar.model.resource import Resource
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
        worker = Worker(runtime, self.outbox, replacements, taken_over=lambda: self.sweep.wake())
        changes = CloudChanges(runtime, worker)
        self.engine = Engine(store, worker, clock, settings)
        self._healing = Healing(runtime, replanner, booking, changes)
        self.missing_resources = MissingResources(runtime, booking)
        self.leases = LeaseService(
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
        self.resources = ResourceService(
            self._hosts,
            FloatingIpService(store, addresses, clock, settings.request_limit),
            self._healing,
            self.monitor,
            self._on_return,
        )

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

    def _on_return(self, host: Resource, reservation_ids: Collection[str]) -> None:
        """Record that reservations in use lack a host, so that it is assigned again."""
        try:
            if self.missing_resources.record(host, reservation_ids):
                self.monitor.heal_soon()
        except Contention as error:
            LOG.info("Host %s is back in the cloud, but cannot be assigned again yet: %s", host.name, error.message)
            self.monitor.poll_again()
