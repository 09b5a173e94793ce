# SPDX-License-Identifier: Apache-2.0
"""Who is first in line has a turn as soon as leases that have not started can leave their hosts for it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.calendar.repack.values import RepackMode
from blazar.manager.booking import host_search
from blazar.model.base.errors import NotEnoughResources, OthersWait
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import LeaseStatus
from tests.manager.booking.test_repacking import a_world, booked_on, hosts, in_use, told
from tests.promises import check_promises
from tests.world import NOON, World, a_host

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def a_line(engine, **repack) -> tuple[World, Lease, list[Lease]]:
    """Two hosts are in use until 2, one is promised from 6 to 8, the other from 8 on: a lease waits for 10 hours."""
    world = a_world(engine, {}, {}, **repack)
    in_use(world, a_host(2), hours=2, project="biology")
    pending = [booked_on(world, 1, start=6, hours=2), booked_on(world, 2, start=8, hours=2)]
    world.waits = True
    waits = world.lease(a_host(), hours=10, wait=DAY)
    assert waits.status is LeaseStatus.WAITING
    world.run()
    return world, waits, pending


def test_the_first_in_line_gets_a_host_that_another_one_leaves(engine):
    world, waits, pending = a_line(engine)
    world.run_to(NOON + 2 * HOUR)
    granted = world.now(waits)
    assert (granted.status, granted.window.start) == (LeaseStatus.ACTIVE, NOON + 2 * HOUR)
    assert granted.window.duration == 10 * HOUR
    assert hosts(world, pending[0]) == hosts(world, pending[1]) != hosts(world, granted)
    assert [world.now(lease).window for lease in pending] == [lease.window for lease in pending]
    assert sum(told(world, lease) for lease in pending) == 1
    check_promises(world.store, since=NOON)
    world.run_to(NOON + 13 * HOUR)
    assert [world.now(lease).status for lease in (granted, *pending)] == [LeaseStatus.TERMINATED] * 3


@pytest.mark.parametrize(
    "repack", [{"mode": RepackMode.OFF}, {"notice": 7 * HOUR}, {"most_moves": 0}], ids=["off", "notice", "moves"]
)
def test_it_waits_on_where_nobody_may_be_moved(sqlite, repack):
    world, waits, pending = a_line(sqlite, **repack)
    world.run_to(NOON + 2 * HOUR)
    assert world.now(waits).status is LeaseStatus.WAITING
    assert [world.now(lease) for lease in pending] == pending


def test_who_keeps_its_hosts_is_not_moved_for_who_waits(sqlite):
    world, waits, pending = a_line(sqlite)
    pending = [world.change(lease, keep_hosts=True) for lease in pending]
    world.run_to(NOON + 2 * HOUR)
    assert world.now(waits).status is LeaseStatus.WAITING
    assert [hosts(world, lease) for lease in pending] == [{1}, {2}]


def test_nobody_is_moved_for_a_newcomer_meanwhile(sqlite):
    world, waits, pending = a_line(sqlite)
    with pytest.raises((NotEnoughResources, OthersWait)):
        world.lease(a_host(), start=3 * HOUR, hours=8)
    assert [world.now(lease) for lease in pending] == pending
    world.run_to(NOON + 2 * HOUR)
    assert world.now(waits).status is LeaseStatus.ACTIVE


@pytest.mark.parametrize(("hours", "has_turn"), [(7, True), (9, False)])
def test_the_second_in_line_has_a_turn_but_takes_nothing_of_the_first(sqlite, hours, has_turn):
    """The first one needs both hosts for ten hours, and will have them from 10 on."""
    world = a_world(sqlite, {}, {})
    in_use(world, a_host(2), hours=2, project="biology")
    pending = [booked_on(world, 1, start=6, hours=2), booked_on(world, 2, start=8, hours=2)]
    world.waits = True
    first = world.lease(a_host(2), hours=10, wait=DAY, project="physics")
    world.clock.by(seconds=1)
    second = world.lease(a_host(), hours=hours, wait=DAY)
    world.run_to(NOON + 2 * HOUR)
    assert world.now(first).status is LeaseStatus.WAITING
    assert (world.now(second).status is LeaseStatus.ACTIVE) == has_turn
    assert sum(world.now(one).revision > one.revision for one in pending) == has_turn
    check_promises(world.store, since=NOON)
    world.run_to(NOON + 10 * HOUR)
    assert world.now(first).window.start == NOON + 10 * HOUR
    assert world.now(first).status is LeaseStatus.ACTIVE


def test_who_waits_for_a_shorter_time_at_least_gets_that_by_moves(sqlite):
    world = a_world(sqlite, {}, {})
    in_use(world, a_host(2), hours=2, project="biology")
    pending = [booked_on(world, 1, start=6, hours=2), booked_on(world, 2, start=8, hours=2)]
    world.change(world.lease(a_host(2), start=11 * HOUR, hours=2, project="chemistry"), keep_hosts=True)
    world.waits = True
    waits = world.lease(a_host(), hours=24, wait=3 * HOUR, at_least=8 * HOUR)
    world.run_to(NOON + 2 * HOUR)
    assert world.now(waits).window.duration == 8 * HOUR
    assert world.now(waits).status is LeaseStatus.ACTIVE
    assert sum(world.now(one).revision > one.revision for one in pending) == 1


def test_it_is_not_searched_for_again_while_nothing_changes_for_it(sqlite, monkeypatch):
    world, waits, pending = a_line(sqlite)
    for lease in pending:
        world.change(lease, keep_hosts=True)
    searched, search = [], host_search.repack

    def look_on(problem, limits):
        searched.append(problem)
        return search(problem, limits)

    monkeypatch.setattr(host_search, "repack", look_on)
    world.run_to(NOON + 2 * HOUR + timedelta(minutes=1))
    assert world.now(waits).status is LeaseStatus.WAITING
    number = len(searched)
    assert number
    for minute in range(2, 7):
        # What has nothing to do with it makes a new plan of the list.
        world.lease(a_host(2), start=5 * DAY + minute * HOUR, hours=1, project="physics")
        world.run_to(NOON + 2 * HOUR + timedelta(minutes=minute))
    assert len(searched) == number
    world.change(world.now(pending[0]), keep_hosts=False)
    world.run_to(NOON + 2 * HOUR + timedelta(minutes=8))
    assert len(searched) > number
    assert world.now(waits).status is LeaseStatus.ACTIVE
