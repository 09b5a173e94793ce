# SPDX-License-Identifier: Apache-2.0
"""Starts with resources that cannot be assigned: they are replaced, or the start goes on without them."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping
from datetime import datetime

from blazar.context import current
from blazar.manager.booking.asleep import await_hosts, wake_hosts
from blazar.manager.booking.booking import Booker, Proposal
from blazar.manager.booking.repacking import tell_moved
from blazar.manager.booking.replanning import ToReplace, replan_allocations
from blazar.manager.common.claims import Claim
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.actions import EventWork, act_in_order, update_lease_of
from blazar.manager.events.read_ahead import ReadAhead
from blazar.manager.events.results import Finished, HeldBack, Result, Retry, UnusableResources, combine, unusable_reason
from blazar.manager.leases import lifecycle
from blazar.manager.leases.flags import change_notification, find_failed, set_flags
from blazar.manager.leases.ordering import Waits
from blazar.manager.leases.references import waits_at_start
from blazar.model.base.errors import ClaimLost, CloudUnavailable, Conflict
from blazar.model.base.reasons import Reason
from blazar.model.base.values import dataclass, replace
from blazar.model.leases.lease import Event, Lease
from blazar.model.leases.reservation import Content, Reservation
from blazar.model.leases.states import ReservationStatus
from blazar.resources.contract.type import ResourceType
from blazar.resources.contract.values import Done, NotYet, Task, Unusable
from blazar.store.booking.commit import Commit, LeaseWrite

LOG = logging.getLogger(__name__)

MOST_TURNS = 5
"""Rounds in one attempt of a start: each retries with replacements for resources that could not be assigned."""


class Starter:
    """Starts the reservations of a lease; resources that cannot be assigned are replaced, or left out."""

    def __init__(self, runtime: Runtime, replacements: StartReplacements, read_ahead: ReadAhead) -> None:
        self._runtime = runtime
        self._replacements = replacements
        self._read_ahead = read_ahead

    def start(self, lease: Lease, event: Event, claim: Claim) -> Result:
        """Start the reservations that have not started, in rounds: each with replacements for what the last could not
        assign.
        """
        waiting = self._waiting(lease, claim)
        waits = waits_at_start(self._runtime, lease)
        result: Result = Finished()
        reasons: dict[int, str] = {}
        for _ in range(MOST_TURNS):
            now = self._runtime.clock.now()
            # What was started in the rounds before is not written yet.
            tasks = [update_lease_of(task, result.reservations) for task in waiting]
            work = self._starting(tasks, waits, now)
            outcomes = act_in_order(self._runtime, tasks, work, now)
            unusable = [outcome for outcome in outcomes if isinstance(outcome, UnusableResources)]
            if not unusable:
                return _add_note(combine(result, work.result_of(outcomes, now)), reasons)
            held = {outcome.reservation.id for outcome in outcomes if isinstance(outcome, HeldBack)}
            others = [outcome for outcome in outcomes if not isinstance(outcome, UnusableResources | HeldBack)]
            result = combine(result, work.result_of(others, now))
            for outcome in unusable:
                reasons |= outcome.reasons
            waiting, lost = self._replaced(lease, unusable, claim, held=held, left_out=frozenset(reasons))
            if lost:
                now = self._runtime.clock.now()
                errors = [lifecycle.with_status(r, ReservationStatus.ERROR, now) for r in lost]
                result = combine(result, Finished(tuple(errors), _irreplaceable(unusable_reason(reasons))))
        return combine(result, Retry(unusable_reason(reasons)))

    def _starting(self, tasks: Collection[Task], waits: Waits, now: datetime) -> EventWork:
        """Return the work of a start; hosts that sleep are woken, and awaited before anything is done with them."""
        asleep = wake_hosts(self._runtime, tasks, now)
        return EventWork(
            lambda kind, task: await_hosts(task, asleep) or kind.start(task),
            waits,
            then=ReservationStatus.ACTIVE,
            tolerant=True,
        )

    def _waiting(self, lease: Lease, claim: Claim) -> list[Task]:
        """Return the reservations to start, with failed resources replaced: others may be free by now."""
        tasks = self._read_ahead.tasks(lease)
        if lost := find_failed(tasks, ReservationStatus.PENDING):
            tasks = self._read_ahead.tasks(self._replacements.replace_failed(lease.id, lost, claim))
        return [task for task in tasks if task.reservation.status is ReservationStatus.PENDING]

    def _replaced(
        self,
        lease: Lease,
        unusable: Collection[UnusableResources],
        claim: Claim,
        *,
        held: set[str],
        left_out: frozenset[int],
    ) -> tuple[list[Task], list[Reservation]]:
        """Record and replace resources that cannot be assigned.

        Return what to start next, their reservations without these and those that were ``held``, and the reservations
        that have no resources left.
        """
        for outcome in unusable:
            LOG.warning("Reservation %s of lease %s: %s", outcome.reservation.id, lease.id, outcome.reason.text)
            kind = self._runtime.type_of(outcome.reservation).kind
            self._runtime.store.resource_health.set_failed(kind, outcome.reasons, at=self._runtime.clock.now())
        lost = {outcome.reservation.id: frozenset(outcome.reasons) for outcome in unusable}
        tasks = self._read_ahead.tasks(self._replacements.replace_failed(lease.id, lost, claim))
        tried = [_leave_out(task, left_out) if task.reservation.id in lost else task for task in tasks]
        empty = [task.reservation for task in tried if task.reservation.id in lost and not task.resources]
        again = (held | lost.keys()) - {reservation.id for reservation in empty}
        return [task for task in tried if task.reservation.id in again], empty


class StartReplacements:
    """Replaces failed resources of a lease whose start event we have claimed."""

    def __init__(self, runtime: Runtime, booker: Booker) -> None:
        self._runtime = runtime
        self._booker = booker

    def replace_failed(self, lease_id: str, to_replace: ToReplace, claim: Claim) -> Lease:
        """Replace the resources in ``to_replace``, as far as there are others; return the lease as saved.

        ClaimLost if another manager has taken over the start.
        """
        done = self._booker.book(lambda attempt: self._propose(lease_id, to_replace, claim, attempt))
        before, after = done.found, next(iter(done.leases), done.found)
        tell_moved(self._runtime, done.writes[1:])
        if (notification := change_notification(before, after)) is not None:
            self._runtime.notifier.notify(notification, after)
        return after

    def _propose(self, lease_id: str, to_replace: ToReplace, claim: Claim, attempt: int) -> Proposal[Lease]:
        lease = self._runtime.store.leases.one(lease_id, including_deleted=True)
        now = self._runtime.clock.now()
        claimed = lifecycle.live_claim(lease, now)
        if claimed is None or claimed.claimed_by != claim.token:
            raise ClaimLost(f"this manager no longer has the claim on the start of lease {lease_id}")
        allocations = self._runtime.store.calendar.of_lease(lease_id)
        tasks = self._runtime.tasks(lease, allocations)
        replan = replan_allocations(self._runtime, tasks, allocations, to_replace, now=now, attempt=attempt)
        after = set_flags(lease, replan.plan.allocations, tasks, now=now)
        if after is lease and not replan.replanned:
            return Proposal(lease, None)
        write = LeaseWrite(lease, after, replan.plan.allocations)
        return Proposal(lease, Commit([write, *replan.moved], at=now, generations=replan.plan.generations))


@dataclass(frozen=True, slots=True)
class StartedInUse:
    """A reservation in use after a start: the resources that cannot be assigned, and cloud ids to store, if given."""

    unassigned: frozenset[int]
    cloud_ids: Content | None = None

    def noted_on(self, reservation: Reservation) -> Reservation:
        """Return the reservation with what the start has found out."""
        cloud_ids = reservation.cloud_ids if self.cloud_ids is None else self.cloud_ids
        return replace(reservation, unassigned=self.unassigned, cloud_ids=cloud_ids)


def start_and_wait(kind: ResourceType, task: Task) -> Done:
    """Assign resources, waiting until they are ready as long as the deadline allows. CloudUnavailable, Unusable."""
    while isinstance(progress := kind.start(task), NotYet):
        left, pause = current().remaining(), progress.after.total_seconds()
        if left is None or left <= pause:
            raise CloudUnavailable(f"the new resources are not ready: {progress.reason}; retry later").because(
                progress.cause
            )
        if progress.cloud_ids is not None:
            task = replace(task, reservation=replace(task.reservation, cloud_ids=progress.cloud_ids))
        time.sleep(pause)
    return progress


def drop_resources(task: Task, ids: frozenset[int]) -> Task:
    """Return a reservation to start without these of its resources."""
    return replace(
        task,
        resources=tuple(resource for resource in task.resources if resource.id not in ids),
        counts={id_: count for id_, count in task.counts.items() if id_ not in ids},
    )


def start_in_use(runtime: Runtime, task: Task, held: Collection[int] = ()) -> StartedInUse:
    """Ensure that a reservation in use has its resources assigned; return which of them cannot be assigned.

    Resources left out before that have not recovered stay left out. Unusable if a resource that the reservation has
    not ``held`` cannot be assigned, Conflict if one after the other fails; they are marked as failed, so that they are
    not chosen the next time. Where something was left because it cannot be undone, a resource counts as not assigned.
    """
    kind = runtime.type_of(task.reservation)
    out = task.reservation.unassigned & frozenset(r.id for r in task.resources if r.failure)
    for _ in range(MOST_TURNS):
        started = drop_resources(task, out)
        now = runtime.clock.now()
        if (wait := await_hosts(started, wake_hosts(runtime, [started], now))) is not None:
            raise CloudUnavailable(f"the new resources are not ready: {wait.reason}; retry later").because(wait.cause)
        try:
            done = start_and_wait(kind, started)
        except Unusable as error:
            runtime.store.resource_health.set_failed(kind.kind, error.reasons, at=runtime.clock.now())
            if not error.reasons.keys() <= set(held) - out:
                raise
            out |= error.reasons.keys()
            continue
        return StartedInUse(out | done.left, done.cloud_ids)
    raise Conflict(f"several resources of reservation {task.reservation.id} failed during the exchange; retry later")


def _leave_out(task: Task, ids: frozenset[int]) -> Task:
    """Return a reservation to start without some of its resources, with these recorded as left out."""
    out = ids & task.counts.keys()
    return drop_resources(replace(task, reservation=replace(task.reservation, unassigned=out)), out)


def _add_note(result: Result, reasons: Mapping[int, str]) -> Result:
    """Return a result with the reasons why resources were left out, as the note of its success."""
    return replace(result, note=unusable_reason(reasons)) if reasons and isinstance(result, Finished) else result


def _irreplaceable(why: Reason) -> Reason:
    """Return the reason of a reservation that has nothing left."""
    return replace(why, text=f"{why.text}; nothing else is free to take its place")
