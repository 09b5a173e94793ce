# SPDX-License-Identifier: Apache-2.0
"""What a reservation of servers has while it is active, and what is left of it afterwards."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from blazar.model.base.errors import Conflict, InvalidInput, NotEnoughResources, NotFound
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus
from blazar.resources.hosts.options import HostSettings
from tests.resources.instances.steps import (
    DOWN,
    HOUR,
    MINUTE,
    boot,
    id_of,
    nothing_is_left,
    promised,
    slots,
)
from tests.world import NOON, PROJECT, a_host, instances


def test_at_the_start_the_hosts_get_slots_and_stay_in_the_freepool_and_the_project_can_boot(world):
    lease = world.lease(instances(3, affinity=False), start=HOUR)
    with pytest.raises(NotFound):
        boot(world, lease)
    world.run_to(NOON + HOUR)

    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert world.pool(id_of(lease)) == world.pool() == {"node-1", "node-2", "node-3"}
    assert slots(world, lease) == promised(world, lease) == {"node-1": 1, "node-2": 1, "node-3": 1}
    assert world.simulated.compute.flavor_access(id_of(lease)) == {PROJECT}
    assert {boot(world, lease).host for _ in range(3)} == {"node-1", "node-2", "node-3"}
    with pytest.raises(Conflict):
        boot(world, lease)


def test_a_start_makes_each_call_once(world):
    lease = world.lease(instances(2), start=HOUR)
    before = world.faults.calls.copy()
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    made = world.faults.calls - before
    # One host has both slots. What is a list of all in Nova, the aggregates, is read once; the class is there.
    assert made == Counter(
        ["flavor", "aggregates", "add_host", "reserved_capacity", "set_inventory", "servers_on", "grant_flavor"]
    )


def test_a_class_that_somebody_deleted_before_the_start_is_made_again_by_it(world):
    lease = world.lease(instances(2), start=HOUR)
    with world.simulated.change_state() as state:
        state.classes.clear()
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert slots(world, lease) == promised(world, lease)


def test_a_lost_answer_to_the_grant_of_access_is_no_failure(world):
    lease = world.lease(instances(2), start=HOUR)
    world.faults.fail_after("grant_flavor", DOWN)
    world.run_to(NOON + HOUR)
    world.run_to(NOON + HOUR + MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert world.simulated.compute.flavor_access(id_of(lease)) == {PROJECT}


def test_at_the_end_servers_in_every_state_are_deleted_and_nothing_is_left(world):
    lease = world.lease(instances(4))
    world.run()
    servers = [boot(world, lease) for _ in range(3)]
    world.simulated.users.shelve(servers[0].id)
    with world.simulated.change_state() as state:
        state.servers[servers[1].id].locked = True
        state.servers[servers[2].id].status = "ERROR"
    other = world.simulated.users.boot_server("other", project_id="art", user_id="frida", host="node-1")
    world.run_to(NOON + 2 * HOUR)

    ended = world.now(lease)
    assert (ended.status, ended.event(EventType.END).status) == (LeaseStatus.TERMINATED, EventStatus.DONE)
    assert world.simulated.operators.list_servers() == (other,)
    nothing_is_left(world)


@pytest.mark.slow
def test_an_end_waits_for_slow_servers_without_letting_anybody_boot_or_book(a_world):
    world = a_world(hosts=1)
    world.simulated.durations.deletion = timedelta(minutes=2)
    lease = world.lease(instances(8, vcpus=4))
    world.run()
    boot(world, lease)
    world.run_to(NOON + 2 * HOUR + MINUTE)
    assert world.now(lease).status is LeaseStatus.TERMINATING
    with pytest.raises(NotFound):
        boot(world, lease)
    with pytest.raises(NotEnoughResources):
        world.lease(instances())
    world.run_to(NOON + 2 * HOUR + 3 * MINUTE)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    world.lease(instances())


@pytest.mark.slow
def test_a_start_waits_for_a_late_reservation_only_if_there_is_no_room_beside_it(a_world):
    world = a_world(hosts=1)  # 32 VCPUs
    world.simulated.durations.deletion = timedelta(minutes=2)
    late = world.lease(instances(1, vcpus=20))
    world.run()
    boot(world, late)
    beside = world.lease(instances(1, vcpus=12), start=2 * HOUR)
    behind = world.lease(instances(1, vcpus=20), start=2 * HOUR)
    after = world.now(behind)
    world.run_to(NOON + 2 * HOUR + MINUTE)
    assert world.now(late).status is LeaseStatus.TERMINATING
    assert {world.now(beside).status, world.now(after).status} == {LeaseStatus.PENDING}
    world.run_to(NOON + 2 * HOUR + 3 * MINUTE)
    assert {world.now(beside).status, world.now(after).status} == {LeaseStatus.ACTIVE}


@pytest.mark.slow
def test_a_start_does_not_wait_for_a_late_reservation_beside_which_there_is_room(a_world):
    world = a_world(hosts=1)
    world.simulated.durations.deletion = timedelta(minutes=2)
    late = world.lease(instances(1, vcpus=20))
    world.run()
    boot(world, late)
    beside = world.lease(instances(1, vcpus=12), start=2 * HOUR)
    world.run_to(NOON + 2 * HOUR + MINUTE)
    assert world.now(late).status is LeaseStatus.TERMINATING
    assert world.now(beside).status is LeaseStatus.ACTIVE


@pytest.mark.slow
def test_a_host_lease_waits_for_late_instances(a_world):
    world = a_world(hosts=1)
    world.simulated.durations.deletion = timedelta(minutes=2)
    late = world.lease(instances())
    world.run()
    boot(world, late)
    whole = world.lease(a_host(), start=2 * HOUR)
    world.run_to(NOON + 2 * HOUR + MINUTE)
    assert world.now(whole).status is LeaseStatus.PENDING
    world.run_to(NOON + 2 * HOUR + 3 * MINUTE)
    assert world.now(whole).status is LeaseStatus.ACTIVE
    assert world.pool(id_of(whole)) == {"node-1"}


def test_a_deleted_lease_leaves_nothing_whether_it_had_started_or_not(world):
    waiting, running = world.lease(instances(affinity=True), start=HOUR), world.lease(instances(affinity=True))
    world.run()
    boot(world, running)
    world.manager.leases.delete(waiting.id)
    world.manager.leases.delete(running.id)
    world.run()
    assert world.manager.leases.all(None) == ()
    assert world.simulated.operators.list_servers() == ()
    nothing_is_left(world)


def test_a_flavor_that_somebody_deleted_by_hand_keeps_no_end_waiting(world):
    lease = world.lease(instances())
    world.run()
    boot(world, lease)
    world.simulated.compute.delete_flavor(id_of(lease))
    world.run_to(NOON + 2 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert world.simulated.operators.list_servers() == ()
    nothing_is_left(world)


def test_an_image_is_made_of_every_server_before_the_end(world):
    lease = world.lease(instances(2, before_end="snapshot"))
    world.run()
    boot(world, lease, "one"), boot(world, lease, "two")
    world.run_to(NOON + 2 * HOUR)
    assert sorted(image.name for image in world.simulated.operators.images()) == ["reserved_one", "reserved_two"]
    assert world.now(lease).status is LeaseStatus.TERMINATED


def test_a_server_that_found_no_host_keeps_no_end_waiting_for_its_image(world):
    lease = world.lease(instances(1, before_end="snapshot"))
    world.run()
    boot(world, lease, "one")
    with world.simulated.change_state() as state:
        (one,) = state.servers.values()
        state.servers["x"] = replace(one, id="x", name="none", host=None, status="ERROR")
    world.run_to(NOON + 2 * HOUR)
    assert [image.name for image in world.simulated.operators.images()] == ["reserved_one"]
    assert world.now(lease).event(EventType.BEFORE_END).status is EventStatus.DONE
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert world.simulated.operators.list_servers() == ()


def test_an_operators_default_that_only_hosts_can_do_comes_to_a_notification(a_world):
    world = a_world(host_settings=HostSettings(before_end="migration"))
    lease = world.lease(instances())
    world.run_to(NOON + HOUR)
    assert world.notifier.types.count("lease.event.before_end_lease") == 1
    with pytest.raises(InvalidInput, match="use 'snapshot'"):
        world.resize(lease, before_end="migration")
