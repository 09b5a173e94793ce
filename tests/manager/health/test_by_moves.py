# SPDX-License-Identifier: Apache-2.0
"""A host that fails, or is given up, is replaced also where leases that have not started must leave theirs for that."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from blazar.calendar.repack.values import RepackMode
from blazar.manager.booking import host_search
from blazar.manager.common.settings import RepackSettings, Settings
from blazar.model.base.errors import NotEnoughResources
from blazar.model.base.paging import Page
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor
from blazar.model.leases.states import LeaseStatus
from blazar.model.maintenance.windows import Outcome
from blazar.model.surgery import SwapRequest, Terms
from tests.manager.booking.test_repacking import hosts, in_use, told
from tests.manager.health.steps import flags, look
from tests.manager.maintenance.test_maintenance import asked, outcomes, shown, work
from tests.promises import check_promises
from tests.world import NOON, World, a_host, of_hosts

OPERATOR = Terms(Actor("root", "admin", operator=True))
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def a_world(engine, number: int = 3, **repack) -> World:
    settings = Settings(
        claim_ttl=timedelta(seconds=30),
        promises=0,
        heal_active=True,
        healing_interval=DAY,
        repack=RepackSettings(**repack),
    )
    return World(engine, hosts=number, state=of_hosts(*[{}] * number), settings=settings)


def booked_on(world: World, host: int, *, start: float, hours: float, project: str = "chemistry") -> Lease:
    """Book any host, and exchange it for this one."""
    lease = world.lease(start=start * HOUR, hours=hours, project=project)
    (name,) = world.hosts_of(lease)
    if name != f"node-{host}":
        request = SwapRequest(lease.reservations[0].id, name, f"node-{host}")
        world.manager.surgery.swap(lease.id, request, OPERATOR)
    assert hosts(world, lease) == {host}
    return world.now(lease)


def in_the_way(world: World) -> list[Lease]:
    """Two leases from 4 to 8 on host 2, and from 8 to 12 on host 3: neither of these is free throughout."""
    return [booked_on(world, 2, start=4, hours=4), booked_on(world, 3, start=8, hours=4)]


def fail(world: World, lease: Lease) -> None:
    (host,) = world.hosts_of(lease)
    world.simulated.operators.host_down(host)
    look(world)


def check_moved(world: World, pending: list[Lease], lease: Lease) -> None:
    """Check that one of two leases was moved to the host of the other one, for the same time, and told so."""
    after = [world.now(one) for one in pending]
    assert sum(one.revision > before.revision for one, before in zip(after, pending, strict=True)) == 1
    assert [replace(one, revision=0) for one in after] == [replace(one, revision=0) for one in pending]
    assert hosts(world, after[0]) == hosts(world, after[1]) != hosts(world, lease)
    assert sum(told(world, one) for one in pending) == 1
    (moved,) = (one for one in after if told(world, one))
    entry = world.store.history.page(moved.id, Page(10, "id")).items[-1]
    assert (entry.verb, entry.reason, entry.by) == ("moved", "repacked", None)
    check_promises(world.store, since=NOON)


def test_who_has_not_started_gets_a_host_that_another_one_leaves(engine):
    world = a_world(engine)
    lease = booked_on(world, 1, start=4, hours=8, project="biology")
    pending = in_the_way(world)
    fail(world, lease)
    assert hosts(world, lease) != {1}
    assert flags(world, lease) == (False, False, False)
    check_moved(world, pending, lease)
    world.run_to(NOON + 13 * HOUR)
    assert [world.now(one).status for one in (lease, *pending)] == [LeaseStatus.TERMINATED] * 3


def test_who_is_in_use_gets_one_too_and_then_the_cloud_has_it(engine):
    world = a_world(engine)
    lease = in_use(world, hours=12)
    assert hosts(world, lease) == {1}
    pending = in_the_way(world)
    fail(world, lease)
    assert world.hosts_of(lease) == world.pool(lease.reservations[0].id) != {"node-1"}
    assert world.now(lease).status is LeaseStatus.ACTIVE
    check_moved(world, pending, lease)


def test_the_start_takes_what_others_leave(sqlite):
    world = a_world(sqlite, notice=HOUR)
    lease = booked_on(world, 1, start=1, hours=11, project="biology")
    pending = in_the_way(world)
    world.simulated.operators.host_vanishes("node-1")
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert world.pool(lease.reservations[0].id) == world.hosts_of(lease) != {"node-1"}
    check_moved(world, pending, lease)


@pytest.mark.parametrize("used", [False, True])
def test_a_host_that_is_given_up_is_replaced_by_one_that_another_one_leaves(sqlite, used):
    world = a_world(sqlite)
    lease = in_use(world, hours=12) if used else booked_on(world, 1, start=4, hours=8, project="biology")
    pending = in_the_way(world)
    world.manager.surgery.swap(lease.id, SwapRequest(lease.reservations[0].id, "node-1"), OPERATOR)
    assert hosts(world, lease) != {1}
    check_moved(world, pending, lease)


def test_nobody_gets_the_host_that_a_lease_in_use_is_giving_up(sqlite):
    """The only way would be by its own host, which it has until others are in its place."""
    world = a_world(sqlite, 2)
    lease = in_use(world, hours=12)
    pending = booked_on(world, 2, start=4, hours=4)
    with pytest.raises(NotEnoughResources):
        world.manager.surgery.swap(lease.id, SwapRequest(lease.reservations[0].id, "node-1"), OPERATOR)
    assert (hosts(world, lease), world.now(pending)) == ({1}, pending)


def test_a_maintenance_finds_a_way_when_its_plan_has_none_any_more(sqlite):
    world = a_world(sqlite)
    lease = booked_on(world, 1, start=4, hours=8, project="biology")
    made = world.manager.maintenances.create(asked(world, "node-1", start=5 * HOUR, end=6 * HOUR)).maintenance
    pending = in_the_way(world)
    work(world)
    assert outcomes(shown(world, made))[lease.id] is Outcome.MOVED
    assert hosts(world, lease) != {1}
    check_moved(world, pending, lease)


def test_it_comes_before_all_that_wait(sqlite):
    world = a_world(sqlite)
    lease = booked_on(world, 1, start=4, hours=8, project="biology")
    pending = in_the_way(world)
    world.waits = True
    waits = world.lease(a_host(3), hours=12, wait=DAY, project="physics")
    fail(world, lease)
    assert world.now(waits).status is LeaseStatus.WAITING
    check_moved(world, pending, lease)


@pytest.mark.parametrize("repack", [{"mode": RepackMode.OFF}, {"notice": 9 * HOUR}, {"most_moves": 0}])
def test_it_is_missing_where_nobody_may_be_moved(sqlite, repack):
    world = a_world(sqlite, **repack)
    lease = booked_on(world, 1, start=4, hours=8, project="biology")
    pending = in_the_way(world)
    fail(world, lease)
    assert flags(world, lease) == (True, False, True)
    assert hosts(world, lease) == {1}
    assert [world.now(one) for one in pending] == pending


def test_it_is_not_searched_for_again_until_something_has_changed(sqlite, monkeypatch):
    world = a_world(sqlite)
    lease = booked_on(world, 1, start=4, hours=8, project="biology")
    kept = [world.change(one, keep_hosts=True) for one in in_the_way(world)]
    searched, search = [], host_search.repack

    def look_on(problem, limits):
        searched.append(problem)
        return search(problem, limits)

    monkeypatch.setattr(host_search, "repack", look_on)
    fail(world, lease)
    assert flags(world, lease)[0]
    number = len(searched)
    assert number
    for _ in range(3):
        world.clock.by(minutes=5)
        world.manager.monitor.heal()
    assert len(searched) == number
    world.change(kept[0], keep_hosts=False)
    world.manager.monitor.heal()
    assert len(searched) > number
    assert hosts(world, lease) != {1}
