# SPDX-License-Identifier: Apache-2.0
"""Hosts of different classes: each class has its own spare, and what is learned of it is its own."""

from __future__ import annotations

import pytest

from blazar.cmd.config import ConfigurationError
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


def test_a_spare_is_as_large_as_the_file_says_for_the_class_and_the_hour(sqlite, tmp_path):
    """The clock of the site is two hours ahead: it is 14 o'clock there when the test begins."""
    options = ("class_by = gpu", "spare = 0", "spares = gpu=A100; MO; 15:00-17:00: 2, gpu=none: 1")
    world = configured_world(sqlite, tmp_path, *ON, *options, "[reports]", "time_zone = Europe/Berlin", hosts=5)
    give_gpu(world, 4)
    give_gpu(world, 5)
    give_switches(world)
    pass_time(world, 40 * MINUTE)
    assert (states(world)[:3].count(PowerState.ON), states(world)[3:].count(PowerState.ON)) == (1, 0)
    pass_time(world, 60 * MINUTE)
    assert (states(world)[:3].count(PowerState.ON), states(world)[3:].count(PowerState.ON)) == (1, 2)
    pass_time(world, 100 * MINUTE)
    assert (states(world)[:3].count(PowerState.ON), states(world)[3:].count(PowerState.ON)) == (1, 0)


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("gpu=A100: many", "'many' is no number of hosts"),
        ("gpu=A100", "it has no number"),
        (": 4", "it has no number"),
        ("rack=7: 4", "'rack=7' is no day .* no property of class_by: gpu=…"),
        ("MO-FRI: 4", "'MO-FRI' is no day"),
        ("25:00-26:00: 4", "25:00 is no time of day"),
        ("gpu=A100; MO;: 4", "it has no number"),
    ],
)
def test_a_rule_that_cannot_be_read_is_named_at_the_start(sqlite, tmp_path, rule, why):
    with pytest.raises(ConfigurationError, match=why) as error:
        configured_world(sqlite, tmp_path, *ON, "class_by = gpu", f"spares = {rule}", hosts=1)
    assert str(error.value).startswith("[power] spares cannot be")
