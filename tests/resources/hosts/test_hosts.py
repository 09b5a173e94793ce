# SPDX-License-Identifier: Apache-2.0
"""Hosts entering, changing and leaving."""

from datetime import timedelta

import pytest

from blazar.clouds.simulated import of_size
from blazar.model.base.errors import (
    CloudUnavailable,
    Conflict,
    InvalidInput,
    NotEnoughResources,
    NotFound,
    StoreUnavailable,
)
from blazar.model.leases.requests import Actor, ReservationChange
from blazar.model.leases.states import LeaseStatus
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST
from tests.observed import ObservedStore, before, failing
from tests.world import NOON, World, a_host, host_request, instances, of_hosts


@pytest.fixture
def bare(a_world):
    return a_world(hosts=12, register=False)


def test_a_registered_host_is_in_the_freepool_and_has_a_provider(bare):
    host = bare.register("node-1", gpu="A100")
    assert (host.external_id, host.name, host.capabilities) == ("1", "node-1", {"gpu": "A100"})
    assert bare.pool() == {"node-1"}
    assert bare.simulated.placement.reservation_provider("node-1")


def test_node_1_is_not_node_10(bare):
    assert bare.register("node-1").external_id == "1"
    assert bare.register("node-10").external_id == "10"
    with pytest.raises(NotFound):
        bare.register("node")


def test_the_id_wins_over_the_name(bare):
    assert bare.manager.resources.register(HOST, host_request(name="node-1", id="7", capabilities={})).name == "node-7"


def test_a_host_can_be_registered_once(bare):
    bare.register("node-1")
    with pytest.raises(Conflict, match="registered already"):
        bare.register("node-1")
    assert bare.pool() == {"node-1"}


def test_a_host_that_runs_servers_is_refused(bare):
    bare.simulated.users.boot_server("busy", project_id="p", user_id="u", host="node-1")
    with pytest.raises(Conflict, match="runs 1 server"):
        bare.register("node-1")
    assert bare.pool() == frozenset()
    assert bare.simulated.placement.reservation_provider("node-1") is None


def test_a_capability_with_a_key_that_is_too_long_has_no_side_effects(bare):
    with pytest.raises(InvalidInput, match="Extra capability key too long"):
        bare.register("node-1", **{"k" * 65: "v"})
    assert bare.pool() == frozenset()


def test_registration_can_be_repeated_after_any_failure(bare):
    for call in ("create_reservation_provider", "add_host"):
        for plan in (bare.faults.fail_before, bare.faults.fail_after):
            plan(call, CloudUnavailable("lost"))
            with pytest.raises(CloudUnavailable):
                bare.register("node-1")
    assert bare.register("node-1").name == "node-1"
    assert bare.pool() == {"node-1"}


def test_a_database_that_fails_leaves_the_cloud_as_it_was(bare):
    gone = before("resources.add", failing(StoreUnavailable("gone")))
    bare.manager = bare.another_manager(store=ObservedStore(bare.store, gone))
    with pytest.raises(StoreUnavailable):
        bare.register("node-1")
    assert bare.pool() == frozenset()


def test_a_cloud_without_a_freepool_is_told_how_to_get_one(a_world):
    world = a_world(hosts=1, register=False)
    world.simulated.compute.delete_aggregate(1)
    with pytest.raises(NotFound, match="create it"):
        world.register("node-1")


def test_a_host_leaves_and_may_come_back(bare):
    host = bare.register("node-1", gpu="A100")
    bare.manager.resources.unregister(HOST, host.external_id)
    assert bare.manager.resources.all(HOST) == ()
    assert bare.pool() == frozenset()
    provider = bare.simulated.placement.reservation_provider("node-1")
    assert bare.register("node-1").capabilities == {}
    assert bare.simulated.placement.reservation_provider("node-1") == provider


def test_a_host_that_leaves_keeps_its_provider_because_nova_cannot_bear_to_see_it_vanish(bare):
    host = bare.register("node-1")
    provider = bare.simulated.placement.reservation_provider("node-1")
    bare.manager.resources.unregister(HOST, host.external_id)
    assert bare.simulated.placement.reservation_provider("node-1") == provider


def test_a_host_that_is_promised_cannot_leave(world):
    lease = world.lease(a_host(3), start=timedelta(days=3))
    with pytest.raises(Conflict, match=lease.id):
        world.manager.resources.unregister(HOST, "1")
    world.manager.leases.delete(lease.id)
    world.manager.resources.unregister(HOST, "1")


