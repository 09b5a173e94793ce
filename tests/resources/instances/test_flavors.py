# SPDX-License-Identifier: Apache-2.0
"""Reservations of instances of a flavor, from request to release, and beside those of other types."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from blazar.clouds.ports.compute import Flavor
from blazar.context import current
from blazar.model.base.errors import CloudUnavailable, Conflict, InvalidInput, NotEnoughResources, NotFound
from blazar.model.leases.requests import Actor, ReservationChange
from blazar.model.leases.states import LeaseStatus
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST
from blazar.resources.hosts.options import HostSettings
from blazar.resources.instances.flavor import FlavorInstance
from tests.resources.instances.steps import boot, class_of, id_of, promised, slots
from tests.world import NOON, PROJECT, World, a_host, flavored, instances, of_hosts

HOUR = timedelta(hours=1)
SMALL = Flavor("small", "m1.small", 2, 2048, 10, public=True)
FAST = Flavor("fast", "c1.fast", 4, 1024, 0, public=True, extra_specs={"trait:HW_CPU_X86_AVX2": "required"})


@pytest.fixture
def shop(a_world):
    """Make a world with flavors to choose from."""

    def make(**requests) -> World:
        world = a_world(**requests)
        for flavor in (SMALL, FAST):
            world.simulated.operators.offer_flavor(flavor)
        return world

    return make


@pytest.fixture
def world(shop):
    return shop()


def offer(world: World, id: str = "odd", *, projects=None, **more) -> None:
    flavor = {"vcpus": 1, "memory_mb": 512, "disk_gb": 1, "public": projects is None, **more}
    world.simulated.operators.offer_flavor(Flavor(id, f"name of {id}", **flavor), projects=projects or ())


def nothing_is_left(world: World) -> None:
    with world.simulated.inspect() as state:
        assert not [id for id, flavor in state.flavors.items() if flavor.name.startswith("reservation:")]
        assert (state.groups, state.classes) == ({}, [])
        assert not any(state.inventories.values())
        assert {a.name for a in state.aggregates.values()} <= {"freepool", "az-1", "az-2"}


# Before the start


def test_a_type_that_looks_into_the_cloud_knows_who_asks(world, monkeypatch):
    offer(world)
    askers, resolve = [], FlavorInstance.resolve

    def watched(self, given, **more):
        askers.append(current().user_id)
        return resolve(self, given, **more)

    monkeypatch.setattr(FlavorInstance, "resolve", watched)
    lease = world.lease(flavored(1, "small"), start=HOUR)
    changes = (ReservationChange(id_of(lease), {"flavor_id": "odd"}),)
    world.change(lease, reservations=changes, asked_by=Actor("root", "operators"))
    changes = (ReservationChange(id_of(lease), {"flavor_id": "small"}),)
    world.change(lease, reservations=changes)
    assert askers == [lease.user_id, "root", lease.user_id]
    assert current().user_id is None


def test_the_flavor_of_a_reservation_is_its_source_with_all_specs_and_those_of_the_reservation(world):
    specs = {"hw:numa_nodes": "1", "trait:COMPUTE_X": "forbidden"}
    offer(world, vcpus=3, memory_mb=1000, disk_gb=7, ephemeral_gb=2, swap_mb=512, rxtx_factor=2.5, extra_specs=specs)
    lease = world.lease(flavored(2, "odd", affinity=False), start=HOUR)
    made = world.simulated.compute.flavor(id_of(lease))
    (group,) = world.simulated.compute.server_groups(f"reservation:{id_of(lease)}")
    assert made == Flavor(
        id_of(lease),
        f"reservation:{id_of(lease)}",
        3,
        1000,
        7,
        2,
        512,
        {
            **specs,
            "aggregate_instance_extra_specs:reservation": id_of(lease),
            f"resources:{class_of(lease)}": "1",
            "affinity_id": group.id,
        },
        2.5,
        public=False,
    )
    assert group.policy == "anti-affinity"
    assert world.simulated.compute.flavor_access(id_of(lease)) == frozenset()
    (per_instance,) = {a.per_instance for a in world.store.calendar.of_lease(lease.id)}
    assert dict(per_instance) == {"VCPU": 3, "MEMORY_MB": 1000, "DISK_GB": 10}


def test_a_reservation_keeps_its_source_as_it_was(world):
    lease = world.lease(flavored(1), start=HOUR)
    parameters = lease.reservations[0].parameters.values
    assert {key: parameters[key] for key in ("flavor_id", "amount", "vcpus", "memory_mb", "disk_gb", "affinity")} == {
        "flavor_id": "small",
        "amount": 1,
        "vcpus": 2,
        "memory_mb": 2048,
        "disk_gb": 10,
        "affinity": None,
    }
    shown = json.loads(parameters["resource_properties"])
    assert (shown["id"], shown["ram"], shown["OS-FLV-EXT-DATA:ephemeral"], shown["swap"]) == ("small", 2048, 0, "")
    world.simulated.compute.delete_flavor("small")
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert boot(world, lease)


def test_a_flavor_that_the_project_may_not_use_does_not_exist_for_it(world):
    offer(world, "theirs", projects=["chemistry"])
    offer(world, "ours", projects=["chemistry", PROJECT])
    for flavor_id in ("theirs", "nothing", 7):
        with pytest.raises(NotFound, match=f'flavor_id: there is no flavor "{flavor_id}"'):
            world.lease(flavored(1, flavor_id), start=HOUR)
    world.lease(flavored(1, "ours"), start=HOUR)
    offer(world, "7")
    world.lease(flavored(1, 7), start=HOUR)


def test_the_flavor_of_a_reservation_cannot_be_reserved_again(world):
    lease = world.lease(flavored(1))
    world.run()
    with pytest.raises(InvalidInput, match="the flavor of a reservation"):
        world.lease(flavored(1, id_of(lease)), start=HOUR)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"flavor_id": ""}, "flavor_id"),
        ({"flavor_id": None}, "flavor_id"),
        ({"flavor_id": True}, "flavor_id"),
        ({"flavor_id": ["small"]}, "flavor_id"),
        ({"flavor_id": "../servers"}, "flavor_id"),
        ({"flavor_id": ".."}, "flavor_id"),
        ({"flavor_id": "x" * 300}, "flavor_id"),
        ({"amount": 0}, "amount"),
        ({"amount": 2**40}, "amount"),
        ({"affinity": "perhaps"}, "affinity"),
        ({"before_end": "migration"}, "migration"),
        ({"resource_properties": '[">", "$vcpus", "1"]'}, "resource_properties"),
        ({"resource_properties": "x"}, "resource_properties"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_and_the_field_named(world, wrong, says):
    with pytest.raises(InvalidInput, match=says):
        world.lease(flavored(**{"amount": 1, **wrong}))
    nothing_is_left(world)


@pytest.mark.parametrize("empty", ["", None, "[]", []])
def test_an_empty_requirement_is_none(world, empty):
    assert world.lease(flavored(1, resource_properties=empty), start=HOUR)


def test_a_flavor_that_cannot_be_promised_is_refused_before_anything_is_made(world):
    for number, specs in enumerate(({"resources1:VGPU": "0"}, {"trait:X": "perhaps"}, {"resources:VCPU": "9" * 5000})):
        offer(world, f"odd-{number}", extra_specs=specs)
        with pytest.raises(InvalidInput, match="use another flavor"):
            world.lease(flavored(1, f"odd-{number}"))
    nothing_is_left(world)


def test_the_cloud_is_asked_before_the_calendar_and_a_failure_leaves_nothing(world):
    world.faults.fail_before("flavor", CloudUnavailable("down"))
    with pytest.raises(CloudUnavailable):
        world.lease(flavored(1))
    assert world.store.leases.of_project(None) == ()
    nothing_is_left(world)


# Room


def test_ratios_reserved_amounts_dedicated_cpus_and_gpus_count(shop):
    state = of_hosts(
        {"inventories": {"VCPU": {"allocation_ratio": 2.0}, "MEMORY_MB": {"reserved": 65536 - 20480}}},
        {"inventories": {"VCPU": {"total": 0}, "PCPU": {"total": 8}}},
        {"inventories": {"CUSTOM_GPU": {"total": 3}, "VCPU": {"reserved": 15}}},
    )
    world = shop(state=state)
    offer(world, "pinned", vcpus=2, extra_specs={"hw:cpu_policy": "dedicated"})
    offer(world, "gpu", extra_specs={"resources:CUSTOM_GPU": "2"})
    offer(world, "four", vcpus=4, memory_mb=1024)
    assert promised(world, world.lease(flavored(4, "pinned"))) == {"node-2": 4}
    with pytest.raises(NotEnoughResources):
        world.lease(flavored(1, "pinned"))
    assert promised(world, world.lease(flavored(1, "gpu"))) == {"node-3": 1}
    with pytest.raises(NotEnoughResources):
        world.lease(flavored(1, "gpu"))
    assert promised(world, world.lease(flavored(8, "four"))) == {"node-1": 8}
    with pytest.raises(NotEnoughResources):
        world.lease(instances(1, vcpus=1, memory_mb=1))


def test_a_unit_is_never_larger_than_a_host_lets_one_be(shop):
    world = shop(state=of_hosts({"inventories": {"VCPU": {"allocation_ratio": 4.0}}}), hosts=1)
    for ask in (instances(1, vcpus=17), flavored(1, "big")):
        offer(world, "big", vcpus=17)
        with pytest.raises(NotEnoughResources):
            world.lease(ask)
    assert promised(world, world.lease(instances(4, vcpus=16))) == {"node-1": 4}


def test_servers_go_where_their_traits_are(shop):
    world = shop(state=of_hosts({}, {"traits": ["HW_CPU_X86_AVX2"]}, {}), hosts=3)
    assert promised(world, world.lease(flavored(4, "fast"))) == {"node-2": 4}
    with pytest.raises(NotEnoughResources, match="1 hosts match"):
        world.lease(flavored(1, "fast"))
    offer(world, "slow", extra_specs={"trait:HW_CPU_X86_AVX2": "forbidden"})
    assert set(promised(world, world.lease(flavored(2, "slow", affinity=False)))) == {"node-1", "node-3"}


@pytest.mark.parametrize(("affinity", "hosts"), [(True, 1), (False, 3)])
def test_affinity_means_what_it_means_for_other_instances(world, affinity, hosts):
    for ask in (flavored(3, affinity=affinity), instances(3, affinity=affinity)):
        lease = world.lease(ask)
        assert len(promised(world, lease)) == hosts
        (group,) = world.simulated.compute.server_groups(f"reservation:{id_of(lease)}")
        assert group.policy == ("affinity" if affinity else "anti-affinity")


def test_all_types_share_one_calendar(world):
    kinds = [world.lease(instances(1, affinity=True)), world.lease(flavored(1))]
    assert len(set().union(*(world.hosts_of(lease) for lease in kinds))) == 1
    assert len(world.hosts_of(world.lease(a_host(2)))) == 2
    with pytest.raises(NotEnoughResources):
        world.lease(a_host(1))
    mixed = world.lease(a_host(1), flavored(1), instances(1), start=4 * HOUR)
    assert len(world.hosts_of(mixed)) == 2


def test_capabilities_of_a_host_change_whatever_flavor_is_reserved_on_it(shop):
    world = shop(state=of_hosts({}), hosts=1)
    world.manager.resources.change(HOST, "1", ResourceChange({"rack": "r1", "ram": "x"}))
    world.lease(flavored(1), start=HOUR)
    assert (
        world.manager.resources.change(HOST, "1", ResourceChange({"rack": "r2", "ram": "y"})).capabilities["rack"]
        == "r2"
    )


# Life


def test_from_request_to_release(world):
    lease = world.lease(flavored(3, before_end="snapshot"))
    world.run()
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert slots(world, lease) == promised(world, lease)
    servers = [boot(world, lease) for _ in range(3)]
    with pytest.raises(Conflict):
        boot(world, lease)
    world.run_to(NOON + 2 * HOUR + timedelta(minutes=1))
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert len(world.simulated.operators.images()) == len(servers)
    assert world.simulated.operators.list_servers() == ()
    nothing_is_left(world)


def test_a_lease_that_is_deleted_before_its_start_leaves_nothing(world):
    lease = world.lease(flavored(3, affinity=True), start=HOUR)
    world.manager.leases.delete(lease.id)
    nothing_is_left(world)


def test_a_creation_that_fails_leaves_nothing(world):
    for call in ("create_flavor", "create_aggregate", "create_resource_class", "create_server_group"):
        world.faults.fail_before(call, CloudUnavailable("down"))
        with pytest.raises(CloudUnavailable):
            world.lease(flavored(1, affinity=True), start=HOUR)
        world.run()
        nothing_is_left(world)


# Changes


def test_everything_changes_before_the_start(world):
    lease = world.lease(flavored(2, affinity=True), start=HOUR)
    (before,) = world.simulated.compute.server_groups(f"reservation:{id_of(lease)}")
    offer(world, "other", vcpus=5, extra_specs={"a": "1"})
    changed = world.resize(lease, flavor_id="other", amount=3, affinity=False, before_end="snapshot")
    parameters = changed.reservations[0].parameters.values
    assert (parameters["flavor_id"], parameters["vcpus"], parameters["amount"]) == ("other", 5, 3)
    (after,) = world.simulated.compute.server_groups(f"reservation:{id_of(lease)}")
    assert (after.policy, after.id != before.id) == ("anti-affinity", True)
    flavor = world.simulated.compute.flavor(id_of(lease))
    assert (flavor.vcpus, flavor.extra_specs["a"], flavor.extra_specs["affinity_id"]) == (5, "1", after.id)
    assert changed.reservations[0].cloud_ids.values["server_group_id"] == after.id
    assert sorted(promised(world, lease).values()) == [1, 1, 1]
    world.resize(lease, affinity=None)
    assert world.simulated.compute.server_groups(f"reservation:{id_of(lease)}") == ()
    assert "affinity_id" not in world.simulated.compute.flavor(id_of(lease)).extra_specs


def test_specs_of_a_former_source_are_gone_though_its_sizes_are_the_same(world):
    offer(world, "one", extra_specs={"a": "1", "b": "1"})
    offer(world, "two", extra_specs={"b": "2"})
    lease = world.lease(flavored(1, "one"), start=HOUR)
    world.resize(lease, flavor_id="two")
    specs = world.simulated.compute.flavor(id_of(lease)).extra_specs
    assert (specs.get("a"), specs["b"], len(specs)) == (None, "2", 3)


def test_a_source_is_not_read_again_unless_another_is_named(world):
    lease = world.lease(flavored(1), start=HOUR)
    world.simulated.compute.delete_flavor("small")
    shown = {**lease.reservations[0].parameters.values, "amount": 2}
    for flavor_id in ("small", id_of(lease)):
        changed = world.resize(lease, **{**shown, "flavor_id": flavor_id})
        assert changed.reservations[0].parameters.values["resource_properties"] == shown["resource_properties"]
    with pytest.raises(NotFound):
        world.resize(lease, flavor_id="nothing")
    assert world.now(lease).status is LeaseStatus.PENDING


def test_what_follows_from_the_flavor_is_not_changed_by_itself(world):
    lease = world.lease(flavored(1), start=HOUR)
    for key in ("vcpus", "memory_mb", "disk_gb"):
        with pytest.raises(InvalidInput, match=f"{key} is what the flavor says"):
            world.resize(lease, **{key: 1})
    with pytest.raises(InvalidInput, match="resource_properties"):
        world.resize(lease, resource_properties='["==", "$vcpus", "1"]')


def test_an_active_reservation_grows_and_shrinks_and_keeps_flavor_and_affinity(world):
    lease = world.lease(flavored(2))
    world.run()
    for _ in range(2):
        boot(world, lease)
    assert sum(slots(world, world.resize(lease, amount=4)).values()) == 4
    boot(world, lease)
    with pytest.raises(Conflict, match="delete 1 of them"):
        world.resize(lease, amount=2)
    world.resize(lease, amount=3)
    assert promised(world, lease) == slots(world, lease)
    for change in ({"flavor_id": "fast"}, {"affinity": True}):
        with pytest.raises(Conflict, match="only amount and before_end can"):
            world.resize(lease, **change)
    world.resize(lease, flavor_id="small", affinity="None", before_end="none")
    world.change(lease, end=NOON + 3 * HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE


def test_a_full_host_does_not_stand_in_the_way_of_a_legal_change(shop):
    world = shop(state=of_hosts({}), hosts=1)
    lease = world.lease(flavored(8), start=HOUR)
    world.resize(lease, amount=7)
    offer(world, "half", vcpus=1)
    world.resize(lease, flavor_id="half", amount=16)
    world.change(lease, end=NOON + 9 * HOUR)
    with pytest.raises(NotEnoughResources):
        world.resize(lease, amount=17)
    world.run_to(NOON + HOUR)
    world.resize(lease, amount=9)
    world.resize(lease, amount=16)
    assert world.now(lease).status is LeaseStatus.ACTIVE


def test_a_growth_that_the_cloud_refuses_is_undone(world):
    lease = world.lease(flavored(1))
    world.run()
    before = slots(world, lease)
    world.faults.fail_before("set_inventory", CloudUnavailable("down"))
    with pytest.raises(CloudUnavailable):
        world.resize(lease, amount=4)
    world.run()
    assert world.now(lease).reservations[0].parameters.values["amount"] == 1
    assert slots(world, lease) == promised(world, lease) == before


def test_a_default_that_only_hosts_can_do_comes_to_a_notification(shop):
    world = shop(host_settings=HostSettings(before_end="migration"))
    lease = world.lease(flavored(1))
    world.run_to(NOON + HOUR)
    assert "lease.event.before_end_lease" in world.notifier.types
    assert world.now(lease).status is LeaseStatus.ACTIVE
