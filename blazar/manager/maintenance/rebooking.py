# SPDX-License-Identifier: Apache-2.0
"""Moves leases off hosts in maintenance: one after the other, by the same re-planning as healing, never in time."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import replace
from functools import partial

from blazar.manager.booking.booking import Booker, Proposal
from blazar.manager.booking.repacking import tell_moved
from blazar.manager.booking.replanning import ToReplace
from blazar.manager.common.runtime import Runtime
from blazar.manager.health.healing_decisions import HealingDecision, HealingDecisions, LeaseSnapshot
from blazar.model.base.errors import Contention, NotFound, WrongState
from blazar.model.base.window import Window
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.reservation import Reservation
from blazar.model.leases.states import LeaseStatus, ReservationStatus
from blazar.model.maintenance.windows import KEEPING, LeasePlan, Maintenance, Outcome, Targets
from blazar.store.booking.commit import Commit, LeaseWrite

LOG = logging.getLogger(__name__)


class LeaseRebooker:
    """Carries out the plans for leases, each in one transaction; a plan that no longer fits is made again."""

    def __init__(self, runtime: Runtime, booker: Booker) -> None:
        self._runtime = runtime
        self._booker = booker
        self._decisions = HealingDecisions(runtime)

    def carry_out(self, maintenance: Maintenance, hosts: frozenset[int], plan: LeasePlan) -> bool:
        """Move a lease as far as possible; return False if it is busy and has to be tried again."""
        try:
            done = self._booker.book(partial(self._propose, maintenance, hosts, plan))
            tell_moved(self._runtime, done.writes[1:])
            if done.leases:
                LOG.info("Lease %s is moved for maintenance %s", plan.lease_id, maintenance.id)
        except NotFound:
            self._runtime.store.maintenance_plans.forget_plan(maintenance.id, plan.lease_id)
        except (Contention, WrongState) as error:
            LOG.debug("Lease %s cannot be moved yet: %s", plan.lease_id, error.message)
            return self._has_begun(maintenance, plan)
        return True

    def _propose(
        self, maintenance: Maintenance, hosts: frozenset[int], plan: LeasePlan, attempt: int
    ) -> Proposal[LeasePlan | None]:
        found: dict[str, ToReplace] = {}

        def to_replace(snapshot: LeaseSnapshot) -> ToReplace:
            found["it"] = _find_to_replace(snapshot, maintenance.window, hosts, plan)
            return found["it"]

        targets = frozenset(id_ for sources in plan.targets.values() for counts in sources.values() for id_ in counts)
        decide = partial(self._decisions.decide_maintenance, plan.lease_id, to_replace, attempt)
        decided = decide(only=targets) if targets and attempt < 2 and not plan.done else decide()
        if _find_unreplaced(decided, found["it"]) and targets and attempt < 2 and not plan.done:
            # Others were faster: anything else that fits will do.
            decided = decide()
        wanted = _update_plan(plan, decided, found["it"])
        if wanted is None or not decided.replanned:
            # In its turn: no operation on leases comes in between, after which the plan is to be carried out again.
            self._write_plan(maintenance, plan, wanted)
            return Proposal(wanted, None)
        now = self._runtime.clock.now()
        write = LeaseWrite(decided.snapshot.lease, replace(decided.after, updated_at=now), decided.plan.allocations)
        writes, generations = [write, *decided.moved], decided.plan.generations
        return Proposal(wanted, Commit(writes, at=now, generations=generations, maintained=(maintenance.id, wanted)))

    def _write_plan(self, maintenance: Maintenance, plan: LeasePlan, wanted: LeasePlan | None) -> None:
        """Write what is stored of a lease with which nothing is to be done. StaleCalendar if it is planned again."""
        store = self._runtime.store.maintenance_plans
        if wanted is None:
            store.forget_plan(maintenance.id, plan.lease_id)
        elif wanted != plan:
            store.save_plan(maintenance.id, wanted)

    def _has_begun(self, maintenance: Maintenance, plan: LeasePlan) -> bool:
        """Tell whether a lease that could not be moved has started meanwhile, and write that."""
        try:
            lease = self._runtime.store.leases.one(plan.lease_id)
        except NotFound:
            self._runtime.store.maintenance_plans.forget_plan(maintenance.id, plan.lease_id)
            return True
        if lease.status in (LeaseStatus.PENDING, LeaseStatus.CREATING, LeaseStatus.UPDATING):
            return False
        self._runtime.store.maintenance_plans.save_plan(
            maintenance.id, replace(plan, outcome=Outcome.ACTIVE, done=True, content=str(Outcome.ACTIVE))
        )
        return True


def _find_to_replace(snapshot: LeaseSnapshot, window: Window, hosts: frozenset[int], plan: LeasePlan) -> ToReplace:
    """Return what a lease has of hosts in maintenance in that time, or of those where it makes room."""
    pending = {r.id for r in snapshot.lease.reservations if r.status is ReservationStatus.PENDING}
    found: dict[str, set[int]] = {}
    for allocation in snapshot.allocations:
        if allocation.reservation_id not in pending:
            continue
        in_the_way = allocation.resource_id in hosts and allocation.window.overlaps(window)
        makes_room = not plan.done and allocation.resource_id in plan.targets.get(allocation.reservation_id, {})
        if in_the_way or (makes_room and plan.makes_room):
            found.setdefault(allocation.reservation_id, set()).add(allocation.resource_id)
    return {id_: frozenset(ids) for id_, ids in found.items()}


def _find_unreplaced(decided: HealingDecision, to_replace: ToReplace) -> list[Allocation]:
    """Return the allocations that should have been replaced, and have not."""
    return [a for a in decided.plan.allocations if a.resource_id in to_replace.get(a.reservation_id, frozenset())]


def _update_plan(plan: LeasePlan, decided: HealingDecision, to_replace: ToReplace) -> LeasePlan | None:
    """Return what is stored of a lease after a decision; None if nothing of it is, or was, in the way."""
    lease = decided.snapshot.lease
    if not to_replace:
        started = [r for r in lease.reservations if _has_started(r) and r.id in plan.targets]
        if started and not (plan.done and plan.outcome in (Outcome.MOVED, Outcome.PARTLY_MOVED)):
            return replace(plan, outcome=Outcome.ACTIVE, done=True, content=str(Outcome.ACTIVE))
        return plan if plan.done and plan.outcome is Outcome.MOVED else None
    left = _find_unreplaced(decided, to_replace)
    targets = _match_targets(decided, to_replace, plan.copy_targets() if plan.done else {})
    moved = any(counts for sources in targets.values() for counts in sources.values())
    if plan.makes_room and left:
        # It was asked for more than it can give: it stays where it is, and nobody has to know.
        return replace(plan, outcome=Outcome.STAYS, done=True, content=None, targets=targets)
    outcome = Outcome.MOVED if not left else Outcome.PARTLY_MOVED if moved else Outcome.NEEDS_OTHER_TIME
    return replace(
        plan,
        outcome=outcome,
        targets=targets,
        openings=() if outcome is Outcome.MOVED else plan.openings,
        done=True,
        content=describe_content(outcome, targets),
    )


def _has_started(reservation: Reservation) -> bool:
    return reservation.status is not ReservationStatus.PENDING


def _match_targets(decided: HealingDecision, to_replace: ToReplace, found: Targets) -> Targets:
    """Return where each host that is left was replaced by, as ``found`` and since; those kept have no targets."""
    before = {(a.reservation_id, a.resource_id): a.count for a in decided.snapshot.allocations}
    after = {(a.reservation_id, a.resource_id): a.count for a in decided.plan.allocations}
    for reservation_id, sources in to_replace.items():
        gains = {
            id_: count - before.get((reservation, id_), 0)
            for (reservation, id_), count in after.items()
            if reservation == reservation_id and count > before.get((reservation, id_), 0)
        }
        for source in sorted(sources):
            lost = before[reservation_id, source] - after.get((reservation_id, source), 0)
            counts: dict[int, int] = {}
            for id_ in sorted(gains):
                taken = min(lost, gains[id_])
                if taken:
                    counts[id_] = taken
                    gains[id_] -= taken
                    lost -= taken
            found.setdefault(reservation_id, {})[source] = counts
    return found


def describe_content(outcome: Outcome, targets: Targets) -> str:
    """Return what the owner of a lease is told, in a word that begins with the outcome: another one is told again."""
    if outcome in KEEPING:
        return str(outcome)
    said = sorted((r, s, sorted(c.items())) for r, sources in targets.items() for s, c in sources.items())
    return f"{outcome}:{hashlib.sha256(repr(said).encode()).hexdigest()[:32]}"
