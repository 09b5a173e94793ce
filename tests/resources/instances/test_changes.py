# SPDX-License-Identifier: Apache-2.0
"""Changes of amounts, sizes and dates, before the start and in use."""

from __future__ import annotations

import pytest

from blazar.clouds.ports.placement import ReservedCapacity
from blazar.model.base.errors import CloudRefused, CloudUnavailable, Conflict, InvalidInput, NotEnoughResources
from blazar.model.leases.requests import ReservationChange
from blazar.model.leases.states import EventType, LeaseStatus
from blazar.model.resources.resource import HOST
from tests.promises import check_promises
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
from tests.statements import counted
from tests.world import NOON, World, a_host, instances, of_hosts


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


@pytest.mark.slow
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
    with pytest.raises(NotEnoughResources, match="too little of it is free"):
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
    with pytest.raises(NotEnoughResources, match="too little of it is free"):
        world.change(lease, end=NOON + 6 * HOUR)
    world.change(lease, end=NOON + 3 * HOUR)
    world.run_to(NOON + 3 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert (world.simulated.compute.aggregate(id_of(lease)), slots(world, lease)) == (None, {})
