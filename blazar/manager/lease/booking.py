# SPDX-License-Identifier: Apache-2.0
"""Booking: read the calendar, place, write; all or nothing, and retried after a lost race.

The scheme is Placement's: every resource has a generation, and a booking raises the generations of what it takes
only where they are still those that were read.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from blazar.calendar.placement import Assignment, Matching, Strategy, place
from blazar.context import begun, check_awaited
from blazar.manager.common.settings import Settings
from blazar.model.clock import Clock
from blazar.model.demand import Allocation, Demand, Plan
from blazar.model.errors import Contention, StaleCalendar, StaleLease
from blazar.model.resource import ResourceKind
from blazar.model.window import Window
from blazar.store.catalog import ResourceCatalog
from blazar.store.store import Store

D = TypeVar("D")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PlacementRequest:
    """What one reservation asks of the calendar."""

    reservation_id: str
    demand: Demand


class Booking:
    """Finds resources for demands, and retries a booking that lost a race."""

    def __init__(
        self, store: Store, clock: Clock, settings: Settings, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._sleep = sleep
        # Between processes the generations decide. Within one, taking turns is cheaper than losing races.
        self._turn = threading.Lock()

    def plan(
        self,
        lease_id: str,
        window: Window,
        requests: Sequence[PlacementRequest],
        *,
        now: datetime,
        attempt: int,
        project_id: str,
        is_new: bool = False,
        excluded: frozenset[int] = frozenset(),
        only: frozenset[int] | None = None,
        emptied: frozenset[int] = frozenset(),
    ) -> Plan:
        """Find resources for all placement requests of a lease together. NotEnoughResources says what is missing.

        Resources that the lease itself holds count as free. After a lost race the choice is random, so that competing
        requests choose differently. Resources that are open only to other projects, and excluded ones, are not chosen;
        nor is any but the ``only`` ones, if these are given. Of the hosts that can be emptied only the ``emptied`` are.
        """
        allocations: list[Allocation] = []
        generations: dict[int, int] = {}
        strategy = self._settings.strategy
        if attempt > 0 and strategy is not Strategy.RANDOM:
            strategy = Strategy.SCATTER
        for kind in _kinds(requests):
            mine = [request for request in requests if request.demand.kind == kind]
            with self._store.calendar.view(
                kind,
                window,
                whole_only=all(request.demand.whole for request in mine),
                now=now,
                besides=None if is_new else lease_id,
            ) as view:
                placement = place(
                    [request.demand for request in mine],
                    view.snapshot,
                    strategy=strategy,
                    seed=self._settings.seed(),
                    matching=visible(view.catalog, project_id, excluded, only, emptied),
                )
                generations.update(view.generations(placement.resource_ids))
            for request, assignments in zip(mine, placement.assignments, strict=True):
                allocations += [_allocation(lease_id, window, request, assignment) for assignment in assignments]
        return Plan(tuple(allocations), generations)

    def until_it_holds(
        self, prepare: Callable[[int], D], commit: Callable[[D], T], check: Callable[[D], None] | None = None
    ) -> T:
        """Prepare (attempt 0, 1, …) and commit until no race is lost; Contention when the attempts are spent.

        ``check`` may reject what was prepared, and may be slow: it may ask another service. Only this request waits
        for it; if what was prepared is outdated by then, it is prepared and checked again.
        """
        for attempt in range(self._settings.booking_attempts):
            try:
                if check is not None:
                    with self._turn:
                        prepared = prepare(attempt)
                    check(prepared)
                with self._turn:
                    if check is None:
                        prepared = prepare(attempt)
                    check_awaited()
                    done = commit(prepared)
                    begun()
                    return done
            except (StaleCalendar, StaleLease):
                # Full jitter: requests that collided once should not collide again.
                self._sleep(random.uniform(0, min(0.5, 0.01 * 2**attempt)))
        raise Contention("other requests for the same resources were faster at every attempt; please retry")


def _allocation(lease_id: str, window: Window, request: PlacementRequest, assignment: Assignment) -> Allocation:
    return Allocation(
        kind=request.demand.kind,
        resource_id=assignment.resource_id,
        lease_id=lease_id,
        reservation_id=request.reservation_id,
        window=window,
        count=assignment.count,
        per_instance=request.demand.per_instance,
    )


def visible(
    catalog: ResourceCatalog,
    project_id: str,
    excluded: frozenset[int] = frozenset(),
    only: frozenset[int] | None = None,
    emptied: frozenset[int] = frozenset(),
) -> Matching:
    """Return what finds the resources that meet a requirement, are open to a project and are not excluded.

    ``only`` are the resources to choose from; None: all. Hosts that can be emptied are left out, but for those that are
    ``emptied`` for the lease: these are reservable for it.
    """
    if not excluded and only is None and not catalog.restricted and not catalog.has_evacuable:
        return catalog.matching
    return lambda requirement: [
        replace(r, reservable=True) if r.evacuable else r
        for r in catalog.matching(requirement)
        if r.id not in excluded
        and (only is None or r.id in only)
        and r.is_open_to(project_id)
        and (not r.evacuable or r.id in emptied)
    ]


def _kinds(requests: Sequence[PlacementRequest]) -> list[ResourceKind]:
    return sorted({request.demand.kind for request in requests})
