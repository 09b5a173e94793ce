# SPDX-License-Identifier: Apache-2.0
"""Quotas of the project in the cloud: leases that could never start are not made, and do not grow beyond them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.clouds.ports.compute import Flavor
from blazar.model.base.errors import CloudRefused, CloudUnavailable, Conflict
from blazar.model.base.reasons import ReasonCode
from blazar.model.leases.states import LeaseStatus
from tests.world import NOON, PROJECT, World, a_network, servers, stacks, volumes

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
SERVICES = ("compute_quotas", "volume_quotas", "network_quotas")


@pytest.fixture
def world(sqlite) -> World:
    world = World(sqlite)
    world.register_segments(101, 102)
    world.register_pools(1, 2)
    world.simulated.operators.offer_flavor(Flavor("id-small", "small", 1, 512, 0, public=True))
    return world


def allow(world: World, **limits: int) -> None:
    of_volumes = {name: limit for name, limit in limits.items() if name in ("volumes", "gigabytes")}
    world.simulated.volume_users.limit(PROJECT, **of_volumes)
    with world.simulated.change_state() as state:
        state.boot.most_servers = limits.get("instances")
        state.boot.most_vcpus = limits.get("cores")
        state.boot.most_memory_mb = limits.get("ram")
        state.most_networks = limits.get("network")


@pytest.mark.sample(5)
@pytest.mark.parametrize("start", [timedelta(0), 5 * HOUR])
@pytest.mark.parametrize(
    ("reservation", "quota", "limit", "needed"),
    [
        (servers(3), "instances", 2, 3),
        (servers(3), "cores", 23, 24),
        (servers(3), "ram", 12287, 12288),
        (volumes(3), "volumes", 2, 3),
        (volumes(3, size=10), "gigabytes", 29, 30),
        (volumes(3, mode="quota"), "volumes", 2, 3),
        (a_network(), "network", 0, 1),
        (stacks("small", "small"), "instances", 1, 2),
        (stacks("small", "small"), "cores", 1, 2),
        (stacks("small", "small"), "ram", 1023, 1024),
        (stacks(disks=2), "volumes", 1, 2),
    ],
)
def test_a_lease_that_a_quota_can_never_meet_is_refused(world, reservation, quota, limit, needed, start):
    allow(world, **{quota: limit})
    with pytest.raises(Conflict, match=f"quota {quota} of .*needs {needed}.*ask the operators") as refused:
        world.lease(reservation, start=NOON + start)
    assert (refused.value.code, refused.value.cause.code) == ("limit_exceeded", ReasonCode.QUOTA_EXCEEDED)
    assert (refused.value.data["limit"], refused.value.pointer[:15]) == (limit, "/reservations/0")
    assert world.manager.leases.all(None) == ()
    allow(world, **{quota: needed})
    world.lease(reservation, start=NOON + start)


def test_the_reservations_of_a_lease_count_together_and_each_service_is_asked_once(world):
    allow(world, instances=3)
    with pytest.raises(Conflict, match="no more servers than 3 .* needs 4"):
        world.lease(servers(2), servers(2), start=HOUR)
    before = [world.faults.calls[call] for call in SERVICES]
    world.lease(servers(1), servers(2), volumes(1), volumes(1), a_network(), start=HOUR)
    assert [world.faults.calls[call] - was for call, was in zip(SERVICES, before, strict=True)] == [1, 1, 1]


def test_what_is_in_use_counts_for_a_lease_that_starts_now_and_for_no_other(world):
    allow(world, instances=3)
    world.lease(servers(2))
    world.run_to(NOON + MINUTE)
    with pytest.raises(Conflict, match="needs 2 beside the 2 that it has"):
        world.lease(servers(2))
    world.lease(servers(2), start=5 * HOUR)
    world.lease(servers(1))


def test_a_change_grows_up_to_the_quota(world):
    allow(world, instances=3)
    lease = world.lease(servers(2), start=HOUR, hours=5)
    with pytest.raises(Conflict, match="no more servers than 3"):
        world.resize(lease, amount=4)
    world.resize(lease, amount=2)
    world.run_to(NOON + HOUR + MINUTE)
    with pytest.raises(Conflict, match="needs 2 beside the 2 that it has"):
        world.resize(lease, amount=4)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    allow(world, instances=1)
    before = world.faults.calls["compute_quotas"]
    world.change(lease, name="what does not grow is not looked at")
    world.resize(lease, before_end="notification")
    assert world.faults.calls["compute_quotas"] == before


@pytest.mark.sample(1)
@pytest.mark.parametrize("start", [timedelta(0), HOUR])
@pytest.mark.parametrize(
    ("reservation", "more"),
    [(servers(1), {"amount": 2}), (volumes(1), {"amount": 2}), (volumes(1), {"size": 20})],
)
def test_a_change_that_the_quotas_let_grow_is_made_before_the_start_and_in_use(world, reservation, more, start):
    lease = world.lease(reservation, start=NOON + start, hours=5)
    calls = [world.faults.calls[call] for call in SERVICES]
    changed = world.resize(lease, **more)
    assert more.items() <= changed.reservations[0].parameters.values.items()
    assert sum(world.faults.calls[call] for call in SERVICES) == sum(calls) + 1
    world.run_to(NOON + start + MINUTE)
    least = {key: value + 1 for key, value in more.items()}
    assert least.items() <= world.resize(lease, **least).reservations[0].parameters.values.items()
    world.run_to(NOON + start + HOUR)
    assert (world.now(lease).status, world.now(lease).degraded) == (LeaseStatus.ACTIVE, False)


def test_a_service_that_does_not_answer_keeps_nobody_from_a_lease_that_starts_later(world):
    world.faults.fail_before("compute_quotas", CloudUnavailable("down"), times=2)
    with pytest.raises(CloudUnavailable):
        world.lease(servers(1))
    assert world.lease(servers(1), start=HOUR).status is LeaseStatus.PENDING


def test_a_service_that_does_not_tell_quotas_keeps_nobody_from_a_lease(world):
    world.faults.fail_before("compute_quotas", CloudRefused("for operators only"), times=1)
    assert world.lease(servers(1)).status is LeaseStatus.PENDING


def test_what_ends_when_a_lease_starts_does_not_stand_in_its_way(world):
    allow(world, instances=2)
    world.lease(servers(2), hours=1)
    world.run_to(NOON + MINUTE)
    world.run_to(NOON + HOUR - MINUTE / 2)
    later = world.lease(servers(2), start=NOON + HOUR, hours=1)
    with pytest.raises(Conflict, match="no more servers than 2 .* needs 3"):
        world.lease(servers(3), start=NOON + HOUR)
    world.run_to(NOON + HOUR + 10 * MINUTE)
    assert world.now(later).status is LeaseStatus.ACTIVE


def test_what_ends_later_stands_in_its_way(world):
    allow(world, instances=2)
    world.lease(servers(2), hours=2)
    world.run_to(NOON + MINUTE)
    with pytest.raises(Conflict, match="beside the 2 that it has"):
        world.lease(servers(1), hours=1)
