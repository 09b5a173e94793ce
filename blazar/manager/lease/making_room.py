# SPDX-License-Identifier: Apache-2.0
"""Leases for which servers of others are moved away first: the event that does so, and what it leads to. Pure."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import datetime, timedelta

from blazar.manager.lease import lifecycle
from blazar.model.event_reasons import with_reason
from blazar.model.lease import Event, EventStatus, EventType, Lease
from blazar.model.reasons import Reason


def with_room_to_make(lease: Lease, limit: timedelta, now: datetime) -> Lease:
    """Return a lease that is to be booked, with the event that makes room for it, given up at its end at the latest.

    It stands before the last event, which is the creation.
    """
    event = Event(
        id=str(uuid.uuid4()),
        event_type=EventType.EVACUATE,
        time=min(now + limit, lease.window.end),
        status=EventStatus.UNDONE,
        created_at=now,
    )
    *others, creation = lease.events
    return replace(lease, events=(*others, event, creation))


def is_given_up(lease: Lease, event: Event, now: datetime) -> bool:
    """Return whether it is too late to make room."""
    return now >= (event.time or lease.window.end)


def is_unfinished(lease: Lease) -> bool:
    """Return whether making room was begun for a lease, or was to be, and neither done nor given up."""
    event = lease.event(EventType.EVACUATE)
    return event is not None and not lifecycle.is_over(event)


def told(lease: Lease, reason: Reason | None) -> Lease:
    """Return a lease whose start, which users see, says what it waits for, or why it never came."""
    start = lease.event(EventType.START)
    return lease if start is None else lifecycle.with_event(lease, with_reason(start, reason))
