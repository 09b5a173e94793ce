# SPDX-License-Identifier: Apache-2.0
"""Changes of series from one of their occurrences on.

What is to come is planned again, as if the leases that change had nothing. Then all of it is written in one
transaction: leases whose occurrence stays on its day get other dates, the others are deleted, and new ones are booked.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from blazar.context import scope
from blazar.enforcement import Occasion
from blazar.manager.common.notifications import UPDATED
from blazar.manager.common.runtime import Runtime
from blazar.manager.lease import dates, lifecycle
from blazar.manager.lease.booking import Booking, PlacementRequest
from blazar.manager.outbox.outbox import Outbox
from blazar.manager.requests.new_leases import NewLease, NewLeases
from blazar.manager.requests.series_leases import copied, sealed
from blazar.manager.requests.series_planning import Planned, SeriesCheck
from blazar.manager.requests.series_work import SeriesWork, check_fits, first_to_come, unfit_of
from blazar.model.clock import said, to_second
from blazar.model.demand import Allocation
from blazar.model.errors import BlazarError, Conflict, InvalidInput, PreconditionFailed
from blazar.model.lease import Event, EventStatus, EventType, Lease, LeaseStatus, PartOfSeries
from blazar.model.recurrence import Occurrence
from blazar.model.requests import Actor
from blazar.model.series import Fit, check_series
from blazar.model.series_changes import SeriesChange, is_as_before, pointing_into, since, until
from blazar.model.series_details import OccurrenceState, Series, SeriesDetails, SeriesOccurrence, SeriesStatus
from blazar.model.window import Window
from blazar.store.series_changes import Moved, SeriesExchange


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a change leads to: the series before it, what is left of that, and the one from ``first`` on.

    ``leases`` are those that change, ``kept`` what stays as it is, and ``coming`` what is planned.
    """

    before: Series
    old: Series | None
    new: Series
    first: datetime
    leases: Mapping[str, Lease]
    kept: Mapping[datetime, SeriesOccurrence]
    coming: tuple[Occurrence, ...]


class _AsBefore(Exception):
    """A series has all that a change gives it already."""

    def __init__(self, found: SeriesDetails) -> None:
        super().__init__("the series is as before")
        self.found = found


@dataclass(slots=True)
class _Attempt:
    """A plan of what is wanted, with the lease of each occurrence that fits, and what enforcement objects to."""

    wanted: _Wanted
    planned: Planned
    copies: Mapping[datetime, NewLease]
    model: NewLease
    check: SeriesCheck
    objections: Mapping[str, BlazarError]


