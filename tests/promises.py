# SPDX-License-Identifier: Apache-2.0
"""What must hold of the calendar at every instant: no resource is promised beyond its capacity."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime

from blazar.model.calendar.allocations import Allocation
from blazar.model.resources.resource import GENERIC, KINDS, VOLUME, Resource
from blazar.store.store import Store
from tests.copies import check_copies


def check_promises(store: Store, *, since: datetime) -> None:
    """Check every resource of every kind from a moment on, and that what is kept of the calendar says the same.

    Who has overstayed is waited for, and so counts only until the end of its own window.
    """
    for kind in (*KINDS, GENERIC, VOLUME):
        if allocations := store.calendar.load_live(kind):
            resources = {resource.id: resource for resource in store.resources.of_kind(kind)}
            check(allocations, resources, since=since)
    check_copies(store, now=since)


def check(allocations: Iterable[Allocation], resources: Mapping[int, Resource], *, since: datetime) -> None:
    """Check allocations of one kind: in every class at most the capacity, and who has a resource whole alone on it."""
    by_resource: dict[int, list[Allocation]] = defaultdict(list)
    for allocation in allocations:
        by_resource[allocation.resource_id].append(allocation)
    for resource_id, held in by_resource.items():
        # What is promised grows only where a window starts.
        for instant in {since, *(a.window.start for a in held if a.window.start > since)}:
            here = [a for a in held if a.window.contains(instant)]
            wholes = [a for a in here if a.per_instance is None]
            assert not wholes or here == wholes[:1], (instant, here)
            promised: Counter[str] = Counter()
            for allocation in here:
                promised.update(dict(allocation.amounts or ()))
            capacity = resources[resource_id].capacity
            assert all(amount <= capacity.get(name) for name, amount in promised.items()), (instant, promised, here)
