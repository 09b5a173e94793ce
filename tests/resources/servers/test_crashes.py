# SPDX-License-Identifier: Apache-2.0
"""Managers that die while they boot servers: others finish or undo it, and nobody else can boot meanwhile."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest

from blazar.model.leases.requests import LeaseChange, ReservationChange
from blazar.model.leases.states import LeaseStatus
from tests import oracle
from tests.conformance.sites import PUBLIC_KEY
from tests.manager.events.test_crashes import dies
from tests.world import World, servers

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def in_place(world: World, lease, amount: int) -> None:
    """Check that an active lease has so many servers and ids of them, and that no door to its capacity is open."""
    now = world.now(lease)
    assert now.status is LeaseStatus.ACTIVE
    found = [server.id for server in world.simulated.operators.list_servers()]
    assert (len(found), set(now.reservations[0].shown["server_ids"] or ())) == (amount, set(found))
    with world.simulated.inspect() as state:
        assert not state.boot.keys, "a key pair is left over"
    oracle.check_at_rest(world.store, world.simulated, now=world.clock.now())


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_manager_killed_at_any_step_of_a_start_another_finishes_it(world, phase):
    for step in itertools.count(1):
        lease = world.lease(servers(2, public_key=PUBLIC_KEY), start=HOUR)
        died = dies(world, lambda due=lease.window.start: world.run_to(due), step, phase)
        world.run_to(world.clock.now() + MINUTE)
        in_place(world, lease, 2)
        world.manager.leases.delete(lease.id)
        world.run_to(world.clock.now() + HOUR)
        if not died:
            break
    assert step > 10


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_manager_killed_at_any_step_of_a_growth_another_undoes_it(world, phase):
    for step in itertools.count(1):
        lease = world.lease(servers(public_key=PUBLIC_KEY), start=HOUR)
        world.run_to(lease.window.start)
        grown = LeaseChange(reservations=(ReservationChange(lease.reservations[0].id, {"amount": 2}),))
        died = dies(world, lambda it=lease.id, to=grown: world.manager.leases.update(it, to), step, phase)
        world.run_to(world.clock.now() + MINUTE)
        in_place(world, lease, 1 if died else 2)
        world.manager.leases.delete(lease.id)
        world.run_to(world.clock.now() + HOUR)
        if not died:
            break
    assert step > 10
