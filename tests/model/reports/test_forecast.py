# SPDX-License-Identifier: Apache-2.0
"""What is expected of days to come: what is promised, and what was still booked before such days."""

from __future__ import annotations

import math
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blazar.model.reports.capacity import CapacityCell, CapacityDay
from blazar.model.reports.forecast import (
    DISTANCES,
    WEEKS,
    Accuracy,
    Expected,
    PastDay,
    forecast_day,
    judge_forecasts,
    list_past_days,
)
from blazar.model.reports.states import ResourceState

TODAY = date(2030, 4, 30)
DAY = timedelta(days=1)
ALL = 1000


def a_day(back: int, promised: int, **before: int) -> PastDay:
    """A day so many days ago; ``d7=3``: seven days before it 3 seconds of it were promised."""
    return PastDay(TODAY - back * DAY, ALL, promised, {int(name[1:]): value for name, value in before.items()})


def known(*days: PastDay) -> dict[date, PastDay]:
    return {day.day: day for day in days}


def test_what_was_booked_late_on_such_weekdays_is_added_to_what_is_promised():
    past = known(*(a_day(7 * week, 500, d7=500 - late) for week, late in enumerate((10, 20, 30, 40, 50), 1)))
    told = forecast_day(TODAY + 7 * DAY, today=TODAY, registered=ALL, promised=200, past=past)
    assert told.expected == Expected(220, 230, 240)
    assert told.weeks == 5


def test_other_weekdays_say_nothing():
    past = known(*(a_day(7 * week + 1, 500, d7=400) for week in range(1, 9)))
    told = forecast_day(TODAY + 7 * DAY, today=TODAY, registered=ALL, promised=200, past=past)
    assert told.expected is None
    assert told.weeks == 0


def test_with_three_weeks_nothing_is_expected_and_with_nine_the_last_eight_count():
    few = known(*(a_day(7 * week, 500, d1=400) for week in (1, 2, 3)))
    assert forecast_day(TODAY, today=TODAY, registered=ALL, promised=0, past=few).expected is None
    many = known(*(a_day(7 * week, 500, d1=400 if week <= WEEKS else 0) for week in range(1, 10)))
    told = forecast_day(TODAY, today=TODAY, registered=ALL, promised=0, past=many)
    assert told.expected == Expected(100, 100, 100)
    assert told.weeks == WEEKS


def test_more_than_there_is_and_less_than_nothing_is_not_expected():
    grows = known(*(a_day(7 * week, ALL, d1=0) for week in range(1, 5)))
    assert forecast_day(TODAY, today=TODAY, registered=ALL, promised=700, past=grows).expected == Expected(
        ALL, ALL, ALL
    )
    shrinks = known(*(a_day(7 * week, 0, d1=ALL) for week in range(1, 5)))
    assert forecast_day(TODAY, today=TODAY, registered=ALL, promised=700, past=shrinks).expected == Expected(0, 0, 0)


@pytest.mark.parametrize(
    ("ahead", "late"), [(1, 10), (2, 20), (3, 30), (5, 40), (7, 50), (14, 80), (21, 90), (28, 100), (300, 100)]
)
def test_between_the_distances_on_record_as_much_is_booked_each_day(ahead, late):
    day = a_day(1, 500, d1=490, d3=470, d7=450, d14=420, d28=400)
    assert day.find_late_bookings(ahead) == late


def test_what_is_not_on_record_is_not_made_up():
    day = a_day(1, 500, d1=490, d14=420)
    assert [day.find_late_bookings(ahead) for ahead in (1, 2, 7, 14, 15, 28)] == [10, None, None, 80, None, None]


HOSTS, SEGMENTS = CapacityCell("host"), CapacityCell("network")


def test_a_group_of_days_is_the_sum_of_its_cells_and_what_was_not_there_had_nothing_promised():
    promised, free = ResourceState.PROMISED, ResourceState.FREE
    days = [
        CapacityDay(TODAY - DAY, HOSTS, {promised: 5, free: 15}, {1: 3, 7: 1}),
        CapacityDay(TODAY - DAY, SEGMENTS, {promised: 7, free: 3}, {1: 4}),
        CapacityDay(TODAY - 2 * DAY, HOSTS, None, {1: 9}),
        CapacityDay(TODAY - 2 * DAY, SEGMENTS, {promised: 1}),
        CapacityDay(TODAY + DAY, HOSTS, None, {1: 2}),
    ]
    assert list_past_days(days) == known(
        PastDay(TODAY - DAY, 30, 12, {1: 7, 7: 1}), PastDay(TODAY - 2 * DAY, 1, 1, {1: 9})
    )
    assert list_past_days(days, lambda cell: cell == SEGMENTS) == known(
        PastDay(TODAY - DAY, 10, 7, {1: 4, 7: 0}), PastDay(TODAY - 2 * DAY, 1, 1, {1: 0})
    )


def test_forecasts_are_judged_by_what_could_be_known_then():
    past = known(*(a_day(back, 500, d7=400) for back in range(1, 120)))
    assert judge_forecasts(past, today=TODAY) == Accuracy(28, 0.0)
    # A day that was unlike all others was not foreseen, and does not help to foresee itself.
    unlike = TODAY - 3 * DAY
    past[unlike] = PastDay(unlike, ALL, 1000, {7: 400})
    assert judge_forecasts(past, today=TODAY) == Accuracy(28, pytest.approx(0.5 / 28))


def test_without_history_nobody_knows_how_far_off_forecasts_are():
    assert judge_forecasts({}, today=TODAY) == Accuracy(0, None)
    young = known(*(a_day(back, 500, d7=400) for back in range(1, 25)))
    assert judge_forecasts(young, today=TODAY) == Accuracy(0, None)


@given(
    promised=st.integers(0, ALL),
    lates=st.lists(st.integers(-200, 200), min_size=4, max_size=WEEKS),
    ahead=st.sampled_from(DISTANCES),
)
def test_a_quarter_of_such_weeks_lies_beyond_each_quartile(promised, lates, ahead):
    first = TODAY + ahead * DAY
    while first >= TODAY:
        first -= 7 * DAY
    past = {}
    for week, late in enumerate(lates):
        day = first - 7 * week * DAY
        past[day] = PastDay(day, ALL, 500, dict.fromkeys(DISTANCES, 500 - late))
    told = forecast_day(TODAY + ahead * DAY, today=TODAY, registered=ALL, promised=promised, past=past)
    assert told.expected is not None
    assert told.weeks == len(lates)
    outcomes = [max(0, min(promised + late, ALL)) for late in lates]
    few = math.ceil(len(outcomes) / 4)
    assert sum(one < told.expected.lower for one in outcomes) <= few
    assert sum(one > told.expected.upper for one in outcomes) <= few
    assert told.expected.lower <= told.expected.median <= told.expected.upper