class SeriesChanging:
    """Changes series, all or nothing."""

    def __init__(self, runtime: Runtime, booking: Booking, outbox: Outbox, work: SeriesWork) -> None:
        self._runtime = runtime
        self._booking = booking
        self._enforcement = outbox.enforcement
        self._work = work
        self._new_leases = NewLeases(runtime, outbox.enforcement)

    def change(self, series_id: str, change: SeriesChange) -> SeriesDetails:
        """Change a series, and return the one that goes on; for a dry run return what it would be.

        NotFound, InvalidInput, Conflict, NotEnoughResources, UsageDenied, Contention, PreconditionFailed.
        """
        if self._enforcement.listens_to(Occasion.UPDATED):
            raise Conflict(
                "an external service is told of each change of a lease here, and a series cannot be changed at once: "
                "change its leases one by one, or delete it and make another one"
            )
        new_id = str(uuid.uuid4())

        def find(_: int) -> _Attempt:
            return self._planned(self._wanted(series_id, new_id, change))

        def judge(attempt: _Attempt) -> None:
            self._judge(attempt, change)

        with scope(limit=self._runtime.settings.request_limit), pointing_into(change):
            if change.dry_run:
                attempt = find(0)
                judge(attempt)
                return SeriesDetails(attempt.wanted.new, _listed(attempt))

            def write(attempt: _Attempt) -> _Attempt:
                check_fits(attempt.wanted.new, _listed(attempt))
                self._write(attempt)
                return attempt

            try:
                done = self._booking.until_it_holds(find, write, judge)
            except _AsBefore as same:
                return same.found
            self._work.work_on(done.wanted.new.id)
        self._work.wake()
        return self._runtime.store.series.one(done.wanted.new.id, self._runtime.clock.now())

    def _wanted(self, series_id: str, new_id: str, change: SeriesChange) -> _Wanted:
        """Return what a change leads to. InvalidInput, Conflict, PreconditionFailed."""
        store, now = self._runtime.store.series, self._runtime.clock.now()
        found = store.one(series_id, now)
        before = found.series
        if change.revisions is not None and before.revision not in change.revisions:
            raise PreconditionFailed(
                f"the series has changed: its revision is {before.revision}; read it, and send the change with its "
                "present tag",
                header="If-Match",
                data={"revision": before.revision},
            )
        if before.status is not SeriesStatus.ACTIVE:
            raise Conflict(f"the series is {before.status}, and only one that is ACTIVE can be changed")
        first = _first(found.occurrences, change.since, now)
        earlier = [each.recurrence_id for each in found.occurrences if each.recurrence_id < first]
        if earlier and change.start is not None and change.start <= max(earlier):
            sentence = (
                f"start: it is not after {said(max(earlier))}, the occurrence before the change; choose a later one"
            )
            raise InvalidInput(sentence, pointer="/start")
        recurrence = since(before.recurrence, first, change, max(earlier, default=None))
        template = before.template
        if change.reservations is not None and change.asked_by is not None:
            asked = replace(template, reservations=change.reservations, operator=change.asked_by.operator)
            template = sealed(self._runtime, asked, before=template)
        if change.sets_before_end:
            template = replace(template, before_end=change.before_end)
        if not change.dry_run and template == before.template and _is_as_before(change, found):
            raise _AsBefore(found)
        limits = self._runtime.settings.series
        fit = change.fit or before.fit
        every = check_series(recurrence, fit, limits, now, since=first)
        new = replace(
            before,
            id=new_id if earlier else before.id,
            name=change.name or before.name,
            recurrence=recurrence,
            template=template,
            fit=fit,
            booked_until=None if recurrence.rule.ends else to_second(now) + limits.horizon,
            updated_at=now,
            **(
                {"previous_id": before.id, "created_at": now, "revision": 0}
                if earlier
                else {"revision": before.revision + 1}
            ),
        )
        old = replace(before, recurrence=until(before.recurrence, first), booked_until=None, updated_at=now)
        leases = {lease.id: lease for lease in store.leases(series_id, LeaseStatus.PENDING)}
        changing: dict[str, Lease] = {}
        kept: dict[datetime, SeriesOccurrence] = {}
        for each in found.occurrences:
            if each.recurrence_id < first or each.state is OccurrenceState.UNFIT:
                continue
            lease = leases.get(each.lease_id or "")
            if lease is None or lease.window.start <= now or (each.changed and not change.with_changed):
                kept[each.recurrence_id] = each
            else:
                changing[lease.id] = lease
        named = {each.recurrence_id for each in found.occurrences} | recurrence.added
        coming = _coming(every, kept, named)
        if not coming:
            raise InvalidInput(
                f"no occurrence would be left: those from {said(first)} on are over, deleted or changed by themselves; "
                f"delete the series{_giving_back(len(changing))}, or choose a later end",
                pointer="/rule",
            )
        return _Wanted(before, old if earlier else None, new, first, changing, kept, coming)

    def _planned(self, wanted: _Wanted) -> _Attempt:
        """Plan what is to come, as if the leases that change had nothing. InvalidInput, OthersWait."""
        runtime, new = self._runtime, wanted.new
        listed = [SeriesOccurrence(each.recurrence_id, each.start, each.end) for each in wanted.coming]
        window = first_to_come(listed, runtime.clock.now())
        if window is None:
            raise InvalidInput("start: all occurrences have begun already; choose a later start", pointer="/start")
        asked = self._new_leases.of(new.request(window), runtime.claims.new())
        settings = runtime.settings
        planned = self._work.planner.plan(
            asked, wanted.coming, new.fit, placements=settings.search_placements, without=frozenset(wanted.leases)
        )
        by_day: dict[date, Lease] = {}
        if new.template.reservations == wanted.before.template.reservations:
            by_day = {_day(lease): lease for lease in wanted.leases.values() if _has_shape(lease, planned.new.lease)}
        copies: dict[datetime, NewLease] = {}
        for each in planned.plan.occurrences:
            id_, at = each.occurrence.recurrence_id, each.occurrence.window
            if not each.fits or at is None:
                continue
            lease = by_day.pop(id_.date(), None)
            copies[id_] = (
                copied(runtime, new, planned.new, each.occurrence, at)
                if lease is None
                else self._moved(wanted, planned.new, lease, each.occurrence, at)
            )
        check = SeriesCheck(runtime, self._enforcement, without=frozenset(wanted.leases))
        return _Attempt(wanted, planned, copies, planned.new, check, {})

    def _moved(
        self, wanted: _Wanted, model: NewLease, lease: Lease, occurrence: Occurrence, window: Window
    ) -> NewLease:
        """Return a lease with other dates, and what its own reservations ask of the calendar."""
        now = self._runtime.clock.now()
        own = {one.id: other.id for one, other in zip(model.lease.reservations, lease.reservations, strict=True)}
        after = replace(
            lease,
            name=wanted.new.name,
            window=window,
            events=tuple(self._events(wanted, lease, window, now)),
            series=PartOfSeries(wanted.new.id, occurrence.recurrence_id),
            updated_at=now,
        )
        requests = (PlacementRequest(own[each.reservation_id], each.demand) for each in model.placement_requests)
        return replace(model, lease=after, placement_requests=tuple(requests))

    def _events(self, wanted: _Wanted, lease: Lease, window: Window, now: datetime) -> Iterator[Event]:
        """Yield the events of a lease with other dates; its warning stays as long before the end by default."""
        series = wanted.new
        resets = series.template.before_end is None and wanted.before.template.before_end is not None
        lead = self._runtime.lead_before_end(lease)
        asked = dates.asked_before_end(series.template.before_end, window, lead if resets else None)
        for event in lease.events:
            match event.event_type:
                case EventType.START:
                    time: datetime | None = window.start
                case EventType.END:
                    time = window.end
                case EventType.BEFORE_END:
                    time = dates.changed_before_end(event.time, lease.window, window, asked, lead)
                case _:
                    time = event.time
            yield event if time == event.time else replace(event, time=time, due_at=time, updated_at=now)
        if asked is not None and lease.event(EventType.BEFORE_END) is None:
            at = dates.new_before_end(window, asked, lead)
            yield Event(str(uuid.uuid4()), EventType.BEFORE_END, at, EventStatus.UNDONE, now, due_at=at)

    def _judge(self, attempt: _Attempt, change: SeriesChange) -> None:
        series = attempt.wanted.new
        wanted = [(copy.lease, _allocations(attempt, id_)) for id_, copy in attempt.copies.items()]
        actor = change.asked_by or Actor(series.user_id, series.project_id)
        count = len(attempt.wanted.leases)
        leases, reservations = attempt.planned.so_far
        of_them = sum(len(lease.reservations) for lease in attempt.wanted.leases.values())
        attempt.objections = attempt.check.objections(actor, wanted, (leases - count, reservations - of_them))
        if series.fit is Fit.ALL and attempt.objections:
            raise next(iter(attempt.objections.values()))

    def _write(self, attempt: _Attempt) -> None:
        """Write a change that was planned and checked. StaleLease, StaleCalendar."""
        runtime, wanted, now = self._runtime, attempt.wanted, self._runtime.clock.now()
        granted = {id_: copy for id_, copy in attempt.copies.items() if copy.lease.id not in attempt.objections}
        held: list[Allocation] = []
        for id_ in granted:
            held += _allocations(attempt, id_)
        stay = {copy.lease.id: copy.lease for copy in granted.values()}
        moved = tuple(Moved(lease, stay[id_]) for id_, lease in wanted.leases.items() if id_ in stay)
        gone = tuple(
            Moved(lease, lifecycle.begin_deletion(lease, event_id=str(uuid.uuid4()), now=now))
            for id_, lease in wanted.leases.items()
            if id_ not in stay
        )
        added = tuple(lease for id_, lease in stay.items() if id_ not in wanted.leases)
        booked = {id_: copy.lease for id_, copy in granted.items()}
        listed = [
            replace(each, state=OccurrenceState.BOOKED, lease_id=booked[each.recurrence_id].id)
            if each.recurrence_id in booked
            else each
            for each in _listed(attempt)
            if each.recurrence_id not in wanted.kept
        ]
        exchange = SeriesExchange(
            before=wanted.before,
            old=wanted.old,
            new=wanted.new,
            first=wanted.first,
            moved=moved,
            gone=gone,
            added=added,
            kept=wanted.kept.keys(),
            occurrences=listed,
            allocations=held,
            generations={a.resource_id: attempt.planned.generations[a.resource_id] for a in held},
            most=None if self._enforcement.exempts(wanted.new.project_id) else runtime.settings.max_series,
        )
        runtime.store.series_changes.exchange(exchange, use=attempt.check.use, now=now)
        for each in moved:
            runtime.notifier.notify(UPDATED, replace(each.after, revision=each.before.revision + 1))
        runtime.wake()


