# SPDX-License-Identifier: Apache-2.0
"""The walk over the dates of rules agrees with another expander, and no rule makes it long."""

from __future__ import annotations

import datetime as datetime_module
import os
import random
from datetime import date, datetime, timedelta
from types import SimpleNamespace

import dateutil.rrule
import pytest
from dateutil.rrule import rrulestr

from blazar.model.series.recurrence import MOST_DAYS, Recurrence
from blazar.model.series.rule import Frequency, Rule, Walk, Weekday
from blazar.model.series.rule_text import WEEKDAYS, parse_rule, rule_text

RULES = int(os.environ.get("BLAZAR_CASES", "1000"))
HOUR = timedelta(hours=1)
START = datetime(2027, 12, 20, 8)


@pytest.fixture
def other(monkeypatch):
    """Return the other expander, which would look for what never comes up to the year 9999."""
    names = {name: getattr(datetime_module, name) for name in dir(datetime_module)}
    monkeypatch.setattr(dateutil.rrule, "datetime", SimpleNamespace(**{**names, "MAXYEAR": 2040}))

    def expanded(text: str, start: datetime, last: date) -> list[datetime]:
        found = []
        for each in rrulestr(text, dtstart=start):
            if each.date() > last:
                break
            found.append(each)
        return found

    return expanded


def ours(text: str, start: datetime, first: date, last: date) -> list[datetime]:
    return list(Recurrence(start, "UTC", parse_rule(text), HOUR).rule_starts(first, last))


def a_rule(rng: random.Random) -> str:
    """Return a random rule; the numbers are chosen such that most of them have occurrences."""
    frequency = rng.choice(list(Frequency))
    long = frequency in (Frequency.MONTHLY, Frequency.YEARLY)
    parts = [f"FREQ={frequency}"]
    if rng.random() < 0.6:
        parts.append(f"INTERVAL={rng.choice((1, 2, 2, 2, 3, 3, 4, 5, 7, 13, 53))}")
    days = []
    if rng.random() < 0.55:
        chosen = rng.sample(WEEKDAYS, rng.randint(1, 4))
        # With some of each the other expander takes what is both, and the RFC what is either.
        if long and rng.random() < 0.5:
            chosen = [f"{rng.choice((-5, -4, -3, -2, -1, 1, 2, 3, 4, 5))}{day}" for day in chosen]
        days.append("BYDAY=" + ",".join(chosen))
    if frequency is not Frequency.WEEKLY and rng.random() < 0.35:
        most = rng.choice((3, 12, 28, 31))
        some = {rng.choice((1, 1, -1)) * rng.randint(1, most) for _ in range(rng.randint(2, 12))}
        days.append("BYMONTHDAY=" + ",".join(map(str, some)))
    if rng.random() < 0.3:
        days.append("BYMONTH=" + ",".join(map(str, rng.sample(range(1, 13), rng.randint(1, 6)))))
    if long and days and rng.random() < 0.4:
        days.append("BYSETPOS=" + ",".join(map(str, rng.sample((1, 2, 3, 5, 31, -1, -2, -4), rng.randint(2, 4)))))
    parts += days
    if rng.random() < 0.4:
        parts.append(f"WKST={rng.choice(WEEKDAYS)}")
    if (end := rng.random()) < 0.3:
        parts.append(f"COUNT={rng.choice((1, 2, 7, 30, 365, 1000))}")
    elif end < 0.6:
        parts.append(f"UNTIL={START + timedelta(days=rng.randint(0, 1000)):%Y%m%dT%H%M%S}")
    rng.shuffle(parts)
    return ";".join(parts)


@pytest.mark.slow
def test_random_rules_have_the_occurrences_that_another_expander_finds(other):
    rng = random.Random(18)
    empty = 0
    for _ in range(RULES):
        text = a_rule(rng)
        start = START + timedelta(days=rng.randint(0, 800))
        last = start.date() + timedelta(days=MOST_DAYS)
        found = ours(text, start, start.date(), last)
        assert found == other(text, start, last), (text, start)
        empty += not found
    assert empty < RULES / 5


@pytest.mark.slow
def test_a_later_part_of_a_rule_is_what_the_whole_has_there():
    rng = random.Random(4)
    for _ in range(300):
        text = a_rule(rng)
        first = START.date() + timedelta(days=rng.randint(0, 700))
        last = first + timedelta(days=rng.randint(0, 300))
        whole = ours(text, START, START.date(), START.date() + timedelta(days=MOST_DAYS))
        part = [each for each in whole if first <= each.date() <= last]
        assert ours(text, START, first, last) == part, (text, first, last)


