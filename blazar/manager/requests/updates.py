# SPDX-License-Identifier: Apache-2.0
"""Changes of a lease.

A change that only affects the calendar is one transaction. A change that also needs the cloud (a reservation in use
gets more hosts, one that has not started another flavor), or that an enforcement service must accept, is booked first,
with the lease UPDATING and an event with the saved state; if the cloud or the service fails, or the manager dies, the
saved state is restored. Meanwhile the lease holds both its old and its new resources, so that no other lease can take
those that completing or undoing the change needs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from blazar.context import scope
from blazar.enforcement import Occasion
from blazar.manager.common.claims import Claim
from blazar.manager.common.notifications import UPDATED, WARNING_OFF
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.cloud_change import CloudChanges
from blazar.manager.events.starting import start_in_use
from blazar.manager.lease import dates, lifecycle, timetable
from blazar.manager.lease.booking import Booking, PlacementRequest
from blazar.manager.lease.tasks import tasks_with
from blazar.manager.outbox.enforcing import EnforcementCheck
from blazar.manager.outbox.outbox import Outbox
from blazar.model.demand import Allocation, Plan
from blazar.model.errors import (
    Conflict,
    Contention,
    InvalidInput,
    StaleLease,
    WrongState,
)
from blazar.model.lease import (
    Content,
    EventStatus,
    Lease,
    LeaseStatus,
    Reservation,
    ReservationStatus,
)
from blazar.model.requests import Actor, LeaseChange
from blazar.model.requirements import Requirement, keys
from blazar.model.usage import OutboxMessage
from blazar.resources.actions import differ_beside_action, names_action
from blazar.resources.base import Given, ResolutionNeeded, Task, Unusable, UsageNeeded

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Draft:
    """The lease after a change, and whether its resources have to be planned again."""

    after: Lease
    replan: bool
    warning_off: bool
    to_prepare: frozenset[str]
    """Reservations that have not started and whose cloud objects from before the start have to be made again."""


@dataclass(frozen=True, slots=True)
class _Nothing:
    """A change that does not touch the calendar: a new name, or nothing."""

    lease: Lease
    after: Lease


@dataclass(frozen=True, slots=True)
class _Change:
    """A decided change: lease and allocations before and after, and the reservations in use that get ``new`` ones."""

    lease: Lease
    draft: _Draft
    plan: Plan
    tasks: tuple[Task, ...]
    allocations: tuple[Allocation, ...]
    new: frozenset[str]

    @property
    def needs_cloud(self) -> bool:
        """Tell whether something in the cloud has to change with the lease."""
        return bool(self.new or self.draft.to_prepare)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A requested change, with what was read from the cloud for it, by reservation."""

    change: LeaseChange
    given: Mapping[str, Given]
    usage: Mapping[str, Mapping[int, int]]


