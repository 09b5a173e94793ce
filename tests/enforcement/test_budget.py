# SPDX-License-Identifier: Apache-2.0
"""Budgets of resource-hours: what a period has, what counts in it, and what a denial says."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blazar.enforcement import AllocatedResource
from blazar.enforcement.budget import PeriodCalendar, ResourceHoursFilter, Rolling, parse_period
from blazar.model.base.amounts import Amounts
from blazar.model.base.clock import END_OF_TIME, zulu
from blazar.model.base.errors import InvalidInput, UsageDenied
from blazar.model.base.window import Window
from blazar.model.use.resource_hours import UsageCurve, UsageRecord
from tests.cases import cases
from tests.enforcement.builders import DAY, HOUR, NOON, a_host, a_view, asking, hours

MONTH = ResourceHoursFilter({"host": 100}, PeriodCalendar())


def held(window: Window, hosts: int = 1, lease: str = "other") -> UsageRecord:
    return UsageRecord(lease, "host", window, hosts)


def asked(view, *others: UsageRecord, before=None, mine: UsageRecord | None = None, now: datetime = NOON):
    own = mine or (held(before.window, before.hosts, "l-1") if before else None)
    return replace(asking(view, before=before, now=now), usage=others, own_usage=(own,) if own else ())


def denial(rule, question) -> str:
    with pytest.raises(UsageDenied) as denied:
        rule.check(question)
    assert denied.value.status == 400
    return denied.value.message


def utc(*date: int) -> datetime:
    return datetime(*date, tzinfo=UTC)


def test_just_the_budget_may_be_taken_and_a_minute_more_may_not():
    MONTH.check(asked(a_view(hours(1, 51), hosts=2)))
    assert denial(MONTH, asked(a_view(hours(1, 51 + 1 / 60), hosts=2))) == (
        "reservations, start_date, end_date: the lease would take 100.04 host-hours from 2030-04-01 00:00 to "
        "2030-05-01 00:00, and of the 100 that the project has in a month (max_resource_hours) 100 are left for it; "
        "ask for at most 2 days 2 hours, for at most 1 of what it would have, or for another time"
    )


def test_what_is_over_what_runs_and_what_is_to_come_counts_as_far_as_it_is_in_the_period():
    past = held(Window(NOON - 24 * HOUR, NOON - 2 * HOUR), 2)
    to_come = held(Window(utc(2030, 4, 30, 20), utc(2030, 5, 2)), 3)
    # Of the first only the ten hours of April, of the second the last four.
    MONTH.check(asked(a_view(hours(1, 1 + 100 - 20 - 12)), past, to_come))
    message = denial(MONTH, asked(a_view(hours(1, 2 + 100 - 20 - 12)), past, to_come))
    assert "68 are left for it; ask for at most 2 days 20 hours, for less," in message


def test_a_lease_over_two_periods_is_held_against_each():
    across = Window(utc(2030, 4, 29), utc(2030, 5, 3))
    MONTH.check(asked(a_view(across, hosts=2)))
    full = held(Window(utc(2030, 5, 20), utc(2030, 5, 21)), 2)
    message = denial(MONTH, asked(a_view(across, hosts=2), full))
    assert "take 96 host-hours from 2030-05-01 00:00 to 2030-06-01 00:00" in message
    assert "52 are left" in message


def test_when_nothing_is_left_another_time_is_all_that_is_said():
    over = held(hours(-10, 200))
    assert denial(MONTH, asked(a_view(), over)).endswith("0 are left for it; ask for another time")


def test_a_change_does_not_count_the_lease_twice():
    before = a_view(hours(1, 91))
    MONTH.check(asked(a_view(hours(1, 101)), before=before))
    denial(MONTH, asked(a_view(hours(1, 102)), before=before))


def test_a_change_that_takes_no_more_of_a_period_is_never_denied():
    before, over = a_view(hours(1, 91)), held(hours(-10, 500))
    MONTH.check(asked(a_view(hours(1, 90)), over, before=before))
    MONTH.check(asked(a_view(hours(50, 140)), over, before=before))
    denial(MONTH, asked(a_view(hours(1, 92)), over, before=before))
    # It asks for more in May, where there is enough.
    late = Window(utc(2030, 4, 30, 12), utc(2030, 5, 1, 12))
    MONTH.check(asked(a_view(Window(late.start, late.end + DAY)), over, before=a_view(late)))


def test_hosts_that_a_running_lease_gets_count_from_now():
    before, after = a_view(hours(0, 90)), a_view(hours(0, 90), hosts=2)
    MONTH.check(asked(after, before=before, now=NOON + 80 * HOUR))
    assert "take 101 host-hours" in denial(MONTH, asked(after, before=before, now=NOON + 79 * HOUR))


def test_a_running_lease_with_hosts_that_came_later_counts_them_from_then():
    before, after = a_view(hours(0, 60), hosts=2), a_view(hours(0, 70), hosts=2)
    question = replace(
        asked(after, before=before, now=NOON + 55 * HOUR),
        own_usage=(held(hours(0, 60), 1, "l-1"), held(hours(40, 60), 1, "l-1")),
    )
    MONTH.check(question)
    assert "take 102 host-hours" in denial(MONTH, replace(question, wanted=a_view(hours(0, 71), hosts=2)))


def test_instances_count_by_their_number_and_their_vcpus():
    allocated = AllocatedResource("r-1", a_host(), 3, whole=False, per_instance=Amounts.of({"VCPU": 4}))
    view = replace(a_view(hours(1, 11)), allocated_resources=(allocated,))
    ResourceHoursFilter({"host": 0, "vcpu": 120, "instance": 30}, PeriodCalendar()).check(asked(view))
    assert "120 vcpu-hours" in denial(ResourceHoursFilter({"vcpu": 119}, PeriodCalendar()), asked(view))
    assert "30 instance-hours" in denial(ResourceHoursFilter({"instance": 29}, PeriodCalendar()), asked(view))


def test_what_has_no_limit_is_not_counted():
    ResourceHoursFilter({"vcpu": 1, "host": -1}, PeriodCalendar()).check(asked(a_view(hours(1, 5000), hosts=9)))


def test_a_week_begins_on_monday_and_ends_with_sunday():
    week = ResourceHoursFilter({"host": 10}, parse_period("week"))
    sunday = Window(utc(2030, 4, 7, 14), utc(2030, 4, 8, 10))
    week.check(asked(a_view(sunday)))
    message = denial(week, asked(a_view(Window(sunday.start, sunday.end + HOUR))))
    assert "from 2030-04-08 00:00 to 2030-04-15 00:00, and of the 10 that the project has in a week" in message


def test_rolling_days_may_begin_at_any_time():
    days = ResourceHoursFilter({"host": 10}, parse_period("2"))
    used = held(hours(0, 8))
    days.check(asked(a_view(hours(20, 22)), used))
    message = denial(days, asked(a_view(hours(20, 23)), used))
    assert "take 3 host-hours" in message
    assert "in any 2 days (max_resource_hours) 2 are left for it" in message
    # The first of it is out of sight when the last begins.
    days.check(asked(a_view(hours(50, 58)), used))


@pytest.mark.parametrize("text", ["", "year", "0", "-1", "1.5", "3661", "9" * 5000, "٣"])
def test_what_is_no_period_is_refused(text):
    with pytest.raises(InvalidInput, match="give month, week, or a number of days from 1 to 3660"):
        parse_period(text)


@pytest.mark.parametrize(("text", "words"), [("Month", "a month"), (" week", "a week"), ("30", "any 30 days")])
def test_periods_have_names(text, words):
    assert parse_period(text).words == words


@pytest.mark.parametrize("period", [PeriodCalendar(), PeriodCalendar(months=False), Rolling(30)])
def test_even_the_longest_lease_is_looked_at_in_no_time(period):
    ages = Window(NOON, END_OF_TIME)
    load = UsageCurve([(ages, 1)])
    assert len(list(period.growing_periods(load, load, ages))) < 10
    reach = period.whole_periods(ages)
    assert reach.covers(ages)


instants = st.integers(0, 400).map(lambda n: utc(2030, 1, 1) + n * timedelta(hours=7))
windows = st.tuples(instants, instants).filter(lambda p: p[0] != p[1]).map(lambda p: Window(min(p), max(p)))
some = st.lists(st.tuples(windows, st.integers(1, 3)), max_size=4)


@settings(max_examples=cases(200))
@given(some, windows, st.integers(1, 3), st.one_of(st.none(), st.tuples(windows, st.integers(1, 3))), st.booleans())
def test_a_calendar_finds_the_fullest_period_by_any_count(others, window, amount, before, months):
    period = PeriodCalendar(months)
    total = UsageCurve([*others, (window, amount)])
    growth = UsageCurve([(window, amount), *(((before[0], -before[1]),) if before else ())])

    def sum_of(uses, start, end):
        pairs = ((max(w.start, start), min(w.end, end), n) for w, n in uses)
        return sum(int((b - a).total_seconds()) * n for a, b, n in pairs if b > a)

    best, day = None, utc(2029, 11, 1)
    while day < utc(2031, 1, 1):
        end = day + DAY
        while not (end.day == 1 if months else end.weekday() == 0):
            end += DAY
        if months or day.weekday() == 0:
            mine, had = sum_of([(window, amount)], day, end), sum_of([before] if before else [], day, end)
            if mine > had:
                best = max(best or 0, mine + sum_of(others, day, end))
        day = end
    found = [
        total.sum_between(int(p.start.timestamp()), int(p.end.timestamp()))
        for p in period.growing_periods(total, growth, window)
    ]
    assert max(found, default=None) == best
    assert all(period.whole_periods(window).covers(p) for p in period.growing_periods(total, growth, window))


def granted(rule, question) -> bool:
    try:
        rule.check(question)
    except UsageDenied:
        return False
    return True


def near(question, window: Window, count: int):
    """Return a question about another window, or fewer hosts."""
    return replace(question, wanted=a_view(window, hosts=count), last_start=None)


@settings(max_examples=cases(2000), deadline=None)
@given(
    st.lists(st.tuples(st.integers(-200, 1500), st.integers(1, 400), st.integers(1, 3)), max_size=5),
    st.tuples(st.integers(0, 700), st.integers(2, 60), st.integers(1, 4)),
    st.integers(10, 150),
    st.sampled_from(["month", "week", "3"]),
)
def test_what_a_budget_would_grant_it_grants_and_a_minute_or_one_more_it_does_not(drawn, asked_for, limit, period):
    rule = ResourceHoursFilter({"host": limit}, parse_period(period))
    others = [held(hours(begin, begin + length), count, f"l{n}") for n, (begin, length, count) in enumerate(drawn)]
    begin, length, count = asked_for
    window = hours(begin, begin + length)
    question = replace(asked(a_view(window, hosts=count), *others), last_start=NOON + 2500 * HOUR)
    if granted(rule, question):
        return
    with pytest.raises(UsageDenied) as denied:
        rule.check(question)
    fits = denied.value.data["fits"]
    shortest, minute = timedelta(seconds=fits.get("duration_seconds", 0)), timedelta(minutes=1)
    if shortest:
        assert granted(rule, near(question, Window(window.start, window.start + shortest), count))
    assert not granted(rule, near(question, Window(window.start, window.start + shortest + minute), count))
    fewer = fits.get("amount", 0)
    assert fewer == max((n for n in range(1, count) if granted(rule, near(question, window, n))), default=0)
    if "start_date" in fits:
        later = Window(*(datetime.fromisoformat(fits[key]) for key in ("start_date", "end_date")))
        assert later.duration == window.duration
        assert granted(rule, near(question, later, count))
        before = Window(later.start - timedelta(seconds=1), later.end - timedelta(seconds=1))
        assert not granted(rule, near(question, before, count))
    else:
        # The oracle tries each seventh hour.
        tried = (hours(begin + ahead, begin + ahead + length) for ahead in range(0, 2400 - begin, 7))
        assert not any(granted(rule, near(question, one, count)) for one in tried)


def test_a_lease_that_fits_into_no_period_is_offered_the_edge_of_two():
    """A month has room for 100 of its 150 host-hours: with 100 hours before the edge on it fits."""
    with pytest.raises(UsageDenied) as denied:
        MONTH.check(replace(asked(a_view(hours(0, 150))), last_start=NOON + 2500 * HOUR))
    begin = utc(2030, 5, 1) - 100 * HOUR
    assert denied.value.data["fits"]["start_date"] == zulu(begin)
    assert f"for a start at {zulu(begin)}" in str(denied.value)


def test_a_lease_over_two_periods_is_offered_no_length_that_the_emptier_one_denies():
    """What is left of the fuller period is not left of the other one."""
    april, may = Window(utc(2030, 4, 1), utc(2030, 4, 3, 4)), Window(utc(2030, 5, 20), utc(2030, 5, 23))
    across = Window(utc(2030, 4, 30, 23), utc(2030, 5, 2, 23))
    with pytest.raises(UsageDenied) as denied:
        MONTH.check(asked(a_view(across), held(april, 2), held(may)))
    assert denied.value.data["used"] == 72
    assert denied.value.data["fits"] == {}


def test_a_start_is_only_offered_as_far_as_it_is_known_what_the_project_has():
    question = asked(a_view(hours(1, 41), hosts=2), held(hours(-30, 30)))
    assert "start_date" not in numbers_of(question)
    assert numbers_of(replace(question, last_start=utc(2030, 4, 20))).get("start_date") is None
    known = numbers_of(replace(question, last_start=utc(2030, 6, 1)))
    # 29 hours of it are in April, which has 58 left for two hosts.
    assert (known["start_date"], known["end_date"]) == ("2030-04-29T19:00:00Z", "2030-05-01T11:00:00Z")


def numbers_of(question):
    with pytest.raises(UsageDenied) as denied:
        MONTH.check(question)
    return denied.value.data["fits"]
