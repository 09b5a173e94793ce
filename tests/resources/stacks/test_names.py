# SPDX-License-Identifier: Apache-2.0
"""Names of stacks: a project can have one once at a time, and a user who asks for it twice is told at once."""

from __future__ import annotations

import pytest

from blazar.clouds.ports.stacks import StackPlan
from blazar.model.base.errors import Conflict, InvalidInput
from blazar.model.leases.states import LeaseStatus
from tests.resources.stacks.test_life import (
    FLAVORS,
    HOUR,
    MINUTE,
    NET,
    a_stack,
    at_rest,
    server,
    stacks,
    template,
)
from tests.statements import counted
from tests.world import NOON, PROJECT, World

ONE = template(one=server())


@pytest.fixture
def world(sqlite) -> World:
    world = World(sqlite)
    for flavor in FLAVORS:
        world.simulated.operators.offer_flavor(flavor)
    return world


def named(name: object = "web") -> object:
    return a_stack(ONE, stack_name=name)


def test_two_of_a_name_in_one_lease_are_refused(world):
    with pytest.raises(InvalidInput, match=r"reservations\[0\] has") as refused:
        world.lease(named(), a_stack(ONE), named())
    assert refused.value.pointer == "/reservations/2/stack_name"
    assert world.store.leases.of_project(None) == ()


def test_two_of_a_name_in_leases_that_overlap_are_refused(world):
    first = world.lease(named(), start=HOUR)
    with pytest.raises(Conflict, match=first.id) as refused:
        world.lease(a_stack(ONE), named(), start=2 * HOUR)
    assert refused.value.pointer == "/reservations/1/stack_name"
    assert [lease.id for lease in world.store.leases.of_project(None)] == [first.id]


def test_other_times_projects_and_names_may_have_it(world):
    world.lease(named(), start=HOUR, hours=1)
    world.lease(named(), start=2 * HOUR, hours=1)
    world.lease(named(), start=HOUR, hours=1, project="chemistry")
    world.lease(named("WEB"), start=HOUR, hours=1)
    world.lease(a_stack(ONE), a_stack(ONE), start=HOUR, hours=1)
    world.lease(named("null"), start=HOUR, hours=1)


def test_a_lease_that_has_failed_or_ended_or_is_deleted_keeps_no_name(world):
    ended = world.lease(named(), hours=2)
    world.run_to(NOON + MINUTE)
    world.manager.leases.delete(ended.id)
    world.run_to(NOON + 3 * MINUTE)
    failed = world.lease(named(), start=HOUR, hours=3)
    with world.simulated.change_state() as state:
        for host in state.hosts.values():
            host.enabled = False
    world.run_to(NOON + HOUR + 10 * MINUTE)
    assert world.now(failed).status is LeaseStatus.ERROR
    world.lease(named(), start=HOUR)


def test_new_dates_that_overlap_with_its_name_elsewhere_are_refused(world):
    first = world.lease(named(), start=HOUR, hours=1)
    world.lease(named(), start=2 * HOUR, hours=1)
    with pytest.raises(Conflict, match='stack_name is "web"'):
        world.change(first, end=NOON + 3 * HOUR)
    assert world.now(first).window == first.window
    world.change(first, start=NOON + HOUR / 2)


def test_one_that_is_there_is_refused_to_a_lease_that_starts_at_once(world):
    plan = StackPlan("web", template(net=NET))
    theirs = world.simulated.cloud.stacks.begin_stack(PROJECT, plan, tags=frozenset())
    with pytest.raises(Conflict, match='stack_name is "web", and the project has a stack of that name'):
        world.lease(named())
    assert world.store.leases.of_project(None) == ()
    world.simulated.cloud.stacks.begin_stack_deletion(PROJECT, theirs)
    lease = world.lease(named())
    world.run_to(NOON + 3 * MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    world.run_to(NOON + 2 * HOUR + 3 * MINUTE)
    assert stacks(world) == []
    at_rest(world)


@pytest.mark.slow
def test_one_of_a_lease_that_is_ending_does_not_keep_the_next_from_it(world):
    world.lease(named(), hours=1)
    world.run_to(NOON + MINUTE)
    world.simulated.durations.stack = 2 * MINUTE
    world.clock.to(NOON + HOUR)
    world.run()
    assert [stack.action for stack in stacks(world)] == ["DELETE"]
    after = world.lease(named())
    world.run_to(NOON + HOUR + 9 * MINUTE)
    assert world.now(after).status is LeaseStatus.ACTIVE


def test_names_of_many_stacks_are_looked_up_together(world):
    with counted(world.engine) as few:
        world.lease(named("a"), start=HOUR)
    with counted(world.engine) as more:
        world.lease(named("b"), named("c"), named("d"), start=3 * HOUR)
    assert [sum("stack_name" in text or "JSON" in text for text in each.texts) for each in (few, more)] == [1, 1]
