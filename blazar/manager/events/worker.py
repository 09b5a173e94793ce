# SPDX-License-Identifier: Apache-2.0
"""The worker: claims one event of one lease, acts in the cloud and records the result."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from blazar.manager.common.claims import Claim
from blazar.manager.common.notifications import DELETED, of_event
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.read_ahead import ReadAhead
from blazar.manager.events.results import Finished, Result, Retry, joined, note_of
from blazar.manager.events.starting import MOST_TURNS, StartReplacements, without
from blazar.manager.lease import lifecycle
from blazar.manager.lease.flags import failed
from blazar.manager.lease.lifecycle import Drop, Wait
from blazar.manager.lease.tasks import tasks_with
from blazar.manager.outbox.outbox import Outbox
from blazar.model.clock import later
from blazar.model.demand import Allocation, Plan
from blazar.model.errors import BlazarError, ClaimLost, CloudUnavailable, NotFound, StaleLease
from blazar.model.lease import (
    REQUEST_EVENTS,
    Event,
    EventStatus,
    EventType,
    Lease,
    LeaseStatus,
    Reservation,
    ReservationStatus,
)
from blazar.model.resource import ResourceKind
from blazar.model.usage import OutboxMessage
from blazar.resources.base import Action, NotYet, Progress, Task, Unusable
from blazar.resources.complete import CompleteType
from blazar.store.calendar import EarlierUser

LOG = logging.getLogger(__name__)


class SavedStateMissing(BlazarError):
    """An update cannot be undone: its event has no saved state from before it."""


LAST_TRIES = 3
"""Minimum attempts of an action before the end, or of an undo, even if the end has come: a transient failure of the
cloud loses no user's work."""

_LOOKED_AT_AT_THE_END = (EventType.START, EventType.BEFORE_END, EventType.UPDATE)


