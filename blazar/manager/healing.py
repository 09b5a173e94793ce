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
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from blazar.calendar.changing import union
from blazar.context import scope
from blazar.manager import lifecycle
from blazar.manager.booking import Booking
from blazar.manager.claims import Claim, Claims
from blazar.manager.flags import FLAGGED, derived, failed, flagged, leaving_out, left_out, news
from blazar.manager.notifications import Notifier
from blazar.manager.replanning import Lost, Replanner
from blazar.manager.settings import Settings
from blazar.manager.starting import MOST_TURNS, doing_without, patiently
from blazar.manager.worker import Worker, memo_of
from blazar.model.clock import Clock
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
from blazar.resources.base import Unusable, Work
from blazar.store.store import Store

LOG = logging.getLogger(__name__)

PAGE = 200
"""Leases that are read at a time."""

CALM = (LeaseStatus.PENDING, LeaseStatus.ACTIVE, LeaseStatus.ERROR)
"""States in which no work is in progress; some reservations of a lease in ERROR may be in use."""

IN_USE = (LeaseStatus.ACTIVE, LeaseStatus.ERROR)

FIRST_REST = timedelta(seconds=5)
LONGEST_REST = timedelta(minutes=10)
"""Back-off after an attempt that was undone: doubles each time, up to the longest."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A lease at one revision, with its allocations."""

    lease: Lease
    allocations: tuple[Allocation, ...]
    works: tuple[Work, ...]


@dataclass(frozen=True, slots=True)
class _Decided:
    """The new state and allocations of a lease; ``touched`` reservations get new resources."""

    seen: _Seen
    after: Lease
    plan: Plan
    touched: frozenset[str]


