# SPDX-License-Identifier: Apache-2.0
"""What cannot be assigned is tried again, more and more rarely."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.manager.common.settings import Settings
from blazar.model.leases.states import EventType, LeaseStatus
from blazar.model.resources.resource import HOST
from tests.manager.health.steps import ON_NODE_1, flags, lost_and_back
from tests.world import World, a_host


def in_vain(world: World):
    """Return a lease in use whose host is back, and cannot be handed over as somebody's server is there; and that."""
    lease = world.lease(a_host(1, needs=ON_NODE_1), hours=100)
    world.run()
    lost_and_back(world, "node-1")
    stranger = world.simulated.users.boot_server("stranger", host="node-1", project_id="art", user_id="u")
    world.manager.resources.refresh(HOST, "1")
    return world.now(lease), stranger


def tries(world: World, lease, manager, span: timedelta) -> list[timedelta]:
    """Heal every second for a while; return when the lease was touched, since now."""
    begin, found = world.clock.now(), []
    while world.clock.now() < begin + span:
        before = world.now(lease).revision
        manager.monitor.heal()
        if world.now(lease).revision != before:
            found.append(world.clock.now() - begin)
        world.clock.by(seconds=1)
    return found


@pytest.mark.slow
def test_what_cannot_be_handed_over_is_tried_more_and_more_rarely_and_leaves_one_event(world):
    lease, _ = in_vain(world)
    found = tries(world, lease, world.manager, timedelta(seconds=100))
    assert found == [timedelta(seconds=n) for n in (0, 5, 15, 35, 75)]
    assert sum(e.event_type == EventType.UPDATE for e in world.now(lease).events) == 1
    assert flags(world, lease) == (True, False, True)
    assert world.now(lease).status is LeaseStatus.ACTIVE


@pytest.mark.slow
def test_other_managers_and_those_that_come_later_know_how_long_it_rests(world):
    lease, _ = in_vain(world)
    assert tries(world, lease, world.manager, timedelta(seconds=20))[-1] == timedelta(seconds=15)
    assert tries(world, lease, world.another_manager(), timedelta(seconds=40)) == [timedelta(seconds=15)]


@pytest.mark.slow
def test_it_rests_ten_minutes_at_most_and_begins_again_after_it_succeeded(world):
    lease, stranger = in_vain(world)
    for _ in range(20):
        world.manager.monitor.heal()
        world.clock.by(minutes=10)
    revision = world.now(lease).revision
    world.manager.monitor.heal()
    assert world.now(lease).revision > revision
    world.simulated.compute.begin_server_deletion(stranger.id)
    world.clock.by(minutes=10)
    world.manager.monitor.heal()
    assert world.pool(lease.reservations[0].id) == {"node-1"}
    assert flags(world, lease) == (False, False, False)
    lost_and_back(world, "node-1")
    world.simulated.users.boot_server("stranger", host="node-1", project_id="art", user_id="u")
    world.manager.resources.refresh(HOST, "1")
    assert tries(world, lease, world.manager, timedelta(seconds=12)) == [timedelta(0), timedelta(seconds=5)]


@pytest.mark.slow
def test_an_operator_who_reads_the_host_again_need_not_wait(world):
    lease, stranger = in_vain(world)
    tries(world, lease, world.manager, timedelta(seconds=40))
    world.simulated.compute.begin_server_deletion(stranger.id)
    world.manager.monitor.heal()
    assert flags(world, lease) == (True, False, True)
    world.manager.resources.refresh(HOST, "1")
    world.manager.monitor.run_once()
    assert world.pool(lease.reservations[0].id) == {"node-1"}
    assert flags(world, lease) == (False, False, False)


def test_what_no_monitor_looks_at_is_tried_again_after_an_hour(a_world):
    world = a_world(settings=Settings(polling_interval=timedelta(0), claim_ttl=timedelta(seconds=30)))
    lease = world.lease(a_host(1, needs=ON_NODE_1))
    freepool = world.simulated.compute.aggregate("freepool")
    world.simulated.compute.remove_host(freepool.id, "node-1")
    world.run()
    assert world.now(lease).status is LeaseStatus.ERROR
    assert not world.manager.resources.one(HOST, "1").reservable
    world.manager.monitor.heal()
    assert not world.manager.resources.one(HOST, "1").reservable
    world.clock.by(hours=1)
    world.manager.monitor.heal()
    assert world.manager.resources.one(HOST, "1").reservable
