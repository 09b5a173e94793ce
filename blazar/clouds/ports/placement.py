# SPDX-License-Identifier: Apache-2.0
"""The placement port: inventories and traits of hosts, and the capacity that is reserved on them.

Both adapters convert inventories of Placement into those of resources in the calendar by ``combine_inventories``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

from blazar.model.base.amounts import Amounts
from blazar.model.base.values import dataclass, replace
from blazar.model.resources.pools import ONE_TIME_USE, CardPool, UnitLimits
from blazar.model.resources.resource import ResourceInventory


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
        have (GPUs, for example) is summed. The traits are those of the host's own provider; those of nested ones are in
        the pools. What is reserved of a device that is cleaned after each server is no less of it: it comes back.
        """

    def uncleaned(self, hypervisor_hostname: str) -> Amounts:
        """Return what nobody uses of a host's devices and nobody can have, as they await cleaning, by class."""

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


@dataclass(frozen=True, slots=True)
class ProviderInventory:
    """What a provider has: inventories by class, with the keys of Placement, and traits."""

    inventories: Mapping[str, Mapping[str, Any]]
    traits: frozenset[str] = frozenset()


def combine_inventories(own: ProviderInventory, nested: Iterable[ProviderInventory] = ()) -> ResourceInventory:
    """Return the inventory of a host with this provider of its own and these nested ones.

    The formula is Placement's. A class that a nested provider has is in the pools, as an allocation takes its whole
    amount of a class from one provider; providers that are equal in it are one pool. One with nothing free is left out.
    """
    found: dict[str, list[CardPool]] = defaultdict(list)
    deep: set[str] = set()
    for provider in (own, *nested):
        for name, inventory in provider.inventories.items():
            if not name.startswith(CLASS_PREFIX):
                usable = {**inventory, "reserved": 0} if ONE_TIME_USE in provider.traits else inventory
                found[name].append(CardPool(name, _capacity(usable), 1, provider.traits, _limits(inventory)))
                deep |= set() if provider is own else {name}
    capacity = Amounts.of({name: sum(pool.size for pool in parts) for name, parts in found.items()})
    pools = Counter(pool for name in deep for pool in found[name] if pool.size)
    return ResourceInventory(
        capacity,
        {name: parts[0].limits for name, parts in found.items() if len(parts) == 1},
        own.traits,
        tuple(sorted((replace(pool, providers=n) for pool, n in pools.items()), key=_order)),
    )


def _order(pool: CardPool) -> tuple[object, ...]:
    limits = pool.limits
    return pool.resource_class, pool.size, sorted(pool.traits), limits.least, limits.most, limits.step


def _capacity(inventory: Mapping[str, Any]) -> int:
    # ``reserved`` may exceed ``total`` while an operator changes an inventory.
    free = max(0, inventory["total"] - inventory.get("reserved", 0))
    return int(free * inventory.get("allocation_ratio", 1.0))


def _limits(inventory: Mapping[str, Any]) -> UnitLimits:
    usual = UnitLimits()
    return UnitLimits(
        inventory.get("min_unit", usual.least), inventory.get("max_unit", usual.most), inventory.get("step_size", 1)
    )
