# SPDX-License-Identifier: Apache-2.0
"""Slow hooks of one reservation are called side by side, within bounds, and what they answer is kept in order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest

from blazar.clouds.ports.hooks import HookAction, HookAnswer, HookCall, HookResult
from blazar.context import current
from blazar.model.base.errors import ClaimLost
from blazar.model.leases.states import LeaseStatus
from blazar.resources.generic.hook_calls import CALLERS, call_hooks
from tests.world import NOON, World, things

HOUR = timedelta(hours=1)


@pytest.fixture
def world(sqlite) -> World:
    world = World(sqlite, hosts=0)
    for number in range(2 * CALLERS):
        world.register_thing(f"microscope-{number:02}")
    return world


def in_step(world: World, monkeypatch: pytest.MonkeyPatch, wait: Callable[[], object]) -> list[HookCall]:
    """Let every call wait before it is answered; return the list of those that have come."""
    usual, come = world.simulated.hooks.call_hook, []

    def answer(call: HookCall) -> HookAnswer:
        come.append(call)
        wait()
        return usual(call)

    monkeypatch.setattr(world.simulated.hooks, "call_hook", answer)
    return come


def test_as_many_hooks_as_there_are_threads_are_called_at_once(world, monkeypatch):
    lease = world.lease(things(2 * CALLERS), start=HOUR)
    # Each call is answered only when as many others wait for their answers: one after the other, none would be.
    calls = in_step(world, monkeypatch, threading.Barrier(CALLERS, timeout=20).wait)
    world.run_to(NOON + HOUR)
    assert (world.now(lease).status, len(calls)) == (LeaseStatus.ACTIVE, 2 * CALLERS)
    world.run_to(NOON + 3 * HOUR)
    # The start, the announcement of the end, and the end.
    assert (world.now(lease).status, len(calls)) == (LeaseStatus.TERMINATED, 6 * CALLERS)


def test_no_more_hooks_are_called_at_once_than_there_are_threads(world, monkeypatch):
    world.lease(things(2 * CALLERS), start=HOUR)
    lock, busy, most = threading.Lock(), [0], [0]
    usual = world.simulated.hooks.call_hook

    def answer(call: HookCall) -> HookAnswer:
        with lock:
            busy[0] += 1
            most[0] = max(busy[0], most[0])
        try:
            return usual(call)
        finally:
            with lock:
                busy[0] -= 1

    monkeypatch.setattr(world.simulated.hooks, "call_hook", answer)
    world.run_to(NOON + HOUR)
    assert 1 <= most[0] <= CALLERS


def test_resources_are_shown_in_one_order_whichever_hook_answers_first(world, monkeypatch):
    lease = world.lease(things(CALLERS), start=HOUR)
    answered = {name: threading.Event() for name in world.hosts_of(lease)}
    order = sorted(answered)
    usual = world.simulated.hooks.call_hook

    def last_first(call: HookCall) -> HookAnswer:
        name = call.data["resource"]["name"]
        after = order[order.index(name) + 1 :]
        assert all(answered[each].wait(20) for each in after[:1])
        try:
            return usual(call)
        finally:
            answered[name].set()

    monkeypatch.setattr(world.simulated.hooks, "call_hook", last_first)
    world.run_to(NOON + HOUR)
    (reservation,) = world.now(lease).reservations
    assert [each["name"] for each in reservation.shown["resources"]] == order


def test_all_hooks_are_asked_before_any_that_is_not_ready_is_asked_again(world):
    world.simulated.durations.hook = timedelta(minutes=5)
    lease = world.lease(things(2 * CALLERS), start=HOUR)
    world.run_to(NOON + HOUR)
    assert (world.now(lease).status, world.faults.calls["call_hook"]) == (LeaseStatus.STARTING, 2 * CALLERS)
    world.run_to(NOON + HOUR + timedelta(minutes=5))
    assert (world.now(lease).status, world.faults.calls["call_hook"]) == (LeaseStatus.ACTIVE, 4 * CALLERS)


def test_every_call_is_made_under_the_claim_of_the_work(world, monkeypatch):
    lease = world.lease(things(CALLERS), start=HOUR)
    fences = []
    in_step(world, monkeypatch, lambda: fences.append(current().fence))
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert len(fences) == CALLERS
    assert None not in fences
    assert len({id(fence) for fence in fences}) == 1


def test_when_the_claim_is_lost_no_other_call_begins(world):
    class Lost:
        """Hooks that nobody may call any more from the first call on."""

        def __init__(self) -> None:
            self.calls = 0
            self.first = threading.Barrier(CALLERS, timeout=20)

        def call_hook(self, call: HookCall) -> HookAnswer:
            self.calls += 1
            self.first.wait()
            raise ClaimLost("another manager goes on with the work")

    resources = world.manager.resources.all("generic")
    hooks = Lost()
    with pytest.raises(ClaimLost):
        call_hooks(hooks, resources, lambda each: HookCall((each.external_id,), "u", "i", HookAction.START, NOON, {}))
    assert hooks.calls == CALLERS


def test_a_hook_that_fails_keeps_no_other_from_being_called(world):
    names = [each.name for each in world.manager.resources.all("generic")]

    class Mixed:
        """Hooks of which each answers something else."""

        def call_hook(self, call: HookCall) -> HookAnswer:
            number = names.index(call.things[0])
            return HookAnswer([*HookResult][number % 4], f"answer {number}", after=timedelta(seconds=number))

    resources = world.manager.resources.all("generic")
    tally = call_hooks(Mixed(), resources, lambda each: HookCall((each.name,), "u", "i", HookAction.END, NOON, {}))
    assert [each.name for each, _ in tally.done] == names[0::4]
    assert [each.name for each, _ in tally.waiting] == names[1::4]
    assert list(tally.unusable.values()) == [f"{name}: answer {names.index(name)}" for name in names[2::4]]
    assert [each.message for each in tally.failures] == [f"{name}: answer {names.index(name)}" for name in names[3::4]]