def test_a_removal_that_fails_half_way_leaves_the_host_as_it_was_or_can_be_repeated(world):
    world.faults.fail_before("remove_host", CloudUnavailable("lost"))
    with pytest.raises(CloudUnavailable):
        world.manager.resources.unregister(HOST, "1")
    assert world.manager.resources.one(HOST, "1").reservable
    assert world.pool() == {"node-1", "node-2", "node-3"}
    world.manager.resources.unregister(HOST, "1")
    assert world.pool() == {"node-2", "node-3"}


def test_capabilities_are_added_changed_and_taken_away(world):
    world.manager.resources.change(HOST, "1", ResourceChange({"gpu": "A100", "rack": "r1"}))
    changed = world.manager.resources.change(HOST, "1", ResourceChange({"gpu": "H100", "rack": None}))
    assert changed.capabilities == {"gpu": "H100"}


def test_a_capability_that_a_live_reservation_asks_for_cannot_be_changed(world):
    world.manager.resources.change(HOST, "1", ResourceChange({"gpu": "A100", "rack": "r1"}))
    lease = world.lease(a_host(needs='["==", "$gpu", "A100"]'), start=timedelta(hours=1))
    for value in ("H100", None):
        with pytest.raises(Conflict, match="gpu cannot be changed"):
            world.manager.resources.change(HOST, "1", ResourceChange({"gpu": value, "rack": "r2"}))
    assert world.manager.resources.one(HOST, "1").capabilities == {"gpu": "A100", "rack": "r1"}
    world.manager.resources.change(HOST, "1", ResourceChange({"rack": "r2"}))
    world.manager.leases.delete(lease.id)
    world.manager.resources.change(HOST, "1", ResourceChange({"gpu": "H100"}))


@pytest.mark.parametrize("who", ["a new lease", "a lease that is changed"])
def test_a_capability_that_is_asked_for_in_the_last_moment_cannot_be_changed(world, who):
    world.manager.resources.change(HOST, "1", ResourceChange({"gpu": "A100"}))
    needs = '["==", "$gpu", "A100"]'
    kept = world.lease(a_host(3), start=timedelta(hours=1)) if who == "a lease that is changed" else None

    def late():
        if kept is None:
            world.lease(a_host(needs=needs), start=timedelta(hours=1))
        else:
            world.resize(kept, min=1, max=1, resource_properties=needs)

    manager = world.another_manager(store=ObservedStore(world.store, before("resources.change", late)))
    with pytest.raises(Conflict, match="gpu cannot be changed"):
        manager.resources.change(HOST, "1", ResourceChange({"gpu": None}))
    assert world.manager.resources.one(HOST, "1").capabilities == {"gpu": "A100"}


def test_a_lease_that_asks_for_a_capability_in_the_moment_in_which_it_changes_is_refused(world):
    world.manager.resources.change(HOST, "1", ResourceChange({"gpu": "A100"}))
    lease = world.lease(a_host(3), start=timedelta(hours=1))
    other = world.manager
    late = before("bookings.commit", lambda: other.resources.change(HOST, "1", ResourceChange({"gpu": "H100"})))
    world.manager = world.another_manager(store=ObservedStore(world.store, late))
    with pytest.raises(NotEnoughResources):
        world.resize(lease, min=1, max=1, resource_properties='["==", "$gpu", "A100"]')
    assert world.now(lease) == lease


def test_properties_show_values_and_can_be_private(world):
    world.manager.resources.change(HOST, "1", ResourceChange({"gpu": "A100", "rack": "r1"}))
    world.manager.resources.change(HOST, "2", ResourceChange({"gpu": "H100"}))
    world.manager.resources.set_property(HOST, "rack", private=True)
    shown = world.manager.resources.properties(HOST, include_private=False)
    assert [(p.property.name, p.values) for p in shown] == [("gpu", ("A100", "H100"))]
    assert [p.property.name for p in world.manager.resources.properties(HOST, include_private=True)] == ["gpu", "rack"]
    with pytest.raises(NotFound):
        world.manager.resources.set_property(HOST, "nothing", private=True)


