# SPDX-License-Identifier: Apache-2.0
"""Times as people write them, in their zones, also when clocks are changed."""

from __future__ import annotations

import itertools
import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from blazarclient import times
from blazarclient.times import BadTime, Duration, read_duration, read_time, zone

BERLIN = ZoneInfo("Europe/Berlin")
NOON = datetime(2030, 4, 3, 12, 0, tzinfo=BERLIN)
"""A Wednesday."""

ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",  # half an hour
    "America/Sao_Paulo",
    "Asia/Kathmandu",
    "Africa/Casablanca",
    "Pacific/Apia",
    "UTC",
)


def reads(text, **more):
    return read_time(text, now=more.pop("now", NOON), **more)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3d", Duration(days=3)),
        ("2w", Duration(days=14)),
        ("3d12h", Duration(days=3, seconds=12 * 3600)),
        ("1h30m", Duration(seconds=5400)),
        ("90m", Duration(seconds=5400)),
        ("90 minutes", Duration(seconds=5400)),
        ("2 days 3 hours", Duration(days=2, seconds=3 * 3600)),
        ("1 day", Duration(days=1)),
        (" 45s ", Duration(seconds=45)),
        ("1H", Duration(seconds=3600)),
        ("P3D", Duration(days=3)),
        ("P1W", Duration(days=7)),
        ("PT72H", Duration(seconds=72 * 3600)),
        ("P1DT1H30M", Duration(days=1, seconds=5400)),
    ],
)
def test_a_length_of_time(text, expected):
    assert read_duration(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "3", "d", "3x", "1.5h", "-3d", "+3d", "3d 3d", "3d,2h", "P", "PT", "P1M", "P1Y", "h3", "3 d x", "three days"],
)
def test_what_is_no_length_of_time_is_told_with_an_example(text):
    with pytest.raises(BadTime, match="is no length of time; write it in whole units, as 3d, 12h, 90m, "):
        read_duration(text)


@pytest.mark.parametrize("text", ["0d", "0h0m", "PT0S"])
def test_nothing_is_no_length_of_time(text):
    with pytest.raises(BadTime, match="is no time at all"):
        read_duration(text)


@pytest.mark.parametrize("text", ["+99999999d", "+999999999999h", "+" + "9" * 5000 + "d", "+999999999999999999999999d"])
def test_what_goes_beyond_the_calendar_is_told(text):
    with pytest.raises(BadTime, match="too long: there is no such year"):
        reads(text)


def test_a_duration_is_written_as_it_is_read():
    units = itertools.product((0, 1, 40), (0, 59, 3600, 90061))
    for days, seconds in units:
        if days or seconds:
            assert read_duration(Duration(days, seconds).iso()) == Duration(days, seconds)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", "2030-04-03T12:00:00+02:00"),
        ("2030-12-01 09:00", "2030-12-01T09:00:00+01:00"),
        ("2030-12-01 9:00", "2030-12-01T09:00:00+01:00"),
        ("2030-12-01T09:00:30", "2030-12-01T09:00:30+01:00"),
        ("2030-12-01", "2030-12-01T00:00:00+01:00"),
        ("2030-12-01T09:00:00Z", "2030-12-01T09:00:00+00:00"),
        ("2030-12-01 09:00 +05:30", "2030-12-01T09:00:00+05:30"),
        ("2030-12-01T09:00:00.000-0800", "2030-12-01T09:00:00-08:00"),
        ("today 18:00", "2030-04-03T18:00:00+02:00"),
        ("today 9:00", "2030-04-03T09:00:00+02:00"),
        ("tomorrow", "2030-04-04T00:00:00+02:00"),
        ("tomorrow 9:00", "2030-04-04T09:00:00+02:00"),
        ("Tomorrow at 9:00", "2030-04-04T09:00:00+02:00"),
        ("friday 9:00", "2030-04-05T09:00:00+02:00"),
        ("next fri 9:00", "2030-04-05T09:00:00+02:00"),
        ("wednesday 13:00", "2030-04-03T13:00:00+02:00"),
        ("wednesday 11:00", "2030-04-10T11:00:00+02:00"),
        ("13:00", "2030-04-03T13:00:00+02:00"),
        ("12:00", "2030-04-03T12:00:00+02:00"),
        ("11:59", "2030-04-04T11:59:00+02:00"),
        ("9:30 pm", "2030-04-03T21:30:00+02:00"),
        ("12:15 am", "2030-04-04T00:15:00+02:00"),
        ("12:15pm", "2030-04-03T12:15:00+02:00"),
        ("+3d", "2030-04-06T12:00:00+02:00"),
        ("+2h30m", "2030-04-03T14:30:00+02:00"),
        ("  +1w ", "2030-04-10T12:00:00+02:00"),
    ],
)
def test_a_time_in_the_zone_of_its_reader(text, expected):
    assert reads(text).isoformat() == expected


