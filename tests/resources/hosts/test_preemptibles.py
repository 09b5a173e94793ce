# SPDX-License-Identifier: Apache-2.0
"""Preemptible servers give way to leases, and nobody else's servers do."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.clouds.ports.compute import Flavor, Server
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import CloudRefused, CloudUnavailable, Conflict
from blazar.model.leases.states import EventType, LeaseStatus
from blazar.model.resources.resource import HOST
from blazar.resources.hosts.preemptibles import amounts_of_flavor, is_preemptible, select_surplus
from tests.world import NOON, World, a_host, instances

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


@pytest.fixture
def world(sqlite) -> World:
    return World(sqlite)


def names(world: World) -> set[str]:
    return {server.name for server in world.simulated.operators.list_servers()}


def closed(world: World) -> list[str]:
    (freepool,) = [a for a in world.aggregates() if a.name == "freepool"]
    return [key for key in freepool.metadata if key.startswith("blazar:closed:")]


def start_reason(world: World, lease) -> str:
    event = world.now(lease).event(EventType.START)
    assert event is not None
    return event.reason or ""


def test_preemptible_servers_are_deleted_when_a_lease_needs_the_host_and_not_before(world):
    lease = world.lease(a_host(1), start=HOUR)
    (host,) = world.hosts_of(lease)
    other = min(world.pool() - {host})
    world.simulated.users.boot_preemptible("needed", host=host)
    world.simulated.users.boot_preemptible("elsewhere", host=other)
    world.run_to(NOON + HOUR - SECOND)
    assert names(world) == {"needed", "elsewhere"}
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert world.pool(lease.reservations[0].id) == {host}
    assert names(world) == {"elsewhere"}
    assert closed(world) == []


def test_their_deletion_holds_no_thread_and_no_other_host(world):
    world.simulated.durations.deletion = timedelta(seconds=5)
    lease = world.lease(a_host(2))
    slow, quick = sorted(world.hosts_of(lease))
    for number in range(2):
        world.simulated.users.boot_preemptible(f"spot-{number}", host=slow)
    world.run()
    assert world.now(lease).status is LeaseStatus.STARTING
    assert world.pool(lease.reservations[0].id) == {quick}
    assert start_reason(world, lease) == "2 preemptible servers being deleted"
    assert closed(world) == [f"blazar:closed:{slow}"]
    world.run_to(NOON + 4 * SECOND)
    assert world.pool(lease.reservations[0].id) == {quick}
    world.run_to(NOON + 6 * SECOND)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert world.pool(lease.reservations[0].id) == {slow, quick}
    assert (names(world), closed(world)) == (set(), [])


def test_any_other_server_stops_its_host_alone_and_nothing_there_is_deleted(world):
    lease = world.lease(a_host(3))
    world.simulated.users.boot_preemptible("spot", host="node-2")
    stray = world.simulated.users.boot_server("stray", project_id="art", user_id="frida", host="node-2")
    world.simulated.users.boot_preemptible("spot-3", host="node-3")
    world.run()
    assert world.pool(lease.reservations[0].id) == {"node-1", "node-3"}
    assert names(world) == {"spot", "stray"}
    assert start_reason(world, lease) == (
        f"host node-2 runs 1 server that belongs to no reservation, as {stray.id}; move or delete them"
    )
    world.run_to(NOON + 30 * SECOND)
    assert names(world) == {"spot", "stray"}
    world.simulated.compute.begin_server_deletion(stray.id)
    world.run_to(NOON + 120 * SECOND)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert names(world) == set()


def test_a_server_is_preemptible_only_by_what_its_flavor_says(world):
    lease = world.lease(a_host(1))
    (host,) = world.hosts_of(lease)
    for value in ("false", "0", "", "perhaps"):
        world.simulated.users.boot_server(
            value, project_id="p", user_id="u", host=host, extra_specs={"blazar:preemptible": value}
        )
    world.run()
    assert "runs 4 servers that belong to no reservation" in start_reason(world, lease)
    assert len(names(world)) == 4


@pytest.mark.parametrize("value", ["true", "True", "1", "yes", " ON "])
def test_what_the_scheduler_filter_takes_for_true_is_true(value):
    assert is_preemptible(Server("1", "n", "p", "u", None, "ACTIVE", extra_specs={"blazar:preemptible": value}))


def test_a_stream_of_new_ones_ends(world):
    """Somebody boots one more before each of our calls, wherever the scheduler lets him."""
    lease = world.lease(a_host(2), start=HOUR)
    booted = []

    def stream(name, phase):
        world.faults.on_call = None
        for host in ("node-1", "node-2", "node-3"):
            try:
                booted.append(world.simulated.users.boot_preemptible(f"spot-{len(booted)}", host=host).host)
            except Conflict:
                continue
        world.faults.on_call = stream

    world.clock.to(NOON + HOUR)
    world.faults.on_call = stream
    world.run_to(NOON + HOUR + 60 * SECOND)
    world.faults.on_call = None
    hosts = world.hosts_of(lease)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert world.pool(lease.reservations[0].id) == hosts
    assert len(booted) > 10
    assert all(server.host not in hosts for server in world.simulated.operators.list_servers())
    assert closed(world) == []


def test_a_lease_that_goes_before_it_got_its_host_leaves_that_open_again(world):
    world.simulated.durations.deletion = timedelta(seconds=5)
    lease = world.lease(a_host(1))
    (host,) = world.hosts_of(lease)
    world.simulated.users.boot_preemptible("spot", host=host)
    world.run()
    with pytest.raises(Conflict):
        world.simulated.users.boot_preemptible("late", host=host)
    world.manager.leases.delete(lease.id)
    world.run()
    assert world.now(lease).deleted_at is not None
    assert closed(world) == []
    world.simulated.users.boot_preemptible("after", host=host)


def zones_of(world: World) -> dict[str, frozenset[str]]:
    return {a.name: frozenset(a.hosts) for a in world.aggregates()}


def slips_in(world: World) -> None:
    """Let a preemptible server boot on the first host that leaves a reservation: the scheduler knows late."""

    def boot(name, phase):
        kept = {host for a in world.aggregates() if (a.zone or "").startswith("blazar_") for host in a.hosts}
        if (name, phase) == ("remove_host", "after") and (left := sorted(world.pool() - kept - at_home(world))):
            world.faults.on_call = None
            world.simulated.users.boot_server(
                "spot",
                project_id="p",
                user_id="u",
                host=left[0],
                extra_specs={"blazar:preemptible": "true"},
            )

    world.faults.on_call = boot


def at_home(world: World) -> set[str]:
    return {host for a in world.aggregates() if (a.zone or "").startswith("az-") for host in a.hosts}


def test_a_host_that_returns_is_closed_to_them_until_it_is_in_its_zone(world):
    before = zones_of(world)
    lease = world.lease(a_host(3))
    world.run()
    booted = []

    def stream(name, phase):
        world.faults.on_call = None
        for host in ("node-1", "node-2", "node-3"):
            try:
                world.simulated.users.boot_preemptible("spot", host=host)
            except Conflict:
                continue
            booted.append(host in at_home(world))
        world.faults.on_call = stream

    world.clock.to(lease.window.end)
    world.faults.on_call = stream
    world.run()
    world.faults.on_call = None
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert booted
    assert all(booted)
    assert zones_of(world) == before
    assert closed(world) == []


def test_one_that_slips_in_before_its_host_is_in_its_zone_delays_neither_the_end_nor_the_next_lease(world):
    before = zones_of(world)
    lease = world.lease(a_host(3))
    later = world.lease(a_host(3), start=2 * HOUR, hours=1, project="bio")
    world.run()
    world.clock.to(lease.window.end - SECOND)
    slips_in(world)
    world.run_to(lease.window.end + 5 * SECOND)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert world.now(later).status is LeaseStatus.ACTIVE
    assert world.pool(later.reservations[0].id) == {"node-1", "node-2", "node-3"}
    assert names(world) == set()
    # The reservation that has the host now knows where it belongs; what the first one remembered goes with a sweep.
    world.manager.sweep.run_once()
    world.run()
    assert world.reservation_aggregates() == [later.reservations[0].id]
    world.run_to(later.window.end)
    assert zones_of(world) == before
    assert closed(world) == []


def test_one_that_slips_in_while_a_growth_is_undone_keeps_the_lease_from_nothing(world):
    before = zones_of(world)
    lease = world.lease(a_host(1))
    world.run()
    held = world.pool(lease.reservations[0].id)
    # The first host comes in, the second does not.
    calls = []

    def refuse(name, phase):
        if (name, phase) == ("add_host", "before"):
            calls.append(name)
            if len(calls) == 2:
                slips_in(world)
                raise CloudRefused("no")

    world.faults.on_call = refuse
    with pytest.raises(CloudRefused):
        world.resize(lease, min=3, max=3)
    world.faults.on_call = None
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert world.pool(lease.reservations[0].id) == held
    (spot,) = world.simulated.operators.list_servers()
    assert closed(world) == [f"blazar:closed:{spot.host}"]
    # Another change of the lease goes on with what is left.
    world.simulated.compute.begin_server_deletion(spot.id)
    world.lease(a_host(needs=["==", "$hypervisor_hostname", spot.host]), start=HOUR, hours=1)
    world.resize(lease, min=2, max=2)
    assert closed(world) == []
    assert spot.host in at_home(world)
    world.run_to(lease.window.end)
    assert zones_of(world) == before


@pytest.mark.slow
def test_a_manager_that_dies_between_two_steps_leaves_no_host_closed(world):
    """Killed at every call of a start in turn."""

    class Killed(BaseException):
        pass

    step = 0
    while True:
        step += 1
        lease = world.lease(a_host(1))
        (host,) = world.hosts_of(lease)
        world.simulated.users.boot_preemptible("spot", host=host)
        left = [step]

        def kill(name, phase, left=left):
            left[0] -= 1
            if not left[0]:
                raise Killed

        world.faults.on_call = kill
        try:
            world.manager.engine.run_due()
        except Killed:
            world.faults.on_call = None
            world.clock.by(seconds=31)
            world.manager = world.another_manager()
            world.run()
        world.faults.on_call = None
        assert world.now(lease).status is LeaseStatus.ACTIVE
        assert (names(world), closed(world)) == (set(), [])
        world.manager.leases.delete(lease.id)
        world.run()
        if left[0] > 0:
            break
    assert step > 8


def test_a_growing_reservation_waits_for_them_as_long_as_a_request_may(world, monkeypatch):
    lease = world.lease(a_host(1))
    world.run()
    for host in world.pool():
        world.simulated.users.boot_preemptible("spot", host=host)
    world.simulated.durations.deletion = timedelta(seconds=3)
    monkeypatch.setattr("time.sleep", lambda seconds: world.clock.by(seconds=seconds))
    grown = world.resize(lease, min=2, max=2)
    assert len(world.pool(grown.reservations[0].id)) == 2
    assert len(names(world)) == 1
    assert closed(world) == []


def test_a_growth_for_which_they_do_not_go_in_time_is_undone(world):
    lease = world.lease(a_host(2))
    world.run()
    (host,) = world.pool()
    world.simulated.users.boot_server("stray", project_id="art", user_id="frida", host=host)
    with pytest.raises(CloudUnavailable, match="belongs? to no reservation"):
        world.resize(lease, min=3, max=3)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert len(world.pool(lease.reservations[0].id)) == 2
    assert names(world) == {"stray"}


# Slots on shared hosts: of 32 VCPUs


def spot(world: World, name: str, vcpus: int, *, host: str = "node-1", age: int = 0) -> None:
    created = (NOON - timedelta(hours=age)).isoformat()
    world.simulated.users.boot_preemptible(name, host=host, vcpus=vcpus, created_at=created)


@pytest.fixture
def one(sqlite) -> World:
    world = World(sqlite, hosts=1)
    (host,) = world.manager.resources.all(HOST)
    assert host.capacity.get("VCPU") == 32
    return world


def test_promised_slots_have_room_and_the_oldest_that_fit_beside_them_stay(one):
    spot(one, "old", 8, age=3)
    spot(one, "big", 16, age=2)
    spot(one, "young", 8, age=1)
    lease = one.lease(instances(2, vcpus=8))
    one.run()
    assert one.now(lease).status is LeaseStatus.ACTIVE
    assert names(one) == {"old", "young"}
    with pytest.raises(Conflict):
        spot(one, "new", 2)


def test_where_there_is_room_for_all_they_stay(one):
    spot(one, "spot", 16)
    one.lease(instances(2, vcpus=8))
    one.run()
    assert names(one) == {"spot"}


def test_slots_of_others_that_nobody_uses_yet_keep_their_room(one):
    one.lease(instances(1, vcpus=16), project="art")
    spot(one, "spot", 16)
    one.run()
    assert names(one) == {"spot"}
    one.lease(instances(1, vcpus=4))
    one.run()
    assert names(one) == set()


def test_servers_in_slots_and_other_peoples_are_not_deleted_for_room(one):
    first = one.lease(instances(1, vcpus=8))
    one.run()
    one.simulated.users.boot_reserved(first.reservations[0].id, project_id="physics")
    one.simulated.users.boot_server("stray", project_id="art", user_id="frida", host="node-1", vcpus=12)
    with pytest.raises(Conflict):
        spot(one, "spot", 2)
    one.lease(instances(1, vcpus=16))
    one.run()
    assert names(one) == {"work", "stray"}


def test_nobody_can_boot_into_a_slot_before_its_room_is_free(one):
    one.simulated.durations.deletion = timedelta(seconds=5)
    spot(one, "spot", 32)
    lease = one.lease(instances(1, vcpus=8))
    one.run()
    assert one.now(lease).status is LeaseStatus.STARTING
    assert start_reason(one, lease) == "1 preemptible server being deleted"
    assert one.simulated.compute.flavor_access(lease.reservations[0].id) == frozenset()
    one.run_to(NOON + 6 * SECOND)
    assert one.now(lease).status is LeaseStatus.ACTIVE
    assert one.simulated.compute.flavor_access(lease.reservations[0].id) == {"physics"}


def test_what_is_in_the_way_is_reckoned_as_nova_does():
    """A server with dedicated CPUs takes none of the shared ones, and is in the way of those that do, too."""
    dedicated = {"hw:cpu_policy": "dedicated", "blazar:preemptible": "true"}
    sizes = Amounts.of({"VCPU": 4, "MEMORY_MB": 512})
    pinned = Server("a", "a", "p", "u", "h", "ACTIVE", extra_specs=dedicated, amounts=sizes)
    capacity = Amounts.of({"VCPU": 4, "PCPU": 4, "MEMORY_MB": 4096})
    assert select_surplus([pinned], capacity, Amounts.of({"VCPU": 4})) == ()
    assert select_surplus([pinned], capacity, Amounts.of({"PCPU": 1})) == (pinned,)
    slot = {"resources:CUSTOM_RESERVATION_R": "1", "aggregate_instance_extra_specs:reservation": "r"}
    flavor = Flavor("r", "r", 2, 512, 1, extra_specs={**slot, "hw:cpu_policy": "dedicated"})
    assert amounts_of_flavor(flavor) == Amounts.of({"PCPU": 2, "MEMORY_MB": 512, "DISK_GB": 1})
    # What nobody can reserve takes at least what its sizes say.
    odd = Flavor("o", "o", 2, 512, 1, extra_specs={"pci_passthrough:alias": "gpu:1"})
    assert amounts_of_flavor(odd) == Amounts.of({"VCPU": 2, "MEMORY_MB": 512, "DISK_GB": 1})


def test_what_stands_in_the_way_is_as_little_as_can_be():
    def server(name: str, vcpus: int, *, spot: bool = True) -> Server:
        specs = {"blazar:preemptible": "true"} if spot else {}
        return Server(name, name, "p", "u", "h", "ACTIVE", extra_specs=specs, amounts=Amounts.of({"VCPU": vcpus}))

    capacity, promised = Amounts.of({"VCPU": 16}), Amounts.of({"VCPU": 8})
    assert select_surplus([server("a", 4), server("b", 4)], capacity, promised) == ()
    assert [s.id for s in select_surplus([server("a", 4), server("b", 4), server("c", 1)], capacity, promised)] == ["c"]
    assert [s.id for s in select_surplus([server("a", 4), server("x", 4, spot=False)], capacity, promised)] == []
    assert [s.id for s in select_surplus([server("a", 5), server("x", 4, spot=False)], capacity, promised)] == ["a"]
    # A class of which nothing is promised is nobody's room.
    assert select_surplus([server("a", 99)], capacity + Amounts.of({"DISK_GB": 9}), Amounts.of({"DISK_GB": 1})) == ()