def test_requirements_compare_numbers_as_numbers_and_refuse_what_no_host_has(world):
    world.manager.resources.change(HOST, "1", ResourceChange({"gpus": "16"}))
    world.manager.resources.change(HOST, "2", ResourceChange({"gpus": "8"}))
    lease = world.lease(a_host(1, 9, needs='[">=", "$gpus", "10"]'))
    assert world.hosts_of(lease) == {"node-1"}
    with pytest.raises(InvalidInput, match=r"\$colour"):
        world.lease(a_host(needs='["==", "$colour", "red"]'))
    with pytest.raises(InvalidInput, match=r"\$trust_id"):
        world.lease(a_host(needs='["==", "$trust_id", "x"]'))


def test_a_requirement_never_meets_text_with_text_where_numbers_are_told(world):
    for host, gpus in (("1", "16"), ("2", "8"), ("3", "100")):
        world.manager.resources.change(HOST, host, ResourceChange({"gpus": gpus}))
    assert world.hosts_of(world.lease(a_host(1, 9, needs='[">=", "$gpus", "8"]'))) == {"node-1", "node-2", "node-3"}


def test_a_search_is_silent(world, capfd):
    world.manager.resources.change(HOST, "1", ResourceChange({"gpus": "16"}))
    world.lease(a_host(needs='["and", [">=", "$gpus", "10"], [">=", "$vcpus", "1"]]'))
    assert tuple(capfd.readouterr()) == ("", "")


PRIVATE = r"\$rack, which no host has"


def test_a_private_capability_can_be_asked_for_by_operators_only(world):
    world.manager.resources.change(HOST, "1", ResourceChange({"rack": "r1", "gpu": "A100"}))
    in_rack = a_host(needs='["and", ["==", "$gpu", "A100"], ["==", "$rack", "r1"]]')
    world.manager.resources.set_property(HOST, "rack", private=True)
    with pytest.raises(InvalidInput, match=PRIVATE):
        world.lease(in_rack)
    with pytest.raises(InvalidInput, match=PRIVATE):
        world.lease(instances(needs='["!=", "$rack", "r1"]'))
    assert world.hosts_of(world.lease(in_rack, operator=True)) == {"node-1"}
    world.manager.resources.set_property(HOST, "rack", private=False)
    assert world.hosts_of(world.lease(in_rack, start=timedelta(hours=9))) == {"node-1"}


def test_what_was_granted_with_a_capability_can_still_be_changed_when_that_is_private(world):
    world.manager.resources.change(HOST, "1", ResourceChange({"rack": "r1", "hall": "h1"}))
    lease = world.lease(a_host(needs='["==", "$rack", "r1"]'), start=timedelta(hours=1))
    for name in ("rack", "hall"):
        world.manager.resources.set_property(HOST, name, private=True)
    moved = world.change(lease, end=NOON + timedelta(hours=9))
    assert moved.window.end == NOON + timedelta(hours=9)
    in_hall = ReservationChange(lease.reservations[0].id, {"resource_properties": '["==", "$hall", "h1"]'})
    with pytest.raises(InvalidInput, match=r"\$hall, which no host has"):
        world.change(lease, reservations=(in_hall,))
    world.change(lease, reservations=(in_hall,), asked_by=Actor("root", "operators", operator=True))
    assert world.hosts_of(lease) == {"node-1"}


def test_allocations_are_listed_by_host(world):
    lease = world.lease(a_host(2), start=timedelta(hours=1))
    listed = {a.resource.name: [x.lease_id for x in a.allocations] for a in world.manager.resources.allocations(HOST)}
    assert sorted(map(len, listed.values())) == [0, 1, 1]
    narrowed = world.manager.resources.allocations(HOST, lease_id="nobodys")
    assert len(narrowed) == 3
    assert all(not a.allocations for a in narrowed)
    with pytest.raises(NotFound):
        world.manager.resources.allocations(HOST, resource_id="99")
    world.run_to(NOON + timedelta(hours=9))
    assert all(not a.allocations for a in world.manager.resources.allocations(HOST, lease_id=lease.id))


def test_hosts_are_the_same_on_every_database(engine):
    world = World(engine, hosts=2)
    world.manager.resources.change(HOST, "1", ResourceChange({"gpu": "ä" * 1000, "Gpu": "1"}))
    assert world.manager.resources.one(HOST, "1").capabilities == {"Gpu": "1", "gpu": "ä" * 1000}
    with pytest.raises(Conflict):
        world.register("node-1")
    world.manager.resources.unregister(HOST, "1")
    world.register("node-1")
    assert [host.name for host in world.manager.resources.all(HOST)] == ["node-2", "node-1"]


