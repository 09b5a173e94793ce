# SPDX-License-Identifier: Apache-2.0
"""The host service: the operations of operators on reservable hosts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import timedelta

from blazar.clouds.ports import Hypervisor
from blazar.context import scope
from blazar.model.allocations import ResourceAllocations
from blazar.model.clock import Clock
from blazar.model.errors import BlazarError, CloudError, Conflict, InvalidInput, NotFound
from blazar.model.lease import Reservation
from blazar.model.requests import Registration, ResourceChange
from blazar.model.resource import PropertyValues, Resource, ResourceKind, ResourceProperty
from blazar.resources.allocations import promised
from blazar.resources.complete import CompleteType, required_properties
from blazar.resources.hosts.registration import HostRegistration, Standing
from blazar.resources.parameters import HOST_PROPERTIES, text_of
from blazar.store.store import Store

LOG = logging.getLogger(__name__)

LONGEST_KEY = 64
HOST = ResourceKind.HOST

OnReturn = Callable[[Resource, Collection[str]], None]
"""Called with a host that is back in the cloud, and the reservations in use that lack it."""


class HostService:
    """Registers, changes and unregisters hosts, and lists their allocations."""

    def __init__(
        self,
        store: Store,
        registration: HostRegistration,
        clock: Clock,
        limit: timedelta,
        types: Mapping[str, CompleteType],
    ) -> None:
        self._types = types
        self._store = store
        self._registration = registration
        self._clock = clock
        self._limit = limit

    def all(self) -> tuple[Resource, ...]:
        """Return the registered hosts, oldest first."""
        return self._store.resources.of_kind(HOST)

    def one(self, host_id: str) -> Resource:
        """Return one host; NotFound."""
        return self._store.resources.one(HOST, host_id)

    def register(self, request: Registration) -> Resource:
        """Register a host that runs no servers. If this fails, changes of the cloud are undone."""
        with scope(limit=self._limit):
            return self._register(request)

    def _register(self, request: Registration) -> Resource:
        host_id, name = (text_of(request.given, key) for key in ("id", "name"))
        if host_id is None and not name:
            raise InvalidInput("give name (the hypervisor's hostname) or id (its number in Nova)")
        _check_keys(request.capabilities)
        hypervisor = self._registration.find(id=host_id, name=name)
        if self._store.resources.named(HOST, hypervisor.hypervisor_hostname) is not None:
            raise Conflict(f"host {hypervisor.hypervisor_hostname} is registered already")
        self._registration.check_empty(hypervisor.hypervisor_hostname, hypervisor.service_name)
        details = self._registration.details(hypervisor)
        made = self._registration.ensure_entered(hypervisor)
        try:
            return self._store.resources.add(
                HOST,
                external_id=hypervisor.id,
                name=hypervisor.hypervisor_hostname,
                details=details,
                capabilities=request.capabilities,
                disabled=request.disabled,
                open_to=request.open_to,
                at=self._clock.now(),
            )
        except Conflict:
            # Another request registered it at the same time: what is in the cloud belongs to that registration.
            raise
        except BlazarError:
            if made:
                self._registration.ensure_left(hypervisor.service_name)
            raise

    def change(self, host_id: str, change: ResourceChange) -> Resource:
        """Set and remove capabilities, disable or enable, set the projects that may use the host: all or nothing.

        Conflict if a live reservation on the host asks for a capability. Allocations of the host stay.
        """
        if change == ResourceChange({}):
            raise InvalidInput("nothing to change: give at least one capability as key and value")
        _check_keys(change.capabilities)
        host = self.one(host_id)
        return self._store.resources.change(host.id, change, at=self._clock.now(), check=self._check_not_required)

    def _check_not_required(self, capabilities: frozenset[str], reservations: Collection[Reservation]) -> None:
        for reservation in reservations:
            if needed := sorted(capabilities & required_properties(self._types, reservation)):
                raise Conflict(
                    f"{', '.join(needed)} cannot be changed: reservation {reservation.id} asks for it on this host"
                )

    def refresh(self, host_id: str, *, on_return: OnReturn) -> Resource:
        """Update a host from Nova and Placement (sizes, zone, capacity, limits, traits) and return it; NotFound.

        Its allocations stay, even if it has less capacity now. For a host that had vanished from the cloud and is back,
        ``on_return`` is called with the reservations in use that lack it; then the host enters the freepool again, if
        it is in no aggregate of ours. Its state, healthy or failed, is updated at once, without waiting for more polls.
        """
        with scope(limit=self._limit):
            host = self.one(host_id)
            hypervisor = self._registration.find(id=None, name=host.name)
            holders = self._store.calendar.resource_names
            in_use = self._store.calendar.in_use(HOST, self._clock.now())
            standing = self._registration.standings((hypervisor,), holders, in_use)[host.name]
            if standing.in_aggregate is None:
                # Else a host that is where it belongs would count as missing.
                self._registration.check_freepool()
            if standing.lacking:
                on_return(host, standing.lacking)
            if not standing.in_aggregate:
                self._enter_again(host, hypervisor)
            self.refresh_all((hypervisor,))
            failure = self._registration.standings((hypervisor,), holders, in_use)[host.name].failure
        if failure is not None:
            self._store.resources.set_failed(HOST, {host.id: failure}, at=self._clock.now())
        else:
            self._store.resources.set_recovered(HOST, (host.id,), at=self._clock.now())
        return self.one(host_id)

    def refresh_all(
        self, hypervisors: Collection[Hypervisor] | None = None, registered: Collection[Resource] | None = None
    ) -> frozenset[str]:
        """Update all registered hosts from Nova and Placement; return the ids of those that changed.

        ``hypervisors`` and ``registered`` save reading these lists again. Hosts that are not in them, or that Placement
        does not know, stay unchanged: they may come back soon. At most one statement if nothing has changed.
        """
        if hypervisors is None:
            hypervisors = self._registration.hypervisors()
        if registered is None:
            registered = self._store.resources.catalog(HOST).resources
        hosts = {host.name: host for host in registered}
        known = [self._at_home(h, hosts[h.hypervisor_hostname]) for h in hypervisors if h.hypervisor_hostname in hosts]
        details = self._registration.details_of(known)
        news = {hosts[name].id: new for name, new in details.items() if new != hosts[name].details}
        changed = self._store.resources.refresh(HOST, news, at=self._clock.now()) if news else frozenset()
        return frozenset(host.external_id for host in hosts.values() if host.id in changed)

    def standings(self) -> tuple[tuple[Hypervisor, ...], Mapping[str, Standing]]:
        """Return the hypervisors of the cloud, and the ``Standing`` of each, by hostname."""
        in_use = self._store.calendar.in_use(HOST, self._clock.now())
        hypervisors = self._registration.hypervisors()
        return hypervisors, self._registration.standings(hypervisors, self._store.calendar.resource_names, in_use)

    def _at_home(self, hypervisor: Hypervisor, host: Resource) -> Hypervisor:
        """Return a hypervisor with its own zone: while it is assigned, the cloud shows the reservation's."""
        if not self._registration.is_assigned(hypervisor):
            return hypervisor
        return replace(hypervisor, availability_zone=str(host.attributes["availability_zone"]))

    def unregister(self, host_id: str) -> None:
        """Unregister a host. Conflict while it is allocated or runs servers; it then stays registered."""
        with scope(limit=self._limit):
            self._unregister(host_id)

    def _unregister(self, host_id: str) -> None:
        host = self.one(host_id)
        service_name = str(host.attributes["service_name"])
        # First, so that no allocation comes in between; after a crash the host can be deleted again.
        self._store.resources.withdraw(host.id, at=self._clock.now())
        try:
            self._registration.check_empty(host.name, service_name)
            self._registration.ensure_left(service_name)
        except BlazarError:
            self._put_back(host)
            raise
        self._store.resources.retire(host.id, at=self._clock.now())
        self._leave_again(host.name, service_name)

    def allocations(
        self, *, resource_id: str | None, lease_id: str | None, reservation_id: str | None
    ) -> tuple[ResourceAllocations, ...]:
        """Return live allocations by host; for a given lease or reservation, past ones, too."""
        return promised(
            self._store,
            HOST,
            external_id=resource_id,
            lease_id=lease_id,
            reservation_id=reservation_id,
            now=self._clock.now(),
        )

    def properties(self, *, include_private: bool) -> tuple[PropertyValues, ...]:
        """Return the capabilities that hosts have, with their values."""
        return self._store.resources.property_values(HOST, include_private=include_private)

    def set_property(self, name: str, *, private: bool) -> ResourceProperty:
        """Show a capability to everybody, or to operators only; NotFound."""
        return self._store.resources.set_property_private(HOST, name, private=private, at=self._clock.now())

    def _enter_again(self, host: Resource, hypervisor: Hypervisor) -> None:
        """Ensure that a host that is back is in the freepool. NotFound if it was unregistered meanwhile."""
        self._registration.ensure_entered(hypervisor)
        try:
            self.one(host.external_id)
        except NotFound:
            # Its deletion checked the freepool for the last time before this host entered it.
            self._registration.ensure_left(hypervisor.service_name)
            raise

    def _leave_again(self, name: str, service_name: str) -> None:
        """Ensure that an unregistered host is not in the freepool: a refresh may have added it meanwhile."""
        if self._store.resources.named(HOST, name) is not None:
            # It was registered again, and belongs in the freepool.
            return
        try:
            self._registration.ensure_left(service_name)
        except BlazarError as error:
            LOG.warning("Host %s is unregistered, but may still be in the freepool: %s", name, error.message)

    def _put_back(self, host: Resource) -> None:
        try:
            self._registration.ensure_entered(self._registration.find(id=None, name=host.name))
        except NotFound:
            LOG.warning(
                "Host %s cannot be unregistered; it is not put back into the freepool, as Nova does not know it",
                host.name,
            )
        finally:
            self._store.resources.set_reservable(host.id, True, at=self._clock.now())


