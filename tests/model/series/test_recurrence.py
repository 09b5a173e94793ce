# SPDX-License-Identifier: Apache-2.0
"""Occurrences are where the clocks of their zone say, and which series are refused as a whole."""

from __future__ import annotations

import time as clock
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blazar.model.base.errors import InvalidInput
from blazar.model.base.window import Window
from blazar.model.series.checks import Fit, SeriesLimits, check_series
from blazar.model.series.recurrence import MOST_DAYS, LocalEnd, Recurrence
from blazar.model.series.rule_text import WEEKDAYS, parse_rule

PARIS, NEW_YORK = "Europe/Paris", "America/New_York"
LORD_HOWE, TROLL, APIA = "Australia/Lord_Howe", "Antarctica/Troll", "Pacific/Apia"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def utc(text: str) -> datetime:
    return at(text).replace(tzinfo=UTC)


def a_recurrence(start: str, rule: str, *, zone: str = PARIS, length=HOUR, without=(), also=()) -> Recurrence:
    excluded, added = (frozenset(map(at, dates)) for dates in (without, also))
    return Recurrence(at(start), zone, parse_rule(rule), length, excluded, added)


def checked(recurrence: Recurrence, fit: Fit = Fit.AS_MANY, now: datetime = NOW, **limits):
    return check_series(recurrence, fit, SeriesLimits(**limits), now)


def starts(recurrence: Recurrence) -> list[str]:
    return [f"{each.start:%m-%dT%H:%M}" for each in checked(recurrence)]


@pytest.mark.parametrize(
    ("zone", "start", "expected"),
    [
        # An hour is skipped, and another one comes twice: the wall clock decides, and the instants move.
        (PARIS, "2026-03-28T08:00", ["03-28T07:00", "03-29T06:00", "03-30T06:00"]),
        (PARIS, "2026-10-24T08:00", ["10-24T06:00", "10-25T07:00", "10-26T07:00"]),
        (NEW_YORK, "2026-03-07T08:00", ["03-07T13:00", "03-08T12:00", "03-09T12:00"]),
        (NEW_YORK, "2026-10-31T08:00", ["10-31T12:00", "11-01T13:00", "11-02T13:00"]),
        # In the gap with the offset before it, of two equal times the first.
        (PARIS, "2026-03-28T02:30", ["03-28T01:30", "03-29T01:30", "03-30T00:30"]),
        (PARIS, "2026-10-24T02:30", ["10-24T00:30", "10-25T00:30", "10-26T01:30"]),
        # Half an hour, and two hours.
        (LORD_HOWE, "2026-10-03T02:15", ["10-02T15:45", "10-03T15:45", "10-04T15:15"]),
        (LORD_HOWE, "2026-04-04T01:45", ["04-03T14:45", "04-04T14:45", "04-05T15:15"]),
        (TROLL, "2026-03-28T01:30", ["03-28T01:30", "03-29T01:30", "03-29T23:30"]),
        (TROLL, "2026-10-24T01:30", ["10-23T23:30", "10-24T23:30", "10-26T01:30"]),
    ],
)
def test_occurrences_start_by_the_wall_clock_across_changes(zone, start, expected):
    assert starts(a_recurrence(start, "FREQ=DAILY;COUNT=3", zone=zone)) == expected


@pytest.mark.parametrize(
    ("zone", "start", "moved"),
    [
        (PARIS, "2026-03-29T01:59:59", False),
        (PARIS, "2026-03-29T02:00", True),
        (PARIS, "2026-03-29T03:00", False),
        (PARIS, "2026-10-25T02:30", False),
        (LORD_HOWE, "2026-10-04T02:15", True),
        (LORD_HOWE, "2026-10-04T02:30", False),
    ],
)
def test_an_occurrence_tells_that_its_start_is_one_that_the_clocks_skip(zone, start, moved):
    (found,) = checked(a_recurrence(start, "FREQ=DAILY;COUNT=1", zone=zone))
    assert (found.is_moved, found.recurrence_id) == (moved, at(start))