class Worker:
    """Works on events, one claimed event at a time.

    Every write is conditional on the revision of the lease that it was decided on. Only a request to delete a lease
    may change it while its event is claimed: then the claim is released, and the deletion continues.
    """

    def __init__(
        self,
        runtime: Runtime,
        types: Mapping[str, CompleteType],
        outbox: Outbox,
        replacements: StartReplacements,
        *,
        taken_over: Callable[[], None],
    ) -> None:
        self._store = runtime.store
        self._clock = runtime.clock
        self._claims = runtime.claims
        self._settings = runtime.settings
        self._notifier = runtime.notifier
        self._taken_over = taken_over
        self._outbox = outbox
        self._replacements = replacements
        self.types = types
        self.read_ahead = ReadAhead(runtime.store, runtime.clock)
        self._actions: Mapping[EventType, Callable[[Lease, Event, Claim], Result]] = {
            EventType.START: self._start,
            EventType.BEFORE_END: self._before_end,
            EventType.END: self._end,
            EventType.DELETE: self._end,
            EventType.CREATE: self._end,
            EventType.UPDATE: self._undo_update,
            EventType.CLEAN_UP: self._clean_up,
        }

    def process(self, lease_id: str, event_id: str) -> bool:
        """Process a due event: work on it if its time has come and nobody else does, else postpone it.

        Return False if another manager was faster.
        """
        try:
            # A claim is compared with the time before it was read: it may have been renewed since.
            now = self._clock.now()
            with self.read_ahead.taken(event_id) as read:
                lease, read_at = read or (self._store.leases.one(lease_id, including_deleted=True), now)
                event = next((e for e in lease.events if e.id == event_id), None)
                claim = self._claims.new()
                if event is not None and (claimed := self._claim(lease, event, claim, read_at)) is not None:
                    self.perform(claimed, event_id, claim)
        except StaleLease:
            LOG.debug(
                "Lease %s was changed by another thread or manager; its event %s is processed later", lease_id, event_id
            )
            return False
        return True

    def perform(self, lease: Lease, event_id: str, claim: Claim) -> Lease:
        """Act on a claimed event and record the result; return the lease as recorded.

        Do nothing if the event is not, or no longer, claimed with this claim: then another manager works on it.
        """
        event = next((e for e in lease.events if e.id == event_id), None)
        if event is None or event.claimed_by != claim.token:
            LOG.warning("Event %s of lease %s is claimed by another manager, which continues it", event_id, lease.id)
            return lease
        kind = EventType(event.event_type)
        with self._claims.held(claim):
            try:
                result = self._actions[kind](lease, event, claim)
            except ClaimLost as error:
                LOG.warning(
                    "Event %s of lease %s: claim lost, another manager takes it over: %s",
                    kind,
                    lease.id,
                    error.message,
                )
                return lease
            except CloudUnavailable as error:
                result = Retry(error.message)
            except BlazarError as error:
                LOG.warning("Event %s of lease %s failed: %s", kind, lease.id, error.message)
                result = Retry(error.message)
            except Exception as error:
                # The edge of a worker: a bug must neither stop the engine nor lose the event.
                LOG.exception("Event %s of lease %s failed unexpectedly", kind, lease.id)
                result = Retry(_internal(error))
            return self._conclude(lease, event, result, claim)

    def tasks(self, lease: Lease) -> tuple[Task, ...]:
        """Return the reservations of a lease, each with its allocated resources."""
        return self.read_ahead.tasks(lease) or self.tasks_with(lease, self._store.calendar.of_lease(lease.id))

    def tasks_with(self, lease: Lease, allocations: Collection[Allocation]) -> tuple[Task, ...]:
        """Return the reservations of a lease, each with the resources that these allocations give it."""
        return tasks_with(self._store, lease, allocations)

    def type_of(self, reservation: Reservation) -> CompleteType:
        """Return the resource type of a reservation. NotFound if it is no longer enabled."""
        if reservation.resource_type not in self.types:
            raise NotFound(
                f"resource type {reservation.resource_type} is no longer enabled; an operator can enable it again"
            )
        return self.types[reservation.resource_type]

    def _claim(self, lease: Lease, event: Event, claim: Claim, read_at: datetime) -> Lease | None:
        now = self._clock.now()
        match lifecycle.decide(lease, event, read_at, recheck_interval=self._settings.recheck_interval):
            case Drop():
                if event.due_at is not None:
                    self._save(lease, lifecycle.with_event(lease, replace(event, due_at=None)), now)
                return None
            case Wait(until, reason):
                if event.due_at is not None and event.due_at <= read_at:
                    self._save(
                        lease, lifecycle.postpone(lease, event, at=until, reason=reason, failed=False, now=now), now
                    )
                return None
        if event.event_type == EventType.START:
            if lease.window.end <= now:
                claimed = lifecycle.claim(lease, event, token=claim.token, now=now, until=self._claims.begin(claim))
                error = "the lease ended before it could start" + (f": {event.reason}" if event.reason else "")
                failed = _all_failed(claimed, now)
                settled = lifecycle.settle(failed, _event(claimed, event.id), now=now, error=error)
                self._notifier.notify(of_event(EventType.START), self._save(lease, settled, now))
                return None
            if not lease.reservations:
                self._start_empty(lease, event, now)
                return None
            users = () if self.read_ahead.is_clear(lease) else self._earlier_users(lease, now)
            if users:
                later, reason = self._waits_for(users, lease, now)
                self._save(lease, lifecycle.postpone(lease, event, at=later, reason=reason, failed=False, now=now), now)
                return None
        first = event.status is EventStatus.UNDONE
        if event.claimed_by is not None:
            LOG.warning(
                "Event %s of lease %s: claim of %s expired, taking it over", event.id, lease.id, event.claimed_by
            )
            self._taken_over()
        claimed = lifecycle.claim(lease, event, token=claim.token, now=now, until=self._claims.begin(claim))
        # The outbox message of the end is written with the claim of the end event, so that it is sent once.
        ends = event.event_type == EventType.END
        messages = self._outbox.of_end(lease, claimed) if ends else ()
        saved = self._save(lease, claimed, now, messages=messages)
        if messages:
            self._outbox.wake()
        if event.event_type == EventType.BEFORE_END and first and self._warns(lease):
            # Notify before the action: a warning is of no use after slow snapshots.
            self._notifier.notify(of_event(EventType.BEFORE_END), saved)
        return saved

    def _start_empty(self, lease: Lease, event: Event, now: datetime) -> None:
        """Start a lease without reservations, in one write."""
        settled = lifecycle.settle(lifecycle.move(lease, LeaseStatus.STARTING), event, now=now)
        self._notifier.notify(of_event(EventType.START), self._save(lease, settled, now))

    def _earlier_users(self, lease: Lease, now: datetime) -> tuple[EarlierUser, ...]:
        return self._store.calendar.earlier_users(lease.id, before=lease.window.start, now=now)

    def _waits_for(self, users: Sequence[EarlierUser], lease: Lease, now: datetime) -> tuple[datetime, str]:
        """Return when to check again whether earlier leases have released the resources, and why to wait."""
        first = users[0]
        if first.clean_at is not None:
            return max(
                now, first.clean_at
            ), f"the resources that lease {first.lease_id} released late are being cleaned"
        # A lease that is long overdue is not polled four times a second: this delays a start by 5 % at most.
        later = now + max(self._settings.recheck_interval, (now - lease.window.start) / 20)
        return later, f"lease {first.lease_id} has not released its resources yet"

    def _warns(self, lease: Lease) -> bool:
        """Tell whether to send the warning before the end: not if the action of every reservation is ``none``."""
        # A type that is no longer enabled has no action here; the action itself fails later, with a reason.
        known = [r for r in lease.reservations if r.resource_type in self.types]
        actions = {self.type_of(r).action(r.parameters) for r in known}
        return lease.status is LeaseStatus.ACTIVE and actions != {Action.NONE}

    def _start(self, lease: Lease, event: Event, claim: Claim) -> Result:
        tasks = self.tasks(lease)
        # Last chance to replace failed resources: others may be free by now.
        if lost := failed(tasks, ReservationStatus.PENDING):
            tasks = self.tasks(self._replacements.replace_failed(lease.id, lost, claim))
        waiting = [task for task in tasks if task.reservation.status is ReservationStatus.PENDING]
        result: Result = Finished()
        reasons: dict[int, str] = {}
        for _ in range(MOST_TURNS):
            unusable: dict[str, Mapping[int, str]] = {}
            result = joined(result, self._started(waiting, unusable))
            if not unusable:
                return (
                    replace(result, note="; ".join(reasons.values()) or None)
                    if isinstance(result, Finished)
                    else result
                )
            for task in waiting:
                if found := unusable.get(task.reservation.id):
                    reasons |= found
                    kind = self.type_of(task.reservation).kind
                    self._store.resources.set_failed(kind, found, at=self._clock.now())
            lost = {id_: frozenset(found) for id_, found in unusable.items()}
            now_held = self.tasks(self._replacements.replace_failed(lease.id, lost, claim))
            retries = [task for task in now_held if task.reservation.id in lost]
            waiting = [_without(task, frozenset(reasons)) for task in retries]
            failed_reservations = [task.reservation for task in waiting if not task.resources]
            if failed_reservations:
                now = self._clock.now()
                errors = [lifecycle.with_status(r, ReservationStatus.ERROR, now) for r in failed_reservations]
                result = joined(result, Finished(tuple(errors), "; ".join(reasons.values())))
                waiting = [task for task in waiting if task.resources]
        return joined(result, Retry("; ".join(reasons.values())))

    def _started(self, tasks: Collection[Task], unusable: dict[str, Mapping[int, str]]) -> Result:
        """Start reservations; collect in ``unusable`` the resources that cannot be assigned, by reservation."""

        def start(kind: CompleteType, task: Task) -> Progress:
            try:
                return kind.start(task)
            except Unusable as error:
                LOG.warning("Reservation %s of lease %s: %s", task.reservation.id, task.lease.id, error)
                unusable[task.reservation.id] = error.reasons
                raise

        return self._each(tasks, start, then=ReservationStatus.ACTIVE, tolerant=True, passing=unusable)

    def _before_end(self, lease: Lease, event: Event, claim: Claim) -> Result:
        now = self._clock.now()
        active = [task for task in self.tasks(lease) if task.reservation.status is ReservationStatus.ACTIVE]
        if not active and lease.status is not LeaseStatus.ACTIVE:
            return Finished(error=f"the lease was {lease.status} when its before_end event was due")
        result = self._each(active, lambda kind, task: kind.before_end(task), then=None, tolerant=True)
        if isinstance(result, Finished):
            return result
        failing = result.after is None
        grace = timedelta(0) if failing else self._settings.snapshot_grace
        if now >= later(lease.window.end, grace) and not (failing and event.attempts < LAST_TRIES):
            return Finished(error=f"not finished at the end of the lease: {result.reason}")
        return result

    def _end(self, lease: Lease, event: Event, claim: Claim) -> Result:
        left = [task for task in self.tasks(lease) if task.reservation.status is not ReservationStatus.DELETED]
        return self._each(left, lambda kind, task: kind.end(task), then=ReservationStatus.DELETED, tolerant=False)

    def _clean_up(self, lease: Lease, event: Event, claim: Claim) -> Result:
        # All resources that it ever held: leftovers may be on any of these.
        held = self._store.calendar.ever_assigned(lease.id)
        resources = self._store.resources.by_ids(frozenset().union(*held.values()))
        tasks = [
            Task(lease, r, tuple(resources[id_] for id_ in sorted(held.get(r.id, ())))) for r in lease.reservations
        ]
        return self._each(tasks, lambda kind, task: kind.end(task), then=ReservationStatus.DELETED, tolerant=False)

    def _undo_update(self, lease: Lease, event: Event, claim: Claim) -> Result:
        try:
            result = self._restored(lease, event)
        except SavedStateMissing as error:
            result = Retry(error.message)
        if not isinstance(result, Retry) or result.after is not None or event.attempts < LAST_TRIES:
            return result
        if self._clock.now() < lease.window.end:
            return result
        # The end returns all resources, those from before the change and those of it: it need not wait for the undo.
        return Finished(error=f"not undone before the end of the lease: {result.reason}")

    def _restored(self, lease: Lease, event: Event) -> Result:
        held = self._held_before(lease, event)
        surplus = {task.reservation.id: task.resources for task in self.tasks(lease)}
        before = self.tasks_with(lease, held)

        def restore(kind: CompleteType, task: Task) -> Progress:
            kept = {resource.id for resource in task.resources}
            return kind.restore(task, tuple(r for r in surplus[task.reservation.id] if r.id not in kept))

        return self._each(before, restore, then=None, tolerant=False)

    def _held_before(self, lease: Lease, event: Event) -> tuple[Allocation, ...]:
        return held_before(lease, event, {r.id: self.type_of(r).kind for r in lease.reservations})

    def _each(
        self,
        tasks: Collection[Task],
        act: Callable[[CompleteType, Task], Progress],
        *,
        then: ReservationStatus | None,
        tolerant: bool,
        passing: Mapping[str, object] | None = None,
    ) -> Result:
        """Act on every reservation, whatever happens to the others.

        ``tolerant``: a permanent failure is recorded on its reservation and the event goes on; else it is retried
        like a transient one, because an end must succeed. Unusable resources of reservations in ``passing`` are no
        failure here: the caller replaces them.
        """
        now = self._clock.now()
        changed: list[Reservation] = []
        reasons: list[str] = []
        errors: list[str] = []
        after: timedelta | None = None
        failed_here = False
        for task in tasks:
            try:
                progress = act(self.type_of(task.reservation), task)
            except Unusable as error:
                if passing is None or task.reservation.id not in passing:
                    failed_here = True
                    reasons.append(str(error))
                continue
            except ClaimLost:
                raise
            except BlazarError as error:
                LOG.warning("Reservation %s of lease %s: %s", task.reservation.id, task.lease.id, error.message)
                if tolerant and not isinstance(error, CloudUnavailable):
                    errors.append(error.message)
                    if then is not None:
                        changed.append(lifecycle.with_status(task.reservation, ReservationStatus.ERROR, now))
                else:
                    failed_here = True
                    reasons.append(error.message)
                continue
            except Exception as error:
                # The edge of a reservation: a bug in one type must not stop the other reservations of the lease.
                LOG.exception("Reservation %s of lease %s failed unexpectedly", task.reservation.id, task.lease.id)
                failed_here = True
                reasons.append(_internal(error))
                continue
            if isinstance(progress, NotYet):
                after = progress.after if after is None else min(after, progress.after)
                reasons.append(progress.reason)
            elif then is not None or progress.cloud_ids is not None:
                made = task.reservation
                if progress.cloud_ids is not None:
                    made = replace(made, cloud_ids=progress.cloud_ids)
                changed.append(made if then is None else lifecycle.with_status(made, then, now))
        if reasons:
            return Retry("; ".join(errors + reasons), None if failed_here else after, tuple(changed))
        return Finished(tuple(changed), "; ".join(errors) or None)

    def _conclude(self, lease: Lease, event: Event, result: Result, claim: Claim) -> Lease:
        while True:
            now = self._clock.now()
            current = _event(lease, event.id)
            if current.claimed_by != claim.token:
                LOG.warning(
                    "Event %s of lease %s was taken over by another manager; its result is dropped", event.id, lease.id
                )
                return lease
            try:
                after, release, window = self._recorded(lease, current, result, now)
                messages = self._reversals(lease, current, result)
                if window is not None:
                    saved = self._store.calendar.rebook(lease, after, Plan(window), at=now, messages=messages)
                else:
                    saved = self._save(lease, after, now, release=release, messages=messages)
            except StaleLease:
                lease = self._store.leases.one(lease.id, including_deleted=True)
                continue
            if messages:
                self._outbox.wake()
            self._tell(saved, current, result)
            return saved

    def _reversals(self, lease: Lease, event: Event, result: Result) -> tuple[OutboxMessage, ...]:
        """Return the outbox messages of an undone request, once the outcome of the lease is certain."""
        restoring = event.event_type == EventType.UPDATE and lease.status is not LeaseStatus.DELETING
        if event.event_type not in REQUEST_EVENTS or (restoring and isinstance(result, Retry)):
            return ()
        return self._outbox.reversals_of(lease)

    def _recorded(
        self, lease: Lease, event: Event, result: Result, now: datetime
    ) -> tuple[Lease, frozenset[str], tuple[Allocation, ...] | None]:
        """Return the lease to write, the reservations to release, and the allocations to restore, if any."""
        kind = EventType(event.event_type)
        going = lease.status is LeaseStatus.DELETING and lease.deleted_at is None and kind is not EventType.DELETE
        if going:
            return lifecycle.abandon(lease, event, now=now), frozenset(), None
        current = lifecycle.with_reservations(lease, result.reservations)
        release = frozenset(r.id for r in result.reservations if r.status is ReservationStatus.DELETED)
        if isinstance(result, Retry):
            if kind is EventType.CREATE:
                # The allocations were never used: release them while the rest is cleaned up.
                release = frozenset(r.id for r in lease.reservations)
            return self._postponed(current, event, result, now), release, None
        match kind:
            case EventType.DELETE | EventType.CREATE:
                everything = frozenset(r.id for r in lease.reservations)
                error = event.reason if kind is EventType.CREATE else None
                return lifecycle.deleted(current, event, now=now, error=error), everything, None
            case EventType.UPDATE if result.error:
                # Not undone: keep all allocations until the end has returned their resources.
                return lifecycle.settle(current, event, now=now, error=result.error), frozenset(), None
            case EventType.UPDATE:
                settled = lifecycle.settle(current, event, now=now, error=event.reason or "taken over and undone")
                return settled, frozenset(), self._held_before(lease, event)
            case EventType.START:
                failed_reservations = [r for r in current.reservations if r.status is ReservationStatus.ERROR]
                error = (
                    result.error
                    or (event.reason if failed_reservations else None)
                    or ("failed" if failed_reservations else None)
                )
                return lifecycle.settle(current, event, now=now, error=error, note=note_of(result)), release, None
        return lifecycle.settle(current, event, now=now, error=result.error), release, None

    def _postponed(self, lease: Lease, event: Event, result: Retry, now: datetime) -> Lease:
        wait = result.after
        if wait is None:
            wait = min(self._settings.longest_retry, self._settings.first_retry * 2 ** min(event.attempts, 16))
        at = now + wait
        if event.event_type in _LOOKED_AT_AT_THE_END and now < lease.window.end < at:
            # A last attempt at the end itself, so that a long back-off does not delay the end.
            at = lease.window.end
        return lifecycle.postpone(lease, event, at=at, reason=result.reason, failed=result.after is None, now=now)

    def _save(
        self,
        before: Lease,
        after: Lease,
        now: datetime,
        *,
        release: frozenset[str] = frozenset(),
        messages: tuple[OutboxMessage, ...] = (),
    ) -> Lease:
        return self._store.leases.save(before, after, release=release, at=now, messages=messages)

    def _tell(self, lease: Lease, event: Event, result: Result) -> None:
        if isinstance(result, Retry):
            return
        match event.event_type:
            case EventType.START | EventType.END:
                if lease.status is not LeaseStatus.DELETING:
                    self._notifier.notify(of_event(event.event_type), lease)
            case EventType.DELETE:
                self._notifier.notify(DELETED, lease)


