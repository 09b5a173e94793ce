# SPDX-License-Identifier: Apache-2.0
"""Decisions on changes of a lease: what it is after a change, and which resources it gets; nothing is written."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cache

from blazar.manager.booking.booking import PlacementRequest, Selectable
from blazar.manager.booking.host_search import RepackedPlan
from blazar.manager.booking.lease_changes import (
    ChangeDraft,
    ChangeQuestion,
    DecidedChange,
    RequestedChange,
    Unchanged,
    find_changed_in_content,
    find_changed_in_use,
)
from blazar.manager.booking.quotas import QuotasNeeded, find_growth
from blazar.manager.booking.repacking import plan_repacked
from blazar.manager.booking.replanning import check_not_moving
from blazar.manager.booking.unique_names import check_names
from blazar.manager.changing.granted import entitle, find_granted, resources_in_use
from blazar.manager.changing.named_hosts import mark_given_up, reduce_count
from blazar.manager.common.busy_leases import Busy
from blazar.manager.common.runtime import Runtime, with_capabilities
from blazar.manager.leases import confirming, dates, lifecycle, timetable
from blazar.manager.leases.references import Referrer, check_changed_references
from blazar.manager.queue import waiting_leases
from blazar.model.base.errors import ClaimedLease, Conflict, InvalidInput, StaleLease, WrongState, pointing_at
from blazar.model.base.window import Window
from blazar.model.calendar.allocations import Allocation, AllocationPlan
from blazar.model.leases import reminders
from blazar.model.leases.lease import Lease, PartOfSeries
from blazar.model.leases.requests import LeaseChange
from blazar.model.leases.reservation import Content, Reservation
from blazar.model.leases.states import EndReason, EventStatus, LeaseKind, LeaseStatus, ReservationStatus
from blazar.model.resources.requirements import Requirement
from blazar.resources.contract.actions import differ_beside_action, names_action
from blazar.resources.contract.values import Task


class ChangeDecisions:
    """Decides on changes, from the lease and the calendar as they are."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def decide(self, lease_id: str, asked: RequestedChange, attempt: int) -> DecidedChange | Unchanged:
        """Return what a change leads to. InvalidInput, WrongState, StaleLease; ResolutionNeeded, UsageNeeded,
        QuotasNeeded.
        """
        change = asked.change
        # Before the lease is read: a claim that had not ended then may have been renewed since.
        now = self._runtime.clock.now()
        lease = self._runtime.store.leases.one(lease_id)
        lease.check_revision(change.revisions)
        if change.is_empty:
            return Unchanged(lease, lease)
        if lease.status not in lifecycle.STABLE or lease.is_undecided or lease.is_unconfirmed:
            raise busy_error(lease)
        if change.needs_no_plan:
            return _change_words(lease, change, now)
        check_not_ended(lease)
        if lifecycle.live_claim(lease, now) is not None:
            # An action before the end holds its claim for a moment only: retry shortly.
            raise ClaimedLease(f"lease {lease.id} is being worked on")
        allocations, tasks = self._held(lease, asked)
        draft = self._draft(lease, tasks, asked, now)
        if change.exact and draft.changes_nothing(lease):
            return Unchanged(lease, lease)
        places = {c.id: f"/reservations/{number}" for number, c in enumerate(change.reservations)}
        if in_use := find_changed_in_content(lease, draft.after):
            check_not_moving(self._runtime, lease, allocations, in_use, places)
        needed = find_growth(self._runtime, lease, draft.after, places, now) if places else None
        if needed is not None and needed != asked.quotas:
            raise QuotasNeeded(needed)
        if not lease.window.covers(draft.after.window):
            check_names(self._runtime, draft.after)
        found = self._plan(lease, draft, tasks, allocations, asked, now=now, attempt=attempt)
        plan = found.plan
        if change.advances is not None:
            _check_no_less(lease, allocations, plan.allocations)
        new = find_changed_in_use(draft.after, allocations, plan.allocations)
        return DecidedChange(lease, draft, plan, tasks, allocations, new, found.moved)

    def question(self, lease: Lease, asked: RequestedChange) -> ChangeQuestion:
        """Return what a change asks of the calendar, to look for free time for it. As for ``decide``."""
        now = self._runtime.clock.now()
        if lease.status not in lifecycle.STABLE or lease.is_undecided or lease.is_unconfirmed:
            raise busy_error(lease)
        check_not_ended(lease)
        allocations, tasks = self._held(lease, asked)
        draft = self._draft(lease, tasks, asked, now)
        requests = tuple(self._requests(draft.after, tasks, asked.change))
        return ChangeQuestion(lease, draft.after, draft.replan, requests, allocations)

    def _held(self, lease: Lease, asked: RequestedChange) -> tuple[tuple[Allocation, ...], tuple[Task, ...]]:
        allocations = self._runtime.store.calendar.of_lease(lease.id)
        tasks = mark_given_up(self._runtime, lease, self._runtime.tasks(lease, allocations), asked.change)
        return allocations, tuple(replace(task, in_use=asked.usage.get(task.reservation.id)) for task in tasks)

    def _draft(self, lease: Lease, tasks: Collection[Task], asked: RequestedChange, now: datetime) -> ChangeDraft:
        change = asked.change
        window = dates.changed_window(lease.window, change.start, change.end, now, exact=change.exact)
        lead = self._runtime.lead_before_end(lease)
        before_end = dates.resolve_before_end(change.before_end, window, lead if change.resets_before_end else None)
        parameters = self._new_parameters(lease, tasks, asked)
        rearmed = timetable.rearm(lease, window, now)
        reservations = tuple(
            replace(r, parameters=parameters[r.id], updated_at=now) if parameters[r.id] != r.parameters else r
            for r in rearmed.reservations
        )
        newly_set = any(names_action(reservation.parameters) for reservation in change.reservations)
        saves = any(self._runtime.type_of(r).action(r.parameters).saves_work for r in reservations)
        events, warning_off = timetable.change_events(
            rearmed, window, before_end, now, lead=lead, newly_set=newly_set, saves=saves, rearmed=rearmed is not lease
        )
        after = replace(
            rearmed,
            name=lease.name if change.name is None else change.name,
            window=window,
            reservations=reservations,
            events=events,
            extend=dates.changed_extension(lease, change, window.end, now),
            reminders=reminders.accept(change.reminders, window, now, lease.reminders),
            keep_hosts=_keeps_hosts(lease, change),
            series=mark_changed_by_itself(lease),
            wait=waiting_leases.keep_place(lease, change, window),
            end_reason=_end_reason(lease, window, now),
            updated_at=now,
        )
        replan = (
            not lease.window.covers(window)
            or rearmed is not lease
            or any(differ_beside_action(task.reservation.parameters, parameters[task.reservation.id]) for task in tasks)
        )
        if replan and window.end <= now:
            # For a window in the past it could get resources that other leases use now.
            raise _ended_error(lease, window)
        return ChangeDraft(after, replan, warning_off, self._to_prepare(lease, after))

    def _requirement(self, reservation: Reservation) -> Requirement:
        return self._runtime.type_of(reservation).requirement(reservation.parameters)

    def _to_prepare(self, before: Lease, after: Lease) -> frozenset[str]:
        """Return the reservations for which a change before their start changes what was made for them."""
        known = {r.id: r.parameters for r in before.reservations}
        return frozenset(
            r.id
            for r in after.reservations
            if r.status is ReservationStatus.PENDING
            and r.id in known
            and self._runtime.type_of(r).must_prepare_again(known[r.id], r.parameters)
        )

    def _new_parameters(self, lease: Lease, tasks: Collection[Task], asked: RequestedChange) -> Mapping[str, Content]:
        parameters = {r.id: r.parameters for r in lease.reservations}
        left = {t.reservation.id: len(t.resources) - len(t.given_up) for t in tasks if t.given_up}
        for number, change in enumerate(asked.change.reservations):
            reservation = lease.reservation(change.id)
            if reservation is None:
                raise InvalidInput(
                    f"reservations: the lease has no reservation {change.id[:80]}; reservations can be changed, but "
                    f"neither added nor removed",
                    code="unknown_reference",
                    at=f"/reservations/{number}/id",
                )
            if reservation.parent is not None:
                raise InvalidInput(
                    f"reservation {reservation.id} is a part of reservation {reservation.parent} and changes with "
                    "that; leave it out",
                    at=f"/reservations/{number}/id",
                )
            if change.resource_type not in (None, reservation.resource_type):
                raise Conflict(
                    f"reservation {reservation.id} is of type {reservation.resource_type}; "
                    "resource_type cannot be changed",
                    at=f"/reservations/{number}/resource_type",
                )
            kind = self._runtime.type_of(reservation)
            with pointing_at(f"/reservations/{number}"):
                changed = kind.changed(parameters[change.id], asked.given[change.id])
                if change.id in left:
                    changed = reduce_count(kind, reservation, changed, change, left[change.id])
                parameters[change.id] = changed
            if reservation.status is ReservationStatus.ERROR and parameters[change.id] != reservation.parameters:
                # What a start that failed has left in the cloud is returned at the end, by what the reservation has.
                raise WrongState(
                    f"reservation {reservation.id} could not be started, and gets no other resources; "
                    f"try again with new dates alone, or delete the lease and book another one",
                    data={"status": str(reservation.status)},
                    at=f"/reservations/{number}",
                )
        self._check_references(lease, parameters, {change.id: n for n, change in enumerate(asked.change.reservations)})
        return parameters

    def _check_references(self, lease: Lease, parameters: Mapping[str, Content], places: Mapping[str, int]) -> None:
        """Raise InvalidInput for references of changed reservations that cannot be kept."""
        check_changed_references(
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
        draft: ChangeDraft,
        tasks: Collection[Task],
        allocations: tuple[Allocation, ...],
        asked: RequestedChange,
        *,
        now: datetime,
        attempt: int,
    ) -> RepackedPlan:
        after, change = draft.after, asked.change
        if not draft.replan:
            # The same resources for a part of their window: no need to plan.
            return RepackedPlan(AllocationPlan(tuple(replace(a, window=after.window) for a in allocations)))
        # Within its current window a lease keeps its resources even on a host that has shrunk since.
        entitled = lease.window.covers(after.window)
        requests = self._requests(after, tasks, change)
        found = plan_repacked(
            self._runtime,
            lease,
            after.window,
            [entitle(request, allocations) for request in requests] if entitled else requests,
            # Others may be needed by those that are moved, or have their turn, after it.
            selectable=Selectable(
                lease.project_id,
                excluded=asked.avoided - resources_in_use(lease, allocations),
                only=None if change.advances is None else frozenset(change.advances),
            ),
            now=now,
            attempt=attempt,
        )
        if not entitled:
            return found
        held, plan, changed = {a.assignment for a in allocations}, found.plan, self._with_new_requirements(after, tasks)
        fresh = {a.resource_id for a in plan.allocations if a.reservation_id in changed or a.assignment not in held}
        fresh |= {a.resource_id for write in found.moved for a in write.allocations}
        must_be = {id_: generation for id_, generation in plan.generations.items() if id_ in fresh}
        return replace(found, plan=replace(plan, generations=must_be))

    def _requests(self, after: Lease, tasks: Collection[Task], change: LeaseChange) -> list[PlacementRequest]:
        """Return what each reservation asks of the calendar after the change."""
        private = change.asked_by is not None and change.asked_by.operator
        places = {c.id: f"/reservations/{number}" for number, c in enumerate(change.reservations)}
        # Read once for all reservations of a kind: each reading asks for the version.
        catalog_of = cache(self._runtime.store.resources.catalog)
        requests = []
        for task in tasks:
            reservation = after.reservation(task.reservation.id)
            assert reservation is not None
            # With the new status (a failed reservation is pending again), and the old parameters.
            was = replace(task, reservation=replace(task.reservation, status=reservation.status))
            kind = self._runtime.type_of(reservation)
            if kind.has("children"):
                # What it takes, its parts take.
                continue
            catalog = catalog_of(kind.kind)
            granted = find_granted(kind, task.reservation, reservation, catalog)
            known = (catalog.property_names() if private else catalog.property_names_for(after.project_id)) | granted
            with pointing_at(places.get(reservation.id)):
                complete = with_capabilities(was, catalog)
                demand = kind.demand_again(complete, reservation.parameters, known=known)
            requests.append(PlacementRequest(reservation.id, demand))
        return requests

    def _with_new_requirements(self, after: Lease, tasks: Collection[Task]) -> frozenset[str]:
        """Return the reservations with changed requirements: these must still hold at the write on kept resources."""
        return frozenset(
            task.reservation.id
            for task in tasks
            if (r := after.reservation(task.reservation.id))
            and self._requirement(task.reservation) != self._requirement(r)
        )


