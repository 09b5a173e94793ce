# SPDX-License-Identifier: Apache-2.0
"""Unconfirmed leases: booked as any other, and deleted if nobody confirms them in time. Pure.

The event is written with the booking. A request that confirms the lease finishes the event; when it is due, any manager
deletes the lease. Both write against the revision of the lease, so that exactly one of them wins.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from blazar.manager.leases import lifecycle
from blazar.model.base.clock import END_OF_TIME, later, to_second, zulu
from blazar.model.base.errors import Conflict, InvalidInput, WrongState
from blazar.model.base.moments import NOW
from blazar.model.base.window import Window
from blazar.model.leases.lease import Event, Lease
from blazar.model.leases.reminders import spell_duration
from blazar.model.leases.requests import LeaseRequest
from blazar.model.leases.states import EndReason, EventType, LeaseKind

_POINTER = "/confirm_within"


def make_event(request: LeaseRequest, window: Window, now: datetime, longest: timedelta) -> Event:
    """Return the event at which a new lease is deleted unless it is confirmed. InvalidInput."""
    assert request.confirm_within is not None
    if request.kind is not LeaseKind.SCHEDULED or request.wait_until is not None:
        what = f"of the kind {request.kind}" if request.wait_until is None else "that waits for its turn"
        raise InvalidInput(f"a lease {what} cannot be confirmed later; leave confirm_within out", at=_POINTER)
    if not longest:
        raise InvalidInput("each lease is firm at once here; leave confirm_within out", at=_POINTER)
    made = to_second(now)
    at = _find_instant(request, made)
    if at > later(made, longest):
        most = spell_duration(longest)
        raise InvalidInput(
            f"confirm_within is more than {most}, for which a lease may be unconfirmed at most; give {most} or less",
            at=_POINTER,
            data={"longest": most},
        )
    if request.start is NOW:
        raise InvalidInput(
            "a lease that starts now cannot be confirmed before its start; give a start_date, or leave "
            "confirm_within out",
            at=_POINTER,
        )
    if at > window.start:
        raise InvalidInput(
            f"confirm_within ends at {zulu(at)}, and the lease starts at {zulu(window.start)}, before which it has "
            "to be confirmed; give a shorter time, or a later start_date",
            at=_POINTER,
        )
    return lifecycle.new_event(EventType.CONFIRM_BY, at, now, due_at=at)


def _find_instant(request: LeaseRequest, now: datetime) -> datetime:
    assert request.confirm_within is not None
    try:
        return to_second(request.confirm_within.after(now))
    except (OverflowError, ValueError):
        return END_OF_TIME


def confirm(lease: Lease, *, now: datetime) -> Lease:
    """Return a lease that is PENDING, confirmed; the same if it is already. Conflict: need not be, or too late."""
    event = lease.event(EventType.CONFIRM_BY)
    if event is None or event.time is None:
        raise Conflict("the lease is firm: it was booked without confirm_within", code="nothing_to_confirm")
    if not lease.is_unconfirmed:
        return lease
    if event.time <= now:
        raise refuse_late(event.time)
    return lifecycle.with_event(lease, lifecycle.finish(event, now))


def refuse_late(time: datetime | None) -> Conflict:
    """Return why a lease cannot be confirmed any more that was to be until then."""
    until = "in time" if time is None else f"by {zulu(time)}"
    return Conflict(f"the lease was not confirmed {until}, and is gone; book another one", code="lease_ended")


def refuse_unconfirmed(lease: Lease) -> WrongState:
    """Return why a lease cannot be changed that nobody has confirmed."""
    assert lease.confirm_by is not None
    sentence = (
        f"the lease is not confirmed yet; confirm it first, by {zulu(lease.confirm_by)}, or delete it and book "
        "another one"
    )
    return WrongState(sentence, code="lease_unconfirmed", data={"status": str(lease.status)})


def has_lapsed(lease: Lease, event: Event) -> bool:
    """Return whether an event that is due is the lapse of a lease, or a start that nobody has confirmed."""
    return event.event_type in (EventType.CONFIRM_BY, EventType.START) and lease.is_unconfirmed


def lapse(lease: Lease, *, now: datetime) -> Lease:
    """Return a lease whose deletion begins because nobody has confirmed it."""
    return lifecycle.begin_deletion(lease, now=now, reason=EndReason.UNCONFIRMED)