def _is_as_before(change: SeriesChange, found: SeriesDetails) -> bool:
    """Tell whether a change leaves a series as it is. What did not fit is tried again by any change."""
    series = found.series
    return is_as_before(change, series.recurrence, series.fit, series.name) and not any(
        each.state is OccurrenceState.UNFIT for each in found.occurrences
    )


def _giving_back(count: int) -> str:
    return f" to give back the {count} that {'is' if count == 1 else 'are'} to come" if count else ""


def _first(every: Sequence[SeriesOccurrence], wanted: datetime | None, now: datetime) -> datetime:
    """Return the occurrence from which on a series is changed. InvalidInput if there is none."""
    to_come = [each.recurrence_id for each in every if each.start > now]
    if wanted is None:
        if not to_come:
            raise InvalidInput("from: no occurrence is to come", pointer="/from")
        return min(to_come)
    if wanted not in {each.recurrence_id for each in every}:
        raise InvalidInput(
            f"from: {said(wanted)} is no occurrence of the series; give the recurrence_id of one", pointer="/from"
        )
    if wanted not in to_come:
        raise InvalidInput(f"from: the occurrence of {said(wanted)} has begun; give a later one", pointer="/from")
    return wanted


def _coming(
    every: Sequence[Occurrence], kept: Collection[datetime], named: Collection[datetime]
) -> tuple[Occurrence, ...]:
    """Return the occurrences that are planned: not those that are kept, whatever the time of their day is now.

    ``named`` are those that a series had before, or that are added by their date: they are meant by themselves.
    """
    ids = {each.recurrence_id for each in every}
    days = {each.date() for each in kept if each not in ids}
    return tuple(
        each
        for each in every
        if each.recurrence_id not in kept and (each.recurrence_id in named or each.recurrence_id.date() not in days)
    )


