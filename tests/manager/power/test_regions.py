# SPDX-License-Identifier: Apache-2.0
"""Hosts sleep in each region by itself."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.manager.common.settings import Settings
from blazar.model.base.errors import CloudUnavailable
from blazar.model.power.settings import PowerMode, PowerSettings
from blazar.model.power.states import PowerState
from blazar.model.resources.resource import HOST
from tests.manager.power.nights import MINUTE, give_switches, work
from tests.manager.regions.world import TwoRegions


@pytest.fixture
def world(sqlite) -> TwoRegions:
    settings = Settings(claim_ttl=timedelta(seconds=30), promises=0, power=PowerSettings(PowerMode.ON, spare=0))
    world = TwoRegions(sqlite, hosts=1, settings=settings)
    give_switches(world)
    world.clock.by(hours=1)
    return world


def states(world: TwoRegions) -> dict[str, PowerState]:
    found = world.store.power.read_hosts_power(world.clock.now())
    return {host.region: found[host.id].state for host in world.store.resources.catalog(HOST).resources}


def pass_minutes(world: TwoRegions, minutes: int) -> None:
    for _ in range(minutes * 6):
        work(world.manager)
        world.clock.by(seconds=10)


def test_a_region_that_does_not_answer_keeps_no_host_of_another_one_awake(world):
    world.second.faults.fail_before("count_servers", CloudUnavailable("no answer"), times=100)
    work(world.manager)
    assert states(world) == {"R1": PowerState.GOING_OFF, "R2": PowerState.ON}


def test_a_region_that_does_not_answer_hides_no_host_of_another_one_that_somebody_switches_on(world):
    pass_minutes(world, 3)
    assert states(world) == {"R1": PowerState.OFF, "R2": PowerState.OFF}
    world.second.faults.fail_before("hypervisors", CloudUnavailable("no answer"), times=100)
    world.simulated.operators.press_power("node-1", on=True)
    world.clock.by(seconds=MINUTE.total_seconds())
    pass_minutes(world, 2)
    assert states(world) == {"R1": PowerState.ON, "R2": PowerState.OFF}
