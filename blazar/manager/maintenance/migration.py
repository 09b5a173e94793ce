# SPDX-License-Identifier: Apache-2.0
"""Moves leases in use off hosts before these are in maintenance, servers and all.

A lease gets another host besides the one that it is to leave, its servers are moved there, and the host without servers
leaves it: two changes of a lease in use, each booked first, made in the cloud, and finished or undone, as a swap. In
between nothing is stored but which host takes the place of which: Nova says how far it has come.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from datetime import datetime
from functools import partial

from blazar.context import scope
from blazar.manager.booking.replanning import ToReplace
from blazar.manager.common.runtime import Runtime
from blazar.manager.health.healing_decisions import HealingDecision, HealingDecisions, LeaseSnapshot
from blazar.manager.health.replacement import Replacement
from blazar.manager.leases.flags import set_flags
from blazar.manager.maintenance.ways import (
    Key,
    Way,
    drop_others,
    find_in_the_way,
    find_left_hosts,
    find_ways,
    is_used,
    restrict_tasks,
    settle_plan,
)
from blazar.model.base.errors import (
    CloudError,
    CloudRefused,
    Conflict,
    Contention,
    NotEnoughResources,
    NotFound,
    WrongState,
)
from blazar.model.base.values import dataclass, replace
from blazar.model.calendar.allocations import AllocationPlan
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import LeaseStatus
from blazar.model.maintenance.windows import OPEN, LeasePlan, Maintenance, MaintenanceStatus, Outcome
from blazar.model.resources.resource import HOST, Resource
from blazar.resources.contract.evacuation import Load, Pace
from blazar.resources.contract.values import NotYet, Task

LOG = logging.getLogger(__name__)

NO_HOST = "no other host meets its requirement, has room for its servers, and is free until its end"
TOO_LATE = "its servers could not be moved in time"
DELETED = "the maintenance window was deleted before its servers were moved"
WINDOW_ENDED = "the maintenance window was ended before its servers were moved"
ENDED = "it ended before all of its servers were moved"

MOST_REFUSALS = 3
"""To how many choices of hosts the cloud says no before a lease waits like one that nothing fits."""


@dataclass(frozen=True, slots=True)
class Phase:
    """When a window has leases migrated: ``since`` the beginning of that, and until when servers are moved.

    ``begun_until`` is for what has begun and would begin only later by now, as the window was changed.
    """

    since: datetime
    until: datetime
    begun_until: datetime

    @classmethod
    def of(cls, maintenance: Maintenance, pace: Pace) -> Phase:
        """Return that of a window: its lead, or if it was opened later, the time that moves may take."""
        since = max(maintenance.window.start - pace.lead, maintenance.created_at)
        changed = maintenance.updated_at or maintenance.created_at
        return cls(since, max(maintenance.window.start, maintenance.created_at + pace.limit), changed + pace.limit)

    def is_over(self, now: datetime) -> bool:
        """Tell whether no servers are moved any more, or not for now."""
        return now >= self.until or self.begun_until <= now < self.since


@dataclass(frozen=True, slots=True)
class LeaseMigration:
    """The migration of one lease off the ``hosts`` of a window; ``token`` is that of the claim on the window."""

    maintenance: Maintenance
    hosts: frozenset[int]
    plan: LeasePlan
    phase: Phase
    token: str


@dataclass(frozen=True, slots=True)
class _Refusals:
    """How often the cloud has not let a lease have another host, which ones, and why the last time."""

    number: int = 0
    hosts: frozenset[int] = frozenset()
    why: str = ""


class LeaseMigrator:
    """Moves leases in use, each a step at a time."""

    def __init__(self, runtime: Runtime, replacement: Replacement) -> None:
        self._runtime = runtime
        self._store = runtime.store.maintenances
        self._plans = runtime.store.maintenance_plans
        self._decisions = HealingDecisions(runtime)
        self._replacement = replacement
        # By lease: what could not be done of late. It need not be known to other managers, which find out.
        self._refusals: dict[str, _Refusals] = {}

    @property
    def pace(self) -> Pace | None:
        """Return how servers are moved; None where that is not done."""
        return find_pace(self._runtime)

    def step(self, migration: LeaseMigration, *, room: int) -> int:
        """Do what can be done now for a lease; return from how many hosts its servers are being moved.

        ``room`` is from how many that may begin. When the time for moves is over nothing is begun any more, and what
        was begun is given up in order. CloudUnavailable, StaleCalendar.
        """
        plan = migration.plan
        with scope(limit=self._runtime.settings.request_limit):
            try:
                lease = self._runtime.store.leases.one(plan.lease_id)
            except NotFound:
                self._plans.forget_plan(migration.maintenance.id, plan.lease_id)
                return 0
            try:
                return self._step(migration, lease, room)
            except (Contention, WrongState) as error:
                LOG.debug("Lease %s cannot be migrated yet: %s", plan.lease_id, error.message)
            except (Conflict, CloudRefused, NotFound) as error:
                # What was begun is undone, and tried again. What was not found is in the cloud, or just deleted.
                LOG.info("Lease %s cannot be migrated yet: %s", plan.lease_id, error.message)
                self._note(migration, error.message)
            return max(1, plan.begun_hosts)

    def _step(self, migration: LeaseMigration, lease: Lease, room: int) -> int:
        maintenance, plan, phase = migration.maintenance, migration.plan, migration.phase
        if lease.status is LeaseStatus.UPDATING:
            return plan.begun_hosts
        if lease.status is not LeaseStatus.ACTIVE:
            if not plan.done and lease.status is not LeaseStatus.PENDING:
                self._save(migration, replace(plan, done=True, note=ENDED if plan.begun_hosts else None))
            return 0
        allocations = self._runtime.store.calendar.of_lease(lease.id)
        snapshot = LeaseSnapshot(lease, allocations, self._runtime.tasks(lease, allocations))
        plan = drop_others(plan, lease)
        migration = replace(migration, plan=plan)
        late = maintenance.status not in OPEN or phase.is_over(self._runtime.clock.now())
        if ways := find_ways(snapshot, plan):
            return self._go_on(migration, ways, late=late)
        in_the_way = find_in_the_way(snapshot, maintenance, migration.hosts)
        if in_the_way and not late:
            return self._begin(migration, in_the_way, room) if room else 0
        if not (in_the_way or find_left_hosts(snapshot, plan)):
            self._plans.forget_plan(maintenance.id, plan.lease_id)
            return 0
        note = plan.note if plan.done and plan.note else self._why_late(maintenance, phase)
        self._save(migration, settle_plan(plan, in_the_way, note))
        return 0

    def _begin(self, migration: LeaseMigration, in_the_way: Collection[tuple[Task, Resource]], room: int) -> int:
        """Get other hosts for those of a lease whose servers can be moved; if there are none, say why."""
        plan, maintenance_id = migration.plan, migration.maintenance.id
        loads: dict[Key, Load] = {}
        notes: list[str] = []
        for task, resource in in_the_way:
            found = read_load(self._runtime, task, resource)
            if found.obstacle:
                notes.append(found.obstacle)
            elif len(loads) < room:
                loads[task.reservation.id, resource.id] = found
        refusals = self._refusals.pop(plan.lease_id, _Refusals())
        if loads and refusals.number >= MOST_REFUSALS:
            notes.append(refusals.why)
        elif loads:
            asked: set[int] = set()

            def decide(attempt: int) -> tuple[HealingDecision, LeasePlan]:
                decided, after = self._with_others(migration, loads, attempt, without=refusals.hosts)
                asked.update(t for sources in after.targets.values() for found in sources.values() for t in found)
                return decided, after

            try:
                begun = self._replacement.change(decide, maintenance_id)
            except NotEnoughResources:
                notes.append(refusals.why or NO_HOST)
            except (Contention, WrongState):
                raise
            except (Conflict, CloudError, NotFound) as error:
                # Another host may do, as one of these may have a server that is not of any lease.
                self._refusals[plan.lease_id] = _Refusals(refusals.number + 1, refusals.hosts | asked, error.message)
                raise
            else:
                LOG.info("Servers of lease %s are moved for maintenance %s", plan.lease_id, maintenance_id)
                return begun.begun_hosts
        self._save(migration, settle_plan(plan, in_the_way, "; ".join(notes)))
        return 0

    def _with_others(
        self, migration: LeaseMigration, loads: Mapping[Key, Load], attempt: int, *, without: frozenset[int]
    ) -> tuple[HealingDecision, LeasePlan]:
        """Return a lease with another host besides each of these, as far as there are any; ``without`` these hosts.

        NotEnoughResources, WrongState, StaleLease.
        """
        lease_id, catalog = migration.plan.lease_id, self._runtime.store.resources.catalog(HOST)
        fitting = frozenset(r.id for r in catalog.resources if all(load.fits(r) for load in loads.values())) - without
        found: dict[str, frozenset[int]] = {}

        def to_replace(snapshot: LeaseSnapshot) -> ToReplace:
            for task in snapshot.tasks:
                held = frozenset(r.id for r in task.resources if (task.reservation.id, r.id) in loads)
                if held and is_used(task.reservation):
                    found[task.reservation.id] = held
            return found

        decided = self._decisions.decide_maintenance(lease_id, to_replace, attempt, only=fitting)
        snapshot = decided.snapshot
        # Read after the lease: what another manager has done for it is seen in both.
        planned, elsewhere = self._plans.load_plan(migration.maintenance.id, lease_id)
        planned = drop_others(planned, snapshot.lease)
        if snapshot.lease.status is not LeaseStatus.ACTIVE or find_ways(snapshot, planned) or elsewhere:
            raise WrongState(f"lease {lease_id} is being migrated, or no longer in use")
        new = [a for a in decided.plan.allocations if a not in snapshot.allocations]
        if not new:
            raise NotEnoughResources(NO_HOST)
        targets = planned.copy_targets()
        for id_, sources in found.items():
            kept = {a.resource_id for a in decided.plan.allocations if a.reservation_id == id_}
            others = [a.resource_id for a in new if a.reservation_id == id_]
            for source, target in zip(sorted(sources - kept), others, strict=True):
                targets.setdefault(id_, {})[source] = {target: 1}
        both = replace(decided.plan, allocations=(*snapshot.allocations, *new))
        after = replace(planned, outcome=Outcome.MIGRATED, targets=targets, done=False, content=None, note=None)
        changed = self._changed(snapshot, both, decided.replanned)
        return replace(changed, moved=decided.moved), after

    def _go_on(self, migration: LeaseMigration, ways: Collection[Way], *, late: bool) -> int:
        """Move servers, and drop the hosts that have none; when it is late, those that got none in their place."""
        maintenance, plan = migration.maintenance, migration.plan
        drop: set[Key] = set()
        notes: list[str] = []
        stuck = 0
        for way in ways:
            kind = self._runtime.type_of(way.task.reservation)
            if late:
                progress = kind.stop_moving(way.task, way.source)
            else:
                progress = kind.move_servers(way.task, way.source, way.target, migration.phase.since)
            if isinstance(progress, NotYet):
                notes.append(progress.reason)
                continue
            used = kind.in_use(replace(way.task, resources=(way.source, way.target))) if late else {}
            if way.source.id not in used:
                drop.add(way.left)
            elif way.target.id not in used:
                drop.add(way.taken)
            else:
                notes.append(f"it has servers on {way.source.name} and on {way.target.name}, and keeps both")
                stuck += 1
        if drop:
            decide = partial(self._without, migration, drop, late=late)
            after = self._replacement.change(decide, maintenance.id)
            LOG.info("Lease %s has left %d hosts for maintenance %s", plan.lease_id, len(drop), maintenance.id)
            return 0 if after.done else len(ways) - len(drop)
        if stuck == len(ways) and maintenance.status not in OPEN:
            kept = [(way.task, way.source) for way in ways]
            self._save(migration, settle_plan(plan, kept, "; ".join(notes)))
            return 0
        self._note(migration, "; ".join(notes))
        return len(ways)

    def _without(
        self, migration: LeaseMigration, drop: Collection[Key], attempt: int, *, late: bool
    ) -> tuple[HealingDecision, LeasePlan]:
        """Return a lease without these hosts. WrongState if it has not both hosts of each way any more; StaleLease."""
        lease_id, maintenance = migration.plan.lease_id, migration.maintenance
        snapshot = self._decisions.settled_snapshot(lease_id)
        planned, _ = self._plans.load_plan(maintenance.id, lease_id)
        ways = find_ways(snapshot, planned)
        dropped = [key for way in ways for key in (way.left, way.taken) if key in drop]
        if snapshot.lease.status is not LeaseStatus.ACTIVE or len(dropped) < len(drop):
            raise WrongState(f"lease {lease_id} has other hosts, or is no longer in use")
        left = tuple(a for a in snapshot.allocations if (a.reservation_id, a.resource_id) not in drop)
        targets = planned.copy_targets()
        for way in ways:
            if way.taken in drop:
                targets[way.left[0]][way.left[1]] = {}
        after = replace(planned, targets=targets, note=None)
        decided = self._changed(snapshot, AllocationPlan(left), frozenset(id_ for id_, _ in drop))
        then = replace(snapshot, lease=decided.after, allocations=left, tasks=restrict_tasks(snapshot.tasks, left))
        in_the_way = find_in_the_way(then, maintenance, migration.hosts)
        if not find_ways(then, after) and (late or not in_the_way):
            after = settle_plan(after, in_the_way, self._why_late(maintenance, migration.phase))
        return decided, after

    def _why_late(self, maintenance: Maintenance, phase: Phase) -> str:
        """Return why no servers are moved any more: an operator has ended the window, or their time is over."""
        if maintenance.status is MaintenanceStatus.CANCELLED:
            return DELETED
        if maintenance.status not in OPEN and self._runtime.clock.now() < phase.until:
            return WINDOW_ENDED
        return TOO_LATE

    def _changed(
        self, snapshot: LeaseSnapshot, plan: AllocationPlan, reservation_ids: frozenset[str]
    ) -> HealingDecision:
        now = self._runtime.clock.now()
        return HealingDecision(
            snapshot, set_flags(snapshot.lease, plan.allocations, snapshot.tasks, now=now), plan, reservation_ids
        )

    def _note(self, migration: LeaseMigration, note: str) -> None:
        """Write what an operator should know of a lease: nothing else of its plan, which may be newer than ours."""
        self._save(migration, replace(migration.plan, note=note))

    def _save(self, migration: LeaseMigration, after: LeasePlan) -> None:
        if after != migration.plan:
            self._plans.save_plan(migration.maintenance.id, after, token=migration.token)


def find_pace(runtime: Runtime) -> Pace | None:
    """Return how servers of hosts are moved; None where no type does that, or where there are several regions."""
    known = [] if runtime.regions else [kind.pace for kind in runtime.types.values()]
    return next((pace for pace in known if pace is not None), None)


def read_load(runtime: Runtime, task: Task, resource: Resource) -> Load:
    """Return what the servers of a reservation in use have of a resource, or why it keeps that."""
    kind, parent = runtime.type_of(task.reservation), task.reservation.parent
    if kind.pace is None:
        return kind.load(task, resource)
    if parent is not None:
        return Load(obstacle=f"reservation {task.reservation.id} is a part of reservation {parent}")
    if resource.evacuable:
        return Load(obstacle=f"host {resource.name} was emptied for the lease")
    return kind.load(task, resource)