class Healing:
    """Replaces failed resources of leases."""

    def __init__(
        self,
        store: Store,
        worker: Worker,
        replanner: Replanner,
        booking: Booking,
        notifier: Notifier,
        clock: Clock,
        claims: Claims,
        settings: Settings,
    ) -> None:
        self._store = store
        self._worker = worker
        self._replanner = replanner
        self._booking = booking
        self._notifier = notifier
        self._clock = clock
        self._claims = claims
        self._settings = settings
        self.next_try: datetime | None = None
        """When the first lease that waited in the last run can be retried."""
        self._stopping = threading.Event()

    def take_no_more(self) -> None:
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
        now = self._clock.now()
        until = now + self._settings.healing_interval if self._settings.healing_interval else None
        busy = 0
        after: tuple[datetime, str] | None = None
        while page := self._store.leases_to_heal(now=now, until=until, after=after, limit=PAGE):
            for after in page:
                if self._stopping.is_set():
                    return busy
                between()
                busy += not self.look_calmly(after[1], at_once=at_once)
        return busy

    def look_at(self, lease_id: str, *, in_use: bool = True, at_once: bool = False) -> bool:
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
            return self._look_at_what_is_in_use(decided, at_once=at_once)
        return True

    def look_calmly(self, lease_id: str, *, in_use: bool = True, at_once: bool = False) -> bool:
        """Do the same as ``look_at``, but log errors; return False after one, to retry."""
        try:
            return self.look_at(lease_id, in_use=in_use, at_once=at_once)
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
        held = self._store.live_allocations(host.kind, resource_id=host.id, reservation_id=reservation_id)
        if not held:
            raise NotFound(f"reservation {reservation_id[:80]} has no allocation on {host.kind} {host.name}")
        lost = {reservation_id: frozenset({host.id})}
        lease_id = held[0].lease_id
        with scope(limit=self._settings.request_limit):
            # Decided again at every attempt: the start of the lease may be what an attempt lost its race against.
            moved = self._booking.until_it_holds(
                lambda attempt: self._moved_before_start(lease_id, reservation_id, lost, attempt), self._commit
            )
            if moved is None:
                self._check_free(self._store.lease(lease_id), reservation_id, host)
                self._exchange(lease_id, lost, avoid=True)

    def note_lost(self, host: Resource, reservation_ids: Collection[str]) -> bool:
        """Record that reservations in use lack a host which they hold, so that it is assigned again.

        Return whether that was new for any. No poll may have seen the host fail: it can have been away between two.
        Contention if a lease is busy, after all others are done.
        """
        held = self._store.live_allocations(host.kind, resource_id=host.id)
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
        now = self._clock.now()
        lease = self._store.lease(lease_id)
        if lease.status not in (*CALM, LeaseStatus.STARTING, LeaseStatus.UPDATING):
            # The lease is ending: no resource is assigned any more.
            return lease, lease
        if lease.status is LeaseStatus.UPDATING or lifecycle.live_claim(lease, now) is not None:
            # Its allocations or flags are being written at this moment.
            raise Contention(f"lease {lease_id} is being worked on")
        lacking = [
            replace(leaving_out(r, left_out(r) | {host_id}), missing_resources=True, updated_at=now)
            for r in lease.reservations
            if r.id in reservation_ids and r.status is ReservationStatus.ACTIVE and host_id not in left_out(r)
        ]
        return lease, derived(lifecycle.with_reservations(lease, lacking)) if lacking else lease

    def _save(self, change: tuple[Lease, Lease]) -> bool:
        before, after = change
        if after is before:
            return False
        now = self._clock.now()
        self._tell(before, self._store.save(before, replace(after, updated_at=now), at=now))
        return True

    # Before the start: one transaction

    def _see(self, lease_id: str) -> _Seen | None:
        """Return a lease with its allocations; None if it is being worked on."""
        # Before the lease is read: a claim that had not ended then may have been renewed since.
        now = self._clock.now()
        lease = self._store.lease(lease_id)
        if lease.status not in CALM or lifecycle.live_claim(lease, now) is not None:
            return None
        allocations = self._store.lease_allocations(lease_id)
        return _Seen(lease, allocations, self._worker.works_with(lease, allocations))

    def _decide(self, lease_id: str, attempt: int) -> _Decided | None:
        seen = self._see(lease_id)
        if seen is None:
            return None
        return self._decided(seen, failed(seen.works, ReservationStatus.PENDING), attempt)

    def _moved_before_start(self, lease_id: str, reservation_id: str, lost: Lost, attempt: int) -> _Decided | None:
        """Decide on a move that needs only the calendar; None if the reservation is in use."""
        seen = self._settled(lease_id)
        reservation = seen.lease.reservation(reservation_id)
        if reservation is not None and reservation.status not in FLAGGED:
            raise WrongState(f"reservation {reservation_id} is {reservation.status} and cannot be moved")
        if reservation is None or reservation.status is not ReservationStatus.PENDING:
            return None
        decided = self._decided(seen, lost, attempt, avoid=True)
        _check_gone(decided.plan, lost, seen.works)
        return decided

    def _decided(self, seen: _Seen, lost: Lost, attempt: int, *, avoid: bool = False) -> _Decided:
        now = self._clock.now()
        plan, touched = Plan(seen.allocations), frozenset[str]()
        if lost and now < seen.lease.window.end:
            exchange = self._replanner.exchange(
                seen.works, seen.allocations, lost, now=now, attempt=attempt, avoid=avoid
            )
            plan, touched = exchange.plan, exchange.touched
        used = {r.id for r in seen.lease.reservations if r.status is ReservationStatus.ACTIVE}
        after = flagged(seen.lease, plan.allocations, seen.works, unsure=used, now=now)
        return _Decided(seen, after, plan, touched)

    def _commit(self, decided: _Decided | None) -> _Decided | None:
        if decided is None:
            return None
        before, after, plan = decided.seen.lease, decided.after, decided.plan
        now = self._clock.now()
        if decided.touched:
            after = replace(after, updated_at=now)
            saved = self._store.rebook(before, after, plan, at=now)
        elif after is not before:
            saved = self._store.save(before, replace(after, updated_at=now), at=now)
        else:
            return decided
        self._tell(before, saved)
        return replace(decided, after=saved)

    def _tell(self, before: Lease, after: Lease) -> None:
        for id_ in sorted(r.id for r in after.reservations if r.missing_resources):
            LOG.info("Reservation %s of lease %s has resources missing", id_, after.id)
        if (notification := news(before, after)) is not None:
            self._notifier.notify(notification, after)

    # While in use: book, act in the cloud, write; or undo

    def _look_at_what_is_in_use(self, decided: _Decided, *, at_once: bool) -> bool:
        works = self._worker.works_with(decided.after, decided.plan.allocations)
        lost = failed(works, ReservationStatus.ACTIVE) if self._settings.heal_active else {}
        back = frozenset(w.reservation.id for w in works if _is_back(w))
        if not lost and not back:
            return True
        rests = _rests_until(decided.after)
        if not at_once and rests is not None and rests > self._clock.now():
            self.next_try = min(rests, self.next_try or rests)
            return True
        vacant = {w.reservation.id: lost[w.reservation.id] - self._used(w) for w in works if w.reservation.id in lost}
        found = {id_: ids for id_, ids in vacant.items() if ids}
        if not found and not back:
            return True
        with scope(limit=self._settings.request_limit):
            self._exchange(decided.after.id, found, back=back)
        return True

    def _used(self, work: Work) -> frozenset[int]:
        """Return which resources of a reservation in use have servers, or attached addresses, on them."""
        in_use = self._worker.type_of(work.reservation).in_use(work)
        return frozenset(id_ for id_, count in in_use.items() if count)

    def _check_free(self, lease: Lease, reservation_id: str, host: Resource) -> None:
        works = self._worker.works(lease)
        if any(host.id in self._used(work) for work in works if work.reservation.id == reservation_id):
            raise Conflict(
                f"servers of reservation {reservation_id} run on {host.kind} {host.name}; move or delete them, then "
                f"retry"
            )

    def _settled(self, lease_id: str) -> _Seen:
        seen = self._see(lease_id)
        if seen is not None:
            return seen
        lease = self._store.lease(lease_id)
        if lease.status not in CALM:
            raise WrongState(f"lease {lease.id} is {lease.status}; retry when that has finished")
        # An action before the end holds its claim for a moment only: retry shortly.
        raise StaleLease(f"lease {lease.id} is being worked on")

    def _exchange(self, lease_id: str, lost: Lost, *, back: frozenset[str] = frozenset(), avoid: bool = False) -> None:
        """Replace failed resources of a lease in use, and assign recovered ones. ``avoid``: replace all or fail."""

        def decide(attempt: int) -> _Decided:
            seen = self._settled(lease_id)
            if seen.lease.status not in IN_USE:
                raise WrongState(f"lease {lease_id} is {seen.lease.status} and no longer in use")
            decided = self._decided(seen, lost, attempt, avoid=avoid)
            if avoid:
                _check_gone(decided.plan, lost, seen.works)
            return decided

        claim = self._claims.new()

        def commit(decided: _Decided) -> tuple[_Decided, Lease | None]:
            if not decided.touched and not back:
                return decided, None
            return decided, self._begin(decided, claim)

        decided, updating = self._booking.until_it_holds(decide, commit)
        if updating is not None:
            with self._claims.held(claim):
                self._carry_out(decided, updating, decided.touched | back, claim)

    def _begin(self, decided: _Decided, claim: Claim) -> Lease:
        lease, plan = decided.seen.lease, decided.plan
        now = self._clock.now()
        updating = lifecycle.begin_update(
            lease,
            event_id=str(uuid.uuid4()),
            memo=memo_of(decided.seen.allocations),
            token=claim.token,
            now=now,
            until=self._claims.begin(claim),
        )
        both = replace(plan, allocations=union(decided.seen.allocations, plan.allocations))
        return self._store.rebook(lease, updating, both, at=now)

    def _carry_out(self, decided: _Decided, updating: Lease, reservation_ids: Collection[str], claim: Claim) -> None:
        event = lifecycle.update_of(updating)
        plan = decided.plan
        started: dict[str, frozenset[int]] = {}
        try:
            for work in self._worker.works_with(updating, plan.allocations):
                if work.reservation.id in reservation_ids:
                    started[work.reservation.id] = self._start(work, {a.resource_id for a in decided.seen.allocations})
        except BaseException as error:
            reason = error.message if isinstance(error, BlazarError) else "internal error"
            self._worker.perform(lifecycle.with_event(updating, replace(event, reason=reason)), event.id, claim)
            raise
        now = self._clock.now()

        def write(current: Lease) -> Lease:
            settled = lifecycle.settle(current, next(e for e in current.events if e.id == event.id), now=now)
            noted = lifecycle.with_reservations(
                settled, [leaving_out(r, started[r.id]) for r in settled.reservations if r.id in started]
            )
            works = self._worker.works_with(noted, plan.allocations)
            after = flagged(noted, plan.allocations, works, changed=decided.touched, now=now)
            return self._store.rebook(current, after, Plan(plan.allocations), at=now)

        saved = self._worker.finish(updating, event.id, claim, write, what="healed")
        self._tell(decided.seen.lease, saved)

    def _start(self, work: Work, held: Collection[int]) -> frozenset[int]:
        """Ensure that a reservation in use has its resources assigned; return those that cannot be assigned.

        Conflict if one of these is new.
        """
        kind = self._worker.type_of(work.reservation)
        out = left_out(work.reservation) & frozenset(r.id for r in work.resources if r.failure)
        for _ in range(MOST_TURNS):
            try:
                patiently(kind, doing_without(work, out))
            except Unusable as error:
                self._store.set_failed(kind.kind, error.reasons, at=self._clock.now())
                if not error.reasons.keys() <= set(held) - out:
                    raise Conflict(str(error)) from error
                out |= error.reasons.keys()
                continue
            return out
        raise Conflict(
            f"several resources of reservation {work.reservation.id} failed during the exchange; retry later"
        )


