"""Changes of a lease.

A change that only moves promises is one transaction. A change that also needs the cloud (a reservation in use gets
more hosts) is booked first, with the lease UPDATING and an event that says what was there before; if the cloud fails,
or the manager dies, what was there before is restored. Meanwhile the lease holds both what it had and what it
is to get, so that neither the way forward nor the way back can be taken by somebody else.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from blazar.clouds.scope import scope
from blazar.enforcement import Enforcement, Occasion
from blazar.manager import dates, lifecycle
from blazar.manager.booking import Booking, Plan, Wish
from blazar.manager.claims import Claims
from blazar.manager.enforcing import Gate
from blazar.manager.flags import left_out
from blazar.manager.notices import Notices
from blazar.manager.notifications import UPDATED, WARNING_OFF, Notifier
from blazar.manager.settings import Settings
from blazar.manager.starting import doing_without, patiently
from blazar.manager.worker import Worker, memo_of
from blazar.model.clock import Clock
from blazar.model.demand import Allocation
from blazar.model.errors import (
    BlazarError,
    Conflict,
    Contention,
    InvalidInput,
    StaleLease,
    WrongState,
)
from blazar.model.lease import (
    Event,
    EventStatus,
    EventType,
    Lease,
    LeaseStatus,
    Parameters,
    Reservation,
    ReservationStatus,
)
from blazar.model.requests import Actor, LeaseChange, ReservationChange
from blazar.model.window import Window
from blazar.resources.actions import BEFORE_END, names_action
from blazar.resources.asked import asked_about
from blazar.resources.base import LookFirst, ResolveFirst, Unusable, Work
from blazar.store.store import Store

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Draft:
    """A lease as it is to be, and whether its allocations have to be found anew."""

    after: Lease
    replan: bool
    warning_off: bool
    prepare_anew: frozenset[str]
    """Reservations that have not started and for which something else must exist before their start now."""


@dataclass(frozen=True, slots=True)
class _Nothing:
    """A change by which nothing is promised: a new name, or not even that."""

    lease: Lease
    after: Lease


@dataclass(frozen=True, slots=True)
class _Change:
    """What was decided: the lease and its allocations as they are, as they are to be, and who gets more in use."""

    lease: Lease
    draft: _Draft
    plan: Plan
    works: tuple[Work, ...]
    allocations: tuple[Allocation, ...]
    new: frozenset[str]


class Updates:
    """Carries out changes."""

    def __init__(
        self,
        store: Store,
        worker: Worker,
        booking: Booking,
        notifier: Notifier,
        clock: Clock,
        claims: Claims,
        settings: Settings,
        enforcement: Enforcement,
        notices: Notices,
    ) -> None:
        self._enforcement = enforcement
        self._notices = notices
        self._store = store
        self._worker = worker
        self._booking = booking
        self._notifier = notifier
        self._clock = clock
        self._claims = claims
        self._settings = settings

    def update(self, lease_id: str, change: LeaseChange) -> Lease:
        """Change a lease wholly or not at all. NotFound, InvalidInput, WrongState, NotEnoughResources, CloudError."""
        gate = Gate(self._enforcement, self._store, self._clock)

        def check(found: _Change | _Nothing) -> None:
            # A new name is nobody's business: with it nothing is taken.
            if isinstance(found, _Change):
                lease = found.lease
                actor = change.asked_by or Actor(lease.user_id, lease.project_id)
                gate.check(actor, found.draft.after, found.plan.allocations, before=(lease, found.allocations))

        with self._claims, scope(limit=self._settings.request_limit):
            found, saved = self._decided(lease_id, change, gate, check if self._enforcement.enabled else None)
            if isinstance(found, _Change) and found.new:
                saved = self._grow(saved, found, change)
            elif isinstance(found, _Change) and found.draft.prepare_anew:
                saved = self._prepare_anew(saved, found.draft.prepare_anew)
        if isinstance(found, _Change):
            self._notices.wake()
            if found.draft.warning_off:
                self._notifier.notify(WARNING_OFF, saved)
            self._notifier.notify(UPDATED, saved)
        return saved

    def _decided(
        self,
        lease_id: str,
        change: LeaseChange,
        gate: Gate,
        check: Callable[[_Change | _Nothing], None] | None,
    ) -> tuple[_Change | _Nothing, Lease]:
        """Decide and write; where it depends on what is in use, look at that in between, while nobody waits."""
        seen: dict[str, Mapping[int, int]] = {}
        # Each look is at one reservation; none needs a second one. All are resolved at once.
        for _ in range(len(change.reservations) + 2):
            try:
                return self._decided_with(lease_id, change, gate, check, seen)
            except ResolveFirst:
                change = self._resolved(lease_id, change)
            except LookFirst as look:
                reservation = look.work.reservation
                seen[reservation.id] = self._worker.type_of(reservation).in_use(look.work)
        raise Contention(f"the reservations of lease {lease_id} are being used and changed too fast; please try again")

    def _decided_with(
        self,
        lease_id: str,
        change: LeaseChange,
        gate: Gate,
        check: Callable[[_Change | _Nothing], None] | None,
        seen: Mapping[str, Mapping[int, int]],
    ) -> tuple[_Change | _Nothing, Lease]:
        return self._booking.until_it_holds(
            lambda attempt: self._decide(lease_id, change, attempt, seen),
            lambda found: (found, self._commit(found, change, gate)),
            check,
        )

    def _resolved(self, lease_id: str, change: LeaseChange) -> LeaseChange:
        """Complete what a change gives by what the cloud knows, while nobody waits."""
        lease = self._store.lease(lease_id)

        def resolved(asked: ReservationChange) -> ReservationChange:
            reservation = lease.reservation(asked.id)
            if reservation is None:
                return asked
            kind = self._worker.type_of(reservation)
            given = kind.resolve(asked.parameters, project_id=lease.project_id, reservation=reservation)
            return replace(asked, parameters=given)

        return replace(change, reservations=tuple(map(resolved, change.reservations)))

    def _decide(
        self, lease_id: str, change: LeaseChange, attempt: int, seen: Mapping[str, Mapping[int, int]]
    ) -> _Change | _Nothing:
        lease = self._store.lease(lease_id)
        now = self._clock.now()
        if change.empty:
            return _Nothing(lease, lease)
        if lease.status not in lifecycle.STABLE:
            raise WrongState(f"lease {lease.id} is {lease.status}; it can be changed when that is over")
        if change.rename_only:
            return _Nothing(lease, replace(lease, name=change.name or "", updated_at=now))
        if lease.status is LeaseStatus.TERMINATED:
            raise InvalidInput("the lease has ended; only its name can be changed")
        if lifecycle.live_claim(lease, now) is not None:
            # What runs before the end takes a moment at a time: try again shortly.
            raise StaleLease(f"lease {lease.id} is being worked on")
        allocations = self._store.lease_allocations(lease.id)
        works = tuple(
            replace(work, in_use=seen.get(work.reservation.id)) for work in self._worker.works_with(lease, allocations)
        )
        draft = self._draft(lease, works, change, now)
        private = change.asked_by is not None and change.asked_by.operator
        plan = self._plan(lease, draft, works, allocations, private=private, now=now, attempt=attempt)
        new = _changed_in_use(draft.after, works, plan.allocations)
        return _Change(lease, draft, plan, works, allocations, new)

    def _commit(self, found: _Change | _Nothing, change: LeaseChange, gate: Gate) -> Lease:
        """Write what was decided, or the beginning of it if it needs the cloud. StaleLease, StaleCalendar."""
        now = self._clock.now()
        cleaning = self._settings.cleaning_time
        if isinstance(found, _Nothing):
            if found.after is found.lease:
                return found.lease
            return self._store.save(found.lease, found.after, at=now, cleaning=cleaning)
        if found.new:
            return self._begin_growth(found, now, gate)
        after, plan = found.draft.after, found.plan
        return self._store.rebook(
            found.lease,
            after,
            plan.allocations,
            plan.generations,
            plan.kinds,
            cleaning=cleaning,
            at=now,
            use=gate.use,
            notices=self._notices.of(Occasion.UPDATED, after, plan.allocations, by=change.asked_by),
        )

    def _draft(self, lease: Lease, works: Collection[Work], change: LeaseChange, now: datetime) -> _Draft:
        window = dates.changed_window(lease.window, change.start, change.end, now)
        parameters = self._new_parameters(lease, change)
        rearmed = _rearmed(lease, window, now)
        reservations = tuple(
            replace(r, parameters=parameters[r.id], updated_at=now) if parameters[r.id] != r.parameters else r
            for r in rearmed.reservations
        )
        anew = any(names_action(asked.parameters) for asked in change.reservations)
        saves = any(self._worker.type_of(r).action(r.parameters).saves_work for r in reservations)
        events, warning_off = _new_timetable(rearmed, window, change.before_end, now, anew=anew, saves=saves)
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
            or any(_asks_anew(work.reservation.parameters, parameters[work.reservation.id]) for work in works)
        )
        prepare_anew = frozenset(
            r.id
            for r in reservations
            if r.status is ReservationStatus.PENDING and self._prepares_anew(r, lease.reservation(r.id))
        )
        return _Draft(after, replan, warning_off, prepare_anew)

    def _prepares_anew(self, after: Reservation, before: Reservation | None) -> bool:
        return before is not None and self._worker.type_of(after).prepares_anew(before.parameters, after.parameters)

    def _new_parameters(self, lease: Lease, change: LeaseChange) -> Mapping[str, Parameters]:
        parameters = {r.id: r.parameters for r in lease.reservations}
        for asked in change.reservations:
            reservation = lease.reservation(asked.id)
            if reservation is None:
                raise InvalidInput(
                    f"reservations: the lease has no reservation {asked.id[:80]}; reservations can be changed, but "
                    f"neither added nor removed"
                )
            if asked.resource_type not in (None, reservation.resource_type):
                raise Conflict(
                    f"reservation {reservation.id} is of type {reservation.resource_type}; that can not be changed"
                )
            kind = self._worker.type_of(reservation)
            parameters[asked.id] = kind.changed(parameters[asked.id], asked.parameters)
        return parameters

    def _plan(
        self,
        lease: Lease,
        draft: _Draft,
        works: Collection[Work],
        allocations: tuple[Allocation, ...],
        *,
        private: bool,
        now: datetime,
        attempt: int,
    ) -> Plan:
        after = draft.after
        if not draft.replan:
            # The same resources for a part of the time that they are held anyway: nothing to look up, nothing to lose.
            return Plan(tuple(replace(a, window=after.window) for a in allocations), {}, {})
        wishes = []
        for work in works:
            reservation = after.reservation(work.reservation.id)
            assert reservation is not None
            # The state counts as it will be (a failed reservation is pending again), the parameters as they were.
            was = replace(work, reservation=replace(work.reservation, status=reservation.status))
            kind = self._worker.type_of(reservation)
            # What a reservation was granted with it keeps, also if its properties have been hidden since.
            inventory = self._store.inventory(kind.kind)
            granted = asked_about(work.reservation) & inventory.keys(private=True)
            known = inventory.keys(private=private) | granted
            demand = kind.demand_again(was, reservation.parameters, known=known)
            # For the time that it has already, nobody has to give up what a host that shrank can no longer bear.
            wishes.append(Wish(reservation.id, replace(demand, entitled=lease.window.covers(after.window))))
        plan = self._booking.plan(lease.id, after.window, wishes, now=now, attempt=attempt, project_id=lease.project_id)
        held = {_share(a) for a in allocations}
        if lease.window.covers(after.window):
            fresh = {a.resource_id for a in plan.allocations if _share(a) not in held}
            return replace(plan, generations={i: g for i, g in plan.generations.items() if i in fresh})
        return plan

    def _begin_growth(self, found: _Change, now: datetime, gate: Gate) -> Lease:
        lease, after, plan = found.lease, found.draft.after, found.plan
        updating = lifecycle.begin_update(
            lease,
            event_id=str(uuid.uuid4()),
            memo=memo_of(found.allocations),
            owner=self._claims.owner,
            now=now,
            until=self._claims.until(now),
        )
        both = Window(min(lease.window.start, after.window.start), max(lease.window.end, after.window.end))
        everything = union(found.allocations, plan.allocations, both)
        return self._store.rebook(
            lease,
            updating,
            everything,
            plan.generations,
            plan.kinds,
            cleaning=self._settings.cleaning_time,
            at=now,
            use=gate.use,
        )

    def _grow(self, updating: Lease, growth: _Change, change: LeaseChange) -> Lease:
        event = updating.events[-1]
        wanted = growth.draft.after
        try:
            for work in self._worker.works_with(wanted, growth.plan.allocations):
                if work.reservation.id not in growth.new:
                    continue
                self._start(work)
        except BlazarError as error:
            self._undo(updating, event, error.message)
            raise
        except BaseException:
            self._undo(updating, event, "internal error")
            raise
        now = self._clock.now()
        settled = lifecycle.settle(
            replace(updating, name=wanted.name, window=wanted.window, reservations=wanted.reservations),
            event,
            now=now,
        )
        theirs = {e.id: e for e in wanted.events}
        known = {e.id for e in settled.events}
        added = tuple(e for e in wanted.events if e.id not in known)
        after = replace(settled, events=(*(theirs.get(e.id, e) for e in settled.events), *added))
        notices = self._notices.of(Occasion.UPDATED, after, growth.plan.allocations, by=change.asked_by)
        try:
            return self._store.rebook(
                updating,
                after,
                growth.plan.allocations,
                {},
                growth.plan.kinds,
                cleaning=self._settings.cleaning_time,
                at=now,
                notices=notices,
            )
        except StaleLease:
            fresh = self._store.lease(updating.id, including_deleted=True)
            self._worker.perform(fresh, event.id)
            raise WrongState(f"lease {updating.id} was deleted while it was being changed") from None

    def _start(self, work: Work) -> None:
        """Hand resources over, but for what was left out before and has not recovered."""
        kind = self._worker.type_of(work.reservation)
        failed = frozenset(resource.id for resource in work.resources if resource.failure)
        try:
            patiently(kind, doing_without(work, left_out(work.reservation) & failed))
        except Unusable as error:
            # What is known to be of no use is not chosen the next time.
            self._store.set_failed(kind.kind, error.reasons, at=self._clock.now())
            raise Conflict(f"{error}; try again later") from error

    def _prepare_anew(self, lease: Lease, reservation_ids: Collection[str]) -> Lease:
        """Make what must exist before the start by the new parameters.

        The change is booked and stays, whatever happens here: the start makes what is missing or other.
        """
        prepared = []
        try:
            for reservation in lease.reservations:
                if reservation.id in reservation_ids:
                    artefacts = self._worker.type_of(reservation).prepare(Work(lease, reservation, ()))
                    if artefacts != reservation.artefacts:
                        prepared.append(replace(reservation, artefacts=artefacts))
        except BlazarError as error:
            LOG.warning("Lease %s was changed; what it needs is made at its start: %s", lease.id, error.message)
        if not prepared:
            return lease
        now = self._clock.now()
        ready = lifecycle.with_reservations(lease, prepared)
        try:
            return self._store.save(lease, ready, at=now, cleaning=self._settings.cleaning_time)
        except StaleLease:
            return self._store.lease(lease.id, including_deleted=True)

    def _undo(self, updating: Lease, event: Event, reason: str) -> None:
        marked = lifecycle.with_event(updating, replace(event, reason=reason))
        self._worker.perform(marked, event.id)


def _rearmed(lease: Lease, window: Window, now: datetime) -> Lease:
    """Return a lease that failed to start ready for another start, if there is time left; else as it is."""
    start = lease.event(EventType.START)
    if lease.status is not LeaseStatus.ERROR or start is None or window.end <= now:
        return lease
    again = replace(start, status=EventStatus.UNDONE, attempts=0, updated_at=now)
    pending = [
        lifecycle.with_status(r, ReservationStatus.PENDING, now)
        for r in lease.reservations
        if r.status is ReservationStatus.ERROR
    ]
    return lifecycle.move(lifecycle.with_reservations(lifecycle.with_event(lease, again), pending), LeaseStatus.PENDING)


def _new_timetable(
    lease: Lease, window: Window, asked: datetime | None, now: datetime, *, anew: bool, saves: bool
) -> tuple[tuple[Event, ...], bool]:
    """Return the events of a lease for its new window, and whether a warning that was given is void now.

    ``anew``: the request names the action before the end, which is then done even if it was done before, and at once
    if its time has gone by. ``saves``: some action saves work, and so needs an event, at the end if at no other time.
    """
    warning = lease.event(EventType.BEFORE_END)
    time = dates.changed_before_end(warning.time if warning else None, lease.window, window, asked)
    if time is None and saves:
        time = window.end
    events = []
    void = False
    for event in lease.events:
        match event.event_type:
            case EventType.START:
                events.append(_moved(event, window.start, now))
            case EventType.END:
                events.append(_moved(event, window.end, now))
            case EventType.BEFORE_END:
                again = anew and lifecycle.is_over(event) and lease.status is LeaseStatus.ACTIVE
                void = time is not None and time > now and time != event.time and event.status is not EventStatus.UNDONE
                renewed = _renewed(event, now, anew=anew) if void or again else event
                events.append(_moved(renewed, time or window.end, now))
            case _:
                events.append(event)
    if warning is None and time is not None:
        events.append(
            Event(
                id=str(uuid.uuid4()),
                event_type=EventType.BEFORE_END,
                time=time,
                status=EventStatus.UNDONE,
                created_at=now,
                due_at=time,
            )
        )
    return tuple(events), void


def _renewed(event: Event, now: datetime, *, anew: bool) -> Event:
    """Return an event ready to run once more; what was made before counts as done, unless it was asked for anew."""
    memo = {"asked_at": now.isoformat()} if anew else None
    return replace(event, status=EventStatus.UNDONE, attempts=0, reason=None, memo=memo, updated_at=now)


def _moved(event: Event, time: datetime, now: datetime) -> Event:
    due_at = time if event.status is EventStatus.UNDONE else event.due_at
    if (event.time, event.due_at) == (time, due_at):
        return event
    return replace(event, time=time, due_at=due_at, updated_at=now)


def _asks_anew(before: Parameters, after: Parameters) -> bool:
    """Tell whether a change of parameters can change what is asked of the calendar; an action at the end can not."""
    return {k: v for k, v in before.items() if k != BEFORE_END} != {k: v for k, v in after.items() if k != BEFORE_END}


def _share(allocation: Allocation) -> object:
    return allocation.reservation_id, allocation.resource_id, allocation.units, allocation.unit


def union(held: Collection[Allocation], planned: Collection[Allocation], window: Window) -> tuple[Allocation, ...]:
    """Return what a lease keeps while it is not known which of both it will have: of each resource the larger part."""
    both: dict[tuple[str, int], Allocation] = {}
    for allocation in (*held, *planned):
        key = allocation.reservation_id, allocation.resource_id
        other = both.get(key)
        if other is None or (other.unit == allocation.unit and other.units < allocation.units):
            both[key] = replace(allocation, window=window)
        elif other.amounts is not None and allocation.amounts is not None and other.unit != allocation.unit:
            both[key] = replace(other, units=1, unit=other.amounts.at_least(allocation.amounts))
    return tuple(both.values())


def _changed_in_use(after: Lease, works: Collection[Work], planned: Collection[Allocation]) -> frozenset[str]:
    """Return the reservations in use that get other resources, or more or fewer units of one, than they hold."""
    units: dict[str, dict[int, int]] = {work.reservation.id: {} for work in works}
    for allocation in planned:
        units[allocation.reservation_id][allocation.resource_id] = allocation.units
    active = {r.id for r in after.reservations if r.status is ReservationStatus.ACTIVE}
    return frozenset(
        work.reservation.id
        for work in works
        if work.reservation.id in active and units[work.reservation.id] != dict(work.units)
    )
