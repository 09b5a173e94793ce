# SPDX-License-Identifier: Apache-2.0
"""Budgets of resource-hours."""

from __future__ import annotations

import pytest

from blazar.enforcement.budget import ResourceHoursFilter, parse_period
from blazar.model.base.errors import UsageDenied
from blazar.model.base.moments import NOW
from blazar.model.leases.requests import ReservationChange
from blazar.model.leases.states import LeaseStatus
from tests.manager.enforcement.recording import DAY, DOWN, HOUR, left
from tests.statements import counted
from tests.world import NOON, World, a_host, instances


def hosts_for(hours: int, period: str = "month") -> ResourceHoursFilter:
    return ResourceHoursFilter({"host": hours}, parse_period(period))


def hours_left(world: World, project: str = "physics") -> float:
    """Ask for more than there can be, at a quiet time of the month."""
    with pytest.raises(UsageDenied) as denied:
        world.lease(a_host(1), start=NOON + 12 * DAY, hours=17 * 24, project=project)
    return float(left(denied))


def test_what_was_given_back_early_counts_only_until_then(engine):
    world = World(engine, filters=[hosts_for(200)])
    lease = world.lease(a_host(2), hours=50)
    world.run()
    assert hours_left(world) == 100
    world.run_to(NOON + 10 * HOUR)
    world.manager.leases.delete(lease.id)
    world.run()
    assert world.now(lease).deleted_at is not None
    assert hours_left(world) == 180
    ended = world.lease(a_host(1), hours=5)
    world.run()
    world.clock.by(hours=2)
    world.change(ended, end=NOW)
    world.run()
    assert hours_left(world) == 178
    assert hours_left(world, project="art") == 200


def test_what_was_deleted_before_it_began_never_counted(engine):
    world = World(engine, filters=[hosts_for(200)])
    lease = world.lease(a_host(2), start=24 * HOUR, hours=50)
    assert hours_left(world) == 100
    world.resize(lease, min=1, max=1)
    assert hours_left(world) == 150
    world.manager.leases.delete(lease.id)
    assert hours_left(world) == 200


def test_hosts_that_came_later_count_from_then_and_stay_counted(engine):
    world = World(engine, filters=[hosts_for(200)])
    lease = world.lease(a_host(1), hours=50)
    world.run_to(NOON + 40 * HOUR)
    world.resize(lease, min=2, max=2)
    assert hours_left(world) == 200 - 50 - 10
    world.change(lease, end=NOON + 60 * HOUR)
    assert hours_left(world) == 200 - 60 - 20
    world.run_to(NOON + 61 * HOUR)
    assert hours_left(world) == 200 - 60 - 20


def test_a_lease_that_is_to_get_too_many_is_told_how_many_it_may_get(engine):
    world = World(engine, hosts=6, filters=[hosts_for(24)])
    lease = world.lease(a_host(1), start=24 * HOUR, hours=5)

    def grow(count: int) -> object:
        with pytest.raises(UsageDenied) as denied:
            world.resize(lease, min=count, max=count)
        return (denied.value.data or {})["fits"]

    assert grow(6) == {"amount": 4}
    world.resize(lease, min=4, max=4)
    # It has nothing less than what it has already.
    assert grow(5) == {}
    world.run_to(NOON + 26 * HOUR)
    # It had four for two hours, and may have five for three.
    assert grow(6) == {"amount": 5}
    world.resize(lease, min=5, max=5)


def test_servers_that_a_lease_has_more_or_fewer_of_count_for_as_long_as_it_has_them(engine):
    world = World(engine, hosts=1, filters=[ResourceHoursFilter({"instance": 300}, parse_period("month"))])

    def rest():
        with pytest.raises(UsageDenied) as denied:
            world.lease(instances(1, vcpus=1), start=NOON + 12 * DAY, hours=17 * 24)
        return left(denied)

    lease = world.lease(instances(2, vcpus=1), hours=50)
    world.run_to(NOON + 10 * HOUR)
    world.resize(lease, amount=4)
    assert rest() == str(300 - 20 - 160)
    world.run_to(NOON + 20 * HOUR)
    world.resize(lease, amount=1)
    assert rest() == str(300 - 20 - 40 - 30)
    world.run_to(NOON + 51 * HOUR)
    world.manager.leases.delete(lease.id)
    world.run()
    assert rest() == str(300 - 20 - 40 - 30)


def test_a_lease_that_is_being_deleted_counts_until_now(sqlite):
    world = World(sqlite, filters=[hosts_for(200)])
    lease = world.lease(a_host(2), hours=50)
    world.run_to(NOON + 10 * HOUR)
    world.faults.fail_before("remove_host", DOWN, times=99)
    world.manager.leases.delete(lease.id)
    assert world.now(lease).status is LeaseStatus.DELETING
    assert hours_left(world) == 180


def test_of_two_requests_at_once_for_the_rest_of_a_budget_one_is_denied(engine):
    here = World(engine, hosts=6, filters=[hosts_for(10)])
    there = World(engine, filters=[hosts_for(10)], register=False, cloud=here.simulated, clock=here.clock)
    first = []

    def meet(question, passed, check=here.enforcement.check):
        check(question, passed)
        if not first:
            # At another time of the month: only the budget has them in common.
            first.append(there.lease(start=20 * HOUR, hours=6))

    here.enforcement.check = meet
    with pytest.raises(UsageDenied, match="4 are left for it"):
        here.lease(hours=6)
    assert len(here.manager.leases.all("physics")) == 1


def test_a_lease_that_is_getting_more_for_longer_counts_at_that_time_meanwhile(engine):
    world = World(engine, hosts=6, filters=[hosts_for(50, "1")])
    lease = world.lease(a_host(1), hours=20)
    world.run()
    denied = []

    def meanwhile(name, phase):
        if name == "add_host":
            world.faults.on_call = None
            with pytest.raises(UsageDenied) as error:
                world.lease(a_host(1), start=NOON + 50 * HOUR, hours=20)
            denied.append(left(error))

    world.run_to(NOON + 16 * HOUR)
    world.faults.on_call = meanwhile
    more = ReservationChange(lease.reservations[0].id, {"min": 2, "max": 2})
    world.change(lease, end=NOON + 60 * HOUR, reservations=(more,))
    assert denied == ["2"]


@pytest.mark.slow
def test_the_cost_of_a_budget_does_not_grow_with_leases_past_and_to_come(sqlite):
    world = World(sqlite, hosts=30, filters=[hosts_for(100_000)])
    world.lease()

    def cost():
        with counted(world.engine) as statements:
            world.lease(start=HOUR)
        return statements.count

    few = cost()
    for number in range(20):
        lease = world.lease(start=(number + 10) * HOUR)
        if number % 2:
            world.manager.leases.delete(lease.id)
    # The next one reads what was given back.
    cost()
    assert cost() == few