def test_a_rule_is_written_as_it_is_read():
    rng = random.Random(5)
    for _ in range(300):
        rule = parse_rule(a_rule(rng))
        assert parse_rule(rule_text(rule)) == rule


@pytest.mark.parametrize(
    ("text", "start", "dates"),
    [
        # What a month or a year does not have is left out, and nothing moves for it.
        ("FREQ=MONTHLY;COUNT=4", "2030-01-31", ["2030-01-31", "2030-03-31", "2030-05-31", "2030-07-31"]),
        ("FREQ=MONTHLY;BYMONTHDAY=-1;COUNT=3", "2032-01-31", ["2032-01-31", "2032-02-29", "2032-03-31"]),
        ("FREQ=MONTHLY;BYMONTHDAY=31,30,29,28;BYSETPOS=-1;COUNT=2", "2030-02-28", ["2030-02-28", "2030-03-31"]),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", "2028-02-29", ["2028-02-29", "2032-02-29", "2036-02-29"]),
        ("FREQ=YEARLY", "2028-02-29", ["2028-02-29", "2032-02-29", "2036-02-29"]),
        # 2026 has 53 weeks; every other week goes on across the end of the year, whatever the numbers of weeks are.
        (
            "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR;COUNT=5",
            "2026-12-14",
            ["2026-12-14", "2026-12-18", "2026-12-28", "2027-01-01", "2027-01-11"],
        ),
        # Where weeks begin decides which of them are counted (the example of the RFC).
        (
            "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO",
            "1997-08-05",
            ["1997-08-05", "1997-08-10", "1997-08-19", "1997-08-24"],
        ),
        (
            "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU",
            "1997-08-05",
            ["1997-08-05", "1997-08-17", "1997-08-19", "1997-08-31"],
        ),
        # The last working day; the first Monday of a year and of a month; every Friday and the second Tuesday.
        ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;COUNT=2", "2030-03-29", ["2030-03-29", "2030-04-30"]),
        ("FREQ=YEARLY;BYDAY=1MO;COUNT=2", "2030-01-07", ["2030-01-07", "2031-01-06"]),
        ("FREQ=YEARLY;BYDAY=-1MO;BYMONTH=5;COUNT=2", "2030-05-27", ["2030-05-27", "2031-05-26"]),
        ("FREQ=MONTHLY;BYDAY=FR,2TU;COUNT=4", "2030-03-01", ["2030-03-01", "2030-03-08", "2030-03-12", "2030-03-15"]),
    ],
)
def test_dates_of_rules(text, start, dates):
    begin = datetime.fromisoformat(start)
    found = ours(text, begin, begin.date(), date.fromisoformat(dates[-1]))
    assert [each.date().isoformat() for each in found] == dates


HOSTILE = [
    Rule(Frequency.DAILY, months=(2,), month_days=(30,)),
    Rule(Frequency.DAILY, interval=366, months=(2,), month_days=(30,), until=datetime(8999, 1, 1)),
    Rule(Frequency.MONTHLY, weekdays=(Weekday(0, 6),), count=1000),
    Rule(Frequency.WEEKLY, weekdays=(Weekday(0),), months=(2,), month_days=(31,)),
    Rule(Frequency.YEARLY, months=(2,), month_days=(31,), positions=(1,)),
    Rule(Frequency.MONTHLY, month_days=tuple(range(1, 32)), positions=(31, -31), months=(2,)),
    Rule(Frequency.DAILY, count=10**9),
    Rule(Frequency.YEARLY, interval=366, count=10**9),
    Rule(Frequency.YEARLY, weekdays=tuple(Weekday(d) for d in range(7)), positions=tuple(range(1, 32))),
]


@pytest.mark.parametrize("rule", HOSTILE, ids=range(len(HOSTILE)))
def test_no_rule_looks_at_more_days_than_there_are(rule):
    walk = Walk(rule, START.date())
    for _ in walk.dates(START.date(), START.date() + timedelta(days=MOST_DAYS)):
        pass
    # The periods at both ends are looked at as wholes where positions are counted.
    assert walk.steps <= MOST_DAYS + 1 + 2 * 366


@pytest.mark.parametrize("rule", HOSTILE, ids=range(len(HOSTILE)))
def test_a_date_far_away_costs_no_more_than_its_period(rule):
    walk = Walk(rule, START.date())
    far = date(8990, 6, 1)
    for _ in range(1000):
        list(walk.dates(far, far))
    assert walk.steps <= max(1000, 366)
