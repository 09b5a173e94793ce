# SPDX-License-Identifier: Apache-2.0
"""Occurrences of a series: their leases, each a copy of one that was checked and completed, and what does not fit."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from itertools import zip_longest
from typing import TypeGuard

from blazar.calendar.series import PlannedOccurrence, SeriesPlan
from blazar.manager.booking.booking import PlacementRequest
from blazar.manager.changing.new_leases import NewLease
from blazar.manager.common.runtime import Runtime
from blazar.manager.leases import dates, lifecycle
from blazar.manager.leases.timetable import new_timetable
from blazar.manager.search.refusals import add_sentence
from blazar.model.base.clock import spell, to_second, zulu
from blazar.model.base.errors import BlazarError, InvalidInput, NotEnoughResources, UsageDenied, pointing_at
from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import Window
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.lease import Event, Lease, PartOfSeries
from blazar.model.leases.reminders import skip_past
from blazar.model.leases.requests import ReservationRequest
from blazar.model.leases.reservation import Reservation
from blazar.model.leases.secrets import split_off_secrets
from blazar.model.leases.states import EventType
from blazar.model.resources.resource import ResourceKind
from blazar.model.series.checks import Fit
from blazar.model.series.details import OccurrenceState, Series, SeriesOccurrence, Template
from blazar.model.series.recurrence import Occurrence
from blazar.resources.contract.parameters import with_ids
from blazar.store.booking.commit import LeaseWrite

CHUNK = 50
"""Leases that one transaction books, and of series that are booked at once; longer ones are in the background."""

MOST_NAMED = 50
"""How many occurrences an error lists."""

_ABSENT = object()


def copy_for_occurrence(
    runtime: Runtime, series: Series, new: NewLease, occurrence: Occurrence, window: Window
) -> NewLease:
    """Return the lease of an occurrence as it is while it is created: its creation is not due, as the series has it."""
    now, ids = runtime.clock.now(), {reservation.id: str(uuid.uuid4()) for reservation in new.lease.reservations}
    lease = replace(
        new.lease,
        id=str(uuid.uuid4()),
        window=window,
        created_at=now,
        reservations=tuple(_copy_reservation(runtime, reservation, ids, now) for reservation in new.lease.reservations),
        events=_make_events(runtime, series, new.lease, window, now),
        reminders=skip_past(new.lease.reminders, window, now),
        series=PartOfSeries(series.id, occurrence.recurrence_id),
        quoted_at=series.held_at,
    )
    requests = (PlacementRequest(ids[request.reservation_id], request.demand) for request in new.placement_requests)
    return replace(new, lease=lease, placement_requests=tuple(requests), key=None)


def seal_template(runtime: Runtime, asked: Template, *, before: Template | None = None) -> Template:
    """Return what the leases of a series are made of as it is kept, with its secrets apart. InvalidInput.

    A masked part that a client sends back as it was shown means what was there ``before``; null takes it away.
    """
    known = () if before is None else before.reservations
    found = []
    for number, (request, old) in enumerate(zip_longest(asked.reservations, known[: len(asked.reservations)])):
        with pointing_at(f"/reservations/{number}"):
            found.append(_seal_request(runtime, request, old))
    return replace(asked, reservations=tuple(found))


def _seal_request(runtime: Runtime, asked: ReservationRequest, old: ReservationRequest | None) -> ReservationRequest:
    kind = runtime.types.get(asked.resource_type)
    if kind is None:
        return asked
    given = asked.parameters
    if old is not None and old.resource_type == asked.resource_type:
        # What is left out for being secret is not shown at all.
        same = {key for key in old.secret if given.get(key, _ABSENT) == old.parameters.get(key, _ABSENT)}
        given = {**given, **{key: old.secret[key] for key in same}}
    shown, secret = split_off_secrets(given, kind.masked(given))
    return replace(asked, parameters=shown, secret=secret)


def _copy_reservation(runtime: Runtime, reservation: Reservation, ids: Mapping[str, str], now: datetime) -> Reservation:
    references = {r.pointer: ids[str(r.reservation)] for r in runtime.references(reservation)}
    return replace(
        reservation,
        id=ids[reservation.id],
        resource_id=str(uuid.uuid4()),
        parent=None if reservation.parent is None else ids[reservation.parent],
        parameters=with_ids(reservation.parameters, references) if references else reservation.parameters,
        created_at=now,
    )


def _make_events(runtime: Runtime, series: Series, model: Lease, window: Window, now: datetime) -> tuple[Event, ...]:
    lead = runtime.settings.lead_before_end([reservation.resource_type for reservation in series.template.reservations])
    before_end = dates.new_before_end(window, dates.resolve_before_end(series.template.before_end, window), lead)
    if before_end is None and model.event(EventType.BEFORE_END) is not None:
        # Work is saved at the end itself if there is no warning.
        before_end = window.end
    creation = lifecycle.new_event(EventType.CREATE, to_second(now), now)
    return (*new_timetable(window, before_end, now), creation)


def allocate(
    new: NewLease, planned: PlannedOccurrence, kinds: Sequence[ResourceKind], window: Window
) -> tuple[Allocation, ...]:
    """Return what the lease of an occurrence gets, by its plan, which has a placement for each of the ``kinds``."""
    requests: dict[ResourceKind, list[PlacementRequest]] = defaultdict(list)
    for placement_request in new.placement_requests:
        requests[placement_request.demand.kind].append(placement_request)
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


@dataclass(frozen=True, slots=True)
class PlannedSeries:
    """A plan, the lease in the region that it is for, and the generations of the resources when it was made.

    ``kinds`` are those of the placements of each occurrence, ``moved`` leases of others that make room for it.
    """

    new: NewLease
    plan: SeriesPlan
    kinds: tuple[ResourceKind, ...]
    generations: Mapping[int, int]
    so_far: tuple[int, int]
    moved: tuple[LeaseWrite, ...] = ()

    def allocations(self, copy: NewLease, planned: PlannedOccurrence) -> tuple[Allocation, ...]:
        """Return what the lease of an occurrence gets."""
        return allocate(copy, planned, self.kinds, copy.lease.window)


def make_occurrence(planned: SeriesOccurrence) -> Occurrence:
    """Return an occurrence that is on record as the calendar plans it."""
    return Occurrence(planned.recurrence_id, planned.start, planned.end)


def find_first_to_come(occurrences: Sequence[SeriesOccurrence], now: datetime) -> Window | None:
    """Return the window of the first occurrence that has not begun; None if there is none."""
    return next((o.window for o in occurrences if o.window is not None and o.start >= now), None)


def unfit_sentence(recurrence_id: datetime, reason: str) -> str:
    """Return why a series cannot be booked as a whole."""
    return f"the occurrence of {spell(recurrence_id)} does not fit: {reason.removesuffix('.')}"


def mark_unfit(planned: PlannedOccurrence, reason: str | None = None) -> SeriesOccurrence:
    """Return what is recorded of an occurrence that is not booked."""
    found = planned.occurrence
    return SeriesOccurrence(
        found.recurrence_id, found.start, found.end, OccurrenceState.UNFIT, reason=reason or planned.reason
    )


def check_fits(series: Series, found: Sequence[SeriesOccurrence]) -> None:
    """Raise NotEnoughResources if nothing would be booked of a series."""
    unfit = [occurrence for occurrence in found if occurrence.state is OccurrenceState.UNFIT]
    if not unfit or (series.fit is Fit.AS_MANY and len(unfit) < len(found)):
        return
    first = unfit[0]
    others = f" (and {len(unfit) - 1} more do not)" if len(unfit) > 1 else ""
    advice = "ask for as many as fit with fit" if len(unfit) < len(found) else "choose other times"
    raise NotEnoughResources(
        f"{unfit_sentence(first.recurrence_id, first.reason or '')}{others}; {advice}, or see with dry_run when "
        "they fit",
        data={"unfit": len(unfit), "occurrences": [_describe_occurrence(o) for o in unfit[:MOST_NAMED]]},
    )


def is_limit(error: BlazarError) -> TypeGuard[UsageDenied]:
    """Return whether an error is of a limit that is known: a service is not asked what it would grant."""
    return isinstance(error, UsageDenied) and "fits" in (error.data or {})


def offer_part(
    error: UsageDenied, occurrences: Sequence[datetime], denied: Collection[datetime], *, as_many: bool
) -> None:
    """Say which of the occurrences of a series would be granted, all given by their recurrence ids, in their order.

    What would be granted of one lease is no advice: it says nothing of those after it. ``as_many``: so does ``fit``.
    """
    first = next(number for number, id_ in enumerate(occurrences) if id_ in denied)
    rest = len(occurrences) - len(denied) if as_many else 0
    error.data = {
        **(error.data or {}),
        "fits": {
            **({"occurrences": first, "until": occurrences[first - 1].isoformat()} if first else {}),
            **({"as_many": rest} if rest else {}),
        },
    }
    offers = [
        *([f"the first {first} of {len(occurrences)}, until {spell(occurrences[first - 1])}"] if first else []),
        *([f"{rest} with fit as_many"] if rest else []),
    ]
    granted = f"what would be granted is {', or '.join(offers)}" if offers else "none of the series would be granted"
    add_sentence(error, f"This is the occurrence of {spell(occurrences[first])}; {granted}.")


def offer_first(runtime: Runtime, series: Series, error: BlazarError, denied: datetime) -> None:
    """Say how many occurrences would be granted before one that a limit denies, of a series that nobody waits for.

    One that is refused at once is explained with all that fits of it.
    """
    if is_limit(error) and runtime.settings.explain_refusals:
        ids = [one.recurrence_id for one in runtime.store.series.one(series.id, runtime.clock.now()).occurrences]
        if len(ids) > CHUNK:
            offer_part(error, ids, ids[ids.index(denied) :], as_many=False)


def _describe_occurrence(occurrence: SeriesOccurrence) -> dict[str, object]:
    opening = occurrence.opening
    return {
        "recurrence_id": occurrence.recurrence_id.isoformat(),
        "start_date": zulu(occurrence.start),
        "end_date": zulu(occurrence.end),
        "reason": occurrence.reason,
        "opening": None if opening is None else {"start_date": zulu(opening.start), "end_date": zulu(opening.end)},
    }


def find_first_changed(every: Sequence[SeriesOccurrence], wanted: datetime | None, now: datetime) -> datetime:
    """Return the occurrence from which on a series is changed. InvalidInput if there is none."""
    to_come = [occurrence.recurrence_id for occurrence in every if occurrence.start > now]
    if wanted is None:
        if not to_come:
            raise InvalidInput("from: no occurrence is to come", at="/from")
        return min(to_come)
    if wanted not in {occurrence.recurrence_id for occurrence in every}:
        raise InvalidInput(
            f"from: {spell(wanted)} is no occurrence of the series; give the recurrence_id of one", at="/from"
        )
    if wanted not in to_come:
        raise InvalidInput(f"from: the occurrence of {spell(wanted)} has begun; give a later one", at="/from")
    return wanted


def select_coming(
    every: Sequence[Occurrence], kept: Collection[datetime], named: Collection[datetime]
) -> tuple[Occurrence, ...]:
    """Return the occurrences that are planned: not those that are kept, whatever the time of their day is now.

    ``named`` are those that a series had before, or that are added by their date: they are meant by themselves.
    """
    ids = {occurrence.recurrence_id for occurrence in every}
    days = {local.date() for local in kept if local not in ids}
    return tuple(
        o
        for o in every
        if o.recurrence_id not in kept and (o.recurrence_id in named or o.recurrence_id.date() not in days)
    )
