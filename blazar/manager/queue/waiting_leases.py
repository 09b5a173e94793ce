# SPDX-License-Identifier: Apache-2.0
"""Leases that wait for their turn: what becomes of one when it is queued, granted, refused once more, or gives up.

A lease of the kind ``retries`` has a place on the waiting list from its request on, whether it has to wait or not, and
goes back to it when a try fails for which there were resources, until too many have failed.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Literal

from blazar.calendar.queue.usage import expected_start
from blazar.calendar.timeline import epoch, from_epoch
from blazar.manager.common.settings import Settings
from blazar.manager.leases import lifecycle
from blazar.model.base.clock import END_OF_TIME, spell, to_second
from blazar.model.base.errors import InvalidInput
from blazar.model.base.moments import Duration
from blazar.model.base.reasons import Reason
from blazar.model.base.window import Window
from blazar.model.leases.lease import Event, Lease, reason_of, set_reason
from blazar.model.leases.requests import LeaseChange, LeaseRequest
from blazar.model.leases.reservation import NO_CONTENT, Reservation
from blazar.model.leases.states import TIMETABLE, EventStatus, EventType, LeaseKind, LeaseStatus, ReservationStatus
from blazar.model.queue import FailedTry, TryFailure, Wait
from blazar.observe import metrics

NOT_PREPARED = "it was its turn, and what it needs could not be made in the cloud; it is tried again later"
"""What is told of a lease that waits again."""

BACKS_OFF = "a try has failed; it is tried again later"
"""What is told of a lease whose tries are counted, while it backs off."""

NOTHING = timedelta(0)
BACKOFF = timedelta(minutes=10)
"""How long a lease that could not be prepared lets others go first."""


LONGEST_WAIT = timedelta(days=366)
"""How long a lease may wait."""

FIRST_BACKOFF = timedelta(minutes=1)
LONGEST_BACKOFF = timedelta(hours=1)
"""The same of one whose tries are counted: after each that fails twice as long, up to the longest."""


def read_wait(request: LeaseRequest, window: Window, now: datetime, settings: Settings) -> Wait | None:
    """Return the place on the waiting list that a request for a window asks for; None if it does not wait.

    InvalidInput if that cannot be.
    """
    if request.wait_until is None:
        if request.kind is LeaseKind.RETRIES:
            raise InvalidInput(
                "a lease of the kind retries waits between its tries; say until when with wait.until", at="/wait"
            )
        return None
    if request.kind is LeaseKind.IMMEDIATE:
        raise InvalidInput("an immediate lease does not wait; leave out wait, or kind", at="/wait")
    if request.kind is LeaseKind.BEST_EFFORT:
        raise InvalidInput(
            "room is made for a lease of the kind best_effort, so that it does not wait; leave out wait, or kind",
            at="/wait",
        )
    if isinstance(request.extend_until, datetime):
        raise InvalidInput(
            "of a lease that waits, extend_if_free.until moves with its start; give a duration such as +P2D",
            at="/extend_if_free/until",
        )
    until = _read_until(request.wait_until, now)
    shortest = _read_shortest(request, window)
    return Wait(
        queued_at=now,
        until=until,
        earliest=window.start,
        tries=_read_tries(request, settings),
        latest=_read_latest(request, window.start),
        shortest=shortest,
        longest=None if shortest is None else window.end - window.start,
        max_price=request.max_price,
    )


def _read_latest(request: LeaseRequest, start: datetime) -> datetime | None:
    latest = request.latest_start
    if latest is None:
        return None
    try:
        at = to_second(latest.after(start) if isinstance(latest, Duration) else latest)
    except (OverflowError, ValueError):
        at = END_OF_TIME
    if at < start:
        raise InvalidInput(
            f"wait.latest is before the start, {spell(start)} UTC; give a later date, or an earlier start_date",
            at="/wait/latest",
        )
    return at


def _read_shortest(request: LeaseRequest, window: Window) -> timedelta | None:
    if request.at_least is None:
        return None
    length = window.end - window.start
    try:
        shortest = request.at_least.after(window.start) - window.start
    except (OverflowError, ValueError):
        shortest = timedelta.max
    if shortest > length:
        raise InvalidInput(
            "wait.at_least is longer than the lease; give a shorter duration, or a later end_date", at="/wait/at_least"
        )
    return shortest


def _read_until(until: datetime | Duration, now: datetime) -> datetime:
    try:
        at = to_second(until.after(now) if isinstance(until, Duration) else until)
    except (OverflowError, ValueError):
        at = END_OF_TIME
    if at <= now:
        raise InvalidInput("wait.until is past; give a later date", at="/wait/until")
    if at - now > LONGEST_WAIT:
        raise InvalidInput(
            f"wait.until is more than {LONGEST_WAIT.days} days ahead; give an earlier date", at="/wait/until"
        )
    return at


def _read_tries(request: LeaseRequest, settings: Settings) -> int | None:
    if request.kind is not LeaseKind.RETRIES:
        if request.tries is not None:
            raise InvalidInput(
                "wait.tries is for leases of the kind retries; leave it out, or ask for that kind", at="/wait/tries"
            )
        return None
    tries = settings.tries if request.tries is None else request.tries
    if not 1 <= tries <= settings.most_tries:
        raise InvalidInput(
            f"wait.tries is {tries}; give a number from 1 to {settings.most_tries}",
            at="/wait/tries",
            data={"max": settings.most_tries},
        )
    return tries


def enqueue(new: Lease, wait: Wait) -> Lease:
    """Return a new lease as it waits: without resources, and with a timetable that is not due."""
    timetable = tuple(event for event in new.events if event.event_type != EventType.CREATE)
    return replace(lifecycle.move(new, LeaseStatus.WAITING), events=timetable, wait=wait)


def grant(lease: Lease, window: Window, *, estimate: datetime, token: str, now: datetime, until: datetime) -> Lease:
    """Return a lease that gets its resources for a window, its creation claimed with the ``token``.

    If that is promised to it, the ``estimate`` is when it will probably start.
    """
    creation = _new_creation(lease, now)
    place = update_place(lease, position=None, estimate=None, reason=None)
    # A start that is as early as was asked for could become no earlier.
    advance = window.start > max(now, place.earliest)
    moved = replace(lease, wait=replace(place, advance=advance, estimate=estimate if advance else None))
    begun = lifecycle.with_event(moved.in_window(window), creation)
    return lifecycle.claim(begun, creation, token=token, now=now, until=until)


def retry_failed_start(lease: Lease, *, now: datetime, delayed_by: Reason | None = None) -> Lease:
    """Return a lease whose start is over: if it has failed for good and a try is left, as it is undone, to wait again.

    Its creation is what is undone: that event is due at once, so that any manager does it. ``delayed_by`` is what has
    kept it from being ready before its time was over.
    """
    start = lease.event(EventType.START)
    if start is None or lease.status is not LeaseStatus.ERROR or not _counts_tries(lease):
        return lease
    why = reason_of(start)
    cause = delayed_by or why
    tried = add_failed_try(
        lease,
        FailedTry(
            now,
            TryFailure.NOT_STARTED,
            "it failed" if why is None else why.text,
            None if cause is None else cause.cause.code,
        ),
    )
    assert tried.wait is not None
    if tried.wait.is_spent or not can_wait(tried, now):
        return tried
    undo = replace(_new_creation(tried, now), due_at=now)
    idle = tuple(replace(e, due_at=None) if e.event_type in TIMETABLE else e for e in tried.events)
    undone = lifecycle.with_event(replace(tried, events=idle), undo)
    return replace(lifecycle.move(undone, LeaseStatus.CREATING), updated_at=now)


def is_undone(lease: Lease) -> bool:
    """Tell whether what is undone of a lease is its start: then its resources have been in use."""
    start = lease.event(EventType.START)
    return lease.status is LeaseStatus.CREATING and start is not None and start.status is EventStatus.ERROR


def requeue(lease: Lease, creation: Event, *, lead: timedelta, now: datetime) -> Lease:
    """Return a lease of which nothing is left in the cloud after its turn, and that has kept its place.

    It has given up if that was the last of its tries. Its events and reservations are as before its turn: an event in
    ERROR would say that the lease never was. ``lead`` is the operator's time of the warning.
    """
    over = replace(creation, status=EventStatus.UNDONE, due_at=None, claimed_by=None, claimed_at=None, updated_at=now)
    reason: str | None = NOT_PREPARED
    if is_undone(lease):
        reason = None
    elif _counts_tries(lease):
        why = reason_of(creation)
        failed = FailedTry(now, TryFailure.NOT_PREPARED, "" if why is None else why.text)
        lease, reason = add_failed_try(lease, failed), None
    if lease.wait is not None and lease.wait.longest is not None:
        # Its turn may have given it less than it asked for.
        lease = lease.in_window(Window(lease.window.start, lease.window.start + lease.wait.longest), lead)
    fresh = replace(
        lease,
        degraded=False,
        wait=update_place(lease, position=None, estimate=None, reason=reason),
        reservations=tuple(_reset_reservation(reservation, now) for reservation in lease.reservations),
        events=tuple(_reset_event(event, now) for event in lease.events),
    )
    after = lifecycle.with_event(fresh, over)
    waiting = replace(lifecycle.move(after, LeaseStatus.WAITING), updated_at=now)
    return time_out(waiting, now=now) if _is_spent(waiting) else waiting


def keep_place(lease: Lease, change: LeaseChange, window: Window) -> Wait | None:
    """Return the place on the waiting list of a lease after a change of it, with this window then.

    What its owner changes is an ordinary booking from then on, which is not moved any more.
    """
    wait = lease.wait
    if wait is None or not wait.advance:
        return wait
    advance = change.advances is not None and window.start > wait.earliest
    return replace(
        wait, advance=advance, estimate=_move_estimate(wait, lease.window.start, window.start) if advance else None
    )


def _move_estimate(wait: Wait, before: datetime, after: datetime) -> datetime | None:
    """Return when a lease will probably start whose promised start has moved: for the same part of the wait."""
    wish = max(wait.queued_at, wait.earliest)
    if wait.estimate is None or before <= wish:
        return wait.estimate
    part = max(wait.estimate - wish, NOTHING) / (before - wish)
    return from_epoch(expected_start(epoch(wish), epoch(after), part))


def back_off(lease: Lease, why: Reason, *, now: datetime) -> Lease:
    """Return a lease that could not be booked at its turn, and lets others go first from now on."""
    failed = replace(_new_creation(lease, now), updated_at=now)
    return lifecycle.with_event(lease, set_reason(failed, why))


def add_failed_try(lease: Lease, failed: FailedTry) -> Lease:
    """Return a lease with one more failed try, if its tries are counted."""
    if not _counts_tries(lease) or lease.wait is None:
        return lease
    return replace(lease, wait=replace(lease.wait, failed=(*lease.wait.failed, failed)))


def settle_failed_try(lease: Lease, failed: FailedTry, *, now: datetime) -> Lease:
    """Return a lease that waits after a try that failed at its turn: it goes on waiting, or has given up."""
    tried = add_failed_try(lease, failed)
    return time_out(tried, now=now) if _is_spent(tried) else replace(tried, updated_at=now)


def time_out(lease: Lease, *, now: datetime) -> Lease:
    """Return a lease that waited in vain, with the dates that it asked for; why it did stays."""
    assert lease.wait is not None
    given_up = update_place(lease, position=None, estimate=None, reason=lease.wait.reason)
    length = lease.wait.longest or lease.window.end - lease.window.start
    asked_for = lease.in_window(Window(lease.wait.earliest, lease.wait.earliest + length))
    failed = lifecycle.fail_all(replace(asked_for, wait=given_up), now)
    return replace(lifecycle.move(failed, LeaseStatus.TIMED_OUT), updated_at=now)


def can_wait(lease: Lease, now: datetime) -> bool:
    """Return whether a lease is or was on the waiting list, and has not given up."""
    return lease.wait is not None and lease.wait.gives_up_at > now


def restore_secrets(lease: Lease, changed: tuple[Reservation, ...]) -> tuple[Reservation, ...]:
    """Return changed reservations of a lease that may start again, with the secrets that this needs."""
    kept = {reservation.id: reservation.parameters for reservation in lease.reservations}
    return tuple(replace(reservation, parameters=kept[reservation.id]) for reservation in changed)


def backoff_until(lease: Lease) -> datetime | None:
    """Return until when a lease that could not be prepared at its turn holds up nobody; None if that did not happen.

    So does one of which another try has failed. That a manager died meanwhile says nothing of the lease: then there is
    no reason.
    """
    if lease.wait is not None and lease.wait.failed:
        times: int = 2 ** min(len(lease.wait.failed) - 1, 16)
        return lease.wait.failed[-1].at + min(LONGEST_BACKOFF, FIRST_BACKOFF * times)
    tried = lease.event(EventType.CREATE)
    if tried is None or tried.reason is None or tried.updated_at is None:
        return None
    return tried.updated_at + BACKOFF


def backoff_reason(lease: Lease) -> str:
    """Return what is told of a lease while it backs off."""
    if lease.wait is None or lease.wait.failed:
        return BACKS_OFF
    return lease.wait.reason or NOT_PREPARED


def update_place(lease: Lease, *, position: int | None, estimate: datetime | None, reason: str | None) -> Wait:
    """Return what is known of the waiting of a lease."""
    assert lease.wait is not None
    return replace(lease.wait, position=position, estimate=estimate, reason=reason, advance=False)


def _new_creation(lease: Lease, now: datetime) -> Event:
    """Return the event of another try, in the place of that of an earlier one."""
    return lifecycle.new_event(EventType.CREATE, to_second(now), now, known=lease.event(EventType.CREATE))


def _counts_tries(lease: Lease) -> bool:
    return lease.wait is not None and lease.wait.tries is not None


def _is_spent(lease: Lease) -> bool:
    return lease.wait is not None and lease.wait.is_spent


def _reset_reservation(reservation: Reservation, now: datetime) -> Reservation:
    """Return a reservation as it was before it got anything."""
    fresh = replace(
        reservation,
        status=ReservationStatus.PENDING,
        cloud_ids=NO_CONTENT,
        unassigned=frozenset(),
        failed=frozenset(),
        missing_resources=False,
        resources_changed=False,
        missing_since=None,
        changed_since=None,
        gone=(),
    )
    return reservation if fresh == reservation else replace(fresh, updated_at=now)


def _reset_event(event: Event, now: datetime) -> Event:
    """Return an event of the timetable as it is before it is due."""
    if event.event_type not in TIMETABLE or event.status is EventStatus.UNDONE:
        return event
    return replace(
        event,
        status=EventStatus.UNDONE,
        due_at=None,
        claimed_by=None,
        claimed_at=None,
        attempts=0,
        reason=None,
        cause=None,
        saved_state=None,
        trouble_since=None,
        updated_at=now,
    )


def note_wait(lease: Lease, outcome: Literal["granted", "timed_out", "withdrawn"], now: datetime) -> None:
    """Note how long a lease has waited, now that it waits no more."""
    if lease.wait is not None:
        metrics.WAIT.note((now - lease.wait.queued_at).total_seconds(), outcome)
