# SPDX-License-Identifier: Apache-2.0
"""A manager that dies, or stands still, at each call with which it puts a host to sleep and wakes it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from blazar.model.power.states import MARK, PowerState
from tests.configured import configured_world
from tests.manager.power.nights import (
    MINUTE,
    NO_SPARE,
    give_switches,
    has_power,
    is_up,
    log,
    mark,
    pass_time,
    states,
    work,
)
from tests.observed import Killed, ObservedStore
from tests.world import World

DIES, STANDS_STILL = TURNS = ("dies", "stands still")
TO_SLEEP, TO_WAKE = 84, 46
"""As many points as it takes until a host sleeps, and until it is awake."""


class Strikes:
    """Lets something happen at a point: before or after a call of the cloud, or an operation of the database.

    What is called by a receiver in a thread of its own is a point, too; it is the manager that dies there, not the
    receiver, which would never answer.
    """

    def __init__(self, number: int, strike: Callable[[], None]) -> None:
        self.passed: list[str] = []
        self._number = number
        self._strike: Callable[[], None] | None = strike
        self._manager = threading.get_ident()

    def pass_point(self, name: str) -> None:
        self.passed.append(name)
        strike = self._strike
        if strike is not None and len(self.passed) >= self._number and threading.get_ident() == self._manager:
            self._strike = None
            strike()

    def in_store(self, name: str, call: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        self.pass_point(f"before {name}")
        found = call(*arguments, **more)
        self.pass_point(f"after {name}")
        return found


@pytest.fixture
def world(sqlite, tmp_path) -> World:
    world = configured_world(sqlite, tmp_path, *NO_SPARE, hosts=1)
    give_switches(world)
    world.clock.by(hours=1)
    return world


def run_with(world: World, number: int, turn: str, minutes: int) -> None:
    """Let minutes pass while a manager works to which this happens at a point, and then another one alone."""
    other, ttl = world.manager, world.settings.claim_ttl

    def strike() -> None:
        world.faults.on_call = None
        if turn == DIES:
            raise Killed
        world.clock.by(seconds=ttl.total_seconds() + 1)
        work(other)

    strikes = Strikes(number, strike)
    victim = world.another_manager(store=ObservedStore(world.store, strikes.in_store))
    strikes.passed.clear()
    world.faults.on_call = lambda name, now: strikes.pass_point(f"{now} {name}")
    end = world.clock.now() + minutes * MINUTE
    with suppress(Killed):
        pass_time(world, minutes * MINUTE, victim)
    world.faults.on_call = None
    assert len(strikes.passed) >= number
    pass_time(world, max(end - world.clock.now(), MINUTE), other)


@pytest.mark.share(8)
@pytest.mark.slow
@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("number", range(1, TO_SLEEP + 1))
def test_another_manager_brings_a_host_to_sleep(world, number, turn):
    run_with(world, number, turn, 8)
    assert (states(world), has_power(world), mark(world)) == ([PowerState.OFF], False, MARK)


@pytest.mark.share(8)
@pytest.mark.slow
@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("number", range(1, TO_WAKE + 1))
def test_another_manager_wakes_a_host(world, number, turn):
    pass_time(world, 4 * MINUTE)
    assert states(world) == [PowerState.OFF]
    world.lease(start=25 * MINUTE)
    run_with(world, number, turn, 15)
    assert (states(world), is_up(world), mark(world)) == ([PowerState.ON], True, None)
    assert [state for state, _ in log(world)] == ["going_off", "off", "waking", "on"]


@pytest.mark.share(8)
@pytest.mark.slow
@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("number", range(20, TO_SLEEP + 1, 3))
def test_another_manager_does_not_put_a_host_to_sleep_that_is_booked_meanwhile(world, number, turn):
    run_with(world, number, turn, 2)
    world.lease(start=20 * MINUTE)
    pass_time(world, 18 * MINUTE)
    assert (states(world), is_up(world), mark(world)) == ([PowerState.ON], True, None)
