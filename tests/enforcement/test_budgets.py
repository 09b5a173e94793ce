# SPDX-License-Identifier: Apache-2.0
"""What a budget says is left is what the filter grants: as much fits, and a second more does not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from blazar.enforcement import Enforcement, find_budget_window, list_budgets
from blazar.enforcement.budget import PeriodCalendar, ResourceHoursFilter, Rolling
from blazar.enforcement.external import ExternalServiceFilter
from blazar.model.base.clock import END_OF_TIME
from blazar.model.base.errors import UsageDenied
from blazar.model.base.window import Window
from blazar.model.billing.budgets import BudgetFacts, BudgetSource, BudgetUnit, ProjectBudget
from blazar.model.use.resource_hours import UsageRecord
from tests.cases import cases
from tests.enforcement.builders import DAY, HOUR, NOON, a_view, asking, hours

MONTH = ResourceHoursFilter({"host": 100, "vcpu": 5}, PeriodCalendar())
SECOND = timedelta(seconds=1)


def a_record(window: Window, hosts: int = 1) -> UsageRecord:
    return UsageRecord("other", "host", window, hosts)


def facts(*usage: UsageRecord, at: datetime = NOON) -> BudgetFacts:
    return BudgetFacts("p-1", at, NOON, usage)


def budget_of_hosts(rule: ResourceHoursFilter, *usage: UsageRecord, at: datetime = NOON) -> ProjectBudget:
    (found,) = (one for one in rule.list_budgets(facts(*usage, at=at)) if one.measure == "host")
    return found


def in_hours(budget: ProjectBudget) -> tuple[float | None, ...]:
    return tuple(
        None if number is None else number / 3600 for number in (budget.limit, budget.used, budget.held, budget.left)
    )


def test_what_was_until_now_is_used_and_what_is_booked_for_the_rest_is_held():
    past = a_record(Window(NOON - 24 * HOUR, NOON - 2 * HOUR), 2)
    running = a_record(hours(-1, 4))
    across = a_record(Window(datetime(2030, 4, 30, 20, tzinfo=UTC), datetime(2030, 5, 2, tzinfo=UTC)), 3)
    budget = budget_of_hosts(MONTH, past, running, across)
    # Of the first only the ten hours of April, of the last only the four of April.
    assert in_hours(budget) == (100, 2 * 10 + 1, 4 + 12, 63)
    assert budget.window == Window(datetime(2030, 4, 1, tzinfo=UTC), datetime(2030, 5, 1, tzinfo=UTC))
    assert (budget.source, budget.limit_name) == (BudgetSource.CONFIGURATION, "max_resource_hours")
    may = budget_of_hosts(MONTH, past, running, across, at=datetime(2030, 5, 20, tzinfo=UTC))
    assert in_hours(may) == (100, 0, 24 * 3, 28)


def test_each_measure_with_a_limit_has_a_budget_also_if_nothing_of_it_is_used():
    assert [(one.measure, one.left) for one in MONTH.list_budgets(facts())] == [("host", 360_000), ("vcpu", 18_000)]
    unlimited = ResourceHoursFilter({"host": -1}, PeriodCalendar())
    assert unlimited.list_budgets(facts()) == ()


def test_of_a_rolling_period_the_fullest_one_counts():
    week = ResourceHoursFilter({"host": 100}, Rolling(7))
    days_ago = a_record(Window(NOON - 6 * DAY, NOON - 5 * DAY))
    later = a_record(Window(NOON + 2 * DAY, NOON + 4 * DAY))
    budget = budget_of_hosts(week, days_ago, later)
    assert in_hours(budget) == (100, 0, 48, 52)
    assert budget.window is not None
    assert budget.window.contains(NOON)
    assert budget.window.duration == 7 * DAY


def test_more_than_the_limit_leaves_nothing_and_not_less():
    assert in_hours(budget_of_hosts(MONTH, a_record(hours(1, 201)))) == (100, 0, 200, 0)


@pytest.mark.parametrize("period", [PeriodCalendar(), PeriodCalendar(months=False), Rolling(30)])
def test_the_end_of_time_has_a_budget_too(period):
    rule = ResourceHoursFilter({"host": 100}, period)
    assert budget_of_hosts(rule, at=END_OF_TIME).left == 360_000


def test_of_an_external_service_it_is_said_that_it_keeps_a_budget():
    (budget,) = ExternalServiceFilter({}).list_budgets(facts())
    assert budget == ProjectBudget(project_id="p-1", source=BudgetSource.EXTERNAL_SERVICE)
    assert budget.left is None


def test_a_project_that_is_exempt_has_no_budget():
    assert list_budgets(Enforcement([MONTH], exempt=["p-1"]), facts()) == ()
    assert len(list_budgets(Enforcement([MONTH]), facts())) == 2
    assert find_budget_window(Enforcement([]), NOON) is None


@pytest.mark.parametrize(
    ("unit", "amount", "down", "up"),
    [
        (BudgetUnit.HOURS, 3600, "1", "1"),
        (BudgetUnit.HOURS, 3601, "1", "1.01"),
        (BudgetUnit.HOURS, 5399, "1.49", "1.5"),
        (BudgetUnit.HOURS, 0, "0", "0"),
        (BudgetUnit.MONEY, 12_500_000_000, "12.5", "12.5"),
        (BudgetUnit.MONEY, 1, "0.000000001", "0.000000001"),
        (BudgetUnit.MONEY, 100 * 10**9, "100", "100"),
    ],
)
def test_what_is_left_is_rounded_down_and_what_is_taken_up(unit, amount, down, up):
    budget = ProjectBudget(project_id="p", source=BudgetSource.CONFIGURATION, unit=unit)
    assert (budget.spell(amount), budget.spell(amount, up=True)) == (down, up)


windows = st.tuples(st.integers(-2000, 2000), st.integers(1, 500), st.integers(1, 3)).map(
    lambda one: a_record(Window(NOON + one[0] * HOUR, NOON + (one[0] + one[1]) * HOUR), one[2])
)


@settings(max_examples=cases(200))
@given(st.lists(windows, max_size=6), st.sampled_from([PeriodCalendar(), PeriodCalendar(months=False), Rolling(9)]))
def test_just_what_is_left_can_be_booked(usage, period):
    rule = ResourceHoursFilter({"host": 300}, period)
    budget = budget_of_hosts(rule, *usage)
    assert budget.left is not None
    assert budget.window is not None
    start = max(NOON, budget.window.start)
    rest = int((budget.window.end - start).total_seconds())
    # As many hosts as use up what is left before the period ends.
    hosts = budget.left // rest + 1
    # Just before the end of a period that would be more than there are.
    assume(hosts <= 1000)
    length = budget.left // hosts

    def ask(seconds: int) -> None:
        view = a_view(Window(start, start + seconds * SECOND), hosts=hosts)
        rule.check(replace(asking(view), usage=tuple(usage)))

    if isinstance(period, PeriodCalendar) and length:
        ask(length)
    with pytest.raises(UsageDenied):
        ask(length + 1)
