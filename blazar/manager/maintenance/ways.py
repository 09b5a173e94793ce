# SPDX-License-Identifier: Apache-2.0
"""The ways of a lease in use off hosts: which it is to leave, which it has got for them, and what is stored of that.

Pure: what a lease has is given, and plans are values.
"""

from __future__ import annotations

from collections.abc import Collection

from blazar.manager.health.healing_decisions import LeaseSnapshot
from blazar.manager.maintenance.rebooking import describe_content
from blazar.model.base.values import dataclass, replace
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.lease import Lease
from blazar.model.leases.reservation import Reservation
from blazar.model.leases.states import ReservationStatus
from blazar.model.maintenance.windows import LeasePlan, Maintenance, Outcome
from blazar.model.resources.resource import Resource
from blazar.resources.contract.values import Task

Key = tuple[str, int]
"""A reservation and a resource, by calendar id."""


@dataclass(frozen=True, slots=True)
class Way:
    """A host that a reservation is to leave, and the one that it has got for that."""

    task: Task
    source: Resource
    target: Resource

    @property
    def left(self) -> Key:
        """What it is to leave."""
        return self.task.reservation.id, self.source.id

    @property
    def taken(self) -> Key:
        """What it has got."""
        return self.task.reservation.id, self.target.id


def is_used(reservation: Reservation) -> bool:
    """Tell whether a reservation is in use."""
    return reservation.status is ReservationStatus.ACTIVE


def drop_others(plan: LeasePlan, lease: Lease) -> LeasePlan:
    """Return a plan without what it says of reservations that have gone to another lease, or are of that."""
    targets = {id_: found for id_, found in plan.targets.items() if lease.reservation(id_) is not None}
    return plan if len(targets) == len(plan.targets) else replace(plan, targets=targets)


def find_ways(snapshot: LeaseSnapshot, plan: LeasePlan) -> list[Way]:
    """Return the hosts that a lease is to leave and has others for, as long as it has both."""
    found = []
    for task in filter(lambda task: is_used(task.reservation), snapshot.tasks):
        held = {resource.id: resource for resource in task.resources}
        for source, targets in sorted(plan.targets.get(task.reservation.id, {}).items()):
            found += [Way(task, held[source], held[t]) for t in targets if source in held and t in held]
    return found


def find_in_the_way(
    snapshot: LeaseSnapshot, maintenance: Maintenance, hosts: frozenset[int]
) -> list[tuple[Task, Resource]]:
    """Return the hosts in maintenance that a lease has in use."""
    if not snapshot.lease.window.overlaps(maintenance.window):
        return []
    used = (task for task in snapshot.tasks if is_used(task.reservation))
    return [(task, resource) for task in used for resource in task.resources if resource.id in hosts]


def find_left_hosts(snapshot: LeaseSnapshot, plan: LeasePlan) -> list[Key]:
    """Return the hosts that a lease has left."""
    held = {(a.reservation_id, a.resource_id) for a in snapshot.allocations}
    return [(id_, s) for id_, sources in plan.targets.items() for s, t in sources.items() if t and (id_, s) not in held]


def restrict_tasks(tasks: Collection[Task], allocations: Collection[Allocation]) -> tuple[Task, ...]:
    """Return tasks with the resources of the allocations alone."""
    held = {(a.reservation_id, a.resource_id) for a in allocations}
    return tuple(
        replace(task, resources=tuple(r for r in task.resources if (task.reservation.id, r.id) in held))
        for task in tasks
    )


def settle_plan(plan: LeasePlan, kept: Collection[tuple[Task, Resource]], note: str) -> LeasePlan:
    """Return what is stored of a lease with which nothing is done at present; ``kept`` are its hosts in maintenance."""
    targets = plan.copy_targets()
    for task, resource in kept:
        targets.setdefault(task.reservation.id, {})[resource.id] = {}
    moved = any(found for sources in targets.values() for found in sources.values())
    outcome = Outcome.ACTIVE if not moved else Outcome.PARTLY_MIGRATED if kept else Outcome.MIGRATED
    return replace(
        plan,
        outcome=outcome,
        targets=targets,
        openings=(),
        makes_room=False,
        done=True,
        content=describe_content(outcome, targets),
        note=note if kept else None,
    )