def test_plus_counts_from_the_start_and_minus_from_the_end():
    start = datetime(2030, 6, 1, 9, 0, tzinfo=BERLIN)
    assert reads("+3d", start=start).isoformat() == "2030-06-04T09:00:00+02:00"
    assert reads("-2h", end=start).isoformat() == "2030-06-01T07:00:00+02:00"
    with pytest.raises(BadTime, match="is before now"):
        reads("-2h")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "9",
        "25:00",
        "9:60",
        "13:00 pm",
        "0:30 am",
        "2030-13-01",
        "2030-02-30 09:00",
        "2030-12-01 24:00",
        "2030-12-01 9",
        "2030-12-01 09:00 +25:00",
        "2030-12-01 09:00 +01:75",
        "friday morning",
        "next",
        "yesterday",
        "01/12/2030",
        "0000-01-01",
    ],
)
def test_what_is_no_time_is_told(text):
    with pytest.raises(BadTime, match="is no time"):
        reads(text)


# Clocks in Berlin go from 2 to 3 on 2030-03-31, and from 3 to 2 on 2030-10-27.
BEFORE_SPRING = datetime(2030, 3, 30, 2, 30, tzinfo=BERLIN)
BEFORE_AUTUMN = datetime(2030, 10, 26, 12, 0, tzinfo=BERLIN)


def test_a_day_over_a_change_of_clocks_is_the_same_time_of_day_and_24_hours_are_not():
    assert reads("+1d", now=BEFORE_AUTUMN).isoformat() == "2030-10-27T12:00:00+01:00"
    assert reads("+24h", now=BEFORE_AUTUMN).isoformat() == "2030-10-27T11:00:00+01:00"


def test_a_time_that_the_clocks_leave_out_is_moved_on_by_the_gap():
    assert reads("2030-03-31 02:30", now=NOON).isoformat() == "2030-03-31T03:30:00+02:00"
    assert reads("+1d", now=BEFORE_SPRING).isoformat() == "2030-03-31T03:30:00+02:00"


def test_a_time_that_comes_twice_is_the_first():
    assert reads("2030-10-27 02:30").isoformat() == "2030-10-27T02:30:00+02:00"


def test_in_the_repeated_hour_hours_go_on_and_the_clock_means_what_is_still_to_come():
    now = datetime(2030, 10, 27, 2, 15, tzinfo=BERLIN, fold=1)
    assert reads("+1h", now=now).isoformat() == "2030-10-27T03:15:00+01:00"
    assert reads("2:30", now=now).isoformat() == "2030-10-27T02:30:00+01:00"
    assert reads("2:10", now=now).isoformat() == "2030-10-28T02:10:00+01:00"


@pytest.mark.slow
@pytest.mark.parametrize("name", ZONES)
def test_hours_pass_and_days_keep_the_clock_through_every_half_hour_of_a_year(name):
    local = zone(name)
    instant = datetime(2030, 1, 1, tzinfo=UTC)
    while instant < datetime(2031, 1, 1, tzinfo=UTC):
        now = instant.astimezone(local)
        later = Duration(seconds=5400).after(now)
        assert later.astimezone(UTC) - instant == timedelta(minutes=90)
        assert Duration(seconds=5400).before(later).astimezone(UTC) == instant
        week = Duration(days=7).after(now)
        clock = (now.replace(tzinfo=None, fold=0) + timedelta(days=7)).replace(tzinfo=local)
        left_out = clock.astimezone(UTC).astimezone(local).replace(tzinfo=None) != clock.replace(tzinfo=None)
        assert left_out or week.replace(tzinfo=None) == clock.replace(tzinfo=None)
        assert week.astimezone(UTC) == clock.astimezone(UTC)
        instant += timedelta(minutes=30)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ZONES)
def test_what_is_read_of_a_clock_is_never_over(name):
    local = zone(name)
    for minutes in range(0, 366 * 24 * 60, 435):
        now = (datetime(2030, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)).astimezone(local)
        for text in ("2:30", "12:00", "monday 2:30"):
            assert read_time(text, now=now).astimezone(UTC) >= now.astimezone(UTC)


def test_a_zone_by_name():
    assert zone("Europe/Berlin") == BERLIN
    assert zone("UTC") is not None
    for unknown in ("Europe/Nowhere", "../etc/passwd", "/etc/localtime", "CET-1CEST,M3.5.0,M10.5.0/3", "Ü"):
        with pytest.raises(BadTime, match="There is no time zone"):
            zone(unknown)


@pytest.fixture
def clocks(monkeypatch):
    """Set the clocks of this process."""

    def to(rule):
        monkeypatch.setenv("TZ", rule)
        time.tzset()

    yield to
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("rule", ["America/New_York", ":America/New_York"])
def test_the_zone_of_the_environment_has_a_name(clocks, rule):
    clocks(rule)
    assert zone() == ZoneInfo("America/New_York")


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["CET-1CEST,M3.5.0,M10.5.0/3", "/usr/share/zoneinfo/Europe/Berlin"])
def test_the_zone_of_a_rule_or_a_file_changes_its_clocks_as_the_named_one_does(clocks, rule):
    clocks(rule)
    local = zone()
    assert isinstance(local, times.MachineZone)
    instant = datetime(2030, 1, 1, tzinfo=UTC)
    while instant < datetime(2031, 1, 1, tzinfo=UTC):
        here, there = instant.astimezone(local), instant.astimezone(BERLIN)
        assert here.isoformat() == there.isoformat()
        assert here.fold == there.fold
        assert here.astimezone(UTC) == instant
        instant += timedelta(minutes=30)
    assert read_time("2030-03-31 02:30", now=here).isoformat() == "2030-03-31T03:30:00+02:00"
    assert here.tzname() == "CET"
