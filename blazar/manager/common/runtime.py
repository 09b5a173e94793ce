# SPDX-License-Identifier: Apache-2.0
"""What all parts of a manager share: database, clock, claims, types, and the tasks that a lease is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from blazar.clouds.ports.metrics import Metrics, NoMetrics
from blazar.manager.common.claims import Claims
from blazar.manager.common.notifications import Notifier
from blazar.manager.common.settings import Settings
from blazar.model.amounts import Amounts
from blazar.model.clock import Clock
from blazar.model.demand import Allocation
from blazar.model.errors import NotFound
from blazar.model.lease import Lease, Reservation
from blazar.model.regions import Regions
from blazar.model.resource import Resource, ResourceKind
from blazar.resources.base import Reference, Task
from blazar.resources.complete import CompleteType
from blazar.store.catalog import ResourceCatalog
from blazar.store.store import Store

NO_METRICS = NoMetrics()


@dataclass(frozen=True, slots=True)
class Runtime:
    """Database, clock, claims, settings, notifications and resource types of one manager.

    ``wake`` has the engine look for due events now: a new one may be due before the one that it sleeps for. ``freed``
    tells the waiting list that resources have been returned. ``metrics`` measures servers, where policies name that.
    """

    store: Store
    clock: Clock
    claims: Claims
    settings: Settings
    notifier: Notifier
    types: Mapping[str, CompleteType]
    wake: Callable[[], None]
    regions: Regions = Regions()
    freed: Callable[[], None] = lambda: None
    metrics: Metrics = NO_METRICS

    def type_of(self, reservation: Reservation) -> CompleteType:
        """Return the resource type of a reservation. NotFound if it is no longer enabled."""
        if reservation.resource_type not in self.types:
            raise NotFound(
                f"resource type {reservation.resource_type} is no longer enabled; an operator can enable it again",
                code="invalid_state",
            )
        return self.types[reservation.resource_type]

    def lead_before_end(self, lease: Lease) -> timedelta:
        """Return how long before its end a lease is warned of it by default; zero: it is not."""
        return self.settings.lead_before_end([each.resource_type for each in lease.reservations])

    def kinds_of(self, lease: Lease) -> Mapping[str, ResourceKind]:
        """Return the kind of resource that each reservation of a lease takes. NotFound as for ``type_of``."""
        return {reservation.id: self.type_of(reservation).kind for reservation in lease.reservations}

    def references(self, reservation: Reservation) -> tuple[Reference, ...]:
        """Return the references of a reservation; none if its type is no longer enabled."""
        known = self.types.get(reservation.resource_type)
        return () if known is None else known.references(reservation.parameters)

    def tasks(self, lease: Lease, allocations: Collection[Allocation]) -> tuple[Task, ...]:
        """Return the reservations of a lease, each with the resources of its part of the allocations."""
        history = self.history(lease)
        ids = {a.resource_id for a in allocations}.union(*history.values())
        resources = self.store.resources.by_ids(ids) if ids else {}
        return self.with_shares(tasks_of(lease, allocations, resources, history))

    def with_shares(self, tasks: Collection[Task]) -> tuple[Task, ...]:
        """Return tasks; those whose types must know it can tell what the project has in its other reservations."""
        return tuple(self._with_shares(task) for task in tasks)

    def _with_shares(self, task: Task) -> Task:
        known = self.types.get(task.reservation.resource_type)
        if known is None or not known.reads_shares:
            return task
        return replace(task, shares=partial(self._shares, task.lease.project_id, task.reservation.id))

    def _shares(
        self, project_id: str, besides: str, resource_ids: Collection[int]
    ) -> Mapping[int, Mapping[str, Amounts]]:
        now = self.clock.now()
        return self.store.calendar.shares(project_id, resource_ids, besides=besides, now=now)

    def reads_history(self, lease: Lease) -> bool:
        """Return whether a type of a reservation of a lease must know its history."""
        return any(self._reads_history(reservation) for reservation in lease.reservations)

    def _reads_history(self, reservation: Reservation) -> bool:
        known = self.types.get(reservation.resource_type)
        return known is not None and known.reads_history

    def history(self, lease: Lease) -> History:
        """Return the history of the reservations whose types must know it; no statement if there are none."""
        if not self.reads_history(lease):
            return {}
        used = self.store.calendar.turns(lease.id)
        return {r.id: used.get(r.id, {}) for r in lease.reservations if self._reads_history(r)}


def with_capabilities(task: Task, catalog: ResourceCatalog) -> Task:
    """Return a task whose registered resources have their capabilities, which requirements may name."""
    known = {resource.id: resource for resource in catalog.resources if resource.id in task.counts}
    return replace(task, resources=tuple(known.get(resource.id, resource) for resource in task.resources))


History = Mapping[str, Mapping[int, int]]
"""How often each resource was assigned to each reservation, by its id and calendar id."""


def tasks_of(
    lease: Lease, allocations: Collection[Allocation], resources: Mapping[int, Resource], history: History | None = None
) -> tuple[Task, ...]:
    """Return the reservations of a lease, each with the resources of its part of the allocations."""
    tasks = []
    for reservation in lease.reservations:
        counts: Counter[int] = Counter()
        for allocation in allocations:
            if allocation.reservation_id == reservation.id:
                counts[allocation.resource_id] += allocation.count
        turns = (history or {}).get(reservation.id, {})
        former = tuple(resources[id_] for id_ in sorted(turns.keys() - counts.keys()))
        held = tuple(resources[id_] for id_ in counts)
        tasks.append(Task(lease, reservation, held, counts, former=former, turns=turns))
    return tuple(tasks)
