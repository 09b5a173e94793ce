# SPDX-License-Identifier: Apache-2.0
"""Disable a host, restrict it to projects, move reservations off it, read it again."""

from __future__ import annotations

import time
from contextlib import nullcontext
from datetime import timedelta

import pytest

from blazar.model.base.errors import Conflict, NotEnoughResources, NotFound, StaleLease
from blazar.model.leases.states import LeaseStatus
from blazar.model.resources.changes import Disabling, ResourceChange
from blazar.model.resources.resource import HOST
from tests.manager.health.steps import HOUR, ON_NODE_1, flags, look
from tests.observed import ObservedStore, before, failing
from tests.world import NOON, a_host, instances


def test_a_disabled_host_keeps_its_leases_and_takes_no_more(world):
    lease = world.lease(start=HOUR)
    (host,) = world.hosts_of(lease)
    id_ = next(h.external_id for h in world.manager.resources.all(HOST) if h.name == host)
    shown = world.manager.resources.change(HOST, id_, ResourceChange({}, disabled=True))
    assert (shown.reservable, shown.disabled) == (False, True)
    look(world)
    assert world.hosts_of(lease) == {host}
    with pytest.raises(NotEnoughResources):
        world.lease(a_host(3), start=5 * HOUR)
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert not world.now(lease).degraded
    assert world.manager.resources.change(HOST, id_, ResourceChange({}, disabled=False)).reservable


def test_a_host_disabled_until_then_takes_leases_from_then_on_also_after_a_restart(world):
    change = ResourceChange({}, disabled=True, disabling=Disabling("fan", NOON + HOUR))
    world.manager.resources.change(HOST, "1", change)
    later = world.another_manager()
    world.clock.to(NOON + HOUR - timedelta(seconds=1))
    later.enabler.run_once()
    with pytest.raises(NotEnoughResources):
        world.lease(a_host(3))
    world.clock.to(NOON + HOUR)
    later.enabler.run_once()
    assert len(world.hosts_of(world.lease(a_host(3)))) == 3


def test_a_running_manager_enables_a_host_on_time(world):
    world.manager.enabler.start()
    try:
        until = world.clock.now() + timedelta(seconds=0.05)
        world.manager.resources.change(HOST, "1", ResourceChange({}, disabled=True, disabling=Disabling(until=until)))
        world.clock.to(until)
        deadline = time.monotonic() + 10
        while not world.manager.resources.one(HOST, "1").reservable:
            assert time.monotonic() < deadline, "the host is still disabled"
            time.sleep(0.01)
    finally:
        world.manager.enabler.stop()


def test_what_the_monitor_finds_does_not_undo_what_the_operator_said(world):
    world.manager.resources.change(HOST, "1", ResourceChange({}, disabled=True))
    world.simulated.operators.host_down("node-1")
    look(world)
    world.simulated.operators.host_up("node-1")
    look(world)
    host = world.manager.resources.one(HOST, "1")
    assert (host.reservable, host.disabled, host.failure) == (False, True, None)


def test_a_host_for_some_projects_is_not_there_for_others(world):
    world.manager.resources.change(HOST, "1", ResourceChange({}, open_to=("chemistry",), sets_projects=True))
    with pytest.raises(NotEnoughResources, match="2 match"):
        world.lease(a_host(3))
    assert world.hosts_of(world.lease(a_host(3), project="chemistry", start=9 * HOUR)) == {"node-1", "node-2", "node-3"}
    lease = world.lease(instances(1), start=3 * HOUR)
    assert "node-1" not in world.hosts_of(lease)
    world.manager.resources.change(HOST, "1", ResourceChange({}, sets_projects=True))
    world.lease(a_host(3))


def test_healing_gives_nobody_a_host_that_is_not_for_them(world):
    world.manager.resources.change(HOST, "1", ResourceChange({}, open_to=("chemistry",), sets_projects=True))
    lease = world.lease(a_host(2), start=HOUR)
    world.simulated.operators.host_down("node-2")
    look(world)
    assert world.hosts_of(lease) == {"node-2", "node-3"}
    assert flags(world, lease)[0]


def test_a_reservation_that_waits_is_moved_off_a_host(world):
    lease = world.lease(start=HOUR)
    (name,) = world.hosts_of(lease)
    host = next(h for h in world.manager.resources.all(HOST) if h.name == name)
    promised = world.manager.resources.move(HOST, host.external_id, lease.reservations[0].id)
    assert promised.allocations == ()
    assert world.hosts_of(lease) != {name}
    assert flags(world, lease) == (False, False, False)


