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
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from blazar.context import by_itself, scope
from blazar.manager.booking.booking import Booker, Proposal
from blazar.manager.booking.repacking import tell_moved
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.cloud_changes import CloudChanges
from blazar.manager.health.healing_decisions import IN_USE, HealingDecision, HealingDecisions
from blazar.manager.health.missing_resources import FlagReport, report_flags
from blazar.manager.health.replacement import Replacement
from blazar.manager.leases import lifecycle
from blazar.manager.leases.flags import find_failed
from blazar.model.base.errors import BlazarError, Conflict, Contention, NotFound
from blazar.model.base.log_lines import log_level
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import EventType, ReservationStatus
from blazar.model.resources.resource import Resource
from blazar.observe import metrics
from blazar.resources.contract.values import Task
from blazar.store.booking.commit import Commit, LeaseWrite

LOG = logging.getLogger(__name__)

PAGE = 200
"""Leases that are read at a time."""

FIRST_BACKOFF = timedelta(seconds=5)
LONGEST_BACKOFF = timedelta(minutes=10)
"""Back-off after an attempt that was undone: doubles each time, up to the longest."""


class Healing:
    """Replaces failed resources of leases."""

    def __init__(self, runtime: Runtime, booker: Booker, changes: CloudChanges) -> None:
        self._runtime = runtime
        self._booker = booker
        self._decisions = HealingDecisions(runtime)
        self._report = partial(report_flags, runtime)
        self._replacement = Replacement(runtime, booker, changes)
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
        while page := self._runtime.store.leases.find_to_heal(now=now, until=until, after=after, limit=PAGE):
            for after in page:
                if self._stopping.is_set():
                    return busy
                between()
                busy += not self.heal_once(after[1], at_once=at_once)
        return busy

    def process(
        self, lease_id: str, *, in_use: bool = True, at_once: bool = False, report: FlagReport | None = None
    ) -> bool:
        """Heal one lease as far as possible; return False if it has to be retried soon.

        ``in_use``: also replace resources in use, if that is the operator's policy; that needs the cloud. ``at_once``:
        also if the last attempt was undone a moment ago. ``report``, instead of the notifications, is told what is
        written.
        """
        report = self._report if report is None else report
        try:
            decided = self._heal(partial(self._decisions.decide, lease_id), report)
        except Contention:
            return False
        if decided is None:
            return False
        if in_use and decided.after.status in IN_USE:
            return self._heal_in_use(decided, report, at_once=at_once)
        return True

    def heal_once(
        self, lease_id: str, *, in_use: bool = True, at_once: bool = False, report: FlagReport | None = None
    ) -> bool:
        """Do the same as ``process``, but log errors; return False after one, to retry."""
        try:
            with by_itself():
                return self.process(lease_id, in_use=in_use, at_once=at_once, report=report)
        except NotFound:
            # Deleted a moment ago.
            return True
        except BlazarError as error:
            LOG.log(log_level(error, logging.WARNING), "Lease %s cannot be healed yet: %s", lease_id, error.message)
        except Exception:
            # The edge of one lease: others are healed whatever is wrong with this one.
            LOG.exception("Lease %s could not be healed; it will be retried", lease_id)
        metrics.HEALINGS.add("failed")
        return False

    def move_off(self, host: Resource, reservation_id: str) -> None:
        """Replace this resource of a reservation by another one, or change nothing.

        NotFound if the reservation does not hold it; NotEnoughResources if there is no other; Conflict if it is in use;
        WrongState.
        """
        held = self._runtime.store.calendar.load_live(host.kind, resource_id=host.id, reservation_id=reservation_id)
        if not held:
            raise NotFound(
                f"reservation {reservation_id[:80]} has no allocation on {host.kind} {host.name}", at="/reservation_id"
            )
        to_replace = {reservation_id: frozenset({host.id})}
        lease_id = held[0].lease_id
        with scope(limit=self._runtime.settings.request_limit):
            # Decided again at every attempt: the start of the lease may be what an attempt lost its race against.
            decide = partial(self._decisions.decide_move, lease_id, reservation_id, to_replace)
            moved = self._heal(decide, self._report)
            if moved is None:
                self._check_free(self._runtime.store.leases.one(lease_id), reservation_id, host)
                self._replacement.replan(lease_id, to_replace, report=self._report, avoid=True)

    def _heal(self, decide: Callable[[int], HealingDecision | None], report: FlagReport) -> HealingDecision | None:
        """Write what is decided on a lease, and return it with the lease as saved; None if nothing is."""
        done = self._booker.book(lambda attempt: self._propose(decide(attempt)))
        if done.found is None or not done.leases:
            return done.found
        saved = done.leases[0]
        tell_moved(self._runtime, done.found.moved)
        metrics.HEALINGS.add("missing" if any(r.missing_resources for r in saved.reservations) else "healed")
        report(done.found.snapshot.lease, saved)
        return replace(done.found, after=saved)

    def _propose(self, decided: HealingDecision | None) -> Proposal[HealingDecision | None]:
        if decided is None or (decided.after is decided.snapshot.lease and not decided.replanned):
            return Proposal(decided, None)
        before, plan, now = decided.snapshot.lease, decided.plan, self._runtime.clock.now()
        after = replace(decided.after, updated_at=now)
        if not decided.replanned:
            return Proposal(decided, Commit([LeaseWrite(before, after, keeps=True)], at=now))
        writes = [LeaseWrite(before, after, plan.allocations), *decided.moved]
        return Proposal(decided, Commit(writes, at=now, generations=plan.generations))

    def _heal_in_use(self, decided: HealingDecision, report: FlagReport, *, at_once: bool) -> bool:
        tasks = self._runtime.tasks(decided.after, decided.plan.allocations)
        to_replace = find_failed(tasks, ReservationStatus.ACTIVE) if self._runtime.settings.heal_active else {}
        back = frozenset(task.reservation.id for task in tasks if _is_back(task))
        if not to_replace and not back:
            return True
        backs_off_until = _backs_off_until(decided.after)
        if not at_once and backs_off_until is not None and backs_off_until > self._runtime.clock.now():
            self.next_try = min(backs_off_until, self.next_try or backs_off_until)
            return True
        unused = {
            task.reservation.id: to_replace[task.reservation.id] - self._replacement.used(task)
            for task in tasks
            if task.reservation.id in to_replace
        }
        found = {id_: ids for id_, ids in unused.items() if ids}
        if not found and not back:
            return True
        with scope(limit=self._runtime.settings.request_limit):
            self._replacement.replan(decided.after.id, found, report=report, back=back)
        return True

    def _check_free(self, lease: Lease, reservation_id: str, host: Resource) -> None:
        tasks = self._runtime.tasks(lease, self._runtime.store.calendar.of_lease(lease.id))
        if any(host.id in self._replacement.used(task) for task in tasks if task.reservation.id == reservation_id):
            raise Conflict(
                f"servers of reservation {reservation_id} run on {host.kind} {host.name}; move or delete them, then "
                f"retry"
            )


def _backs_off_until(lease: Lease) -> datetime | None:
    """Return the time before which healing is not retried after attempts that were undone.

    It is computed from the record of the lease, so all managers keep to it.
    """
    event = lease.event(EventType.UPDATE)
    tries = lifecycle.count_undone(event)
    if event is None or not tries or event.updated_at is None:
        return None
    return event.updated_at + min(LONGEST_BACKOFF, FIRST_BACKOFF * (1 << min(tries - 1, 16)))


def _is_back(task: Task) -> bool:
    """Tell whether a missing resource of a reservation in use has recovered."""
    if task.reservation.status is not ReservationStatus.ACTIVE or not task.reservation.missing_resources:
        return False
    well = {resource.id for resource in task.resources if not resource.failure}
    return len(well) == len(task.resources) or bool(well & task.reservation.unassigned)
