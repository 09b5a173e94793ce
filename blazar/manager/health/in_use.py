# SPDX-License-Identifier: Apache-2.0
"""Resources of reservations in use: replaced or assigned again by a change that is booked, made in the cloud, and
finished or undone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from blazar.manager.common.claims import Claim
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.cloud_change import CloudChanges
from blazar.manager.events.starting import StartedInUse, start_in_use
from blazar.manager.health.healing_decisions import Decided, HealingDecisions
from blazar.manager.health.missing import FlagReport
from blazar.manager.lease import lifecycle
from blazar.manager.lease.booking import Booking
from blazar.manager.lease.flags import flagged
from blazar.manager.lease.replanning import ToReplace
from blazar.model.demand import Plan
from blazar.model.errors import Conflict
from blazar.model.lease import Lease
from blazar.model.maintenance import LeasePlan
from blazar.resources.base import Task, Unusable


class InUse:
    """Replaces and assigns resources of leases in use."""

    def __init__(self, runtime: Runtime, decisions: HealingDecisions, booking: Booking, changes: CloudChanges) -> None:
        self._runtime = runtime
        self._decisions = decisions
        self._booking = booking
        self._changes = changes

    def replan(
        self,
        lease_id: str,
        to_replace: ToReplace,
        *,
        report: FlagReport,
        back: frozenset[str] = frozenset(),
        avoid: bool = False,
    ) -> None:
        """Replace failed resources of a lease in use, and assign recovered ones. ``avoid``: replace all or fail."""
        claim = self._runtime.claims.new()

        def commit(decided: Decided) -> tuple[Decided, Lease | None]:
            if not decided.replanned and not back:
                return decided, None
            return decided, self._changes.begin(
                decided.snapshot.lease, decided.snapshot.allocations, decided.plan, claim
            )

        decided, updating = self._booking.until_it_holds(
            partial(self._decisions.decide_in_use, lease_id, to_replace, avoid=avoid), commit
        )
        if updating is not None:
            ids = decided.replanned | back
            with self._runtime.claims.held(claim):
                after = self._carried_out(decided, updating, ids, claim, changed=decided.replanned)
                report(decided.snapshot.lease, after)

    def change(self, decide: Callable[[int], tuple[Decided, LeasePlan]], maintenance_id: str) -> LeasePlan:
        """Change what reservations in use have, for a maintenance window; return the plan that is stored with it.

        ``decide`` says at each attempt what they have then, and what is planned when that is done.
        """
        claim = self._runtime.claims.new()

        def begin(found: tuple[Decided, LeasePlan]) -> tuple[Decided, LeasePlan, Lease]:
            decided, plan = found
            snapshot = decided.snapshot
            return decided, plan, self._changes.begin(snapshot.lease, snapshot.allocations, decided.plan, claim)

        decided, plan, updating = self._booking.until_it_holds(decide, begin)
        with self._runtime.claims.held(claim):
            self._carried_out(decided, updating, decided.replanned, claim, maintained=(maintenance_id, plan))
        return plan

    def _carried_out(
        self,
        decided: Decided,
        updating: Lease,
        reservation_ids: Collection[str],
        claim: Claim,
        *,
        changed: Collection[str] = (),
        maintained: tuple[str, LeasePlan] | None = None,
    ) -> Lease:
        event = lifecycle.update_of(updating)
        plan = decided.plan
        started: dict[str, StartedInUse] = {}
        with self._changes.undone_on_failure(updating, event, claim):
            for task in self._runtime.tasks(updating, plan.allocations):
                if task.reservation.id in reservation_ids:
                    started[task.reservation.id] = self._assigned(
                        task, {a.resource_id for a in decided.snapshot.allocations}
                    )
        now = self._runtime.clock.now()

        def write(current: Lease) -> Lease:
            settled = lifecycle.settle(current, next(e for e in current.events if e.id == event.id), now=now)
            noted = lifecycle.with_reservations(
                settled, [started[r.id].noted_on(r) for r in settled.reservations if r.id in started]
            )
            tasks = self._runtime.tasks(noted, plan.allocations)
            after = flagged(noted, plan.allocations, tasks, changed=changed, now=now)
            done = Plan(plan.allocations)
            return self._runtime.store.calendar.rebook(current, after, done, at=now, maintained=maintained)

        return self._changes.finish(updating, event.id, claim, write, what="healed")

    def _assigned(self, task: Task, held: Collection[int]) -> StartedInUse:
        """Ensure that a reservation in use has its resources assigned; return which of them cannot be assigned.

        Conflict if one of these is new.
        """
        try:
            return start_in_use(self._runtime, task, held)
        except Unusable as error:
            raise Conflict(str(error)) from error

    def used(self, task: Task) -> frozenset[int]:
        """Return which resources of a reservation in use have servers, or attached addresses, on them."""
        in_use = self._runtime.type_of(task.reservation).in_use(task)
        return frozenset(id_ for id_, count in in_use.items() if count)
