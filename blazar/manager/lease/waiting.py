# SPDX-License-Identifier: Apache-2.0
"""Leases that wait for their turn: what becomes of one when it is queued, granted, refused once more, or gives up."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import datetime, timedelta

from blazar.manager.lease import lifecycle
from blazar.model.lease import Event, EventStatus, EventType, Lease, LeaseStatus, ReservationStatus, Wait
from blazar.model.window import Window

NOT_PREPARED = "it was its turn, and what it needs could not be made in the cloud; it is tried again later"
"""What is told of a lease that waits again."""

REST = timedelta(minutes=10)
"""How long a lease that could not be prepared lets others go first."""


def queued(new: Lease, *, until: datetime, now: datetime) -> Lease:
    """Return a new lease as it waits: without resources, and with a timetable that is not due."""
    timetable = tuple(event for event in new.events if event.event_type != EventType.CREATE)
    wait = Wait(queued_at=now, until=until, earliest=new.window.start)
    return replace(lifecycle.move(new, LeaseStatus.WAITING), events=timetable, wait=wait)


def granted(lease: Lease, window: Window, *, token: str, now: datetime, until: datetime) -> Lease:
    """Return a lease that gets its resources for a window, its creation claimed with the ``token``.

    The event of an earlier try is reused: the record does not grow with the number of tries.
    """
    known = lease.event(EventType.CREATE)
    creation = Event(
        id=str(uuid.uuid4()) if known is None else known.id,
        event_type=EventType.CREATE,
        time=now.replace(microsecond=0),
        status=EventStatus.UNDONE,
        created_at=now if known is None else known.created_at,
    )
    moved = replace(lease, wait=told(lease, position=None, estimate=None, reason=None))
    begun = lifecycle.with_event(moved.in_window(window), creation)
    return lifecycle.claim(begun, creation, token=token, now=now, until=until)


def waits_again(lease: Lease, creation: Event, *, reason: str, now: datetime) -> Lease:
    """Return a lease that had its turn and could not be prepared, and has kept its place.

    The event of its creation is as before its turn: one in ERROR would say that the lease never was.
    """
    over = replace(creation, status=EventStatus.UNDONE, due_at=None, claimed_by=None, claimed_at=None, updated_at=now)
    after = lifecycle.with_event(replace(lease, wait=told(lease, position=None, estimate=None, reason=reason)), over)
    return replace(lifecycle.move(after, LeaseStatus.WAITING), updated_at=now)


def timed_out(lease: Lease, *, now: datetime) -> Lease:
    """Return a lease that waited in vain; why it did stays."""
    assert lease.wait is not None
    given_up = told(lease, position=None, estimate=None, reason=lease.wait.reason)
    failed = lifecycle.all_failed(replace(lease, wait=given_up), now)
    return replace(lifecycle.move(failed, LeaseStatus.TIMED_OUT), updated_at=now)


def can_wait(lease: Lease, now: datetime) -> bool:
    """Return whether a lease is or was on the waiting list, and has not given up."""
    return is_whole(lease) and lease.wait is not None and lease.wait.until > now


def is_whole(lease: Lease) -> bool:
    """Return whether a lease that was on the waiting list can be there again.

    One that has lost what is secret in its reservations could not be started any more.
    """
    pending = all(reservation.status is ReservationStatus.PENDING for reservation in lease.reservations)
    return pending and lease.wait is not None


def rests_until(lease: Lease) -> datetime | None:
    """Return until when a lease that could not be prepared at its turn holds up nobody; None if that did not happen.

    That a manager died meanwhile says nothing of the lease: then there is no reason.
    """
    tried = lease.event(EventType.CREATE)
    if tried is None or tried.reason is None or tried.updated_at is None:
        return None
    return tried.updated_at + REST


def told(lease: Lease, *, position: int | None, estimate: datetime | None, reason: str | None) -> Wait:
    """Return what is known of the waiting of a lease."""
    assert lease.wait is not None
    return replace(lease.wait, position=position, estimate=estimate, reason=reason)
