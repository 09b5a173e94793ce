# SPDX-License-Identifier: Apache-2.0
"""The end of one lease while another one of the project is being changed."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import pytest

from blazar.model.leases.requests import LeaseChange, ReservationChange
from blazar.model.leases.states import LeaseStatus
from tests.oracle import check_at_rest
from tests.resources.volumes.test_life import type_id
from tests.world import NOON, PROJECT, World, volumes

HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)


class Died(BaseException):
    """The manager process is killed."""


@pytest.fixture
def world(sqlite) -> World:
    world = World(sqlite, register=False)
    world.register_pools(1)
    return world


def test_an_end_deletes_no_volumes_of_users_to_make_room_for_a_change_that_is_not_final(world):
    """Of users' volumes it deletes as many as they had room for in the lease that ends, and no more."""
    world.lease(volumes(2, size=1, mode="quota"), hours=1)
    world.lease(volumes(2, size=1, mode="quota"), hours=8)
    growing = world.lease(volumes(1, size=1), hours=8)
    world.run_to(NOON + HOUR - SECOND)
    type_ = type_id(world, 1)
    theirs = [world.simulated.volume_users.create(PROJECT, type_, 1).id for _ in range(4)]

    made: list[str] = []

    def hook(called: str, phase: str) -> None:
        if (called, phase) == ("begin_volume", "after"):
            made.append(called)
        if made:
            raise Died

    world.faults.on_call = hook
    change = LeaseChange(reservations=(ReservationChange(growing.reservations[0].id, {"amount": 2}),))
    with suppress(Died):
        world.manager.leases.update(growing.id, change)
    world.faults.clear()
    assert world.now(growing).status is LeaseStatus.UPDATING
    world.run_to(NOON + HOUR)
    assert world.now(growing).status is LeaseStatus.UPDATING
    with world.simulated.inspect() as state:
        assert sum(id_ in state.block.volumes for id_ in theirs) == 2
    world.run_to(NOON + 2 * HOUR)
    with world.simulated.inspect() as state:
        assert sum(id_ in state.block.volumes for id_ in theirs) == 2
    for id_ in theirs[2:]:
        world.simulated.volume_users.delete(id_)
    check_at_rest(world.store, world.simulated, now=world.clock.now())


@pytest.mark.slow
def test_an_end_deletes_no_volumes_of_users_for_those_of_another_lease_that_cannot_be_deleted_yet(world):
    world.lease(volumes(2, size=1, mode="quota"), hours=1)
    ending = world.lease(volumes(2, size=1), hours=0.5)
    world.lease(volumes(2, size=1, mode="quota"), hours=8)
    world.run_to(NOON)
    with world.simulated.inspect() as state:
        (held, *_) = state.block.volumes
    server = world.simulated.users.boot_server("work", project_id="another", user_id="eve", host=None)
    world.simulated.volume_users.attach(held, server.id, root=True)
    type_ = type_id(world, 1)
    theirs = [world.simulated.volume_users.create(PROJECT, type_, 1).id for _ in range(4)]
    world.run_to(NOON + HOUR)
    assert world.now(ending).status is not LeaseStatus.TERMINATED
    with world.simulated.inspect() as state:
        assert sum(id_ in state.block.volumes for id_ in theirs) == 2