def _rests_until(lease: Lease) -> datetime | None:
    """Return the time before which healing is not retried after attempts that were undone.

    It is computed from the record of the lease, so all managers keep to it.
    """
    event = lease.event(EventType.UPDATE)
    tries = lifecycle.undone(event)
    if event is None or not tries or event.updated_at is None:
        return None
    return event.updated_at + min(LONGEST_REST, FIRST_REST * (1 << min(tries - 1, 16)))


def _is_back(work: Work) -> bool:
    """Tell whether a missing resource of a reservation in use has recovered."""
    if work.reservation.status is not ReservationStatus.ACTIVE or not work.reservation.missing_resources:
        return False
    well = {resource.id for resource in work.resources if not resource.failure}
    return len(well) == len(work.resources) or bool(well & left_out(work.reservation))


def _check_gone(plan: Plan, lost: Lost, works: Iterable[Work]) -> None:
    """Raise NotEnoughResources if a reservation would still hold a resource that is to be replaced."""
    names: Mapping[int, Resource] = {resource.id: resource for work in works for resource in work.resources}
    for allocation in plan.allocations:
        if allocation.resource_id in lost.get(allocation.reservation_id, frozenset()):
            host = names[allocation.resource_id]
            raise NotEnoughResources(
                f"Not enough {host.kind}s available: nothing else fits reservation {allocation.reservation_id} instead "
                f"of {host.name} in its window."
            )