def test_one_in_use_is_moved_if_no_server_runs_there(world):
    lease = world.lease()
    world.run()
    reservation = lease.reservations[0].id
    (name,) = world.hosts_of(lease)
    host = next(h for h in world.manager.resources.all(HOST) if h.name == name)
    server = world.simulated.users.boot_server("work", project_id="physics", user_id="curie", host=name)
    with pytest.raises(Conflict, match="move or delete them"):
        world.manager.resources.move(HOST, host.external_id, reservation)
    assert world.hosts_of(lease) == world.pool(reservation) == {name}
    world.simulated.compute.begin_server_deletion(server.id)
    world.manager.resources.move(HOST, host.external_id, reservation)
    assert world.pool(reservation) == world.hosts_of(lease) != {name}
    assert name in world.pool()
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert flags(world, lease) == (False, True, True)


def test_a_lease_whose_end_has_come_is_not_healed_with_what_others_have_by_now(world):
    lease = world.lease(hours=1)
    world.run()
    world.clock.to(lease.window.end + timedelta(seconds=20))
    held = world.hosts_of(lease)
    (name,) = held
    host = next(h for h in world.manager.resources.all(HOST) if h.name == name)
    with pytest.raises(NotEnoughResources, match="nothing else fits"):
        world.manager.resources.move(HOST, host.external_id, lease.reservations[0].id)
    world.simulated.operators.host_down(name)
    look(world)
    assert world.hosts_of(lease) == held


@pytest.mark.parametrize("used", [False, True])
def test_a_reservation_that_starts_while_it_is_moved_is_moved_in_the_cloud_as_well(world, used):
    lease = world.lease(start=HOUR)
    reservation = lease.reservations[0].id
    (name,) = world.hosts_of(lease)
    host = next(h for h in world.manager.resources.all(HOST) if h.name == name)

    def late():
        world.run_to(lease.window.start)
        if used:
            world.simulated.users.boot_server("work", project_id="physics", user_id="curie", host=name)

    manager = world.another_manager(store=ObservedStore(world.store, before("bookings.commit", late)))
    with pytest.raises(Conflict, match="move or delete them") if used else nullcontext():
        manager.resources.move(HOST, host.external_id, reservation)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert world.pool(reservation) == world.hosts_of(lease)
    assert (world.hosts_of(lease) == {name}) is used


@pytest.mark.parametrize("started", [False, True])
def test_a_move_for_which_there_is_no_room_changes_nothing(world, started):
    lease = world.lease(a_host(3), start=timedelta(0) if started else HOUR)
    world.run()
    before = world.now(lease)
    with pytest.raises(NotEnoughResources, match="nothing else fits"):
        world.manager.resources.move(HOST, "1", lease.reservations[0].id)
    assert world.now(lease) == before
    assert world.hosts_of(lease) == {"node-1", "node-2", "node-3"}


def test_only_what_is_promised_of_a_host_is_moved_off_it(world):
    lease = world.lease(a_host(1, needs=ON_NODE_1), start=HOUR)
    with pytest.raises(NotFound, match="has no allocation on host node-2"):
        world.manager.resources.move(HOST, "2", lease.reservations[0].id)
    with pytest.raises(NotFound):
        world.manager.resources.move(HOST, "1", "no-such-reservation")
    with pytest.raises(NotFound):
        world.manager.resources.move(HOST, "77", lease.reservations[0].id)


def test_to_read_a_host_again_is_a_look_at_it(world):
    world.simulated.operators.host_down("node-1")
    assert world.manager.resources.refresh(HOST, "1").failure == "its nova-compute is down"
    world.simulated.operators.host_up("node-1")
    assert world.manager.resources.refresh(HOST, "1").reservable


@pytest.mark.parametrize("room", [a_host(1, needs=ON_NODE_1), instances(1, needs=ON_NODE_1)])
def test_a_host_that_was_lost_and_is_back_between_two_looks_is_handed_over_again(world, room):
    lease = world.lease(room)
    waiting = world.lease(a_host(1, needs=ON_NODE_1), start=5 * HOUR)
    world.run()
    reservation = lease.reservations[0].id
    assert world.pool(reservation) == {"node-1"}
    world.simulated.operators.host_returns(world.simulated.operators.host_vanishes("node-1"))
    assert world.pool(reservation) == frozenset()
    assert world.manager.resources.refresh(HOST, "1").reservable
    assert flags(world, lease) == (True, False, True)
    assert flags(world, waiting) == (False, False, False)
    world.manager.monitor.heal()
    assert world.pool(reservation) == {"node-1"}
    assert flags(world, lease) == (False, False, False)
    assert world.notifier.types[-2:] == ["lease.degraded", "lease.healed"]


def test_a_lease_that_is_busy_while_its_host_comes_back_is_asked_about_again(world):
    lease = world.lease(a_host(1, needs=ON_NODE_1))
    world.run()
    world.simulated.operators.host_returns(world.simulated.operators.host_vanishes("node-1"))
    busy = before("leases.save", *[failing(StaleLease("somebody was faster"))] * 2)
    world.manager = world.another_manager(store=ObservedStore(world.store, busy))
    world.manager.resources.refresh(HOST, "1")
    assert flags(world, lease)[0]
