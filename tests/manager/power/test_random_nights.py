# SPDX-License-Identifier: Apache-2.0
"""Random days of hosts that sleep, with switches that fail, hands of others, managers that die, and leases."""

from __future__ import annotations

import random

import pytest

from blazar.clouds.simulated.machines import PowerFault
from blazar.model.base.errors import BlazarError, CloudUnavailable
from blazar.model.power.states import PowerState
from tests.configured import configured_world
from tests.manager.power.nights import (
    HOUR,
    MINUTE,
    NO_SPARE,
    check_safe,
    give_switches,
    is_up,
    log,
    mark,
    pass_time,
    power,
    wake,
)
from tests.observed import Killed
from tests.world import World

HOSTS = 3
CALLS = ("hypervisor", "hypervisors", "servers_on", "count_servers", "power_states", "begin_switch", "enable_service")


def act(world: World, dice: random.Random) -> None:
    """Let one thing happen that may happen at any time."""
    number = dice.randint(1, HOSTS)
    what = dice.choice(("lease", "lease", "server", "fault", "well", "hand", "call", "kill"))
    if what == "lease":
        try:
            world.lease(start=dice.choice((10, 45, 200, 600)) * MINUTE, hours=dice.choice((1, 3)))
        except BlazarError:
            return
    elif what == "server" and power(world, number).state is PowerState.ON and mark(world, number) is None:
        # Nova places none on a host that is closed.
        world.simulated.users.boot_server(
            "work", project_id="physics", user_id="u", host=f"node-{number}", status="ACTIVE"
        )
    elif what == "fault":
        world.simulated.operators.spoil_power(f"node-{number}", dice.choice(list(PowerFault)))
    elif what == "well":
        for each in range(1, HOSTS + 1):
            world.simulated.operators.spoil_power(f"node-{each}", None)
    elif what == "hand" and power(world, number).state is PowerState.OFF:
        world.simulated.operators.press_power(f"node-{number}", on=True)
    elif what == "call":
        world.faults.fail_before(dice.choice(CALLS), CloudUnavailable("no answer"), times=dice.randint(1, 3))
    elif what == "kill":
        world.faults.fail_after(dice.choice(CALLS), Killed(), times=1)


@pytest.mark.share(4)
@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2, 3, 11, 13, 19, 21])
def test_no_host_sleeps_with_a_server_and_all_are_awake_in_the_end(sqlite, tmp_path, seed):
    dice = random.Random(seed)
    world = configured_world(sqlite, tmp_path, *NO_SPARE, hosts=HOSTS)
    give_switches(world)
    world.clock.by(hours=1)
    managers = [world.manager, world.another_manager()]
    slept = 0
    for _ in range(40):
        act(world, dice)
        try:
            pass_time(world, dice.choice((2, 10, 40)) * MINUTE, dice.choice(managers), step=2 * MINUTE)
            world.manager.engine.run_due()
        except Killed:
            world.clock.by(seconds=world.settings.claim_ttl.total_seconds() + 1)
        slept += sum(host.state is PowerState.OFF for host in check_safe(world).values())
    assert slept
    settle(world)
    for number in range(1, HOSTS + 1):
        assert power(world, number).state is PowerState.ON
        assert mark(world, number) is None
        assert is_up(world, number)


def settle(world: World) -> None:
    """Have nothing fail any more, and all hosts woken; operators mend those that did not wake."""
    world.faults.clear()
    for number in range(1, HOSTS + 1):
        world.simulated.operators.spoil_power(f"node-{number}", None)
        wake(world, number, kept=3 * HOUR)
    pass_time(world, 70 * MINUTE, step=2 * MINUTE)
    for number in range(1, HOSTS + 1):
        if not is_up(world, number) and ("on", "timed_out") in log(world, number):
            world.simulated.operators.press_power(f"node-{number}", on=True)