def held_before(lease: Lease, event: Event, kinds: Mapping[str, ResourceKind]) -> tuple[Allocation, ...]:
    """Return the allocations of a lease before an update, in its window. SavedStateMissing if not saved.

    ``kinds`` are the resource kinds of its reservations.
    """
    saved = None if event.saved_state is None else event.saved_state.allocations
    if saved is None:
        # An empty tuple means that it held nothing: a missing one must never make resources count as surplus.
        raise SavedStateMissing(
            f"the allocations of lease {lease.id} before its update are not on record; nothing is undone"
        )
    return tuple(
        Allocation(
            kinds[a.reservation_id], a.resource_id, lease.id, a.reservation_id, lease.window, a.count, a.per_instance
        )
        for a in saved
    )


def _without(task: Task, ids: frozenset[int]) -> Task:
    """Return a reservation to start without some of its resources, with these recorded as left out."""
    out = ids & task.counts.keys()
    return without(replace(task, reservation=replace(task.reservation, unassigned=out)), out)


def _event(lease: Lease, event_id: str) -> Event:
    return next(event for event in lease.events if event.id == event_id)


def _internal(error: Exception) -> str:
    return f"internal error: {type(error).__name__}"


def _all_failed(lease: Lease, now: datetime) -> Lease:
    return lifecycle.with_reservations(
        lease,
        [
            lifecycle.with_status(r, ReservationStatus.ERROR, now)
            for r in lease.reservations
            if r.status is ReservationStatus.PENDING
        ],
    )
