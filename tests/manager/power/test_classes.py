# SPDX-License-Identifier: Apache-2.0
"""Hosts of different classes: each class has its own spare, and what is learned of it is its own."""

from __future__ import annotations

import pytest

from blazar.model.power.states import PowerState
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST
from tests.configured import configured_world
from tests.manager.power.nights import MINUTE, ON, give_switches, hosts_of, pass_time, states
from tests.world import World


@pytest.fixture
def world(sqlite, tmp_path) -> World:
    """A service with three hosts, and two with a GPU."""
    world = configured_world(sqlite, tmp_path, *ON, "class_by = gpu", "spare = 1", hosts=5)
    give_gpu(world, 4)
    give_gpu(world, 5)
    give_switches(world)
    world.clock.by(hours=1)
    return world


def give_gpu(world: World, number: int) -> None:
    host = hosts_of(world)[number - 1]
    world.manager.resources.change(HOST, host.external_id, ResourceChange(capabilities={"gpu": "A100"}))


def test_each_class_has_a_spare_of_its_own(world):
    pass_time(world, 20 * MINUTE)
    found = states(world)
    assert found[:3].count(PowerState.OFF) == 2
    assert found[3:].count(PowerState.OFF) == 1


def test_a_host_of_which_another_property_is_known_counts_for_its_new_class_at_once(world):
    """Else the spare of a class that there was not an hour ago would be none."""
    pass_time(world, 20 * MINUTE)
    asleep = states(world)[:3].index(PowerState.OFF)
    awake = states(world)[:3].index(PowerState.ON)
    for number in range(1, 6):
        host = hosts_of(world)[number - 1]
        gpu = "H100" if number - 1 in (asleep, awake) else "A100"
        world.manager.resources.change(HOST, host.external_id, ResourceChange(capabilities={"gpu": gpu}))
    pass_time(world, 15 * MINUTE)
    found = states(world)
    assert {found[asleep], found[awake]} == {PowerState.OFF, PowerState.ON}
