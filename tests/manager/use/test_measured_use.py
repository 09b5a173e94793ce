# SPDX-License-Identifier: Apache-2.0
"""Use it or lose it by measurements: servers that run and do nothing count as stopped, and nothing uncertain does."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from blazar.clouds.ports.compute import Server
from blazar.manager.use.unused import measured_usage
from blazar.model.base.errors import CloudUnavailable
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import EventType, LeaseStatus
from blazar.model.use.policy import Usage, UsePolicies, UsePolicy, watch_json, watch_of
from tests.manager.use.test_unused import HOUR, IDLE, LONG, boot, is_released, settings
from tests.world import NOON, World, instances

MEASURED = replace(IDLE, idle_below=0.05)


@pytest.fixture
def world(a_world) -> World:
    return a_world(settings=settings(MEASURED))


def started(world: World, *reservations) -> Lease:
    lease = world.lease(*reservations, hours=LONG)
    world.run()
    return world.now(lease)


def last_look(world: World, lease: Lease):
    return world.now(lease).event(EventType.USAGE_CHECK).saved_state.watch.looks[-1]


def test_a_lease_whose_server_runs_and_does_nothing_for_hours_is_released(world):
    lease = started(world)
    world.metrics.values[boot(world, lease).id] = 0.01
    world.run_to(NOON + 6 * HOUR)
    assert (world.now(lease).use.usage, last_look(world, lease).detail) == (
        Usage.IDLE,
        "physical:host: 1 ACTIVE (1 of 1 that run below 0.05)",
    )
    world.run_to(NOON + 8 * HOUR)
    assert is_released(world, lease)


def test_work_in_between_takes_the_warning_back(world):
    lease = started(world)
    server = boot(world, lease)
    world.metrics.values[server.id] = 0.01
    world.run_to(NOON + 6 * HOUR)
    assert world.now(lease).use.release_at is not None
    world.metrics.values[server.id] = 0.8
    world.run_to(NOON + 10 * HOUR)
    assert (world.now(lease).status, world.now(lease).use.release_at) == (LeaseStatus.ACTIVE, None)


@pytest.mark.slow
@pytest.mark.parametrize("trouble", ["no value", "failure", "bug"])
def test_what_is_not_measured_is_not_known_and_never_idle(world, trouble):
    lease = started(world)
    server = boot(world, lease)
    if trouble != "no value":
        world.metrics.values[server.id] = 0.0
        world.metrics.failure = CloudUnavailable("Prometheus cannot be reached")
    if trouble == "bug":
        world.metrics.failure = KeyError("value")  # type: ignore[assignment]  # anything may go wrong
    world.run_to(NOON + 20 * HOUR)
    assert (world.now(lease).status, world.now(lease).use.usage) == (LeaseStatus.ACTIVE, Usage.UNKNOWN)


def test_servers_of_others_on_the_hosts_are_measured_too(world):
    lease = started(world)
    world.metrics.values[boot(world, lease).id] = 0.0
    world.metrics.values[boot(world, lease, project="somebody-else").id] = 0.9
    world.run_to(NOON + 20 * HOUR)
    assert world.now(lease).use.usage is Usage.USED


def test_one_question_is_asked_for_all_servers_of_a_lease(world):
    lease = started(world)
    ids = {boot(world, lease).id for _ in range(5)}
    world.run_to(NOON + HOUR)
    assert world.metrics.asked == [frozenset(ids)]


def test_a_server_that_boots_is_used_and_nothing_is_asked(world):
    lease = started(world)
    boot(world, lease, status="BUILD")
    world.run_to(NOON + 20 * HOUR)
    assert (world.now(lease).use.usage, world.metrics.asked) == (Usage.USED, [])


def test_instances_are_measured_by_their_servers(world):
    lease = started(world, instances(2))
    server = world.simulated.users.boot_reserved(lease.reservations[0].id, project_id=lease.project_id)
    world.metrics.values[server.id] = 0.0
    world.run_to(NOON + 8 * HOUR)
    assert is_released(world, lease)


def test_without_a_bound_in_the_policy_nothing_is_measured(a_world):
    world = a_world(settings=settings(IDLE))
    lease = started(world)
    world.metrics.values[boot(world, lease).id] = 0.0
    world.run_to(NOON + 20 * HOUR)
    assert (world.now(lease).use.usage, world.metrics.asked) == (Usage.USED, [])


def test_an_operator_who_turns_measuring_off_saves_leases_that_were_warned(world):
    lease = started(world)
    world.metrics.values[boot(world, lease).id] = 0.0
    world.run_to(NOON + 6 * HOUR)
    world.settings = settings(IDLE)
    world.manager = world.another_manager()
    world.run_to(NOON + 20 * HOUR)
    assert (world.now(lease).status, world.now(lease).use.usage) == (LeaseStatus.ACTIVE, Usage.USED)


def a_server(id_: str, status: str = "ACTIVE") -> Server:
    return Server(id_, id_, "p", "u", "node-1", status)


@pytest.mark.parametrize(
    ("servers", "values", "found"),
    [
        ({}, {}, Usage.UNUSED),
        ({"a": "ERROR"}, {}, Usage.UNUSED),
        ({"a": "SHUTOFF"}, {}, Usage.IDLE),
        ({"a": "ACTIVE"}, {"a": 0.04}, Usage.IDLE),
        ({"a": "ACTIVE"}, {"a": 0.05}, Usage.USED),
        ({"a": "ACTIVE"}, {}, Usage.UNKNOWN),
        ({"a": "ACTIVE", "b": "SHUTOFF"}, {}, Usage.UNKNOWN),
        ({"a": "ACTIVE", "b": "ACTIVE"}, {"a": 0.0}, Usage.UNKNOWN),
        ({"a": "ACTIVE", "b": "ACTIVE"}, {"a": 1.0}, Usage.USED),
        ({"a": "PAUSED"}, {"a": 0.0}, Usage.USED),
    ],
)
def test_usage_of_servers_by_state_and_value(servers, values, found):
    assert measured_usage([a_server(*each) for each in servers.items()], values, 0.05) is found


def test_of_several_types_the_one_that_is_not_measured_counts():
    strict = replace(MEASURED, idle_below=0.01)
    policies = UsePolicies(MEASURED, {("network", ""): IDLE, ("virtual:volume", ""): strict})
    assert policies.of_lease(frozenset({"physical:host", "network"}), "p").idle_below is None
    assert policies.of_lease(frozenset({"physical:host", "virtual:volume"}), "p").idle_below == 0.01


def test_idling_that_is_measured_must_have_a_time():
    with pytest.raises(ValueError, match="idle_after must be set where source is prometheus"):
        UsePolicy(idle_below=0.1)


def test_a_watch_keeps_its_bound_and_one_of_before_has_none(world):
    watch = started(world).event(EventType.USAGE_CHECK).saved_state.watch
    stored = watch_json(watch)
    assert (watch_of(stored), watch.policy.idle_below) == (watch, 0.05)
    del stored["policy"]["idle_below"]
    assert watch_of(stored).policy.idle_below is None
    assert timedelta(0) < watch.policy.undo
