# SPDX-License-Identifier: Apache-2.0
"""Requests that leave something open: a start within a range, and a length that is at least so long."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.clouds.simulated import of_size
from blazar.manager.common.settings import Settings
from blazar.model.base.errors import CloudRefused, InvalidInput
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import EventType, LeaseKind, LeaseStatus
from tests.world import NOON, World, a_host, servers

HOUR, MINUTE, DAY = timedelta(hours=1), timedelta(minutes=1), timedelta(days=1)


@pytest.fixture
def world(sqlite) -> World:
    """All of its three hosts are in use for two hours, and again from the fifth to the tenth."""
    world = World(sqlite, settings=Settings(claim_ttl=timedelta(seconds=30)))
    world.waits = True
    world.full = world.lease(a_host(3), project="biology")
    world.run()
    world.later = world.lease(a_host(3), project="biology", start=5 * HOUR, hours=5)
    return world


def waits(world: World, *reservations, wait=DAY, **more) -> Lease:
    lease = world.lease(*reservations, wait=wait, **more)
    assert lease.status is LeaseStatus.WAITING
    world.run()
    return world.now(lease)


def test_it_gets_the_first_start_of_its_range_that_is_free(world):
    lease = waits(world, a_host(2), start=HOUR, hours=2, latest=3 * HOUR)
    assert (lease.status, lease.window.start) == (LeaseStatus.PENDING, NOON + 2 * HOUR)


def test_one_that_fits_only_after_its_range_is_told_and_gives_up_when_that_is_over(world):
    lease = waits(world, a_host(2), start=HOUR, hours=4, latest=3 * HOUR)
    assert (lease.status, lease.wait.latest) == (LeaseStatus.WAITING, NOON + 4 * HOUR)
    assert lease.wait.reason.endswith(", but it is to start at 2030-04-01 16:00 UTC at the latest")
    world.run_to(NOON + 4 * HOUR)
    assert world.now(lease).status is LeaseStatus.WAITING
    world.run_to(NOON + 4 * HOUR + MINUTE)
    assert world.now(lease).status is LeaseStatus.TIMED_OUT


def test_a_range_that_ends_after_its_patience_is_cut_by_that(world):
    lease = waits(world, a_host(2), start=HOUR, hours=4, latest=20 * HOUR, wait=6 * HOUR)
    world.run_to(NOON + 6 * HOUR)
    assert world.now(lease).status is LeaseStatus.TIMED_OUT


def test_where_it_cannot_be_as_long_as_it_asks_for_it_is_as_long_as_it_can(world):
    lease = waits(world, a_host(2), hours=8, at_least=2 * HOUR)
    assert (lease.status, lease.window.start) == (LeaseStatus.PENDING, NOON + 2 * HOUR)
    assert lease.window.end == NOON + 5 * HOUR
    times = [lease.event(kind).time for kind in (EventType.START, EventType.BEFORE_END, EventType.END)]
    assert times == [NOON + 2 * HOUR, NOON + 4 * HOUR, NOON + 5 * HOUR]
    world.run_to(NOON + 5 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED


def test_one_that_has_to_be_longer_than_what_is_free_waits_for_longer(world):
    lease = waits(world, a_host(2), hours=8, at_least=4 * HOUR)
    assert lease.window.start == NOON + 10 * HOUR
    assert lease.window.end - lease.window.start == 8 * HOUR


def test_its_length_stays_when_its_promised_start_becomes_earlier(world):
    lease = waits(world, a_host(2), hours=8, at_least=2 * HOUR)
    world.manager.leases.delete(world.full.id)
    world.run()
    found = world.now(lease)
    assert (found.status, found.window.start, found.window.end) == (LeaseStatus.ACTIVE, NOON, NOON + 3 * HOUR)


def test_it_gets_the_most_of_its_hosts_that_start_soonest(sqlite):
    world = World(sqlite, hosts=4, state=of_size(4), settings=Settings(claim_ttl=timedelta(seconds=30)))
    world.waits = True
    world.lease(a_host(3), project="biology", hours=2)
    world.lease(a_host(1), project="biology", hours=4)
    world.run()
    lease = waits(world, a_host(2, 4), hours=8, at_least=HOUR)
    assert lease.window.start == NOON + 2 * HOUR
    assert len(world.hosts_of(lease)) == 3


def test_after_a_failed_try_it_asks_for_all_of_its_length_again(world):
    lease = waits(world, servers(1), hours=8, at_least=2 * HOUR, kind=LeaseKind.RETRIES, tries=2)
    assert lease.window.end == NOON + 5 * HOUR
    world.faults.fail_before("begin_boot", CloudRefused("no"))
    world.manager.leases.delete(world.later.id)
    world.run_to(NOON + 2 * HOUR)
    found = world.now(lease)
    assert (found.status, found.window.end - found.window.start) == (LeaseStatus.WAITING, 8 * HOUR)
    world.run_to(NOON + 2 * HOUR + 5 * MINUTE)
    found = world.now(lease)
    assert (found.status, found.window.end - found.window.start) == (LeaseStatus.ACTIVE, 8 * HOUR)
    warning = found.event(EventType.BEFORE_END).time
    assert warning == found.window.end - HOUR


@pytest.mark.parametrize(
    ("asked", "pointer"), [({"latest": -HOUR}, "/wait/latest"), ({"at_least": 3 * HOUR}, "/wait/at_least")]
)
def test_some_ranges_cannot_be(world, asked, pointer):
    with pytest.raises(InvalidInput) as refused:
        world.lease(a_host(), hours=2, start=HOUR, wait=DAY, **asked)
    assert refused.value.pointer == pointer
