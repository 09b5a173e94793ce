# SPDX-License-Identifier: Apache-2.0
"""The timetable of a lease after a change of its dates: pure functions from events to events."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from blazar.manager.leases import dates, lifecycle
from blazar.model.base.window import Window
from blazar.model.leases.lease import Event, Lease, SavedState, set_reason
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus, ReservationStatus


def new_timetable(window: Window, before_end: datetime | None, now: datetime) -> tuple[Event, ...]:
    """Return the timetable of a new lease; without a time before the end it has no event for that."""
    times = {EventType.START: window.start, EventType.END: window.end, EventType.BEFORE_END: before_end}
    return tuple(lifecycle.new_event(step, time, now) for step, time in times.items() if time is not None)


def rearm(lease: Lease, window: Window, now: datetime) -> Lease:
    """Return a lease that failed to start ready for another start, if its window has not ended; else unchanged."""
    start = lease.event(EventType.START)
    if lease.status is not LeaseStatus.ERROR or start is None or window.end <= now:
        return lease
    again = _reset(start, now, start.saved_state)
    pending = [
        lifecycle.with_status(r, ReservationStatus.PENDING, now)
        for r in lease.reservations
        if r.status is ReservationStatus.ERROR
    ]
    return lifecycle.move(lifecycle.with_reservations(lifecycle.with_event(lease, again), pending), LeaseStatus.PENDING)


def change_events(
    lease: Lease,
    window: Window,
    asked: datetime | None,
    now: datetime,
    *,
    lead: timedelta,
    newly_set: bool,
    saves: bool,
    rearmed: bool,
) -> tuple[tuple[Event, ...], bool]:
    """Return the events of a lease for its new window, and whether an earlier before_end warning is void now.

    ``lead`` is the operator's time of the warning. ``newly_set``: the request names the action before the end, which
    then runs even if it ran before, and at once if its time has passed. ``saves``: some action saves work, and so needs
    an event, at the end if at no earlier time. ``rearm``: the lease starts once more, and its action before the end
    has to run, too.
    """
    warning = lease.event(EventType.BEFORE_END)
    time = dates.changed_before_end(warning.time if warning else None, lease.window, window, asked, lead)
    if saves and (time is None or (rearmed and time <= max(now, window.start))):
        # There is work to save, and no earlier time at which to save it.
        time = window.end
    known, void = lease.events, False
    if warning is not None:
        void = time is not None and time > now and time != warning.time and warning.status is not EventStatus.UNDONE
        again = newly_set and lifecycle.is_over(warning) and lease.status is LeaseStatus.ACTIVE
        if void or again or rearmed:
            renewed = _renew(warning, now, newly_set=newly_set)
            known = tuple(renewed if event is warning else event for event in known)
    times = {EventType.START: window.start, EventType.END: window.end, EventType.BEFORE_END: time or window.end}
    events = tuple(
        _move_event(event, times[EventType(event.event_type)], now) if event.event_type in times else event
        for event in known
    )
    if warning is None and time is not None:
        events = (*events, lifecycle.new_event(EventType.BEFORE_END, time, now, due_at=time))
    return events, void


def _renew(event: Event, now: datetime, *, newly_set: bool) -> Event:
    """Return an event ready to run once more; earlier results count, unless the action was requested again."""
    saved_state = SavedState(action_asked_at=now) if newly_set else None
    return _reset(event, now, saved_state)


def _reset(event: Event, now: datetime, saved_state: SavedState | None) -> Event:
    """Return an event that nobody has worked on."""
    fresh = replace(
        event,
        status=EventStatus.UNDONE,
        attempts=0,
        saved_state=saved_state,
        updated_at=now,
        trouble_since=None,
    )
    return set_reason(fresh, None)


def _move_event(event: Event, time: datetime, now: datetime) -> Event:
    due_at = time if event.status is EventStatus.UNDONE else event.due_at
    if (event.time, event.due_at) == (time, due_at):
        return event
    return replace(event, time=time, due_at=due_at, updated_at=now)
