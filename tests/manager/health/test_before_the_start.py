# SPDX-License-Identifier: Apache-2.0
"""Reservations that have not started get other resources."""

from __future__ import annotations

from datetime import timedelta

from blazar.clouds.ports.compute import Flavor
from blazar.clouds.simulated import of_size
from blazar.manager.common.settings import Settings
from blazar.model.leases.states import LeaseStatus
from blazar.model.resources.resource import HOST
from tests.manager.health.steps import HOUR, ON_NODE_1, flags, look, told
from tests.world import NOON, World, a_host, flavored, instances


def hosts_by_reservation(world: World, lease) -> list[str]:
    """Return the one host that each reservation of a lease holds."""
    names = {host.id: host.name for host in world.manager.resources.all(HOST)}
    held = {a.reservation_id: names[a.resource_id] for a in world.store.calendar.of_lease(lease.id)}
    return [held[reservation.id] for reservation in lease.reservations]


def test_a_pending_reservation_gets_another_host_without_a_word(world):
    lease = world.lease(start=HOUR)
    (host,) = world.hosts_of(lease)
    world.simulated.operators.host_down(host)
    look(world)
    (other,) = world.hosts_of(lease)
    assert other != host
    assert flags(world, lease) == (False, False, False)
    assert told(world) == []
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert world.pool(lease.reservations[0].id) == {other}


def test_hosts_that_are_well_stay_and_the_number_stays_as_it_was(world):
    lease = world.lease(a_host(1, 2), start=HOUR)
    before = world.hosts_of(lease)
    lost = sorted(before)[0]
    world.simulated.operators.host_down(lost)
    look(world)
    after = world.hosts_of(lease)
    assert len(after) == 2
    assert before - {lost} < after


def test_where_nothing_else_is_to_be_had_it_is_missing_until_it_is_back(world):
    lease = world.lease(a_host(3), start=HOUR)
    world.simulated.operators.host_down("node-2")
    look(world, 5)
    assert world.hosts_of(lease) == {"node-1", "node-2", "node-3"}
    assert flags(world, lease) == (True, False, True)
    assert told(world) == ["lease.degraded"]
    revision = world.now(lease).revision
    world.manager.monitor.heal()
    assert world.now(lease).revision == revision, "nothing new is nothing to write"
    world.simulated.operators.host_up("node-2")
    look(world, 5)
    assert flags(world, lease) == (False, False, False)
    assert told(world) == ["lease.degraded", "lease.healed"]
    assert world.notifier.told[-1][1].degraded is False


def test_as_many_as_there_are_are_exchanged_and_the_rest_is_missing(a_world):
    world = a_world(hosts=4)
    lease = world.lease(a_host(3), start=HOUR)
    lost = sorted(world.hosts_of(lease))[:2]
    for host in lost:
        world.simulated.operators.host_down(host)
    look(world)
    held = world.hosts_of(lease)
    assert len(held) == 3
    assert len(held & set(lost)) == 1
    assert flags(world, lease) == (True, False, True)


def test_a_host_that_becomes_free_takes_the_place_of_one_that_is_missing(a_world):
    world = a_world(hosts=2)
    lease = world.lease(start=HOUR)
    (host,) = world.hosts_of(lease)
    other = world.lease(start=HOUR)
    world.simulated.operators.host_down(host)
    look(world)
    assert flags(world, lease)[0]
    world.manager.leases.delete(other.id)
    world.manager.monitor.heal()
    assert flags(world, lease) == (False, False, False)
    assert world.hosts_of(lease) != {host}
    assert told(world) == ["lease.degraded", "lease.healed"]


def test_reservations_of_a_lease_that_have_not_started_may_swap(world):
    first = a_host(1, needs='["in", "$hypervisor_hostname", ["node-1", "node-2"]]')
    second = a_host(1, needs='["in", "$hypervisor_hostname", ["node-1", "node-3"]]')
    lease = world.lease(first, second, start=HOUR)
    assert hosts_by_reservation(world, lease) == ["node-1", "node-3"]
    world.simulated.operators.host_down("node-3")
    look(world)
    assert hosts_by_reservation(world, lease) == ["node-2", "node-1"]
    assert not world.now(lease).degraded


def test_one_of_two_reservations_is_helped_where_both_cannot_be(a_world):
    world = a_world(hosts=4)
    lease = world.lease(a_host(1, needs=ON_NODE_1), a_host(2), start=HOUR)
    lost = sorted(world.hosts_of(lease) - {"node-1"})[0]
    world.simulated.operators.host_down("node-1")
    world.simulated.operators.host_down(lost)
    look(world)
    now = world.now(lease)
    assert [r.missing_resources for r in now.reservations] == [True, False]
    assert lost not in world.hosts_of(lease)
    assert now.degraded


