# SPDX-License-Identifier: Apache-2.0
"""Occurrences for which leases that have not started get other hosts, one after the other, as if each were booked."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime

from blazar.calendar.placement import Assignment, Placement
from blazar.calendar.series import PlannedOccurrence
from blazar.manager.booking.host_search import HostSearch, RepackedPlan
from blazar.manager.booking.repacking import open_moves
from blazar.manager.common.runtime import Runtime
from blazar.manager.series.occurrences import PlannedSeries, allocate
from blazar.model.base.errors import StaleLease
from blazar.model.base.window import Window, enclose
from blazar.model.leases.states import LeaseKind
from blazar.model.resources.resource import HOST

LONGEST_SEARCHES = 1.0
"""Seconds of CPU after which no other occurrence of a plan is searched for."""


def add_by_moves(runtime: Runtime, planned: PlannedSeries, now: datetime, *, without: frozenset[str]) -> PlannedSeries:
    """Return a plan with those of its occurrences, too, for which others leave their hosts, as many as may move.

    What fits as it is stays where it is planned. Leases ``without`` give up what they have.
    """
    unfit = {n: w for n, o in enumerate(planned.plan.occurrences) if (w := _find_window(o, now)) is not None}
    if not unfit or planned.kinds != (HOST,) or planned.new.lease.kind is not LeaseKind.SCHEDULED:
        return planned
    lease, requests = planned.new.lease, planned.new.placement_requests
    search = open_moves(runtime, lease, requests, now, enclose(list(unfit.values())), without=without)
    if search is None:
        return planned
    for occurrence in planned.plan.occurrences:
        if occurrence.fits and (window := occurrence.occurrence.window) is not None:
            search.keep(allocate(planned.new, occurrence, planned.kinds, window))
    found, moved, generations = list(planned.plan.occurrences), planned.moved, dict(planned.generations)
    spent = time.thread_time() + LONGEST_SEARCHES
    for number, window in unfit.items():
        made = None if time.thread_time() > spent else _find(search, window)
        if made is None:
            continue
        search.keep(made.plan.allocations)
        found[number], moved = _place(found[number], search, made), made.moved
        # Those that were read first count.
        generations = {**made.plan.generations, **generations}
    return replace(planned, plan=replace(planned.plan, occurrences=tuple(found)), moved=moved, generations=generations)


def _find_window(planned: PlannedOccurrence, now: datetime) -> Window | None:
    """Return the window of an occurrence that has no room; None if it has, or has begun."""
    window = planned.occurrence.window
    return None if planned.fits or window is None or window.start < now else window


def _find(search: HostSearch, window: Window) -> RepackedPlan | None:
    most = search.runtime.settings.repack.most_leases
    try:
        found = search.find(window)
    except StaleLease:
        return None
    return found if isinstance(found, RepackedPlan) and len(found.moved) <= most else None


def _place(planned: PlannedOccurrence, search: HostSearch, made: RepackedPlan) -> PlannedOccurrence:
    """Return an occurrence with what was found for it."""
    of = [[a for a in made.plan.allocations if a.reservation_id == r.reservation_id] for r in search.requests]
    placement = Placement(tuple(tuple(Assignment(a.resource_id, a.count) for a in some) for some in of))
    return replace(planned, placements=(placement,), reason=None, opening=None)
