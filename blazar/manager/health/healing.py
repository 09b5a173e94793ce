# SPDX-License-Identifier: Apache-2.0
"""Healing: replaces failed resources of reservations, by the same booking as everything else.

A reservation that has not started gets others silently. One in use keeps its resources, unless the operator has set
``heal_active``, and never loses a resource on which servers run. If there is no replacement, the reservation keeps its
allocation of the failed resource and has ``missing_resources``, until the resource recovers or is replaced.

Any number of managers may do this at a time: every decision is conditional on the revision of the lease and the
generations of the resources that it was made on, and the manager that writes it sends the notification.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from blazar.context import scope
from blazar.manager.common.claims import Claim
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.cloud_change import CloudChanges
from blazar.manager.events.starting import start_in_use
from blazar.manager.lease import lifecycle
from blazar.manager.lease.booking import Booking
from blazar.manager.lease.flags import FLAGGED, change_notification, derived, failed, flagged
from blazar.manager.lease.replanning import Replanner, ToReplace
from blazar.manager.lease.tasks import tasks_with
from blazar.model.demand import Allocation, Plan
from blazar.model.errors import (
    BlazarError,
    Conflict,
    Contention,
    NotEnoughResources,
    NotFound,
    StaleLease,
    WrongState,
)
from blazar.model.lease import EventType, Lease, LeaseStatus, ReservationStatus
from blazar.model.resource import Resource
from blazar.resources.base import Task, Unusable

LOG = logging.getLogger(__name__)

PAGE = 200
"""Leases that are read at a time."""

STABLE_STATES = (LeaseStatus.PENDING, LeaseStatus.ACTIVE, LeaseStatus.ERROR)
"""States in which no work is in progress; some reservations of a lease in ERROR may be in use."""

IN_USE = (LeaseStatus.ACTIVE, LeaseStatus.ERROR)

FIRST_BACKOFF = timedelta(seconds=5)
LONGEST_BACKOFF = timedelta(minutes=10)
"""Back-off after an attempt that was undone: doubles each time, up to the longest."""


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """A lease at one revision, with its allocations."""

    lease: Lease
    allocations: tuple[Allocation, ...]
    tasks: tuple[Task, ...]


@dataclass(frozen=True, slots=True)
class _Decided:
    """The new state and allocations of a lease; ``replanned`` reservations get new resources."""

    snapshot: _Snapshot
    after: Lease
    plan: Plan
    replanned: frozenset[str]


class Healing:
    """Replaces failed resources of leases."""

    def __init__(self, runtime: Runtime, replanner: Replanner, booking: Booking, changes: CloudChanges) -> None:
        self._runtime = runtime
        self._replanner = replanner
        self._booking = booking
        self._changes = changes
        self.next_try: datetime | None = None
        """When the first lease that waited in the last run can be retried."""
        self._stopping = threading.Event()

    def begin_stop(self) -> None:
        """End a run after its current lease: the next run, of any manager, processes the others."""
        self._stopping.set()

    def run(self, *, at_once: bool = False, between: Callable[[], None] = lambda: None) -> int:
        """Process every lease that may need healing; return how many were busy and must be retried soon.

        Leases in use come first, then those that start soonest. A lease whose last attempt was undone waits
        (``next_try``), unless ``at_once``. One statement for each page of leases; for each lease found, a number of
        statements that does not depend on the number of hosts. ``between`` is called before each lease: a run may take
        long.
        """
        self.next_try = None
        now = self._runtime.clock.now()
        until = now + self._runtime.settings.healing_interval if self._runtime.settings.healing_interval else None
        busy = 0
        after: tuple[datetime, str] | None = None
        while page := self._runtime.store.leases.to_heal(now=now, until=until, after=after, limit=PAGE):
            for after in page:
                if self._stopping.is_set():
                    return busy
                between()
                busy += not self.heal_once(after[1], at_once=at_once)
        return busy

    def process(self, lease_id: str, *, in_use: bool = True, at_once: bool = False) -> bool:
        """Heal one lease as far as possible; return False if it has to be retried soon.

        ``in_use``: also replace resources in use, if that is the operator's policy; that needs the cloud. ``at_once``:
        also if the last attempt was undone a moment ago.
        """
        try:
            decided = self._booking.until_it_holds(lambda attempt: self._decide(lease_id, attempt), self._commit)
        except Contention:
            return False
        if decided is None:
            return False
        if in_use and decided.after.status in IN_USE:
            return self._heal_in_use(decided, at_once=at_once)
        return True

    def heal_once(self, lease_id: str, *, in_use: bool = True, at_once: bool = False) -> bool:
        """Do the same as ``process``, but log errors; return False after one, to retry."""
        try:
            return self.process(lease_id, in_use=in_use, at_once=at_once)
        except NotFound:
            # Deleted a moment ago.
            return True
        except BlazarError as error:
            LOG.warning("Lease %s cannot be healed yet: %s", lease_id, error.message)
        except Exception:
            # The edge of one lease: others are healed whatever is wrong with this one.
            LOG.exception("Lease %s could not be healed; it will be retried", lease_id)
        return False

    def move_off(self, host: Resource, reservation_id: str) -> None:
        """Replace this resource of a reservation by another one, or change nothing.

        NotFound if the reservation does not hold it; NotEnoughResources if there is no other; Conflict if it is in use;
        WrongState.
        """
        held = self._runtime.store.calendar.live(host.kind, resource_id=host.id, reservation_id=reservation_id)
        if not held:
            raise NotFound(f"reservation {reservation_id[:80]} has no allocation on {host.kind} {host.name}")
        to_replace = {reservation_id: frozenset({host.id})}
        lease_id = held[0].lease_id
        with scope(limit=self._runtime.settings.request_limit):
            # Decided again at every attempt: the start of the lease may be what an attempt lost its race against.
            moved = self._booking.until_it_holds(
                lambda attempt: self._moved_before_start(lease_id, reservation_id, to_replace, attempt), self._commit
            )
            if moved is None:
                self._check_free(self._runtime.store.leases.one(lease_id), reservation_id, host)
                self._replan(lease_id, to_replace, avoid=True)

    def record_missing(self, host: Resource, reservation_ids: Collection[str]) -> bool:
        """Record that reservations in use lack a host which they hold, so that it is assigned again.

        Return whether that was new for any. No poll may have seen the host fail: it can have been away between two.
        Contention if a lease is busy, after all others are done.
        """
        held = self._runtime.store.calendar.live(host.kind, resource_id=host.id)
        noted, busy = False, []
        for lease_id in sorted({a.lease_id for a in held if a.reservation_id in reservation_ids}):
            try:
                noted |= self._booking.until_it_holds(
                    partial(self._missing, lease_id, host.id, reservation_ids), self._save
                )
            except NotFound:
                # Deleted a moment ago.
                continue
            except Contention:
                busy.append(lease_id)
        if busy:
            raise Contention(f"lease {busy[0]} is being worked on; that it lacks the host is recorded later")
        return noted

    def _missing(self, lease_id: str, host_id: int, reservation_ids: Collection[str], _: int) -> tuple[Lease, Lease]:
        """Return a lease, and the same lease with the host recorded as missing for those of the reservations in use.

        NotFound, Contention.
        """
        # Before the lease is read: a claim that had not ended then may have been renewed since.
        now = self._runtime.clock.now()
        lease = self._runtime.store.leases.one(lease_id)
        if lease.status not in (*STABLE_STATES, LeaseStatus.STARTING, LeaseStatus.UPDATING):
            # The lease is ending: no resource is assigned any more.
            return lease, lease
        if lease.status is LeaseStatus.UPDATING or lifecycle.live_claim(lease, now) is not None:
            # Its allocations or flags are being written at this moment.
            raise Contention(f"lease {lease_id} is being worked on")
        lacking = [
            replace(r, unassigned=r.unassigned | {host_id}, missing_resources=True, updated_at=now)
            for r in lease.reservations
            if r.id in reservation_ids and r.status is ReservationStatus.ACTIVE and host_id not in r.unassigned
        ]
        return lease, derived(lifecycle.with_reservations(lease, lacking)) if lacking else lease

    def _save(self, change: tuple[Lease, Lease]) -> bool:
        before, after = change
        if after is before:
            return False
        now = self._runtime.clock.now()
        self._tell(before, self._runtime.store.leases.save(before, replace(after, updated_at=now), at=now))
        return True

    # Before the start: one transaction

    def _snapshot(self, lease_id: str) -> _Snapshot | None:
        """Return a lease with its allocations; None if it is being worked on."""
        # Before the lease is read: a claim that had not ended then may have been renewed since.
        now = self._runtime.clock.now()
        lease = self._runtime.store.leases.one(lease_id)
        if lease.status not in STABLE_STATES or lifecycle.live_claim(lease, now) is not None:
            return None
        allocations = self._runtime.store.calendar.of_lease(lease_id)
        return _Snapshot(lease, allocations, tasks_with(self._runtime.store, lease, allocations))

    def _decide(self, lease_id: str, attempt: int) -> _Decided | None:
        snapshot = self._snapshot(lease_id)
        if snapshot is None:
            return None
        return self._decided(snapshot, failed(snapshot.tasks, ReservationStatus.PENDING), attempt)

    def _moved_before_start(
        self, lease_id: str, reservation_id: str, to_replace: ToReplace, attempt: int
    ) -> _Decided | None:
        """Decide on a move that needs only the calendar; None if the reservation is in use."""
        snapshot = self._settled_snapshot(lease_id)
        reservation = snapshot.lease.reservation(reservation_id)
        if reservation is not None and reservation.status not in FLAGGED:
            raise WrongState(f"reservation {reservation_id} is {reservation.status} and cannot be moved")
        if reservation is None or reservation.status is not ReservationStatus.PENDING:
            return None
        decided = self._decided(snapshot, to_replace, attempt, avoid=True)
        _check_gone(decided.plan, to_replace, snapshot.tasks)
        return decided

    def _decided(self, snapshot: _Snapshot, to_replace: ToReplace, attempt: int, *, avoid: bool = False) -> _Decided:
        now = self._runtime.clock.now()
        plan, replanned = Plan(snapshot.allocations), frozenset[str]()
        if to_replace and now < snapshot.lease.window.end:
            replan = self._replanner.replan(
                snapshot.tasks, snapshot.allocations, to_replace, now=now, attempt=attempt, avoid=avoid
            )
            plan, replanned = replan.plan, replan.replanned
        used = {r.id for r in snapshot.lease.reservations if r.status is ReservationStatus.ACTIVE}
        after = flagged(snapshot.lease, plan.allocations, snapshot.tasks, uncertain=used, now=now)
        return _Decided(snapshot, after, plan, replanned)

    def _commit(self, decided: _Decided | None) -> _Decided | None:
        if decided is None:
            return None
        before, after, plan = decided.snapshot.lease, decided.after, decided.plan
        now = self._runtime.clock.now()
        if decided.replanned:
            after = replace(after, updated_at=now)
            saved = self._runtime.store.calendar.rebook(before, after, plan, at=now)
        elif after is not before:
            saved = self._runtime.store.leases.save(before, replace(after, updated_at=now), at=now)
        else:
            return decided
        self._tell(before, saved)
        return replace(decided, after=saved)

    def _tell(self, before: Lease, after: Lease) -> None:
        for id_ in sorted(r.id for r in after.reservations if r.missing_resources):
            LOG.info("Reservation %s of lease %s has resources missing", id_, after.id)
        if (notification := change_notification(before, after)) is not None:
            self._runtime.notifier.notify(notification, after)

    # While in use: book, act in the cloud, write; or undo

    def _heal_in_use(self, decided: _Decided, *, at_once: bool) -> bool:
        tasks = tasks_with(self._runtime.store, decided.after, decided.plan.allocations)
        to_replace = failed(tasks, ReservationStatus.ACTIVE) if self._runtime.settings.heal_active else {}
        back = frozenset(w.reservation.id for w in tasks if _is_back(w))
        if not to_replace and not back:
            return True
        backs_off_until = _backs_off_until(decided.after)
        if not at_once and backs_off_until is not None and backs_off_until > self._runtime.clock.now():
            self.next_try = min(backs_off_until, self.next_try or backs_off_until)
            return True
        unused = {
            w.reservation.id: to_replace[w.reservation.id] - self._used(w)
            for w in tasks
            if w.reservation.id in to_replace
        }
        found = {id_: ids for id_, ids in unused.items() if ids}
        if not found and not back:
            return True
        with scope(limit=self._runtime.settings.request_limit):
            self._replan(decided.after.id, found, back=back)
        return True

    def _used(self, task: Task) -> frozenset[int]:
        """Return which resources of a reservation in use have servers, or attached addresses, on them."""
        in_use = self._runtime.type_of(task.reservation).in_use(task)
        return frozenset(id_ for id_, count in in_use.items() if count)

    def _check_free(self, lease: Lease, reservation_id: str, host: Resource) -> None:
        tasks = tasks_with(self._runtime.store, lease, self._runtime.store.calendar.of_lease(lease.id))
        if any(host.id in self._used(task) for task in tasks if task.reservation.id == reservation_id):
            raise Conflict(
                f"servers of reservation {reservation_id} run on {host.kind} {host.name}; move or delete them, then "
                f"retry"
            )

    def _settled_snapshot(self, lease_id: str) -> _Snapshot:
        snapshot = self._snapshot(lease_id)
        if snapshot is not None:
            return snapshot
        lease = self._runtime.store.leases.one(lease_id)
        if lease.status not in STABLE_STATES:
            raise WrongState(f"lease {lease.id} is {lease.status}; retry when that has finished")
        # An action before the end holds its claim for a moment only: retry shortly.
        raise StaleLease(f"lease {lease.id} is being worked on")

    def _replan(
        self, lease_id: str, to_replace: ToReplace, *, back: frozenset[str] = frozenset(), avoid: bool = False
    ) -> None:
        """Replace failed resources of a lease in use, and assign recovered ones. ``avoid``: replace all or fail."""

        def decide(attempt: int) -> _Decided:
            snapshot = self._settled_snapshot(lease_id)
            if snapshot.lease.status not in IN_USE:
                raise WrongState(f"lease {lease_id} is {snapshot.lease.status} and no longer in use")
            decided = self._decided(snapshot, to_replace, attempt, avoid=avoid)
            if avoid:
                _check_gone(decided.plan, to_replace, snapshot.tasks)
            return decided

        claim = self._runtime.claims.new()

        def commit(decided: _Decided) -> tuple[_Decided, Lease | None]:
            if not decided.replanned and not back:
                return decided, None
            return decided, self._changes.begin(
                decided.snapshot.lease, decided.snapshot.allocations, decided.plan, claim
            )

        decided, updating = self._booking.until_it_holds(decide, commit)
        if updating is not None:
            with self._runtime.claims.held(claim):
                self._carry_out(decided, updating, decided.replanned | back, claim)

    def _carry_out(self, decided: _Decided, updating: Lease, reservation_ids: Collection[str], claim: Claim) -> None:
        event = lifecycle.update_of(updating)
        plan = decided.plan
        started: dict[str, frozenset[int]] = {}
        with self._changes.undone_on_failure(updating, event, claim):
            for task in tasks_with(self._runtime.store, updating, plan.allocations):
                if task.reservation.id in reservation_ids:
                    started[task.reservation.id] = self._assigned(
                        task, {a.resource_id for a in decided.snapshot.allocations}
                    )
        now = self._runtime.clock.now()

        def write(current: Lease) -> Lease:
            settled = lifecycle.settle(current, next(e for e in current.events if e.id == event.id), now=now)
            noted = lifecycle.with_reservations(
                settled, [replace(r, unassigned=started[r.id]) for r in settled.reservations if r.id in started]
            )
            tasks = tasks_with(self._runtime.store, noted, plan.allocations)
            after = flagged(noted, plan.allocations, tasks, changed=decided.replanned, now=now)
            return self._runtime.store.calendar.rebook(current, after, Plan(plan.allocations), at=now)

        saved = self._changes.finish(updating, event.id, claim, write, what="healed")
        self._tell(decided.snapshot.lease, saved)

    def _assigned(self, task: Task, held: Collection[int]) -> frozenset[int]:
        """Ensure that a reservation in use has its resources assigned; return those that cannot be assigned.

        Conflict if one of these is new.
        """
        try:
            return start_in_use(self._runtime, task, held)
        except Unusable as error:
            raise Conflict(str(error)) from error


def _backs_off_until(lease: Lease) -> datetime | None:
    """Return the time before which healing is not retried after attempts that were undone.

    It is computed from the record of the lease, so all managers keep to it.
    """
    event = lease.event(EventType.UPDATE)
    tries = lifecycle.undone(event)
    if event is None or not tries or event.updated_at is None:
        return None
    return event.updated_at + min(LONGEST_BACKOFF, FIRST_BACKOFF * (1 << min(tries - 1, 16)))


def _is_back(task: Task) -> bool:
    """Tell whether a missing resource of a reservation in use has recovered."""
    if task.reservation.status is not ReservationStatus.ACTIVE or not task.reservation.missing_resources:
        return False
    well = {resource.id for resource in task.resources if not resource.failure}
    return len(well) == len(task.resources) or bool(well & task.reservation.unassigned)


def _check_gone(plan: Plan, to_replace: ToReplace, tasks: Iterable[Task]) -> None:
    """Raise NotEnoughResources if a reservation would still hold a resource that is to be replaced."""
    names: Mapping[int, Resource] = {resource.id: resource for task in tasks for resource in task.resources}
    for allocation in plan.allocations:
        if allocation.resource_id in to_replace.get(allocation.reservation_id, frozenset()):
            host = names[allocation.resource_id]
            raise NotEnoughResources(
                f"Not enough {host.kind}s available: nothing else fits reservation {allocation.reservation_id} instead "
                f"of {host.name} in its window."
            )
