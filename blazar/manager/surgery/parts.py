# SPDX-License-Identifier: Apache-2.0
"""One lease made two: what each part has. Pure.

A reservation that goes to the second part as a whole keeps its id, and so all that bears its name in the cloud: nothing
is handed over again. Of one that is cut, the second part has a new reservation; that happens only before the start,
when nothing has been handed over.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta

from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import Window
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.lease import Event, Lease, move_warning
from blazar.model.leases.reservation import Content, Reservation
from blazar.model.leases.states import CHECK_EVENTS, TIMETABLE, EventStatus, EventType

NewId = Callable[[], str]


@dataclass(frozen=True, slots=True)
class ReservationCut:
    """What of a reservation goes to the second part: these resources, by calendar id; ``parameters`` of both parts."""

    resources: frozenset[int]
    kept: Content
    gone: Content


@dataclass(frozen=True, slots=True)
class Parts:
    """Both parts of a lease, with what they have.

    ``moved`` are the reservations that the second has with their ids; ``renamed`` says which reservation of the second
    part has what a reservation of the first had.
    """

    first: Lease
    second: Lease
    first_allocations: tuple[Allocation, ...]
    second_allocations: tuple[Allocation, ...]
    moved: frozenset[str]
    renamed: Mapping[str, str]


def divide_by_units(
    lease: Lease,
    allocations: Collection[Allocation],
    whole: Collection[str],
    cuts: Mapping[str, ReservationCut],
    *,
    name: str,
    new_id: NewId,
    now: datetime,
) -> Parts:
    """Return the parts of a lease of which ``whole`` reservations, with all that these are made of, and cut ones go."""
    moved = frozenset(r.id for r in lease.reservations if r.id in whole or r.parent in whole)
    second_id = new_id()
    renamed = {id_: new_id() for id_ in cuts}
    kept: list[Reservation] = []
    gone: list[Reservation] = []
    for reservation in lease.reservations:
        if reservation.id in moved:
            gone.append(reservation)
        elif (cut := cuts.get(reservation.id)) is not None:
            first_part, second_part = _cut_reservation(reservation, cut, renamed[reservation.id], now)
            kept.append(first_part)
            gone.append(second_part)
        else:
            kept.append(reservation)
    first = replace(lease, reservations=tuple(kept), updated_at=now)
    second_lease = _make_second(lease, second_id, name, tuple(gone), new_id, now)
    first_has, second_has = [], []
    for allocation in allocations:
        cut, id_ = cuts.get(allocation.reservation_id), allocation.reservation_id
        if id_ in moved:
            second_has.append(replace(allocation, lease_id=second_id))
        elif cut is not None and allocation.resource_id in cut.resources:
            second_has.append(replace(allocation, lease_id=second_id, reservation_id=renamed[id_]))
        else:
            first_has.append(allocation)
    return Parts(first, second_lease, tuple(first_has), tuple(second_has), moved, renamed)


def _cut_reservation(
    reservation: Reservation, cut: ReservationCut, second_id: str, now: datetime
) -> tuple[Reservation, Reservation]:
    first = replace(reservation, parameters=cut.kept, updated_at=now)
    second = replace(
        reservation, id=second_id, parameters=cut.gone, cloud_ids=Content({}), created_at=now, updated_at=None
    )
    return _keep_notes_on(first, reservation.lost_ids - cut.resources), _keep_notes_on(second, cut.resources)


def divide_by_time(
    lease: Lease,
    allocations: Collection[Allocation],
    at: datetime,
    *,
    name: str,
    lead: timedelta,
    new_id: NewId,
    now: datetime,
) -> Parts:
    """Return the parts of a lease that has not started: the second begins where the first ends, with the same.

    ``lead`` is the operator's time of the warning before the end.
    """
    second_id = new_id()
    renamed = {r.id: new_id() for r in lease.reservations}
    gone = tuple(
        replace(
            reservation,
            id=renamed[reservation.id],
            parent=None if reservation.parent is None else renamed[reservation.parent],
            cloud_ids=Content({}),
            created_at=now,
            updated_at=None,
        )
        for reservation in lease.reservations
    )
    until, since = Window(lease.window.start, at), Window(at, lease.window.end)
    first = replace(_set_window(lease, until, lead, now), extend=None, updated_at=now)
    second = _set_window(_make_second(lease, second_id, name, gone, new_id, now), since, lead, now)
    second_has = tuple(
        replace(allocation, lease_id=second_id, reservation_id=renamed[allocation.reservation_id], window=since)
        for allocation in allocations
    )
    return Parts(first, second, tuple(replace(a, window=until) for a in allocations), second_has, frozenset(), renamed)


def _make_second(
    lease: Lease, id_: str, name: str, reservations: tuple[Reservation, ...], new_id: NewId, now: datetime
) -> Lease:
    """Return a lease as far as another one with the same timetable; events of the client's own stay where they are."""
    copied = [e for e in lease.events if e.event_type in TIMETABLE or e.event_type in CHECK_EVENTS]
    events = tuple(_copy_event(event, new_id(), now) for event in copied)
    return replace(
        lease,
        id=id_,
        name=name,
        reservations=reservations,
        events=events,
        series=None,
        offer=None,
        revision=0,
        created_at=now,
        updated_at=None,
    )


def _copy_event(event: Event, id_: str, now: datetime) -> Event:
    """Return the same event of another lease; if somebody works on the one (a look at the use), the other is due."""
    mine = replace(event, id=id_, created_at=now)
    if event.claimed_by is None:
        return mine
    return replace(mine, status=EventStatus.UNDONE, claimed_by=None, claimed_at=None, due_at=now)


def _set_window(lease: Lease, window: Window, lead: timedelta, now: datetime) -> Lease:
    """Return a lease that has not started in a part of its window, with its events armed for that."""
    warning = lease.event(EventType.BEFORE_END)
    times = {EventType.START: window.start, EventType.END: window.end}
    if warning is not None and warning.time is not None:
        times[EventType.BEFORE_END] = move_warning(warning.time, lease.window, window, lead)
    events = tuple(
        replace(e, time=at, due_at=at, updated_at=now)
        if e.event_type in TIMETABLE and (at := times.get(EventType(e.event_type))) is not None
        else e
        for e in lease.events
    )
    return replace(lease, window=window, events=events)


def _keep_notes_on(reservation: Reservation, resources: Collection[int]) -> Reservation:
    """Return a reservation whose notes on failed resources are about these only."""
    return replace(
        reservation,
        unassigned=reservation.unassigned & frozenset(resources),
        failed=reservation.failed & frozenset(resources),
    )
