# SPDX-License-Identifier: Apache-2.0
"""Energy where clocks are changed: hours are those of UTC, and a local day of any length has what is its own."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blazar.manager.common.settings import Settings
from blazar.model.base.window import Window
from blazar.model.energy.book import EnergyReading, EnergyTerms, HostHour
from blazar.model.energy.carbon import parse_curve
from blazar.model.energy.consumption import HostMeter, HostShare, sum_energy
from blazar.model.reports.periods import ReportSettings, ReportStep
from blazar.model.reports.usage import UsageQuestion
from blazar.model.resources.resource import HOST
from blazar.store.sql.tables import charges
from blazarconformance.clock import ManualClock
from tests.cases import cases
from tests.manager.billing.ledger import close, publish, rows
from tests.world import World, a_host

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
CHANGES = {
    "Europe/Berlin back": ("Europe/Berlin", datetime(2030, 10, 27, 1, tzinfo=UTC)),
    "Europe/Berlin forward": ("Europe/Berlin", datetime(2031, 3, 30, 1, tzinfo=UTC)),
    "Lord Howe back": ("Australia/Lord_Howe", datetime(2030, 4, 6, 15, tzinfo=UTC)),
    "Lord Howe forward": ("Australia/Lord_Howe", datetime(2030, 10, 5, 15, 30, tzinfo=UTC)),
    "Santiago back": ("America/Santiago", datetime(2030, 4, 7, 3, tzinfo=UTC)),
    "Santiago forward": ("America/Santiago", datetime(2030, 9, 8, 4, tzinfo=UTC)),
}


def watts(hour: int) -> int:
    """Return what a host draws in an hour: none has what one near it has."""
    return 100 + hour // 3600 * 37 % 101


def begin_of_hour(instant: datetime) -> int:
    return int(instant.timestamp()) // 3600 * 3600


@pytest.mark.parametrize("change", CHANGES)
def test_clocks_are_changed_then(change):
    zone, instant = CHANGES[change]
    offsets = {(instant + by).astimezone(ZoneInfo(zone)).utcoffset() for by in (-timedelta(seconds=1), timedelta(0))}
    assert len(offsets) == 2


@pytest.mark.parametrize("change", CHANGES)
def test_each_local_day_of_a_report_has_what_was_drawn_in_its_minutes(sqlite, change):
    zone, instant = CHANGES[change]
    now = (instant - 30 * HOUR).replace(minute=0)
    world = World(
        sqlite,
        hosts=1,
        clock=ManualClock(now),
        settings=Settings(promises=0, reports=ReportSettings(zone)),
        energy=EnergyTerms(records=True, tells_carbon=True),
    )
    publish(world, now - HOUR, valid_from=f"{now - HOUR:%Y-%m-%dT%H:%M:%SZ}")
    (host,) = world.store.resources.catalog(HOST).resources
    hours = [begin_of_hour(now) + number * 3600 for number in range(80)]
    world.store.energy.claim_turn("mine", now=now, until=now + HOUR)
    drawn = [HostHour(host.id, hour, 1000 * watts(hour), 12) for hour in hours]
    curve = {hour: Fraction(hour // 3600 % 7 * 100) for hour in hours}
    world.store.energy.record("mine", EnergyReading(drawn, curve))
    start, end = now + timedelta(minutes=17), now + timedelta(hours=63, minutes=41)
    world.lease(a_host(1), start=start, end=end)
    close(world, end + 3 * HOUR)
    days, grams = Counter[str](), Fraction(0)
    for number in range(int((end - start) / MINUTE)):
        at = start + number * MINUTE
        drew = Fraction(watts(begin_of_hour(at)), 60)
        days[f"{at.astimezone(ZoneInfo(zone)):%d}"] += drew
        grams += drew / 1000 * curve[begin_of_hour(at)]
    report = world.manager.reports.usage(UsageQuestion("physics", now, end + HOUR, step=ReportStep.DAY))
    told = {f"{row.window.start.astimezone(ZoneInfo(zone)):%d}": row.sums.energy_wh for row in report.rows}
    assert {day: wh for day, wh in told.items() if wh} == {day: round(wh) for day, wh in days.items()}
    (line,) = [row for row in rows(world, charges) if row["category"] == "energy"]
    assert (line["wh"], line["gco2"]) == (round(sum(days.values())), round(grams))


@given(
    st.sampled_from(sorted(CHANGES)),
    st.integers(-40 * 3600, 40 * 3600),
    st.integers(1, 40 * 3600),
    st.lists(st.tuples(st.integers(-2880, 2880), st.booleans()), max_size=6),
)
@settings(max_examples=cases(200), deadline=None)
def test_energy_is_the_same_however_a_time_with_a_change_is_cut_by_the_wall_clock(change, after, length, cuts):
    name, instant = CHANGES[change]
    zone, begin = ZoneInfo(name), instant + timedelta(seconds=after)
    end = begin + timedelta(seconds=length)
    local = instant.astimezone(zone).replace(tzinfo=None)
    # Minutes by the wall clock, also those that come twice, or never.
    times = [(local + minutes * MINUTE).replace(tzinfo=zone, fold=fold).astimezone(UTC) for minutes, fold in cuts]
    borders = sorted({begin, *(at for at in times if begin < at < end), end})
    hours = range(begin_of_hour(begin), begin_of_hour(end) + 3600, 3600)
    meters = {"h": HostMeter({hour: 1000 * watts(hour) for hour in hours})}
    whole = sum_energy([HostShare("h", Window(begin, end))], meters)
    assert whole == sum_energy([HostShare("h", Window(*pair)) for pair in pairwise(borders)], meters)
    seconds = range(int(begin.timestamp()), int(end.timestamp()))
    assert sum(hour.total for hour in whole.hours) == sum(1000 * watts(at // 3600 * 3600) for at in seconds)


def test_a_curve_by_local_time_has_both_hours_of_the_night_and_no_gap():
    back = ["02:00:00+02:00", "02:00:00+01:00", "03:00:00+01:00"]
    forward = ["01:00:00+01:00", "03:00:00+02:00"]
    lines = [f"2030-10-27T{at},{number}" for number, at in enumerate(back)]
    lines += [f"2031-03-30T{at},{number}" for number, at in enumerate(forward)]
    curve = parse_curve("\n".join(["start,value", *lines]), named="curve")
    found = sorted(curve.values)
    assert [curve.values[hour] for hour in found] == [0, 1, 2, 0, 1]
    assert [found[1] - found[0], found[2] - found[1], found[4] - found[3]] == [3600, 3600, 3600]
