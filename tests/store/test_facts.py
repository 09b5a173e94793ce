# SPDX-License-Identifier: Apache-2.0
"""What bills need to know is written with what it follows from: hand-overs, outages, and by which prices."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlalchemy as sa

from blazar.model.leases.states import ReservationStatus
from blazar.store.sql.tables import outages
from blazar.store.store import Store
from tests.store.builders import HOUR, NOON, a_host, booked, hours


@pytest.fixture
def store(engine) -> Store:
    return Store(engine)


def changed(store, lease, at, **values):
    """Save a lease whose reservation is changed, at an hour after noon; return it as it is then."""
    after = replace(lease, reservations=(replace(lease.reservations[0], **values),))
    store.leases.save(lease, after, at=NOON + at * HOUR)
    return store.leases.one(lease.id)


def lacked(engine):
    """Which resources could not be used, from and until how many hours after noon."""
    o = outages.c
    with engine.connect() as connection:
        rows = connection.execute(sa.select(o.lease_id, o.resource_id, o.since, o.until).order_by(o.id)).all()
    return [
        (lease_id, resource_id, (since - NOON) / HOUR, None if until is None else (until - NOON) / HOUR)
        for lease_id, resource_id, since, until in rows
    ]


def test_a_reservation_knows_when_its_start_was_done(store):
    lease = booked(store, hours(1, 9), a_host(store))
    assert lease.reservations[0].handed_over_at is None
    active = changed(store, lease, 1.5, status=ReservationStatus.ACTIVE)
    assert active.reservations[0].handed_over_at == NOON + 1.5 * HOUR
    # Whatever is written of it later.
    noted = changed(store, active, 2, updated_at=NOON)
    ended = changed(store, noted, 9, status=ReservationStatus.DELETED)
    assert ended.reservations[0].handed_over_at == NOON + 1.5 * HOUR


def test_a_hand_over_is_in_whole_seconds(store):
    lease = booked(store, hours(1, 9), a_host(store))
    active = changed(store, lease, 1 + 0.7 / 3600, status=ReservationStatus.ACTIVE)
    assert active.reservations[0].handed_over_at == NOON + HOUR


def test_a_start_that_is_to_be_done_once_more_was_none(store):
    lease = booked(store, hours(1, 9), a_host(store))
    active = changed(store, lease, 1, status=ReservationStatus.ACTIVE)
    waiting = changed(store, active, 2, status=ReservationStatus.PENDING)
    assert waiting.reservations[0].handed_over_at is None
    assert changed(store, waiting, 3, status=ReservationStatus.ACTIVE).reservations[0].handed_over_at == NOON + 3 * HOUR


def test_an_outage_lasts_as_long_as_a_resource_is_missing_for_whatever_reason(store, engine):
    lease = booked(store, hours(1, 9), one := a_host(store, 1), other := a_host(store, 2))
    failed = changed(store, lease, 2, failed=frozenset({one.id}))
    both = changed(store, failed, 3, failed=frozenset({one.id, other.id}))
    left_out = changed(store, both, 4, failed=frozenset({one.id}), unassigned=frozenset({one.id}))
    still = changed(store, left_out, 5, failed=frozenset())
    assert lacked(engine) == [(lease.id, one.id, 2, None), (lease.id, other.id, 3, 4)]
    well = changed(store, still, 6, unassigned=frozenset())
    changed(store, well, 7, failed=frozenset({one.id}))
    assert lacked(engine) == [(lease.id, one.id, 2, 6), (lease.id, other.id, 3, 4), (lease.id, one.id, 7, None)]


def test_nothing_is_written_of_outages_without_one(store, engine):
    lease = booked(store, hours(1, 9), a_host(store))
    changed(store, lease, 2, status=ReservationStatus.ACTIVE)
    assert lacked(engine) == []
