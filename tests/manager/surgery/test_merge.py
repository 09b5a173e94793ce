# SPDX-License-Identifier: Apache-2.0
"""Two leases become one: side by side in one window, or one after the other on the same resources."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blazar.model.base.errors import Conflict, InvalidInput, PreconditionFailed, WrongState
from blazar.model.leases.requests import IdempotencyKey
from blazar.model.leases.states import TIMETABLE, EndReason, EventStatus, EventType, LeaseStatus
from blazar.model.surgery import MergeRequest, PartRequest, SplitRequest
from tests.manager.health.steps import ON_NODE_1
from tests.manager.surgery.steps import HOUR, OPERATOR, booked, names
from tests.promises import check_promises
from tests.world import NOON, World, a_host, instances


@pytest.fixture
def world(a_world) -> World:
    return a_world(hosts=4)


def merge(world: World, lease, other, *, terms=OPERATOR):
    before = booked(world)
    (found,) = world.manager.surgery.merge(lease.id, MergeRequest(other.id), terms).leases
    assert booked(world) == before
    check_promises(world.store, since=NOON)
    return found


def split(world: World, lease, *parts: PartRequest, at=None):
    return [each.lease for each in world.manager.surgery.split(lease.id, SplitRequest(parts, at), OPERATOR).leases]


def test_like_reservations_that_have_not_started_become_one(world):
    lease, other = world.lease(a_host(2), start=HOUR), world.lease(a_host(1), start=HOUR)
    hosts = world.hosts_of(lease) | world.hosts_of(other)
    after = merge(world, lease, other)
    (reservation,) = after.lease.reservations
    assert (names(after), reservation.parameters.values["min"], reservation.parameters.values["max"]) == (hosts, 3, 3)
    world.run()
    gone = world.now_of(other.id)
    assert (gone.deleted_at is not None, gone.end_reason) == (True, EndReason.MERGED)
    assert world.reservation_aggregates() == [reservation.id]
    world.run_to(NOON + HOUR)
    assert world.pool(reservation.id) == hosts
    world.run_to(NOON + 3 * HOUR)
    assert world.reservation_aggregates() == []


def test_other_reservations_join_with_their_ids(world):
    lease, other = world.lease(a_host(), start=HOUR), world.lease(instances(1), a_host(needs=ON_NODE_1), start=HOUR)
    after = merge(world, lease, other)
    assert [r.id for r in after.lease.reservations] == [r.id for r in (*lease.reservations, *other.reservations)]
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert {r.status for r in world.now(lease).reservations} == {"active"}
    world.run_to(NOON + 3 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert world.reservation_aggregates() == []


def test_leases_in_use_are_merged_and_their_servers_run_on(world):
    lease, other = world.lease(a_host(), hours=4), world.lease(a_host(), hours=4)
    world.run()
    (host,) = world.hosts_of(other)
    server = world.simulated.users.boot_server("work", project_id="physics", user_id="curie", host=host)
    merge(world, lease, other)
    world.run()
    assert world.now_of(other.id).deleted_at is not None
    with world.simulated.inspect() as state:
        assert server.id in state.servers
    assert world.pool(other.reservations[0].id) == {host}
    world.run_to(NOON + 4 * HOUR)
    with world.simulated.inspect() as state:
        assert server.id not in state.servers
    assert world.reservation_aggregates() == []


def test_what_was_split_by_units_is_merged_to_what_it_was(world):
    lease = world.lease(a_host(2, 3), start=HOUR)
    hosts = world.hosts_of(lease)
    first, second = split(world, lease, PartRequest(lease.reservations[0].id, count=1))
    after = merge(world, first, second)
    (reservation,) = after.lease.reservations
    assert names(after) == hosts
    assert (reservation.id, reservation.parameters) == (lease.reservations[0].id, lease.reservations[0].parameters)


def test_what_was_split_by_time_is_merged_to_what_it_was(world):
    lease = world.lease(a_host(2), start=HOUR, hours=4)
    first, second = split(world, lease, at=NOON + 3 * HOUR)
    after = merge(world, first, second)
    assert (after.lease.window, names(after)) == (lease.window, world.hosts_of(lease))
    times = {e.event_type: e.time for e in after.lease.events}
    assert times == {e.event_type: e.time for e in lease.events if e.event_type in TIMETABLE}


def test_a_lease_in_use_goes_on_in_the_time_of_the_next_one(world):
    lease = world.lease(a_host(needs=ON_NODE_1), hours=2)
    follows = world.lease(a_host(needs=ON_NODE_1), start=2 * HOUR, hours=2)
    world.run()
    server = world.simulated.users.boot_server("work", project_id="physics", user_id="curie", host="node-1")
    merge(world, lease, follows)
    world.run_to(NOON + 3 * HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    with world.simulated.inspect() as state:
        assert server.id in state.servers
    world.run_to(NOON + 4 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert world.reservation_aggregates() == []


def test_the_other_lease_has_to_have_the_same_resources_and_ask_for_the_same(world):
    lease = world.lease(a_host(needs=ON_NODE_1), start=HOUR, hours=2)
    other = world.lease(a_host(), start=3 * HOUR, hours=2)
    with pytest.raises(Conflict, match="no counterpart"):
        merge(world, lease, other)
    more = world.lease(a_host(needs=ON_NODE_1), a_host(), start=5 * HOUR, hours=2)
    after = world.lease(a_host(needs=ON_NODE_1), start=7 * HOUR, hours=2)
    with pytest.raises(Conflict, match="without a counterpart"):
        merge(world, more, after)


def test_windows_have_to_be_the_same_or_touch_in_order(world):
    lease, later = world.lease(a_host(), start=HOUR, hours=2), world.lease(a_host(), start=4 * HOUR, hours=2)
    with pytest.raises(Conflict, match="neither the same window"):
        merge(world, lease, later)
    next_one = world.lease(a_host(), start=3 * HOUR, hours=1)
    with pytest.raises(Conflict, match="into that one"):
        merge(world, next_one, lease)


def test_leases_of_two_projects_and_a_lease_with_itself_are_not_merged(world):
    lease, foreign = world.lease(a_host(), start=HOUR), world.lease(a_host(), start=HOUR, project="chemistry")
    with pytest.raises(Conflict, match="different projects"):
        merge(world, lease, foreign)
    with pytest.raises(InvalidInput, match="the same lease"):
        merge(world, lease, lease)


def test_the_earlier_warning_that_is_still_to_come_is_given(world):
    lease = world.lease(a_host(), hours=6, before_end=NOON + HOUR)
    other = world.lease(a_host(), hours=6, before_end=NOON + 4 * HOUR)
    world.run_to(NOON + 2 * HOUR)
    after = merge(world, lease, other).lease.event(EventType.BEFORE_END)
    assert (after.time, after.status) == (NOON + 4 * HOUR, EventStatus.UNDONE)


def test_a_dry_run_a_key_and_a_revision(world):
    lease, other = world.lease(a_host(), start=HOUR), world.lease(a_host(), start=HOUR)
    assert len(names(merge(world, lease, other, terms=replace(OPERATOR, dry_run=True)))) == 2
    assert world.now(lease) == lease
    with pytest.raises(PreconditionFailed):
        merge(world, lease, other, terms=replace(OPERATOR, revisions=(99,)))
    keyed = replace(OPERATOR, key=IdempotencyKey("a", "b"))
    after = merge(world, lease, other, terms=keyed)
    world.run()
    again = world.manager.surgery.merge(lease.id, MergeRequest(other.id), keyed)
    assert (again.replayed, again.leases) == (True, (after,))


def test_a_refusal_of_the_other_lease_says_that_it_is_that_one(world):
    lease, waits = world.lease(a_host(), start=HOUR), world.lease(a_host(9), wait=HOUR)
    with pytest.raises(WrongState, match="the other lease: the lease waits for its turn") as refused:
        merge(world, lease, waits)
    assert refused.value.pointer == "/with"
