# SPDX-License-Identifier: Apache-2.0
"""A cloud that fails halfway, or in which something was deleted by hand."""

from __future__ import annotations

import pytest

from blazar.model.base.errors import CloudRefused, CloudUnavailable
from blazar.model.leases.states import LeaseStatus
from tests.resources.instances.steps import (
    DOWN,
    HOUR,
    MINUTE,
    boot,
    class_of,
    id_of,
    nothing_is_left,
    promised,
    slots,
)
from tests.world import NOON, PROJECT, a_host, instances

PREPARING = ["create_server_group", "create_flavor", "create_aggregate", "create_resource_class"]


@pytest.mark.parametrize("call", PREPARING)
@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_creation_that_the_cloud_does_not_finish_leaves_nothing_behind(world, call, phase):
    getattr(world.faults, f"fail_{phase}")(call, DOWN)
    with pytest.raises(CloudUnavailable):
        world.lease(instances(2, affinity=True))
    assert world.manager.leases.all(None) == ()
    nothing_is_left(world)


def test_a_later_reservation_that_fails_takes_with_it_what_was_made_for_the_earlier_ones(world):
    made = []

    def refuse_the_third(name, phase):
        if name == "create_aggregate" and phase == "before":
            made.append(name)
            if len(made) == 3:
                raise DOWN

    world.faults.on_call = refuse_the_third
    with pytest.raises(CloudUnavailable):
        world.lease(instances(2, affinity=True), a_host(), instances(1, affinity=False))
    world.faults.on_call = None
    assert len(made) == 3
    assert world.manager.leases.all(None) == ()
    nothing_is_left(world)
    world.lease(a_host(3))


@pytest.mark.parametrize("call", ["add_host", "set_inventory", "grant_flavor"])
@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_start_is_tried_again_until_all_is_there(world, call, phase):
    lease = world.lease(instances(3, affinity=False), start=HOUR)
    getattr(world.faults, f"fail_{phase}")(call, DOWN, times=2)
    world.run_to(NOON + HOUR + MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert slots(world, lease) == promised(world, lease)
    assert world.simulated.compute.flavor_access(id_of(lease)) == {PROJECT}


def test_two_starts_that_miss_the_provider_of_one_host_at_once_both_succeed(a_world):
    world = a_world(hosts=1)
    first, second = world.lease(instances(), start=HOUR), world.lease(instances(), start=HOUR)
    with world.simulated.change_state() as state:
        state.providers.clear()  # as Nova does when a compute service is deleted and comes back

    def faster(name, phase):
        if name == "create_reservation_provider" and phase == "before":
            world.faults.on_call = None
            world.simulated.placement.create_reservation_provider("node-1")

    world.faults.on_call = faster
    world.run_to(NOON + HOUR)
    for lease in (first, second):
        assert world.now(lease).status is LeaseStatus.ACTIVE
        assert slots(world, lease) == promised(world, lease)


ENDING = [
    "revoke_flavor",
    "begin_server_deletion",
    "delete_inventory",
    "delete_resource_class",
    "delete_server_group",
    "delete_flavor",
    "remove_host",
    "delete_aggregate",
]


@pytest.mark.sample(3)
@pytest.mark.parametrize("call", ENDING)
@pytest.mark.parametrize("phase", ["before", "after"])
def test_an_end_is_tried_again_until_nothing_is_left(world, call, phase):
    lease = world.lease(instances(3, affinity=False))
    world.run()
    boot(world, lease)
    getattr(world.faults, f"fail_{phase}")(call, CloudRefused("not now"), times=2)
    world.run_to(NOON + 2 * HOUR + MINUTE)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert world.simulated.operators.list_servers() == ()
    nothing_is_left(world)


def test_what_somebody_took_away_before_the_start_is_made_again(world):
    lease = world.lease(instances(2, affinity=True), start=HOUR)
    world.simulated.compute.delete_flavor(id_of(lease))
    world.simulated.compute.delete_aggregate(world.simulated.compute.aggregate(id_of(lease)).id)
    world.simulated.compute.delete_server_group(lease.reservations[0].cloud_ids.values["server_group_id"])
    world.simulated.placement.delete_resource_class(class_of(lease))
    world.run_to(NOON + HOUR)
    started = world.now(lease)
    assert started.status is LeaseStatus.ACTIVE
    (group,) = world.simulated.compute.server_groups(f"reservation:{id_of(lease)}")
    assert started.reservations[0].cloud_ids.values["server_group_id"] == group.id
    assert (
        started.reservations[0].cloud_ids.values["aggregate_id"] == world.simulated.compute.aggregate(id_of(lease)).id
    )
