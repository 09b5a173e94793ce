# SPDX-License-Identifier: Apache-2.0
"""What the database says of leases that nobody uses, on each of the databases."""

from __future__ import annotations

from datetime import timedelta

from blazar.manager.common.settings import Settings
from blazar.model.use.policy import Usage, UseMode, UsePolicies, UsePolicy, UseStep
from tests.statements import counted
from tests.world import NOON, World

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def test_releases_are_counted_and_reported_with_their_history(engine):
    world = World(engine, settings=Settings(use_policies=UsePolicies(UsePolicy(UseMode.ON))))
    leases = [world.lease(hours=48, name=f"l{number}") for number in range(3)]
    world.run()
    assert world.store.unused.count_releases(NOON + MINUTE) == (0, 3)
    world.run_to(NOON + 6 * HOUR)
    assert world.store.unused.count_releases(NOON + 7 * HOUR) == (0, 3)
    assert world.store.unused.count_releases(NOON + 8 * HOUR) == (3, 3)
    world.run_to(NOON + 9 * HOUR + MINUTE)
    now = world.clock.now()
    with counted(engine) as statements:
        assert world.store.unused.count_releases(now) == (3, 3)
    assert statements.count == 1
    assert world.store.unused.count_releases(now + HOUR) == (0, 0)
    first, *rest = world.store.unused.load_report(limit=1)
    assert rest == []
    every = (first, *world.store.unused.load_report(after=first.id))
    assert [each.id for each in every] == sorted(lease.id for lease in leases)
    assert {(each.usage, each.mode, each.looks[-1].step) for each in every} == {
        (Usage.UNUSED, UseMode.ON, UseStep.RELEASED)
    }
