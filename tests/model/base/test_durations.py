# SPDX-License-Identifier: Apache-2.0
"""Durations of the calendar and of the clock, across changes of clocks and ends of months."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blazar.model.base.dates import (
    LONGEST,
    date,
    duration,
    in_body,
    in_query,
    moment_or_duration,
    zone,
)
from blazar.model.base.errors import InvalidInput
from blazar.model.base.moments import NOW, Duration

PARIS = "Europe/Paris"
FIELD = in_body("end_date")


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "zone", "start", "end"),
    [
        ("P1M", "UTC", "2030-01-31T08:00", "2030-02-28T08:00"),
        ("P1M", "UTC", "2032-01-31T08:00", "2032-02-29T08:00"),
        ("P1Y", "UTC", "2032-02-29T08:00", "2033-02-28T08:00"),
        ("P11M", "UTC", "2030-01-31T08:00", "2030-12-31T08:00"),
        ("P12M", "UTC", "2030-12-31T08:00", "2031-12-31T08:00"),
        ("P1M1D", "UTC", "2030-01-31T08:00", "2030-03-01T08:00"),
        ("P1D", PARIS, "2026-03-28T12:00", "2026-03-29T11:00"),
        ("P1D", PARIS, "2026-10-24T12:00", "2026-10-25T13:00"),
        ("1d", PARIS, "2026-10-24T12:00", "2026-10-25T13:00"),
        ("24h", PARIS, "2026-10-24T12:00", "2026-10-25T12:00"),
        ("PT24H", PARIS, "2026-03-28T12:00", "2026-03-29T12:00"),
        ("P1W", PARIS, "2026-10-24T12:00", "2026-10-31T13:00"),
        # In the gap of 29 March the offset before it counts: 2:30 is 3:30 of the new one.
        ("P1D", PARIS, "2026-03-28T01:30", "2026-03-29T01:30"),
        # Of the two 2:30 of 25 October the first.
        ("P1D", PARIS, "2026-10-24T00:30", "2026-10-25T00:30"),
        ("P1DT1H", PARIS, "2026-10-24T00:30", "2026-10-25T01:30"),
        ("PT90M", "UTC", "2030-01-31T08:00", "2030-01-31T09:30"),
        ("3d12h", "UTC", "2030-01-31T08:00", "2030-02-03T20:00"),
    ],
)
def test_a_duration_ends_where_the_calendar_and_the_clocks_of_its_zone_say(text, zone, start, end):
    assert duration(text, FIELD, zone=zone).after(utc(start)) == utc(end)


def test_a_duration_with_a_sign_goes_both_ways():
    assert moment_or_duration("+P1M", FIELD) == Duration(months=1)
    back = moment_or_duration("-PT2H", FIELD, backward=True)
    assert isinstance(back, Duration)
    assert back.after(utc("2030-01-01T01:00")) == utc("2029-12-31T23:00")
    assert Duration(months=1, backward=True).after(utc("2030-03-31T08:00")) == utc("2030-02-28T08:00")
    assert moment_or_duration("now", FIELD) is NOW


@pytest.mark.parametrize(
    "text",
    ["", "P", "PT", "P1", "1", "0h", "P0D", "PT0S", "12h3d", "P1D2W", "P1.5D", "1.5h", "-P1D", "+P1D", "P6Y", "1827d"]
    + ["9" * 60 + "d", "p3d", "3D", "P1M ", "١d"],
)
def test_a_malformed_or_endless_duration_is_refused_with_its_pointer(text):
    with pytest.raises(InvalidInput) as refused:
        duration(text, FIELD)
    assert (refused.value.code, refused.value.pointer) == ("invalid_date", "/end_date")


@pytest.mark.parametrize("text", ["P5Y", "P60M", "1826d", "260w", "43824h"])
def test_five_years_are_the_longest(text):
    assert duration(text, FIELD).longest <= LONGEST


@pytest.mark.parametrize("text", ["P3D", "3d", "-P3D", "PT1H"])
def test_a_duration_needs_a_sign_where_a_date_may_stand(text):
    with pytest.raises(InvalidInput, match="with its sign"):
        moment_or_duration(text, FIELD)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-11-26T16:00Z", "2026-11-26T16:00"),
        ("2026-11-26T16:00:05", "2026-11-26T15:00:05"),
        ("2026-11-26 16:00", "2026-11-26T15:00"),
        ("2026-11-26T16:00:00.000Z", "2026-11-26T16:00"),
        ("2026-11-26T16:00+05:30", "2026-11-26T10:30"),
        ("2026-11-26T16:00-00:00", "2026-11-26T16:00"),
        ("2026-03-29T02:30", "2026-03-29T01:30"),
        ("2026-10-25T02:30", "2026-10-25T00:30"),
        ("1970-01-01T00:00Z", "1970-01-01T00:00"),
        ("8999-12-31T23:59:59Z", "8999-12-31T23:59:59"),
        ("2026-11-26t16:00z", "2026-11-26T16:00"),
        ("2026-11-26T16:00:00.5Z", "2026-11-26T16:00"),
        ("2026-11-26T16:00:59.999999999+00:00", "2026-11-26T16:00:59"),
        ("2026-11-26 16:00:00.1", "2026-11-26T15:00"),
        (f"2026-11-26T16:00:00.{'9' * 43}Z", "2026-11-26T16:00"),
        ("2026-11-26T16:00+0530", "2026-11-26T10:30"),
        ("2026-11-26T16:00:00.25-01", "2026-11-26T17:00"),
    ],
)
def test_a_date_is_read_in_its_offset_or_in_the_zone_of_the_request(text, instant):
    assert date(text, FIELD, zone=PARIS) == utc(instant)


@pytest.mark.parametrize(
    "text",
    ["", "tomorrow", "2026-11-26", "2026-11-26T24:00Z", "2026-11-26T16:00:60Z", "2026-11-26T16:00:00.Z"]
    + ["2026-W48-4T16:00", "1969-12-31T23:59Z", "9000-01-01T00:00Z", "1970-01-01T00:00+01:00", "2026-02-30T00:00Z"]
    + ["2026-11-26T16:00+24:00", "2026-11-26T16:00Z[UTC]", "٢٠٢٦-11-26T16:00Z", "20261126T1600Z"]
    + [
        "2026-11-26T16:00.5Z",
        "2026-11-26T16:00:00,5Z",
        "2026-11-26T16:00+1",
        "2026-11-26T16:00+01:",
        "2026-11-26T16:00+010",
    ]
    + [
        "2026-11-26T16:00:00.٥Z",
        f"2026-11-26T16:00:00.{'9' * 44}Z",
        "2026-11-26T16:00Zz",
        "2026-11-26T16:00+25",
        "-P1D",
    ],
)
def test_any_other_date_is_refused(text):
    with pytest.raises(InvalidInput) as refused:
        date(text, FIELD)
    assert refused.value.code == "invalid_date"


@pytest.mark.parametrize(
    "text", ["2026-11-26T16:00 01:00", "2026-11-26T16:00:00.5 0100", "2026-11-26T16:00 01", " P3D"]
)
def test_a_plus_that_a_query_has_lost_is_told(text):
    with pytest.raises(InvalidInput, match="%2B") as refused:
        moment_or_duration(text, in_query("from"))
    assert refused.value.parameter == "from"


@pytest.mark.parametrize("text", ["", "Mars/Olympus", "../UTC", "\0", "europe/paris"])
def test_an_unknown_zone_is_refused(text):
    with pytest.raises(InvalidInput, match="time zone"):
        zone(text, in_body("time_zone"))


@given(
    st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(2090, 1, 1), timezones=st.just(UTC)),
    st.sampled_from(["UTC", PARIS, "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]),
    st.integers(0, 60),
    st.integers(0, 400),
    st.integers(0, 10**6),
)
def test_a_later_start_never_ends_earlier_by_more_than_the_clocks_change(start, zone, months, days, seconds):
    found = Duration(months=months, days=days, seconds=seconds, zone=zone)
    later = found.after(start + timedelta(hours=3))
    assert later - found.after(start) >= timedelta(0) - timedelta(days=3 if months else 0)
    assert found.after(start).utcoffset() == timedelta(0)
