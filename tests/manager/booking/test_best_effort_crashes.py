# SPDX-License-Identifier: Apache-2.0
"""A manager that dies, stands still, or loses its lease to a deletion, at each call that it makes to empty hosts."""

from __future__ import annotations

from contextlib import suppress

import pytest

from blazar.model.leases.states import LeaseStatus
from tests.manager.booking.test_best_effort import best_effort, boot, is_in_order, said
from tests.manager.booking.test_best_effort import world as world
from tests.observed import Killed
from tests.world import World

DIES, STANDS_STILL, DELETED = TURNS = ("dies", "stands still", "stands still, and the lease is deleted")
CALLS = 44
"""More calls than it takes until the first moves are begun and looked at again."""

FAST = {3, 9, 14, 17, 22}

NUMBERS = [pytest.param(n, marks=() if n in FAST else pytest.mark.slow) for n in range(1, CALLS + 1)]


def arrived(world: World) -> list[str]:
    """Return the servers that were moved, as the cloud has it."""
    with world.simulated.inspect() as state:
        now = world.clock.now()
        return sorted(s.id for s in state.servers.values() if any(m.has_arrived(now) for m in s.migrations))


@pytest.mark.share(6)
@pytest.mark.sample(1)
@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("phase", ["before", "after"])
@pytest.mark.parametrize("number", NUMBERS)
def test_another_manager_makes_room_or_undoes_it(world, number, phase, turn):
    servers = [boot(world, "node-2"), boot(world, "node-2", "more"), *(boot(world, "node-3", name) for name in "abc")]
    lease = best_effort(world)
    other = world.another_manager()
    calls: list[str] = []

    def strike(name: str, now: str) -> None:
        if now == "before":
            calls.append(name)
        if (len(calls), now) != (number, phase):
            return
        world.faults.on_call = None
        if turn == DIES:
            raise Killed
        if turn == DELETED:
            other.leases.delete(lease.id)
        world.clock.by(seconds=45)
        other.engine.run_due()

    world.faults.on_call = strike
    while len(calls) < number:
        with suppress(Killed):
            world.manager.engine.run_due()
        world.clock.by(seconds=5)
    world.faults.on_call = None
    for _ in range(80):
        world.clock.by(seconds=5)
        other.engine.run_due()
        if turn != DIES:
            world.manager.engine.run_due()
    if turn == DELETED:
        assert is_in_order(world, *servers)
    else:
        assert world.now(lease).status is LeaseStatus.ACTIVE
        assert world.pool(lease.reservations[0].id) == {"node-1", "node-2"}
        world.manager.leases.delete(lease.id)
        assert is_in_order(world, *servers)
    moved = arrived(world)
    assert said(world) == ([("others", moved)] if moved else [])
