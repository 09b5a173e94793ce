# SPDX-License-Identifier: Apache-2.0
"""What is due, and whose claims live."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blazar.model.calendar.allocations import AllocationPlan
from blazar.model.leases.states import EventStatus, EventType
from blazar.store.store import Store
from tests.statements import counted
from tests.store.builders import HOUR, NOON, a_host, a_lease, book, booked, hours


@pytest.fixture
def store(engine) -> Store:
    return Store(engine)


def claimed(store, lease, token, until=NOON + HOUR, attempts=1):
    """Claim the start of a lease, for an hour by default."""
    start = lease.event(EventType.START)
    mine = replace(
        start, status=EventStatus.IN_PROGRESS, claimed_by=token, claimed_at=NOON, due_at=until, attempts=attempts
    )
    events = tuple(mine if event is start else event for event in lease.events)
    return store.leases.save(lease, replace(lease, events=events), at=NOON)


def due_of(store, lease):
    return store.leases.one(lease.id).event(EventType.START).due_at


def test_due_events_come_the_longest_waiting_first_and_no_more_than_asked_for(store):
    host = a_host(store)
    second, first = booked(store, hours(2, 3), host), booked(store, hours(1, 4), host)
    due = store.events.due(NOON + 9 * HOUR, 100)
    assert [(event.lease_id, event.event_type) for event in due] == [
        (first.id, EventType.START),
        (second.id, EventType.START),
        (second.id, EventType.END),
        (first.id, EventType.END),
    ]
    assert store.events.due(NOON + 9 * HOUR, 1) == due[:1]
    assert store.events.due(NOON, 9) == ()
    assert store.events.next_due() == NOON + HOUR


def test_of_each_project_the_first_is_due_before_the_second_of_any_and_starts_apart_from_ends(store, engine):
    host = a_host(store)

    def lease(project, start, reservations=None):
        new = a_lease(hours(start, start + 1), project=project)
        new = new if reservations is None else replace(new, reservations=reservations)
        return book(store, new, AllocationPlan())

    many = [lease("many", number / 10) for number in range(8)]
    empty = [lease("many", -1, ()), lease("idle", -1, ())]
    one = lease("one", 0.9)
    booked(store, hours(5, 6), host)
    with counted(engine) as statements:
        due = store.events.due(NOON + 0.95 * HOUR, 3)
    assert statements.count == 1
    assert [event.lease_id for event in due] == [many[0].id, many[1].id, one.id]
    assert [(event.project_id, event.empty, event.is_start) for event in due[1:]] == [
        ("many", False, True),
        ("one", False, True),
    ]
    later = store.events.due(NOON + 1.15 * HOUR, 4)
    assert {(event.project_id, event.event_type) for event in later} == {
        ("many", EventType.START),
        ("many", EventType.END),
        ("one", EventType.START),
    }
    everything = store.events.due(NOON + HOUR, 99)
    assert {event.lease_id for event in everything[-4:]} == {lease.id for lease in empty}
    assert all(event.empty for event in everything[-4:])


@pytest.mark.parametrize("by_region", [False, True])
def test_what_was_begun_and_has_not_failed_has_its_place_however_many_new_ones_are_due_before(store, by_region):
    host = a_host(store)
    new = [booked(store, hours(1 + number / 10, 9), host) for number in range(5)]
    begun = [claimed(store, booked(store, hours(1, 9), host), None, NOON + 2 * HOUR, attempts=0) for _ in range(2)]
    failed = claimed(store, booked(store, hours(1, 9), host), None, NOON + 2 * HOUR)
    due = store.events.due(NOON + 3 * HOUR, 4, by_region=by_region)
    assert {event.lease_id for event in due if event.begun} == {lease.id for lease in begun}
    assert [event.lease_id for event in due if not event.begun] == [lease.id for lease in new[:2]]
    everything = store.events.due(NOON + 3 * HOUR, 99, by_region=by_region)
    assert failed.id in {event.lease_id for event in everything if not event.begun}


def test_nothing_is_due_where_nothing_is_left_to_do(store):
    assert store.events.next_due() is None
    lease = booked(store, hours(1, 2), a_host(store))
    done = tuple(replace(event, due_at=None, status=EventStatus.DONE) for event in lease.events)
    store.leases.save(lease, replace(lease, events=done), at=NOON)
    assert store.events.next_due() is None


def test_a_heartbeat_renews_the_claims_that_are_held_in_one_statement_and_no_others(store, engine):
    host = a_host(store)
    mine = [claimed(store, booked(store, hours(1, 2), host), f"me:{number}") for number in range(3)]
    dropped = claimed(store, booked(store, hours(1, 2), host), "me:3")
    other = claimed(store, booked(store, hours(1, 2), host), "you:1")
    with counted(engine) as statements:
        renewed = store.claims.renew_claims(["me:0", "me:1", "me:2"], now=NOON, until=NOON + 3 * HOUR)
    assert statements.count == 1
    assert renewed == {"me:0", "me:1", "me:2"}
    assert [due_of(store, lease) for lease in mine] == [NOON + 3 * HOUR] * 3
    assert [due_of(store, lease) for lease in (dropped, other)] == [NOON + HOUR] * 2


def test_a_claim_that_has_ended_is_not_renewed_and_its_holder_hears_of_it(store):
    host = a_host(store)
    first, second = (claimed(store, booked(store, hours(1, 2), host), f"me:{number}") for number in range(2))
    later = claimed(store, booked(store, hours(1, 2), host), "me:2", until=NOON + 2 * HOUR)
    now = NOON + HOUR
    assert store.claims.renew_claims(["me:0", "me:1", "me:2"], now=now, until=NOON + 4 * HOUR) == {"me:2"}
    assert [due_of(store, lease) for lease in (first, second)] == [now, now]
    assert due_of(store, later) == NOON + 4 * HOUR
    assert store.claims.renew_claims(["nobody's"], now=now, until=NOON + 4 * HOUR) == frozenset()


def test_a_heartbeat_does_not_wake_what_is_done(store):
    lease = claimed(store, booked(store, hours(1, 2), a_host(store)), "me")
    done = tuple(replace(event, due_at=None) for event in lease.events)
    store.leases.save(lease, replace(lease, events=done), at=NOON)
    assert store.claims.renew_claims(["me"], now=NOON, until=NOON + 3 * HOUR) == frozenset()
    assert store.events.next_due() is None


def test_claims_of_those_who_are_gone_can_be_made_due_at_once(store):
    lease = claimed(store, booked(store, hours(1, 2), a_host(store)), "gone")
    store.claims.drop_claims(at=NOON)
    assert due_of(store, lease) == NOON
    assert lease.id in {event.lease_id for event in store.events.due(NOON, 9)}


def test_a_write_costs_a_few_statements_and_touches_only_what_differs(store, engine):
    lease = booked(store, hours(1, 2), a_host(store))
    with counted(engine) as statements:
        renamed = store.leases.save(lease, replace(lease, name="renamed"), at=NOON)
    assert statements.count == 2
    assert "name" in statements.texts[0]
    assert "starts_at" not in statements.texts[0]
    with counted(engine) as statements:
        claimed(store, renamed, "me")
    assert statements.count == 2
    with counted(engine) as statements:
        store.leases.one(lease.id)
    assert statements.count == 3
    with counted(engine) as statements:
        store.leases.of_project(None)
    assert statements.count == 3
