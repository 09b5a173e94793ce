# SPDX-License-Identifier: Apache-2.0
"""A host that reservations in use hold and do not have."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.model.base.errors import NotEnoughResources, NotFound, WrongState
from blazar.model.leases.states import LeaseStatus, ReservationStatus
from blazar.model.resources.resource import HOST
from tests.manager.health.steps import HOUR, ON_NODE_1, flags, look, lost_and_back, told
from tests.world import NOON, World, a_host, instances


@pytest.mark.parametrize("room", [a_host(1, needs=ON_NODE_1), instances(1, needs=ON_NODE_1)])
def test_a_host_that_somebody_has_put_into_the_freepool_goes_back_to_whom_it_is_promised(world, room):
    lease = world.lease(room)
    world.run()
    lost_and_back(world, "node-1")
    world.simulated.compute.add_host(world.simulated.compute.aggregate("freepool").id, "node-1")
    look(world, 1)
    assert world.pool(lease.reservations[0].id) == {"node-1"}
    assert flags(world, lease) == (False, False, False)
    assert told(world) == ["lease.degraded", "lease.healed"]


def test_so_does_one_whose_reservation_misses_another_host_at_the_same_time(world):
    lease = world.lease(a_host(2, needs='["in", "$hypervisor_hostname", ["node-1", "node-2"]]'))
    world.run()
    world.simulated.operators.host_down("node-2")
    look(world)
    lost_and_back(world, "node-1")
    world.simulated.compute.add_host(world.simulated.compute.aggregate("freepool").id, "node-1")
    look(world, 1)
    assert world.pool(lease.reservations[0].id) == {"node-1", "node-2"}
    assert flags(world, lease) == (True, False, True), "node-2 is down"


def test_a_host_whose_aggregate_was_deleted_by_hand_is_handed_over_again_when_it_is_read_again(world):
    lease = world.lease(a_host(1, needs=ON_NODE_1))
    world.run()
    aggregate = world.simulated.compute.aggregate(lease.reservations[0].id)
    world.simulated.compute.remove_host(aggregate.id, "node-1")
    world.simulated.compute.delete_aggregate(aggregate.id)
    world.manager.resources.refresh(HOST, "1")
    assert flags(world, lease) == (True, False, True)
    world.manager.monitor.heal()
    assert world.pool(lease.reservations[0].id) == {"node-1"}
    assert flags(world, lease) == (False, False, False)


def test_a_host_on_its_way_into_a_reservation_that_grows_is_not_missed(world):
    lease = world.lease(a_host(1, 1))
    world.run()
    other, looks = world.another_manager(), []

    def hook(name, when):
        if (name, when) == ("add_host", "before"):
            world.faults.on_call = None
            looks.append(other.monitor.run_once())

    world.faults.on_call = hook
    world.resize(lease, min=2, max=2)
    assert len(looks) == 1
    assert len(world.pool(lease.reservations[0].id)) == 2
    assert told(world) == []


def test_what_a_lease_lacks_that_is_being_changed_is_noted_when_that_is_over(world):
    lease = world.lease(a_host(1, 1, needs='["in", "$hypervisor_hostname", ["node-1", "node-2"]]'))
    world.run()
    (name,) = world.hosts_of(lease)
    host_id = name.removeprefix("node-")
    other, seen = world.another_manager(), []

    def hook(call, when):
        if (call, when) == ("add_host", "after"):
            world.faults.on_call = None
            lost_and_back(world, name)
            seen.append(other.resources.refresh(HOST, host_id))

    world.faults.on_call = hook
    world.resize(lease, min=2, max=2)
    assert [host.reservable for host in seen] == [True]
    assert not world.now(lease).degraded
    look(world, 1)
    assert world.pool(lease.reservations[0].id) == {"node-1", "node-2"}
    assert told(world) == ["lease.degraded", "lease.healed"]


def partly_failed(world: World, other: str = "node-2"):
    """Return a lease in ERROR of which the reservation of node-1 is in use, and that of another host is not."""
    lease = world.lease(
        a_host(1, needs=ON_NODE_1), a_host(1, needs=f'["==", "$hypervisor_hostname", "{other}"]'), start=HOUR, hours=5
    )
    world.simulated.operators.host_vanishes(other)
    world.run_to(NOON + HOUR)
    now = world.now(lease)
    assert now.status is LeaseStatus.ERROR
    assert [r.status for r in now.reservations] == [ReservationStatus.ACTIVE, ReservationStatus.ERROR]
    return now


def test_what_is_in_use_of_a_lease_in_error_is_healed(world):
    lease = partly_failed(world)
    world.simulated.operators.host_down("node-1")
    look(world)
    assert [r.missing_resources for r in world.now(lease).reservations] == [True, True]
    world.simulated.operators.host_up("node-1")
    look(world)
    assert not world.now(lease).reservations[0].missing_resources
    lost_and_back(world, "node-1")
    look(world)
    world.manager.resources.refresh(HOST, "1")
    world.manager.monitor.heal()
    now = world.now(lease)
    assert world.pool(lease.reservations[0].id) == {"node-1"}
    assert not now.reservations[0].missing_resources
    assert now.status is LeaseStatus.ERROR
    world.run_to(lease.window.end)
    assert world.now(lease).status is LeaseStatus.TERMINATED


def test_what_is_in_use_of_a_lease_in_error_is_moved_and_what_failed_is_not(world):
    lease = partly_failed(world)
    with pytest.raises(NotEnoughResources, match="nothing else fits"):
        world.manager.resources.move(HOST, "1", lease.reservations[0].id)
    with pytest.raises(WrongState, match="error"):
        world.manager.resources.move(HOST, "2", lease.reservations[1].id)
    assert world.now(lease) == lease


def test_a_host_is_read_again_though_a_lease_that_needs_it_waits_to_start(a_world):
    world = a_world(hosts=2)
    lease = world.lease(a_host(2), start=HOUR, hours=5)
    stranger = world.simulated.users.boot_server("stranger", host="node-2", project_id="art", user_id="u")
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.STARTING
    lost_and_back(world, "node-1")
    assert world.manager.resources.refresh(HOST, "1").reservable
    world.simulated.compute.begin_server_deletion(stranger.id)
    world.run_to(NOON + HOUR + timedelta(minutes=5))
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert world.pool(lease.reservations[0].id) == {"node-1", "node-2"}


def test_where_the_cloud_has_no_freepool_nothing_counts_as_lost(world):
    lease = world.lease(a_host(1, needs=ON_NODE_1))
    world.run()
    with world.simulated.change_state() as state:
        freepool = next(key for key, aggregate in state.aggregates.items() if aggregate.name == "freepool")
        kept = state.aggregates.pop(freepool)
    with pytest.raises(NotFound, match="freepool"):
        world.manager.resources.refresh(HOST, "1")
    look(world)
    assert flags(world, lease) == (False, False, False)
    with world.simulated.change_state() as state:
        state.aggregates[freepool] = kept
    assert world.manager.resources.refresh(HOST, "1").reservable
    assert told(world) == []
