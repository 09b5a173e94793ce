# SPDX-License-Identifier: Apache-2.0
"""The inventory of a reservation in Placement: a resource class of its own, and on each host how many servers it has.

Servers boot and providers vanish at any time, so what is set is looked at again, and what is deleted may be gone.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from contextlib import suppress

from blazar.clouds.ports.placement import Placement
from blazar.model.base.errors import CloudRefused, CloudUnavailable, Conflict, NotFound
from blazar.model.base.values import dataclass
from blazar.model.resources.resource import Resource
from blazar.resources.instances.reservation_flavor import resource_class

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReservationInventory:
    """The inventory of one reservation. ``starting``: a class that is missed is made when it is needed."""

    placement: Placement
    reservation_id: str
    starting: bool = False

    @property
    def name(self) -> str:
        """The resource class."""
        return resource_class(self.reservation_id)

    def create_class(self) -> None:
        """Ensure the resource class."""
        self.placement.create_resource_class(self.name)

    def ensure_class(self, resources: Collection[Resource]) -> None:
        """Ensure the class of a reservation in use, which is there if a host has an inventory of it.

        Nothing is written then, so that a look at the reservation finds nothing to change.
        """
        if not resources or self.amount_in_use(next(iter(resources))) is None:
            self.create_class()

    def amount_in_use(self, resource: Resource) -> int | None:
        """Return how much is in use on a host; None if the reservation has no inventory there."""
        found = self.placement.reserved_capacity(resource.name, self.name)
        return None if found is None else found.used

    def ensure_total(self, resource: Resource, total: int) -> None:
        """Ensure the total on a host; Conflict if more is in use."""
        found = self.placement.reserved_capacity(resource.name, self.name)
        if found is not None and found.total == total:
            return
        shrinks = found is not None and found.total > total
        if shrinks and found is not None and found.used > total:
            raise _too_many(resource, found.used, total)
        self.set_total(resource.name, total)
        # A server may have been booted in between.
        after = self.amount_in_use(resource) if shrinks else None
        if after is not None and after > total:
            raise _too_many(resource, after, total)

    def set_total(self, hypervisor: str, total: int) -> None:
        """Set the total on a host, even below what is in use. NotFound if Placement does not know the host."""
        try:
            self._set_total(hypervisor, total)
        except CloudRefused:
            # Somebody may have deleted the class, which is there from the booking on; a start does not look before.
            if not self.starting or self.name in self.placement.resource_classes():
                raise
            self.create_class()
            self._set_total(hypervisor, total)

    def _set_total(self, hypervisor: str, total: int) -> None:
        try:
            self.placement.set_inventory(hypervisor, self.name, total)
        except NotFound:
            # Somebody deleted the host's provider, as Nova does together with a compute service.
            with suppress(Conflict):
                # Another start on the host may have created it at the same time.
                self.placement.create_reservation_provider(hypervisor)
            self.placement.set_inventory(hypervisor, self.name, total)

    def delete_inventory(self, hypervisor: str) -> bool:
        """Delete the inventory on a host; return False if it is in use."""
        try:
            self.placement.delete_inventory(hypervisor, self.name)
        except NotFound:
            return True
        except Conflict:
            return False
        return True

    def delete_class(self) -> None:
        """Delete the class, and its inventory on hosts that are no longer in the reservation or its aggregate."""
        try:
            self.placement.delete_resource_class(self.name)
        except NotFound:
            return
        except Conflict:
            self._delete_class_with_the_rest()

    def _delete_class_with_the_rest(self) -> None:
        for hypervisor in sorted(self.placement.hosts_with_unused(self.name)):
            LOG.warning("Host %s still has inventory of %s, whose reservation ends; deleting it", hypervisor, self.name)
            self.delete_inventory(hypervisor)
        try:
            self.placement.delete_resource_class(self.name)
        except NotFound:
            return
        except Conflict as error:
            raise CloudUnavailable(f"resource class {self.name} cannot be deleted yet: {error.message}") from error


def _too_many(resource: Resource, used: int, total: int) -> Conflict:
    return Conflict(
        f"{used} servers use the reserved capacity on host {resource.name}, which would shrink to {total}; delete "
        f"{used - total} of them first",
        public=f"{used} servers use capacity that would shrink to {total}; delete {used - total} of them first",
    )
