# SPDX-License-Identifier: Apache-2.0
"""Reservations of instances, from request to release."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from blazar.clouds.ports import ReservedCapacity
from blazar.model.errors import CloudRefused, CloudUnavailable, Conflict, InvalidInput, NotEnoughResources, NotFound
from blazar.model.lease import EventStatus, EventType, LeaseStatus, ReservationStatus
from blazar.model.requests import ReservationChange
from blazar.model.resource import HOST
from blazar.resources.hosts.type import HostSettings
from tests.promises import check_promises
from tests.statements import counted
from tests.world import NOON, PROJECT, World, a_host, instances, of_hosts

DOWN = CloudUnavailable("the cloud does not answer")
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def id_of(lease) -> str:
    return lease.reservations[0].id


def class_of(lease) -> str:
    return "CUSTOM_RESERVATION_" + id_of(lease).upper().replace("-", "_")


def slots(world: World, lease) -> dict[str, int]:
    """The slots that Placement has of a reservation, by host."""
    with world.simulated.inspect() as state:
        found = {host: totals.get(class_of(lease)) for host, totals in state.inventories.items()}
    return {host: total for host, total in found.items() if total}


def promised(world: World, lease) -> dict[str, int]:
    """The slots that the calendar has promised, by host."""
    allocations = world.store.calendar.of_lease(lease.id)
    names = {id_: r.name for id_, r in world.store.resources.by_ids({a.resource_id for a in allocations}).items()}
    return dict(Counter({names[a.resource_id]: a.count for a in allocations}))


def boot(world: World, lease, name="work"):
    return world.simulated.users.boot_reserved(id_of(lease), project_id=PROJECT, name=name)


def nothing_is_left(world: World) -> None:
    with world.simulated.inspect() as state:
        assert state.flavors == {}
        assert state.groups == {}
        assert state.classes == []
        assert all(not totals for totals in state.inventories.values())
        assert {a.name for a in state.aggregates.values()} == {"freepool", "az-1", "az-2"}
    assert world.pool() == {"node-1", "node-2", "node-3"}


# Before the start


def test_before_the_start_everything_exists_by_the_names_that_others_know_and_nobody_can_use_it(world):
    lease = world.lease(instances(3, vcpus=2, memory_mb=4096, disk_gb=20, affinity=False), start=HOUR)
    reservation = lease.reservations[0]
    assert (lease.status, reservation.status) == (LeaseStatus.PENDING, ReservationStatus.PENDING)

    flavor = world.simulated.compute.flavor(reservation.id)
    (group,) = world.simulated.compute.server_groups(f"reservation:{reservation.id}")
    assert (flavor.name, flavor.vcpus, flavor.memory_mb, flavor.disk_gb) == (
        f"reservation:{reservation.id}",
        2,
        4096,
        20,
    )
    assert flavor.extra_specs == {
        "aggregate_instance_extra_specs:reservation": reservation.id,
        f"resources:{class_of(lease)}": "1",
        "affinity_id": group.id,
    }
    assert group.policy == "anti-affinity"
    assert world.simulated.compute.flavor_access(reservation.id) == frozenset()
    aggregate = world.simulated.compute.aggregate(reservation.id)
    assert (aggregate.hosts, aggregate.availability_zone) == ((), None)
    assert aggregate.metadata == {
        "reservation": reservation.id,
        "filter_tenant_id": PROJECT,
        "affinity_id": group.id,
        "blazar:owner": PROJECT,
    }
    assert reservation.cloud_ids.values == {
        "flavor_id": reservation.id,
        "aggregate_id": aggregate.id,
        "server_group_id": group.id,
    }
    assert slots(world, lease) == {}


def test_without_affinity_there_is_no_server_group(world):
    lease = world.lease(instances(affinity=None), start=HOUR)
    assert lease.reservations[0].cloud_ids.values["server_group_id"] is None
    assert "affinity_id" not in world.simulated.compute.flavor(id_of(lease)).extra_specs


@pytest.mark.parametrize(
    ("given", "kept"),
    [(None, None), ("None", None), ("none", None), ("", None), (True, True), ("True", True), ("false", False)],
)
def test_affinity_comes_as_clients_write_it(world, given, kept):
    assert world.lease(instances(affinity=given), start=HOUR).reservations[0].parameters.values["affinity"] is kept


@pytest.mark.parametrize(
    "wrong",
    [
        {"amount": 0},
        {"amount": -1},
        {"amount": ""},
        {"amount": 2**31},
        {"vcpus": 0},
        {"vcpus": -2},
        {"vcpus": 1.5},
        {"vcpus": True},
        {"memory_mb": 0},
        {"memory_mb": 10**12},
        {"disk_gb": -1},
        {"disk_gb": "much"},
        {"affinity": "perhaps"},
        {"affinity": 2},
        {"before_end": "migration"},
        {"before_end": "email"},
        {"needs": '["==", "$colour", "red"]'},
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_and_the_field_named(world, wrong):
    field = "resource_properties" if "needs" in wrong else next(iter(wrong))
    with pytest.raises(InvalidInput, match=field):
        world.lease(instances(**wrong))
    nothing_is_left(world)


def test_more_than_there_is_is_refused_whatever_the_number(world):
    with pytest.raises(NotEnoughResources, match="2147483647 instances requested"):
        world.lease(instances(2**31 - 1))
    with pytest.raises(NotEnoughResources):
        world.lease(instances(vcpus=2**31 - 1))
    nothing_is_left(world)


# Room


def test_reservations_share_a_host_up_to_its_capacity_and_not_further(a_world):
    world = a_world(hosts=1)  # 32 VCPUs
    for _ in range(4):
        world.lease(instances(2, vcpus=4), start=HOUR)
    with pytest.raises(NotEnoughResources):
        world.lease(instances(1, vcpus=1, memory_mb=1), start=HOUR)
    world.lease(instances(1, vcpus=1), start=3 * HOUR)


def test_servers_may_follow_each_other_without_a_gap(a_world):
    world = a_world(hosts=1)
    for hour in (5, 1, 3):  # each for two hours, on the whole host
        world.lease(instances(8, vcpus=4), start=hour * HOUR)
    with pytest.raises(NotEnoughResources):
        world.lease(instances(1, vcpus=1), start=7 * HOUR - MINUTE)
    world.lease(instances(8, vcpus=4), start=7 * HOUR)


def test_cleaning_time_is_kept_free_between_servers_too(a_world):
    world = a_world(hosts=1, cleaning_time=10 * MINUTE)
    world.lease(instances(8, vcpus=4), start=5 * HOUR)
    for start in (3 * HOUR, 3 * HOUR - 9 * MINUTE, 7 * HOUR, 7 * HOUR + 9 * MINUTE):
        with pytest.raises(NotEnoughResources):
            world.lease(instances(1, vcpus=1), start=start)
    before, after = 3 * HOUR - 10 * MINUTE, 7 * HOUR + 10 * MINUTE
    assert [world.lease(instances(8, vcpus=4), start=start).status for start in (before, after)] == ["PENDING"] * 2


def test_the_fullest_moment_counts_and_what_is_outside_of_the_window_does_not(a_world):
    world = a_world(hosts=1)  # 32 VCPUs
    world.lease(instances(1, vcpus=16), start=HOUR, hours=4)
    for start in (HOUR, 3 * HOUR):  # one after the other, never both
        world.lease(instances(1, vcpus=8), start=start)
    world.lease(instances(1, vcpus=16), start=5 * HOUR)
    world.lease(instances(1, vcpus=8), start=2 * HOUR, hours=4)
    with pytest.raises(NotEnoughResources):
        world.lease(instances(1, vcpus=1), start=2 * HOUR)


def test_one_and_the_same_lease_does_not_overbook_a_host_either(a_world):
    world = a_world(hosts=1)
    with pytest.raises(NotEnoughResources):
        world.lease(instances(4, vcpus=5), instances(4, vcpus=4), start=HOUR)
    world.lease(instances(4, vcpus=4), instances(4, vcpus=4), start=HOUR)


def test_hosts_and_instances_never_share_a_host_in_one_window(a_world):
    world = a_world(hosts=1)
    world.lease(instances(), start=HOUR)
    with pytest.raises(NotEnoughResources):
        world.lease(a_host(), start=2 * HOUR)
    world.lease(a_host(), start=3 * HOUR)
    with pytest.raises(NotEnoughResources):
        world.lease(instances(), start=4 * HOUR)


def test_hosts_that_are_shared_already_are_filled_first(world):
    first = world.lease(instances(1, needs='["==", "$hypervisor_hostname", "node-2"]'), start=HOUR)
    second = world.lease(instances(3), start=HOUR)
    assert set(promised(world, first)) == set(promised(world, second)) == {"node-2"}


@pytest.mark.parametrize(("affinity", "hosts"), [(True, 1), (False, 3)])
def test_affinity_keeps_servers_together_or_apart(world, affinity, hosts):
    lease = world.lease(instances(3, affinity=affinity), start=HOUR)
    assert len(promised(world, lease)) == hosts
    assert sum(promised(world, lease).values()) == 3


def test_more_servers_apart_than_hosts_are_refused(world):
    with pytest.raises(NotEnoughResources):
        world.lease(instances(4, affinity=False))


# While it goes on


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
    # One host has both slots. What is a list of all in Nova, the aggregates, is read once.
    assert made == Counter(
        [
            "flavor",
            "create_resource_class",
            "aggregates",
            "add_host",
            "reserved_capacity",
            "set_inventory",
            "servers_on",
        ]
        + ["give_flavor"]
    )


def test_a_lost_answer_to_the_grant_of_access_is_no_failure(world):
    lease = world.lease(instances(2), start=HOUR)
    world.faults.fail_after("give_flavor", DOWN)
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


def test_an_end_waits_for_slow_servers_without_letting_anybody_boot_or_book(a_world):
    world = a_world(hosts=1)
    world.simulated.durations.deletion = timedelta(minutes=5)
    lease = world.lease(instances(8, vcpus=4))
    world.run()
    boot(world, lease)
    world.run_to(NOON + 2 * HOUR + MINUTE)
    assert world.now(lease).status is LeaseStatus.TERMINATING
    with pytest.raises(NotFound):
        boot(world, lease)
    with pytest.raises(NotEnoughResources):
        world.lease(instances())
    world.run_to(NOON + 2 * HOUR + 6 * MINUTE)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    world.lease(instances())


def test_a_start_waits_for_a_late_reservation_only_if_there_is_no_room_beside_it(a_world):
    world = a_world(hosts=1)  # 32 VCPUs
    world.simulated.durations.deletion = timedelta(minutes=5)
    late = world.lease(instances(1, vcpus=20))
    world.run()
    boot(world, late)
    beside = world.lease(instances(1, vcpus=12), start=2 * HOUR)
    behind = world.lease(instances(1, vcpus=20), start=2 * HOUR)
    after = world.now(behind)
    world.run_to(NOON + 2 * HOUR + MINUTE)
    assert world.now(late).status is LeaseStatus.TERMINATING
    assert {world.now(beside).status, world.now(after).status} == {LeaseStatus.PENDING}
    world.run_to(NOON + 2 * HOUR + 6 * MINUTE)
    assert {world.now(beside).status, world.now(after).status} == {LeaseStatus.ACTIVE}


def test_a_start_does_not_wait_for_a_late_reservation_beside_which_there_is_room(a_world):
    world = a_world(hosts=1)
    world.simulated.durations.deletion = timedelta(minutes=5)
    late = world.lease(instances(1, vcpus=20))
    world.run()
    boot(world, late)
    beside = world.lease(instances(1, vcpus=12), start=2 * HOUR)
    world.run_to(NOON + 2 * HOUR + MINUTE)
    assert world.now(late).status is LeaseStatus.TERMINATING
    assert world.now(beside).status is LeaseStatus.ACTIVE


def test_a_host_lease_waits_for_late_instances(a_world):
    world = a_world(hosts=1)
    world.simulated.durations.deletion = timedelta(minutes=5)
    late = world.lease(instances())
    world.run()
    boot(world, late)
    whole = world.lease(a_host(), start=2 * HOUR)
    world.run_to(NOON + 2 * HOUR + MINUTE)
    assert world.now(whole).status is LeaseStatus.PENDING
    world.run_to(NOON + 2 * HOUR + 6 * MINUTE)
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


# Trouble

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


@pytest.mark.parametrize("call", ["add_host", "set_inventory", "give_flavor"])
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
    "take_flavor",
    "delete_server",
    "delete_inventory",
    "delete_resource_class",
    "delete_server_group",
    "delete_flavor",
    "remove_host",
    "delete_aggregate",
]


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


# Changes


def test_before_the_start_everything_can_change_and_the_flavor_with_it(world):
    lease = world.lease(instances(2, vcpus=2, affinity=True), start=HOUR)
    group = lease.reservations[0].cloud_ids.values["server_group_id"]
    changed = world.resize(lease, amount=3, vcpus=4, memory_mb=8192, disk_gb=40, affinity=False)
    flavor = world.simulated.compute.flavor(id_of(lease))
    assert (flavor.vcpus, flavor.memory_mb, flavor.disk_gb) == (4, 8192, 40)
    (fresh,) = world.simulated.compute.server_groups(f"reservation:{id_of(lease)}")
    assert (fresh.policy, fresh.id != group) == ("anti-affinity", True)
    assert changed.reservations[0].cloud_ids.values["server_group_id"] == fresh.id
    assert flavor.extra_specs["affinity_id"] == fresh.id
    assert world.simulated.compute.aggregate(id_of(lease)).metadata["affinity_id"] == fresh.id
    assert promised(world, lease) == {"node-1": 1, "node-2": 1, "node-3": 1}

    changed = world.resize(lease, affinity=None)
    assert changed.reservations[0].cloud_ids.values["server_group_id"] is None
    assert world.simulated.compute.server_groups(f"reservation:{id_of(lease)}") == ()
    assert "affinity_id" not in world.simulated.compute.flavor(id_of(lease)).extra_specs
    assert "affinity_id" not in world.simulated.compute.aggregate(id_of(lease)).metadata


def test_a_change_before_the_start_that_the_cloud_does_not_follow_is_undone(world):
    lease = world.lease(instances(vcpus=2, affinity=False), start=HOUR)
    world.faults.fail_before("create_flavor", DOWN)
    with pytest.raises(CloudUnavailable):
        world.resize(lease, vcpus=4, affinity=True)
    undone = world.now(lease)
    assert (undone.status, undone.reservations[0].parameters.values["vcpus"]) == (LeaseStatus.PENDING, 2)
    assert world.simulated.compute.flavor(id_of(lease)).vcpus == 2
    (group,) = world.simulated.compute.server_groups(f"reservation:{id_of(lease)}")
    assert (group.id, group.policy) == (undone.reservations[0].cloud_ids.values["server_group_id"], "anti-affinity")
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE


def test_a_full_host_does_not_stand_in_the_way_of_a_legal_change(a_world):
    world = a_world(hosts=1)
    lease = world.lease(instances(8, vcpus=4), start=HOUR)
    world.resize(lease, amount=7)
    world.resize(lease, amount=16, vcpus=2)
    assert world.change(lease, end=NOON + 9 * HOUR).window.end == NOON + 9 * HOUR
    with pytest.raises(NotEnoughResources):
        world.resize(lease, amount=17)
    assert world.now(lease).status is LeaseStatus.PENDING


def test_an_active_reservation_grows_on_its_host_and_on_others(world):
    lease = world.lease(instances(2, vcpus=16, memory_mb=1024))
    world.run()
    before = promised(world, lease)
    grown = world.resize(lease, amount=5)
    assert (grown.status, grown.reservations[0].parameters.values["amount"]) == (LeaseStatus.ACTIVE, 5)
    after = promised(world, lease)
    assert sum(after.values()) == 5
    assert all(after[host] >= count for host, count in before.items())
    assert slots(world, lease) == after
    assert world.pool(id_of(lease)) == set(after)
    for _ in range(5):
        boot(world, lease)


def test_an_active_reservation_shrinks_by_the_slots_that_nobody_uses(world):
    lease = world.lease(instances(3, affinity=False))
    world.run()
    server = boot(world, lease)
    world.resize(lease, amount=1)
    assert promised(world, lease) == slots(world, lease) == {server.host: 1}
    assert world.pool(id_of(lease)) == {server.host}
    assert len(world.hosts_of(world.lease(a_host(2)))) == 2


def test_less_for_longer_is_at_no_moment_promised_beside_what_others_have_after_the_old_end(engine):
    world = World(engine, state=of_hosts({}), hosts=1)
    lease = world.lease(instances(6), hours=2)
    world.lease(instances(6), start=2 * HOUR)
    world.run()
    world.faults.on_call = lambda name, phase: check_promises(world.store, since=world.clock.now())
    change = ReservationChange(id_of(lease), {"amount": 2})
    assert world.change(lease, reservations=(change,), end=NOON + 4 * HOUR).status is LeaseStatus.ACTIVE
    world.faults.on_call = None
    assert promised(world, lease) == slots(world, lease) == {"node-1": 2}
    assert {a.window.end for a in world.store.calendar.of_lease(lease.id)} == {NOON + 4 * HOUR}


@pytest.mark.parametrize("name", ["set_inventory", "add_host"])
def test_growth_for_longer_that_fails_is_undone_to_the_old_amount_and_end(engine, name):
    world = World(engine, state=of_hosts({}, {}), hosts=2)
    lease = world.lease(instances(6, affinity=None), hours=2)
    world.run()
    before = world.store.calendar.of_lease(lease.id)
    world.faults.fail_before(name, DOWN)
    change = ReservationChange(id_of(lease), {"amount": 10})
    with pytest.raises(CloudUnavailable):
        world.change(lease, reservations=(change,), end=NOON + 4 * HOUR)
    world.clock.by(minutes=1)
    world.run()
    assert world.store.calendar.of_lease(lease.id) == before
    assert promised(world, lease) == slots(world, lease) == {"node-1": 6}


def test_the_undo_of_a_growth_leaves_a_server_alone_that_its_operator_has_moved(world):
    lease = world.lease(instances(1), hours=5)
    world.run()
    server = boot(world, lease)
    elsewhere = next(f"node-{n}" for n in (3, 2, 1) if f"node-{n}" != server.host)
    with world.simulated.change_state() as state:
        state.servers[server.id].host = elsewhere
    world.faults.fail_before("set_inventory", CloudRefused("no"), times=1)
    world.faults.fail_before("add_host", CloudRefused("no"), times=1)
    with pytest.raises(CloudRefused):
        world.resize(lease, amount=2)
    world.run()
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert [s.id for s in world.simulated.operators.list_servers()] == [server.id]


@pytest.mark.parametrize("missing", ["aggregate", "resource class"])
def test_what_somebody_took_away_during_a_growth_is_made_again_by_its_undo(world, missing):
    lease = world.lease(instances(1), hours=2)
    world.run()

    def take_away(call, phase):
        if (call, phase) == ("set_inventory", "before"):
            world.faults.on_call = None
            with world.simulated.change_state() as state:
                if missing == "aggregate":
                    state.aggregates = {k: a for k, a in state.aggregates.items() if a.name != id_of(lease)}
                else:
                    state.classes.remove(class_of(lease))
                    for totals in state.inventories.values():
                        totals.pop(class_of(lease), None)
            raise CloudRefused("no")

    world.faults.on_call = take_away
    with pytest.raises(CloudRefused):
        world.resize(lease, amount=8)
    restored = world.now(lease)
    assert restored.status is LeaseStatus.ACTIVE
    aggregate = world.simulated.compute.aggregate(id_of(lease))
    assert restored.reservations[0].cloud_ids.values["aggregate_id"] == aggregate.id
    assert set(aggregate.hosts) == set(promised(world, lease)) == set(slots(world, lease))
    boot(world, lease)


def test_an_undo_that_never_succeeds_does_not_keep_the_lease_from_its_end(world):
    lease = world.lease(instances(1), hours=2)
    world.run_to(NOON + 2 * HOUR - 2 * MINUTE)
    world.faults.fail_before("set_inventory", CloudRefused("no"), times=1000)
    with pytest.raises(CloudRefused):
        world.resize(lease, amount=8)
    world.run_to(NOON + 2 * HOUR - MINUTE)
    assert world.now(lease).status is LeaseStatus.UPDATING
    world.run_to(NOON + 2 * HOUR + 10 * MINUTE)
    ended = world.now(lease)
    assert ended.status is LeaseStatus.TERMINATED
    assert "not undone before the end of the lease: no" in ended.event(EventType.UPDATE).reason
    assert world.store.calendar.of_lease(lease.id) == ()
    nothing_is_left(world)


def test_what_waits_for_an_undo_asks_no_more_often_than_the_undo_is_tried(world):
    lease = world.lease(instances(1), hours=2)
    world.run()
    world.faults.fail_before("set_inventory", CloudRefused("no"), times=1000)
    with pytest.raises(CloudRefused):
        world.resize(lease, amount=8)
    world.run_to(NOON + HOUR)
    with counted(world.engine) as statements:
        world.run_to(NOON + HOUR + 40 * MINUTE)
    assert world.now(lease).event(EventType.BEFORE_END).reason == "the lease is UPDATING"
    # An attempt a minute, where a look four times a second would be 9 600 and their statements.
    assert statements.count < 40 * 40


def test_an_end_finds_what_the_reservation_left_on_a_host_that_it_was_moved_from(world):
    lease = world.lease(instances(1), hours=2)
    world.run()
    (name,) = slots(world, lease)
    with world.simulated.change_state() as state:
        for aggregate in state.aggregates.values():
            aggregate.hosts = [host for host in aggregate.hosts if host != name]
    host = next(h for h in world.manager.resources.all(HOST) if h.name == name)
    world.manager.resources.move(HOST, host.external_id, id_of(lease))
    assert set(promised(world, lease)) != {name}
    world.run_to(NOON + 2 * HOUR + MINUTE)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert slots(world, lease) == {}
    assert class_of(lease) not in world.simulated.placement.resource_classes()


def test_an_active_reservation_does_not_shrink_below_the_servers_that_use_it(world):
    lease = world.lease(instances(3, affinity=False))
    world.run()
    boot(world, lease), boot(world, lease)
    with pytest.raises(Conflict, match="2 servers use .* delete 1 of them"):
        world.resize(lease, amount=1)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert sum(promised(world, lease).values()) == sum(slots(world, lease).values()) == 3


def test_many_reservations_of_a_lease_shrink_together(world):
    lease = world.lease(*[instances(2, vcpus=1, memory_mb=64, disk_gb=1) for _ in range(8)])
    world.run()
    server = boot(world, lease)
    changes = tuple(ReservationChange(r.id, {"amount": 1}) for r in lease.reservations)
    assert world.change(lease, reservations=changes).status is LeaseStatus.ACTIVE
    assert sum(a.count for a in world.store.calendar.of_lease(lease.id)) == 8
    assert [s.id for s in world.simulated.operators.list_servers()] == [server.id]


def test_a_server_that_is_booted_while_its_slot_is_taken_away_stays_and_the_change_is_refused(world):
    lease = world.lease(instances(2, vcpus=2))
    world.run()
    booted = []

    def sneak(name, phase):
        if name == "set_inventory" and phase == "before" and not booted:
            booted.append(boot(world, lease))
            booted.append(boot(world, lease))

    world.faults.on_call = sneak
    with pytest.raises(Conflict, match="2 servers use the reserved capacity on host"):
        world.resize(lease, amount=1)
    world.faults.on_call = None
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert {s.id for s in world.simulated.operators.list_servers()} == {s.id for s in booted}
    (host,) = promised(world, lease)
    assert world.simulated.placement.reserved_capacity(host, class_of(lease)) == ReservedCapacity(2, 2)


def test_a_growth_that_the_cloud_refuses_is_undone(world):
    lease = world.lease(instances(1, affinity=False))
    world.run()
    before = promised(world, lease)
    world.faults.fail_after("set_inventory", CloudRefused("no"))
    with pytest.raises(CloudRefused):
        world.resize(lease, amount=3)
    world.run()
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert promised(world, lease) == slots(world, lease) == before
    assert world.pool(id_of(lease)) == set(before)
    assert world.now(lease).reservations[0].parameters.values["amount"] == 1


def test_reservations_of_a_lease_that_stay_on_a_host_need_room_for_all_of_them(a_world):
    world = a_world(hosts=1)  # 32 VCPUs
    lease = world.lease(instances(1, vcpus=12), instances(1, vcpus=12))
    world.run()
    world.lease(instances(1, vcpus=16), start=2 * HOUR)
    with pytest.raises(NotEnoughResources, match="too much of it is promised"):
        world.change(lease, end=NOON + 3 * HOUR)
    check_promises(world.store, since=NOON)


def test_what_servers_are_made_of_does_not_change_while_there_may_be_some(world):
    lease = world.lease(instances(2))
    world.run()
    for change in ({"vcpus": 4}, {"memory_mb": 4096}, {"disk_gb": 1}, {"affinity": True}):
        with pytest.raises(Conflict, match=next(iter(change))):
            world.resize(lease, **change)
    assert world.resize(lease, vcpus=2, amount=2, affinity="None").status is LeaseStatus.ACTIVE
    with pytest.raises(InvalidInput, match="amount"):
        world.resize(lease, amount=0)
    with pytest.raises(NotEnoughResources):
        world.resize(lease, amount=10**6)
    assert world.now(lease).status is LeaseStatus.ACTIVE


def test_an_active_reservation_is_prolonged_and_shortened(world):
    lease = world.lease(instances(3, affinity=False))
    world.run()
    before = promised(world, lease)
    world.change(lease, end=NOON + 5 * HOUR)
    assert promised(world, lease) == before
    world.lease(a_host(3), start=5 * HOUR)
    with pytest.raises(NotEnoughResources, match="too much of it is promised"):
        world.change(lease, end=NOON + 6 * HOUR)
    world.change(lease, end=NOON + 3 * HOUR)
    world.run_to(NOON + 3 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert (world.simulated.compute.aggregate(id_of(lease)), slots(world, lease)) == (None, {})


# Before the end


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
