# SPDX-License-Identifier: Apache-2.0
"""Open time by the wall clock of a zone, compared with each minute's wall clock."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blazar.model.base.week_hours import DAY, WeekHours
from blazar.model.rules.open_time import OpenTime
from tests.cases import cases

ALL_DAYS = frozenset(range(7))
MINUTE = 60
CHANGES = {
    # The day before a change of the clocks: by an hour, by half of one, by a day that is left out, in Ramadan.
    "Europe/Berlin": (datetime(2030, 3, 30), datetime(2030, 10, 26)),
    "Australia/Lord_Howe": (datetime(2030, 4, 6), datetime(2030, 10, 5)),
    "Africa/Casablanca": (datetime(2030, 1, 4), datetime(2030, 2, 9)),
    "Pacific/Apia": (datetime(2011, 12, 28),),
    "America/Santiago": (datetime(2030, 4, 6), datetime(2030, 9, 7)),
    "UTC": (datetime(2030, 1, 1),),
}


def at(text: str, zone: str = "UTC", fold: int = 0) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp())


def hours(start: str, end: str, days: frozenset[int] = ALL_DAYS) -> WeekHours:
    first, last = (time.fromisoformat(text) if text != "24:00" else time() for text in (start, end))
    return WeekHours(days, first.hour * 3600 + first.minute * 60, last.hour * 3600 + last.minute * 60)


def is_open(of: OpenTime, instant: int) -> bool:
    """Tell whether an instant lies in open time: by the instants at which the hours of each day begin and end."""
    zone = ZoneInfo(of.zone)

    def find(local: datetime) -> tuple[int, int]:
        first, second = (int(local.replace(tzinfo=zone, fold=fold).timestamp()) for fold in (0, 1))
        # In a gap the one with fold is the earlier one: the offset before counts.
        return first, max(first, second)

    local = datetime.fromtimestamp(instant, zone)
    days = [local.date() + timedelta(days=number) for number in range(-3, 4)]
    for day in days:
        midnight = datetime.combine(day, time())
        if day in of.closed_on and find(midnight)[0] <= instant < find(midnight + timedelta(days=1))[1]:
            return False
    for day in days:
        midnight = datetime.combine(day, time())
        for one in of.hours:
            if day.weekday() in one.days:
                begins = find(midnight + timedelta(seconds=one.start))[0]
                ends = find(midnight + timedelta(seconds=one.start + one.length))[1]
                if begins <= instant < ends:
                    return True
    return False


def test_hours_are_those_of_the_wall_clock_before_and_after_a_change():
    spans = OpenTime("Europe/Berlin", (hours("08:00", "20:00"),)).list_spans(
        at("2030-03-30T00:00"), at("2030-03-31T23:00")
    )
    assert spans == [
        (at("2030-03-30T07:00"), at("2030-03-30T19:00")),
        (at("2030-03-31T06:00"), at("2030-03-31T18:00")),
    ]


def test_the_hour_that_comes_twice_belongs_to_what_begins_and_ends_in_it():
    night = OpenTime("Europe/Berlin", (hours("02:30", "02:45"),))
    assert night.list_spans(at("2030-10-26T23:00"), at("2030-10-27T12:00")) == [
        (at("2030-10-27T00:30"), at("2030-10-27T01:45")),
    ]


def test_a_time_that_is_skipped_counts_with_the_offset_before():
    night = OpenTime("Europe/Berlin", (hours("02:30", "05:00"), hours("00:00", "02:15")))
    assert night.list_spans(at("2030-03-30T23:30"), at("2030-03-31T12:00")) == [
        (at("2030-03-30T23:00"), at("2030-03-31T01:15")),
        (at("2030-03-31T01:30"), at("2030-03-31T03:00")),
    ]


def test_hours_that_touch_are_one_span_over_midnight_and_new_year():
    always = OpenTime("UTC", (hours("00:00", "24:00"),))
    assert len(always.list_spans(at("2029-12-30T00:00"), at("2031-02-01T00:00"))) == 1
    night = OpenTime("UTC", (hours("22:00", "06:00"),))
    assert night.list_spans(at("2030-12-31T23:00"), at("2031-01-01T01:00")) == [
        (at("2030-12-31T22:00"), at("2031-01-01T06:00")),
    ]


def test_a_closed_day_is_taken_out_of_the_nights_before_and_after():
    night = OpenTime("UTC", (hours("22:00", "06:00"),), frozenset({date(2030, 12, 25)}))
    assert night.list_spans(at("2030-12-24T12:00"), at("2030-12-26T12:00")) == [
        (at("2030-12-24T22:00"), at("2030-12-25T00:00")),
        (at("2030-12-26T00:00"), at("2030-12-26T06:00")),
    ]


def test_a_day_without_hours_has_none():
    monday = OpenTime("UTC", (hours("08:00", "20:00", frozenset({0})),))
    assert monday.list_spans(at("2030-04-02T00:00"), at("2030-04-07T23:59")) == []


@pytest.mark.parametrize("zone", CHANGES)
@settings(max_examples=cases(1000), deadline=None)
@given(data=st.data())
def test_open_time_is_that_of_each_minute(zone, data):
    moments = st.integers(0, DAY // MINUTE - 1).map(lambda minute: minute * MINUTE)
    some = st.builds(WeekHours, st.frozensets(st.integers(0, 6), min_size=1), moments, moments)
    begin = data.draw(st.sampled_from(CHANGES[zone])).replace(tzinfo=UTC)
    closed = st.frozensets(st.integers(-1, 4).map(lambda days: (begin + timedelta(days=days)).date()), max_size=2)
    opened = OpenTime(zone, tuple(data.draw(st.lists(some, min_size=1, max_size=3))), data.draw(closed))
    start = int(begin.timestamp())
    end = start + 3 * DAY
    spans = opened.list_spans(start, end)
    assert spans == sorted(spans)
    assert all(before[1] < after[0] for before, after in zip(spans, spans[1:], strict=False))
    for instant in range(start, end, 60 * MINUTE):
        assert any(first <= instant < last for first, last in spans) is is_open(opened, instant), (instant, spans)
    for first, last in spans:
        if start < first < last < end:
            assert (is_open(opened, first), is_open(opened, first - 1)) == (True, False)
            assert (is_open(opened, last - 1), is_open(opened, last)) == (True, False)
