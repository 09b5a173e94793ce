# SPDX-License-Identifier: Apache-2.0
"""Refused requests and days of capacity, as the database keeps them."""

from __future__ import annotations

import threading
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from blazar.model.base.amounts import Amounts
from blazar.model.reports.capacity import CapacityCell, CapacityDay
from blazar.model.reports.demand import DemandKey, DemandSums, RefusedDemand
from blazar.model.reports.states import ResourceState
from blazar.store.reports.demand import MOST_REQUIREMENTS, REMEMBERED
from blazar.store.store import Store
from tests.statements import counted

HOUR = timedelta(hours=1)
NOON = datetime(2030, 4, 1, 12, tzinfo=UTC)
TODAY = date(2030, 4, 1)
UTC_ZONE = ZoneInfo("UTC")


@pytest.fixture
def store(engine) -> Store:
    return Store(engine)


def refused(**more) -> RefusedDemand:
    values = {
        "hour": NOON,
        "code": "not_enough_resources",
        "project_id": "physics",
        "resource_type": "virtual:instance",
        "units": 2,
        "seconds": 3600,
        "amounts": Amounts.of({"VCPU": 4}),
    }
    return RefusedDemand(**{**values, **more})


def add(store: Store, *counts: tuple[RefusedDemand, int], now: datetime = NOON, zone: ZoneInfo = UTC_ZONE) -> None:
    store.demand.add(counts, zone, now=now)


def sums_of(store: Store) -> dict[DemandKey, DemandSums]:
    return {day.key: day.sums for day in store.demand.read_days(TODAY, TODAY)}


INSTANCES = DemandKey("physics", "virtual:instance", "not_enough_resources")


def test_the_same_within_an_hour_is_distinct_once_whichever_manager_writes_it(store):
    add(store, (refused(), 3))
    add(store, (refused(), 2))
    assert sums_of(store) == {INSTANCES: DemandSums(5, 1, 7200, {"VCPU": 28800})}


def test_the_longest_of_an_hour_is_what_was_asked_for(store):
    for seconds in (3600, 1800, 5400):
        add(store, (refused(seconds=seconds), 1))
    assert sums_of(store) == {INSTANCES: DemandSums(3, 1, 2 * 5400, {"VCPU": 8 * 5400})}


def test_another_hour_is_another_request(store):
    add(store, (refused(), 1), (refused(hour=NOON + HOUR), 1))
    assert sums_of(store)[INSTANCES].refused_distinct == 2


def test_what_is_only_counted_is_not_told_apart(store):
    add(store, (RefusedDemand(NOON, "limit_exceeded", "physics", "network"), 7))
    assert sums_of(store) == {DemandKey("physics", "network", "limit_exceeded"): DemandSums(refused=7)}


def test_what_a_project_requires_is_told_apart_up_to_a_number(store):
    for number in range(MOST_REQUIREMENTS + 20):
        add(store, (refused(requirement=f'["==", "$rack", "{number}"]'), 1))
    found = sums_of(store)
    assert len(found) == MOST_REQUIREMENTS + 1
    assert sum(sums.refused for sums in found.values()) == MOST_REQUIREMENTS + 20
    assert sum(sums.refused_distinct for sums in found.values()) == MOST_REQUIREMENTS + 20


def test_a_day_is_the_sites(store):
    paris = ZoneInfo("Europe/Paris")
    add(store, (refused(hour=NOON.replace(hour=22)), 1), zone=paris)
    assert [day.day for day in store.demand.read_days(TODAY - timedelta(days=1), TODAY + timedelta(days=1))] == [
        date(2030, 4, 2)
    ]


def test_what_is_old_is_forgotten_as_nothing_like_it_comes_again(store, engine):
    add(store, (refused(), 1))
    with engine.connect() as connection:
        count = lambda: connection.exec_driver_sql("SELECT count(*) FROM demand_seen").scalar()  # noqa: E731
        assert count() == 1
    add(store, (refused(hour=NOON + 4 * HOUR), 1), now=NOON + HOUR + REMEMBERED)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM demand_seen").scalar() == 1


def test_the_number_of_statements_does_not_depend_on_what_was_refused(store, engine):
    def count(numbers: range) -> int:
        with counted(engine) as statements:
            add(store, *((refused(units=number + 1, project_id=f"p{number}"), 1) for number in numbers))
        return statements.count

    assert count(range(2)) == count(range(2, 60))
    assert count(range(2)) == count(range(60))


def test_managers_that_write_at_the_same_time_lose_nothing(store, engine):
    wait = threading.Barrier(4)
    failures: list[BaseException] = []

    def write(other: Store, number: int) -> None:
        try:
            wait.wait()
            for round_ in range(10):
                demands = [(refused(units=units + 1), 1) for units in range(5)]
                add(other, *demands, (refused(hour=NOON + HOUR, units=100 * number + round_ + 1), 1))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(Store(engine), number)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    sums = sums_of(store)[INSTANCES]
    assert (sums.refused, sums.refused_distinct) == (4 * 10 * 6, 5 + 4 * 10)


PROMISED = ResourceState.PROMISED
HOSTS, MINE = CapacityCell("host", "", None, (("gpu", "a100"),)), CapacityCell("host", "north", ("biology", "physics"))


def test_days_are_kept_as_they_were_recorded_first(store):
    coming = CapacityDay(TODAY, HOSTS, promised_before={28: 5})
    store.capacity.record([coming, CapacityDay(TODAY, MINE, promised_before={28: 7})])
    store.capacity.record([CapacityDay(TODAY, HOSTS, promised_before={28: 99, 14: 6})])
    store.capacity.record([CapacityDay(TODAY, HOSTS, {PROMISED: 8}), CapacityDay(TODAY, MINE, {PROMISED: 9})])
    store.capacity.record([CapacityDay(TODAY, HOSTS, {PROMISED: 99})])
    found = {day.cell: day for day in store.capacity.read_days(TODAY, TODAY)}
    assert found == {
        HOSTS: CapacityDay(TODAY, HOSTS, {PROMISED: 8}, {28: 5, 14: 6}),
        MINE: CapacityDay(TODAY, MINE, {PROMISED: 9}, {28: 7}),
    }
    assert store.capacity.read_days(TODAY + timedelta(days=1), TODAY + timedelta(days=9)) == ()
