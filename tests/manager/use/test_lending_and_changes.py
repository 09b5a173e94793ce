# SPDX-License-Identifier: Apache-2.0
"""What happens to lent hosts and their guests when the lease changes, its end comes early, or the cloud is away."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.manager.common.settings import Settings
from blazar.model.base.errors import CloudUnavailable, Conflict
from blazar.model.leases.requests import Actor, ReservationChange
from blazar.model.leases.states import LeaseStatus
from blazar.model.resources.resource import HOST
from blazar.model.surgery import SwapRequest, Terms
from tests.manager.health.steps import look as see_health
from tests.manager.use.test_lending import (
    AFTER,
    HOUR,
    MINUTE,
    NOTICE,
    SECOND,
    lending,
    lending_world,
    lent,
    own_server,
    pass_time,
    started,
)
from tests.manager.use.test_notice import journal, look, metadata, servers, told
from tests.world import World

ROOT = Actor("root", "admin", operator=True)


@pytest.fixture
def world(sqlite) -> World:
    return lending_world(sqlite)


def with_guest(world: World, count: int = 2, host=min):
    lease = started(world, lending(count, keep=0))
    pass_time(world, AFTER + 2 * MINUTE)
    found = host(lent(world))
    world.simulated.users.boot_preemptible("spot", host=found, project_id="art")
    return lease, found


def test_guests_are_not_told_that_they_stay_when_the_cloud_does_not_answer(world):
    lease, host = with_guest(world)
    own_server(world, lease, host)
    pass_time(world, MINUTE, step=15 * SECOND)
    assert len(told(world)) == 1
    world.faults.fail_before("servers_on", CloudUnavailable("away"), times=1)
    pass_time(world, MINUTE, step=15 * SECOND)
    assert [entry[0] for entry in journal(world)] == ["before_end"]
    assert metadata(world, "spot")["blazar:ends_at"]
    assert len(told(world)) == 1


def test_guests_are_not_told_that_they_stay_when_the_lease_is_deleted(world):
    lease, host = with_guest(world)
    own_server(world, lease, host)
    pass_time(world, MINUTE, step=15 * SECOND)
    world.manager.leases.delete(lease.id)
    for _ in range(4):
        world.run()
        world.clock.by(seconds=15)
        look(world)
    assert servers(world) == []
    assert [entry[0] for entry in journal(world)] == ["before_end"]
    assert world.store.preemption.read() == {}


def test_servers_of_a_project_with_which_the_lease_is_shared_are_no_guests(world):
    lease, host = with_guest(world)
    with world.simulated.change_state() as state:
        for aggregate in state.aggregates.values():
            if aggregate.name == lease.reservations[0].id:
                aggregate.metadata["chemistry"] = "true"
    world.simulated.users.boot_preemptible("ours", host=host, project_id="chemistry")
    # It is used: what was lent is taken back, and only the guest is told and goes.
    pass_time(world, MINUTE, step=15 * SECOND)
    assert metadata(world, "spot")["blazar:ends_at"]
    assert "blazar:ends_at" not in metadata(world, "ours")
    pass_time(world, NOTICE + 2 * MINUTE)
    assert [server.name for server in servers(world)] == ["ours"]
    assert host not in lent(world)


def test_a_lease_that_shrinks_gives_up_hosts_without_guests_first(world):
    lease, host = with_guest(world, 3, host=max)
    world.resize(lease, min=1, max=1)
    assert world.hosts_of(lease) == {host}


def test_a_host_with_guests_is_named_when_it_cannot_be_given_up(world):
    lease, host = with_guest(world)
    change = ReservationChange(lease.reservations[0].id, {}, give_up=(host,))
    with pytest.raises(Conflict, match="once lend_beyond is null") as refused:
        world.change(lease, reservations=(change,), asked_by=ROOT)
    assert (refused.value.code, refused.value.pointer) == ("host_has_servers", "/reservations/0/give_up")
    world.run()
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert host in world.hosts_of(lease)


def test_a_host_with_guests_is_not_swapped(world):
    lease, host = with_guest(world)
    with pytest.raises(Conflict, match="once lend_beyond is null") as refused:
        world.manager.surgery.swap(lease.id, SwapRequest(lease.reservations[0].id, host), Terms(ROOT))
    assert refused.value.code == "host_has_servers"
    assert world.now(lease).status is LeaseStatus.ACTIVE


def test_hosts_are_taken_back_when_operators_switch_notices_off(sqlite):
    world = lending_world(sqlite)
    with_guest(world)
    settings = Settings(claim_ttl=timedelta(seconds=30), promises=0)
    world.manager = world.another_manager(settings=settings)
    pass_time(world, 3 * MINUTE, step=15 * SECOND)
    assert (lent(world), servers(world), world.store.lending.read()) == (set(), [], ())


def test_a_lent_host_that_fails_is_replaced_though_guests_are_there(sqlite):
    world = lending_world(sqlite, hosts=4, heal_active=True)
    lease, host = with_guest(world)
    world.simulated.operators.host_down(host)
    see_health(world)
    check_left(world, lease, host)


def test_an_operator_takes_a_host_off_a_lease_though_guests_are_there(world):
    lease, host = with_guest(world)
    (resource,) = [r for r in world.store.resources.catalog(HOST).resources if r.name == host]
    world.manager.resources.move(HOST, resource.external_id, lease.reservations[0].id)
    check_left(world, lease, host)


def check_left(world: World, lease, host: str) -> None:
    """The host is free, and says nothing of a reservation that had it."""
    after = world.now(lease)
    assert after.status is LeaseStatus.ACTIVE
    assert host not in world.hosts_of(lease) | world.pool(lease.reservations[0].id) | lent(world)
    assert (len(world.hosts_of(lease)), servers(world)) == (2, [])
    assert host in world.pool()


def test_a_lease_is_prolonged_while_its_hosts_are_taken_back(world):
    lease, host = with_guest(world)
    pass_time(world, lease.window.end - world.clock.now() - NOTICE)
    world.change(lease, end=lease.window.end + 4 * HOUR)
    pass_time(world, NOTICE + 3 * MINUTE, step=30 * SECOND)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert servers(world) == []
    assert lent(world) == world.hosts_of(lease)
