# SPDX-License-Identifier: Apache-2.0
"""The placement port: inventories and traits of hosts, and the capacity that is reserved on them.

Both adapters convert inventories of Placement into those of resources in the calendar by ``combine_inventories``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from blazar.model.base.amounts import Amounts
from blazar.model.resources.resource import ResourceInventory, UnitLimits


@dataclass(frozen=True, slots=True)
class ReservedCapacity:
    """How much of a resource class a reservation provider has, and how much of it servers use."""

    total: int
    used: int


CHANGES = frozenset(
    {
        "create_reservation_provider",
        "create_resource_class",
        "delete_resource_class",
        "set_inventory",
        "delete_inventory",
    }
)
"""The calls that change something: an adapter makes ``context.check_change`` before each."""


class Placement(Protocol):
    """The calls to Placement."""

    def inventories(self, hypervisor_hostnames: Collection[str]) -> Mapping[str, ResourceInventory]:
        """Return the inventories and traits of hosts, by hypervisor hostname; hosts unknown to Placement are left out.

        The capacity of a class is ``int((total - reserved) * allocation_ratio)``, of the host's own provider and those
        nested in it, without the reservation provider and the classes of reservations. A class that several of them
        have (GPUs, for example) is summed, and one instance can take only one of it, which no two providers have to
        supply together. The traits are those of the host's own provider.
        """

    def reservation_provider(self, hypervisor_hostname: str) -> str | None:
        """Return the uuid of the host's reservation provider ``blazar_<hypervisor_hostname>``, None if absent."""

    def create_reservation_provider(self, hypervisor_hostname: str) -> str:
        """Create that provider as a child of the host's own. NotFound (host unknown to Placement); Conflict."""

    def create_resource_class(self, name: str) -> None:
        """Ensure that a resource class of this name exists."""

    def delete_resource_class(self, name: str) -> None:
        """Delete a resource class. NotFound; Conflict while a provider has an inventory of it."""

    def resource_classes(self) -> frozenset[str]:
        """Return the names of all resource classes."""

    def reserved_capacity(self, hypervisor_hostname: str, resource_class: str) -> ReservedCapacity | None:
        """Return what a host's reservation provider has of a class; None if it has none, or is absent."""

    def reserved_totals(self, hypervisor_hostname: str) -> Mapping[str, int]:
        """Return the totals of all classes that a host's reservation provider has; none if it is absent."""

    def set_inventory(self, hypervisor_hostname: str, resource_class: str, total: int) -> None:
        """Set the total of a class on a host's reservation provider, allocated one by one; its other classes stay.

        A total below what is used is no error. NotFound (provider); CloudRefused (class); CloudUnavailable if others
        keep changing the provider.
        """

    def delete_inventory(self, hypervisor_hostname: str, resource_class: str) -> None:
        """Remove a class from a host's reservation provider. NotFound; Conflict while it is used."""

    def hosts_with_unused(self, resource_class: str) -> frozenset[str]:
        """Return the hypervisor hostnames whose reservation provider has unused capacity of a class.

        Empty if there is no such class.
        """

    def hosts_with_room_for(self, server_id: str) -> frozenset[str]:
        """Return the hypervisor hostnames that have room for a server of the same size as this one."""


CLASS_PREFIX = "CUSTOM_RESERVATION_"
"""Prefix of the custom resource classes of reservations: reserved capacity, not capacity of the host."""


def reservation_id_of(resource_class: str) -> str:
    """Return the id of the reservation that a custom resource class belongs to."""
    return resource_class.removeprefix(CLASS_PREFIX).lower().replace("_", "-")


def combine_inventories(
    providers: Iterable[Mapping[str, Mapping[str, Any]]], traits: Iterable[str]
) -> ResourceInventory:
    """Return the inventory of a host whose providers have these inventories by class.

    The formula is Placement's. A class of several providers is summed and limited to one per allocation, because an
    allocation takes its whole amount of a class from one provider.
    """
    found: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for inventories in providers:
        for name, inventory in inventories.items():
            if not name.startswith(CLASS_PREFIX):
                found[name].append(inventory)
    capacity = Amounts.of({name: sum(map(_capacity, parts)) for name, parts in found.items()})
    return ResourceInventory(
        capacity, {name: _combine_limits(parts) for name, parts in found.items()}, frozenset(traits)
    )


def _capacity(inventory: Mapping[str, Any]) -> int:
    # ``reserved`` may exceed ``total`` while an operator changes an inventory.
    free = max(0, inventory["total"] - inventory.get("reserved", 0))
    return int(free * inventory.get("allocation_ratio", 1.0))


def _combine_limits(parts: list[Mapping[str, Any]]) -> UnitLimits:
    if len(parts) > 1:
        return UnitLimits(most=1)
    (one,) = parts
    return UnitLimits(one.get("min_unit", 1), one.get("max_unit", UnitLimits().most), one.get("step_size", 1))