class HostWatch:
    """Polls all hosts, and updates them from Nova and Placement in the same poll.

    ``on_return`` is called for healthy hosts that reservations in use lack.
    """

    kind = HOST

    def __init__(self, hosts: HostService, on_return: OnReturn) -> None:
        self._hosts = hosts
        self._on_return = on_return

    def poll(self, registered: Collection[Resource]) -> Mapping[str, str | None]:
        """Return how hosts have failed, by name: two calls to Nova, and one to Placement if it has no changes."""
        hypervisors, standings = self._hosts.standings()
        failures = {name: standing.failure for name, standing in standings.items()}
        for host in registered:
            standing = standings.get(host.name)
            if standing is not None and standing.failure is None and standing.lacking:
                self._on_return(host, standing.lacking)
        try:
            for host_id in sorted(self._hosts.refresh_all(hypervisors, registered)):
                LOG.info("Host %s: updated from Nova and Placement", host_id)
        except CloudError as error:
            # Which hosts are up is known even if their capacity is not.
            LOG.warning("Hosts could not be updated from Nova and Placement; the next poll retries: %s", error.message)
        return failures


def _check_keys(capabilities: Mapping[str, str | None]) -> None:
    for key in capabilities:
        if len(key) > LONGEST_KEY:
            raise InvalidInput(f"Extra capability key too long: {key[:80]!r} has {len(key)} characters, at most 64 fit")
        if not key.strip():
            raise InvalidInput("a capability needs a name; its key is empty")
        if key in HOST_PROPERTIES:
            raise InvalidInput(f"{key} is read from the cloud and cannot be set; choose another key")