def test_healing_keeps_the_cleaning_time(a_world):
    world = a_world(hosts=2, cleaning_time=timedelta(minutes=10))
    first = world.lease(start=HOUR)
    second = world.lease(start=3 * HOUR + timedelta(minutes=5))
    assert (world.hosts_of(first), world.hosts_of(second)) == ({"node-1"}, {"node-2"})
    world.simulated.operators.host_down("node-1")
    look(world)
    # node-2 is free when the lease is, but not for the ten minutes after it.
    assert world.hosts_of(first) == {"node-1"}
    assert flags(world, first) == (True, False, True)


def test_only_what_begins_within_the_interval_is_healed_and_the_rest_in_time(a_world):
    world = a_world(settings=Settings(healing_interval=timedelta(hours=2), claim_ttl=timedelta(seconds=30)))
    near = world.lease(start=HOUR, hours=0.5)
    far = world.lease(start=5 * HOUR)
    failed = world.hosts_of(near) | world.hosts_of(far)
    for host in failed:
        world.simulated.operators.host_down(host)
    look(world)
    assert not world.hosts_of(near) & failed
    assert world.hosts_of(far) <= failed
    world.run_to(NOON + 3 * HOUR + timedelta(minutes=1))
    world.manager.monitor.heal()
    assert not world.hosts_of(far) & failed


def test_an_interval_of_zero_is_all_of_the_future(a_world):
    world = a_world(settings=Settings(healing_interval=timedelta(0), claim_ttl=timedelta(seconds=30)))
    far = world.lease(start=900 * HOUR)
    (host,) = world.hosts_of(far)
    world.simulated.operators.host_down(host)
    look(world)
    assert world.hosts_of(far) != {host}


def test_a_change_by_the_user_clears_what_it_mends(a_world):
    world = a_world(hosts=2)
    lease = world.lease(a_host(2), start=HOUR)
    world.simulated.operators.host_down("node-1")
    look(world)
    assert flags(world, lease) == (True, False, True)
    changed = world.resize(lease, min=1, max=1)
    assert world.hosts_of(lease) == {"node-2"}
    assert not changed.degraded
    assert flags(world, lease) == (False, False, False)


def test_instances_move_slot_by_slot_and_keep_their_affinity(a_world):
    world = a_world(hosts=3)
    apart = world.lease(instances(2, affinity=False), start=HOUR)
    together = world.lease(instances(2, affinity=True), start=HOUR)
    for lease in (apart, together):
        lost = sorted(world.hosts_of(lease))[0]
        kept = world.hosts_of(lease) - {lost}
        world.simulated.operators.host_down(lost)
        look(world)
        assert lost not in world.hosts_of(lease)
        assert kept <= world.hosts_of(lease)
        assert len(world.hosts_of(lease)) == (2 if lease is apart else 1)
        assert sum(a.count for a in world.store.calendar.of_lease(lease.id)) == 2
        assert not world.now(lease).degraded
        world.simulated.operators.host_up(lost)
        look(world)
    world.run_to(NOON + HOUR)
    assert world.now(apart).status is world.now(together).status is LeaseStatus.ACTIVE


def test_slots_for_which_there_is_no_room_are_missing_and_the_others_move(a_world):
    world = a_world(hosts=2)
    # node-1 has 32 VCPUs, node-2 64.
    lease = world.lease(instances(5, vcpus=16), start=HOUR)
    assert world.hosts_of(lease) == {"node-1", "node-2"}
    world.simulated.operators.host_down("node-1")
    look(world)
    count = {a.resource_id: a.count for a in world.store.calendar.of_lease(lease.id)}
    assert count == {world.manager.resources.one(HOST, "1").id: 1, world.manager.resources.one(HOST, "2").id: 4}
    assert flags(world, lease) == (True, False, True)


def test_reservations_of_a_flavor_move_to_hosts_that_have_its_traits(a_world):
    world = a_world(hosts=3, state=marked("1", "3"))
    fast = Flavor("fast", "c1.fast", 4, 1024, 0, public=True, extra_specs={"trait:CUSTOM_A": "required"})
    world.simulated.operators.offer_flavor(fast)
    lease = world.lease(flavored(2, "fast"), start=HOUR)
    (host,) = world.hosts_of(lease)
    world.simulated.operators.host_down(host)
    look(world)
    assert world.hosts_of(lease) == {"node-1", "node-3"} - {host}
    (other,) = world.hosts_of(lease)
    world.simulated.operators.host_down(other)
    look(world)
    assert world.hosts_of(lease) == {other}, "node-2 does not have the trait"
    assert flags(world, lease) == (True, False, True)


def marked(*ids: str):
    state = of_size(3)
    for id_ in ids:
        state.hosts[id_].traits = ["CUSTOM_A"]
    return state
