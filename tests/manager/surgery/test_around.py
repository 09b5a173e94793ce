# SPDX-License-Identifier: Apache-2.0
"""Surgery on leases and all around it: three databases, the record, maintenance windows, limits, statements."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.enforcement import Occasion, Question
from blazar.enforcement.limits import MaxConcurrentLeasesFilter, MaxLeaseDurationFilter
from blazar.manager.common.settings import Settings
from blazar.model.base.errors import BlazarError, NotFound, StoreUnavailable, UsageDenied
from blazar.model.leases.requests import LeaseChange, ReservationChange
from blazar.model.leases.states import EndReason, LeaseStatus
from blazar.model.maintenance.windows import MaintenanceRequest
from blazar.model.surgery import MergeRequest, Partner, PartRequest, SplitRequest, SwapRequest
from blazar.model.use.policy import UseMode, UsePolicies, UsePolicy
from tests.manager.enforcement.recording import RecordingFilter
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
    assert world.store.leases.load_past() == ()


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
    assert world.store.leases.load_past() == ()
    assert world.now(first).status is LeaseStatus.ACTIVE


def test_a_write_that_fails_leaves_everything_as_it_was(a_world):
    world = a_world(hosts=3)
    lease, other = world.lease(a_host(2), start=HOUR), world.lease(a_host(), start=HOUR)
    before = world.now(lease), world.now(other), booked(world)

    def fails(*_: object, **__: object) -> None:
        raise StoreUnavailable("the database went away")

    with pytest.MonkeyPatch.context() as patched:
        # The last that each operation writes.
        patched.setattr("blazar.store.booking.bookings.history.write", fails)
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
    with pytest.raises(UsageDenied) as refused:
        merge(world, longer, after)
    assert refused.value.pointer == "/with", "the request has no end_date"


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


def test_filters_hear_what_each_lease_has_and_are_asked_before(a_world):
    recording = RecordingFilter()
    world = a_world(hosts=3, filters=[recording])
    lease = world.lease(a_host(3), start=HOUR)
    recording.asked.clear()
    world.manager.outbox.run_due()
    recording.told.clear()
    first, second = split(world, lease, PartRequest(lease.reservations[0].id, count=1))
    assert [(len(q.wanted.allocated_resources), q.current is not None) for q in recording.asked] == [
        (2, True),
        (1, False),
    ]
    world.run()
    assert [(n.occasion, n.view.lease.id, len(n.view.allocated_resources)) for n in recording.told] == [
        (Occasion.UPDATED, first.id, 2),
        (Occasion.CREATED, second.id, 1),
    ]
    recording.told.clear()
    merge(world, first, second)
    world.run()
    assert {(n.occasion, n.view.lease.id, len(n.view.allocated_resources)) for n in recording.told} == {
        (Occasion.ENDED, second.id, 1),
        (Occasion.UPDATED, first.id, 3),
    }


def test_a_filter_that_objects_leaves_the_leases_as_they_were(a_world):
    def objects(question: Question) -> None:
        raise UsageDenied("not today")

    recording = RecordingFilter()
    world = a_world(hosts=3, filters=[recording])
    lease, other = world.lease(a_host(2), start=HOUR), world.lease(a_host(), start=HOUR)
    recording.says = objects
    before = world.now(lease), world.now(other), booked(world)
    partner = Partner(other.id, other.reservations[0].id)
    mine, theirs = min(world.hosts_of(lease)), min(world.hosts_of(other))
    for operate in (
        lambda: split(world, lease, PartRequest(lease.reservations[0].id, count=1)),
        lambda: merge(world, lease, other),
        lambda: world.manager.surgery.swap(
            lease.id, SwapRequest(lease.reservations[0].id, mine, theirs, partner), OPERATOR
        ),
    ):
        with pytest.raises(UsageDenied, match="not today"):
            operate()
    assert (world.now(lease), world.now(other), booked(world)) == before


def test_a_change_by_another_manager_meanwhile_is_seen(a_world):
    world = a_world(hosts=3)
    lease = world.lease(a_host(3), start=HOUR)
    commit, rivals = world.store.bookings.commit, [world.another_manager()]

    def beaten(wanted):
        while rivals:
            change = ReservationChange(lease.reservations[0].id, {"min": 2, "max": 2})
            rivals.pop().leases.update(lease.id, LeaseChange(reservations=(change,)))
        return commit(wanted)

    world.store.bookings.commit = beaten
    found = world.manager.surgery.split(
        lease.id, SplitRequest((PartRequest(lease.reservations[0].id, count=1),)), OPERATOR
    )
    assert [len(world.hosts_of(each.lease)) for each in found.leases] == [1, 1]


def test_a_lease_that_is_deleted_meanwhile_is_not_split(a_world):
    world = a_world(hosts=3)
    lease = world.lease(a_host(3), start=HOUR)
    commit, rivals = world.store.bookings.commit, [world.another_manager()]

    def beaten(wanted):
        while rivals:
            rivals.pop().leases.delete(lease.id)
        return commit(wanted)

    world.store.bookings.commit = beaten
    with pytest.raises(NotFound):
        split(world, lease, PartRequest(lease.reservations[0].id, count=1))
    world.run()
    assert world.manager.leases.all(None) == ()
    assert not booked(world)


def test_both_parts_are_looked_at_for_use(a_world):
    world = a_world(hosts=3, settings=Settings(use_policies=UsePolicies(UsePolicy(UseMode.ON))))
    lease = world.lease(a_host(), a_host(), hours=48)
    world.run()
    first, second = split(world, lease, PartRequest(lease.reservations[1].id))
    (host,) = world.hosts_of(first)
    world.simulated.users.boot_server("work", project_id="physics", user_id="curie", host=host)
    world.run_to(NOON + 10 * HOUR)
    assert world.now(first).status is LeaseStatus.ACTIVE
    assert world.now(second).end_reason is EndReason.UNUSED
