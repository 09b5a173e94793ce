# SPDX-License-Identifier: Apache-2.0
"""Convert inventories of Placement into those of resources in the calendar."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from blazar.model.amounts import Amounts
from blazar.model.resource import ResourceInventory, UnitLimits

CLASS_PREFIX = "CUSTOM_RESERVATION_"
"""Prefix of the custom resource classes of reservations: reserved capacity, not capacity of the host."""


def reservation_of(resource_class: str) -> str:
    """Return the id of the reservation that a custom resource class belongs to."""
    return resource_class.removeprefix(CLASS_PREFIX).lower().replace("_", "-")


def inventory_of(providers: Iterable[Mapping[str, Mapping[str, Any]]], traits: Iterable[str]) -> ResourceInventory:
    """Return the inventory of a host whose providers have these inventories by class.

    The formula is Placement's. A class of several providers is summed and limited to one per allocation, because an
    allocation takes its whole amount of a class from one provider.
    """
    found: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for inventories in providers:
        for name, inventory in inventories.items():
            if not name.startswith(CLASS_PREFIX):
                found[name].append(inventory)
    capacity = Amounts.of({name: sum(map(_amount, parts)) for name, parts in found.items()})
    return ResourceInventory(capacity, {name: _limits(parts) for name, parts in found.items()}, frozenset(traits))


def _amount(inventory: Mapping[str, Any]) -> int:
    # ``reserved`` may exceed ``total`` while an operator changes an inventory.
    free = max(0, inventory["total"] - inventory.get("reserved", 0))
    return int(free * inventory.get("allocation_ratio", 1.0))


def _limits(parts: list[Mapping[str, Any]]) -> UnitLimits:
    if len(parts) > 1:
        return UnitLimits(most=1)
    (one,) = parts
    return UnitLimits(one.get("min_unit", 1), one.get("max_unit", UnitLimits().most), one.get("step_size", 1))
