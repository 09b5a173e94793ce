# SPDX-License-Identifier: Apache-2.0
"""Managers that die at any call of a hook: another one finishes, each message is heard once, and nothing is left."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pytest

from blazar.model.leases.lease import Lease
from blazar.model.leases.states import LeaseStatus
from blazar.model.resources.resource import GENERIC
from tests.manager.events.test_crashes import dies
from tests.oracle import check_at_rest
from tests.world import World, things, units

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


@pytest.fixture
def world(sqlite) -> World:
    world = World(sqlite, hosts=0)
    for number, capacity in enumerate((1, 1, 1, 4)):
        world.register_thing(f"microscope-{number}", capacity=capacity)
    return world


def rooms(world: World) -> Lease:
    return world.lease(things(2), units(3), start=HOUR)


def heard(world: World) -> Counter[str]:
    with world.simulated.inspect() as state:
        return Counter(message for thing in state.things.values() for message in thing.heard)


def start(world: World, lease: Lease) -> None:
    world.run_to(lease.window.start)


def end(world: World, lease: Lease) -> None:
    world.run_to(lease.window.end)


def delete(world: World, lease: Lease) -> None:
    world.manager.leases.delete(lease.id)


def grow(world: World, lease: Lease) -> None:
    world.resize(lease, min=3, max=3)


def move(world: World, lease: Lease) -> None:
    names = world.hosts_of(lease)
    first = next(r for r in world.manager.resources.all(GENERIC) if r.name in names and r.capacity.get("UNIT") == 1)
    world.manager.resources.move(GENERIC, first.external_id, lease.reservations[0].id)


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["before", "after"])
@pytest.mark.parametrize(("act", "steps"), [(start, 3), (end, 3), (delete, 3), (grow, 2), (move, 2)])
def test_a_manager_killed_at_any_call_another_finishes(world, act: Callable[[World, Lease], None], steps, phase):
    for step in itertools.count(1):
        lease = rooms(world)
        if act is not start:
            world.run_to(lease.window.start)
        died = dies(world, lambda it=lease: act(world, it), step, phase)
        world.run_to(world.clock.now() + MINUTE)
        check_at_rest(world.store, world.simulated, now=world.clock.now())
        assert world.now(lease).status in (LeaseStatus.ACTIVE, LeaseStatus.TERMINATED, LeaseStatus.DELETING)
        world.run_to(lease.window.end + MINUTE)
        check_at_rest(world.store, world.simulated, now=world.clock.now())
        if not died:
            break
    assert step > steps
    assert set(heard(world).values()) == {1}
