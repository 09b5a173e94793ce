# SPDX-License-Identifier: Apache-2.0
"""Resources of reservations in use: replaced or assigned again by a change that is booked, made in the cloud, and
finished or undone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from blazar.manager.booking.booking import Booker, Proposal
from blazar.manager.booking.repacking import tell_moved
from blazar.manager.booking.replanning import ToReplace
from blazar.manager.common.claims import Claim
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.cloud_changes import CloudChanges
from blazar.manager.events.starts import StartedInUse, start_in_use
from blazar.manager.health.healing_decisions import HealingDecision, HealingDecisions
from blazar.manager.health.missing_resources import FlagReport
from blazar.manager.leases import lifecycle
from blazar.manager.leases.flags import set_flags
from blazar.model.base.errors import Conflict
from blazar.model.leases.lease import Lease
from blazar.model.maintenance.windows import LeasePlan
from blazar.resources.contract.values import Task, Unusable
from blazar.store.booking.commit import Commit, LeaseWrite


class Replacement:
    """Replaces and assigns resources of leases in use."""

    def __init__(self, runtime: Runtime, booker: Booker, changes: CloudChanges) -> None:
        self._runtime = runtime
        self._decisions = HealingDecisions(runtime)
        self._booker = booker
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

        def propose(attempt: int) -> Proposal[HealingDecision]:
            decided = self._decisions.decide_in_use(lease_id, to_replace, attempt, avoid=avoid)
            begins = decided.replanned or back
            return Proposal(decided, self._begin(decided, claim) if begins else None, claim=claim)

        done = self._booker.book(propose)
        decided = done.found
        tell_moved(self._runtime, decided.moved)
        for updating in done.leases[:1]:
            ids = decided.replanned | back
            with self._runtime.claims.held(claim):
                after = self._carried_out(decided, updating, ids, claim, changed=decided.replanned)
                report(decided.snapshot.lease, after)

    def change(self, decide: Callable[[int], tuple[HealingDecision, LeasePlan]], maintenance_id: str) -> LeasePlan:
        """Change what reservations in use have, for a maintenance window; return the plan that is stored with it.

        ``decide`` says at each attempt what they have then, and what is planned when that is done.
        """
        claim = self._runtime.claims.new()

        def propose(attempt: int) -> Proposal[tuple[HealingDecision, LeasePlan]]:
            found = decide(attempt)
            return Proposal(found, self._begin(found[0], claim), claim=claim)

        done = self._booker.book(propose)
        (decided, plan), updating = done.found, done.leases[0]
        tell_moved(self._runtime, decided.moved)
        with self._runtime.claims.held(claim):
            self._carried_out(decided, updating, decided.replanned, claim, maintained=(maintenance_id, plan))
        return plan

    def _begin(self, decided: HealingDecision, claim: Claim) -> Commit:
        snapshot = decided.snapshot
        begun = self._changes.begin(snapshot.lease, snapshot.allocations, decided.plan, claim)
        return replace(begun, leases=[*begun.leases, *decided.moved])

    def _carried_out(
        self,
        decided: HealingDecision,
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
            after = set_flags(noted, plan.allocations, tasks, changed=changed, now=now)
            done = LeaseWrite(current, after, plan.allocations)
            (saved,) = self._runtime.store.bookings.commit(Commit([done], at=now, maintained=maintained))
            return saved

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
