# SPDX-License-Identifier: Apache-2.0
"""What operators ask for holds, whenever they do so."""

from __future__ import annotations

import pytest

from blazar.clouds.simulated.machines import PowerFault
from blazar.model.power.hosts import WOKEN_FOR
from blazar.model.power.states import PowerState
from tests.configured import configured_world
from tests.manager.power.nights import (
    HOUR,
    MINUTE,
    NO_SPARE,
    give_switches,
    has_power,
    hosts_of,
    is_up,
    log,
    mark,
    pass_time,
    power,
    spoil,
    work,
)


def test_a_host_that_is_woken_while_the_plan_is_made_stays_on(sqlite, tmp_path):
    world = configured_world(sqlite, tmp_path, *NO_SPARE, hosts=2)
    give_switches(world)
    world.clock.by(hours=1)
    view, first = world.store.power.read_view, hosts_of(world)[0]

    def read_and_wake(*args, **kwargs):
        found = view(*args, **kwargs)
        world.store.power.read_view = view
        world.manager.power.wake(first.external_id)
        return found

    world.store.power.read_view = read_and_wake
    work(world.manager)
    assert power(world, 1).state is PowerState.ON
    assert power(world, 1).kept_until == world.clock.now() + WOKEN_FOR
    assert power(world, 2).state is PowerState.GOING_OFF
    world.clock.by(hours=WOKEN_FOR / HOUR)
    work(world.manager)
    assert power(world, 1).state is PowerState.GOING_OFF


@pytest.mark.slow
def test_a_host_whose_switch_was_out_of_reach_can_be_woken_once_more(sqlite, tmp_path):
    """Else it would have no power for ever, and be called on."""
    world = configured_world(sqlite, tmp_path, *NO_SPARE, hosts=1)
    give_switches(world)
    world.clock.by(hours=1)
    pass_time(world, 5 * MINUTE)
    spoil(world, PowerFault.SILENT)
    wake(world)
    pass_time(world, 35 * MINUTE)
    assert log(world)[-1] == ("on", "timed_out")
    spoil(world, None)
    assert not has_power(world)
    wake(world)
    assert pass_time(world, 5 * MINUTE) == [PowerState.WAKING, PowerState.ON]
    assert (has_power(world), is_up(world), mark(world)) == (True, True, None)
    wake(world)
    assert power(world).state is PowerState.ON


def wake(world):
    world.manager.power.wake(hosts_of(world)[0].external_id)
