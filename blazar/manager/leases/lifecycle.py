# SPDX-License-Identifier: Apache-2.0
"""The life of a lease: one table of status changes, and the pure functions that make them.

An event is *claimed* (by one manager, for a limited time), worked on, and then either *settled* or *postponed*.
Each of these is a function from a lease to the lease after it; the caller writes the result against the lease's
revision, which is what makes it happen once. The event of a claim that is not renewed falls due again, and any manager
may take it over: the work is idempotent, so doing it twice does no harm.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta

from blazar.model.base.clock import to_second
from blazar.model.base.errors import BlazarError
from blazar.model.base.reasons import Reason
from blazar.model.base.values import dataclass, replace
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.lease import Event, Lease, SavedAllocation, SavedState, set_reason
from blazar.model.leases.reservation import Reservation
from blazar.model.leases.states import (
    CHECK_EVENTS,
    EVENT_KINDS,
    REQUEST_EVENTS,
    TIMETABLE,
    EndReason,
    EventStatus,
    EventType,
    LeaseStatus,
    ReservationStatus,
)
from blazar.model.resources.resource import ResourceKind

MOVES: Mapping[LeaseStatus, frozenset[LeaseStatus]] = {
    LeaseStatus.CREATING: frozenset(
        {LeaseStatus.PENDING, LeaseStatus.WAITING, LeaseStatus.IN_PROGRESS, LeaseStatus.DELETING}
    ),
    LeaseStatus.IN_PROGRESS: frozenset({LeaseStatus.PENDING, LeaseStatus.TIMED_OUT, LeaseStatus.DELETING}),
    LeaseStatus.WAITING: frozenset({LeaseStatus.CREATING, LeaseStatus.TIMED_OUT, LeaseStatus.DELETING}),
    LeaseStatus.TIMED_OUT: frozenset({LeaseStatus.DELETING}),
    LeaseStatus.PENDING: frozenset({LeaseStatus.STARTING, LeaseStatus.UPDATING, LeaseStatus.DELETING}),
    LeaseStatus.STARTING: frozenset({LeaseStatus.ACTIVE, LeaseStatus.ERROR, LeaseStatus.DELETING}),
    LeaseStatus.ACTIVE: frozenset({LeaseStatus.TERMINATING, LeaseStatus.UPDATING, LeaseStatus.DELETING}),
    LeaseStatus.TERMINATING: frozenset({LeaseStatus.TERMINATED, LeaseStatus.DELETING}),
    LeaseStatus.TERMINATED: frozenset({LeaseStatus.DELETING}),
    LeaseStatus.ERROR: frozenset(
        {
            LeaseStatus.TERMINATING,
            LeaseStatus.PENDING,
            LeaseStatus.CREATING,
            LeaseStatus.UPDATING,
            LeaseStatus.DELETING,
        }
    ),
    LeaseStatus.UPDATING: frozenset({LeaseStatus.PENDING, LeaseStatus.ACTIVE, LeaseStatus.ERROR, LeaseStatus.DELETING}),
    LeaseStatus.DELETING: frozenset(),
}
"""Which status may follow which. Users' requests move a lease to CREATING, UPDATING and DELETING (and, with new dates,
from ERROR back to PENDING); only its own events move it further, and the waiting list one that is WAITING. One whose
start has failed goes back to CREATING if it is to be tried again: its creation is undone. A lease leaves DELETING by
leaving the API."""

STABLE = frozenset({LeaseStatus.PENDING, LeaseStatus.ACTIVE, LeaseStatus.TERMINATED, LeaseStatus.ERROR})
"""States in which no work is in progress: a user may change the lease."""

_OVER = frozenset({EventStatus.DONE, EventStatus.ERROR})


class SavedStateMissing(BlazarError):
    """An update cannot be undone: its event has no saved state from before it."""


class IllegalMove(Exception):
    """A bug: the caller did not check the status of the lease before it decided."""


@dataclass(frozen=True, slots=True)
class Run:
    """The event may be worked on now."""


@dataclass(frozen=True, slots=True)
class Defer:
    """Something else must finish first; check again at ``until``."""

    until: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class Drop:
    """There is nothing to do, or no longer."""


Decision = Run | Defer | Drop


def move(lease: Lease, status: LeaseStatus) -> Lease:
    """Return the lease in another status (or the same); IllegalMove if the table does not allow it.

    One that has ended, or waited in vain, starts never again: it has no secrets of its users any more.
    """
    if status is not lease.status and status not in MOVES[lease.status]:
        raise IllegalMove(f"lease {lease.id} cannot go from {lease.status} to {status}")
    kept = lease.without_secrets if status in (LeaseStatus.TERMINATED, LeaseStatus.TIMED_OUT) else lease
    return replace(kept, status=status)


def new_event(
    event_type: EventType, time: datetime, now: datetime, *, due_at: datetime | None = None, known: Event | None = None
) -> Event:
    """Return an event that nobody has worked on; by default it is not due before ``arm`` makes it so.

    It takes the place of the ``known`` event of its type, so that the record does not grow with the number of them.
    """
    event_id = str(uuid.uuid4()) if known is None else known.id
    return Event(event_id, event_type, time, EventStatus.UNDONE, now, due_at=due_at)


def is_over(event: Event | None) -> bool:
    """Tell whether an event needs no more work; one that does not exist needs none."""
    return event is None or event.status in _OVER


def is_claimed(event: Event, now: datetime) -> bool:
    """Tell whether there is a claim on an event that has not expired."""
    return bool(event.claimed_by) and event.due_at is not None and event.due_at > now


def live_claim(lease: Lease, now: datetime, *, besides: str | None = None) -> Event | None:
    """Return the event of the lease with a claim that other work waits for; None if there is none.

    Its holder may be changing the cloud until the claim expires. Who only looks does not, and stops nothing.
    """
    working = (e for e in lease.events if is_claimed(e, now) and e.event_type not in CHECK_EVENTS)
    return next((e for e in working if e.id != besides), None)


def decide(lease: Lease, event: Event, now: datetime, *, recheck_interval: timedelta) -> Decision:
    """Return what to do with an event of a lease at an instant.

    One event of a lease is worked on at a time, in the order start, before_end, end; a request to delete goes
    before all of them.
    """
    if event.due_at is None:
        return Drop()
    kind = EVENT_KINDS[event.event_type]
    if lease.deleted_at is not None and not kind.after_deletion:
        return Drop()
    if event.due_at > now:
        return Defer(event.due_at, "it is not due")
    claim = live_claim(lease, now, besides=event.id)
    # A refusal is as a request to delete the lease: the manager that works on it finds that out.
    if claim is not None and claim.due_at is not None and not kind.interrupts:
        return Defer(min(claim.due_at, now + recheck_interval), f"{claim.event_type} is being worked on")
    if lease.status is LeaseStatus.DELETING and not kind.while_deleting:
        # The claim of its worker has expired: the deletion ends everything that the lease has.
        return Drop()
    if kind.hidden:
        return Run()
    match lease.status:
        case LeaseStatus.CREATING | LeaseStatus.UPDATING:
            # No sooner than its undo is retried, which may be minutes from now.
            undo = next((e.due_at for e in lease.events if e.event_type in REQUEST_EVENTS and e.due_at), now)
            return Defer(max(now + recheck_interval, undo), f"the lease is {lease.status}")
    earlier = next((e for e in _before(lease, event) if not is_over(e) and e.time is not None and e.time <= now), None)
    if earlier is not None:
        # No sooner than the earlier event itself is retried.
        return Defer(max(now + recheck_interval, earlier.due_at or now), f"{earlier.event_type} comes first")
    return Run()


def claim(lease: Lease, event: Event, *, token: str, now: datetime, until: datetime) -> Lease:
    """Return the lease with its event claimed with the ``token``, until then."""
    kind = EVENT_KINDS[event.event_type]
    taken = replace(
        event, status=EventStatus.IN_PROGRESS, claimed_by=token, claimed_at=now, due_at=until, updated_at=now
    )
    claimed = with_event(move(lease, kind.status or lease.status), taken)
    return claimed if kind.is_check else replace(claimed, updated_at=now)


def postpone(lease: Lease, event: Event, *, at: datetime, reason: Reason, failed: bool, now: datetime) -> Lease:
    """Return the lease without the claim on its event, which is due again ``at`` an instant.

    A failed attempt counts (and makes the next back-off longer); waiting for something does not. The event is late
    since it was first postponed.
    """
    later = replace(
        event,
        due_at=at,
        claimed_by=None,
        claimed_at=None,
        attempts=event.attempts + 1 if failed else event.attempts,
        updated_at=now,
        trouble_since=event.trouble_since or now,
    )
    return with_event(lease, set_reason(later, reason))


def finish(event: Event, now: datetime, error: Reason | None = None, note: Reason | None = None) -> Event:
    """Return an event on which nobody works any more: DONE, with a note or without, or ERROR with the reason."""
    why = error or note
    return replace(
        event,
        status=EventStatus.ERROR if error else EventStatus.DONE,
        due_at=None,
        claimed_by=None,
        claimed_at=None,
        saved_state=None,
        updated_at=now,
        reason=None if why is None else why.text,
        cause=None if why is None else why.cause,
        trouble_since=now if error else None,
    )


def settle(
    lease: Lease, event: Event, *, now: datetime, error: Reason | None = None, note: Reason | None = None
) -> Lease:
    """Return the lease with its event finished: DONE, or ERROR with the reason; its status follows from the events.

    ``note`` is kept as the reason of an event that is DONE.
    """
    tries = SavedState(undone=count_undone(event) + 1) if error and event.event_type == EventType.UPDATE else None
    after = with_event(lease, replace(finish(event, now, error, note), saved_state=tries))
    settled = replace(move(after, settled_status(after)), updated_at=now)
    ended = settled.status is LeaseStatus.TERMINATED
    return replace(settled, end_reason=settled.end_reason or EndReason.ENDED) if ended else settled


def settled_status(lease: Lease) -> LeaseStatus:
    """Return the status that follows from how far the timetable of the lease has come."""
    if lease.status is LeaseStatus.DELETING:
        return LeaseStatus.DELETING
    statuses = {event.event_type: event.status for event in lease.events}
    room = statuses.get(EventType.EVACUATE, EventStatus.DONE)
    if room is not EventStatus.DONE:
        return LeaseStatus.TIMED_OUT if room is EventStatus.ERROR else LeaseStatus.IN_PROGRESS
    match statuses.get(EventType.END):
        case EventStatus.DONE:
            return LeaseStatus.TERMINATED
        case EventStatus.IN_PROGRESS:
            return LeaseStatus.TERMINATING
    match statuses.get(EventType.START):
        case EventStatus.UNDONE:
            return LeaseStatus.PENDING
        case EventStatus.IN_PROGRESS:
            return LeaseStatus.STARTING
        case EventStatus.DONE:
            return LeaseStatus.ACTIVE
    return LeaseStatus.ERROR


def abandon(lease: Lease, event: Event, *, now: datetime) -> Lease:
    """Return a lease that is being deleted without the claim on this event, and with its deletion due at once."""
    idle = replace(event, due_at=None, claimed_by=None, claimed_at=None, updated_at=now)
    after = with_event(lease, idle)
    deletion = after.event(EventType.DELETE)
    if deletion is None or deletion.claimed_by or is_over(deletion):
        return after
    return with_event(after, replace(deletion, due_at=now))


def begin_deletion(lease: Lease, *, now: datetime, reason: EndReason = EndReason.DELETED) -> Lease:
    """Return the lease DELETING for a ``reason``, with a deletion event that is due at once and no timetable."""
    # A claimed event stays: its owner is working in the cloud, and releases it when it sees the status.
    events = tuple(e if is_claimed(e, now) else replace(e, due_at=None) for e in lease.events)
    deletion = new_event(EventType.DELETE, to_second(now), now, due_at=now)
    if lease.status is LeaseStatus.WAITING and reason is EndReason.DELETED:
        reason = EndReason.LEFT_LINE
    gone = move(lease, LeaseStatus.DELETING)
    use = None if lease.use is None else replace(lease.use, release_at=None)
    return replace(gone, events=(*events, deletion), end_reason=lease.end_reason or reason, use=use, updated_at=now)


def begin_update(lease: Lease, *, held: Collection[Allocation], token: str, now: datetime, until: datetime) -> Lease:
    """Return the lease while it is changed in the cloud, with an event claimed with the ``token`` (``update_of``).

    The event keeps the allocations ``held`` before the change, from which any manager can undo it.
    """
    known = lease.event(EventType.UPDATE)
    event = replace(
        new_event(EventType.UPDATE, to_second(now), now, known=known if is_over(known) else None),
        saved_state=SavedState(allocations=tuple(map(save_allocation, held)), undone=count_undone(known)),
    )
    return claim(with_event(lease, event), event, token=token, now=now, until=until)


def save_allocation(allocation: Allocation) -> SavedAllocation:
    """Return what an event keeps of an allocation: its window is that of the lease."""
    return SavedAllocation(allocation.reservation_id, allocation.resource_id, allocation.count, allocation.per_instance)


def load_allocations_before(lease: Lease, event: Event, kinds: Mapping[str, ResourceKind]) -> tuple[Allocation, ...]:
    """Return the allocations of a lease before an update, in its window. SavedStateMissing if not saved.

    ``kinds`` are the resource kinds of its reservations.
    """
    known = None if event.saved_state is None else event.saved_state.allocations
    if known is None:
        # An empty tuple means that it held nothing: a missing one must never make resources count as surplus.
        raise SavedStateMissing(
            f"the allocations of lease {lease.id} before its update are not on record; nothing is undone"
        )
    return tuple(
        Allocation(
            kinds[a.reservation_id], a.resource_id, lease.id, a.reservation_id, lease.window, a.count, a.per_instance
        )
        for a in known
    )


def update_of(lease: Lease) -> Event:
    """Return the event of the change that a lease is UPDATING for."""
    event = lease.event(EventType.UPDATE)
    if event is None:
        raise IllegalMove(f"lease {lease.id} is not being changed")
    return event


def count_undone(event: Event | None) -> int:
    """Return how many changes in a row were undone, from the event that all changes of a lease share."""
    return event.saved_state.undone if event is not None and event.saved_state is not None else 0


def mark_deleted(lease: Lease, event: Event, *, now: datetime, error: Reason | None = None) -> Lease:
    """Return the deleted lease, as the record keeps it after all its resources are returned."""
    after = with_event(lease, finish(event, now, error))
    why = EndReason.REFUSED if event.event_type == EventType.CREATE and error else EndReason.DELETED
    return replace(
        move(after, LeaseStatus.DELETING),
        deleted_at=now,
        end_reason=lease.end_reason or why,
        updated_at=now,
        events=tuple(_switch_off(e) for e in after.events),
        reservations=tuple(with_status(r, ReservationStatus.DELETED, now) for r in after.reservations),
    )


def _switch_off(event: Event) -> Event:
    undone = event.status is EventStatus.IN_PROGRESS
    return replace(event, status=EventStatus.UNDONE if undone else event.status, due_at=None, claimed_by=None)


def arm(lease: Lease, *, now: datetime) -> Lease:
    """Return the lease with every event of its timetable that is still to come due at its time.

    If room has to be made first, that is due at once, and nothing else.
    """
    if (room := lease.event(EventType.EVACUATE)) is not None and not is_over(room):
        return replace(with_event(lease, replace(room, due_at=now)), updated_at=now)
    events = tuple(
        replace(e, due_at=e.time) if e.event_type in TIMETABLE and e.status is EventStatus.UNDONE else e
        for e in lease.events
    )
    return replace(lease, events=events, updated_at=now)


def with_event(lease: Lease, event: Event) -> Lease:
    """Return the lease with this event in the place of the one with its id, or as a new one."""
    if any(e.id == event.id for e in lease.events):
        return replace(lease, events=tuple(event if e.id == event.id else e for e in lease.events))
    return replace(lease, events=(*lease.events, event))


def with_reservations(lease: Lease, changed: Iterable[Reservation]) -> Lease:
    """Return the lease with these reservations in the place of those with their ids."""
    by_id = {reservation.id: reservation for reservation in changed}
    return replace(lease, reservations=tuple(by_id.get(r.id, r) for r in lease.reservations))


def with_cloud_ids(lease: Lease, changed: Iterable[Reservation]) -> Lease:
    """Return the lease with the cloud ids of these reservations, and nothing else of them."""
    cloud_ids = {reservation.id: reservation.cloud_ids for reservation in changed}
    return with_reservations(
        lease, [replace(r, cloud_ids=cloud_ids[r.id]) for r in lease.reservations if r.id in cloud_ids]
    )


def with_status(reservation: Reservation, status: ReservationStatus, now: datetime) -> Reservation:
    """Return the reservation in a status; one that is DELETED has no secrets of its users any more."""
    if reservation.status is status:
        return reservation
    kept = reservation.without_secrets if status is ReservationStatus.DELETED else reservation
    return replace(kept, status=status, updated_at=now)


def fail_all(lease: Lease, now: datetime) -> Lease:
    """Return the lease with every reservation that has not started in ERROR."""
    pending = [r for r in lease.reservations if r.status is ReservationStatus.PENDING]
    return with_reservations(lease, [with_status(r, ReservationStatus.ERROR, now) for r in pending])


def _before(lease: Lease, event: Event) -> list[Event]:
    kind = EventType(event.event_type)
    return [e for t in TIMETABLE[: TIMETABLE.index(kind)] if (e := lease.event(t)) is not None]
