# SPDX-License-Identifier: Apache-2.0
"""Stacks of leases: priced before, made at the start of what is reserved, gone at the end whatever their state."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from blazar.clouds.ports.compute import Flavor
from blazar.clouds.ports.stacks import StackPlan
from blazar.model.base.errors import InvalidInput, NotEnoughResources, NotFound, RoleMissing
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import ReservationRequest
from blazar.model.leases.states import EventType, LeaseStatus, ReservationStatus
from tests.oracle import check_at_rest
from tests.world import NOON, PROJECT, World, a_host, copied

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
KEY = {"type": "OS::Nova::KeyPair", "properties": {"name": "mine", "public_key": "ssh-ed25519 AAAA"}}
FLAVORS = (Flavor("id-tiny", "tiny", 1, 64, 0, public=True), Flavor("id-small", "small", 1, 512, 0, public=True))
NET = {"type": "OS::Neutron::Net", "properties": {}}


def server(**properties: Any) -> Mapping[str, Any]:
    return {"type": "OS::Nova::Server", "properties": {"flavor": "small", "image": "tiny", **properties}}


def volume(**properties: Any) -> Mapping[str, Any]:
    return {"type": "OS::Cinder::Volume", "properties": {"size": 10, "volume_type": "disks-1", **properties}}


def address(**properties: Any) -> Mapping[str, Any]:
    return {"type": "OS::Neutron::FloatingIP", "properties": {"floating_network": "public", **properties}}


def template(parameters: Mapping[str, Any] | None = None, /, **resources: Any) -> dict[str, Any]:
    return {"heat_template_version": "2018-08-31", "parameters": dict(parameters or {}), "resources": resources}


def a_stack(given: object, **more: Any) -> ReservationRequest:
    return ReservationRequest("virtual:stack", {"template": given, **more})


WHOLE = template(
    one=server(key_name={"get_resource": "key"}),
    two=server(key_name="mine", flavor="tiny"),
    key=KEY,
    disk=volume(),
    net=NET,
    port={"type": "OS::Neutron::Port", "properties": {"network": {"get_resource": "net"}}},
    outside=address(port_id={"get_resource": "port"}),
)


def furnish(world: World) -> None:
    """Register what stacks are made of beside hosts."""
    world.register_pools(1)
    world.register_addresses(100, 101)
    for flavor in FLAVORS:
        world.simulated.operators.offer_flavor(flavor)


@pytest.fixture
def world(sqlite) -> World:
    return copied(sqlite, furnish)[0]


def stacks(world: World) -> list[Any]:
    with world.simulated.inspect() as state:
        return [s for s in state.stacks.values() if not s.is_gone(world.clock.now())]


def servers(world: World) -> dict[str, tuple[str, str]]:
    """Return flavor and state of each server that is there, by name."""
    with world.simulated.inspect() as state:
        return {s.name: (str(s.flavor), s.status) for s in state.servers.values() if s.gone_at is None}


def at_rest(world: World) -> None:
    check_at_rest(world.store, world.simulated, now=world.clock.now(), offered=FLAVORS)


def statuses(world: World, lease: Lease) -> set[ReservationStatus]:
    return {r.status for r in world.now(lease).reservations}


def test_what_it_takes_is_booked_with_the_lease(world):
    lease = world.lease(a_stack(WHOLE), start=HOUR)
    stack, *children = lease.reservations
    assert [(c.resource_type, c.parameters.values["amount"]) for c in children] == [
        ("flavor:instance", 1),
        ("flavor:instance", 1),
        ("virtual:volume", 1),
        ("virtual:floatingip", 1),
    ]
    assert children[2].parameters.values["mode"] == "quota"
    assert {c.parent for c in children} == {stack.id}
    assert stack.shown["template"] == WHOLE
    assert stack.shown["takes"]["servers"] == [
        {"flavor": "small", "flavor_id": "id-small", "amount": 1},
        {"flavor": "tiny", "flavor_id": "id-tiny", "amount": 1},
    ]
    assert stacks(world) == []


def test_it_is_made_at_the_start_of_what_is_reserved_and_is_gone_at_the_end(world):
    lease = world.lease(a_stack(WHOLE, stack_name="web"), start=HOUR)
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.STARTING
    world.run_to(NOON + HOUR + MINUTE)
    assert (world.now(lease).status, statuses(world, lease)) == (LeaseStatus.ACTIVE, {ReservationStatus.ACTIVE})
    _, small, tiny, _, _ = world.now(lease).reservations
    assert servers(world) == {"one": (small.id, "ACTIVE"), "two": (tiny.id, "ACTIVE")}
    (made,) = stacks(world)
    assert (made.name, made.project_id) == ("web", PROJECT)
    assert world.now(lease).reservations[0].shown["stack_id"] == made.id
    world.run_to(NOON + 3 * HOUR + MINUTE)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert (stacks(world), servers(world)) == ([], {})
    at_rest(world)


def test_its_address_is_the_reserved_one_and_is_attached(world):
    lease = world.lease(a_stack(WHOLE))
    world.run_to(NOON + MINUTE)
    with world.simulated.inspect() as state:
        (floating,) = state.floating_ips.values()
        (made,) = state.stacks.values()
    assert f"reservation:{world.now(lease).reservations[-1].id}" in floating.tags
    kinds = {each.name: each.type for each in made.resources}
    assert kinds["outside_attached"] == "OS::Neutron::FloatingIPAssociation"
    assert floating.port_id == next(each.physical_id for each in made.resources if each.name == "port")


def test_flavors_by_parameter_in_a_group_of_another_template_are_the_reserved_ones(world):
    inner = template({"what": {"type": "string"}}, node=server(flavor={"get_param": "what"}))
    group = {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": 2, "resource_def": {"type": "node.yaml", "properties": {"what": "tiny"}}},
    }
    lease = world.lease(a_stack(template(nodes=group), files={"node.yaml": json.dumps(inner)}))
    world.run_to(NOON + MINUTE)
    child = world.now(lease).reservations[1]
    assert child.parameters.values["amount"] == 2
    with world.simulated.inspect() as state:
        assert [s.flavor for s in state.servers.values()] == [child.id, child.id]


def test_twice_in_a_row_on_the_same_hosts(world):
    first = world.lease(a_stack(WHOLE, stack_name="web"), hours=1)
    second = world.lease(a_stack(WHOLE, stack_name="web"), start=HOUR, hours=1)
    world.run_to(NOON + HOUR + 2 * MINUTE)
    assert world.now(first).status is LeaseStatus.TERMINATED
    assert world.now(second).status is LeaseStatus.ACTIVE
    assert len(stacks(world)) == 1
    world.run_to(NOON + 2 * HOUR + 2 * MINUTE)
    assert stacks(world) == []
    at_rest(world)


def test_without_room_for_all_of_it_nothing_is_booked(world):
    with pytest.raises(NotEnoughResources) as refused:
        world.lease(a_stack(template(disk=volume(size=1000), one=server())))
    assert refused.value.pointer == "/reservations/0"
    assert world.store.leases.of_project(None) == ()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (template(net=NET), "nothing to reserve"),
        (template(one=server(), disk=volume(volume_type=None)), "no volume_type"),
        (template(one=server(key_name="theirs")), "key pairs belong to users"),
        (template(one=server(flavor="huge")), "Heat does not take it"),
        (template(one=server(flavor=None)), "its flavor is missing, or not known"),
        (template(outside=address(floating_network="nowhere")), "nowhere"),
        (template(one={"type": "http://example.org/x.yaml"}), "nothing is fetched"),
        (template(one={"type": "file:///etc/passwd"}), "nothing is fetched"),
        (template(one={"type": "OS::Magnum::Cluster"}), "cannot be priced"),
        ("{", "is not YAML"),
        ({"resources": {}}, "heat_template_version"),
    ],
)
def test_what_cannot_be_promised_is_refused_with_a_sentence(world, given, sentence):
    with pytest.raises((InvalidInput, NotFound), match=sentence) as refused:
        world.lease(a_stack(given))
    assert refused.value.pointer.startswith("/reservations/0/template")
    assert (world.store.leases.of_project(None), stacks(world)) == ((), [])


def test_what_its_environment_leaves_out_takes_nothing(world):
    environment = {"resource_registry": {"Own::Type": "OS::Heat::None"}}
    given = template(one=server(), none={"type": "Own::Type", "properties": {"size": 5}})
    lease = world.lease(a_stack(given, environment=environment))
    assert [(c.resource_type, c.parameters.values["amount"]) for c in lease.reservations[1:]] == [
        ("flavor:instance", 1)
    ]


def test_an_address_in_a_group_is_refused(world):
    group = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 2, "resource_def": address()}}
    with pytest.raises(InvalidInput, match='resource "0" of "outside" .* is in a group or in another template'):
        world.lease(a_stack(template(outside=group)))


def test_a_project_in_which_the_service_may_make_nothing_is_refused(world):
    world.simulated.operators.close_project(PROJECT)
    with pytest.raises(RoleMissing):
        world.lease(a_stack(WHOLE))


def test_hidden_parameters_are_used_and_shown_nowhere(world):
    given = template({"password": {"type": "string", "hidden": True}}, one=server(user_data={"get_param": "password"}))
    lease = world.lease(a_stack(given, parameters={"password": "s3cr3t"}, environment={"parameters": {}}))
    stack = world.now(lease).reservations[0]
    assert stack.shown["parameters"] == {"password": "******"}
    assert "s3cr3t" not in json.dumps(dict(stack.shown))
    world.run_to(NOON + MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE


def test_a_refusal_does_not_repeat_a_hidden_parameter(world):
    given = template({"what": {"type": "string", "hidden": True}}, one=server(flavor={"get_param": "what"}))
    with pytest.raises(InvalidInput) as refused:
        world.lease(a_stack(given, parameters={"what": "s3cr3t"}))
    assert "s3cr3t" not in refused.value.message


def test_a_stack_that_fails_is_made_again_and_its_reason_shown_in_the_end(world):
    lease = world.lease(a_stack(WHOLE), start=HOUR)
    with world.simulated.change_state() as state:
        for host in state.hosts.values():
            host.enabled = False
    world.run_to(NOON + HOUR + 10 * MINUTE)
    stack = world.now(lease).reservations[0]
    assert stack.status is ReservationStatus.ERROR
    assert "No valid host was found" in stack.shown["stack_reason"]
    assert "was made 3 times" in world.now(lease).event(EventType.START).reason
    assert stacks(world) == []
    world.run_to(NOON + 4 * HOUR)
    at_rest(world)


def test_it_waits_for_a_stack_of_its_name_to_go(world):
    plan = StackPlan("web", template(net=NET))
    theirs = world.simulated.cloud.stacks.begin_stack(PROJECT, plan, tags=frozenset())
    lease = world.lease(a_stack(WHOLE, stack_name="web"), start=HOUR)
    world.run_to(NOON + HOUR + MINUTE)
    assert world.now(lease).status is LeaseStatus.STARTING
    world.simulated.cloud.stacks.begin_stack_deletion(PROJECT, theirs)
    world.run_to(NOON + HOUR + 3 * MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE


def test_a_port_of_a_user_on_its_network_does_not_keep_it(world):
    lease = world.lease(a_stack(WHOLE), hours=1)
    world.run_to(NOON + MINUTE)
    with world.simulated.inspect() as state:
        network = next(n.id for n in state.networks.values() if n.project_id == PROJECT and not n.external)
    world.simulated.network_users.port(network)
    world.run_to(NOON + HOUR + 5 * MINUTE)
    assert (world.now(lease).status, stacks(world)) == (LeaseStatus.TERMINATED, [])
    at_rest(world)


def test_a_stack_that_cannot_be_deleted_does_not_keep_the_hosts(world, caplog):
    lease = world.lease(a_stack(WHOLE), hours=1)
    world.run_to(NOON + MINUTE)
    with world.simulated.inspect() as state:
        network = next(n.id for n in state.networks.values() if n.project_id == PROJECT and not n.external)
    world.simulated.network_users.port(network)
    world.simulated.operators.close_project(PROJECT)
    world.run_to(NOON + HOUR + 5 * MINUTE)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert world.store.calendar.of_lease(lease.id) == ()
    assert "stays; delete it" in caplog.text


def test_a_stack_that_its_users_have_deleted_ends(world):
    lease = world.lease(a_stack(WHOLE), hours=1)
    world.run_to(NOON + MINUTE)
    world.simulated.cloud.stacks.begin_stack_deletion(PROJECT, stacks(world)[0].id)
    world.run_to(NOON + HOUR + MINUTE)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    at_rest(world)


def test_a_lease_that_is_deleted_while_its_stack_is_made_leaves_nothing(world):
    lease = world.lease(a_stack(WHOLE))
    world.run_to(NOON)
    assert len(stacks(world)) == 1
    world.manager.leases.delete(lease.id)
    world.run_to(NOON + 2 * MINUTE)
    assert stacks(world) == []
    at_rest(world)


def test_an_extension_leaves_it_as_it_is(world):
    lease = world.lease(a_stack(WHOLE), a_host(), hours=1)
    world.run_to(NOON + MINUTE)
    before = stacks(world)[0].id
    world.change(lease, end=NOON + 3 * HOUR)
    world.run_to(NOON + 2 * HOUR)
    assert [s.id for s in stacks(world)] == [before]
