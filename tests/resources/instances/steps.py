# SPDX-License-Identifier: Apache-2.0
"""What tests of instances do and look at."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from blazar.model.base.errors import CloudUnavailable
from tests.world import PROJECT, World

DOWN = CloudUnavailable("the cloud does not answer")
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def id_of(lease) -> str:
    return lease.reservations[0].id


def class_of(lease) -> str:
    return "CUSTOM_RESERVATION_" + id_of(lease).upper().replace("-", "_")


def slots(world: World, lease) -> dict[str, int]:
    """The slots that Placement has of a reservation, by host."""
    with world.simulated.inspect() as state:
        found = {host: totals.get(class_of(lease)) for host, totals in state.inventories.items()}
    return {host: total for host, total in found.items() if total}


def promised(world: World, lease) -> dict[str, int]:
    """The slots that the calendar has promised, by host."""
    allocations = world.store.calendar.of_lease(lease.id)
    names = {id_: r.name for id_, r in world.store.resources.by_ids({a.resource_id for a in allocations}).items()}
    return dict(Counter({names[a.resource_id]: a.count for a in allocations}))


def boot(world: World, lease, name="work"):
    return world.simulated.users.boot_reserved(id_of(lease), project_id=PROJECT, name=name)


def nothing_is_left(world: World) -> None:
    with world.simulated.inspect() as state:
        assert state.flavors == {}
        assert state.groups == {}
        assert state.classes == []
        assert all(not totals for totals in state.inventories.values())
        assert {a.name for a in state.aggregates.values()} == {"freepool", "az-1", "az-2"}
    assert world.pool() == {"node-1", "node-2", "node-3"}
