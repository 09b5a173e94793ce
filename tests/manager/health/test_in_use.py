# SPDX-License-Identifier: Apache-2.0
"""Reservations in use keep what they have, unless the operator wants it replaced."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.manager.common.settings import Settings
from blazar.model.base.errors import CloudUnavailable, Conflict
from blazar.model.leases.states import LeaseStatus
from blazar.model.resources.resource import HOST
from tests.manager.health.steps import HOUR, flags, look, told
from tests.world import NOON, World, a_host, instances


def test_nothing_in_use_is_moved_and_it_says_what_is_missing(world):
    lease = world.lease()
    world.run()
    (host,) = world.hosts_of(lease)
    world.simulated.operators.host_down(host)
    look(world, 4)
    assert world.hosts_of(lease) == world.pool(lease.reservations[0].id) == {host}
    assert flags(world, lease) == (True, False, True)
    world.simulated.operators.host_up(host)
    look(world, 4)
    assert flags(world, lease) == (False, False, False)
    assert told(world) == ["lease.degraded", "lease.healed"]


@pytest.fixture
def replacing(a_world):
    return a_world(hosts=4, settings=Settings(heal_active=True, claim_ttl=timedelta(seconds=30)))


def test_where_the_operator_wants_it_another_host_joins_and_the_failed_one_leaves(replacing):
    world = replacing
    zones = {a.name: set(a.hosts) for a in world.simulated.compute.aggregates()}
    lease = world.lease(a_host(2))
    world.run()
    lost, kept = sorted(world.hosts_of(lease))
    world.simulated.operators.host_down(lost)
    look(world)
    assert lost not in world.hosts_of(lease)
    assert kept in world.hosts_of(lease)
    assert world.pool(lease.reservations[0].id) == world.hosts_of(lease)
    assert lost in world.pool()
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert flags(world, lease) == (False, True, True)
    assert told(world) == ["lease.degraded", "lease.healed"]
    world.simulated.operators.host_up(lost)
    look(world)
    assert flags(world, lease) == (False, True, True), "it was changed, and stays so until its end"
    world.run_to(NOON + 2 * HOUR)
    assert {a.name: set(a.hosts) for a in world.simulated.compute.aggregates()} == zones


def test_a_host_with_servers_is_not_pulled(replacing):
    world = replacing
    lease = world.lease()
    world.run()
    (host,) = world.hosts_of(lease)
    server = world.simulated.users.boot_server("work", project_id="physics", user_id="curie", host=host)
    world.simulated.operators.host_down(host)
    look(world)
    assert world.hosts_of(lease) == world.pool(lease.reservations[0].id) == {host}
    assert flags(world, lease) == (True, False, True)
    assert [s.id for s in world.simulated.operators.list_servers()] == [server.id]
    world.simulated.compute.begin_server_deletion(server.id)
    world.manager.monitor.heal()
    assert world.hosts_of(lease) != {host}
    assert flags(world, lease) == (False, True, True)


def test_slots_in_use_stay_and_free_ones_move(replacing):
    world = replacing
    lease = world.lease(instances(2, affinity=False))
    world.run()
    reservation = lease.reservations[0].id
    server = world.simulated.users.boot_reserved(reservation, project_id="physics")
    free = next(iter(world.hosts_of(lease) - {server.host}))
    for host in world.hosts_of(lease):
        world.simulated.operators.host_down(host)
    look(world)
    assert server.host in world.hosts_of(lease)
    assert free not in world.hosts_of(lease)
    assert flags(world, lease) == (True, True, True)
    assert [s.id for s in world.simulated.operators.list_servers()] == [server.id]


def all_fail(world: World) -> None:
    """Let all hosts that leases hold count as failed."""
    held = {a.resource_id for a in world.store.calendar.load_live(HOST)}
    world.store.resource_health.set_failed(HOST, dict.fromkeys(held, "its rack has no power"), at=world.clock.now())


def test_a_manager_that_is_asked_to_end_exchanges_no_more_than_it_has_begun(a_world):
    world = a_world(hosts=6, settings=Settings(heal_active=True, claim_ttl=timedelta(seconds=30)))
    leases = [world.lease() for _ in range(3)]
    world.run()
    before = {lease.id: world.hosts_of(lease) for lease in leases}
    all_fail(world)
    world.faults.on_call = lambda name, _: world.manager.begin_stop() if name == "add_host" else None
    world.manager.monitor.heal()
    assert [world.hosts_of(lease) != before[lease.id] for lease in leases].count(True) == 1
    assert {world.now(lease).status for lease in leases} == {LeaseStatus.ACTIVE}
    world.faults.on_call = None
    world.another_manager().monitor.heal()
    assert all(world.hosts_of(lease).isdisjoint(before[lease.id]) for lease in leases)


def test_a_host_that_is_lost_while_leases_are_healed_is_promised_to_none_of_them(a_world):
    world = a_world(hosts=6, settings=Settings(heal_active=True, claim_ttl=timedelta(seconds=30)))
    leases = [world.lease() for _ in range(2)]
    world.run()
    free = {host.name for host in world.manager.resources.all(HOST)} - {
        name for lease in leases for name in world.hosts_of(lease)
    }
    all_fail(world)

    def lose_all_but_one(name: str, phase: str) -> None:
        if (name, phase) == ("add_host", "before"):
            world.faults.on_call = None
            taken = {name for lease in leases for name in world.hosts_of(lease)}
            for host in sorted(free - taken)[:-1]:
                world.simulated.operators.host_down(host)
                world.manager.monitor.hint(host)

    world.faults.on_call = lose_all_but_one
    world.manager.monitor.heal()
    lost = {host.name for host in world.manager.resources.all(HOST) if "down" in (host.failure or "")}
    assert len(lost) == 2
    assert all(world.hosts_of(lease) <= free - lost for lease in leases)


def test_leases_are_healed_in_the_order_of_their_starts(a_world, monkeypatch):
    monkeypatch.setattr("blazar.manager.health.healing.PAGE", 2)
    world = a_world(hosts=1, settings=Settings(healing_interval=timedelta(0)))
    hours = [5, 1, 4, 2, 3]
    leases = [world.lease(instances(1), start=hour * HOUR, hours=1) for hour in hours]
    same = world.lease(instances(1), start=3 * HOUR, hours=1)
    all_fail(world)
    world.manager.monitor.heal()
    degraded = [lease for type_, lease in world.notifier.told if type_ == "lease.degraded"]
    assert {lease.id for lease in degraded} == {lease.id for lease in (*leases, same)}
    assert [lease.window.start for lease in degraded] == [NOON + hour * HOUR for hour in (1, 2, 3, 3, 4, 5)]


@pytest.mark.sample(2)
@pytest.mark.parametrize("call", ["add_host", "remove_host", "servers_on"])
@pytest.mark.parametrize("phase", ["before", "after"])
def test_an_exchange_that_fails_half_way_leaves_the_lease_as_it_was_and_comes_later(replacing, call, phase):
    world = replacing
    lease = world.lease()
    world.run()
    (host,) = world.hosts_of(lease)
    world.simulated.operators.host_down(host)
    look(world, 1)
    getattr(world.faults, f"fail_{phase}")(call, CloudUnavailable("lost"), times=2)
    look(world, 1)
    world.faults.clear()
    world.run_to(NOON + timedelta(minutes=1))
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert world.pool(lease.reservations[0].id) == world.hosts_of(lease)
    world.manager.monitor.heal()
    assert world.hosts_of(lease) != {host}
    assert world.pool(lease.reservations[0].id) == world.hosts_of(lease)
    assert flags(world, lease) == (False, True, True)


@pytest.mark.parametrize("kind", ["hosts", "instances"])
def test_a_change_of_a_lease_that_has_lost_a_host_for_good_comes_to_an_end(a_world, kind):
    world = a_world(hosts=4)
    lease = world.lease(a_host(2) if kind == "hosts" else instances(2, affinity=False))
    world.run()
    lost = sorted(world.hosts_of(lease))[0]
    world.simulated.operators.host_vanishes(lost)
    more = {"min": 3, "max": 3} if kind == "hosts" else {"amount": 3}
    with pytest.raises(Conflict, match=lost):
        world.resize(lease, **more)
    world.run_to(NOON + timedelta(minutes=5))
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert lost in world.hosts_of(lease)
    assert len(world.hosts_of(lease)) == 2
    world.run_to(NOON + 2 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED
