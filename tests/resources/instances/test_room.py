# SPDX-License-Identifier: Apache-2.0
"""How many servers fit on a host, and beside whom."""

from __future__ import annotations

import pytest

from blazar.model.base.errors import NotEnoughResources
from tests.resources.instances.steps import HOUR, MINUTE, promised
from tests.world import a_host, instances


def test_reservations_share_a_host_up_to_its_capacity_and_not_further(a_world):
    world = a_world(hosts=1)  # 32 VCPUs
    for _ in range(4):
        world.lease(instances(2, vcpus=4), start=HOUR)
    with pytest.raises(NotEnoughResources):
        world.lease(instances(1, vcpus=1, memory_mb=1), start=HOUR)
    world.lease(instances(1, vcpus=1), start=3 * HOUR)


def test_servers_may_follow_each_other_without_a_gap(a_world):
    world = a_world(hosts=1)
    for hour in (5, 1, 3):  # each for two hours, on the whole host
        world.lease(instances(8, vcpus=4), start=hour * HOUR)
    with pytest.raises(NotEnoughResources):
        world.lease(instances(1, vcpus=1), start=7 * HOUR - MINUTE)
    world.lease(instances(8, vcpus=4), start=7 * HOUR)


def test_cleaning_time_is_kept_free_between_servers_too(a_world):
    world = a_world(hosts=1, cleaning_time=10 * MINUTE)
    world.lease(instances(8, vcpus=4), start=5 * HOUR)
    for start in (3 * HOUR, 3 * HOUR - 9 * MINUTE, 7 * HOUR, 7 * HOUR + 9 * MINUTE):
        with pytest.raises(NotEnoughResources):
            world.lease(instances(1, vcpus=1), start=start)
    before, after = 3 * HOUR - 10 * MINUTE, 7 * HOUR + 10 * MINUTE
    assert [world.lease(instances(8, vcpus=4), start=start).status for start in (before, after)] == ["PENDING"] * 2


def test_the_fullest_moment_counts_and_what_is_outside_of_the_window_does_not(a_world):
    world = a_world(hosts=1)  # 32 VCPUs
    world.lease(instances(1, vcpus=16), start=HOUR, hours=4)
    for start in (HOUR, 3 * HOUR):  # one after the other, never both
        world.lease(instances(1, vcpus=8), start=start)
    world.lease(instances(1, vcpus=16), start=5 * HOUR)
    world.lease(instances(1, vcpus=8), start=2 * HOUR, hours=4)
    with pytest.raises(NotEnoughResources):
        world.lease(instances(1, vcpus=1), start=2 * HOUR)


def test_one_and_the_same_lease_does_not_overbook_a_host_either(a_world):
    world = a_world(hosts=1)
    with pytest.raises(NotEnoughResources):
        world.lease(instances(4, vcpus=5), instances(4, vcpus=4), start=HOUR)
    world.lease(instances(4, vcpus=4), instances(4, vcpus=4), start=HOUR)


def test_hosts_and_instances_never_share_a_host_in_one_window(a_world):
    world = a_world(hosts=1)
    world.lease(instances(), start=HOUR)
    with pytest.raises(NotEnoughResources):
        world.lease(a_host(), start=2 * HOUR)
    world.lease(a_host(), start=3 * HOUR)
    with pytest.raises(NotEnoughResources):
        world.lease(instances(), start=4 * HOUR)


def test_hosts_that_are_shared_already_are_filled_first(world):
    first = world.lease(instances(1, needs='["==", "$hypervisor_hostname", "node-2"]'), start=HOUR)
    second = world.lease(instances(3), start=HOUR)
    assert set(promised(world, first)) == set(promised(world, second)) == {"node-2"}


@pytest.mark.parametrize(("affinity", "hosts"), [(True, 1), (False, 3)])
def test_affinity_keeps_servers_together_or_apart(world, affinity, hosts):
    lease = world.lease(instances(3, affinity=affinity), start=HOUR)
    assert len(promised(world, lease)) == hosts
    assert sum(promised(world, lease).values()) == 3


def test_more_servers_apart_than_hosts_are_refused(world):
    with pytest.raises(NotEnoughResources):
        world.lease(instances(4, affinity=False))
