# SPDX-License-Identifier: Apache-2.0
"""Which volume types lead to a pool is seen when it is registered, and at every poll."""

from __future__ import annotations

import pytest

from blazar.clouds.simulated.volume_state import PoolState, VolumeTypeState
from blazar.model.base.errors import InvalidInput
from blazar.model.resources.changes import Registration
from blazar.model.resources.resource import VOLUME
from tests.world import World

POOL = "node@disks#1"


@pytest.fixture
def world(sqlite) -> World:
    return World(sqlite, register=False)


def add_type(world: World, name: str, *, public: bool = True, **specs: str) -> None:
    """Add a volume type."""
    with world.simulated.change_state() as state:
        state.block.types[name] = VolumeTypeState(name, name, public, specs)


def remove_type(world: World, name: str) -> None:
    """Remove a volume type."""
    with world.simulated.change_state() as state:
        del state.block.types[name]


def pool(world: World):
    """Return the pool as it is on record after two polls, which must agree on a failure."""
    for _ in range(2):
        world.manager.monitor.run_once()
    (found,) = world.store.resources.catalog(VOLUME).resources
    return found


def test_types_without_a_backend_are_shown_from_the_registration_on(world):
    add_type(world, "__DEFAULT__")
    add_type(world, "of nobody", public=False)
    world.register_pools(1)
    assert pool(world).attributes["open_to"] == "__DEFAULT__"
    add_type(world, "any")
    found = pool(world)
    assert (found.attributes["open_to"], found.failure) == ("__DEFAULT__, any", None)
    remove_type(world, "any")
    remove_type(world, "__DEFAULT__")
    assert pool(world).attributes["open_to"] == ""


def test_another_type_of_the_backend_is_refused_and_later_lets_the_pool_fail(world):
    world.simulated.volume_users.add_pool(PoolState(POOL, "disks", "1", 30), type_name="disks-1")
    add_type(world, "theirs", volume_backend_name="disks")
    given = Registration({"pool": POOL, "volume_type": "disks-1", "gigabytes": 30})
    with pytest.raises(InvalidInput, match="is used by volume type theirs, too"):
        world.manager.resources.register(VOLUME, given)
    remove_type(world, "theirs")
    world.manager.resources.register(VOLUME, given)
    assert pool(world).failure is None
    add_type(world, "theirs", volume_backend_name="disks")
    assert "theirs leads to the pool" in pool(world).failure
    remove_type(world, "theirs")
    assert pool(world).failure is None
