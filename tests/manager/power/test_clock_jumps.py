# SPDX-License-Identifier: Apache-2.0
"""The clock of a service with one machine is set forward by an hour, or back by ten minutes, while hosts go off, wake
and are read.

Several machines have the clock of their database, whatever theirs say (``tests/store/test_clock.py``).
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from blazar.manager.common.settings import Settings
from blazar.model.energy.book import EnergyTerms
from blazar.model.leases.states import LeaseStatus
from blazar.model.power.settings import PowerMode, PowerSettings
from blazar.model.power.states import PowerState
from blazar.store.sql.tables import host_hours
from tests.manager.billing.ledger import rows
from tests.manager.power.nights import HOUR, MINUTE, check_safe, give_switches, has_power, is_up, mark, states, work
from tests.world import NOON, World

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

BACK, FORWARD = timedelta(minutes=-10), timedelta(hours=1)
READ = EnergyTerms(records=True, asks_adapters=True)


@pytest.fixture
def world(a_world) -> World:
    settings = Settings(claim_ttl=timedelta(seconds=30), promises=0, power=PowerSettings(PowerMode.ON, spare=0))
    world = a_world(hosts=2, settings=settings, energy=READ)
    give_switches(world)
    world.clock.by(hours=1)
    return world


def live(world: World, span: timedelta) -> None:
    """Let time pass; at each instant what sleeps is closed and runs nothing, and what is on is open."""
    until = world.clock.now() + span
    while world.clock.now() < until:
        work(world.manager)
        world.run()
        world.manager.energy_work.run_once()
        check_safe(world)
        world.clock.by(seconds=60)


def read(world: World, span: timedelta) -> None:
    """Let time pass in which hosts are only read."""
    until = world.clock.now() + span
    while world.clock.now() < until:
        world.manager.energy_work.run_once()
        world.clock.by(seconds=60)


def reach(world: World, state: PowerState) -> None:
    """Let time pass until the hosts are in a state."""
    for _ in range(3000):
        if set(states(world)) == {state}:
            return
        live(world, timedelta(seconds=30))
    raise AssertionError(states(world))


@pytest.mark.parametrize("jump", [BACK, FORWARD])
@pytest.mark.parametrize("state", [PowerState.GOING_OFF, PowerState.OFF])
def test_hosts_sleep_and_wake_for_a_lease_whatever_the_clock_does(world, state, jump):
    reach(world, state)
    if state is PowerState.OFF:
        # A simulated machine tells by this clock whether it is off yet: no real one comes on as a clock goes back.
        live(world, -BACK)
    world.clock.instant += jump
    lease = world.lease(start=3 * HOUR, hours=1)
    live(world, 2 * HOUR)
    assert set(states(world)) == {PowerState.OFF}
    live(world, HOUR + MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert sorted(states(world)) == [PowerState.OFF, PowerState.ON]


@pytest.mark.parametrize("jump", [BACK, FORWARD])
def test_a_host_that_wakes_for_a_lease_is_on_at_its_start_by_the_clock_there_is(world, jump):
    lease = world.lease(start=4 * HOUR, hours=3)
    reach(world, PowerState.OFF)
    while PowerState.WAKING not in states(world):
        live(world, timedelta(seconds=30))
    world.clock.instant += jump
    left = lease.window.start - world.clock.now()
    # A start that the clock has passed is late, and not for longer than a wake takes.
    live(world, left + MINUTE if left > timedelta(0) else 12 * MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    number = 1 + states(world).index(PowerState.ON)
    assert (has_power(world, number), is_up(world, number), mark(world, number)) == (True, True, None)


def test_a_start_that_the_clock_jumps_over_wakes_its_host_and_is_done(world):
    lease = world.lease(start=4 * HOUR, hours=4)
    reach(world, PowerState.OFF)
    world.clock.to(lease.window.start - 40 * MINUTE)
    live(world, MINUTE)
    world.clock.instant += FORWARD
    live(world, 15 * MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE


@pytest.mark.parametrize("minute", [3, 31, 58])
@pytest.mark.parametrize("jump", [BACK, FORWARD, -FORWARD])
def test_no_hour_has_more_readings_than_it_has_turns_and_all_are_read_on(world, minute, jump):
    world.clock.to(NOON + 2 * HOUR + minute * MINUTE)
    start = world.clock.now()
    read(world, HOUR + 20 * MINUTE)
    world.clock.instant += jump
    read(world, 3 * HOUR)
    found: Counter[int] = Counter()
    # A time that the clock has twice has readings twice, and one at once.
    more = 1 - jump // (5 * MINUTE) if jump < timedelta(0) else 0
    for row in rows(world, host_hours):
        assert row["readings"] <= 12 + more, row
        found[row["hour"]] += row["readings"]
    last = int(world.clock.now().timestamp()) // 3600 * 3600 - 3600
    # Of what the clock has skipped nothing is known.
    hours = range((int(start.timestamp()) // 3600 + 1) * 3600, last, 3600)
    missing = [hour for hour in hours if found[hour] < 2 * 10]
    assert len(missing) <= (2 if jump == FORWARD else 0), (missing, found)


def test_a_clock_that_is_corrected_leaves_no_hour_without_readings(world):
    world.clock.to(NOON + 2 * HOUR + 50 * MINUTE)
    read(world, 5 * MINUTE)
    world.clock.instant += 3 * HOUR
    read(world, 2 * MINUTE)
    world.clock.instant -= 3 * HOUR
    first = int(world.clock.now().timestamp()) // 3600 * 3600 + 3600
    read(world, 3 * HOUR)
    found = {(row["resource_id"], row["hour"]): row["readings"] for row in rows(world, host_hours)}
    assert [number for (_, hour), number in found.items() if hour in (first, first + 3600)] == [12] * 4
