# SPDX-License-Identifier: Apache-2.0
"""All that can happen to a lease, in every order: no illegal move, nobody stuck, never two at work on one lease."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from blazar.manager.changing.updates import settle_change
from blazar.manager.events.sweep import begin_clean_up
from blazar.manager.leases import immediate, lifecycle
from blazar.manager.leases.timetable import change_events, rearm
from blazar.manager.queue import waiting_leases as waiting_list
from blazar.model.base.reasons import ReasonCode, reason
from blazar.model.base.window import Window
from blazar.model.leases.lease import Event, Lease
from blazar.model.leases.reservation import Reservation
from blazar.model.leases.states import EventStatus, EventType, LeaseKind, LeaseStatus, ReservationStatus
from blazar.model.queue import Wait
from tests.world import NOON

HOUR = timedelta(hours=1)
LEAD = timedelta(hours=1)
STEP = timedelta(minutes=10)
RECHECK = timedelta(minutes=5)
WHY = reason("why", ReasonCode.CLOUD_UNAVAILABLE)
ACTIVE, ERROR, DELETED = ReservationStatus.ACTIVE, ReservationStatus.ERROR, ReservationStatus.DELETED
NEEDS = {
    LeaseStatus.CREATING: (EventType.CREATE,),
    LeaseStatus.UPDATING: (EventType.UPDATE,),
    LeaseStatus.STARTING: (EventType.START,),
    LeaseStatus.TERMINATING: (EventType.END,),
    LeaseStatus.DELETING: (EventType.DELETE,),
    LeaseStatus.PENDING: (EventType.START, EventType.END),
    LeaseStatus.ACTIVE: (EventType.END,),
    LeaseStatus.ERROR: (EventType.END,),
    LeaseStatus.TERMINATED: (),
    LeaseStatus.WAITING: (),
    LeaseStatus.TIMED_OUT: (),
}
"""Which events must be due at some time, so that it goes on."""

Next = tuple[Lease, Lease | None]
"""A lease, and what it is to be when its change is finished, if the manager that makes it is alive."""


def created(before_end: bool, kind: LeaseKind) -> Lease:
    window = Window(NOON + HOUR, NOON + 3 * HOUR)
    times = {EventType.START: window.start, EventType.END: window.end}
    times |= {EventType.BEFORE_END: NOON + 2 * HOUR} if before_end else {}
    events = [Event(str(kind), kind, time, EventStatus.UNDONE, NOON) for kind, time in times.items()]
    creation = Event("create", EventType.CREATE, NOON, EventStatus.UNDONE, NOON)
    parts = [Reservation(f"r{n}", "x", "x", ReservationStatus.PENDING, NOON) for n in range(2)]
    lease = Lease("l", "n", "u", "p", window, LeaseStatus.CREATING, NOON)
    if kind is LeaseKind.IMMEDIATE:
        events.append(immediate.refusal_event(HOUR + 2 * STEP, NOON))
    if kind is LeaseKind.RETRIES:
        lease = replace(lease, wait=Wait(NOON, NOON + 4 * HOUR, window.start, tries=2))
    lease = replace(lease, reservations=tuple(parts), events=(*events, creation), kind=kind)
    return lifecycle.claim(lease, creation, token="first", now=NOON, until=NOON + STEP)


def looked_at(lease: Lease, event: Event, now: datetime, wanted: Lease | None) -> Next:
    """Do what a manager does that finds an event due."""
    match lifecycle.decide(lease, event, now, recheck_interval=RECHECK):
        case lifecycle.Drop():
            return lifecycle.with_event(lease, replace(event, due_at=None)), wanted
        case lifecycle.Defer(until, _):
            return lifecycle.postpone(lease, event, at=until, reason=WHY, failed=False, now=now), wanted
    if event.event_type == EventType.IMMEDIATE_BY or immediate.is_late(lease, event, now):
        return immediate.settle_late_start(lease, now=now), wanted
    claimed = lifecycle.claim(lease, event, token="next", now=now, until=now + STEP)
    if event.event_type == EventType.START and lease.window.end <= now:
        ours = next(e for e in claimed.events if e.id == event.id)
        failed = lifecycle.settle(lifecycle.fail_all(claimed, now), ours, now=now, error=WHY)
        return waiting_list.retry_failed_start(failed, now=now), wanted
    return claimed, None if event.event_type == EventType.UPDATE else wanted


def worked_on(lease: Lease, event: Event, now: datetime, wanted: Lease | None) -> Iterator[Next]:
    """Do what may become of an event that is claimed."""
    kind = EventType(event.event_type)
    if lease.status is LeaseStatus.DELETING and lease.deleted_at is None and kind is not EventType.DELETE:
        yield lifecycle.abandon(lease, event, now=now), None
        return
    left = None if kind is EventType.UPDATE else wanted
    yield lifecycle.postpone(lease, event, at=now + RECHECK, reason=WHY, failed=True, now=now), left
    match kind:
        case EventType.DELETE:
            yield lifecycle.mark_deleted(lease, event, now=now), None
        case EventType.CREATE:
            if waiting_list.can_wait(lease, now):
                yield waiting_list.requeue(lease, event, lead=LEAD, now=now), None
            else:
                yield lifecycle.mark_deleted(lease, event, now=now, error=WHY), None
            if waiting_list.is_undone(lease):
                return
            if event.claimed_by == "first":
                yield lifecycle.arm(lifecycle.settle(lease, event, now=now), now=now), wanted
        case EventType.UPDATE:
            yield lifecycle.settle(lease, event, now=now, error=WHY), None
            if wanted is not None:
                yield settle_change(lease, wanted, event.id, now), None
        case EventType.START:
            for outcome in ((ACTIVE, ACTIVE), (ERROR, ERROR), (ACTIVE, ERROR)):
                pairs = zip(lease.reservations, outcome, strict=True)
                parts = [lifecycle.with_status(r, s, now) for r, s in pairs if r.status is ReservationStatus.PENDING]
                after = lifecycle.with_reservations(lease, parts)
                error = WHY if any(r.status is ERROR for r in after.reservations) else None
                decided = immediate.settle_start(lifecycle.settle(after, event, now=now, error=error), now=now)
                yield waiting_list.retry_failed_start(decided, now=now), wanted
        case EventType.END | EventType.CLEAN_UP:
            parts = [lifecycle.with_status(r, DELETED, now) for r in lease.reservations]
            yield lifecycle.settle(lifecycle.with_reservations(lease, parts), event, now=now), wanted
        case _:
            yield lifecycle.settle(lease, event, now=now), wanted
            yield lifecycle.settle(lease, event, now=now, error=WHY), wanted


def asked_for(lease: Lease, now: datetime, wanted: Lease | None) -> Iterator[Next]:
    """Do what users and the sweep may ask for."""
    if lease.status is not LeaseStatus.DELETING:
        yield lifecycle.begin_deletion(lease, now=now), wanted
    if lease.deleted_at is not None or lease.status is LeaseStatus.TERMINATED:
        yield begin_clean_up(lease, now=now), wanted
        return
    if lease.status not in lifecycle.STABLE or lease.is_undecided or lifecycle.live_claim(lease, now) is not None:
        return
    for end in {lease.window.end, NOON + 4 * HOUR}:
        for newly_set in (False, True):
            window = replace(lease.window, end=end)
            again = rearm(lease, window, now)
            is_rearmed = again is not lease
            events, _ = change_events(
                again, window, None, now, lead=LEAD, newly_set=newly_set, saves=True, rearmed=is_rearmed
            )
            after = replace(again, window=window, events=events)
            yield after, wanted
            if lease.event(EventType.UPDATE) is None:
                until = now + STEP
                yield lifecycle.begin_update(lease, held=(), token="u", now=now, until=until), after


def following(lease: Lease, now: datetime, wanted: Lease | None) -> Iterator[Next]:
    for event in lease.events:
        if event.due_at is not None and event.due_at <= now:
            yield looked_at(lease, event, now, wanted)
        elif event.due_at is not None and event.claimed_by:
            yield from worked_on(lease, event, now, wanted)
    if lease.status is LeaseStatus.WAITING:
        if waiting_list.can_wait(lease, now):
            window = Window(now, now + 2 * HOUR)
            yield waiting_list.grant(lease, window, estimate=now, token="first", now=now, until=now + STEP), None
        else:
            yield waiting_list.time_out(lease, now=now), None
    yield from asked_for(lease, now, wanted)


def check(lease: Lease, now: datetime) -> None:
    due = {event.event_type for event in lease.events if event.due_at is not None}
    assert sum(bool(e.claimed_by and e.due_at is not None and e.due_at > now) for e in lease.events) <= 1
    if lease.deleted_at is None:
        assert due.issuperset(NEEDS[lease.status])
        assert not lease.is_undecided or lease.status is LeaseStatus.DELETING or EventType.IMMEDIATE_BY in due
    for event in lease.events:
        assert (event.reason is None) == (event.cause is None)
        # A request's event that is being undone keeps the reason of the request, and is not late for that.
        over = event.status is EventStatus.DONE or event.reason is None
        assert event.event_type not in lifecycle.TIMETABLE or (event.trouble_since is None) == over
    states = {r.status for r in lease.reservations}
    if lease.status is LeaseStatus.ACTIVE:
        assert ReservationStatus.PENDING not in states
    if lease.status is LeaseStatus.TERMINATED:
        assert states == {DELETED}
    if lease.status is LeaseStatus.WAITING:
        assert states == {ReservationStatus.PENDING}
        assert not due


def sketch(lease: Lease, now: datetime, wanted: Lease | None) -> object:
    """Return what of a lease decides how it goes on."""
    events = [
        (e.event_type, e.status, e.due_at and max(-1, min(5, (e.due_at - now) // RECHECK)), bool(e.claimed_by))
        for e in lease.events
        if e.due_at is not None or e.event_type in lifecycle.TIMETABLE
    ]
    states = tuple(r.status for r in lease.reservations)
    return (
        lease.status,
        lease.deleted_at is None,
        tuple(sorted(events, key=str)),
        states,
        now,
        lease.window,
        wanted is None,
        lease.wait and len(lease.wait.failed),
    )


@pytest.mark.parametrize("most", [4000, pytest.param(10**6, marks=(pytest.mark.slow, pytest.mark.nightly))])
@pytest.mark.parametrize("before_end", [False, True])
@pytest.mark.parametrize("kind", LeaseKind)
def test_whatever_happens_in_whatever_order_a_lease_goes_on(kind, before_end, most):
    first = created(before_end, kind)
    waiting: deque[tuple[Lease, datetime, Lease | None]] = deque([(first, NOON, None)])
    seen = {sketch(first, NOON, None)}
    if kind is LeaseKind.RETRIES:
        # It goes on after each turn: all of that would take hours.
        most = min(most, 100_000)
    while waiting and len(seen) < most:
        lease, now, wanted = waiting.popleft()
        found = [(after, now, left) for after, left in following(lease, now, wanted)]
        if now < NOON + 5 * HOUR:
            found.append((lease, now + STEP, wanted))
        for after in found:
            check(after[0], after[1])
            if (known := sketch(*after)) not in seen:
                seen.add(known)
                waiting.append(after)
