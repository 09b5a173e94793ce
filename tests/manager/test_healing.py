# SPDX-License-Identifier: Apache-2.0
"""What is promised and fails is exchanged for something else, or said to be missing until it is back."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from datetime import timedelta

import pytest

from blazar.clouds.ports import Flavor
from blazar.clouds.simulated import of_size
from blazar.manager.common.settings import Settings
from blazar.model.errors import CloudUnavailable, Conflict, NotEnoughResources, NotFound, StaleLease, WrongState
from blazar.model.lease import EventStatus, EventType, LeaseStatus, ReservationStatus
from blazar.model.requests import ResourceChange
from blazar.model.resource import FLOATING_IP, HOST, ResourceKind
from tests.statements import counted
from tests.world import NOON, World, a_host, address_request, addresses, flavored, instances

HOUR = timedelta(hours=1)
ON_NODE_1 = '["==", "$hypervisor_hostname", "node-1"]'


def look(world: World, times: int = 2) -> None:
    """Let the monitor look so many times."""
    for _ in range(times):
        world.manager.monitor.run_once()


def flags(world: World, lease) -> tuple[bool, bool, bool]:
    """Return missing, changed and degraded of a lease of one reservation."""
    lease = world.now(lease)
    return lease.reservations[0].missing_resources, lease.reservations[0].resources_changed, lease.degraded


def hosts_by_reservation(world: World, lease) -> list[str]:
    """Return the one host that each reservation of a lease holds."""
    names = {host.id: host.name for host in world.manager.resources.all(HOST)}
    held = {a.reservation_id: names[a.resource_id] for a in world.store.calendar.of_lease(lease.id)}
    return [held[reservation.id] for reservation in lease.reservations]


def told(world: World) -> list[str]:
    return [t for t in world.notifier.types if t in ("lease.degraded", "lease.healed")]


# What counts as failed


def test_one_missed_look_reshuffles_nothing(world):
    lease = world.lease(start=HOUR)
    (host,) = world.hosts_of(lease)
    world.simulated.operators.host_down(host)
    look(world, 1)
    assert world.hosts_of(lease) == {host}
    world.simulated.operators.host_up(host)
    look(world, 1)
    world.simulated.operators.host_down(host)
    look(world, 1)
    assert world.hosts_of(lease) == {host}
    look(world, 1)
    assert world.hosts_of(lease) != {host}


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        ("host_down", "its nova-compute is down"),
        ("host_disabled", "its nova-compute is disabled"),
        ("host_vanishes", "the cloud no longer knows it"),
    ],
)
def test_a_failed_host_takes_no_new_lease_and_says_why(world, trouble, reason):
    getattr(world.simulated.operators, trouble)("node-1")
    look(world)
    host = world.manager.resources.one(HOST, "1")
    assert (host.reservable, host.failure, host.failed_since, host.disabled) == (False, reason, NOON, False)
    with pytest.raises(NotEnoughResources):
        world.lease(a_host(3))
    assert world.hosts_of(world.lease(a_host(2))) == {"node-2", "node-3"}


def test_a_host_in_no_pool_counts_as_failed_until_it_is_back_in_one(world):
    freepool = world.simulated.compute.aggregate("freepool")
    world.simulated.compute.remove_host(freepool.id, "node-1")
    look(world)
    assert "freepool" in world.manager.resources.one(HOST, "1").failure
    world.simulated.compute.add_host(freepool.id, "node-1")
    look(world)
    assert world.manager.resources.one(HOST, "1").reservable


def test_a_host_is_well_again_when_it_was_seen_so_twice(world):
    world.simulated.operators.host_down("node-1")
    look(world)
    world.simulated.operators.host_up("node-1")
    look(world, 1)
    assert not world.manager.resources.one(HOST, "1").reservable
    look(world, 1)
    host = world.manager.resources.one(HOST, "1")
    assert (host.reservable, host.failure, host.failed_since) == (True, None, None)


def test_what_was_said_of_a_host_needs_no_second_look(world):
    world.simulated.operators.host_disabled("node-1")
    world.manager.monitor.hint("node-1")
    look(world, 1)
    assert not world.manager.resources.one(HOST, "1").reservable
    world.simulated.operators.host_enabled("node-1")
    world.manager.monitor.hint("node-1")
    look(world, 1)
    assert world.manager.resources.one(HOST, "1").reservable


def test_a_cloud_that_does_not_answer_says_nothing_of_its_hosts_and_that_is_said_once(world, caplog):
    world.faults.fail_before("hypervisors", CloudUnavailable("Nova is away"), times=4)
    look(world, 4)
    assert all(host.reservable for host in world.manager.resources.all(HOST))
    assert caplog.text.count("Nova is away") == 1


def test_a_list_without_any_of_our_hosts_is_not_believed(world, caplog):
    for number in (1, 2, 3):
        world.simulated.operators.host_vanishes(f"node-{number}")
    look(world, 3)
    assert all(host.reservable for host in world.manager.resources.all(HOST))
    assert "ignored as unreliable" in caplog.text


def test_a_quiet_look_costs_a_few_statements_whatever_the_number_of_hosts(a_world):
    world = a_world(hosts=12)
    look(world, 1)
    with counted(world.engine) as found:
        look(world, 1)
    # Two for each kind of resource.
    assert found.count <= 4
    calls = dict(world.faults.calls)
    look(world, 1)
    assert sum(world.faults.calls.values()) - sum(calls.values()) == 3


def test_the_monitor_records_changes_of_a_host_in_the_cloud(world):
    world.lease()
    world.run()
    zones = {host.name: host.attributes["availability_zone"] for host in world.manager.resources.all(HOST)}
    with world.simulated.change_state() as state:
        state.hosts["1"].vcpus = 8
    look(world, 1)
    assert world.manager.resources.one(HOST, "1").attributes["vcpus"] == 8
    # Not the zone of the reservation that a host is in.
    assert {host.name: host.attributes["availability_zone"] for host in world.manager.resources.all(HOST)} == zones


# Before the start


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


# At the start


def test_the_start_takes_a_last_look(a_world):
    world = a_world(hosts=2, settings=Settings(healing_interval=timedelta(minutes=1), claim_ttl=timedelta(seconds=30)))
    lease = world.lease(start=HOUR)
    (host,) = world.hosts_of(lease)
    world.simulated.operators.host_down(host)
    look(world)
    assert world.hosts_of(lease) == {host}
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert world.hosts_of(lease) != {host}
    assert world.pool(lease.reservations[0].id) == world.hosts_of(lease)


def test_a_lease_starts_with_what_is_down_and_has_it_when_it_is_back(world):
    lease = world.lease(a_host(3), start=HOUR)
    world.simulated.operators.host_down("node-2")
    look(world)
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert world.pool(lease.reservations[0].id) == {"node-1", "node-2", "node-3"}
    assert flags(world, lease) == (True, False, True)
    world.simulated.operators.host_up("node-2")
    look(world)
    assert flags(world, lease) == (False, False, False)


def test_what_cannot_be_handed_over_is_exchanged_at_the_start(world):
    lease = world.lease(start=HOUR)
    (host,) = world.hosts_of(lease)
    world.simulated.operators.host_vanishes(host)
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    (other,) = world.hosts_of(lease)
    assert other != host
    assert world.pool(lease.reservations[0].id) == {other}
    start = world.now(lease).event(EventType.START)
    assert start.status is EventStatus.DONE
    assert host in start.reason
    assert flags(world, lease) == (False, False, False)
    assert not next(h for h in world.manager.resources.all(HOST) if h.name == host).reservable


@pytest.mark.parametrize("room", [a_host(3), instances(3, vcpus=15, affinity=False)], ids=["hosts", "instances"])
def test_a_start_does_without_what_nothing_can_take_the_place_of_and_brings_it_in_later(world, room):
    lease = world.lease(room, start=HOUR)
    reservation = lease.reservations[0].id
    gone = world.simulated.operators.host_vanishes("node-2")
    world.run_to(NOON + HOUR)
    now = world.now(lease)
    assert (now.status, now.reservations[0].status) == (LeaseStatus.ACTIVE, ReservationStatus.ACTIVE)
    assert world.pool(reservation) == {"node-1", "node-3"}
    assert flags(world, lease) == (True, False, True)
    assert "node-2" in now.event(EventType.START).reason
    assert told(world) == ["lease.degraded"]

    world.simulated.operators.host_returns(gone)
    look(world)
    assert flags(world, lease)[0], "it is in no pool yet"
    assert world.manager.resources.refresh(HOST, "2").reservable
    world.manager.monitor.heal()
    assert world.pool(reservation) == {"node-1", "node-2", "node-3"}
    assert flags(world, lease) == (False, False, False)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert told(world) == ["lease.degraded", "lease.healed"]
    world.run_to(NOON + 3 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert world.pool() == {"node-1", "node-2", "node-3"}


def test_a_reservation_of_which_nothing_is_left_cannot_start_and_the_others_do(world):
    lease = world.lease(a_host(1, needs=ON_NODE_1), a_host(1), start=HOUR)
    world.simulated.operators.host_vanishes("node-1")
    world.run_to(NOON + HOUR)
    now = world.now(lease)
    assert now.status is LeaseStatus.ERROR
    assert [r.status for r in now.reservations] == [ReservationStatus.ERROR, ReservationStatus.ACTIVE]
    assert "node-1" in now.event(EventType.START).reason


def test_a_lease_that_holds_a_vanished_host_ends(world):
    lease = world.lease(a_host(3))
    world.run()
    assert world.now(lease).status is LeaseStatus.ACTIVE
    world.simulated.operators.host_vanishes("node-2")
    world.run_to(NOON + 2 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert world.pool() == {"node-1", "node-3"}


@pytest.fixture
def lined(world):
    """A world with three addresses."""
    for number in (10, 11, 12):
        world.manager.resources.register(FLOATING_IP, address_request("public", f"203.0.113.{number}"))
    return world


def taken(world: World, number: int) -> str:
    """Let another project have an address; return the id of its floating IP."""
    made = world.simulated.network.create_floating_ip(
        network_id="public",
        subnet_id="public-subnet",
        address=f"203.0.113.{number}",
        project_id="art",
        description="",
    )
    return str(made.id)


def test_an_address_that_somebody_has_is_exchanged_at_the_start(lined):
    lease = lined.lease(addresses(2), start=HOUR)
    (lost, *_) = sorted(int(name.split()[0].rpartition(".")[2]) for name in lined.hosts_of(lease))
    taken(lined, lost)
    lined.run_to(NOON + HOUR)
    now = lined.now(lease)
    assert now.status is LeaseStatus.ACTIVE
    assert f"203.0.113.{lost}" in now.event(EventType.START).reason
    assert len(lined.hosts_of(lease)) == 2
    assert not any(name.startswith(f"203.0.113.{lost} ") for name in lined.hosts_of(lease))
    assert flags(lined, lease) == (False, False, False)


def test_a_required_address_has_no_substitute_and_is_brought_in_when_it_is_free(lined):
    lease = lined.lease(addresses(2, required=[10, 11]), start=HOUR, hours=9)
    theirs = taken(lined, 10)
    lined.run_to(NOON + HOUR)
    assert lined.now(lease).status is LeaseStatus.ACTIVE
    assert flags(lined, lease) == (True, False, True)
    assert len(lined.hosts_of(lease)) == 2
    lined.simulated.network.delete_floating_ip(theirs)
    look(lined, 2)
    assert flags(lined, lease) == (False, False, False)
    mine = {f.address for f in lined.simulated.network.floating_ips(tag=f"reservation:{lease.reservations[0].id}")}
    assert mine == {"203.0.113.10", "203.0.113.11"}
    assert told(lined) == ["lease.degraded", "lease.healed"]


def test_an_address_that_came_into_an_allocation_pool_is_exchanged_before_the_start(lined):
    lease = lined.lease(addresses(2), start=HOUR)
    (lost, *_) = sorted(lined.hosts_of(lease))
    address = lost.split()[0]
    lined.simulated.operators.change_subnet("public", pools=[[address, address]])
    look(lined, 2)
    (failed,) = [a for a in lined.manager.resources.all(FLOATING_IP) if not a.reservable]
    assert (failed.name, "allocation pool" in failed.failure) == (lost, True)
    assert len(lined.hosts_of(lease)) == 2
    assert lost not in lined.hosts_of(lease)
    assert flags(lined, lease) == (False, False, False)
    with pytest.raises(NotEnoughResources):
        lined.lease(addresses(1), start=HOUR)
    lined.simulated.operators.change_subnet("public", pools=[])
    look(lined, 2)
    lined.lease(addresses(1), start=HOUR)


def test_required_addresses_in_a_pool_are_missing_until_they_are_out_of_it(lined):
    lease = lined.lease(addresses(2, required=[10, 11]), start=HOUR)
    lined.simulated.operators.change_subnet("public", pools=[["203.0.113.10", "203.0.113.10"]])
    look(lined, 2)
    assert flags(lined, lease) == (True, False, True)
    lined.simulated.operators.change_subnet("public", pools=[])
    look(lined, 2)
    assert flags(lined, lease) == (False, False, False)
    assert told(lined) == ["lease.degraded", "lease.healed"]


def test_addresses_in_use_by_their_reservation_are_where_they_belong(lined):
    lease = lined.lease(addresses(3))
    lined.run()
    look(lined, 3)
    assert all(a.reservable for a in lined.manager.resources.all(FLOATING_IP))
    assert flags(lined, lease) == (False, False, False)


# While in use


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
    world.simulated.compute.delete_server(server.id)
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
    held = {a.resource_id for a in world.store.calendar.live(ResourceKind.HOST)}
    world.store.resources.set_failed(
        ResourceKind.HOST, dict.fromkeys(held, "its rack has no power"), at=world.clock.now()
    )


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


# Several managers


def test_two_managers_see_the_same_and_the_world_hears_of_it_once(world):
    lease = world.lease(a_host(3), start=HOUR)
    second = world.another_manager()
    world.simulated.operators.host_down("node-2")
    for _ in range(3):
        world.manager.monitor.run_once()
        second.monitor.run_once()
    assert told(world) == ["lease.degraded"]
    world.simulated.operators.host_up("node-2")
    for _ in range(3):
        second.monitor.run_once()
        world.manager.monitor.run_once()
    assert told(world) == ["lease.degraded", "lease.healed"]
    revision = world.now(lease).revision
    world.manager.monitor.heal()
    second.monitor.heal()
    assert world.now(lease).revision == revision


def test_managers_that_heal_at_the_same_time_book_nothing_twice_and_tell_of_it_once(engine):
    world = World(engine, hosts=9)
    others = [world.another_manager() for _ in range(3)]
    leases = [world.lease(start=HOUR) for _ in range(4)]
    full = world.lease(a_host(5), start=HOUR)
    before = {name for lease in leases for name in world.hosts_of(lease)}
    lost = sorted(before)[:2]
    for name in lost:
        world.simulated.operators.host_down(name)
    for name in sorted(world.hosts_of(full))[:2]:
        world.simulated.operators.host_down(name)
    world.manager.leases.delete(leases.pop().id)
    look(world, 1)
    begin = threading.Barrier(4)

    def heal(manager):
        begin.wait()
        for _ in range(3):
            manager.monitor.run_once()

    threads = [threading.Thread(target=heal, args=(manager,)) for manager in (world.manager, *others)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    while world.manager.monitor.heal():
        pass
    promised = [a.resource_id for a in world.store.calendar.live(ResourceKind.HOST)]
    assert len(promised) == len(set(promised))
    # Four hosts are down, and one was free: of five that are well and taken nobody lost any.
    missing = [lease for lease in (*leases, full) if flags(world, lease)[0]]
    assert sum(world.manager.resources.one(HOST, str(n)).failure is not None for n in range(1, 10)) == 4
    assert told(world) == ["lease.degraded"] * len(missing)
    assert all(flags(world, lease) == (True, False, True) for lease in missing)


def test_a_lease_that_somebody_works_on_is_left_to_them_and_looked_at_again(world):
    lease = world.lease()
    (host,) = world.hosts_of(lease)
    world.simulated.operators.host_down(host)
    world.faults.fail_before("add_host", CloudUnavailable("lost"), times=3)
    world.run()
    assert world.now(lease).status is LeaseStatus.STARTING
    look(world, 1)
    world.manager.monitor.hint(host)
    look(world, 1)
    assert world.manager.monitor.heal() == 1
    world.run_to(NOON + timedelta(minutes=1))
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert world.hosts_of(lease) != {host}
    assert world.manager.monitor.heal() == 0


def test_a_pass_costs_one_statement_where_there_is_nothing_to_heal_and_some_for_each_lease(a_world):
    world = a_world(hosts=9)
    leases = [world.lease(start=HOUR) for _ in range(3)]
    with counted(world.engine) as none:
        world.manager.monitor.heal()
    assert none.count == 1
    hosts = [next(iter(world.hosts_of(lease))) for lease in leases]
    for host in hosts:
        world.simulated.operators.host_down(host)
    world.manager.monitor.run_once()
    with counted(world.engine) as found:
        world.manager.monitor.run_once()
    assert found.count <= 12 + 25 * len(leases)
    assert all(not world.hosts_of(lease) & set(hosts) for lease in leases)


# An operator's means


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
    world.simulated.compute.delete_server(server.id)
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
def test_a_reservation_that_starts_while_it_is_moved_is_moved_in_the_cloud_as_well(world, monkeypatch, used):
    lease = world.lease(start=HOUR)
    reservation = lease.reservations[0].id
    (name,) = world.hosts_of(lease)
    host = next(h for h in world.manager.resources.all(HOST) if h.name == name)
    rebook = world.store.calendar.rebook

    def late(*args, **kwargs):
        monkeypatch.setattr(world.store.calendar, "rebook", rebook)
        world.run_to(lease.window.start)
        if used:
            world.simulated.users.boot_server("work", project_id="physics", user_id="curie", host=name)
        return rebook(*args, **kwargs)

    monkeypatch.setattr(world.store.calendar, "rebook", late)
    with pytest.raises(Conflict, match="move or delete them") if used else nullcontext():
        world.manager.resources.move(HOST, host.external_id, reservation)
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


def test_a_lease_that_is_busy_while_its_host_comes_back_is_asked_about_again(world, monkeypatch):
    lease = world.lease(a_host(1, needs=ON_NODE_1))
    world.run()
    world.simulated.operators.host_returns(world.simulated.operators.host_vanishes("node-1"))
    save, busy = world.store.leases.save, [True, True]

    def late(*args, **kwargs):
        if busy:
            busy.pop()
            raise StaleLease("somebody was faster")
        return save(*args, **kwargs)

    monkeypatch.setattr(world.store.leases, "save", late)
    world.manager.resources.refresh(HOST, "1")
    assert flags(world, lease)[0]


# A host that reservations in use hold and do not have


def lost_and_back(world: World, name: str) -> None:
    """Let the cloud lose a host and have it again: it is in no aggregate then."""
    world.simulated.operators.host_returns(world.simulated.operators.host_vanishes(name))


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
    world.simulated.compute.delete_server(stranger.id)
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


# What cannot be handed over


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


def test_what_cannot_be_handed_over_is_tried_more_and_more_rarely_and_leaves_one_event(world):
    lease, _ = in_vain(world)
    found = tries(world, lease, world.manager, timedelta(seconds=100))
    assert found == [timedelta(seconds=n) for n in (0, 5, 15, 35, 75)]
    assert sum(e.event_type == EventType.UPDATE for e in world.now(lease).events) == 1
    assert flags(world, lease) == (True, False, True)
    assert world.now(lease).status is LeaseStatus.ACTIVE


def test_other_managers_and_those_that_come_later_know_how_long_it_rests(world):
    lease, _ = in_vain(world)
    assert tries(world, lease, world.manager, timedelta(seconds=20))[-1] == timedelta(seconds=15)
    assert tries(world, lease, world.another_manager(), timedelta(seconds=40)) == [timedelta(seconds=15)]


def test_it_rests_ten_minutes_at_most_and_begins_again_after_it_succeeded(world):
    lease, stranger = in_vain(world)
    for _ in range(20):
        world.manager.monitor.heal()
        world.clock.by(minutes=10)
    revision = world.now(lease).revision
    world.manager.monitor.heal()
    assert world.now(lease).revision > revision
    world.simulated.compute.delete_server(stranger.id)
    world.clock.by(minutes=10)
    world.manager.monitor.heal()
    assert world.pool(lease.reservations[0].id) == {"node-1"}
    assert flags(world, lease) == (False, False, False)
    lost_and_back(world, "node-1")
    world.simulated.users.boot_server("stranger", host="node-1", project_id="art", user_id="u")
    world.manager.resources.refresh(HOST, "1")
    assert tries(world, lease, world.manager, timedelta(seconds=12)) == [timedelta(0), timedelta(seconds=5)]


def test_an_operator_who_reads_the_host_again_need_not_wait(world):
    lease, stranger = in_vain(world)
    tries(world, lease, world.manager, timedelta(seconds=40))
    world.simulated.compute.delete_server(stranger.id)
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


def test_a_host_that_the_cloud_has_lost_can_be_deleted(world):
    world.simulated.operators.host_vanishes("node-1")
    world.manager.resources.unregister(HOST, "1")
    assert [host.name for host in world.manager.resources.all(HOST)] == ["node-2", "node-3"]


def test_a_lost_host_that_is_promised_stays_as_it_was(world):
    lease = world.lease(a_host(3), start=HOUR)
    world.simulated.operators.host_vanishes("node-1")
    with pytest.raises(Conflict, match=lease.id):
        world.manager.resources.unregister(HOST, "1")
    world.manager.leases.delete(lease.id)
    world.faults.fail_before("servers_on", CloudUnavailable("away"))
    with pytest.raises(CloudUnavailable):
        world.manager.resources.unregister(HOST, "1")
    assert world.manager.resources.one(HOST, "1").name == "node-1"
    world.manager.resources.unregister(HOST, "1")


def test_nothing_is_promised_of_what_has_failed_since_it_was_read(world, monkeypatch):
    book = world.store.calendar.book

    def fail_first(*arguments, **more):
        monkeypatch.setattr(world.store.calendar, "book", book)
        world.simulated.operators.host_down("node-3")
        look(world)
        return book(*arguments, **more)

    monkeypatch.setattr(world.store.calendar, "book", fail_first)
    # node-3 is the smallest, and so the first that is tried.
    (host,) = world.hosts_of(world.lease(start=HOUR))
    assert host in ("node-1", "node-2")
