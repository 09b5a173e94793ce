# SPDX-License-Identifier: Apache-2.0
"""The timetable of a lease after a change of its dates: pure functions from events to events."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import datetime, timedelta

from blazar.manager.lease import dates, lifecycle
from blazar.model.event_reasons import with_reason
from blazar.model.lease import Event, EventStatus, EventType, Lease, LeaseStatus, ReservationStatus, SavedState
from blazar.model.window import Window


def rearmed(lease: Lease, window: Window, now: datetime) -> Lease:
    """Return a lease that failed to start ready for another start, if its window has not ended; else unchanged."""
    start = lease.event(EventType.START)
    if lease.status is not LeaseStatus.ERROR or start is None or window.end <= now:
        return lease
    again = _undone(start, now, start.saved_state)
    pending = [
        lifecycle.with_status(r, ReservationStatus.PENDING, now)
        for r in lease.reservations
        if r.status is ReservationStatus.ERROR
    ]
    return lifecycle.move(lifecycle.with_reservations(lifecycle.with_event(lease, again), pending), LeaseStatus.PENDING)


def changed_events(
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
    an event, at the end if at no earlier time. ``rearmed``: the lease starts once more, and its action before the end
    has to run, too.
    """
    warning = lease.event(EventType.BEFORE_END)
    time = dates.changed_before_end(warning.time if warning else None, lease.window, window, asked, lead)
    if saves and (time is None or (rearmed and time <= max(now, window.start))):
        # There is work to save, and no earlier time at which to save it.
        time = window.end
    events = []
    void = False
    for event in lease.events:
        match event.event_type:
            case EventType.START:
                events.append(_moved(event, window.start, now))
            case EventType.END:
                events.append(_moved(event, window.end, now))
            case EventType.BEFORE_END:
                again = newly_set and lifecycle.is_over(event) and lease.status is LeaseStatus.ACTIVE
                void = time is not None and time > now and time != event.time and event.status is not EventStatus.UNDONE
                renewed = _renewed(event, now, newly_set=newly_set) if void or again or rearmed else event
                events.append(_moved(renewed, time or window.end, now))
            case _:
                events.append(event)
    if warning is None and time is not None:
        events.append(
            Event(
                id=str(uuid.uuid4()),
                event_type=EventType.BEFORE_END,
                time=time,
                status=EventStatus.UNDONE,
                created_at=now,
                due_at=time,
            )
        )
    return tuple(events), void


def _renewed(event: Event, now: datetime, *, newly_set: bool) -> Event:
    """Return an event ready to run once more; earlier results count, unless the action was requested again."""
    saved_state = SavedState(action_asked_at=now) if newly_set else None
    return _undone(event, now, saved_state)


def _undone(event: Event, now: datetime, saved_state: SavedState | None) -> Event:
    """Return an event that nobody has worked on."""
    fresh = replace(
        event,
        status=EventStatus.UNDONE,
        attempts=0,
        saved_state=saved_state,
        updated_at=now,
        trouble_since=None,
    )
    return with_reason(fresh, None)


def _moved(event: Event, time: datetime, now: datetime) -> Event:
    due_at = time if event.status is EventStatus.UNDONE else event.due_at
    if (event.time, event.due_at) == (time, due_at):
        return event
    return replace(event, time=time, due_at=due_at, updated_at=now)
