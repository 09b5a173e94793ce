# SPDX-License-Identifier: Apache-2.0
"""Hooks that answer "not yet" for as long as they may: they delay no end of a lease beyond what is promised."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from blazar.clouds.ports.hooks import HookAction, HookAnswer, HookCall, HookResult
from blazar.model.base.errors import CloudRefused
from blazar.model.leases.states import EventType, LeaseStatus
from tests.world import NOON, World, things

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
IN_AN_HOUR = HookAnswer(HookResult.NOT_YET, "it is not ready yet (202)", after=HOUR)


@pytest.fixture
def world(sqlite) -> World:
    return World(sqlite, hosts=0)


@pytest.fixture
def answers(world, monkeypatch) -> Callable[[Callable[[HookCall], HookAnswer | None]], None]:
    """Return what gives hooks other answers than usual, as far as there are any."""
    usual = world.simulated.hooks.call_hook

    def give(answer: Callable[[HookCall], HookAnswer | None]) -> None:
        monkeypatch.setattr(world.simulated.hooks, "call_hook", lambda call: answer(call) or usual(call))

    return give


def test_the_announcement_of_the_end_delays_it_by_the_grace_at_most(world, answers):
    world.register_thing()
    answers(lambda call: IN_AN_HOUR if call.action is HookAction.BEFORE_END else None)
    lease = world.lease(things(), hours=1, before_end=NOON + 50 * MINUTE)
    world.run_to(NOON + HOUR + world.settings.snapshot_grace - MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    world.run_to(NOON + HOUR + world.settings.snapshot_grace + MINUTE)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert "not finished at the end of the lease" in world.now(lease).event(EventType.BEFORE_END).reason


def test_the_undo_of_a_change_does_not_delay_the_end(world, answers):
    for number in (1, 2):
        world.register_thing(f"microscope-{number}")
    lease = world.lease(things(), hours=1)
    world.run_to(NOON + 50 * MINUTE)
    (held,) = world.hosts_of(lease)

    def answer(call: HookCall) -> HookAnswer | None:
        if call.action is HookAction.START and call.message_id.endswith("u"):
            return IN_AN_HOUR
        if call.action is HookAction.START and call.data["resource"]["name"] != held:
            raise CloudRefused("its hook refuses the call (400)")
        return None

    answers(answer)
    with pytest.raises(CloudRefused):
        world.resize(lease, min=2, max=2)
    world.run()
    assert world.now(lease).status is LeaseStatus.UPDATING
    world.run_to(NOON + HOUR + MINUTE)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert "not undone before the end of the lease" in world.now(lease).event(EventType.UPDATE).reason
    with world.simulated.inspect() as state:
        assert not any(thing.users for thing in state.things.values())
