# SPDX-License-Identifier: Apache-2.0
"""Reports know when each reservation was handed over, on each of the databases."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest
import sqlalchemy as sa

from blazar.model.calendar.allocations import Allocation, AllocationPlan
from blazar.model.leases.states import EventStatus, ReservationStatus
from blazar.model.reports.sums import measure_uses
from blazar.store.sql.tables import events, reservations
from blazar.store.store import Store
from tests.store.builders import HOST, HOUR, NOON, a_host, a_lease, book, generations, hours

ACTIVE, PENDING = ReservationStatus.ACTIVE, ReservationStatus.PENDING
END = 4


@pytest.fixture
def store(engine) -> Store:
    return Store(engine)


@pytest.fixture
def lease(store):
    """A lease of two reservations with a host each, of an hour after noon until four."""
    lease = a_lease(hours(1, END))
    (one,) = lease.reservations
    lease = replace(lease, reservations=(one, replace(one, id=str(uuid.uuid4()))))
    hosts = [a_host(store, number) for number in (1, 2)]
    pairs = zip(hosts, lease.reservations, strict=True)
    parts = tuple(Allocation(HOST, host.id, lease.id, one.id, lease.window) for host, one in pairs)
    return book(store, lease, AllocationPlan(parts, generations(store, hosts)))


def write(store, lease, at, *statuses, done=False):
    """Write the status of each reservation at so many hours after noon, and whether the start is done with that."""
    now = NOON + at * HOUR
    parts = tuple(
        one if one.status is status else replace(one, status=status)
        for one, status in zip(lease.reservations, statuses, strict=True)
    )
    start, end = lease.events
    if done:
        start = replace(start, status=EventStatus.DONE, updated_at=now)
    store.leases.save(lease, replace(lease, reservations=parts, events=(start, end)), at=now)
    return store.leases.one(lease.id)


def measure(store, lease, at):
    """Return the lost and overrun hours of each host, as reported some hours after noon."""
    found = {}
    with store.reports.view_usage(hours(0, 24), now=NOON + at * HOUR) as view:
        for use, name, begin, end in measure_uses(view.uses, view.facts):
            if name in ("lost", "overrun"):
                found[use.resource_id, str(name)] = (end - begin) / 3600
    return [tuple(found.get((id_, name), 0) for name in ("lost", "overrun")) for id_ in sorted_hosts(store)]


def sorted_hosts(store):
    return sorted(host.id for host in store.resources.catalog(HOST).resources)


def handed_over(store, lease, at):
    """Return when each reservation was handed over, in hours after noon, by what reports read of a lease."""
    uses = store.reports.list_uses_of_lease(lease.id, now=NOON + at * HOUR)
    noon = int(NOON.timestamp())
    return [None if use.handed_over is None else (use.handed_over - noon) / 3600 for use in uses]


def test_each_reservation_is_late_by_its_own_hand_over(store, lease):
    lease = write(store, lease, 1.5, ACTIVE, PENDING)
    assert handed_over(store, lease, 2) == [1.5, None]
    assert measure(store, lease, 2) == [(0.5, 0), (3, 0)]
    lease = write(store, lease, 3, ACTIVE, ACTIVE, done=True)
    assert handed_over(store, lease, 3) == [1.5, 3]
    assert measure(store, lease, 3) == [(0.5, 0), (2, 0)]


def test_only_who_was_handed_over_has_anything_beyond_the_end(store, lease):
    lease = write(store, lease, 1.5, ACTIVE, PENDING)
    assert measure(store, lease, 6) == [(0.5, 2), (3, 0)]
    # What is handed over after its end is overrun from then on.
    lease = write(store, lease, 5, ACTIVE, ACTIVE, done=True)
    assert measure(store, lease, 6) == [(0.5, 2), (3, 1)]


def test_a_start_that_is_to_be_done_once_more_was_none(store, lease):
    lease = write(store, lease, 1, ACTIVE, ACTIVE, done=True)
    lease = write(store, lease, 2, ACTIVE, PENDING)
    assert handed_over(store, lease, 2) == [1, None]


def test_what_an_earlier_version_handed_over_is_told_by_the_start_of_its_lease(store, engine, lease):
    lease = write(store, lease, 1.5, ACTIVE, ACTIVE, done=True)
    with engine.begin() as connection:
        connection.execute(reservations.update().values(handed_over_at=None))
        (start, *_) = connection.execute(sa.select(events.c.id).where(events.c.status == str(EventStatus.DONE))).first()
        assert start == lease.events[0].id
    assert handed_over(store, lease, 2) == [1.5, 1.5]
    assert measure(store, lease, 2) == [(0.5, 0), (0.5, 0)]
