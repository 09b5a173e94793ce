# SPDX-License-Identifier: Apache-2.0
"""Decisions of healing: which resources of a lease are replaced, and what it is then; nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from blazar.manager.booking.replanning import (
    Replan,
    ToReplace,
    check_not_moving,
    find_moving_reservations,
    replan_allocations,
)
from blazar.manager.common.runtime import Runtime
from blazar.manager.leases import lifecycle
from blazar.manager.leases.flags import FLAGGED, find_failed, set_flags
from blazar.model.base.errors import ClaimedLease, NotEnoughResources, WrongState
from blazar.model.base.values import dataclass
from blazar.model.calendar.allocations import Allocation, AllocationPlan
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import LeaseStatus, ReservationStatus
from blazar.model.resources.resource import Resource
from blazar.resources.contract.values import Task
from blazar.store.booking.commit import LeaseWrite

STABLE_STATES = (LeaseStatus.PENDING, LeaseStatus.ACTIVE, LeaseStatus.ERROR)
"""States in which no work is in progress; some reservations of a lease in ERROR may be in use."""

IN_USE = (LeaseStatus.ACTIVE, LeaseStatus.ERROR)


@dataclass(frozen=True, slots=True)
class LeaseSnapshot:
    """A lease at one revision, with its allocations."""

    lease: Lease
    allocations: tuple[Allocation, ...]
    tasks: tuple[Task, ...]


@dataclass(frozen=True, slots=True)
class HealingDecision:
    """The new state and allocations of a lease; ``replanned`` reservations get new resources.

    ``moved`` are leases of others that make room for it.
    """

    snapshot: LeaseSnapshot
    after: Lease
    plan: AllocationPlan
    replanned: frozenset[str]
    moved: tuple[LeaseWrite, ...] = ()


class HealingDecisions:
    """Decides on leases with failed resources, from the lease and the calendar as they are."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def decide(self, lease_id: str, attempt: int) -> HealingDecision | None:
        """Decide on what has failed before the start; None if the lease is being worked on."""
        snapshot = self._snapshot(lease_id)
        if snapshot is None:
            return None
        return self._decided(snapshot, find_failed(snapshot.tasks, ReservationStatus.PENDING), attempt)

    def decide_move(
        self, lease_id: str, reservation_id: str, to_replace: ToReplace, attempt: int
    ) -> HealingDecision | None:
        """Decide on a move that needs only the calendar; None if the reservation is in use."""
        snapshot = self.settled_snapshot(lease_id)
        reservation = snapshot.lease.reservation(reservation_id)
        if reservation is not None and reservation.status not in FLAGGED:
            raise WrongState(f"reservation {reservation_id} is {reservation.status} and cannot be moved")
        if reservation is None or reservation.status is not ReservationStatus.PENDING:
            return None
        decided = self._decided(snapshot, to_replace, attempt, avoid=True)
        _check_all_replaced(decided.plan, to_replace, snapshot.tasks)
        return decided

    def decide_maintenance(
        self,
        lease_id: str,
        to_replace: Callable[[LeaseSnapshot], ToReplace],
        attempt: int,
        *,
        only: frozenset[int] | None = None,
    ) -> HealingDecision:
        """Decide on resources in maintenance, as many as can be replaced; StaleLease, WrongState, NotFound.

        ``to_replace`` says which they are; ``only`` are the resources to choose from, None for all.
        """
        snapshot = self.settled_snapshot(lease_id)
        return self._decided(snapshot, to_replace(snapshot), attempt, avoid=True, only=only)

    def decide_in_use(self, lease_id: str, to_replace: ToReplace, attempt: int, *, avoid: bool) -> HealingDecision:
        """Decide on resources of a lease in use. StaleLease, WrongState; with ``avoid`` also NotEnoughResources."""
        snapshot = self.settled_snapshot(lease_id)
        if snapshot.lease.status not in IN_USE:
            raise WrongState(f"lease {lease_id} is {snapshot.lease.status} and no longer in use")
        if avoid:
            check_not_moving(self._runtime, snapshot.lease, snapshot.allocations, to_replace)
        elif to_replace:
            # Until their servers have moved, they have a host for each that they lose.
            moving = find_moving_reservations(self._runtime, lease_id, snapshot.allocations)
            to_replace = {id_: ids for id_, ids in to_replace.items() if id_ not in moving}
        decided = self._decided(snapshot, to_replace, attempt, avoid=avoid)
        if avoid:
            _check_all_replaced(decided.plan, to_replace, snapshot.tasks)
        return decided

    def _decided(
        self,
        snapshot: LeaseSnapshot,
        to_replace: ToReplace,
        attempt: int,
        *,
        avoid: bool = False,
        only: frozenset[int] | None = None,
    ) -> HealingDecision:
        now = self._runtime.clock.now()
        replan = Replan(AllocationPlan(snapshot.allocations), frozenset())
        if to_replace and now < snapshot.lease.window.end:
            replan = replan_allocations(
                self._runtime,
                snapshot.tasks,
                snapshot.allocations,
                to_replace,
                now=now,
                attempt=attempt,
                avoid=avoid,
                only=only,
            )
        used = {r.id for r in snapshot.lease.reservations if r.status is ReservationStatus.ACTIVE}
        after = set_flags(snapshot.lease, replan.plan.allocations, snapshot.tasks, uncertain=used, now=now)
        return HealingDecision(snapshot, after, replan.plan, replan.replanned, replan.moved)

    def _snapshot(self, lease_id: str) -> LeaseSnapshot | None:
        """Return a lease with its allocations; None if it is being worked on."""
        # Before the lease is read: a claim that had not ended then may have been renewed since.
        now = self._runtime.clock.now()
        lease = self._runtime.store.leases.one(lease_id)
        if lease.status not in STABLE_STATES or lifecycle.live_claim(lease, now) is not None:
            return None
        allocations = self._runtime.store.calendar.of_lease(lease_id)
        return LeaseSnapshot(lease, allocations, self._runtime.tasks(lease, allocations))

    def settled_snapshot(self, lease_id: str) -> LeaseSnapshot:
        """Return a lease on which nobody works. NotFound, WrongState; StaleLease if that is over in a moment."""
        snapshot = self._snapshot(lease_id)
        if snapshot is not None:
            return snapshot
        lease = self._runtime.store.leases.one(lease_id)
        if lease.status not in STABLE_STATES:
            raise WrongState(f"lease {lease.id} is {lease.status}; retry when that has finished")
        # An action before the end holds its claim for a moment only: retry shortly.
        raise ClaimedLease(f"lease {lease.id} is being worked on")


def _check_all_replaced(plan: AllocationPlan, to_replace: ToReplace, tasks: Iterable[Task]) -> None:
    """Raise NotEnoughResources if a reservation would still hold a resource that is to be replaced."""
    names: Mapping[int, Resource] = {resource.id: resource for task in tasks for resource in task.resources}
    for allocation in plan.allocations:
        if allocation.resource_id in to_replace.get(allocation.reservation_id, frozenset()):
            host = names[allocation.resource_id]
            raise NotEnoughResources(
                f"Not enough {host.kind}s available: nothing else fits reservation {allocation.reservation_id} instead "
                f"of {host.name} in its window."
            )
