# SPDX-License-Identifier: Apache-2.0
"""Actions: what is done in the cloud for a claimed event, by its type."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta

from blazar.manager.common.claims import Claim
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.read_ahead import ReadAhead
from blazar.manager.events.results import (
    Acted,
    Failed,
    Finished,
    HeldBack,
    Outcome,
    Result,
    Retry,
    StillWorking,
    UnusableResources,
    result_of,
)
from blazar.manager.leases.lifecycle import SavedStateMissing, load_allocations_before, with_reservations
from blazar.manager.leases.ordering import Waits, put_givers_first, sort_by_waits
from blazar.manager.leases.references import waits_at_end, waits_at_start
from blazar.model.base.clock import later
from blazar.model.base.errors import BlazarError, ClaimLost, CloudUnavailable
from blazar.model.base.log_lines import log_level
from blazar.model.base.reasons import Reason, ReasonCode, reason
from blazar.model.base.values import dataclass, replace
from blazar.model.leases.lease import Event, Lease
from blazar.model.leases.reservation import Reservation
from blazar.model.leases.states import LeaseStatus, ReservationStatus
from blazar.resources.contract.type import ResourceType
from blazar.resources.contract.values import NotYet, Progress, Task, Unusable

LOG = logging.getLogger(__name__)

Act = Callable[[ResourceType, Task], Progress]
"""An action of a resource type on one reservation."""

LAST_TRIES = 3
"""Minimum attempts of an action before the end, or of an undo, even if the end has come: a transient failure of the
cloud loses no user's work."""


@dataclass(frozen=True, slots=True)
class EventWork:
    """What an event does with reservations: an action on each, after those that it ``waits`` for.

    ``then`` and ``tolerant`` are as for ``result_of``.
    """

    act: Act
    waits: Waits
    then: ReservationStatus | None
    tolerant: bool

    def result_of(self, outcomes: Collection[Outcome], now: datetime) -> Result:
        """Return the result of an event that did this."""
        return result_of(outcomes, then=self.then, tolerant=self.tolerant, now=now)


def act_in_order(runtime: Runtime, tasks: Collection[Task], work: EventWork, now: datetime) -> tuple[Outcome, ...]:
    """Act on every reservation after those that it waits for; return the outcome of each. ClaimLost.

    Each sees the others in its lease as they have become. It is held while one that it waits for is not finished; where
    failures are tolerated, it fails if that one has failed. Nothing else that happens to one stops another.
    """
    by_id = {task.reservation.id: task for task in tasks}
    outcomes: dict[str, Outcome] = {}
    changed: list[Reservation] = []
    ordered = (id_ for id_ in {**work.waits, **by_id} if id_ in by_id)
    for id_ in sort_by_waits({id_: work.waits.get(id_, frozenset()) for id_ in ordered}):
        task = update_lease_of(by_id[id_], changed)
        # One of a cycle goes first, although others are to come: an end must not wait for ever.
        earlier = [other for other in work.waits.get(id_, ()) if other in outcomes or other not in by_id]
        outcome = _find_blocker(task, work, earlier, outcomes) or _act_on(runtime, task, work.act)
        outcomes[id_] = outcome
        changed += work.result_of([outcome], now).reservations
    return tuple(outcomes[id_] for id_ in by_id)


def update_lease_of(task: Task, changed: Collection[Reservation]) -> Task:
    """Return a task whose lease has other reservations as they have become."""
    return replace(task, lease=with_reservations(task.lease, changed)) if changed else task


def _find_blocker(
    task: Task, work: EventWork, waits: Collection[str], outcomes: Mapping[str, Outcome]
) -> HeldBack | Failed | None:
    """Return why a reservation is not acted on, from what became of those that it waits for; None if it is."""
    held = None
    for other in task.lease.reservations:
        if other.id not in waits:
            continue
        outcome = outcomes.get(other.id)
        if isinstance(outcome, Acted) or (outcome is None and other.status is work.then):
            continue
        if work.tolerant and other.status is ReservationStatus.ERROR:
            text = f"reservation {task.reservation.id} refers to reservation {other.id}, which could not start"
            return Failed(task.reservation, reason(text, ReasonCode.REFERENT_FAILED), permanent=True)
        held = held or HeldBack(task.reservation, other.id)
    return held


def _act_on(runtime: Runtime, task: Task, act: Act) -> Outcome:
    reservation = task.reservation
    try:
        progress = act(runtime.type_of(reservation), task)
    except Unusable as error:
        return UnusableResources(reservation, error.reasons)
    except ClaimLost:
        raise
    except BlazarError as error:
        LOG.log(
            log_level(error, logging.WARNING),
            "Reservation %s of lease %s: %s",
            reservation.id,
            task.lease.id,
            error.message,
        )
        return Failed(reservation, error.reason, permanent=not isinstance(error, CloudUnavailable))
    except Exception as error:
        # The edge of a reservation: a bug in one type must not stop the other reservations of the lease.
        LOG.exception("Reservation %s of lease %s failed unexpectedly", reservation.id, task.lease.id)
        return Failed(reservation, internal_error(error), permanent=False)
    if isinstance(progress, NotYet):
        if progress.cloud_ids is None:
            return progress
        return StillWorking(replace(reservation, cloud_ids=progress.cloud_ids), progress)
    return Acted(reservation, progress.cloud_ids)