class Updates:
    """Changes leases."""

    def __init__(self, runtime: Runtime, booking: Booking, changes: CloudChanges, outbox: Outbox) -> None:
        self._runtime = runtime
        self._enforcement = outbox.enforcement
        self._outbox = outbox
        self._booking = booking
        self._changes = changes

    def update(self, lease_id: str, change: LeaseChange) -> Lease:
        """Change a lease, all or nothing. NotFound, InvalidInput, WrongState, NotEnoughResources, CloudError."""
        enforcement_check = EnforcementCheck(self._enforcement, self._runtime.store, self._runtime.clock)
        claim = self._runtime.claims.new()

        def check(found: _Change | _Nothing) -> None:
            # A new name needs no check: it uses no resources.
            if isinstance(found, _Change):
                lease = found.lease
                self._outbox.catch_up(lease.id)
                enforcement_check.check(
                    _caller(change, lease), found.draft.after, found.plan.allocations, before=(lease, found.allocations)
                )

        with scope(limit=self._runtime.settings.request_limit):
            found, saved = self._decided(
                lease_id, change, enforcement_check, check if self._enforcement.enabled else None, claim
            )
            if isinstance(found, _Change) and self._in_steps(found):
                with self._runtime.claims.held(claim):
                    saved = self._carry_out(saved, found, change, claim)
        if isinstance(found, _Change):
            self._outbox.wake()
            if found.draft.warning_off:
                self._runtime.notifier.notify(WARNING_OFF, saved)
            self._runtime.notifier.notify(UPDATED, saved)
        return saved

    def _decided(
        self,
        lease_id: str,
        change: LeaseChange,
        enforcement_check: EnforcementCheck,
        check: Callable[[_Change | _Nothing], None] | None,
        claim: Claim,
    ) -> tuple[_Change | _Nothing, Lease]:
        """Decide and write; if the decision needs the usage in the cloud, read that in between, outside the turn."""
        asked = _Asked(change, {each.id: Given(each.parameters) for each in change.reservations}, {})
        # Each reservation is read at most once. All are resolved at once.
        for _ in range(len(change.reservations) + 2):
            try:
                return self._decided_with(lease_id, asked, enforcement_check, check, claim)
            except ResolutionNeeded:
                asked = replace(asked, given=self._resolved(lease_id, asked.given))
            except UsageNeeded as needed:
                reservation = needed.task.reservation
                in_use = self._runtime.type_of(reservation).in_use(needed.task)
                asked = replace(asked, usage={**asked.usage, reservation.id: in_use})
        raise Contention(f"the reservations of lease {lease_id} kept changing; please retry")

    def _decided_with(
        self,
        lease_id: str,
        asked: _Asked,
        enforcement_check: EnforcementCheck,
        check: Callable[[_Change | _Nothing], None] | None,
        claim: Claim,
    ) -> tuple[_Change | _Nothing, Lease]:
        return self._booking.until_it_holds(
            lambda attempt: self._decide(lease_id, asked, attempt),
            lambda found: (found, self._commit(found, asked.change, enforcement_check, claim)),
            check,
        )

    def _resolved(self, lease_id: str, given: Mapping[str, Given]) -> Mapping[str, Given]:
        """Complete the parameters of a change from the cloud, outside the turn of a booking."""
        lease = self._runtime.store.leases.one(lease_id)
        known = {r.id: r for r in lease.reservations if r.id in given}
        resolved = {
            id_: self._runtime.type_of(r).resolve(given[id_], project_id=lease.project_id, reservation=r)
            for id_, r in known.items()
        }
        return {**given, **resolved}

    def _decide(self, lease_id: str, asked: _Asked, attempt: int) -> _Change | _Nothing:
        change = asked.change
        # Before the lease is read: a claim that had not ended then may have been renewed since.
        now = self._runtime.clock.now()
        lease = self._runtime.store.leases.one(lease_id)
        if change.empty:
            return _Nothing(lease, lease)
        if lease.status not in lifecycle.STABLE:
            raise busy(lease)
        if change.rename_only:
            return _Nothing(lease, replace(lease, name=change.name or "", updated_at=now))
        if lease.status is LeaseStatus.TERMINATED:
            raise InvalidInput("the lease has ended; only its name can be changed")
        if lifecycle.live_claim(lease, now) is not None:
            # An action before the end holds its claim for a moment only: retry shortly.
            raise StaleLease(f"lease {lease.id} is being worked on")
        allocations = self._runtime.store.calendar.of_lease(lease.id)
        tasks = tuple(
            replace(task, in_use=asked.usage.get(task.reservation.id))
            for task in tasks_with(self._runtime.store, lease, allocations)
        )
        draft = self._draft(lease, tasks, asked, now)
        if draft.replan and draft.after.window.end <= now:
            # For a window in the past it could get resources that other leases use now.
            raise InvalidInput(
                f"the lease ended at {draft.after.window.end:%Y-%m-%d %H:%M:%S} and gets no other resources; "
                f"give an end_date in the future to keep it"
            )
        private = change.asked_by is not None and change.asked_by.operator
        plan = self._plan(lease, draft, tasks, allocations, private=private, now=now, attempt=attempt)
        new = _changed_in_use(draft.after, tasks, plan.allocations)
        return _Change(lease, draft, plan, tasks, allocations, new)

    def _commit(
        self, found: _Change | _Nothing, change: LeaseChange, enforcement_check: EnforcementCheck, claim: Claim
    ) -> Lease:
        """Write a decided change, or its beginning if it is done in steps. StaleLease, StaleCalendar."""
        now = self._runtime.clock.now()
        if isinstance(found, _Nothing):
            if found.after is found.lease:
                return found.lease
            return self._runtime.store.leases.save(found.lease, found.after, at=now)
        if self._in_steps(found):
            return self._changes.begin(found.lease, found.allocations, found.plan, claim, use=enforcement_check.use)
        after, plan = found.draft.after, found.plan
        return self._runtime.store.calendar.rebook(
            found.lease,
            after,
            plan,
            at=now,
            use=enforcement_check.use,
            messages=self._outbox.of(
                Occasion.UPDATED,
                after,
                plan.allocations,
                by=_caller(change, after),
                before=(found.lease, found.allocations),
            ),
        )

    def _in_steps(self, found: _Change) -> bool:
        """Tell whether a change can fail after it is booked: in the cloud, or because a service rejects it."""
        return found.needs_cloud or self._enforcement.must_accept(Occasion.UPDATED, found.lease.project_id)

    def _draft(self, lease: Lease, tasks: Collection[Task], asked: _Asked, now: datetime) -> _Draft:
        change = asked.change
        window = dates.changed_window(lease.window, change.start, change.end, now)
        parameters = self._new_parameters(lease, asked)
        rearmed = timetable.rearmed(lease, window, now)
        reservations = tuple(
            replace(r, parameters=parameters[r.id], updated_at=now) if parameters[r.id] != r.parameters else r
            for r in rearmed.reservations
        )
        newly_set = any(names_action(each.parameters) for each in change.reservations)
        saves = any(self._runtime.type_of(r).action(r.parameters).saves_work for r in reservations)
        events, warning_off = timetable.changed_events(
            rearmed, window, change.before_end, now, newly_set=newly_set, saves=saves, rearmed=rearmed is not lease
        )
        after = replace(
            rearmed,
            name=lease.name if change.name is None else change.name,
            window=window,
            reservations=reservations,
            events=events,
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
        return _Draft(after, replan, warning_off, to_prepare)

    def _requirement(self, reservation: Reservation) -> Requirement:
        return self._runtime.type_of(reservation).requirement(reservation.parameters)

    def _must_prepare_again(self, after: Reservation, before: Reservation | None) -> bool:
        return before is not None and self._runtime.type_of(after).must_prepare_again(
            before.parameters, after.parameters
        )

    def _new_parameters(self, lease: Lease, asked: _Asked) -> Mapping[str, Content]:
        parameters = {r.id: r.parameters for r in lease.reservations}
        for each in asked.change.reservations:
            reservation = lease.reservation(each.id)
            if reservation is None:
                raise InvalidInput(
                    f"reservations: the lease has no reservation {each.id[:80]}; reservations can be changed, but "
                    f"neither added nor removed"
                )
            if each.resource_type not in (None, reservation.resource_type):
                raise Conflict(
                    f"reservation {reservation.id} is of type {reservation.resource_type}; "
                    "resource_type cannot be changed"
                )
            kind = self._runtime.type_of(reservation)
            parameters[each.id] = kind.changed(parameters[each.id], asked.given[each.id])
        return parameters

    def _plan(
        self,
        lease: Lease,
        draft: _Draft,
        tasks: Collection[Task],
        allocations: tuple[Allocation, ...],
        *,
        private: bool,
        now: datetime,
        attempt: int,
    ) -> Plan:
        after = draft.after
        if not draft.replan:
            # The same resources for a part of their window: no need to plan.
            return Plan(tuple(replace(a, window=after.window) for a in allocations))
        placement_requests = []
        for task in tasks:
            reservation = after.reservation(task.reservation.id)
            assert reservation is not None
            # With the new status (a failed reservation is pending again), and the old parameters.
            was = replace(task, reservation=replace(task.reservation, status=reservation.status))
            kind = self._runtime.type_of(reservation)
            # A reservation may keep using properties that were hidden since it was granted.
            catalog = self._runtime.store.resources.catalog(kind.kind)
            granted = keys(self._requirement(task.reservation)) & catalog.keys(private=True)
            known = catalog.keys(private=private) | granted
            demand = kind.demand_again(was, reservation.parameters, known=known)
            # Within its current window a lease keeps its resources even on a host that has shrunk since.
            placement_requests.append(
                PlacementRequest(reservation.id, replace(demand, entitled=lease.window.covers(after.window)))
            )
        plan = self._booking.plan(
            lease.id, after.window, placement_requests, now=now, attempt=attempt, project_id=lease.project_id
        )
        held = {a.assignment for a in allocations}
        if lease.window.covers(after.window):
            # New requirements must still hold at the write on kept resources, too.
            changed = {
                task.reservation.id
                for task in tasks
                if (r := after.reservation(task.reservation.id))
                and self._requirement(task.reservation) != self._requirement(r)
            }
            fresh = {a.resource_id for a in plan.allocations if a.reservation_id in changed or a.assignment not in held}
            return replace(plan, generations={i: g for i, g in plan.generations.items() if i in fresh})
        return plan

    def _carry_out(self, updating: Lease, found: _Change, change: LeaseChange, claim: Claim) -> Lease:
        """Make the change in the cloud, and write the changed lease; or restore the saved state."""
        event = lifecycle.update_of(updating)
        wanted = found.draft.after
        with self._changes.undone_on_failure(updating, event, claim):
            for task in tasks_with(self._runtime.store, wanted, found.plan.allocations):
                if task.reservation.id in found.new:
                    self._assign(task)
            prepared = [self._prepared(wanted, r) for r in wanted.reservations if r.id in found.draft.to_prepare]
        ready = lifecycle.with_reservations(wanted, prepared)
        now = self._runtime.clock.now()
        messages = self._outbox.planned(
            Occasion.UPDATED,
            _settled(updating, ready, event.id, now),
            found.plan.allocations,
            by=_caller(change, wanted),
            before=(found.lease, found.allocations),
        )
        if any(message.held for message in messages):
            updating, messages = self._accepted(updating, messages, claim)

        def write(current: Lease) -> Lease:
            return self._runtime.store.calendar.rebook(
                current,
                _settled(current, ready, event.id, now),
                Plan(found.plan.allocations),
                at=now,
                messages=messages,
            )

        return self._changes.finish(updating, event.id, claim, write, what="changed")

    def _prepared(self, lease: Lease, reservation: Reservation) -> Reservation:
        """Make the cloud objects that must exist before the start of a reservation, from its new parameters."""
        # No resources are read: objects from before the start belong to the reservation as a whole.
        cloud_ids = self._runtime.type_of(reservation).prepare(Task(lease, reservation, ()))
        return replace(reservation, cloud_ids=cloud_ids, unassigned=frozenset())

    def _assign(self, task: Task) -> None:
        """Assign the resources of a reservation, without those that were left out before and have not recovered."""
        try:
            start_in_use(self._runtime, task)
        except Unusable as error:
            raise Conflict(f"{error}; retry later") from error

    def _accepted(
        self, updating: Lease, held: tuple[OutboxMessage, ...], claim: Claim
    ) -> tuple[Lease, tuple[OutboxMessage, ...]]:
        """Send the change to the filters that must accept it, or restore the saved state if they do not.

        Return the lease as saved, and the outbox messages to write with the change. The messages are written before
        they are sent: so a manager that undoes the change knows that it may have been accepted.
        """

        def note(current: Lease) -> Lease:
            return self._runtime.store.leases.save(current, current, at=self._runtime.clock.now(), messages=held)

        updating = self._changes.finish(updating, lifecycle.update_of(updating).id, claim, note, what="changed")
        with self._changes.undone_on_failure(updating, lifecycle.update_of(updating), claim):
            return updating, self._outbox.commit(held)


def _settled(updating: Lease, wanted: Lease, event_id: str, now: datetime) -> Lease:
    """Return the ``updating`` lease with the wanted changes, and the event of the change settled."""
    theirs = {e.id: e for e in wanted.events if e.id != event_id}
    known = {e.id for e in updating.events}
    events = (*(theirs.get(e.id, e) for e in updating.events), *(e for e in wanted.events if e.id not in known))
    changed = replace(updating, name=wanted.name, window=wanted.window, reservations=wanted.reservations, events=events)
    event = next(e for e in events if e.id == event_id)
    return lifecycle.settle(changed, event, now=now)


class Busy(WrongState):
    """Work on a lease of this project is in progress, and should finish in a moment."""

    def __init__(self, message: str, project_id: str) -> None:
        super().__init__(message)
        self.project_id = project_id


def busy(lease: Lease) -> WrongState:
    """Return why a lease cannot be changed at present: Busy if that is worth waiting for."""
    sentence = f"lease {lease.id} is {lease.status}; it can be changed when that has finished"
    failing = any(e.status is EventStatus.IN_PROGRESS and e.attempts for e in lease.events)
    passing = lease.status not in (LeaseStatus.DELETING, LeaseStatus.TERMINATING)
    return Busy(sentence, lease.project_id) if passing and not failing else WrongState(sentence)


def _caller(change: LeaseChange, lease: Lease) -> Actor:
    return change.asked_by or Actor(lease.user_id, lease.project_id)


def _changed_in_use(after: Lease, tasks: Collection[Task], planned: Collection[Allocation]) -> frozenset[str]:
    """Return the reservations in use that get other resources, or another count on one, than they hold."""
    counts: dict[str, dict[int, int]] = {task.reservation.id: {} for task in tasks}
    for allocation in planned:
        counts[allocation.reservation_id][allocation.resource_id] = allocation.count
    active = {r.id for r in after.reservations if r.status is ReservationStatus.ACTIVE}
    return frozenset(
        task.reservation.id
        for task in tasks
        if task.reservation.id in active and counts[task.reservation.id] != dict(task.counts)
    )
