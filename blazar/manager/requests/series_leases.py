# SPDX-License-Identifier: Apache-2.0
"""The leases of a series: each is a copy of one that was checked and completed, with ids and dates of its own."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import zip_longest

from blazar.calendar.series import PlannedOccurrence
from blazar.manager.common.runtime import Runtime
from blazar.manager.lease import dates
from blazar.manager.lease.booking import PlacementRequest
from blazar.manager.requests.new_leases import NewLease
from blazar.model.demand import Allocation
from blazar.model.errors import pointing_at
from blazar.model.lease import Event, EventStatus, EventType, Lease, PartOfSeries, Reservation
from blazar.model.recurrence import Occurrence
from blazar.model.requests import ReservationRequest
from blazar.model.resource import ResourceKind
from blazar.model.secrets import parted
from blazar.model.series_details import Series, Template
from blazar.model.window import Window
from blazar.resources.references import with_ids

_ABSENT = object()


def copied(runtime: Runtime, series: Series, new: NewLease, occurrence: Occurrence, window: Window) -> NewLease:
    """Return the lease of an occurrence as it is while it is created: its creation is not due, as the series has it."""
    now, ids = runtime.clock.now(), {each.id: str(uuid.uuid4()) for each in new.lease.reservations}
    lease = replace(
        new.lease,
        id=str(uuid.uuid4()),
        window=window,
        created_at=now,
        reservations=tuple(_reservation(runtime, each, ids, now) for each in new.lease.reservations),
        events=tuple(_events(runtime, series, new.lease, window, now)),
        series=PartOfSeries(series.id, occurrence.recurrence_id),
    )
    requests = (PlacementRequest(ids[each.reservation_id], each.demand) for each in new.placement_requests)
    return replace(new, lease=lease, placement_requests=tuple(requests), key=None)


def sealed(runtime: Runtime, asked: Template, *, before: Template | None = None) -> Template:
    """Return what the leases of a series are made of as it is kept, with its secrets apart. InvalidInput.

    A masked part that a client sends back as it was shown means what was there ``before``; null takes it away.
    """
    known = () if before is None else before.reservations
    found = []
    for number, (each, old) in enumerate(zip_longest(asked.reservations, known[: len(asked.reservations)])):
        with pointing_at(f"/reservations/{number}"):
            found.append(_sealed(runtime, each, old))
    return replace(asked, reservations=tuple(found))


def _sealed(runtime: Runtime, asked: ReservationRequest, old: ReservationRequest | None) -> ReservationRequest:
    kind = runtime.types.get(asked.resource_type)
    if kind is None:
        return asked
    given = asked.parameters
    if old is not None and old.resource_type == asked.resource_type:
        # What is left out for being secret is not shown at all.
        same = {key for key in old.secret if given.get(key, _ABSENT) == old.parameters.get(key, _ABSENT)}
        given = {**given, **{key: old.secret[key] for key in same}}
    shown, secret = parted(given, kind.masked(given))
    return replace(asked, parameters=shown, secret=secret)


def _reservation(runtime: Runtime, each: Reservation, ids: Mapping[str, str], now: datetime) -> Reservation:
    references = {r.pointer: ids[str(r.reservation)] for r in runtime.references(each)}
    return replace(
        each,
        id=ids[each.id],
        resource_id=str(uuid.uuid4()),
        parent=None if each.parent is None else ids[each.parent],
        parameters=with_ids(each.parameters, references) if references else each.parameters,
        created_at=now,
    )


def _events(runtime: Runtime, series: Series, model: Lease, window: Window, now: datetime) -> list[Event]:
    lead = runtime.settings.lead_before_end([each.resource_type for each in series.template.reservations])
    before_end = dates.new_before_end(window, dates.asked_before_end(series.template.before_end, window), lead)
    if before_end is None and model.event(EventType.BEFORE_END) is not None:
        # Work is saved at the end itself if there is no warning.
        before_end = window.end
    times = {
        EventType.START: window.start,
        EventType.END: window.end,
        EventType.BEFORE_END: before_end,
        EventType.CREATE: now.replace(microsecond=0),
    }
    return [
        Event(id=str(uuid.uuid4()), event_type=kind, time=time, status=EventStatus.UNDONE, created_at=now)
        for kind, time in times.items()
        if time is not None
    ]


def allocated(
    new: NewLease, planned: PlannedOccurrence, kinds: Sequence[ResourceKind], window: Window
) -> tuple[Allocation, ...]:
    """Return what the lease of an occurrence gets, by its plan, which has a placement for each of the ``kinds``."""
    requests: dict[ResourceKind, list[PlacementRequest]] = defaultdict(list)
    for each in new.placement_requests:
        requests[each.demand.kind].append(each)
    return tuple(
        Allocation(
            kind=kind,
            resource_id=assignment.resource_id,
            lease_id=new.lease.id,
            reservation_id=request.reservation_id,
            window=window,
            count=assignment.count,
            per_instance=request.demand.per_instance,
        )
        for kind, placement in zip(kinds, planned.placements, strict=True)
        for request, assignments in zip(requests[kind], placement.assignments, strict=True)
        for assignment in assignments
    )
