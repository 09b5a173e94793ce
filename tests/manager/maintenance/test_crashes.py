# SPDX-License-Identifier: Apache-2.0
"""A manager that dies, stands still, or loses the window or the lease, at each call with which it migrates a lease."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import pytest

from blazar.model.leases.states import LeaseStatus
from blazar.model.maintenance.windows import Outcome
from tests.manager.booking.test_best_effort import where
from tests.manager.maintenance.test_maintenance import shown
from tests.manager.maintenance.test_migrations import HOUR, LEAD, boot, migrated, only, pool, used
from tests.manager.maintenance.test_migrations import world as world
from tests.observed import Killed
from tests.promises import check_promises
from tests.world import NOON

DIES, STANDS_STILL, CANCELLED, DELETED = TURNS = (
    "dies",
    "stands still",
    "stands still, and the window is cancelled",
    "stands still, and the lease is deleted",
)
CALLS = 51
"""As many calls as it takes until the lease has left its old host."""

FAST = {8, 30, 45}

NUMBERS = [pytest.param(n, marks=() if n in FAST else pytest.mark.slow) for n in range(1, CALLS + 1)]


@pytest.mark.share(8)
@pytest.mark.slow
@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("phase", ["before", "after"])
@pytest.mark.parametrize("number", NUMBERS)
def test_another_manager_migrates_the_lease_or_leaves_it_in_order(world, number, phase, turn):
    world.simulated.durations.migration = timedelta(seconds=4)
    lease = used(world)
    (old,) = world.hosts_of(lease)
    for name in "abc":
        boot(world, lease, old, name, status="SHUTOFF" if name == "c" else "ACTIVE")
    made = migrated(world, old)
    world.clock.to(NOON + HOUR - LEAD)
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
        if turn == CANCELLED:
            other.maintenances.delete(made.id)
        if turn == DELETED:
            other.leases.delete(lease.id)
        world.clock.by(seconds=45)
        other.engine.run_due()
        other.maintenance_work.run_once()

    world.faults.on_call = strike
    for _ in range(200):
        if len(calls) >= number:
            break
        with suppress(Killed):
            world.manager.maintenance_work.run_once()
        world.clock.by(seconds=5)
    world.faults.on_call = None
    for _ in range(120):
        world.clock.by(seconds=5)
        for manager in (other,) if turn == DIES else (other, world.manager):
            manager.engine.run_due()
            manager.maintenance_work.run_once()
    check_promises(world.store, since=world.clock.now())
    if turn == DELETED and world.now(lease).deleted_at is not None:
        assert world.reservation_aggregates() == []
        assert world.pool() == {"node-1", "node-2", "node-3"}
        assert where(world) == {}
        return
    assert world.now(lease).status is LeaseStatus.ACTIVE
    if turn == CANCELLED and len(set(where(world).values())) == 2:
        # Some had moved, and are not moved again.
        assert world.hosts_of(lease) == pool(world, lease) == set(where(world).values())
        assert "keeps both" in only(shown(world, made)).note
        return
    (host,) = world.hosts_of(lease)
    assert pool(world, lease) == {host}
    assert world.pool() == {"node-1", "node-2", "node-3"} - {host}
    assert where(world) == dict.fromkeys("abc", host)
    if turn != CANCELLED:
        assert host != old
        assert only(shown(world, made)).outcome is Outcome.MIGRATED
        assert "lease.moved" in world.notifier.types
