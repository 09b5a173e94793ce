# SPDX-License-Identifier: Apache-2.0
"""Hooks that answer 409, where nothing can take the place of their resource: at a start, on its retry, in a change."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from blazar.clouds.ports.hooks import HookAction, HookAnswer, HookCall
from blazar.model.base.errors import CloudUnavailable, Conflict
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus, ReservationStatus
from blazar.model.resources.resource import GENERIC
from tests.world import NOON, World, things, units

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
BUSY = "its laser is off"


@pytest.fixture
def world(sqlite) -> World:
    return World(sqlite, hosts=0)


def heal(world: World) -> None:
    for _ in range(world.settings.failures_before_healing):
        world.clock.by(minutes=1)
        world.manager.monitor.run_once()
        world.run()


def had(world: World, lease: Lease) -> set[str]:
    """Return the names of the things that the receivers know the reservation to have."""
    (reservation,) = world.now(lease).reservations
    with world.simulated.inspect() as state:
        return {thing.name for thing in state.things.values() if reservation.id in thing.users}


def failing(world: World, name: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let the hook of one thing be out of reach; return what ends that."""
    usual = world.simulated.hooks.call_hook

    def answer(call: HookCall) -> HookAnswer:
        if call.data["resource"]["name"] == name and call.action is HookAction.START:
            raise CloudUnavailable("its hook cannot be reached")
        return usual(call)

    monkeypatch.setattr(world.simulated.hooks, "call_hook", answer)
    return lambda: monkeypatch.setattr(world.simulated.hooks, "call_hook", usual)


def test_a_reservation_with_nothing_left_is_in_error_and_says_that_nothing_else_was_free(world):
    thing = world.register_thing()
    lease = world.lease(things(), start=HOUR)
    world.simulated.operators.break_thing(thing.external_id, unusable=BUSY)
    world.run_to(NOON + HOUR)
    now = world.now(lease)
    start = now.event(EventType.START)
    assert (now.status, start.status) == (LeaseStatus.ERROR, EventStatus.ERROR)
    assert [r.status for r in now.reservations] == [ReservationStatus.ERROR]
    assert start.reason == f"microscope-1: {BUSY}; nothing else is free to take its place"
    # Not asked again and again, and free for others at the end.
    world.run_to(NOON + 2 * HOUR)
    assert world.faults.calls["call_hook"] == 1
    world.run_to(NOON + 3 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED


def test_a_reservation_starts_with_the_rest_and_gets_the_thing_when_it_can_be_used(world):
    first, _ = world.register_thing("microscope-1"), world.register_thing("microscope-2")
    lease = world.lease(things(2), start=HOUR, hours=20)
    world.simulated.operators.break_thing(first.external_id, unusable=BUSY)
    world.run_to(NOON + HOUR)
    now = world.now(lease)
    assert (now.status, now.degraded, had(world, lease)) == (LeaseStatus.ACTIVE, True, {"microscope-2"})
    assert now.event(EventType.START).status is EventStatus.DONE
    assert now.event(EventType.START).reason == f"microscope-1: {BUSY}"
    assert [each["name"] for each in now.reservations[0].shown["resources"]] == ["microscope-2"]
    # Its health is fine, and it still cannot be handed over.
    heal(world)
    assert (world.now(lease).degraded, had(world, lease)) == (True, {"microscope-2"})
    world.simulated.operators.break_thing(first.external_id)
    heal(world)
    assert (world.now(lease).degraded, had(world, lease)) == (False, {"microscope-1", "microscope-2"})
    assert {each["name"] for each in world.now(lease).reservations[0].shown["resources"]} == had(world, lease)


def test_on_a_retry_the_thing_is_asked_once_more_and_taken_if_it_can_be_used(world, monkeypatch):
    first, _ = world.register_thing("microscope-1"), world.register_thing("microscope-2")
    lease = world.lease(things(2), start=HOUR, hours=20)
    world.simulated.operators.break_thing(first.external_id, unusable=BUSY)
    back = failing(world, "microscope-2", monkeypatch)
    world.run_to(NOON + HOUR)
    now = world.now(lease)
    assert (now.status, now.reservations[0].status) == (LeaseStatus.STARTING, ReservationStatus.PENDING)
    assert now.event(EventType.START).reason == "microscope-2: its hook cannot be reached"
    back()
    world.simulated.operators.break_thing(first.external_id)
    world.run_to(NOON + HOUR + 5 * MINUTE)
    assert (world.now(lease).status, had(world, lease)) == (LeaseStatus.ACTIVE, {"microscope-1", "microscope-2"})
    heal(world)
    assert world.now(lease).degraded is False
    assert [each.failure for each in world.manager.resources.all(GENERIC)] == [None, None]


@pytest.mark.slow
def test_on_a_retry_the_start_goes_on_without_what_still_cannot_be_used(world, monkeypatch):
    first, _ = world.register_thing("microscope-1"), world.register_thing("microscope-2")
    lease = world.lease(things(2), start=HOUR, hours=20)
    world.simulated.operators.break_thing(first.external_id, unusable=BUSY)
    back = failing(world, "microscope-2", monkeypatch)
    world.run_to(NOON + HOUR + 5 * MINUTE)
    assert world.now(lease).status is LeaseStatus.STARTING
    back()
    world.run_to(NOON + HOUR + 10 * MINUTE)
    now = world.now(lease)
    assert (now.status, now.degraded, had(world, lease)) == (LeaseStatus.ACTIVE, True, {"microscope-2"})
    assert BUSY in now.event(EventType.START).reason


def test_a_change_that_needs_an_unusable_thing_is_undone_and_the_lease_keeps_what_it_has(world):
    for number in (1, 2):
        world.register_thing(f"microscope-{number}")
    lease = world.lease(things(), start=HOUR, hours=20)
    world.run_to(NOON + HOUR)
    before = had(world, lease)
    (other,) = [each for each in world.manager.resources.all(GENERIC) if each.name not in before]
    world.simulated.operators.break_thing(other.external_id, unusable=BUSY)
    with pytest.raises(Conflict, match=f"{other.name}: {BUSY}; retry later"):
        world.resize(lease, min=2, max=2)
    world.run()
    assert (world.now(lease).status, world.now(lease).degraded, had(world, lease)) == (
        LeaseStatus.ACTIVE,
        False,
        before,
    )


def test_more_units_of_an_unusable_thing_are_refused_and_those_in_use_stay(world):
    thing = world.register_thing(capacity=5)
    lease = world.lease(units(1), start=HOUR, hours=20)
    world.run_to(NOON + HOUR)
    world.simulated.operators.break_thing(thing.external_id, unusable=BUSY)
    with pytest.raises(Conflict, match=f"{BUSY}; retry later"):
        world.resize(lease, amount=2)
    world.run()
    (reservation,) = world.now(lease).reservations
    assert (world.now(lease).status, reservation.status) == (LeaseStatus.ACTIVE, ReservationStatus.ACTIVE)
    with world.simulated.inspect() as state:
        assert state.things[thing.external_id].users == {reservation.id: 1}
