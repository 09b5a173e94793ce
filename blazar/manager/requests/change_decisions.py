# SPDX-License-Identifier: Apache-2.0
"""Decisions on changes of a lease: what it is after a change, and which resources it gets; nothing is written."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache

from blazar.manager.common.runtime import Runtime, with_capabilities
from blazar.manager.lease import dates, extending, lifecycle, timetable, waiting
from blazar.manager.lease.booking import Booking, PlacementRequest
from blazar.manager.lease.references import Referrer, of_lease
from blazar.manager.lease.under_way import check_not_under_way
from blazar.manager.requests.names import check_names
from blazar.manager.requests.quotas import Needed, QuotasNeeded, growth
from blazar.manager.requests.waiting import Busy
from blazar.model.amounts import Amounts
from blazar.model.demand import Allocation, Demand, Plan
from blazar.model.errors import Conflict, InvalidInput, StaleLease, WrongState, pointing_at
from blazar.model.lease import (
    Content,
    EndReason,
    EventStatus,
    EventType,
    Lease,
    LeaseKind,
    LeaseStatus,
    PartOfSeries,
    Reservation,
    ReservationStatus,
)
from blazar.model.requests import LeaseChange
from blazar.model.requirements import Requirement, keys
from blazar.model.window import Window
from blazar.resources.actions import differ_beside_action, names_action
from blazar.resources.base import Given, Task


@dataclass(frozen=True, slots=True)
class Draft:
    """The lease after a change, and whether its resources have to be planned again."""

    after: Lease
    replan: bool
    warning_off: bool
    to_prepare: frozenset[str]
    """Reservations that have not started and whose cloud objects from before the start have to be made again."""

    def changes_nothing(self, lease: Lease) -> bool:
        """Tell whether the lease would be as it is."""
        if self.replan or self.warning_off or self.to_prepare:
            return False
        return replace(self.after, updated_at=lease.updated_at, series=lease.series) == lease


@dataclass(frozen=True, slots=True)
class Unchanged:
    """A change that does not touch the calendar: a new name, or nothing."""

    lease: Lease
    after: Lease


@dataclass(frozen=True, slots=True)
class Change:
    """A decided change: lease and allocations before and after, and the reservations in use that get ``new`` ones."""

    lease: Lease
    draft: Draft
    plan: Plan
    tasks: tuple[Task, ...]
    allocations: tuple[Allocation, ...]
    new: frozenset[str]

    @property
    def needs_cloud(self) -> bool:
        """Tell whether something in the cloud has to change with the lease."""
        return bool(self.new or self.draft.to_prepare)


@dataclass(frozen=True, slots=True)
class ChangeQuestion:
    """What a change asks of the calendar: a lease before and ``after`` it, and its allocations before it.

    ``replan``: its resources would be chosen again; else it keeps them for a part of their time.
    """

    lease: Lease
    after: Lease
    replan: bool
    placement_requests: tuple[PlacementRequest, ...]
    allocations: tuple[Allocation, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """A requested change, with what was read from the cloud for it, by reservation.

    ``avoided`` are resources, by calendar id, that it must not get: only what it has in use stays.
    """

    change: LeaseChange
    given: Mapping[str, Given]
    usage: Mapping[str, Mapping[int, int]]
    quotas: Needed | None = None
    avoided: frozenset[int] = frozenset()


class ChangeDecisions:
    """Decides on changes, from the lease and the calendar as they are."""

    def __init__(self, runtime: Runtime, booking: Booking) -> None:
        self._runtime = runtime
        self._booking = booking

    def decide(self, lease_id: str, asked: Asked, attempt: int) -> Change | Unchanged:
        """Return what a change leads to. InvalidInput, WrongState, StaleLease; ResolutionNeeded, UsageNeeded,
        QuotasNeeded.
        """
        change = asked.change
        # Before the lease is read: a claim that had not ended then may have been renewed since.
        now = self._runtime.clock.now()
        lease = self._runtime.store.leases.one(lease_id)
        change.check_revision(lease)
        if change.empty:
            return Unchanged(lease, lease)
        if lease.status not in lifecycle.STABLE or lease.is_undecided:
            raise busy(lease)
        if change.words_only:
            if change.name is None:
                check_not_ended(lease)
            name = lease.name if change.name is None else change.name
            extend = extending.changed(lease, change, lease.window.end, now)
            series = changed_by_itself(lease)
            if change.exact and (name, extend) == (lease.name, lease.extend):
                return Unchanged(lease, lease)
            return Unchanged(lease, replace(lease, name=name, extend=extend, series=series, updated_at=now))
        check_not_ended(lease)
        claim = lifecycle.live_claim(lease, now)
        # A look at its use changes nothing, and is judged by the lease as it is afterwards.
        if claim is not None and claim.event_type != EventType.USAGE_CHECK:
            # An action before the end holds its claim for a moment only: retry shortly.
            raise StaleLease(f"lease {lease.id} is being worked on")
        allocations, tasks = self._held(lease, asked)
        draft = self._draft(lease, tasks, asked, now)
        if change.exact and draft.changes_nothing(lease):
            return Unchanged(lease, lease)
        places = {each.id: f"/reservations/{number}" for number, each in enumerate(change.reservations)}
        if in_use := _changed_in_content(lease, draft.after):
            check_not_under_way(self._runtime, lease, allocations, in_use, places)
        needed = growth(self._runtime, lease, draft.after, places, now) if places else None
        if needed is not None and needed != asked.quotas:
            raise QuotasNeeded(needed)
        if not lease.window.covers(draft.after.window):
            check_names(self._runtime, draft.after)
        private = change.asked_by is not None and change.asked_by.operator
        plan = self._plan(lease, draft, tasks, allocations, asked, private=private, now=now, attempt=attempt)
        if change.advances is not None:
            _check_no_less(lease, allocations, plan.allocations)
        new = changed_in_use(draft.after, allocations, plan.allocations)
        return Change(lease, draft, plan, tasks, allocations, new)

    def question(self, lease: Lease, asked: Asked) -> ChangeQuestion:
        """Return what a change asks of the calendar, to look for free time for it. As for ``decide``."""
        now = self._runtime.clock.now()
        if lease.status not in lifecycle.STABLE or lease.is_undecided:
            raise busy(lease)
        check_not_ended(lease)
        allocations, tasks = self._held(lease, asked)
        draft = self._draft(lease, tasks, asked, now)
        private = asked.change.asked_by is not None and asked.change.asked_by.operator
        demands = self._demands(draft.after, tasks, asked.change, private=private)
        requests = tuple(PlacementRequest(id_, demand) for id_, demand in demands.items())
        return ChangeQuestion(lease, draft.after, draft.replan, requests, allocations)

    def _held(self, lease: Lease, asked: Asked) -> tuple[tuple[Allocation, ...], tuple[Task, ...]]:
        allocations = self._runtime.store.calendar.of_lease(lease.id)
        return allocations, tuple(
            replace(task, in_use=asked.usage.get(task.reservation.id))
            for task in self._runtime.tasks(lease, allocations)
        )

    def _draft(self, lease: Lease, tasks: Collection[Task], asked: Asked, now: datetime) -> Draft:
        change = asked.change
        window = dates.changed_window(lease.window, change.start, change.end, now, exact=change.exact)
        lead = self._runtime.lead_before_end(lease)
        before_end = dates.asked_before_end(change.before_end, window, lead if change.resets_before_end else None)
        parameters = self._new_parameters(lease, asked)
        rearmed = timetable.rearmed(lease, window, now)
        reservations = tuple(
            replace(r, parameters=parameters[r.id], updated_at=now) if parameters[r.id] != r.parameters else r
            for r in rearmed.reservations
        )
        newly_set = any(names_action(each.parameters) for each in change.reservations)
        saves = any(self._runtime.type_of(r).action(r.parameters).saves_work for r in reservations)
        events, warning_off = timetable.changed_events(
            rearmed, window, before_end, now, lead=lead, newly_set=newly_set, saves=saves, rearmed=rearmed is not lease
        )
        after = replace(
            rearmed,
            name=lease.name if change.name is None else change.name,
            window=window,
            reservations=reservations,
            events=events,
            extend=extending.changed(lease, change, window.end, now),
            series=changed_by_itself(lease),
            wait=waiting.after_change(lease, change, window),
            end_reason=_end_reason(lease, window, now),
            updated_at=now,
        )
        replan = (
            not lease.window.covers(window)
            or rearmed is not lease
            or any(differ_beside_action(task.reservation.parameters, parameters[task.reservation.id]) for task in tasks)
        )
        to_prepare = frozenset(
            r.id
            for r in reservations
            if r.status is ReservationStatus.PENDING and self._must_prepare_again(r, lease.reservation(r.id))
        )
        if replan and window.end <= now:
            # For a window in the past it could get resources that other leases use now.
            raise InvalidInput(
                f"the lease ended at {window.end:%Y-%m-%d %H:%M:%S} and gets no other resources; "
                f"give an end_date in the future to keep it",
                code="lease_ended",
                data={"status": str(lease.status)},
            )
        return Draft(after, replan, warning_off, to_prepare)

    def _requirement(self, reservation: Reservation) -> Requirement:
        return self._runtime.type_of(reservation).requirement(reservation.parameters)

    def _must_prepare_again(self, after: Reservation, before: Reservation | None) -> bool:
        return before is not None and self._runtime.type_of(after).must_prepare_again(
            before.parameters, after.parameters
        )

    def _new_parameters(self, lease: Lease, asked: Asked) -> Mapping[str, Content]:
        parameters = {r.id: r.parameters for r in lease.reservations}
        for number, each in enumerate(asked.change.reservations):
            reservation = lease.reservation(each.id)
            if reservation is None:
                raise InvalidInput(
                    f"reservations: the lease has no reservation {each.id[:80]}; reservations can be changed, but "
                    f"neither added nor removed",
                    code="unknown_reference",
                    pointer=f"/reservations/{number}/id",
                )
            if reservation.parent is not None:
                raise InvalidInput(
                    f"reservation {reservation.id} is a part of reservation {reservation.parent} and changes with "
                    "that; leave it out",
                    pointer=f"/reservations/{number}/id",
                )
            if each.resource_type not in (None, reservation.resource_type):
                raise Conflict(
                    f"reservation {reservation.id} is of type {reservation.resource_type}; "
                    "resource_type cannot be changed",
                    pointer=f"/reservations/{number}/resource_type",
                )
            kind = self._runtime.type_of(reservation)
            with pointing_at(f"/reservations/{number}"):
                parameters[each.id] = kind.changed(parameters[each.id], asked.given[each.id])
        self._check_references(lease, parameters, {each.id: n for n, each in enumerate(asked.change.reservations)})
        return parameters

    def _check_references(self, lease: Lease, parameters: Mapping[str, Content], places: Mapping[str, int]) -> None:
        """Raise InvalidInput for references of changed reservations that cannot be kept."""
        of_lease(
            [
                Referrer(
                    r.id,
                    r.resource_type,
                    self._runtime.references(replace(r, parameters=parameters[r.id])),
                    f"/reservations/{places[r.id]}" if r.id in places else None,
                    parameters[r.id],
                    started=r.status is not ReservationStatus.PENDING,
                )
                for r in lease.asked_for
            ]
        )

    def _plan(
        self,
        lease: Lease,
        draft: Draft,
        tasks: Collection[Task],
        allocations: tuple[Allocation, ...],
        asked: Asked,
        *,
        private: bool,
        now: datetime,
        attempt: int,
    ) -> Plan:
        after, change = draft.after, asked.change
        if not draft.replan:
            # The same resources for a part of their window: no need to plan.
            return Plan(tuple(replace(a, window=after.window) for a in allocations))
        # Within its current window a lease keeps its resources even on a host that has shrunk since.
        entitled = lease.window.covers(after.window)
        placement_requests = [
            PlacementRequest(id_, demand)
            for id_, demand in self._demands(after, tasks, change, private=private).items()
        ]
        if entitled:
            placement_requests = [entitled_to(each, allocations) for each in placement_requests]
        plan = self._booking.plan(
            lease.id,
            after.window,
            placement_requests,
            now=now,
            attempt=attempt,
            project_id=lease.project_id,
            excluded=asked.avoided - in_use(lease, allocations),
            # Others may be needed by those that are moved, or have their turn, after it.
            only=None if change.advances is None else frozenset(change.advances),
        )
        if not entitled:
            return plan
        held = {a.assignment for a in allocations}
        changed = self._with_new_requirements(after, tasks)
        fresh = {a.resource_id for a in plan.allocations if a.reservation_id in changed or a.assignment not in held}
        return replace(plan, generations={i: g for i, g in plan.generations.items() if i in fresh})

    def _demands(
        self, after: Lease, tasks: Collection[Task], change: LeaseChange, *, private: bool
    ) -> Mapping[str, Demand]:
        """Return what each reservation demands after the change."""
        places = {each.id: f"/reservations/{number}" for number, each in enumerate(change.reservations)}
        # Read once for all reservations of a kind: each reading asks for the version.
        catalog_of = cache(self._runtime.store.resources.catalog)
        demands = {}
        for task in tasks:
            reservation = after.reservation(task.reservation.id)
            assert reservation is not None
            # With the new status (a failed reservation is pending again), and the old parameters.
            was = replace(task, reservation=replace(task.reservation, status=reservation.status))
            kind = self._runtime.type_of(reservation)
            if kind.expands:
                # What it takes, its parts take.
                continue
            # What it was granted may stay, with properties that were hidden since. Each other requirement that names
            # them would tell by its answer which resource has which value.
            catalog, before = catalog_of(kind.kind), self._requirement(task.reservation)
            granted = keys(before) & catalog.keys() if self._requirement(reservation) == before else frozenset()
            known = (catalog.keys() if private else catalog.keys_of(after.project_id)) | granted
            with pointing_at(places.get(reservation.id)):
                complete = with_capabilities(was, catalog)
                demands[reservation.id] = kind.demand_again(complete, reservation.parameters, known=known)
        return demands

    def _with_new_requirements(self, after: Lease, tasks: Collection[Task]) -> frozenset[str]:
        """Return the reservations with changed requirements: these must still hold at the write on kept resources."""
        return frozenset(
            task.reservation.id
            for task in tasks
            if (r := after.reservation(task.reservation.id))
            and self._requirement(task.reservation) != self._requirement(r)
        )


def entitled_to(request: PlacementRequest, held: Collection[Allocation]) -> PlacementRequest:
    """Return a request for a window in which the lease has what it holds: it keeps that, and no more of it.

    Larger instances on the same resource were not promised: there must be room for them.
    """
    mine = [each for each in held if each.reservation_id == request.reservation_id]
    is_promised = all(each.per_instance == request.demand.per_instance for each in mine)
    return replace(request, demand=replace(request.demand, entitled=is_promised))


def in_use(lease: Lease, held: Collection[Allocation]) -> frozenset[int]:
    """Return the resources that a lease keeps whatever changes: those of its reservations that have started."""
    started = {r.id for r in lease.reservations if r.status is ReservationStatus.ACTIVE}
    return frozenset(each.resource_id for each in held if each.reservation_id in started)


def _check_no_less(lease: Lease, before: Collection[Allocation], planned: Collection[Allocation]) -> None:
    """Raise StaleLease if a reservation would get less than it has: what was promised to it is not taken back."""
    for reservation in lease.reservations:
        had, gets = (sum(a.count for a in some if a.reservation_id == reservation.id) for some in (before, planned))
        if gets < had:
            raise StaleLease(f"reservation {reservation.id} would get {gets} instead of {had}")


def check_not_ended(lease: Lease) -> None:
    """Raise an error if nothing but the name of a lease can be changed any more."""
    if lease.status is LeaseStatus.TERMINATED:
        raise InvalidInput(
            "the lease has ended; only its name can be changed",
            code="lease_ended",
            data={"status": str(lease.status)},
        )
    if lease.end_reason is EndReason.UNUSED:
        # Its owner was warned; what it does before its end may have begun, and nobody looks at it any more.
        raise InvalidInput(
            "the lease is being released because nobody used it, and only its name can be changed; book another one",
            code="lease_ended",
            data={"status": str(lease.status)},
        )


def busy(lease: Lease) -> WrongState:
    """Return why a lease cannot be changed at present: Busy if that is worth waiting for."""
    if lease.status is LeaseStatus.WAITING:
        sentence = "the lease waits for its turn, and cannot be changed; delete it and ask for another, or wait"
        return WrongState(sentence, code="lease_waits", data={"status": str(lease.status)})
    if lease.status is LeaseStatus.TIMED_OUT:
        made = lease.kind is LeaseKind.BEST_EFFORT
        why = "no room was made for the lease in time" if made else "the lease has waited for its turn in vain"
        sentence = f"{why}; delete it, and ask for another"
        return WrongState(sentence, code="lease_ended", data={"status": str(lease.status)})
    if lease.status is LeaseStatus.IN_PROGRESS:
        # Nobody waits for that: it may take an hour.
        sentence = f"room is being made for lease {lease.id}; it can be changed when it has started, or delete it"
        return WrongState(sentence, code=Busy.code, data={"status": str(lease.status)})
    state = "being handed over" if lease.is_undecided else lease.status
    sentence = f"lease {lease.id} is {state}; it can be changed when that has finished"
    failing = any(e.status is EventStatus.IN_PROGRESS and e.attempts for e in lease.events)
    passing = lease.status not in (LeaseStatus.DELETING, LeaseStatus.TERMINATING)
    if passing and not failing:
        return Busy(sentence, lease.project_id)
    return WrongState(sentence, code=Busy.code, data={"status": str(lease.status)})


def _end_reason(lease: Lease, window: Window, now: datetime) -> EndReason | None:
    """Return why a lease with a new window is being ended: somebody ends it at once, or it goes on after all."""
    if window.end <= now < lease.window.end:
        return EndReason.ENDED_EARLY
    goes_on = lease.end_reason is EndReason.ENDED_EARLY and window.end > now
    return None if goes_on else lease.end_reason


def changed_by_itself(lease: Lease) -> PartOfSeries | None:
    """Return which occurrence of a series a lease is that somebody changes by itself."""
    return None if lease.series is None else replace(lease.series, changed=True)


def _changed_in_content(before: Lease, after: Lease) -> list[str]:
    """Return the reservations in use that ask for something else than before."""
    return [
        old.id
        for old in before.reservations
        if old.status is ReservationStatus.ACTIVE
        and (new := after.reservation(old.id)) is not None
        and differ_beside_action(old.parameters, new.parameters)
    ]


def changed_in_use(after: Lease, before: Collection[Allocation], planned: Collection[Allocation]) -> frozenset[str]:
    """Return the reservations in use that get other resources, or another count or size on one, than they hold."""
    held, wanted = _by_reservation(before), _by_reservation(planned)
    return frozenset(
        r.id
        for r in after.reservations
        if r.status is ReservationStatus.ACTIVE and held.get(r.id, {}) != wanted.get(r.id, {})
    )


def _by_reservation(allocations: Collection[Allocation]) -> Mapping[str, Mapping[int, tuple[int, Amounts | None]]]:
    found: dict[str, dict[int, tuple[int, Amounts | None]]] = {}
    for each in allocations:
        found.setdefault(each.reservation_id, {})[each.resource_id] = (each.count, each.per_instance)
    return found
