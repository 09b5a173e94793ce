# SPDX-License-Identifier: Apache-2.0
"""What a lease with many hosts needs of the cloud is asked side by side, so that it is no later than one with one."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from blazar.clouds.simulated import Faults
from tests.world import NOON, World, a_host, instances

HOSTS = 8


class Meeting:
    """Lets calls of a name go on only when as many are made at the same time as a lease has hosts."""

    def __init__(self, *names: str) -> None:
        self._met = {name: threading.Barrier(HOSTS) for name in names}

    def __call__(self, name: str, phase: str) -> None:
        if phase == "before" and name in self._met:
            self._met[name].wait(10)


@pytest.fixture
def world(a_world) -> World:
    return a_world(hosts=HOSTS)


def test_the_hosts_of_a_lease_are_assigned_and_returned_at_the_same_time(world):
    lease = world.lease(a_host(HOSTS))
    world.faults.on_call = Meeting("servers_on")
    world.run_to(lease.window.start)
    assert world.pool() == frozenset()
    world.run_to(lease.window.end)
    assert len(world.pool()) == HOSTS


def test_the_hosts_of_instances_get_their_capacity_at_the_same_time(world):
    lease = world.lease(instances(HOSTS, affinity=False))
    world.faults.on_call = Meeting("reserved_capacity", "set_inventory")
    world.run_to(lease.window.start)
    assert world.now(lease).status == "ACTIVE"
    world.faults.on_call = Meeting("delete_inventory")
    world.run_to(lease.window.end)
    assert world.now(lease).status == "TERMINATED"


def count_calls(faults: Faults, world: World) -> Counter[str]:
    before = Counter(faults.calls)
    world.run_to(NOON)
    return Counter(faults.calls) - before


def test_a_start_reads_the_aggregates_once_for_all_its_hosts(world):
    world.lease(a_host(HOSTS))
    calls = count_calls(world.faults, world)
    assert calls["aggregates"] == 1
    # Empty hosts are looked at once each.
    assert calls["servers_on"] == HOSTS
