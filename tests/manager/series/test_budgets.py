# SPDX-License-Identifier: Apache-2.0
"""Series that a budget refuses: how much of them it would grant is said, and granted."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

import pytest

from blazar.enforcement.budget import PeriodCalendar, ResourceHoursFilter
from blazar.enforcement.spend import SpendFilter
from blazar.manager.common.settings import Settings
from blazar.model.base.errors import UsageDenied
from blazar.model.billing.charges import NANO
from blazar.model.series.changes import SeriesChange
from blazar.model.series.checks import Fit
from blazar.model.series.details import SeriesDetails, SeriesStatus
from blazar.model.series.rule_text import parse_rule
from tests.manager.billing.ledger import publish
from tests.world import World, a_series

HOUR = timedelta(hours=1)
BUDGETS = {
    "money": lambda most: SpendFilter(most * NANO),
    "hours": lambda most: ResourceHoursFilter({"host": most}, PeriodCalendar()),
}
"""Of so many hours of a host, or of what they cost, in each month."""


@pytest.fixture(params=list(BUDGETS))
def world(engine, request) -> World:
    """A project has seven hours of a host in each month."""
    world = World(engine, filters=[BUDGETS[request.param](7)])
    publish(world)
    return world


def refused(act, *args, **more) -> UsageDenied:
    with pytest.raises(UsageDenied) as denied:
        act(*args, **more)
    return denied.value


def states(world: World, found: SeriesDetails) -> Counter[str]:
    return Counter(str(each.state) for each in world.manager.series.one(found.series.id).occurrences)


def across_months(rule: str = "FREQ=DAILY;COUNT=5", **more):
    """Ask for four hours on two days of April and three of May: of each month one fits."""
    return a_series(rule=rule, start=datetime(2030, 4, 29, 8), **more)


def test_a_new_series_is_offered_its_first_occurrences_and_as_many_as_fit(world):
    create = world.manager.series.create
    error = refused(create, across_months())
    assert error.data is not None
    assert error.data["fits"] == {"occurrences": 1, "until": "2030-04-29T08:00:00", "as_many": 2}
    assert error.message.endswith(
        "This is the occurrence of 2030-04-30 08:00; what would be granted is the first 1 of 5, until 2030-04-29 "
        "08:00, or 2 with fit as_many."
    )
    assert "fits" in (refused(create, across_months("FREQ=DAILY;COUNT=2")).data or {})
    world.run()
    assert world.store.leases.of_project(None) == ()
    made = create(across_months("FREQ=DAILY;UNTIL=20300429T080000"))
    assert states(world, made) == {"booked": 1}
    world.manager.series.delete(made.series.id)
    world.run()
    assert states(world, create(across_months(fit=Fit.AS_MANY))) == {"booked": 2, "unfit": 3}


def test_a_new_series_of_which_nothing_fits_is_offered_nothing(world):
    error = refused(world.manager.series.create, a_series(length=8 * HOUR))
    assert (error.data or {})["fits"] == {}
    assert error.message.endswith("This is the occurrence of 2030-04-02 08:00; none of the series would be granted.")


@pytest.mark.parametrize("limit", list(BUDGETS))
def test_a_long_series_that_is_refused_in_the_background_says_how_much_of_it_would_be_granted(sqlite, limit):
    """It takes 116 hours of April, and of May 120 up to the last day but one."""
    world = World(sqlite, filters=[BUDGETS[limit](120)])
    publish(world)
    made = world.manager.series.create(a_series(rule="FREQ=DAILY;COUNT=120"))
    while world.manager.series_work.run_once():
        world.run()
    refused = world.manager.series.one(made.series.id).series
    assert refused.status is SeriesStatus.FAILED
    assert (refused.reason or "").endswith(
        "This is the occurrence of 2030-05-31 08:00; what would be granted is the first 59 of 120, until 2030-05-30 "
        "08:00."
    )
    assert world.store.leases.of_project(None) == ()
    granted = world.manager.series.create(a_series(rule="FREQ=DAILY;COUNT=59"))
    while world.manager.series_work.run_once():
        world.run()
    assert states(world, granted) == {"booked": 59}


@pytest.mark.parametrize("dry_run", [True, False], ids=["dry", "real"])
def test_a_changed_series_is_offered_its_first_occurrences(world, dry_run):
    made = world.manager.series.create(a_series(length=HOUR))
    changing = {"length": 2 * HOUR, "dry_run": dry_run}
    error = refused(world.manager.series.change, made.series.id, SeriesChange(**changing))
    fits = (error.data or {})["fits"]
    assert (fits["occurrences"], fits["until"]) == (3, "2030-04-04T08:00:00")
    assert "This is the occurrence of 2030-04-05 08:00; what would be granted is the first 3 of 5" in error.message
    assert states(world, made) == {"booked": 5}
    until = {"rule": parse_rule("FREQ=DAILY;UNTIL=20300405T080000")}
    refused(world.manager.series.change, made.series.id, SeriesChange(**changing, **until))
    until = {"rule": parse_rule("FREQ=DAILY;UNTIL=20300404T080000")}
    changed = world.manager.series.change(made.series.id, SeriesChange(**changing, **until))
    assert len(changed.occurrences) == 3
    if not dry_run:
        assert states(world, changed) == {"booked": 3}


def test_a_changed_series_that_gets_as_many_as_fit_gets_what_was_said(sqlite):
    world = World(sqlite, filters=[BUDGETS["hours"](7)])
    made = world.manager.series.create(a_series(length=HOUR))
    error = refused(world.manager.series.change, made.series.id, SeriesChange(length=2 * HOUR))
    assert (error.data or {})["fits"]["as_many"] == 3
    changed = world.manager.series.change(made.series.id, SeriesChange(length=2 * HOUR, fit=Fit.AS_MANY))
    assert states(world, changed) == {"booked": 3, "unfit": 2}


def test_where_refusals_are_not_explained_nothing_is_offered(sqlite):
    world = World(sqlite, filters=[BUDGETS["hours"](7)], settings=Settings(explain_refusals=False))
    error = refused(world.manager.series.create, a_series())
    assert "occurrences" not in (error.data or {})["fits"]
    made = world.manager.series.create(a_series(length=HOUR))
    error = refused(world.manager.series.change, made.series.id, SeriesChange(length=2 * HOUR))
    assert "occurrences" not in (error.data or {})["fits"]