def test_a_host_has_the_capacity_that_placement_tells_and_shows_the_sizes_of_its_hypervisor(a_world):
    inventories = {"VCPU": {"allocation_ratio": 4.0}, "MEMORY_MB": {"reserved": 512}, "CUSTOM_GPU": {"total": 2}}
    world = a_world(state=of_hosts({"inventories": inventories, "traits": ["HW_CPU_X86_AVX2"]}), hosts=1)
    host = world.manager.resources.one(HOST, "1")
    assert dict(host.capacity) == {"VCPU": 64, "MEMORY_MB": 65024, "DISK_GB": 400, "CUSTOM_GPU": 2}
    assert host.traits == {"HW_CPU_X86_AVX2"}
    assert host.limits["VCPU"].most == 16
    assert (host.attributes["vcpus"], host.attributes["memory_mb"]) == (16, 65536)


def test_a_host_that_placement_does_not_know_is_not_registered(bare):
    unknown_to_placement(bare, "node-1")
    with pytest.raises(NotFound, match="no resource provider node-1"):
        bare.register("node-1")
    assert bare.pool() == frozenset()


def unknown_to_placement(world, name):
    """Let Placement not know a host of Nova when it is asked the next time."""
    host_id = world.simulated.compute.hypervisor(hostname=name).id
    kept = []

    def hook(called, when):
        if called == "inventories":
            with world.simulated.change_state() as state:
                if when == "before":
                    kept.append(state.hosts.pop(host_id))
                else:
                    world.faults.on_call = None
                    state.hosts[host_id] = kept.pop()

    world.faults.on_call = hook


def resize(world, name, **sizes):
    with world.simulated.change_state() as state:
        host = next(h for h in state.hosts.values() if h.name == name)
        for size, value in sizes.items():
            setattr(host, size, value)


def test_a_refresh_writes_what_the_cloud_tells_by_now(world):
    before = {host.external_id: host for host in world.manager.resources.all(HOST)}
    assert world.refresh_hosts() == frozenset()
    resize(world, "node-1", vcpus=4, traits=["HW_CPU_X86_AVX2"])
    resize(world, "node-3", memory_mb=1024)
    world.clock.by(minutes=1)
    host = world.manager.resources.refresh(HOST, "1")
    assert (host.attributes["vcpus"], host.capacity.get("VCPU"), host.traits) == (4, 4, {"HW_CPU_X86_AVX2"})
    assert host.updated_at == world.clock.now()
    assert world.refresh_hosts() == {"3"}
    assert world.manager.resources.one(HOST, "3").capacity.get("MEMORY_MB") == 1024
    assert world.manager.resources.one(HOST, "2") == before["2"]


def test_a_poll_costs_three_calls_for_any_number_of_hosts(world):
    world.faults.calls.clear()
    world.refresh_hosts()
    assert dict(world.faults.calls) == {"hypervisors": 1, "aggregates": 1, "inventories": 1}
    world.refresh_hosts()
    assert world.faults.calls["inventories"] == 2


def test_a_host_that_the_cloud_does_not_tell_of_stays_as_it_was(world):
    hosts = world.manager.resources.all(HOST)
    unknown_to_placement(world, "node-1")
    assert world.manager.resources.refresh(HOST, "1") == hosts[0]
    for host in hosts:
        world.simulated.operators.host_vanishes(host.name)
    assert world.refresh_hosts() == frozenset()
    assert world.manager.resources.all(HOST) == hosts
    with pytest.raises(NotFound):
        world.manager.resources.refresh(HOST, "99")


def test_a_host_that_shrinks_below_what_is_promised_breaks_nothing(a_world):
    world = a_world(hosts=1)  # 32 VCPUs
    running = world.lease(instances(8, vcpus=2))
    later = world.lease(instances(16, vcpus=2), start=timedelta(hours=4))
    world.run()
    resize(world, "node-1", vcpus=4)
    world.refresh_hosts()
    with pytest.raises(NotEnoughResources):
        world.lease(instances(1))
    world.resize(running, amount=6)
    world.change(running, end=NOON + timedelta(hours=1))
    with pytest.raises(NotEnoughResources, match="node-1 is in use"):
        world.change(running, end=NOON + timedelta(hours=3))
    with pytest.raises(NotEnoughResources):
        world.resize(running, amount=7)
    world.change(later, name="still there")
    assert world.now(running).reservations[0].parameters.values["amount"] == 6
    world.run_to(NOON + timedelta(hours=9))
    assert {world.now(lease).status for lease in (running, later)} == {LeaseStatus.TERMINATED}


