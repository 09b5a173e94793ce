# SPDX-License-Identifier: Apache-2.0
"""Pure: whether something can be done about an event in trouble, and the lease after it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from blazar.manager.events.results import Finished
from blazar.manager.leases import lifecycle
from blazar.manager.repair.explanations import GIVEN_UP, describe_holder, explain_no_retry
from blazar.model.base.clock import spell
from blazar.model.base.errors import Conflict, WrongState
from blazar.model.base.reasons import Reason
from blazar.model.leases.lease import Event, Lease
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus, ReservationStatus

RETURNS = frozenset({EventType.END, EventType.DELETE, EventType.CREATE})
"""Events that return the resources of a lease."""

_GOES_ON = {
    EventType.START: "The lease fails, unless it waits for another try; what it has holds until its end.",
    EventType.BEFORE_END: "What is saved so far is kept; the rest is lost at the end of the lease.",
    EventType.END: "The lease is over, although not all of it may be gone from the cloud.",
    EventType.CREATE: "The request is undone; what it has made in the cloud is removed later.",
    EventType.UPDATE: "The lease keeps what it has by the books, whatever it has in the cloud.",
    EventType.DELETE: "The lease is deleted, although not all of it may be gone from the cloud.",
    EventType.CLEAN_UP: "What is left in the cloud stays until the next clean-up.",
    EventType.EVACUATE: "No room is made for the lease: it gives up.",
}


def check_idle(lease: Lease, event: Event, now: datetime) -> None:
    """Raise Conflict if a manager may be working on the event."""
    if lifecycle.is_claimed(event, now) and event.due_at is not None:
        since = "" if event.claimed_at is None else f", since {spell(event.claimed_at)}"
        raise Conflict(
            f"it is being worked on: {describe_holder(event.claimed_by)} has the claim{since}, which lasts until "
            f"{spell(event.due_at)}; wait until it has ended",
            code="lease_busy",
        )


def retry_event(lease: Lease, event: Event, now: datetime) -> Lease:
    """Return a lease whose event is due at once: one that waits, or one that has failed, from its begin. Conflict."""
    check_idle(lease, event, now)
    if event.due_at is not None:
        return lifecycle.with_event(lease, replace(event, due_at=now, updated_at=now))
    obstacle = explain_no_retry(event, lease.status, lease.window.end, now)
    if obstacle is not None:
        raise WrongState(f"the event cannot be tried again: {obstacle}")
    if (other := lifecycle.live_claim(lease, now)) is not None:
        check_idle(lease, other, now)
    again = replace(
        event,
        status=EventStatus.UNDONE,
        due_at=now,
        attempts=0,
        claimed_by=None,
        claimed_at=None,
        trouble_since=now,
        updated_at=now,
    )
    after = replace(lifecycle.with_event(lease, again), updated_at=now)
    if event.event_type != EventType.START:
        return after
    failed = [r for r in after.reservations if r.status is ReservationStatus.ERROR]
    waiting = [lifecycle.with_status(r, ReservationStatus.PENDING, now) for r in failed]
    return lifecycle.move(lifecycle.with_reservations(after, waiting), LeaseStatus.PENDING)


def check_release(event: Event, now: datetime, ttl: timedelta) -> datetime:
    """Return the new end of a claim that lasts too long. Conflict for one that ends soon enough by itself."""
    if not lifecycle.is_claimed(event, now) or event.due_at is None:
        raise WrongState("nobody has a claim on the event")
    if event.due_at <= now + ttl:
        raise Conflict(
            f"its claim ends by itself at {spell(event.due_at)} unless its holder renews it, which a holder that lives "
            "does",
            code="lease_busy",
        )
    return now + ttl


def check_give_up(lease: Lease, event: Event, now: datetime) -> None:
    """Raise Conflict if an event cannot be given up now."""
    if event.event_type not in GIVEN_UP:
        raise WrongState(f"{event.event_type} is not given up: it takes no more than a look")
    check_idle(lease, event, now)
    if event.due_at is None or event.status is not EventStatus.IN_PROGRESS:
        raise WrongState("nobody has tried it yet, or it is over; retry it first")
    if (other := lifecycle.live_claim(lease, now)) is not None:
        check_idle(lease, other, now)


def describe_give_up(event: Event) -> str:
    """Return what becomes of a lease whose event is given up."""
    return _GOES_ON[EventType(event.event_type)]


def give_up_event(lease: Lease, event: Event, why: Reason, now: datetime) -> Finished:
    """Return the result of an event that is given up."""
    kind = EventType(event.event_type)
    if kind is EventType.START:
        return Finished(lifecycle.fail_all(lease, now).reservations, why)
    if kind is EventType.END:
        # An end in ERROR would leave the lease in use: it is over, with a note.
        over = tuple(lifecycle.with_status(r, ReservationStatus.DELETED, now) for r in lease.reservations)
        return Finished(over, note=why)
    return Finished(error=None if kind in RETURNS else why, note=why)


def list_handed_over(lease: Lease, event: Event) -> frozenset[str]:
    """Return the reservations that an event returns, and that users may have something on: not those to come."""
    if event.event_type not in RETURNS:
        return frozenset()
    idle = (ReservationStatus.PENDING, ReservationStatus.DELETED)
    return frozenset(r.id for r in lease.reservations if r.status not in idle)
