# SPDX-License-Identifier: Apache-2.0
"""What the project gets at the start, and that nothing of it is left at the end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from blazar.manager.common.runtime import tasks_of
from blazar.manager.common.settings import Settings
from blazar.model.base.errors import Conflict, InvalidInput, NotEnoughResources
from blazar.model.leases.states import EventType, LeaseStatus, ReservationStatus
from blazar.model.resources.resource import NETWORK
from blazar.resources.contract.values import Done, NotYet
from blazar.resources.networks.type import NetworkReservation
from tests.resources.networks.steps import (
    DOWN,
    HOUR,
    MINUTE,
    SECOND,
    built_up,
    in_cloud,
    promised,
    state_of,
    vlan,
)
from tests.world import NOON, PROJECT, World, a_host, a_network


class Killed(BaseException):
    """The manager is gone."""


@pytest.fixture
def world(sqlite) -> World:
    world = World(sqlite, register=False)
    world.register_segments(101, 102)
    return world


def end_of(world: World, lease):
    """End the first reservation of a lease as a manager would, and let every error out."""
    allocations = world.store.calendar.of_lease(lease.id)
    resources = world.store.resources.by_ids({a.resource_id for a in allocations})
    (task, *_) = tasks_of(world.now(lease), allocations, resources)
    return NetworkReservation(world.simulated.cloud).end(task)


def test_from_the_start_to_the_end_the_project_has_a_network(world):
    lease = world.lease(a_network("lab", network_description="for the course"), start=HOUR)
    assert lease.reservations[0].shown["network_id"] is None
    assert in_cloud(world) == {}
    world.run_to(NOON + HOUR)
    ((number, network),) = in_cloud(world).items()
    assert {number} == promised(world, lease)
    assert (network.name, network.project_id, network.description) == ("lab", PROJECT, "for the course")
    assert network.tags == {"blazar", f"reservation:{lease.reservations[0].id}"}
    assert world.now(lease).reservations[0].shown["network_id"] == network.id
    world.run_to(NOON + 3 * HOUR)
    assert (world.now(lease).status, in_cloud(world)) == (LeaseStatus.TERMINATED, {})


@pytest.mark.slow
def test_it_stays_until_the_servers_of_its_lease_are_gone(sqlite):
    world = World(sqlite, hosts=1)
    world.register_segments(101)
    world.simulated.durations.deletion = 3 * MINUTE
    lease = world.lease(a_network(), a_host())
    world.run()
    world.simulated.users.boot_server("work", project_id=PROJECT, user_id="curie", host="node-1")
    world.run_to(NOON + 2 * HOUR)
    assert set(in_cloud(world)) == {101}
    assert [r.status for r in world.now(lease).reservations] == [ReservationStatus.ACTIVE] * 2
    world.run_to(NOON + 2 * HOUR + 4 * MINUTE)
    assert (world.now(lease).status, in_cloud(world)) == (LeaseStatus.TERMINATED, {})


def test_two_networks_are_never_on_one_segment(world):
    world.lease(a_network(), a_network())
    with pytest.raises(NotEnoughResources):
        world.lease(a_network())
    world.run()
    assert set(in_cloud(world)) == {101, 102}


def test_a_segment_is_chosen_by_its_attributes_and_capabilities(world):
    world.register_segments(103)
    with pytest.raises(InvalidInput, match=r"asks for \$vcpus, which no network segment has"):
        world.lease(a_network(needs='[">", "$vcpus", "1"]'))
    lease = world.lease(a_network(needs='[">", "$segment_id", "99"]', network_properties='["<", "$segment_id", "102"]'))
    assert promised(world, lease) == {101}


WRONG = {
    "no name": ({}, "Missing parameter network_name"),
    "empty": ({"network_name": ""}, 'network_name is ""; give a name'),
    "long": ({"network_name": "n" * 256}, "of 1 to 255 characters"),
    "a list": ({"network_name": "n", "network_description": []}, "network_description is []; give a string"),
    "long text": ({"network_name": "n", "network_description": "d" * 256}, "has 256 characters"),
    "snapshot": ({"network_name": "n", "before_end": "snapshot"}, "networks have none"),
    "requirement": ({"network_name": "n", "resource_properties": "["}, "resource_properties"),
}


@pytest.mark.parametrize(("wrong", "says"), WRONG.values(), ids=WRONG)
def test_parameters_are_checked(world, wrong, says):
    request = a_network()
    with pytest.raises(InvalidInput) as raised:
        world.lease(type(request)(request.resource_type, wrong))
    assert says in raised.value.message


def test_what_clients_send_that_give_only_a_name_and_an_old_action_is_taken(world):
    lease = world.lease(a_network(network_description=7, network_properties=None, before_end="email"))
    values = lease.reservations[0].parameters.values
    assert (values["network_description"], values["before_end"]) == ("7", "notification")


def test_a_segment_with_the_network_of_somebody_else_is_replaced_at_the_start(world):
    lease = world.lease(a_network(), start=HOUR)
    (number,) = promised(world, lease)
    theirs = world.simulated.network_users.network(vlan(number), project_id="art")
    world.run_to(NOON + HOUR + MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert promised(world, lease) == {101, 102} - {number}
    assert in_cloud(world)[number] == theirs
    failed = {r.attributes["segment_id"]: r.failure for r in world.manager.resources.all(NETWORK)}
    assert failed[number] == f"vlan {number} on physnet1 is in use by network {theirs.id} of project art"
    world.run_to(NOON + 4 * HOUR)
    assert in_cloud(world) == {number: theirs}


def test_a_segment_that_is_taken_while_the_network_is_being_created_is_replaced_too(world):
    lease = world.lease(a_network(), start=HOUR)
    (number,) = promised(world, lease)

    def sneak(name, phase):
        if (name, phase) == ("create_segment_network", "before"):
            world.faults.on_call = None
            world.simulated.network_users.network(vlan(number), project_id="art")

    world.faults.on_call = sneak
    world.run_to(NOON + HOUR + MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert in_cloud(world)[number].project_id == "art"


def test_a_quota_that_is_used_up_is_told_once(world):
    lease = world.lease(a_network())
    with world.simulated.change_state() as state:
        state.most_networks = 0
    world.run()
    failed = world.now(lease)
    assert failed.reservations[0].status is ReservationStatus.ERROR
    event = failed.event(EventType.START)
    assert event.reason.startswith(f"project {PROJECT} may have no more networks; delete one, or ask for")
    assert (event.cause.code, world.faults.calls["create_segment_network"]) == ("quota_exceeded", 1)
    assert all(r.failure is None for r in world.manager.resources.all(NETWORK))


STARTS = ["create_segment_network", "set_network_tags", "set_description", "segment_networks"]


@pytest.mark.sample(3)
@pytest.mark.parametrize("call", STARTS)
@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_start_is_tried_again_until_all_is_there_and_once(world, call, phase):
    lease = world.lease(a_network(network_description="d"), start=HOUR)
    getattr(world.faults, f"fail_{phase}")(call, DOWN, times=2)
    world.run_to(NOON + HOUR + MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    (network,) = in_cloud(world).values()
    assert (network.description, len(network.tags)) == ("d", 2)
    assert world.now(lease).reservations[0].shown["network_id"] == network.id
    world.run_to(NOON + 3 * HOUR)
    assert in_cloud(world) == {}


def wiped(world: World) -> None:
    """Let users remove every mark from all networks of the project."""
    for network in in_cloud(world).values():
        if network.project_id == PROJECT:
            world.simulated.network_users.rename(network.id)


@pytest.mark.parametrize("call", ["set_network_tags", "set_description"])
def test_a_network_is_recorded_before_it_has_its_marks_so_that_nobody_can_hide_it(world, call):
    lease = world.lease(a_network(network_description="d"))
    world.faults.fail_before(call, DOWN, times=3)
    for _ in range(30):
        world.run()
        wiped(world)
        world.clock.by(seconds=10)
    assert (world.now(lease).status, set(in_cloud(world))) == (LeaseStatus.ACTIVE, promised(world, lease))
    world.run_to(NOON + 2 * HOUR)
    assert in_cloud(world) == {}


def test_a_network_of_the_project_that_is_kept_busy_makes_no_start_lose_another_one(world):
    lease = world.lease(a_network(), start=HOUR)
    users = world.simulated.network_users
    busy = users.network(vlan(300), project_id=PROJECT)
    users.rename(busy.id, tags=[f"reservation:{lease.reservations[0].id}"])

    def build(name: str, phase: str) -> None:
        if (name, phase) == ("delete_network", "before"):
            users.port(busy.id, "compute:nova")

    world.faults.on_call = build
    world.run_to(NOON + HOUR + MINUTE)
    assert set(in_cloud(world)) == {300}
    assert "still has ports" in world.now(lease).event(EventType.START).reason
    world.faults.on_call = None
    world.run_to(NOON + HOUR + 2 * MINUTE)
    assert (world.now(lease).status, set(in_cloud(world))) == (LeaseStatus.ACTIVE, promised(world, lease))


def test_a_lease_that_is_deleted_during_its_start_still_knows_the_network_made_meanwhile(world):
    lease = world.lease(a_network())

    def delete(name: str, phase: str) -> None:
        if (name, phase) == ("set_description", "after"):
            world.faults.on_call = None
            world.manager.leases.delete(lease.id)
            wiped(world)

    world.faults.on_call = delete
    world.run()
    world.clock.by(minutes=1)
    world.run()
    assert (world.manager.leases.all(None), in_cloud(world)) == ((), {})


def kill_at(world: World, call: str, phase: str, number: int = 1) -> None:
    calls: list[str] = []

    def kill(name: str, when: str) -> None:
        if (name, when) == (call, phase):
            calls.append(name)
            if len(calls) == number:
                raise Killed

    world.faults.on_call = kill


def resumed(world: World, act: Callable[[], object]) -> None:
    """Let a manager be killed in an act, and another one take over after a while."""
    with pytest.raises(Killed):
        act()
    world.faults.on_call = None
    world.clock.by(minutes=1)
    world.manager = world.another_manager()


@pytest.mark.sample(4)
@pytest.mark.parametrize("call", STARTS[:3])
@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_lease_that_is_deleted_after_a_crash_in_its_start_leaves_nothing(world, call, phase):
    lease = world.lease(a_network(network_description="d"))
    kill_at(world, call, phase)
    resumed(world, world.run)
    world.manager.leases.delete(lease.id)
    world.run()
    world.clock.by(minutes=1)
    world.run()
    assert (world.manager.leases.all(None), in_cloud(world)) == ((), {})


ENDS = [
    "ports_on",
    "trunks_with",
    "delete_trunk",
    "remove_sub_ports",
    "delete_port",
    "routers",
    "remove_routes",
    "remove_interface",
    "delete_network",
]


@pytest.mark.sample(3)
@pytest.mark.parametrize("call", ENDS)
@pytest.mark.parametrize("phase", ["before", "after"])
def test_an_end_is_completed_after_a_crash_at_any_call(world, call, phase):
    lease = world.lease(a_network())
    world.run()
    (network,) = in_cloud(world).values()
    built = built_up(world, network)
    kill_at(world, call, phase)
    resumed(world, lambda: world.run_to(NOON + 2 * HOUR))
    world.run()
    state = state_of(world)
    assert (world.now(lease).status, network.id in state.networks) == (LeaseStatus.TERMINATED, False)
    assert not [port for port in state.ports.values() if port.network_id == network.id]
    assert built["router"] in state.routers


def test_the_end_clears_what_was_built_and_leaves_what_is_not_on_the_network(world):
    lease = world.lease(a_network())
    world.run()
    (network,) = in_cloud(world).values()
    built = built_up(world, network)
    world.run_to(NOON + 2 * HOUR)
    state = state_of(world)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert [n.network_type for n in state.networks.values() if n.network_type] == ["vlan"]
    assert state.routers[built["router"]].routes == [["10.60.0.0/24", "192.0.2.1"]]
    assert len(state.routers) == 2
    assert (built["trunk"] in state.trunks, state.trunks[built["foreign"]].sub_ports) == (False, [])
    assert state.floating_ips[built["address"]].port_id is None
    assert network.id not in {port.network_id for port in state.ports.values()}


FEIGNED = (
    "network:router_interface",
    "network:router_interface_distributed",
    "network:ha_router_replicated_interface",
    "network:router_gateway",
    "network:router_centralized_snat",
    "network:floatingip_agent_gateway",
)


@pytest.mark.sample(3)
@pytest.mark.parametrize("owner", FEIGNED)
def test_ports_with_the_owner_of_a_service_do_not_hold_the_network_for_ever(world, owner, monkeypatch):
    lease = world.lease(a_network())
    world.run()
    (network,) = in_cloud(world).values()
    users = world.simulated.network_users
    router = users.router(users.network(vlan(4000), project_id="art").id)
    for device in (router, "", "../../v3/projects/p/users/u/roles/admin?", router.upper()):
        users.port(network.id, owner, device_id=device)
    asked, remove = [], world.simulated.segments.remove_interface
    monkeypatch.setattr(world.simulated.segments, "remove_interface", lambda *ids: (asked.append(ids[0]), remove(*ids)))
    world.run_to(NOON + 2 * HOUR)
    assert set(asked) <= {router}
    assert (world.now(lease).status, set(in_cloud(world))) == (LeaseStatus.TERMINATED, {4000})
    assert router in state_of(world).routers


@pytest.mark.parametrize(("enabled", "bound"), [(False, False), (True, True), (False, True)])
def test_trunks_that_are_disabled_or_of_a_server_do_not_hold_the_network(world, enabled, bound):
    lease = world.lease(a_network())
    world.run()
    (network,) = in_cloud(world).values()
    users = world.simulated.network_users
    users.trunk(users.port(network.id, "compute:nova"), users.port(network.id), enabled=enabled, bound=bound)
    aside = users.port(users.network(vlan(4000), project_id="art").id)
    foreign = users.trunk(aside, users.port(network.id), enabled=enabled, bound=bound)
    world.run_to(NOON + 2 * HOUR)
    assert (world.now(lease).status, set(in_cloud(world))) == (LeaseStatus.TERMINATED, {4000})
    (left,) = state_of(world).trunks.values()
    assert (left.id, left.sub_ports, left.enabled) == (foreign, [], enabled)
    assert state_of(world).ports[aside].bound is bound


def test_an_end_takes_a_bounded_number_of_turns_and_goes_on_later(world):
    lease = world.lease(a_network())
    world.run()
    (network,) = in_cloud(world).values()

    def build(name: str, phase: str) -> None:
        if (name, phase) == ("delete_network", "before"):
            world.simulated.network_users.port(network.id, "compute:nova")

    world.faults.on_call = build
    world.faults.calls.clear()
    left = end_of(world, lease)
    assert isinstance(left, NotYet)
    assert network.id in left.reason
    assert world.faults.calls["delete_network"] == 3
    world.run_to(NOON + 2 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATING
    with pytest.raises(NotEnoughResources):
        world.lease(a_network(), a_network())
    world.faults.on_call = None
    assert end_of(world, lease) == Done()
    assert end_of(world, lease) == Done()


def test_a_network_that_its_users_have_deleted_is_gone_at_the_end(world):
    lease = world.lease(a_network())
    world.run()
    (network,) = in_cloud(world).values()
    world.simulated.network_users.calls.delete_network(network.id)
    world.manager.monitor.run_once()
    world.run_to(NOON + 2 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED


def test_a_network_without_its_marks_is_found_by_its_id_and_marked_again(world):
    lease = world.lease(a_network("lab"))
    world.run()
    (network,) = in_cloud(world).values()
    world.simulated.network_users.rename(network.id, name="mine", description="ours")
    world.manager.monitor.run_once()
    world.manager.monitor.heal()
    world.run()
    (after,) = in_cloud(world).values()
    assert (after.id, after.name, after.description, after.tags) == (network.id, "mine", "ours", network.tags)
    assert world.now(lease).reservations[0].missing_resources is False
    world.simulated.network_users.rename(network.id)
    world.run_to(NOON + 2 * HOUR)
    assert in_cloud(world) == {}


def test_a_stranger_on_the_segment_of_a_network_that_its_users_deleted_is_never_touched(world):
    lease = world.lease(a_network())
    world.run()
    ((number, network),) = in_cloud(world).items()
    world.simulated.network_users.calls.delete_network(network.id)
    theirs = world.simulated.network_users.network(vlan(number), project_id=PROJECT)
    for _ in range(3):
        world.manager.monitor.run_once()
        world.manager.monitor.heal()
        world.run()
    assert world.now(lease).degraded
    world.run_to(NOON + 2 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert in_cloud(world)[number] == theirs


def test_a_replaced_segment_has_another_network_and_the_lease_says_which(sqlite):
    settings = Settings(claim_ttl=30 * SECOND, heal_active=True, failures_before_healing=1)
    world = World(sqlite, register=False, settings=settings)
    world.register_segments(101, 102)
    lease = world.lease(a_network("lab"))
    world.run()
    ((number, network),) = in_cloud(world).items()
    world.simulated.network_users.calls.delete_network(network.id)
    world.simulated.network_users.network(vlan(number), project_id="art")
    for _ in range(3):
        world.manager.monitor.run_once()
        world.manager.monitor.heal()
        world.run()
    (reservation,) = world.now(lease).reservations
    after = in_cloud(world)[203 - number]
    assert (reservation.resources_changed, reservation.shown["network_id"]) == (True, after.id)
    world.run_to(NOON + 2 * HOUR)
    assert set(in_cloud(world)) == {number}


def test_a_network_of_another_project_with_our_marks_is_never_touched(world):
    lease = world.lease(a_network())
    world.run()
    theirs = world.simulated.network_users.network(vlan(300), project_id="art")
    sign = f"reservation:{lease.reservations[0].id}"
    world.simulated.network_users.rename(theirs.id, tags=["blazar", sign], description=sign)
    world.run_to(NOON + 2 * HOUR)
    assert set(in_cloud(world)) == {300}


def test_a_network_in_use_keeps_segment_and_name_and_gets_other_dates(world):
    lease = world.lease(a_network("lab"))
    world.run()
    before = in_cloud(world)
    with pytest.raises(Conflict, match="network_name of reservation .* cannot be changed while it is in use"):
        world.resize(lease, network_name="other")
    with pytest.raises(NotEnoughResources, match="would no longer match"):
        world.resize(lease, resource_properties=f'["!=", "$segment_id", "{next(iter(before))}"]')
    world.change(lease, end=NOON + 5 * HOUR)
    assert in_cloud(world) == before
    assert world.now(lease).window.end == NOON + 5 * HOUR


def test_before_the_start_name_and_segment_can_change(world):
    lease = world.lease(a_network("lab", needs='["=", "$segment_id", "101"]'), start=HOUR)
    world.resize(lease, network_name="other", resource_properties='["=", "$segment_id", "102"]')
    world.run_to(NOON + HOUR)
    assert {number: network.name for number, network in in_cloud(world).items()} == {102: "other"}


def test_the_sweep_finds_what_a_late_call_has_made(world):
    lease = world.lease(a_network())
    world.run_to(NOON + 2 * HOUR)
    sign = f"reservation:{lease.reservations[0].id}"
    world.simulated.network_users.calls.create_segment_network(
        vlan(101), name="late", project_id=PROJECT, description=sign
    )
    assert world.manager.sweep.run_once() == 1
    world.run()
    assert in_cloud(world) == {}


def test_a_network_goes_together_with_hosts(sqlite):
    world = World(sqlite, hosts=1)
    world.register_segments(101)
    lease = world.lease(a_host(), a_network())
    world.run()
    assert {r.status for r in world.now(lease).reservations} == {ReservationStatus.ACTIVE}
    world.run_to(NOON + 2 * HOUR)
    assert (in_cloud(world), world.pool()) == ({}, {"node-1"})


def test_a_network_can_have_a_subnet_from_the_start(world):
    wanted = {"cidr": "10.0.0.0/24", "dns_nameservers": ["192.0.2.53"]}
    lease = world.lease(a_network("lab", subnet=wanted), start=HOUR)
    whole = {**wanted, "ip_version": 4, "enable_dhcp": True}
    assert lease.reservations[0].shown["subnet"] == whole
    world.faults.fail_after("create_subnet", DOWN)
    world.run_to(NOON + HOUR)
    world.run_to(NOON + HOUR + MINUTE)
    (network,) = in_cloud(world).values()
    (subnet,) = world.simulated.network.network(network.id).subnets
    assert subnet.cidr == "10.0.0.0/24"
    ((kept,),) = (world.now(lease).reservations,)
    assert dict(kept.cloud_ids.values) == {"network_id": network.id, "subnet_id": subnet.id}
    (task,) = tasks_of(world.now(lease), *held(world, lease))
    # What is there from the start is nobody's use.
    assert NetworkReservation(world.simulated.cloud).in_use(task) == {}
    world.simulated.network_users.port(network.id, "compute:nova")
    assert set(NetworkReservation(world.simulated.cloud).in_use(task).values()) == {1}
    world.run_to(NOON + 3 * HOUR)
    assert in_cloud(world) == {}


def held(world: World, lease):
    """Return the allocations of a lease, and its resources by id."""
    allocations = world.store.calendar.of_lease(lease.id)
    return allocations, world.store.resources.by_ids({a.resource_id for a in allocations})


@pytest.mark.parametrize(
    "subnet",
    [
        "10.0.0.0/24",
        {},
        {"cidr": "10.0.0.1/24"},
        {"cidr": "10.0.0.0/31"},
        {"cidr": "224.0.0.0/8"},
        {"cidr": 5},
        {"cidr": "10.0.0.0/24", "ip_version": 6},
        {"cidr": "10.0.0.0/24", "dns_nameservers": ["here"]},
        {"cidr": "10.0.0.0/24", "dns_nameservers": ["fd00::1"]},
        {"cidr": "10.0.0.0/24", "enable_dhcp": "yes"},
        {"cidr": "10.0.0.0/24", "gateway": "10.0.0.1"},
    ],
)
def test_a_subnet_that_cannot_be_is_refused(world, subnet):
    with pytest.raises(InvalidInput, match="subnet"):
        world.lease(a_network("lab", subnet=subnet))


@pytest.mark.parametrize("field", ["network_properties", "resource_properties"])
def test_a_property_that_no_segment_has_is_refused_where_it_is_asked_for(world, field):
    with pytest.raises(InvalidInput, match=f"^{field} asks for \\$rack, which no network segment has") as refused:
        world.lease(a_network("lab", **{field: '["==", "$rack", "1"]'}))
    assert refused.value.pointer == f"/reservations/0/{field}"
