# SPDX-License-Identifier: Apache-2.0
"""Immediate leases: each is handed over by the time of its own event, ``immediate_by``, or refused and deleted.

The event is written with the booking. The manager that finishes the start decides it, in the same write; when it is due
and none has, any manager refuses the lease. So the request for it is answered by what is in the database, and a crash
of the process that waits for the answer leaves nothing undecided.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from blazar.manager.leases import lifecycle
from blazar.model.base.clock import to_second
from blazar.model.leases.lease import Event, Lease
from blazar.model.leases.states import EndReason, EventStatus, EventType


def refusal_event(limit: timedelta, now: datetime) -> Event:
    """Return the event at which an immediate lease is refused, unless it has been handed over."""
    at = to_second(now) + limit
    return lifecycle.new_event(EventType.IMMEDIATE_BY, at, now, due_at=at)


def is_late(lease: Lease, event: Event, now: datetime) -> bool:
    """Tell whether an event is the start of an immediate lease whose refusal is due: nobody waits for it any more."""
    refusal = lease.event(EventType.IMMEDIATE_BY)
    starts = event.event_type == EventType.START and lease.is_undecided
    return starts and refusal is not None and refusal.due_at is not None and refusal.due_at <= now


def settle_start(lease: Lease, *, now: datetime) -> Lease:
    """Return an immediate lease whose start is over: granted, or refused and being deleted; others unchanged."""
    event, start = lease.event(EventType.IMMEDIATE_BY), lease.event(EventType.START)
    if not lease.is_undecided or event is None or not lifecycle.is_over(start):
        return lease
    if start is not None and start.status is EventStatus.ERROR:
        return refuse(lease, now=now)
    return lifecycle.with_event(lease, lifecycle.finish(event, now))


def settle_late_start(lease: Lease, *, now: datetime) -> Lease:
    """Return an immediate lease whose refusal is due: refused, unless its start has decided it."""
    after = settle_start(lease, now=now)
    return refuse(lease, now=now) if after.is_undecided else after


def refuse(lease: Lease, *, now: datetime) -> Lease:
    """Return an immediate lease whose deletion begins because it was not handed over."""
    gone = lifecycle.begin_deletion(lease, now=now, reason=EndReason.REFUSED)
    event = gone.event(EventType.IMMEDIATE_BY)
    assert event is not None
    over = replace(event, status=EventStatus.ERROR, due_at=None, updated_at=now)
    return replace(lifecycle.with_event(gone, over), end_reason=EndReason.REFUSED)
