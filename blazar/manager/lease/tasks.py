# SPDX-License-Identifier: Apache-2.0
"""Builds ``Task`` values: the reservations of a lease with their allocated resources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from blazar.model.demand import Allocation
from blazar.model.lease import Lease
from blazar.model.resource import Resource
from blazar.resources.base import Task
from blazar.store.store import Store


def tasks_with(store: Store, lease: Lease, allocations: Collection[Allocation]) -> tuple[Task, ...]:
    """Return the reservations of a lease, each with the resources of its part of the allocations."""
    resources = store.resources.by_ids({a.resource_id for a in allocations}) if allocations else {}
    return tasks_of(lease, allocations, resources)


def tasks_of(lease: Lease, allocations: Collection[Allocation], resources: Mapping[int, Resource]) -> tuple[Task, ...]:
    """Return the reservations of a lease, each with the resources of its part of the allocations."""
    tasks = []
    for reservation in lease.reservations:
        counts: Counter[int] = Counter()
        for allocation in allocations:
            if allocation.reservation_id == reservation.id:
                counts[allocation.resource_id] += allocation.count
        tasks.append(Task(lease, reservation, tuple(resources[id_] for id_ in counts), counts))
    return tuple(tasks)