def test_a_duration_is_elapsed_and_a_local_end_is_by_the_clock():
    night = a_recurrence("2026-03-28T23:00", "FREQ=DAILY;COUNT=1", length=timedelta(hours=12))
    assert checked(night)[0].window == Window(utc("2026-03-28T22:00"), utc("2026-03-29T10:00"))
    clocks = a_recurrence("2026-03-28T23:00", "FREQ=DAILY;COUNT=1", length=LocalEnd(time(11), 1))
    assert checked(clocks)[0].window == Window(utc("2026-03-28T22:00"), utc("2026-03-29T09:00"))
    back = a_recurrence("2026-10-25T02:30", "FREQ=DAILY;COUNT=1", length=LocalEnd(time(3)))
    assert checked(back)[0].window == Window(utc("2026-10-25T00:30"), utc("2026-10-25T02:00"))


def test_an_occurrence_whose_time_the_clocks_skip_has_no_window():
    found = checked(a_recurrence("2026-03-28T02:30", "FREQ=DAILY;COUNT=3", length=LocalEnd(time(3))))
    assert [each.window is None for each in found] == [False, True, False]


def test_a_day_that_a_zone_has_skipped_is_an_overlap():
    # On 30 December 2011 Samoa moved to the other side of the date line.
    with pytest.raises(InvalidInput, match="^duration: the occurrence of 2011-12-30 08:00 ends"):
        checked(a_recurrence("2011-12-29T08:00", "FREQ=DAILY;COUNT=3", zone=APIA))
    without = a_recurrence("2011-12-29T08:00", "FREQ=DAILY;COUNT=3", zone=APIA, without=["2011-12-30T08:00"])
    assert starts(without) == ["12-29T18:00", "12-30T18:00"]


def test_count_counts_what_is_left_out_and_added_dates_are_beside_it():
    found = checked(
        a_recurrence("2030-04-01T08:00", "FREQ=DAILY;COUNT=3", without=["2030-04-02T08:00"], also=["2030-05-01T20:00"])
    )
    assert [each.recurrence_id for each in found] == list(
        map(at, ("2030-04-01T08:00", "2030-04-03T08:00", "2030-05-01T20:00"))
    )


@pytest.mark.parametrize(
    ("until", "last"),
    [
        ("20260330", "2026-03-30T08:00"),
        ("20260330T080000", "2026-03-30T08:00"),
        ("20260330T075959", "2026-03-29T08:00"),
        ("20260330T060000Z", "2026-03-30T08:00"),
        ("20260330T055959Z", "2026-03-29T08:00"),
    ],
)
def test_until_is_the_last_start_by_the_clock_or_as_an_instant(until, last):
    assert checked(a_recurrence("2026-03-28T08:00", f"FREQ=DAILY;UNTIL={until}"))[-1].recurrence_id == at(last)


def test_changing_one_date_leaves_all_others_as_they_were():
    whole = checked(a_recurrence("2026-01-05T02:30", "FREQ=WEEKLY;BYDAY=MO,SU;COUNT=200"))
    for gone in whole[::17]:
        less = checked(
            a_recurrence(
                "2026-01-05T02:30",
                "FREQ=WEEKLY;BYDAY=MO,SU;COUNT=200",
                without=[gone.recurrence_id.isoformat()],
            )
        )
        assert less == tuple(each for each in whole if each is not gone)


