# SPDX-License-Identifier: Apache-2.0
"""What a write of a lease adds to its history."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from blazar.model.base.window import Window
from blazar.model.journal.entries import LONGEST, ResourceMove, Verb
from blazar.model.journal.lease_entries import make_entry
from blazar.model.leases.lease import Event, ExtendIfFree, Lease
from blazar.model.leases.requests import Actor
from blazar.model.leases.reservation import Content, Reservation
from blazar.model.leases.states import EndReason, EventStatus, EventType, LeaseStatus, ReservationStatus
from blazar.model.queue import Wait

NOON = datetime(2030, 5, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
CURIE = Actor("curie", "physics")
HOSTS = Reservation(
    "r1",
    "physical:host",
    None,
    ReservationStatus.PENDING,
    NOON,
    parameters=Content({"min": 1, "max": 2, "resource_properties": ""}),
)
LEASE = Lease(
    "l1", "plan", "curie", "physics", Window(NOON, NOON + HOUR), LeaseStatus.PENDING, NOON, reservations=(HOSTS,)
)
MOVE = ResourceMove("r1", (1,), (2,), 1, 1)


def verb(before, after, **more) -> Verb | None:
    told = make_entry(before, after, at=NOON, **more)
    return None if told is None else told.verb


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (LeaseStatus.CREATING, LeaseStatus.PENDING, None),
        (LeaseStatus.CREATING, LeaseStatus.WAITING, Verb.WAITING),
        (LeaseStatus.WAITING, LeaseStatus.PENDING, Verb.PROMISED),
        (LeaseStatus.WAITING, LeaseStatus.TIMED_OUT, Verb.TIMED_OUT),
        (LeaseStatus.PENDING, LeaseStatus.STARTING, None),
        (LeaseStatus.STARTING, LeaseStatus.ACTIVE, Verb.STARTED),
        (LeaseStatus.STARTING, LeaseStatus.ERROR, Verb.FAILED),
        (LeaseStatus.UPDATING, LeaseStatus.ACTIVE, None),
        (LeaseStatus.ACTIVE, LeaseStatus.TERMINATING, None),
        (LeaseStatus.TERMINATING, LeaseStatus.TERMINATED, Verb.ENDED),
    ],
)
def test_a_step_of_the_life_has_its_verb_or_is_nobodys_business(before, after, expected):
    assert verb(replace(LEASE, status=before), replace(LEASE, status=after)) is expected


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (EndReason.DELETED, Verb.DELETED),
        (EndReason.MERGED, Verb.MERGED),
        (EndReason.REFUSED, Verb.REFUSED),
        (EndReason.UNUSED, Verb.RELEASED),
    ],
)
def test_what_begins_to_be_deleted_says_why(reason, expected):
    told = make_entry(LEASE, replace(LEASE, status=LeaseStatus.DELETING, end_reason=reason), at=NOON)
    assert told is not None
    assert (told.verb, told.reason) == (expected, str(reason))


@pytest.mark.parametrize("reason", EndReason)
def test_a_deletion_is_told_once_when_it_begins(reason):
    going = replace(LEASE, status=LeaseStatus.DELETING, end_reason=reason)
    assert verb(going, replace(going, deleted_at=NOON), by=CURIE) is None
    # An earlier version began it, and said nothing.
    untold = replace(going, end_reason=None)
    assert verb(untold, replace(untold, deleted_at=NOON, end_reason=EndReason.DELETED)) is Verb.DELETED


def test_a_release_is_told_once_with_the_end_that_is_brought_forward():
    used = replace(LEASE, status=LeaseStatus.ACTIVE)
    released = replace(used, window=Window(NOON, NOON + HOUR / 2), end_reason=EndReason.UNUSED)
    told = make_entry(used, released, at=NOON)
    assert told is not None
    assert (told.verb, told.reason, told.by) == (Verb.RELEASED, "unused", None)
    assert [(c.field, c.after) for c in told.changes] == [("end_date", "2030-05-01T12:30:00Z")]
    ending = replace(released, status=LeaseStatus.TERMINATING)
    assert verb(released, ending) is None
    assert verb(ending, replace(ending, status=LeaseStatus.TERMINATED)) is Verb.ENDED
    assert verb(released, replace(released, status=LeaseStatus.DELETING), by=CURIE) is Verb.DELETED


def test_other_hosts_are_a_move_of_the_service_and_a_change_of_a_user():
    assert verb(LEASE, LEASE) is None
    assert verb(LEASE, LEASE, moves=[MOVE]) is Verb.MOVED
    assert verb(LEASE, LEASE, moves=[MOVE], by=CURIE) is Verb.CHANGED
    assert verb(LEASE, LEASE, moves=[MOVE], by=CURIE, operation=Verb.SWAPPED) is Verb.SWAPPED
    assert verb(LEASE, replace(LEASE, revision=9), by=CURIE, operation=Verb.SWAPPED) is None
    assert verb(LEASE, replace(LEASE, revision=9), by=CURIE, operation=Verb.SPLIT, sure=True) is Verb.SPLIT


def test_a_later_end_alone_extends_and_an_earlier_start_of_a_promise_is_told_as_such():
    longer = replace(LEASE, window=Window(NOON, NOON + 2 * HOUR))
    assert verb(LEASE, longer, by=CURIE) is verb(LEASE, longer) is Verb.EXTENDED
    assert verb(longer, LEASE, by=CURIE) is Verb.CHANGED
    promised = replace(LEASE, wait=Wait(NOON, NOON + 9 * HOUR, NOON, advance=True))
    earlier = replace(promised, window=Window(NOON - HOUR, NOON))
    assert verb(promised, earlier) is Verb.ADVANCED
    assert verb(promised, earlier, by=CURIE) is Verb.CHANGED


def test_a_change_of_the_warning_or_of_how_far_it_goes_on_is_told_but_not_that_it_follows_the_dates():
    def warned(lease: Lease, at: datetime) -> Lease:
        return replace(lease, events=(Event("e1", EventType.BEFORE_END, at, EventStatus.UNDONE, NOON),))

    def told_of(before: Lease, after: Lease, by: Actor | None = CURIE):
        told = make_entry(before, after, at=NOON, by=by)
        return told and (told.verb, [(c.field, c.before, c.after) for c in told.changes])

    before = warned(LEASE, NOON + HOUR / 2)
    after = warned(LEASE, NOON + HOUR / 4)
    assert told_of(before, after) == (
        Verb.CHANGED,
        [("before_end_date", "2030-05-01T12:30:00Z", "2030-05-01T12:15:00Z")],
    )
    assert told_of(LEASE, after) == (Verb.CHANGED, [("before_end_date", None, "2030-05-01T12:15:00Z")])
    assert told_of(before, after, by=None) is None
    longer = replace(LEASE, window=Window(NOON, NOON + 2 * HOUR))
    end = ("end_date", "2030-05-01T13:00:00Z", "2030-05-01T14:00:00Z")
    assert told_of(before, warned(longer, NOON + 3 * HOUR / 2)) == (Verb.EXTENDED, [end])
    goes_on = replace(LEASE, extend=ExtendIfFree(NOON + 3 * HOUR))
    assert told_of(LEASE, goes_on) == (Verb.CHANGED, [("extend_if_free", None, "2030-05-01T15:00:00Z")])
    assert told_of(goes_on, LEASE) == (Verb.CHANGED, [("extend_if_free", "2030-05-01T15:00:00Z", None)])
    why = replace(goes_on, extend=ExtendIfFree(NOON + 3 * HOUR, "others want it"))
    assert told_of(goes_on, why) is None


def test_amounts_and_reservations_that_come_and_go_are_told_and_long_texts_are_cut():
    more = replace(HOSTS, parameters=Content({"min": 2, "max": 2, "resource_properties": "x" * 999}))
    told = make_entry(LEASE, replace(LEASE, reservations=(more,)), at=NOON, by=CURIE)
    assert told is not None
    assert [(c.field, c.before, c.after, c.reservation_id) for c in told.changes] == [
        ("min", "1", "2", "r1"),
        ("resource_properties", "", "x" * LONGEST, "r1"),
    ]
    gone = make_entry(LEASE, replace(LEASE, reservations=(replace(HOSTS, id="r2"),)), at=NOON)
    assert gone is not None
    assert [(c.before, c.after, c.reservation_id) for c in gone.changes] == [
        ("physical:host", None, "r1"),
        (None, "physical:host", "r2"),
    ]


def test_secrets_of_a_reservation_are_not_told():
    server = replace(HOSTS, resource_type="virtual:server", parameters=Content({"secret": {"a": "a"}, "amount": 1}))
    other = replace(server, parameters=Content({"secret": {"a": "b"}, "amount": 2}))
    told = make_entry(replace(LEASE, reservations=(server,)), replace(LEASE, reservations=(other,)), at=NOON)
    assert told is not None
    assert [each.field for each in told.changes] == ["amount"]


def test_what_is_missing_and_comes_back_is_told_unless_something_else_says_more():
    worse = replace(LEASE, degraded=True)
    assert verb(LEASE, worse) is Verb.DEGRADED
    assert verb(worse, LEASE) is Verb.HEALED
    assert verb(LEASE, worse, moves=[MOVE]) is Verb.MOVED
    assert verb(worse, replace(LEASE, name="other"), by=CURIE) is Verb.CHANGED
    assert verb(LEASE, replace(worse, status=LeaseStatus.ERROR)) is Verb.FAILED
