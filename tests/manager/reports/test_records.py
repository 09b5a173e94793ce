# SPDX-License-Identifier: Apache-2.0
"""Days that are kept on record, and forecasts that are made of them."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from blazar.model.base.errors import InvalidInput
from blazar.model.reports.capacity import CapacityGroup, CapacityReportQuestion
from blazar.model.reports.forecast import DISTANCES, ForecastQuestion
from blazar.model.reports.states import ResourceState
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST
from tests.statements import counted
from tests.world import NOON, PROJECT, World, a_host

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
FIRST = NOON.date()
MIDNIGHT = NOON - 12 * HOUR


def record(world: World, manager=None) -> int:
    """Record all that there is to record; return in how many rounds."""
    rounds = 0
    while (manager or world.manager).capacity_records.run_once():
        rounds += 1
    return rounds


def recorded(world: World, day: date):
    (found,) = world.store.capacity.read_days(day, day)
    return found


def forecast(world: World, **more):
    values = {"days": 8, "group_by": (CapacityGroup.KIND,), "operator": True, **more}
    return world.manager.reports.forecast(ForecastQuestion(PROJECT, **values))


def test_what_is_promised_of_days_to_come_is_recorded_once_a_day(world):
    world.lease(a_host(2), start=DAY, hours=3)
    assert record(world) == 1
    assert recorded(world, FIRST + DAY).promised_before == {1: 2 * 3 * 3600}
    assert {ahead for ahead in DISTANCES if recorded(world, FIRST + ahead * DAY).promised_before} == {*DISTANCES}
    assert recorded(world, FIRST + 28 * DAY).promised_before == {28: 0}
    world.lease(a_host(), start=DAY, hours=5)
    with counted(world.engine) as statements:
        assert record(world) == 0
    assert statements.count == 1
    assert recorded(world, FIRST + DAY).promised_before == {1: 2 * 3 * 3600}


def test_a_day_is_recorded_an_hour_after_its_end_as_the_report_has_it(world):
    world.lease(a_host(2), hours=3)
    world.run_to(MIDNIGHT + DAY + HOUR / 2)
    record(world)
    assert world.store.capacity.read_days(FIRST, FIRST) == ()
    world.run_to(MIDNIGHT + DAY + HOUR)
    record(world)
    asked = CapacityReportQuestion(PROJECT, MIDNIGHT, MIDNIGHT + DAY, operator=True)
    (row,) = world.manager.reports.capacity(asked).rows
    assert recorded(world, FIRST).seconds == row.sums.seconds
    assert row.sums.seconds[ResourceState.PROMISED] == 6 * 3600


def test_managers_record_side_by_side_and_days_after_an_outage_are_made_up(world):
    other = world.another_manager()
    world.run_to(NOON + 5 * DAY)
    assert record(world) == 5
    assert record(world, other) == 0
    # A day on which nothing was registered leaves no record, and is not looked at again.
    with counted(world.engine) as statements:
        record(world)
    assert statements.count == 1


def test_a_month_later_the_forecast_knows_what_is_booked_late(world):
    """Each Monday two hosts are booked three weeks before, and one on the day before."""
    for day in range(8 * 7):
        today = NOON + day * DAY
        world.run_to(today)
        if today.weekday() == 0:
            world.lease(a_host(2), start=21 * DAY, hours=6)
        if today.weekday() == 6:
            world.lease(a_host(), start=DAY, hours=6)
        record(world)
    world.run_to(NOON + 8 * 7 * DAY)
    record(world)
    found = {row.day.day: row.day for row in forecast(world, days=10).rows}
    monday = next(day for day in found if day.weekday() == 0 and day > world.clock.now().date())
    told = found[monday]
    assert told.promised == 2 * 6 * 3600
    assert told.weeks >= 4
    assert told.expected is not None
    assert (told.expected.lower, told.expected.median, told.expected.upper) == (3 * 6 * 3600,) * 3
    tuesday = found[monday + DAY]
    assert tuesday.expected is not None
    assert tuesday.expected.median == tuesday.promised == 0
    assert forecast(world).accuracy.mean_error == 0
    # What was refused is told beside it, and changes nothing of it.
    assert forecast(world).unmet == ()


def test_members_see_forecasts_of_what_they_may_have(world):
    host = world.store.resources.catalog(HOST).resources[0]
    world.manager.resources.change(HOST, host.external_id, ResourceChange({}, open_to=("biology",), sets_projects=True))
    assert forecast(world).rows[0].day.registered == 3 * 86400
    assert forecast(world, operator=False).rows[0].day.registered == 2 * 86400


def test_a_property_by_which_days_are_not_kept_is_named(world):
    with pytest.raises(InvalidInput, match=r"operators can name it in \[reports\] properties"):
        forecast(world, group_by=(CapacityGroup.PROPERTY,), prop="vcpus")


def test_the_number_of_statements_of_a_forecast_does_not_depend_on_days_and_leases(world):
    def count(days: int) -> int:
        forecast(world)
        with counted(world.engine) as statements:
            forecast(world, days=days)
        return statements.count

    before = count(1)
    record(world)
    for number in range(3):
        world.lease(a_host(), start=number * DAY)
    assert count(60) == before
