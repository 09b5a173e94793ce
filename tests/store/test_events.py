"""What is due, and whose claims live."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blazar.model.lease import EventStatus, EventType
from blazar.store.store import Store
from tests.statements import counted
from tests.store.builders import HOUR, NONE, NOON, a_host, booked, hours


@pytest.fixture
def store(engine) -> Store:
    return Store(engine)


def claimed(store, lease, owner):
    """Claim the start of a lease for an hour."""
    start = lease.event(EventType.START)
    mine = replace(
        start, status=EventStatus.IN_PROGRESS, claimed_by=owner, claimed_at=NOON, due_at=NOON + HOUR, attempts=1
    )
    events = tuple(mine if event is start else event for event in lease.events)
    return store.save(lease, replace(lease, events=events), at=NOON, cleaning=NONE)


def due_of(store, lease):
    return store.lease(lease.id).event(EventType.START).due_at


def test_due_events_come_the_longest_waiting_first_and_no_more_than_asked_for(store):
    host = a_host(store)
    second, first = booked(store, hours(2, 3), host), booked(store, hours(1, 4), host)
    due = store.due_events(NOON + 9 * HOUR, 100)
    assert [(event.lease_id, event.event_type) for event in due] == [
        (first.id, EventType.START),
        (second.id, EventType.START),
        (second.id, EventType.END),
        (first.id, EventType.END),
    ]
    assert store.due_events(NOON + 9 * HOUR, 1) == due[:1]
    assert store.due_events(NOON, 9) == ()
    assert store.next_due() == NOON + HOUR


def test_nothing_is_due_where_nothing_is_left_to_do(store):
    assert store.next_due() is None
    lease = booked(store, hours(1, 2), a_host(store))
    done = tuple(replace(event, due_at=None, status=EventStatus.DONE) for event in lease.events)
    store.save(lease, replace(lease, events=done), at=NOON, cleaning=NONE)
    assert store.next_due() is None


def test_a_heartbeat_renews_all_claims_of_its_owner_in_one_statement_and_no_others(store, engine):
    host = a_host(store)
    mine = [claimed(store, booked(store, hours(1, 2), host), "me") for _ in range(3)]
    other = claimed(store, booked(store, hours(1, 2), host), "you")
    with counted(engine) as statements:
        store.extend_claims("me", until=NOON + 3 * HOUR)
    assert statements.count == 1
    assert [due_of(store, lease) for lease in mine] == [NOON + 3 * HOUR] * 3
    assert due_of(store, other) == NOON + HOUR


def test_a_heartbeat_does_not_wake_what_is_done(store):
    lease = claimed(store, booked(store, hours(1, 2), a_host(store)), "me")
    done = tuple(replace(event, due_at=None) for event in lease.events)
    store.save(lease, replace(lease, events=done), at=NOON, cleaning=NONE)
    store.extend_claims("me", until=NOON + 3 * HOUR)
    assert store.next_due() is None


def test_claims_of_those_who_are_gone_can_be_made_due_at_once(store):
    host = a_host(store)
    mine, theirs = (claimed(store, booked(store, hours(1, 2), host), owner) for owner in ("me", "gone"))
    store.drop_claims_of_others("me", at=NOON)
    assert due_of(store, mine) == NOON + HOUR
    assert due_of(store, theirs) == NOON
    assert theirs.id in {event.lease_id for event in store.due_events(NOON, 9)}


def test_a_write_costs_a_few_statements_and_touches_only_what_differs(store, engine):
    lease = booked(store, hours(1, 2), a_host(store))
    with counted(engine) as statements:
        renamed = store.save(lease, replace(lease, name="renamed"), at=NOON, cleaning=NONE)
    assert statements.count == 1
    assert "name" in statements.texts[0]
    assert "starts_at" not in statements.texts[0]
    with counted(engine) as statements:
        claimed(store, renamed, "me")
    assert statements.count == 2
    with counted(engine) as statements:
        store.lease(lease.id)
    assert statements.count == 3
    with counted(engine) as statements:
        store.leases(None)
    assert statements.count == 3