def internal_error(error: Exception) -> Reason:
    """Return the reason of work that failed by an error that is a bug."""
    return reason(f"internal error: {type(error).__name__}", ReasonCode.INTERNAL_ERROR)


def _unfinished_reason(what: str, why: Reason) -> Reason:
    return reason(f"{what}: {why.text}", ReasonCode.NOT_FINISHED_AT_END, servers=why.cause.servers)


class Actions:
    """Acts on the reservations of a lease for each type of event but the start."""

    def __init__(self, runtime: Runtime, read_ahead: ReadAhead) -> None:
        self._runtime = runtime
        self._read_ahead = read_ahead

    def before_end(self, lease: Lease, event: Event, claim: Claim) -> Result:
        """Save work as the reservations say, as long as the grace after the end allows."""
        now = self._runtime.clock.now()
        tasks = self._read_ahead.tasks(lease)
        active = [task for task in tasks if task.reservation.status is ReservationStatus.ACTIVE]
        if not active and lease.status is not LeaseStatus.ACTIVE:
            text = f"the lease was {lease.status} when its before_end event was due"
            return Finished(error=reason(text, ReasonCode.LEASE_ENDED))
        result = self._result(active, EventWork(lambda kind, task: kind.before_end(task), {}, then=None, tolerant=True))
        if isinstance(result, Finished):
            return result
        failing = result.after is None
        grace = timedelta(0) if failing else self._runtime.settings.snapshot_grace
        if now >= later(lease.window.end, grace) and not (failing and event.attempts < LAST_TRIES):
            return Finished(error=_unfinished_reason("not finished at the end of the lease", result.reason))
        return result

    def end(self, lease: Lease, event: Event, claim: Claim) -> Result:
        """Return all resources of a lease: at its end, for a deletion, and to undo a creation."""
        tasks = self._read_ahead.tasks(lease)
        left = [task for task in tasks if task.reservation.status is not ReservationStatus.DELETED]
        return self._result(left, self._ending(lease))

    def clean_up(self, lease: Lease, event: Event, claim: Claim) -> Result:
        """Remove the leftovers of a finished lease."""
        # All resources that it ever held: leftovers may be on any of these.
        held = self._runtime.store.calendar.ever_assigned(lease.id)
        resources = self._runtime.store.resources.by_ids(frozenset().union(*held.values()))
        history = self._runtime.history(lease)
        tasks = [
            Task(
                lease,
                r,
                tuple(resources[id_] for id_ in sorted(held.get(r.id, ()))),
                turns=history.get(r.id, {}),
            )
            for r in lease.reservations
        ]
        return self._result(self._runtime.with_shares(tasks), self._ending(lease))

    def undo_update(self, lease: Lease, event: Event, claim: Claim) -> Result:
        """Restore what a lease had before a change that was not finished."""
        try:
            result = self._restored(lease, event)
        except SavedStateMissing as error:
            result = Retry(error.reason)
        if not isinstance(result, Retry) or self._runtime.clock.now() < lease.window.end:
            return result
        if result.after is None and event.attempts < LAST_TRIES:
            return result
        # The end returns all resources, those from before the change and those of it: it need not wait for the undo,
        # whether that fails or only waits.
        return Finished(error=_unfinished_reason("not undone before the end of the lease", result.reason))

    def _restored(self, lease: Lease, event: Event) -> Result:
        held = load_allocations_before(lease, event, self._runtime.kinds_of(lease))
        surplus = {task.reservation.id: task.resources for task in self._read_ahead.tasks(lease)}
        before = self._runtime.tasks(lease, held)

        def restore(kind: ResourceType, task: Task) -> Progress:
            kept = {resource.id for resource in task.resources}
            return kind.restore(task, tuple(r for r in surplus[task.reservation.id] if r.id not in kept))

        both = self._runtime.store.calendar.of_lease(lease.id)
        waits = put_givers_first(waits_at_start(self._runtime, lease), both, held)
        return self._result(before, EventWork(restore, waits, then=None, tolerant=False))

    def _ending(self, lease: Lease) -> EventWork:
        waits = waits_at_end(self._runtime, lease)
        return EventWork(lambda kind, task: kind.end(task), waits, then=ReservationStatus.DELETED, tolerant=False)

    def _result(self, tasks: Collection[Task], work: EventWork) -> Result:
        now = self._runtime.clock.now()
        return work.result_of(act_in_order(self._runtime, tasks, work, now), now)
