# SPDX-License-Identifier: Apache-2.0
"""One lease becomes two: each resource goes to exactly one of them, or each has its own time."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from blazar.manager.common.settings import Settings
from blazar.model.base.errors import Conflict, InvalidInput, UsageDenied, WrongState
from blazar.model.leases.limits import Bounds
from blazar.model.leases.requests import IdempotencyKey
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus
from blazar.model.surgery import PartRequest, SplitRequest
from tests.manager.surgery.steps import HOUR, OPERATOR, booked, names
from tests.promises import check_promises
from tests.world import NOON, World, a_host, a_series, addresses, devices, instances


@pytest.fixture
def world(a_world) -> World:
    return a_world(hosts=4)


def split(world: World, lease, *parts: PartRequest, at=None, terms=OPERATOR, name="second"):
    before = booked(world)
    found = world.manager.surgery.split(lease.id, SplitRequest(parts, at, name), terms)
    assert booked(world) == before
    check_promises(world.store, since=NOON)
    return found.leases


def test_each_host_goes_to_exactly_one_of_the_parts(world):
    lease = world.lease(a_host(3), start=HOUR)
    chosen = min(world.hosts_of(lease))
    first, second = split(world, lease, PartRequest(lease.reservations[0].id, (chosen,)))
    assert names(second) == {chosen}
    assert names(first) == world.hosts_of(lease) == {"node-1", "node-2", "node-3", "node-4"} & names(first)
    assert len(names(first)) == 2
    assert chosen not in names(first)
    assert (first.lease.id, first.lease.name, second.lease.name) == (lease.id, "a lease", "second")
    assert second.lease.window == first.lease.window == lease.window
    assert [r.parameters.values["max"] for r in (*first.lease.reservations, *second.lease.reservations)] == [2, 1]
    assert world.notifier.types[-2:] == ["lease.update", "lease.create"]


def test_both_parts_start_and_end_by_themselves(world):
    lease = world.lease(a_host(2), start=HOUR)
    first, second = split(world, lease, PartRequest(lease.reservations[0].id, count=1))
    assert {names(first) & names(second) == set(), len(names(first)), len(names(second))} == {True}
    world.run_to(NOON + HOUR)
    for part in (first, second):
        assert world.now_of(part.lease.id).status is LeaseStatus.ACTIVE
        assert world.pool(part.lease.reservations[0].id) == names(part)
    world.manager.leases.delete(first.lease.id)
    assert world.now_of(second.lease.id).status is LeaseStatus.ACTIVE
    world.run_to(NOON + 3 * HOUR)
    assert world.now_of(second.lease.id).status is LeaseStatus.TERMINATED
    assert world.pool() == {"node-1", "node-2", "node-3", "node-4"}


def test_a_reservation_that_goes_as_a_whole_keeps_its_id_and_what_it_has_in_the_cloud(world):
    lease = world.lease(a_host(1), instances(2), start=HOUR)
    hosts, servers = lease.reservations
    first, second = split(world, lease, PartRequest(servers.id))
    assert [r.id for r in first.lease.reservations] == [hosts.id]
    assert [(r.id, r.cloud_ids) for r in second.lease.reservations] == [(servers.id, servers.cloud_ids)]
    world.run_to(NOON + HOUR)
    assert world.now_of(second.lease.id).status is LeaseStatus.ACTIVE
    world.run_to(NOON + 3 * HOUR)
    assert world.now_of(second.lease.id).status is LeaseStatus.TERMINATED


def test_servers_of_a_lease_in_use_run_on_in_the_part_that_has_them(world):
    lease = world.lease(a_host(1), a_host(1), hours=4)
    world.run()
    going = lease.reservations[1]
    (host,) = world.pool(going.id)
    server = world.simulated.users.boot_server("work", project_id="physics", user_id="curie", host=host)
    first, second = split(world, lease, PartRequest(going.id))
    assert (first.lease.status, second.lease.status) == (LeaseStatus.ACTIVE, LeaseStatus.ACTIVE)
    assert second.lease.event(EventType.START).status is EventStatus.DONE
    assert world.pool(going.id) == {host}
    world.manager.leases.delete(first.lease.id)
    world.run()
    with world.simulated.inspect() as state:
        assert server.id in state.servers
    world.manager.leases.delete(second.lease.id)
    world.run()
    with world.simulated.inspect() as state:
        assert server.id not in state.servers
    assert world.pool() == {"node-1", "node-2", "node-3", "node-4"}


def test_a_reservation_in_use_is_not_cut(world):
    lease = world.lease(a_host(2))
    world.run()
    with pytest.raises(Conflict, match="as a whole"):
        split(world, lease, PartRequest(lease.reservations[0].id, count=1))


def test_other_types_are_not_cut(world):
    lease = world.lease(instances(2), a_host(), start=HOUR)
    with pytest.raises(Conflict, match="several on one resource"):
        split(world, lease, PartRequest(lease.reservations[0].id, count=1))


def test_something_is_left_of_the_first(world):
    lease = world.lease(a_host(2), start=HOUR)
    for part in (PartRequest(lease.reservations[0].id), PartRequest(lease.reservations[0].id, count=2)):
        with pytest.raises(InvalidInput, match="nothing would be left"):
            split(world, lease, part)


def test_what_is_named_has_to_be_there(world):
    lease = world.lease(a_host(2), start=HOUR)
    with pytest.raises(InvalidInput) as refused:
        split(world, lease, PartRequest("none"))
    assert refused.value.pointer == "/reservations/0/id"
    with pytest.raises(InvalidInput) as refused:
        split(world, lease, PartRequest(lease.reservations[0].id, count=3))
    assert refused.value.pointer == "/reservations/0/count"
    with pytest.raises(InvalidInput) as refused:
        split(world, lease, PartRequest(lease.reservations[0].id, ("node-9",)))
    assert refused.value.pointer == "/reservations/0/resources"


def test_a_dry_run_makes_nothing(world):
    lease = world.lease(a_host(2), start=HOUR)
    terms = replace(OPERATOR, dry_run=True)
    first, second = split(world, lease, PartRequest(lease.reservations[0].id, count=1), terms=terms)
    assert len(names(first)) == len(names(second)) == 1
    assert [each.id for each in world.manager.leases.all(None)] == [lease.id]
    assert world.now(lease) == lease


def test_it_is_done_once_for_a_key(world):
    lease = world.lease(a_host(3), start=HOUR)
    terms = replace(OPERATOR, key=IdempotencyKey("a", "b"))
    part = PartRequest(lease.reservations[0].id, count=1)
    leases = split(world, lease, part, terms=terms)
    again = world.manager.surgery.split(lease.id, SplitRequest((part,), None, "second"), terms)
    assert (again.replayed, again.leases) == (True, leases)
    assert len(world.manager.leases.all(None)) == 2


def test_another_lease_counts_for_the_limits_of_the_project(a_world):
    world = a_world(hosts=3, settings=Settings(bounds=Bounds(leases=1)))
    lease = world.lease(a_host(2), start=HOUR)
    with pytest.raises(UsageDenied, match="leases_per_project"):
        split(world, lease, PartRequest(lease.reservations[0].id, count=1))
    assert world.now(lease) == lease


def test_by_time_the_second_begins_where_the_first_ends_with_the_same_hosts(world):
    lease = world.lease(a_host(2), start=HOUR, hours=4)
    first, second = split(world, lease, at=NOON + 3 * HOUR)
    assert (first.lease.window.start, first.lease.window.end) == (NOON + HOUR, NOON + 3 * HOUR)
    assert (second.lease.window.start, second.lease.window.end) == (NOON + 3 * HOUR, NOON + 5 * HOUR)
    assert names(first) == names(second)
    world.run_to(NOON + 3 * HOUR)
    assert world.now_of(first.lease.id).status is LeaseStatus.TERMINATED
    assert world.now_of(second.lease.id).status is LeaseStatus.ACTIVE
    world.run_to(NOON + 5 * HOUR)
    assert world.now_of(second.lease.id).status is LeaseStatus.TERMINATED
    assert world.reservation_aggregates() == []


def test_a_lease_that_has_started_is_not_split_by_time(world):
    lease = world.lease(a_host(), hours=4)
    world.run()
    with pytest.raises(Conflict, match="has started"):
        split(world, lease, at=NOON + HOUR)


def test_the_seam_lies_inside_the_lease(world):
    lease = world.lease(a_host(), start=HOUR, hours=4)
    for at in (NOON, lease.window.start, lease.window.end):
        with pytest.raises(InvalidInput) as refused:
            split(world, lease, at=at)
        assert refused.value.pointer == "/at"


def test_time_for_cleaning_leaves_no_room_for_a_seam(a_world):
    world = a_world(hosts=2, cleaning_time=timedelta(minutes=10))
    lease = world.lease(a_host(), start=HOUR, hours=4)
    with pytest.raises(Conflict, match="10 minutes are kept free"):
        split(world, lease, at=NOON + 2 * HOUR)


def test_the_warning_stays_as_long_before_the_end_of_each_part(world):
    lease = world.lease(a_host(), start=HOUR, hours=6, before_end=NOON + 5.5 * HOUR)
    first, second = split(world, lease, at=NOON + 3 * HOUR)
    times = [part.lease.event(EventType.BEFORE_END).time for part in (first, second)]
    assert times == [NOON + 1.5 * HOUR, NOON + 5.5 * HOUR]


def test_an_occurrence_of_a_series_counts_as_changed_and_its_second_part_is_no_occurrence(world):
    world.manager.series.create(a_series(a_host(2)))
    lease = world.manager.leases.all(None)[0]
    first, second = split(world, lease, PartRequest(lease.reservations[0].id, count=1))
    assert first.lease.series.changed
    assert second.lease.series is None


def test_a_waiting_lease_is_not_split(world):
    world.lease(a_host(4), hours=2)
    waits = world.lease(a_host(2), wait=4 * HOUR)
    assert waits.status is LeaseStatus.WAITING
    with pytest.raises(WrongState, match="waits"):
        split(world, waits, PartRequest("any", count=1))


def test_required_addresses_go_where_they_are(world):
    world.register_addresses(10, 11, 12)
    lease = world.lease(addresses(3, required=[11]), start=HOUR)
    (reservation,) = lease.reservations
    first, second = split(world, lease, PartRequest(reservation.id, ("203.0.113.11",)))
    shown = [part.lease.reservations[0].parameters.values for part in (first, second)]
    assert [each["amount"] for each in shown] == [2, 1]
    assert [each["required_floatingips"] for each in shown] == [[], ["203.0.113.11"]]
    world.run_to(NOON + HOUR)
    assert world.now_of(second.lease.id).status is LeaseStatus.ACTIVE
    world.run_to(NOON + 3 * HOUR)
    assert world.now_of(second.lease.id).status is LeaseStatus.TERMINATED


def test_devices_are_cut_by_number(world):
    world.register_device("board-1")
    world.register_device("board-2")
    lease = world.lease(devices(2), start=HOUR)
    first, second = split(world, lease, PartRequest(lease.reservations[0].id, count=1))
    assert len(names(first)) == len(names(second)) == 1
    world.run_to(NOON + HOUR)
    assert {world.now_of(each.lease.id).status for each in (first, second)} == {LeaseStatus.ACTIVE}
