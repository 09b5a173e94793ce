# SPDX-License-Identifier: Apache-2.0
"""A lease gets more hosts, another time or other hosts because leases that have not started leave theirs."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.model.base.errors import NotEnoughResources, UsageDenied
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor
from blazar.model.search.availability import AvailabilityQuestion
from tests.manager.booking.test_commitments import NO, Strict
from tests.manager.booking.test_repacking import a_world, hosts, in_use
from tests.manager.health.test_by_moves import booked_on, check_moved, in_the_way
from tests.promises import check_promises
from tests.world import NOON, PROJECT, World, of_hosts

HOUR = timedelta(hours=1)
ASKER = Actor("curie", PROJECT)


@pytest.fixture
def world(sqlite) -> World:
    return a_world(sqlite)


def shown(world: World, lease: Lease, start: float, end: float) -> int | None:
    """Return how many others would be moved for another time of a lease, as is told; None if it does not fit."""
    begin, until = NOON + start * HOUR, NOON + end * HOUR
    found = world.manager.availability.find(AvailabilityQuestion(ASKER, lease_id=lease.id, start=begin, end=until))
    return next((one.moves_others for one in found.openings if one.window.start == begin), None)


def test_it_gets_one_more_host(engine):
    world = a_world(engine)
    lease = booked_on(world, 1, start=4, hours=8, project=PROJECT)
    pending = in_the_way(world)
    assert world.resize(lease, min=2, max=2).window == lease.window
    assert len(hosts(world, lease)) == 2
    assert 1 in hosts(world, lease)
    check_moved(world, pending, lease)


def test_it_gets_one_more_host_while_it_is_in_use(world):
    lease = in_use(world, hours=12)
    pending = in_the_way(world)
    world.resize(lease, min=2, max=2)
    assert len(world.pool(lease.reservations[0].id)) == 2
    check_moved(world, pending, lease)


def test_no_more_than_others_can_leave(world):
    lease = booked_on(world, 1, start=4, hours=8, project=PROJECT)
    pending = in_the_way(world)
    with pytest.raises(NotEnoughResources) as refused:
        world.resize(lease, min=3, max=3)
    assert refused.value.proof.full is not None
    assert [world.now(one) for one in pending] == pending


@pytest.mark.parametrize(("start", "end"), [(4, 12), (2, 12), (3, 30)])
def test_it_gets_another_time(world, start, end):
    lease = booked_on(world, 1, start=20, hours=4, project=PROJECT)
    pending = in_the_way(world)
    in_between = world.change(booked_on(world, 1, start=5, hours=1), keep_hosts=True)
    assert shown(world, lease, start, end) == 1
    changed = world.change(lease, start=NOON + start * HOUR, end=NOON + end * HOUR)
    assert changed.window.start == NOON + start * HOUR
    check_moved(world, pending, lease)
    assert hosts(world, in_between) == {1}


def test_it_begins_earlier_on_its_host(world):
    lease = booked_on(world, 2, start=8, hours=4, project=PROJECT)
    booked_on(world, 1, start=4, hours=8)
    booked_on(world, 3, start=8, hours=4)
    pending = booked_on(world, 2, start=4, hours=4)
    world.change(lease, start=NOON + 4 * HOUR, end=lease.window.end)
    assert hosts(world, lease) == {2}
    assert world.now(pending).revision == pending.revision + 1
    check_promises(world.store, since=NOON)


def test_a_lease_that_is_not_changed_keeps_what_it_has(world):
    lease = booked_on(world, 1, start=4, hours=8, project=PROJECT)
    pending = in_the_way(world)
    assert world.change(lease, start=NOON + 5 * HOUR, end=lease.window.end).window.start == NOON + 5 * HOUR
    assert hosts(world, lease) == {1}
    assert [world.now(one) for one in pending] == pending


ON_NODE_2 = '["==", "$hypervisor_hostname", "node-2"]'


@pytest.mark.parametrize("accepted_first", [False, True])
def test_what_it_leaves_is_given_to_others_only_if_that_cannot_be_undone(sqlite, accepted_first):
    """It is to have the host of another one, which can only go to the one that it leaves."""
    world = World(sqlite, hosts=2, state=of_hosts({}, {}), filters=[Strict()] if accepted_first else [])
    lease = booked_on(world, 1, start=4, hours=4, project=PROJECT)
    pending = booked_on(world, 2, start=6, hours=4)
    if accepted_first:
        with pytest.raises(NotEnoughResources):
            world.resize(lease, resource_properties=ON_NODE_2)
    else:
        world.resize(lease, resource_properties=ON_NODE_2)
    assert (hosts(world, lease), hosts(world, pending)) == (({1}, {2}) if accepted_first else ({2}, {1}))
    check_promises(world.store, since=NOON)


def test_a_change_that_is_not_accepted_is_undone_and_nobody_is_in_its_way(sqlite):
    world = World(sqlite, hosts=3, state=of_hosts({}, {}, {}), filters=[Strict(UPDATED=NO)])
    lease = world.lease(start=4 * HOUR, hours=4)
    (mine,) = hosts(world, lease)
    others = [world.lease(start=6 * HOUR, hours=4, project="chemistry") for _ in range(2)]
    with pytest.raises(UsageDenied):
        world.change(lease, end=NOON + 10 * HOUR)
    name = next(f"node-{host}" for host in hosts(world, others[0]))
    with pytest.raises((UsageDenied, NotEnoughResources)):
        world.resize(world.now(lease), resource_properties=f'["==", "$hypervisor_hostname", "{name}"]')
    assert hosts(world, lease) == {mine}
    assert world.now(lease).window == lease.window
    check_promises(world.store, since=NOON)