def _day(lease: Lease) -> date:
    assert lease.series is not None
    return lease.series.recurrence_id.date()


def _has_shape(lease: Lease, model: Lease) -> bool:
    """Return whether a lease has the reservations of another, in the same regions."""
    return [(r.resource_type, r.region) for r in lease.reservations] == [
        (r.resource_type, r.region) for r in model.reservations
    ]


def _allocations(attempt: _Attempt, recurrence_id: datetime) -> tuple[Allocation, ...]:
    planned = next(e for e in attempt.planned.plan.occurrences if e.occurrence.recurrence_id == recurrence_id)
    return attempt.planned.allocations(attempt.copies[recurrence_id], planned)


def _listed(attempt: _Attempt) -> tuple[SeriesOccurrence, ...]:
    """Return the occurrences from the change on: those that stay as they are, and what becomes of the others."""
    found = list(attempt.wanted.kept.values())
    for each in attempt.planned.plan.occurrences:
        id_ = each.occurrence.recurrence_id
        copy = attempt.copies.get(id_)
        error = None if copy is None else attempt.objections.get(copy.lease.id)
        if copy is None:
            found.append(replace(unfit_of(each), opening=each.opening))
        elif error is not None:
            found.append(unfit_of(each, error.public or error.message))
        else:
            lease_id = copy.lease.id if copy.lease.id in attempt.wanted.leases else None
            found.append(SeriesOccurrence(id_, copy.lease.window.start, copy.lease.window.end, lease_id=lease_id))
    return tuple(sorted(found, key=lambda each: (each.start, each.recurrence_id)))
