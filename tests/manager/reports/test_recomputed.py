# SPDX-License-Identifier: Apache-2.0
"""A report says what a second program finds that has looked at each moment, to the second."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from blazar.model.reports.periods import ReportSettings, ReportStep
from blazar.model.reports.usage import Measure, UsageGroup, UsageQuestion, UsageReport
from blazar.model.use.policy import UseMode, UsePolicies, UsePolicy
from tests.manager.reports.ledger import Life, local_days
from tests.world import NOON, World

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
ZONE = ZoneInfo("America/Santiago")
LONG, SHORT = NOON, NOON.replace(month=9, day=5)
"""When lives begin. On 6 April 2030 clocks are set back at midnight, to 23:00: the day has 25 hours. On 8 September
they are set forward at midnight: the day begins at 1:00 and has 23.
"""
BY_BOTH = (UsageGroup.PROJECT, UsageGroup.RESOURCE_TYPE)


def lived(engine, seed: int, begin: datetime, *, days: int = 7) -> Life:
    world = World(engine, hosts=5)
    world.clock.to(begin)
    looks = UsePolicies(UsePolicy(UseMode.ON, unused_after=5 * HOUR, idle_after=4 * HOUR, warn_before=2 * HOUR))
    world.settings = replace(world.settings, reports=ReportSettings(str(ZONE)), use_policies=looks)
    world.manager = world.another_manager()
    life = Life(world, seed)
    life.live_until(begin + days * DAY)
    return life


def first_of(world: World) -> datetime:
    """Return an instant on the day before the life began."""
    return (LONG if world.clock.now() < SHORT else SHORT) - DAY


def ask(world: World, step: ReportStep, *group_by: UsageGroup, **more) -> UsageReport:
    return world.manager.reports.usage(
        UsageQuestion("admin", first_of(world), world.clock.now(), group_by, step, private=True, **more)
    )


def measured(report: UsageReport, window=None) -> Counter:
    """The sums of a report, or of one part of it, by measure and groups; what is zero is left out."""
    found: Counter = Counter()
    for row in report.rows:
        if window is None or (row.window.start, row.window.end) == window:
            for name in Measure:
                found[str(name), *row.groups] += getattr(row.sums, name)
    return +found


def check_report(life: Life) -> None:
    """Hold a report against the ledger: by day, by project and type; in all; and the number of leases."""
    world, ledger = life.world, life.ledger
    now = world.clock.now()
    days = local_days(first_of(world), now, ZONE)
    assert (25 if now < SHORT else 23) in [(end - begin) / timedelta(hours=1) for begin, end in days]
    report = ask(world, ReportStep.DAY, *BY_BOTH)
    assert {(row.window.start, row.window.end) for row in report.rows} <= set(days)
    for day in days:
        assert measured(report, day) == ledger.sums(*day), day
    for row in ask(world, ReportStep.DAY).rows:
        assert row.sums.leases == len(set(ledger.lease_ids(row.window.start, row.window.end)))


def check_sums(world: World) -> None:
    """The sums by project, by type, by day and by host are the same in all."""
    totals = set()
    for group_by, step in (
        ((), ReportStep.ALL),
        ((UsageGroup.PROJECT,), ReportStep.ALL),
        ((UsageGroup.RESOURCE_TYPE, UsageGroup.KIND), ReportStep.ALL),
        ((UsageGroup.USER, UsageGroup.LEASE_KIND, UsageGroup.REGION), ReportStep.DAY),
        (BY_BOTH, ReportStep.WEEK),
    ):
        found = measured(ask(world, step, *group_by))
        by_name: Counter = Counter()
        for (name, *_), number in found.items():
            by_name[name] += number
        assert by_name["reserved"] == by_name["used"] + by_name["idle"] + by_name["unseen"]
        totals.add(tuple(by_name[name] for name in Measure))
    assert len(totals) == 1, totals
    assert min(total[0] for total in totals) > 0


@pytest.mark.sample(1)
@pytest.mark.share(7)
@pytest.mark.parametrize(("seed", "begin"), [(seed, (LONG, SHORT)[seed % 2]) for seed in range(20)])
def test_a_report_is_what_leases_had_at_each_moment(engine, seed, begin):
    life = lived(engine, seed, begin)
    assert life.done["create"] > 10 < life.done["move_end"] + life.done["resize"] + life.done["delete"]
    check_report(life)
    # From the record, it is the same.
    assert life.world.manager.usage_days.run_once() == 31
    check_report(life)
    check_sums(life.world)