def _change_words(lease: Lease, change: LeaseChange, now: datetime) -> Unchanged:
    """Return a lease with another name or other reminders, that goes on by itself or keeps its hosts, or no longer.

    It has all that it had.
    """
    if change.name is None:
        check_not_ended(lease)
    name = lease.name if change.name is None else change.name
    extend = dates.changed_extension(lease, change, lease.window.end, now)
    if (change.stops_extending or change.extend_until is not None) and extend != lease.extend:
        # Beside a new name, which a lease that has ended may still get.
        check_not_ended(lease)
    reminding = reminders.accept(change.reminders, lease.window, now, lease.reminders)
    if reminding != lease.reminders:
        check_not_ended(lease)
    after = replace(lease, name=name, extend=extend, reminders=reminding, keep_hosts=_keeps_hosts(lease, change))
    if change.exact and after == lease:
        return Unchanged(lease, lease)
    return Unchanged(lease, replace(after, series=mark_changed_by_itself(lease), updated_at=now))


def _keeps_hosts(lease: Lease, change: LeaseChange) -> bool:
    """Return whether a lease keeps its hosts after a change. WrongState if it has begun: it has them by then."""
    if change.keep_hosts in (None, lease.keep_hosts):
        return lease.keep_hosts
    check_not_ended(lease)
    if lease.status is not LeaseStatus.PENDING:
        raise WrongState(
            "the lease has begun: its hosts are its own until its end, and that is not to be changed",
            data={"status": str(lease.status)},
            at="/keep_hosts",
        )
    return not lease.keep_hosts


def _ended_error(lease: Lease, window: Window) -> InvalidInput:
    return InvalidInput(
        f"the lease ended at {window.end:%Y-%m-%d %H:%M:%S} and gets no other resources; "
        f"give an end_date in the future to keep it",
        code="lease_ended",
        data={"status": str(lease.status)},
    )


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


def busy_error(lease: Lease) -> WrongState:
    """Return why a lease cannot be changed at present: Busy if that is worth waiting for."""
    if lease.status is LeaseStatus.WAITING:
        sentence = "the lease waits for its turn, and cannot be changed; delete it and ask for another, or wait"
        return WrongState(sentence, code="lease_waits", data={"status": str(lease.status)})
    if lease.status is LeaseStatus.PENDING and lease.is_unconfirmed:
        return confirming.refuse_unconfirmed(lease)
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


def mark_changed_by_itself(lease: Lease) -> PartOfSeries | None:
    """Return which occurrence of a series a lease is that somebody changes by itself."""
    return None if lease.series is None else replace(lease.series, changed=True)
