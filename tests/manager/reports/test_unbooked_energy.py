# SPDX-License-Identifier: Apache-2.0
"""What hosts drew that no lease had: with what leases drew it is all that was measured, to the last watt-hour."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from fractions import Fraction

import pytest

from blazar.model.base.errors import InvalidInput
from blazar.model.energy.book import EnergyReading, EnergyTerms, HostHour
from blazar.model.energy.unbooked import UnbookedEnergy, UnbookedPart
from blazar.model.power.states import PowerReason, PowerState
from blazar.model.reports.usage import UsageQuestion, UsageReport
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST
from blazar.store.power.rows import PowerMove, write_moves
from blazar.store.sql.tables import allocations, leases
from tests.manager.billing.ledger import rows
from tests.statements import counted
from tests.world import NOON, World, a_host, instances

HOUR = timedelta(hours=1)
AT = int(NOON.timestamp())
TERMS = EnergyTerms(records=True, tells_carbon=True)
HOURS = range(-12, 40)


@pytest.fixture
def world(a_world) -> World:
    """Three hosts that draw 100 W, in each hour a watt more, at half a gram a watt-hour."""
    world = a_world(hosts=3, energy=TERMS)
    store = world.store.energy
    store.claim_turn("mine", now=NOON, until=NOON + HOUR)
    ids = [host.id for host in world.store.resources.catalog(HOST).resources]
    drawn = [HostHour(id_, AT + hour * 3600, 1000 * watts(hour), 12) for id_ in ids for hour in HOURS]
    store.record("mine", EnergyReading(drawn))
    store.record("mine", EnergyReading(curve={AT + hour * 3600: Fraction(500) for hour in HOURS}))
    return world


def watts(hour: int) -> int:
    return 100 + hour


def ask(world: World, first: int, last: int, **more) -> UsageReport:
    question = UsageQuestion("physics", NOON + first * HOUR, NOON + last * HOUR, unbooked=True, **more)
    return world.manager.reports.usage(question)


def drawn(first: int, last: int) -> int:
    return sum(watts(hour) for hour in range(first, last))


def sleep(world: World, host, begin: int, end: int | None, *, rehearsed: bool = False) -> None:
    """Write that a host slept from an hour to another, or goes on to do so."""
    (power,) = world.store.power.read_hosts_power(NOON, [host.id]).values()
    off = replace(power, state=PowerState.OFF, since=NOON + begin * HOUR)
    moves = [PowerMove(replace(power, state=PowerState.GOING_OFF, since=NOON), off)]
    if end is not None:
        moves.append(PowerMove(off, off.move(PowerState.WAKING, PowerReason.OPERATOR, NOON + end * HOUR)))
    for move in moves:
        world.store.transactions.write(lambda c, move=move: write_moves(c, [move], rehearsed=rehearsed))


def test_what_leases_drew_and_nobody_had_is_all_that_was_measured(world):
    world.lease(a_host(1), start=HOUR, hours=5)
    world.lease(instances(2, vcpus=2), start=2 * HOUR, hours=3)
    world.run_to(NOON + 12 * HOUR)
    used = {row["resource_id"] for row in rows(world, allocations)}
    assert len(used) == 2
    sleeper = next(host for host in world.store.resources.catalog(HOST).resources if host.id not in used)
    sleep(world, sleeper, 3, 7)
    report = ask(world, 0, 10)
    (row,) = report.rows
    found = report.unbooked
    assert found.asleep == UnbookedPart(4 * 3600, drawn(3, 7), "measured", 0, drawn(3, 7) // 2)
    assert found.idle.energy_wh + found.asleep.energy_wh + row.sums.energy_wh == pytest.approx(3 * drawn(0, 10), abs=1)
    assert found.idle.gco2 + found.asleep.gco2 + row.sums.gco2 == pytest.approx(1.5 * drawn(0, 10), abs=2)


def test_a_host_that_still_sleeps_counts_until_now_and_dry_runs_put_none_to_sleep(world):
    world.run_to(NOON + 12 * HOUR)
    first, second, _ = world.store.resources.catalog(HOST).resources
    sleep(world, first, 9, None)
    sleep(world, second, 5, None, rehearsed=True)
    assert ask(world, 4, 20).unbooked.asleep.energy_wh == drawn(9, 12)
    assert ask(world, 4, 8).unbooked.asleep == UnbookedPart(gco2=0)


def test_hosts_that_were_not_registered_yet_or_any_more_are_not_in_it(world):
    world.run_to(NOON + 4 * HOUR)
    host = world.store.resources.catalog(HOST).resources[0]
    world.manager.resources.unregister(HOST, host.external_id)
    world.run_to(NOON + 12 * HOUR)
    assert ask(world, -6, 8).unbooked.idle.resource_seconds == (2 * 8 + 4) * 3600
    assert ask(world, 5, 8).unbooked.idle.energy_wh == 2 * drawn(5, 8)


def test_without_a_record_it_is_rated_as_idle(a_world):
    world = a_world(hosts=1)
    (host,) = world.store.resources.catalog(HOST).resources
    rated = {"power_idle_w": "200", "power_max_w": "400"}
    world.manager.resources.change(HOST, host.external_id, ResourceChange(rated))
    world.run_to(NOON + 12 * HOUR)
    none = UnbookedPart()
    assert ask(world, 0, 10).unbooked == UnbookedEnergy(UnbookedPart(36000, 2000, "rated", 0, None), none)


def test_where_leases_were_purged_nothing_is_told(world):
    world.lease(a_host(1), hours=5)
    world.run_to(NOON + 48 * HOUR)
    while world.manager.usage_days.run_once():
        pass
    assert ask(world, 0, 10).unbooked.idle.energy_wh == 2 * drawn(0, 5) + 3 * drawn(5, 10)
    world.store.leases.purge(NOON + 40 * HOUR, 10)
    assert rows(world, leases) == []
    assert ask(world, 0, 10).unbooked is None
    assert ask(world, 36, 40).unbooked is not None


def test_a_period_that_is_too_long_is_refused_and_what_is_to_come_is_not_in_it(world):
    with pytest.raises(InvalidInput, match="unbooked covers at most 31 days, and from and to are 40 days apart"):
        ask(world, 0, 40 * 24)
    assert ask(world, 1, 10).unbooked is None
    assert world.manager.reports.usage(UsageQuestion("physics")).unbooked is None


def test_it_takes_as_many_statements_however_many_leases_there_are(world):
    def count() -> int:
        with counted(world.engine) as statements:
            ask(world, 0, 10)
        return statements.count

    world.lease(a_host(1), hours=2)
    world.run_to(NOON + 12 * HOUR)
    few = count()
    for _ in range(3):
        world.lease(a_host(1), start=world.clock.now() + HOUR, hours=1)
        world.run_to(world.clock.now() + 3 * HOUR)
    assert count() == few
