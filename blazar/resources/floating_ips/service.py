# SPDX-License-Identifier: Apache-2.0
"""The floating IP service: the operations of operators on reservable addresses."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from datetime import timedelta

from blazar.context import scope
from blazar.model.allocations import ResourceAllocations
from blazar.model.clock import Clock
from blazar.model.errors import Conflict
from blazar.model.requests import Registration
from blazar.model.resource import Resource, ResourceDetails, ResourceInventory, ResourceKind
from blazar.resources.allocations import promised
from blazar.resources.floating_ips.registration import (
    ADDRESS,
    NETWORK,
    AddressRegistration,
    address_text,
    attributes_of,
    name_of,
)
from blazar.store.store import Store

FLOATING_IP = ResourceKind.FLOATING_IP


class FloatingIpService:
    """Registers and unregisters addresses, and lists their allocations. It never changes the cloud."""

    def __init__(self, store: Store, registration: AddressRegistration, clock: Clock, limit: timedelta) -> None:
        self._store = store
        self._registration = registration
        self._clock = clock
        self._limit = limit

    def all(self) -> tuple[Resource, ...]:
        """Return the registered addresses, oldest first."""
        return self._store.resources.of_kind(FLOATING_IP)

    def one(self, floating_ip_id: str) -> Resource:
        """Return one address; NotFound."""
        return self._store.resources.one(FLOATING_IP, floating_ip_id)

    def register(self, request: Registration) -> Resource:
        """Register an address outside the cloud's allocation pools. InvalidInput, NotFound (subnet), Conflict."""
        network_id, address = str(request.given[NETWORK]), address_text(request.given[ADDRESS], ADDRESS)
        name = name_of(network_id, address)
        if self._store.resources.named(FLOATING_IP, name) is not None:
            raise Conflict(f"{FLOATING_IP.noun} {name} is registered already")
        with scope(limit=self._limit):
            subnet = self._registration.subnet_for(network_id, address)
        return self._store.resources.add(
            FLOATING_IP,
            external_id=str(uuid.uuid4()),
            name=name,
            details=ResourceDetails(attributes_of(network_id, subnet.id, address), ResourceInventory()),
            capabilities={},
            at=self._clock.now(),
        )

    def unregister(self, floating_ip_id: str) -> None:
        """Unregister an address. NotFound; Conflict while it is allocated to a lease."""
        address = self.one(floating_ip_id)
        # First, so that no allocation comes in between; after a crash the address can be deleted again.
        self._store.resources.withdraw(address.id, at=self._clock.now())
        self._store.resources.retire(address.id, at=self._clock.now())

    def allocations(
        self, *, resource_id: str | None, lease_id: str | None, reservation_id: str | None
    ) -> tuple[ResourceAllocations, ...]:
        """Return live allocations by address; for a given lease or reservation, past ones, too."""
        return promised(
            self._store,
            FLOATING_IP,
            external_id=resource_id,
            lease_id=lease_id,
            reservation_id=reservation_id,
            now=self._clock.now(),
        )


class AddressWatch:
    """Polls all registered addresses: whether each could be assigned, or is where it belongs."""

    kind = FLOATING_IP

    def __init__(self, store: Store, registration: AddressRegistration) -> None:
        self._store = store
        self._registration = registration

    def poll(self, registered: Collection[Resource]) -> Mapping[str, str | None]:
        """Return how addresses have failed, by name, None if healthy: a few calls for each network with addresses."""
        faults = self._registration.faults(registered, self._store.calendar.resource_names)
        return {resource.name: faults.get(resource.id) for resource in registered}
