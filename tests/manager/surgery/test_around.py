# SPDX-License-Identifier: Apache-2.0
"""Surgery on leases and all around it: three databases, the record, maintenance windows, limits, statements."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.enforcement.limits import MaxConcurrentLeasesFilter, MaxLeaseDurationFilter
from blazar.model.errors import BlazarError, StoreUnavailable, UsageDenied
from blazar.model.lease import LeaseStatus
from blazar.model.maintenance import MaintenanceRequest
from blazar.model.surgery import MergeRequest, Partner, PartRequest, SplitRequest, SwapRequest
from tests.manager.surgery.steps import HOUR, OPERATOR, booked
from tests.promises import check_promises
from tests.statements import counted
from tests.world import NOON, World, a_host


def split(world: World, lease, *parts: PartRequest, at=None):
    return [each.lease for each in world.manager.surgery.split(lease.id, SplitRequest(parts, at), OPERATOR).leases]


def merge(world: World, lease, other):
    return world.manager.surgery.merge(lease.id, MergeRequest(other.id), OPERATOR).leases[0].lease


def test_on_each_database_leases_are_operated_on_and_purged(engine):
    world = World(engine, hosts=4)
    lease, other = world.lease(a_host(3), start=HOUR, hours=4), world.lease(a_host(1), start=HOUR, hours=4)
    before = booked(world)
    first, second = split(world, lease, PartRequest(lease.reservations[0].id, count=2))
    theirs = next(iter(world.hosts_of(other)))
    partner = Partner(other.id, other.reservations[0].id)
    swap = SwapRequest(first.reservations[0].id, next(iter(world.hosts_of(first))), theirs, partner)
    world.manager.surgery.swap(first.id, swap, OPERATOR)
    third, fourth = split(world, second, at=NOON + 2 * HOUR)
    merge(world, third, fourth)
    merge(world, first, second)
    merge(world, world.now(first), other)
    world.run()
    assert booked(world) == before
    check_promises(world.store, since=NOON)
    assert [each.id for each in world.manager.leases.all(None)] == [lease.id]
    world.run_to(NOON + HOUR)
    assert world.pool(lease.reservations[0].id) == {"node-1", "node-2", "node-3", "node-4"}
    world.run_to(NOON + 6 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    world.store.leases.purge(NOON + 9 * HOUR, 100)
    assert world.store.leases.past() == ()


def test_what_is_split_by_reservations_is_purged_lease_by_lease(engine):
    world = World(engine, hosts=3)
    lease = world.lease(a_host(), a_host(), hours=4)
    world.run()
    # What it had before is on record, and goes with its reservation.
    host = world.store.resources.by_ids({world.store.calendar.of_lease(lease.id)[1].resource_id})
    going = lease.reservations[1].id
    world.manager.surgery.swap(lease.id, SwapRequest(going, next(iter(host.values())).name), OPERATOR)
    first, second = split(world, lease, PartRequest(going))
    world.manager.leases.delete(second.id)
    world.run()
    world.store.leases.purge(world.clock.now() + HOUR, 100)
    assert world.store.leases.past() == ()
    assert world.now(first).status is LeaseStatus.ACTIVE


def test_a_write_that_fails_leaves_everything_as_it_was(a_world):
    world = a_world(hosts=3)
    lease, other = world.lease(a_host(2), start=HOUR), world.lease(a_host(), start=HOUR)
    before = world.now(lease), world.now(other), booked(world)

    def fails(*_: object, **__: object) -> None:
        raise StoreUnavailable("the database went away")

    with pytest.MonkeyPatch.context() as patched:
        # The last that each operation writes.
        patched.setattr("blazar.store.surgery.outbox.write", fails)
        for operate in (
            lambda: split(world, lease, PartRequest(lease.reservations[0].id, count=1)),
            lambda: split(world, lease, at=NOON + 2 * HOUR),
            lambda: merge(world, lease, other),
        ):
            with pytest.raises(BlazarError):
                operate()
    assert (world.now(lease), world.now(other), booked(world)) == before
    assert len(world.manager.leases.all(None)) == 2


def test_a_part_that_has_hosts_in_maintenance_is_moved_as_the_whole_would_be(a_world):
    world = a_world(hosts=4)
    lease = world.lease(a_host(2), start=2 * HOUR)
    going = min(world.hosts_of(lease))
    window = MaintenanceRequest("disks", NOON + 2 * HOUR, NOON + 3 * HOUR, hosts=(going.removeprefix("node-"),))
    world.manager.maintenances.create(window)
    first, second = split(world, lease, PartRequest(lease.reservations[0].id, (going,)))
    assert world.hosts_of(second) == {going}
    world.manager.maintenance_work.run_once()
    assert going not in world.hosts_of(second)
    assert len(world.hosts_of(second)) == 1
    assert len(world.hosts_of(first)) == 1
    check_promises(world.store, since=NOON)


def test_what_is_merged_is_moved_for_the_maintenance_of_the_other(a_world):
    world = a_world(hosts=4)
    lease, other = world.lease(a_host(), start=2 * HOUR), world.lease(a_host(), start=2 * HOUR)
    (host,) = world.hosts_of(other)
    window = MaintenanceRequest("disks", NOON + 2 * HOUR, NOON + 3 * HOUR, hosts=(host.removeprefix("node-"),))
    world.manager.maintenances.create(window)
    merge(world, lease, other)
    world.manager.maintenance_work.run_once()
    assert host not in world.hosts_of(lease)
    assert len(world.hosts_of(lease)) == 2


def test_a_second_lease_counts_for_a_limit_of_leases_and_the_same_hosts_do_not_count_twice(a_world):
    world = a_world(hosts=3, filters=[MaxConcurrentLeasesFilter(1)])
    lease = world.lease(a_host(2), start=HOUR)
    with pytest.raises(UsageDenied):
        split(world, lease, PartRequest(lease.reservations[0].id, count=1))
    assert len(split(world, lease, at=NOON + 2 * HOUR)) == 2


def test_a_merged_lease_is_checked_for_its_whole_length(a_world):
    world = a_world(hosts=3, filters=[MaxLeaseDurationFilter(timedelta(hours=3))])
    lease = world.lease(a_host(2), start=HOUR, hours=2)
    (first, second) = split(world, lease, at=NOON + 2 * HOUR)
    assert merge(world, first, second).window == lease.window
    longer = world.lease(a_host(1), start=9 * HOUR, hours=2)
    after = world.lease(a_host(1), start=11 * HOUR, hours=2)
    if world.hosts_of(longer) != world.hosts_of(after):
        target = min(world.hosts_of(longer))
        swap = SwapRequest(after.reservations[0].id, min(world.hosts_of(after)), target)
        world.manager.surgery.swap(after.id, swap, OPERATOR)
    with pytest.raises(UsageDenied):
        merge(world, longer, after)


def test_statements_do_not_grow_with_hosts(a_world):
    world = a_world(hosts=8)
    world.manager.resources.all("host")

    def cost(number: int) -> int:
        lease = world.lease(a_host(number), start=HOUR)
        with counted(world.engine) as statements:
            first, second = split(world, lease, PartRequest(lease.reservations[0].id, count=number // 2))
            merge(world, first, second)
        world.manager.leases.delete(lease.id)
        world.run()
        return statements.count

    cost(2)
    assert cost(2) == cost(8)
