# SPDX-License-Identifier: Apache-2.0
"""Stacks that are disturbed: managers that die, users that are quick, a Heat that says what is secret."""

from __future__ import annotations

import itertools
import json
from datetime import timedelta

import pytest

from blazar.clouds.ports.compute import Flavor
from blazar.clouds.ports.stacks import StackPlan, StackRefused
from blazar.model.base.errors import CloudUnavailable, InvalidInput
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import EventType, LeaseStatus, ReservationStatus
from blazar.resources.contract.values import Done, Task
from blazar.resources.servers.type import VirtualServer
from blazar.resources.stacks.type import VirtualStack
from blazar.store.sql.tables import metadata
from tests.manager.events.test_crashes import dies
from tests.resources.stacks.test_life import (
    HOUR,
    MINUTE,
    NET,
    WHOLE,
    a_stack,
    address,
    at_rest,
    furnish,
    server,
    servers,
    stacks,
    template,
)
from tests.world import NOON, PROJECT, World, copied
from tests.world import servers as servers_request

SECRET = template({"word": {"type": "string", "hidden": True}}, one=server(user_data={"get_param": "word"}))


@pytest.fixture
def world(sqlite) -> World:
    return copied(sqlite, furnish)[0]


@pytest.mark.slow
@pytest.mark.parametrize("what", ["start", "end"])
def test_a_manager_killed_at_any_step_another_finishes_it(world, what):
    # Every second point, others for each end of a lease.
    for step in itertools.count(1 if what == "start" else 2, 2):
        lease = world.lease(a_stack(template(one=server())), start=HOUR, hours=1)
        if what == "end":
            world.run_to(lease.window.start + MINUTE)
        until = (lease.window.start if what == "start" else lease.window.end) + MINUTE
        died = dies(world, lambda until=until: world.run_to(until), step, "after")
        world.run_to(world.clock.now() + 2 * MINUTE)
        if what == "start":
            assert (world.now(lease).status, len(stacks(world))) == (LeaseStatus.ACTIVE, 1), step
            at_rest(world)
        world.run_to(lease.window.end + 5 * MINUTE)
        assert stacks(world) == [], step
        at_rest(world)
        if not died:
            break
    assert step > 8


@pytest.mark.sample(1)
@pytest.mark.parametrize("call", ["begin_stack", "stack", "stacks_tagged", "begin_stack_deletion"])
def test_heat_that_does_not_answer_is_asked_again(world, call):
    lease = world.lease(a_stack(WHOLE), hours=1)
    world.faults.fail_after(call, CloudUnavailable("Heat is down"), times=2)
    world.run_to(NOON + 20 * MINUTE)
    assert (world.now(lease).status, len(stacks(world))) == (LeaseStatus.ACTIVE, 1)
    world.faults.fail_before(call, CloudUnavailable("Heat is down"), times=2)
    world.run_to(NOON + HOUR + 20 * MINUTE)
    assert (world.now(lease).status, stacks(world)) == (LeaseStatus.TERMINATED, [])
    world.faults.clear()
    at_rest(world)


def test_a_stack_that_its_users_update_at_once_is_theirs(world):
    lease = world.lease(a_stack(WHOLE))
    world.run_to(NOON)
    with world.simulated.change_state() as state:
        (made,) = state.stacks.values()
        made.action, made.over_at = "UPDATE", (NOON + 3 * MINUTE).isoformat()
    world.run_to(NOON + 5 * MINUTE)
    assert [each.id for each in stacks(world)] == [made.id]
    assert world.now(lease).status is LeaseStatus.ACTIVE


def test_one_that_cannot_be_deleted_to_be_made_again_is_not_tried_for_ever(world):
    lease = world.lease(a_stack(WHOLE), start=HOUR, hours=1)
    world.run_to(NOON + HOUR)

    def stays(name: str = "begin_stack_deletion", phase: str = "after") -> None:
        if (name, phase) == ("begin_stack_deletion", "after"):
            with world.simulated.change_state() as state:
                (made,) = state.stacks.values()
                made.reason = "it stays"

    stays()
    world.faults.on_call = stays
    world.run_to(NOON + HOUR + 10 * MINUTE)
    assert world.now(lease).status is LeaseStatus.ERROR
    assert "it stays" in world.now(lease).event(EventType.START).reason


