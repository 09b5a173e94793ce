# SPDX-License-Identifier: Apache-2.0
"""What was, is and will be used over time, as the database has it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from blazar.model.base.amounts import Amounts
from blazar.model.calendar.allocations import Allocation, AllocationPlan
from blazar.store.calendar.uses import LeasesRead
from blazar.store.sql.engine import WRITES
from blazar.store.sql.tables import leases
from blazar.store.store import Store
from tests.statements import counted
from tests.store.builders import HOST, HOUR, NOON, a_host, a_lease, book, booked, generations, hours, promised, rebook

SMALL = Amounts.of({"VCPU": 2})
CLEANING = timedelta(minutes=30)


@pytest.fixture
def store(engine) -> Store:
    return Store(engine, cleaning_time=CLEANING)


def read(store, window, *, at=-1.0, leases_read=LeasesRead.ALL, project="physics", only=None):
    with store.calendar.view_uses(HOST) as view:
        return view.read_uses(
            window, as_of=NOON + at * HOUR, leases_read=leases_read, project_id=project, resource_ids=only
        )


def spans(store, window, host, **more):
    """The uses of a host: from, until and clean in hours after noon."""
    found = read(store, window, **more).by_resource.get(host.id, ())
    return sorted(tuple((x - NOON) / HOUR for x in (use.start, use.end, use.clean_at)) for use in found)


def released(store, lease, at):
    return store.leases.save(lease, lease, release=[lease.reservations[0].id], at=NOON + at * HOUR)


def test_a_use_is_read_if_it_or_its_cleaning_overlaps_the_range(store):
    host, other = a_host(store, 1), a_host(store, 2)
    booked(store, hours(1, 2), host)
    booked(store, hours(4, 5), host, per_instance=SMALL)
    booked(store, hours(1, 2), other)
    assert spans(store, hours(0, 9), host) == [(1, 2, 2.5), (4, 5, 5.5)]
    assert spans(store, hours(2.25, 4), host) == [(1, 2, 2.5)]
    assert spans(store, hours(2.5, 4), host) == []
    assert read(store, hours(0, 9), only=[other.id]).by_resource.keys() == {other.id}
    assert [use.amounts for use in read(store, hours(3, 9)).by_resource[host.id]] == [SMALL]


def test_a_user_who_has_not_left_is_there_until_now_and_one_who_has_left_was_there_until_then(store):
    late, early, never = (a_host(store, number) for number in (1, 2, 3))
    booked_leases = [booked(store, hours(1, 2), host) for host in (late, early, never)]
    assert spans(store, hours(0, 9), late, at=5) == [(1, 5, 5)]
    assert spans(store, hours(3, 4), late, at=5) == [(1, 5, 5)]
    assert spans(store, hours(5, 9), late, at=2.25) == []
    released(store, booked_leases[0], 6)
    released(store, booked_leases[1], 1.5)
    released(store, booked_leases[2], 0.5)
    assert spans(store, hours(0, 9), late, at=7) == [(1, 6, 6.5)]
    assert spans(store, hours(0, 9), early, at=7) == [(1, 1.5, 2)]
    assert spans(store, hours(1.75, 9), early, at=7) == [(1, 1.5, 2)]
    assert spans(store, hours(0, 9), never, at=7) == []


def test_a_fraction_of_a_second_is_not_rounded_up(store):
    host = a_host(store)
    almost = timedelta(microseconds=999_900) / HOUR
    released(store, booked(store, hours(1, 2), host), 1.5 + almost)
    assert spans(store, hours(0, 9), host, at=7) == [(1, 1.5, 2)]


def test_what_a_lease_had_before_it_was_given_more_is_read_as_well(store):
    host = a_host(store)
    lease = booked(store, hours(1, 5), host, per_instance=SMALL)
    more = Allocation(HOST, host.id, lease.id, lease.reservations[0].id, lease.window, 3, SMALL)
    plan = AllocationPlan((more,), generations(store, [host]))
    rebook(store, lease, lease, plan, at=NOON + 2 * HOUR)
    found = sorted(read(store, hours(0, 9), at=3).by_resource[host.id], key=lambda use: use.start)
    assert [((u.start - NOON) / HOUR, (u.end - NOON) / HOUR, u.amounts) for u in found] == [
        (1, 2, SMALL),
        (2, 5, SMALL.times(3)),
    ]
    assert found[0].clean_at == found[0].end


def test_of_other_projects_nothing_is_read_but_time_and_amounts(store):
    host = a_host(store)
    mine = booked(store, hours(1, 2), host)
    theirs = replace(a_lease(hours(3, 4), project="chemistry"), name="secret")
    book(store, theirs, AllocationPlan(promised(theirs, [host]), generations(store, [host])))
    shown = read(store, hours(0, 9), leases_read=LeasesRead.OF_PROJECT)
    assert set(shown.leases) == {mine.id}
    assert [use.lease_id for use in sorted(shown.by_resource[host.id], key=lambda u: u.start)] == [mine.id, None]
    assert all(use.reservation_id is use.project_id is None for use in shown.by_resource[host.id] if not use.lease_id)
    assert set(read(store, hours(0, 9)).leases) == {mine.id, theirs.id}
    assert read(store, hours(0, 9), leases_read=LeasesRead.NONE).leases == {}
    with store.calendar.view_uses(HOST) as view:
        for project, window, expected in (
            ("physics", hours(0, 9), {host.id}),
            ("physics", hours(2, 9), set()),
            ("chemistry", hours(2, 9), {host.id}),
            ("biology", hours(0, 9), set()),
        ):
            assert view.find_occupied(project, window, as_of=NOON) == expected


def test_operators_see_whose_a_use_was_when_its_lease_is_over(store, engine):
    host = a_host(store)
    over, current = booked(store, hours(1, 2), host), booked(store, hours(5, 6), host)
    with engine.execution_options(**{WRITES: True}).begin() as connection:
        connection.execute(leases.update().where(leases.c.id == over.id).values(status="TERMINATED", deleted_at=NOON))
    found = read(store, hours(0, 9))
    assert [use.lease_id for use in found.by_resource[host.id]] == [over.id, current.id]
    assert {use.project_id for use in found.by_resource[host.id]} == {"physics"}
    assert found.leases[over.id].status == "TERMINATED"


@pytest.mark.parametrize("number", [1, 12])
def test_a_range_costs_two_statements_however_many_hosts_and_leases_it_has(store, engine, number):
    hosts = [a_host(store, each) for each in range(number)]
    for host in hosts:
        for hour in range(number):
            booked(store, hours(hour, hour + 1), host)
    read(store, hours(0, 30))
    with counted(engine) as statements:
        found = read(store, hours(0, 30), only=[host.id for host in hosts])
    assert sum(map(len, found.by_resource.values())) == number * number
    assert statements.count == 2
