# SPDX-License-Identifier: Apache-2.0
"""What nobody uses is released, and what runs is not: the states are those of servers in a real Nova.

The policy counts in hours: the manager has a clock of its own, and passes them in a moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy.engine import Engine

from blazar.clouds.openstack import open_cloud
from blazar.clouds.ports import Cloud
from blazar.clouds.ports.compute import Compute
from blazar.manager.common.settings import Settings
from blazar.model.base.clock import to_minute
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import EndReason, LeaseStatus
from blazar.model.use.policy import Usage, UseMode, UsePolicies, UsePolicy
from blazarconformance.clock import ManualClock
from tests import openstack
from tests.cloud.deployment import FREEPOOL, clean
from tests.cloud.looks import host_of, pool
from tests.openstack import Servers, eventually
from tests.world import World

HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)

POLICY = UsePolicy(UseMode.ON, idle_after=6 * HOUR)
"""Warned six hours after the start and released after nine; or after six hours in which all is stopped."""


@dataclass
class Real:
    """The test cloud, as a manager gets it."""

    cloud: Cloud = field(default_factory=lambda: open_cloud(openstack.access("blazar")))
    faults: Any = None


@pytest.fixture
def world(sqlite: Engine, compute: Compute) -> Iterator[World]:
    """A manager with three hosts of the test cloud, whose leases last as long as nothing ends them."""
    openstack.tidy()
    clean(compute)
    compute.create_aggregate(FREEPOOL, None, {})
    settings = Settings(claim_ttl=timedelta(seconds=30), promises=0, use_policies=UsePolicies(POLICY))
    clock = ManualClock(to_minute(datetime.now(UTC)))
    world = World(sqlite, hosts=0, cloud=Real(), clock=clock, settings=settings)
    for number in (1, 2, 3):
        world.register(f"compute-{number}")
    yield world
    clean(compute)


def started(world: World, owner: Servers) -> Lease:
    """Return a lease of a host for two days that has started."""
    lease = world.lease(hours=48, project=owner.show_project())
    world.run()
    found = world.now(lease)
    assert found.status is LeaseStatus.ACTIVE, found
    return found


def booted(lease: Lease, owner: Servers) -> dict[str, Any]:
    server = owner.boot("work", hint=lease.reservations[0].id)
    assert server["status"] == "ACTIVE", server.get("fault")
    return server


def told(world: World, lease: Lease) -> list[str]:
    return [name for name, about in world.notifier.told if about.id == lease.id and "unused" in name]


def usage(world: World, lease: Lease) -> tuple[Usage | None, datetime | None]:
    use = world.now(lease).use
    assert use is not None
    return use.usage, use.release_at


def test_a_lease_in_which_nothing_is_booted_is_warned_of_and_released_and_one_with_a_server_is_not(
    world: World, compute: Compute, mine: Servers, theirs: Servers
):
    begin = world.clock.now()
    empty, used = started(world, theirs), started(world, mine)
    server = booted(used, mine)
    world.run_to(begin + 6 * HOUR)
    assert usage(world, empty) == (Usage.UNUSED, begin + 9 * HOUR)
    assert usage(world, used) == (Usage.USED, None)
    assert told(world, empty) == ["lease.unused.warning"]
    assert len(pool(compute, empty.reservations[0].id)) == 1

    world.run_to(begin + 9 * HOUR + SECOND)
    over = world.now(empty)
    assert (over.status, over.end_reason) == (LeaseStatus.TERMINATED, EndReason.UNUSED)
    assert told(world, empty) == ["lease.unused.warning"] * 2 + ["lease.unused.released"]
    assert compute.aggregate(empty.reservations[0].id) is None
    assert len(pool(compute, FREEPOOL)) == 2

    world.run_to(begin + 24 * HOUR)
    assert (world.now(used).status, usage(world, used), told(world, used)) == (
        LeaseStatus.ACTIVE,
        (Usage.USED, None),
        [],
    )
    assert pool(compute, used.reservations[0].id) == {host_of(server)}


@pytest.mark.nightly
def test_a_server_that_is_booted_after_the_warning_takes_it_back_and_one_that_is_stopped_does_not(
    world: World, compute: Compute, mine: Servers, theirs: Servers
):
    begin = world.clock.now()
    late, stopped = started(world, mine), started(world, theirs)
    server = booted(stopped, theirs)["id"]
    theirs.act(server, {"os-stop": None})
    eventually(lambda: theirs.show(server), lambda found: found["status"] == "SHUTOFF")
    world.run_to(begin + 8 * HOUR)
    assert usage(world, late) == (Usage.UNUSED, begin + 9 * HOUR)
    booted(late, mine)
    world.run_to(begin + 10 * HOUR)
    assert usage(world, late) == (Usage.USED, None)
    assert world.now(stopped).end_reason is EndReason.UNUSED
    assert told(world, late) == ["lease.unused.warning"]
    assert told(world, stopped)[-1] == "lease.unused.released"