@pytest.mark.slow
def test_one_whose_deletion_never_ends_does_not_keep_the_hosts(world, caplog):
    lease = world.lease(a_stack(WHOLE), hours=1)
    world.run_to(NOON + MINUTE)
    world.simulated.durations.stack = timedelta(days=9)
    world.run_to(NOON + HOUR + 10 * MINUTE)
    assert world.now(lease).status is LeaseStatus.TERMINATING
    world.run_to(NOON + 3 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert world.store.calendar.of_lease(lease.id) == ()
    assert "stays; delete it" in caplog.text
    # It was told again.
    assert world.faults.calls["begin_stack_deletion"] == 5


@pytest.mark.slow
@pytest.mark.parametrize(("takes", "late", "looks"), [(17, 2, 9), (120, 15, 26), (1800, 30, 90)])
def test_one_that_takes_long_is_looked_at_ever_less_often(world, takes, late, looks):
    world.simulated.durations.stack = timedelta(seconds=takes)
    lease = world.lease(a_stack(WHOLE), start=HOUR, hours=1)
    world.run_to(NOON + HOUR)
    begun = world.faults.calls["stack"]
    while world.now(lease).status is not LeaseStatus.ACTIVE:
        world.run_to(min(world.store.events.next_due() or NOON, NOON + 2 * HOUR))
    assert takes <= (world.clock.now() - NOON - HOUR).total_seconds() <= takes + late
    assert world.faults.calls["stack"] - begun <= looks
    assert "looks" not in world.now(lease).reservations[0].cloud_ids.values


def test_one_that_failed_for_good_is_tried_again_after_a_change(world):
    lease = world.lease(a_stack(WHOLE))

    def turn(*, on: bool) -> None:
        with world.simulated.change_state() as state:
            for host in state.hosts.values():
                host.enabled = on

    turn(on=False)
    world.run_to(NOON + 10 * MINUTE)
    assert world.now(lease).status is LeaseStatus.ERROR
    turn(on=True)
    world.change(lease, end=NOON + 3 * HOUR)
    world.run_to(NOON + 20 * MINUTE)
    assert (world.now(lease).status, len(stacks(world))) == (LeaseStatus.ACTIVE, 1)
    at_rest(world)


def test_what_heat_says_of_a_failure_is_told_without_hidden_parameters(world):
    lease = world.lease(a_stack(SECRET, parameters={"word": "s3cr3t"}))
    world.run_to(NOON)
    with world.simulated.change_state() as state:
        (made,) = state.stacks.values()
        made.reason = "user_data s3cr3t is bad"
    world.run_to(NOON + timedelta(seconds=3))
    assert world.now(lease).reservations[0].shown["stack_reason"] == "user_data ****** is bad"


def test_what_heat_says_against_it_at_the_start_is_told_without_hidden_parameters(world, caplog):
    lease = world.lease(a_stack(SECRET, parameters={"word": "s3cr3t"}))
    world.faults.fail_before("begin_stack", StackRefused("Heat refused: s3cr3t is bad", "s3cr3t is bad"))
    world.run_to(NOON + MINUTE)
    assert world.now(lease).event(EventType.START).reason == "Heat refused: ****** is bad"
    assert "s3cr3t" not in caplog.text


def test_a_default_for_a_hidden_parameter_of_another_template_is_not_shown(world):
    inner = template({"word": {"type": "string", "hidden": True, "default": ""}}, node=server())
    lease = world.lease(
        a_stack(
            template(nodes={"type": "node.yaml"}),
            files={"node.yaml": json.dumps(inner)},
            environment={"parameter_defaults": {"word": "s3cr3t"}},
        )
    )
    assert "s3cr3t" not in json.dumps(dict(lease.reservations[0].shown))


@pytest.mark.parametrize("how", ["ends", "is deleted"])
def test_what_a_late_call_makes_after_the_end_is_found_by_the_sweep(world, caplog, how):
    lease = world.lease(a_stack(WHOLE), hours=1)
    live = world.lease(a_stack(template(one=server())), hours=48)
    world.run_to(NOON + HOUR + 3 * MINUTE)
    if how == "is deleted":
        world.manager.leases.delete(lease.id)
    world.run_to(NOON + 2 * HOUR)
    kept = stacks(world)
    assert len(kept) == 1
    cloud = world.simulated.cloud.stacks
    for id_ in (lease.reservations[0].id, "of-another-blazar"):
        plan = StackPlan(f"reservation-{id_}", template(net=NET))
        cloud.begin_stack(PROJECT, plan, tags=frozenset({"blazar", f"reservation:{id_}"}))
    cloud.begin_stack(PROJECT, StackPlan("theirs", template(net=NET)), tags=frozenset())
    assert world.manager.sweep.run_once() == 1
    world.run_to(NOON + 2 * HOUR + 3 * MINUTE)
    assert world.manager.sweep.run_once() == 0
    assert {stack.name for stack in stacks(world)} == {kept[0].name, "reservation-of-another-blazar", "theirs"}
    assert "of-another-blazar is not on record" in caplog.text
    assert world.now(live).status is LeaseStatus.ACTIVE


def test_a_stack_of_users_with_the_tags_of_a_past_one_is_left_alone(world):
    lease = world.lease(a_stack(WHOLE), hours=1)
    world.run_to(NOON + HOUR + 3 * MINUTE)
    tags = frozenset({"blazar", f"reservation:{lease.reservations[0].id}"})
    world.simulated.cloud.stacks.begin_stack(PROJECT, StackPlan("theirs", template(net=NET)), tags=tags)
    assert world.manager.sweep.run_once() == 1
    world.run_to(NOON + HOUR + 9 * MINUTE)
    assert [stack.name for stack in stacks(world)] == ["theirs"]


def test_the_sweep_asks_projects_of_the_last_days_only_and_passes_over_those_that_are_closed(world):
    world.lease(a_stack(WHOLE), hours=1)
    world.run_to(NOON + 2 * HOUR)
    before = world.faults.calls["stacks_tagged"]
    world.simulated.operators.close_project(PROJECT)
    assert world.manager.sweep.run_once() == 0
    assert world.faults.calls["stacks_tagged"] == before + 1
    world.run_to(NOON + timedelta(days=8))
    assert world.manager.sweep.run_once() == 0
    assert world.faults.calls["stacks_tagged"] == before + 1


def stored(world: World, lease: Lease) -> str:
    """Return all that the database has in rows of leases, reservations, events and messages."""
    with world.engine.connect() as connection:
        tables = [table for table in metadata.sorted_tables if table.name != "alembic_version"]
        return str([tuple(row) for table in tables for row in connection.execute(table.select())])


def test_what_heat_says_of_one_that_stays_is_not_told_when_the_hidden_parameters_are_forgotten(world):
    lease = world.lease(a_stack(SECRET, parameters={"word": "s3cr3t"}), hours=1)
    world.run_to(NOON + MINUTE)

    def stays(name: str, phase: str) -> None:
        if (name, phase) == ("begin_stack_deletion", "after"):
            with world.simulated.change_state() as state:
                (made,) = state.stacks.values()
                made.reason = "user_data s3cr3t is bad"

    world.faults.on_call = stays
    world.run_to(NOON + 3 * HOUR)
    (stack, *_) = world.now(lease).reservations
    assert (world.now(lease).status, stack.status) == (LeaseStatus.TERMINATED, ReservationStatus.DELETED)
    assert str(stack.shown["stack_reason"]).endswith("user_data ****** is bad")
    assert world.manager.sweep.run_once() == 1
    world.run_to(NOON + 4 * HOUR)
    assert "s3cr3t" not in stored(world, lease)


@pytest.mark.sample(2)
@pytest.mark.parametrize("how", ["ends", "is deleted", "is deleted before its start"])
def test_hidden_parameters_are_kept_until_nobody_needs_them(world, how):
    server_of_its_own = servers_request(user_data="czNjcjN0")
    lease = world.lease(a_stack(SECRET, parameters={"word": "s3cr3t"}), server_of_its_own, start=HOUR, hours=1)
    assert "s3cr3t" in stored(world, lease)
    assert "czNjcjN0" in stored(world, lease)
    if how != "is deleted before its start":
        world.run_to(NOON + HOUR + MINUTE)
        assert world.now(lease).status is LeaseStatus.ACTIVE
        assert "s3cr3t" in stored(world, lease)
    if how == "ends":
        world.run_to(NOON + 2 * HOUR + 3 * MINUTE)
        assert world.now(lease).status is LeaseStatus.TERMINATED
    else:
        world.manager.leases.delete(lease.id)
        world.run_to(NOON + HOUR + 9 * MINUTE)
        assert world.now(lease).deleted_at is not None
    assert "s3cr3t" not in stored(world, lease)
    assert "czNjcjN0" not in stored(world, lease)
    # What is found afterwards can be removed without them.
    stack, server_after = (r for r in world.now(lease).reservations if r.parent is None)
    assert stack.shown["parameters"] == {"word": "******"}
    cloud = world.simulated.cloud
    for kind, each in ((VirtualStack(cloud), stack), (VirtualServer(cloud, world.host_settings), server_after)):
        assert isinstance(kind.end(Task(world.now(lease), each, ())), Done)


def test_flavors_whose_names_are_numbers_are_the_reserved_ones(world):
    world.simulated.operators.offer_flavor(Flavor("7", "seven", 1, 64, 0, public=True))
    given = template({"what": {"type": "number"}}, one=server(flavor=7), two=server(flavor={"get_param": "what"}))
    lease = world.lease(a_stack(given, parameters={"what": 7}))
    world.run_to(NOON + MINUTE)
    child = lease.reservations[1].id
    assert servers(world) == {"one": (child, "ACTIVE"), "two": (child, "ACTIVE")}


@pytest.mark.parametrize(
    "number", ["0x" + "f" * 5000, "0" + "7" * 6000, "9" * 5000, "1." + "0" * 5000, "{? 0x" + "f" * 5000 + " : x}"]
)
def test_numbers_that_python_cannot_write_are_refused(world, number):
    text = (
        "heat_template_version: 2018-08-31\n"
        f"resources: {{one: {{type: OS::Nova::Server, properties: {{flavor: small, user_data: {number}}}}}}}"
    )
    with pytest.raises(InvalidInput, match="more than 300 digits|a long number") as refused:
        world.lease(a_stack(text))
    assert refused.value.pointer == "/reservations/0/template"


def test_what_was_a_number_of_base_60_is_a_text_however_long(world):
    written = ":".join(["59"] * 3000)
    text = (
        "heat_template_version: 2018-08-31\n"
        f"resources: {{one: {{type: OS::Nova::Server, properties: {{flavor: small, user_data: {written}}}}}}}"
    )
    world.lease(a_stack(text))
    world.run_to(NOON + MINUTE)
    assert [state for _, state in servers(world).values()] == ["ACTIVE"]


def test_all_changes_of_dates_keep_the_stack(world):
    lease = world.lease(a_stack(WHOLE), start=HOUR, hours=1)
    world.change(lease, start=NOON + 2 * HOUR, end=NOON + 4 * HOUR)
    world.run_to(NOON + 2 * HOUR + MINUTE)
    (made,) = stacks(world)
    world.change(lease, end=NOON + 3 * HOUR)
    world.run_to(NOON + 3 * HOUR - MINUTE)
    world.change(lease, end=NOON + 5 * HOUR)
    world.run_to(NOON + 5 * HOUR - MINUTE)
    assert [each.id for each in stacks(world)] == [made.id]
    world.run_to(NOON + 5 * HOUR + 2 * MINUTE)
    assert (world.now(lease).status, stacks(world)) == (LeaseStatus.TERMINATED, [])
    at_rest(world)


def test_a_resource_with_the_name_of_what_attaches_an_address_stays(world):
    port = {"type": "OS::Neutron::Port", "properties": {"network": {"get_resource": "outside_attached"}}}
    outside = address(port_id={"get_resource": "port"})
    lease = world.lease(a_stack(template(one=server(), outside_attached=NET, port=port, outside=outside)))
    world.run_to(NOON + MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    (made,) = stacks(world)
    assert {each.type for each in made.resources if each.name.startswith("outside_attached")} == {
        "OS::Neutron::Net",
        "OS::Neutron::FloatingIPAssociation",
    }


@pytest.mark.parametrize(
    "given",
    [
        template(one=server(key_name=["mine"])),
        template(one={"type": "OS::Nova::Server", "properties": [1]}),
        template(one=server(flavor={"get_param": []})),
        template(one=server(flavor={"str_replace": 5})),
        {**template(one=server()), "parameters": []},
        {**template(one=server()), "parameters": {"word": None}},
        template(many={"type": "OS::Heat::ResourceGroup", "properties": {"count": "x", "resource_def": server()}}),
        template(many={"type": "OS::Heat::ResourceGroup", "properties": {"count": 10**9, "resource_def": server()}}),
    ],
)
def test_templates_of_strange_shapes_are_refused(world, given):
    with pytest.raises(InvalidInput) as refused:
        world.lease(a_stack(given))
    assert refused.value.pointer.startswith("/reservations/0/template")
    assert world.store.leases.of_project(None) == ()