ZONES = st.sampled_from([PARIS, NEW_YORK, LORD_HOWE, TROLL, APIA, "UTC", "Asia/Kathmandu", "Africa/Casablanca"])
MINUTES = st.integers(0, 24 * 60 - 1).map(lambda m: time(m // 60, m % 60))


@given(ZONES, st.integers(0, 2000), MINUTES, st.sampled_from(["COUNT=90", "UNTIL=20310101", ""]), st.integers(0, 80))
def test_what_starts_in_a_window_is_what_the_whole_series_has_there(zone, day, at_, end, offset):
    start = datetime.combine(datetime(2024, 1, 1) + timedelta(days=day), at_)
    rule = parse_rule("FREQ=DAILY;BYDAY=" + ",".join(WEEKDAYS[:6]) + (f";{end}" if end else ""))
    first = start + timedelta(days=-start.weekday() % 7)
    recurrence = Recurrence(first, zone, rule, HOUR)
    begin = recurrence.occurrence(first).start
    whole = recurrence.occurrences(Window(begin, begin + timedelta(days=100)))
    window = Window(begin + timedelta(days=offset), begin + timedelta(days=offset + 9, seconds=1))
    assert recurrence.occurrences(window) == tuple(each for each in whole if window.contains(each.start))
    for each in whole:
        wall = each.start.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
        assert (wall != each.recurrence_id) == each.is_moved
        assert each.recurrence_id.time() == at_
        assert each.end - each.start == HOUR


@pytest.mark.parametrize(
    ("recurrence", "sentence"),
    [
        (
            a_recurrence("2030-04-02T08:00", "FREQ=WEEKLY;BYDAY=MO"),
            "start: .* with BYDAY=MO; start at 2030-04-08 08:00",
        ),
        (a_recurrence("2030-04-02T08:00", "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"), "rule: it has no occurrence within"),
        (a_recurrence("2030-04-01T08:00", "FREQ=MONTHLY;BYDAY=5MO;BYSETPOS=2"), "BYDAY=5MO and BYSETPOS=2; leave one"),
        (
            a_recurrence("2030-04-01T08:00", "FREQ=YEARLY;COUNT=9"),
            "COUNT=9: only 4 occurrences .* give at most COUNT=4",
        ),
        (
            a_recurrence("2030-04-01T08:00", "FREQ=DAILY;UNTIL=20300331"),
            "UNTIL: 2030-03-31 23:59:59 is before the start",
        ),
        (a_recurrence("2030-04-01T08:00", "FREQ=YEARLY;UNTIL=89990101"), "UNTIL: .* is more than 1096 days after"),
        (a_recurrence("2030-04-01T08:00", "FREQ=DAILY;UNTIL=20330401"), "1097 occurrences; the limit is 1000"),
        (a_recurrence("8995-04-01T08:00", "FREQ=DAILY"), "start: the year 8995 is not from 1970 to 8990"),
        (a_recurrence("2030-04-01T08:00", "FREQ=DAILY", length=timedelta(0)), "duration: it is not more than 0"),
        (a_recurrence("2030-04-01T08:00", "FREQ=DAILY", length=timedelta.max), "duration: .* at most 5 years"),
        (a_recurrence("2030-04-01T08:00", "FREQ=DAILY", length=LocalEnd(time(8))), "08:00:00 is not after the start"),
        (a_recurrence("2030-04-01T08:00", "FREQ=DAILY", length=LocalEnd(time(8), 9999)), "9999 days .* 0 to 1096"),
        (
            a_recurrence("2030-04-01T08:00", "FREQ=DAILY", length=timedelta(hours=24)),
            "ends 2031-03-30 09:00, .* wall clock",
        ),
        (a_recurrence("2030-04-01T08:00", "FREQ=DAILY", length=timedelta(hours=25)), "ends 2030-04-02 09:00"),
        (a_recurrence("2030-04-01T08:00", "FREQ=DAILY", length=LocalEnd(time(9), 1)), "until_local: .* fewer days"),
        (
            a_recurrence("2030-04-01T08:00", "FREQ=DAILY;COUNT=2", also=["2030-04-01T08:30"]),
            "rdates: the occurrence of 2030-04-01 08:30 overlaps that of 2030-04-01 08:00",
        ),
        (
            a_recurrence("2030-04-01T08:00", "FREQ=DAILY", without=["2030-04-02T09:00"]),
            "exdates: 2030-04-02 09:00 is no",
        ),
        (
            a_recurrence("2030-04-01T08:00", "FREQ=WEEKLY", without=["2050-04-01T08:00", "2050-04-02T08:00"]),
            r"exdates: 2050-04-01 08:00 \(and 1 more\) is no occurrence",
        ),
        (a_recurrence("2030-04-01T08:00", "FREQ=DAILY;COUNT=1", without=["2030-04-01T08:00"]), "no occurrence is left"),
        (a_recurrence("2030-04-01T08:00", "FREQ=DAILY", also=["2030-04-02T08:00"]), "rdates: .* already; leave it out"),
        (
            a_recurrence("2030-04-01T08:00", "FREQ=DAILY", also=["2029-04-02T08:00"]),
            "rdates: .* is not after the start",
        ),
        (a_recurrence("2030-04-01T08:00", "FREQ=DAILY", also=["9999-12-31T08:00"]), "rdates: .* 1096 days ahead"),
        (
            a_recurrence(
                "2030-04-01T08:00", "FREQ=DAILY", also=[f"2031-01-01T{n // 60:02}:{n % 60:02}" for n in range(201)]
            ),
            "rdates: 201 dates are given; the limit is 200",
        ),
    ],
)
def test_a_series_that_cannot_be_is_refused_as_a_whole(recurrence, sentence):
    with pytest.raises(InvalidInput, match=sentence) as refused:
        checked(recurrence)
    field = refused.value.message.partition(":")[0]
    assert refused.value.pointer == f"/{field}"
    assert field in ("start", "rule", "duration", "until_local", "exdates", "rdates")


def test_days_that_touch_by_the_wall_clock_do_not_overlap():
    found = checked(a_recurrence("2026-03-28T02:30", "FREQ=DAILY;COUNT=300", length=LocalEnd(time(2, 30), 1)))
    assert len(found) == 300
    assert all(one.end == other.start for one, other in zip(found, found[1:], strict=False))


def test_a_series_as_a_whole_ends_within_the_horizon():
    with pytest.raises(InvalidInput, match="needs an end; give COUNT or UNTIL"):
        checked(a_recurrence("2026-01-05T08:00", "FREQ=WEEKLY"), Fit.ALL)
    with pytest.raises(InvalidInput, match="at most 180 days ahead"):
        checked(a_recurrence("2026-01-05T08:00", "FREQ=WEEKLY;COUNT=30"), Fit.ALL)
    assert len(checked(a_recurrence("2026-01-05T08:00", "FREQ=WEEKLY;COUNT=20"), Fit.ALL)) == 20


def test_a_series_without_an_end_has_what_is_within_the_horizon_however_old_it_is():
    recurrence = a_recurrence("2026-01-05T08:00", "FREQ=WEEKLY", without=["2040-01-02T08:00"])
    assert len(checked(recurrence, horizon=timedelta(days=14))) == 2
    found = checked(recurrence, now=utc("2040-01-01T00:00"), horizon=timedelta(days=14))
    assert [each.recurrence_id for each in found] == [at("2040-01-09T08:00")]
    with pytest.raises(InvalidInput, match="26 occurrences in the next 180 days; the limit is 20"):
        checked(recurrence, max_occurrences=20)


def test_the_longest_series_are_looked_at_in_a_moment():
    dates = [f"{2030 + n}-01-01T08:00" for n in range(200)]
    hostile = [
        a_recurrence("2030-01-01T08:00", "FREQ=DAILY;COUNT=1000"),
        a_recurrence("2030-01-01T08:00", "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30;UNTIL=89990101"),
        a_recurrence("2030-01-01T08:00", "FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYSETPOS=1,2", without=dates),
    ]
    begun = clock.perf_counter()
    for recurrence in hostile:
        try:
            checked(recurrence)
        except InvalidInput:
            continue
    # Some 0.1 seconds; the number of steps is tested beside the walk.
    assert clock.perf_counter() - begun < 5


def test_an_expansion_is_bounded():
    recurrence = a_recurrence("2030-01-01T08:00", "FREQ=DAILY")
    with pytest.raises(ValueError, match="too long for an expansion"):
        recurrence.occurrences(Window(NOW, NOW + timedelta(days=MOST_DAYS + 1)))


@pytest.mark.parametrize("wrong", [utc("2030-01-01T08:00"), datetime(2030, 1, 1, microsecond=1)])
def test_local_times_are_naive_and_in_whole_seconds(wrong):
    with pytest.raises(ValueError, match="not a local time in whole seconds"):
        Recurrence(wrong, PARIS, parse_rule("FREQ=DAILY"), HOUR)
