# SPDX-License-Identifier: Apache-2.0
"""Hooks and Ironic, driven by the worker: what refuses, is silent or lies, and managers that die on the way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta

import pytest

from blazar.clouds.simulated.machines import PowerFault
from blazar.model.power.states import MARK, PowerState
from tests.clouds.test_access import web
from tests.configured import configured_world
from tests.manager.power.adapters import Machines, by_hooks, by_ironic, give_adapter
from tests.manager.power.nights import (
    HOUR,
    MINUTE,
    NO_SPARE,
    has_power,
    is_up,
    log,
    mark,
    pass_time,
    power,
    repair_wake,
    spoil,
    states,
    wake,
)
from tests.manager.power.test_crashes import TO_SLEEP, TO_WAKE, TURNS, run_with
from tests.world import World

__all__ = ["web"]

pytestmark = pytest.mark.slow

State = PowerState
HOOK, IRONIC = ADAPTERS = ("hook", "ironic")


@pytest.fixture(params=ADAPTERS)
def world(request, sqlite, tmp_path, web) -> Iterator[World]:
    """Return a service with one host, which has been on for an hour."""
    world = configured_world(sqlite, tmp_path, *NO_SPARE, hosts=1)
    world.simulated.durations.shutdown = timedelta(seconds=30)
    world.simulated.durations.wake = 2 * MINUTE
    machines = Machines(world)
    with ExitStack() as running:
        made = by_hooks(machines) if request.param == HOOK else by_ironic(machines, web)
        give_adapter(world, *running.enter_context(made))
        world.clock.by(hours=1)
        yield world


@pytest.fixture
def asleep(world) -> World:
    pass_time(world, 5 * MINUTE)
    assert (states(world), has_power(world), mark(world)) == ([State.OFF], False, MARK)
    return world


def test_a_host_sleeps_and_is_awake_before_its_lease(asleep):
    world = asleep
    lease = world.lease(start=4 * HOUR)
    assert pass_time(world, 3 * HOUR + 45 * MINUTE, step=5 * MINUTE) == [State.OFF, State.WAKING, State.ON]
    assert (is_up(world), mark(world)) == (True, None)
    world.run_to(lease.window.start)
    assert world.now(lease).status == "ACTIVE"


def test_what_refuses_leaves_the_host_on_and_alone(world):
    spoil(world, PowerFault.REFUSES)
    pass_time(world, 12 * MINUTE)
    assert (states(world), mark(world), has_power(world)) == ([State.ON], None, True)
    assert log(world) == [("going_off", "idle"), ("on", "refused")]
    assert pass_time(world, 3 * HOUR, step=10 * MINUTE) == [State.ON]


def test_what_is_silent_is_never_taken_for_off(world):
    spoil(world, PowerFault.SILENT)
    assert State.OFF not in pass_time(world, 5 * MINUTE)
    assert log(world) == [("going_off", "idle"), ("on", "refused")]


def test_what_falls_silent_in_the_middle_is_never_taken_for_off(world):
    while power(world).attempts < 2:
        pass_time(world, 5 * timedelta(seconds=1))
    spoil(world, PowerFault.SILENT)
    assert State.OFF not in pass_time(world, 14 * MINUTE)
    spoil(world, None)
    pass_time(world, 20 * MINUTE)
    assert (states(world), is_up(world), mark(world)) == ([State.ON], True, None)


def test_what_says_off_and_leaves_the_host_on_is_found_out(world):
    spoil(world, PowerFault.IGNORES)
    assert State.OFF not in pass_time(world, 12 * MINUTE)
    assert (states(world), mark(world), has_power(world)) == ([State.ON], None, True)
    assert log(world)[-1] == ("on", "refused")


def test_a_host_that_does_not_shut_down_has_its_power_cut(world):
    """Ironic is at work on a node until then, and refuses whatever else it is told."""
    spoil(world, PowerFault.HANGS)
    pass_time(world, 8 * MINUTE)
    assert (states(world), has_power(world), mark(world)) == ([State.OFF], False, MARK)
    assert log(world) == [("going_off", "idle"), ("off", "done")]


def test_a_host_whose_switch_is_silent_when_it_is_to_wake_wakes_once_that_speaks(asleep):
    world = asleep
    spoil(world, PowerFault.SILENT)
    wake(world)
    pass_time(world, 5 * MINUTE)
    assert states(world) == [State.WAKING]
    spoil(world, None)
    pass_time(world, 6 * MINUTE)
    assert (states(world), is_up(world), mark(world)) == ([State.ON], True, None)


def test_a_wake_that_fails_once_is_repaired_before_the_lease_begins(asleep):
    world = asleep
    repair_wake(world)
    assert (states(world), is_up(world), mark(world)) == ([State.ON], True, None)


def test_a_host_that_does_not_wake_has_failed(asleep):
    spoil(asleep, PowerFault.SLEEPS_ON)
    wake(asleep)
    pass_time(asleep, 32 * MINUTE)
    assert log(asleep)[-1] == ("on", "timed_out")


@pytest.mark.share(4)
@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("number", range(1, TO_SLEEP + 1, 7))
def test_another_manager_brings_a_host_to_sleep(world, number, turn):
    run_with(world, number, turn, 8)
    assert (states(world), has_power(world), mark(world)) == ([State.OFF], False, MARK)


@pytest.mark.share(4)
@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("number", range(1, TO_WAKE + 1, 7))
def test_another_manager_wakes_a_host(asleep, number, turn):
    world = asleep
    world.lease(start=25 * MINUTE)
    run_with(world, number, turn, 15)
    assert (states(world), is_up(world), mark(world)) == ([State.ON], True, None)
    assert [state for state, _ in log(world)] == ["going_off", "off", "waking", "on"]
