# SPDX-License-Identifier: Apache-2.0
"""Managers that die while they make a stack with all that it is made of: others finish or undo it, and make it once."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest

from blazar.model.leases.states import LeaseStatus, ReservationStatus
from tests.manager.events.test_crashes import dies
from tests.resources.stacks.test_life import HOUR, MINUTE, WHOLE, a_stack, at_rest, furnish
from tests.world import World, copied

pytestmark = pytest.mark.slow


@pytest.fixture
def world(sqlite) -> World:
    return copied(sqlite, furnish)[0]


@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_manager_killed_at_any_step_of_a_creation_leaves_a_whole_lease_or_nothing(world, phase):
    for step in itertools.count(1):
        died = dies(world, lambda: world.lease(a_stack(WHOLE), start=HOUR), step, phase)
        world.run_to(world.clock.now() + MINUTE)
        at_rest(world)
        for lease in world.manager.leases.all(None):
            assert len(world.now(lease).reservations) == 5, step
            world.manager.leases.delete(lease.id)
        at_rest(world)
        if not died:
            break
    assert step > 8


@pytest.mark.parametrize("phase", ["before", "after"])
@pytest.mark.parametrize("what", ["start", "end"])
def test_a_manager_killed_at_any_step_of_its_life_another_finishes_it(world, what, phase):
    # Every third point, others for each phase: most are those of what the stack is made of.
    for step in itertools.count(1 if phase == "before" else 2, 3):
        lease = world.lease(a_stack(WHOLE), start=HOUR, hours=1)
        if what == "end":
            world.run_to(lease.window.start + MINUTE)
        until = (lease.window.start if what == "start" else lease.window.end) + MINUTE
        died = dies(world, lambda until=until: world.run_to(until), step, phase)
        world.run_to(world.clock.now() + 3 * MINUTE)
        now = world.now(lease)
        assert now.status is (LeaseStatus.ACTIVE if what == "start" else LeaseStatus.TERMINATED), step
        wanted = ReservationStatus.ACTIVE if what == "start" else ReservationStatus.DELETED
        assert {each.status for each in now.reservations} == {wanted}, step
        at_rest(world)
        world.run_to(lease.window.end + 5 * MINUTE)
        at_rest(world)
        if not died:
            break
    assert step > 15


def deleted(world: World, lease_id: str) -> None:
    world.manager.leases.delete(lease_id)
    world.run_to(world.clock.now() + MINUTE)


def test_a_deletion_whose_manager_dies_takes_stack_and_children(world):
    for step in itertools.count(1, 2):
        lease = world.lease(a_stack(WHOLE))
        world.run_to(world.clock.now() + MINUTE)
        died = dies(world, lambda it=lease.id: deleted(world, it), step, "after")
        world.run_to(world.clock.now() + 5 * MINUTE)
        if died and world.now(lease).deleted_at is None:
            world.manager.leases.delete(lease.id)
            world.run_to(world.clock.now() + timedelta(minutes=5))
        assert world.now(lease).deleted_at is not None, step
        assert world.store.calendar.of_lease(lease.id) == ()
        at_rest(world)
        if not died:
            break
    assert step > 10
