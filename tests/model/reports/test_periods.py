# SPDX-License-Identifier: Apache-2.0
"""The parts of a report: local days, weeks and months, also where clocks change."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blazar.model.base.moments import NOW, LocalDay, instant_of, start_of_day
from blazar.model.base.window import Window
from blazar.model.reports.periods import (
    ReportStep,
    day_at,
    list_days,
    split_window,
    start_of_month,
    window_of_day,
)

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
# Clocks change at 2 or 3; at midnight, forward and back; by half an hour; a whole day was skipped; never.
ZONES = [
    ZoneInfo(name)
    for name in ("Europe/Paris", "America/Havana", "Africa/Cairo", "Australia/Lord_Howe", "Pacific/Apia", "UTC")
]
zones = st.sampled_from(ZONES)
instants = st.integers(0, 2_000_000_000).map(lambda second: datetime.fromtimestamp(second, UTC))
windows = st.builds(
    lambda start, seconds: Window(start, start + timedelta(seconds=seconds)), instants, st.integers(1, 70 * 86400)
)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("day", "hours"), [((2030, 3, 31), 23), ((2030, 10, 27), 25), ((2030, 4, 1), 24)], ids=["spring", "autumn", "usual"]
)
def test_a_day_has_as_many_hours_as_its_clocks_show(day, hours):
    window = window_of_day(date(*day), ZONES[0])
    assert window is not None
    assert window.duration == hours * HOUR


def test_a_day_that_clocks_have_skipped_has_no_window():
    apia = ZoneInfo("Pacific/Apia")
    assert window_of_day(date(2011, 12, 30), apia) is None
    assert start_of_day(date(2011, 12, 31), apia) == start_of_day(date(2011, 12, 30), apia)


@given(instant=instants, zone=zones)
def test_an_instant_belongs_to_one_day(instant, zone):
    day = day_at(instant, zone)
    window = window_of_day(day, zone)
    assert window is not None
    assert window.contains(instant)


@given(window=windows, step=st.sampled_from(ReportStep), zone=zones)
def test_the_parts_of_a_window_follow_each_other_from_its_start_to_its_end(window, step, zone):
    parts = split_window(window, step, zone)
    assert (parts[0].start, parts[-1].end) == (window.start, window.end)
    assert all(before.end == after.start for before, after in zip(parts, parts[1:], strict=False))
    for border in (part.start for part in parts[1:]):
        day = day_at(border, zone)
        assert border == start_of_day(day, zone)
        assert (
            step is not ReportStep.WEEK or day.weekday() == 0 or window_of_day(day - day.weekday() * DAY, zone) is None
        )
        assert step is not ReportStep.MONTH or day.day == 1
    longest = {ReportStep.DAY: 25 * HOUR, ReportStep.WEEK: 7 * DAY + HOUR, ReportStep.MONTH: 31 * DAY + HOUR}
    assert step is ReportStep.ALL or all(part.duration <= longest[step] for part in parts)


@given(window=windows, zone=zones)
def test_the_days_of_a_window_are_those_of_its_parts(window, zone):
    days = [day for day in list_days(window, zone) if window_of_day(day, zone) is not None]
    assert days == [day_at(part.start, zone) for part in split_window(window, ReportStep.DAY, zone)]


def test_what_is_asked_for_is_an_instant_of_the_site():
    paris, now = ZONES[0], utc("2030-05-01T12:00:00")
    assert instant_of(NOW, paris, now) == now
    assert instant_of(now - DAY, paris, now) == now - DAY
    assert instant_of(LocalDay(2030, 5, 1), paris, now) == utc("2030-04-30T22:00:00")
    assert start_of_month(now, paris) == utc("2030-04-30T22:00:00")
    assert start_of_month(utc("2030-04-30T21:59:59"), paris) == utc("2030-03-31T22:00:00")