def test_a_host_that_is_read_again_while_it_is_being_deleted_stays_out_of_the_freepool(world):
    late = before("resources.retire", lambda: world.manager.resources.refresh(HOST, "1"))
    world.another_manager(store=ObservedStore(world.store, late)).resources.unregister(HOST, "1")
    assert world.pool() == {"node-2", "node-3"}
    assert [host.name for host in world.manager.resources.all(HOST)] == ["node-2", "node-3"]


def test_so_does_one_that_is_deleted_while_it_is_read_again(world):
    world.simulated.operators.host_returns(world.simulated.operators.host_vanishes("node-1"))

    def hook(name, when):
        if (name, when) == ("add_host", "before"):
            world.faults.on_call = None
            world.manager.resources.unregister(HOST, "1")

    world.faults.on_call = hook
    with pytest.raises(NotFound):
        world.manager.resources.refresh(HOST, "1")
    assert world.pool() == {"node-2", "node-3"}


def test_a_host_is_deleted_also_if_the_last_look_at_the_freepool_fails(world, caplog):
    late = before("resources.retire", lambda: world.faults.fail_before("aggregates", CloudUnavailable("away")))
    world.another_manager(store=ObservedStore(world.store, late)).resources.unregister(HOST, "1")
    assert "node-1" in caplog.text
    assert [host.name for host in world.manager.resources.all(HOST)] == ["node-2", "node-3"]


def renamed(world, name: str, service_name: str) -> None:
    """Let a host vanish, and return under another nova-compute."""
    host = world.simulated.operators.host_vanishes(name)
    host.service_name = service_name
    world.simulated.operators.host_returns(host)


def test_a_host_that_is_back_under_another_service_name_enters_the_freepool_by_that_name(world):
    renamed(world, "node-1", "compute-1")
    host = world.manager.resources.refresh(HOST, "1")
    assert (host.attributes["service_name"], host.failure) == ("compute-1", None)
    assert "compute-1" in world.pool()
    assert "node-1" not in world.pool()


def test_a_refresh_never_enters_another_host_that_has_got_its_service_name(a_world):
    world = a_world(hosts=3, state=of_size(4))
    moved, stranger = (world.simulated.operators.host_vanishes(name) for name in ("node-1", "node-4"))
    moved.service_name, stranger.service_name = "compute-1", "node-1"
    for host in (moved, stranger):
        world.simulated.operators.host_returns(host)
    assert world.manager.resources.refresh(HOST, "1").failure is None
    assert world.pool() == {"compute-1", "node-2", "node-3"}


def test_hosts_are_polled_without_a_type_on_them_too(a_world):
    world = a_world(hosts=1)
    lease = world.lease()
    world.run()
    other = world.another_manager(types=())
    world.simulated.operators.host_down("node-1")
    for _ in range(world.settings.failures_before_healing):
        other.monitor.run_once()
    assert other.resources.one(HOST, "1").failure == "its nova-compute is down"
    assert world.now(lease).degraded


def test_a_lease_that_is_mended_during_a_poll_is_not_degraded_by_it_once_more(world):
    lease = world.lease()
    world.run()
    (name,) = world.hosts_of(lease)
    host = world.simulated.operators.host_vanishes(name)
    world.simulated.operators.host_returns(host)
    with world.simulated.change_state() as state:
        next(a for a in state.aggregates.values() if a.name == "freepool").hosts.append(host.service_name)
    other, mended = world.another_manager(), []

    def meanwhile(call: str, when: str) -> None:
        if (call, when) == ("inventories", "before") and not mended:
            mended.append(True)
            other.resources.refresh(HOST, host.id)
            other.monitor.run_once()
            mended.append(not world.now(lease).degraded)

    world.faults.on_call = meanwhile
    world.manager.monitor.run_once()
    assert mended == [True, True]
    assert not world.now(lease).degraded


def test_a_refresh_of_a_host_that_has_not_changed_writes_only_its_state(world):
    world.faults.calls.clear()
    world.manager.resources.refresh(HOST, "1")
    assert dict(world.faults.calls) == {"hypervisor": 1, "aggregates": 2, "inventories": 1}
