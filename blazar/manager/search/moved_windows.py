# SPDX-License-Identifier: Apache-2.0
"""Windows that are free once other leases get other hosts, as a booking would find them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from blazar.calendar.openings import KindSearch, Opening
from blazar.calendar.placement import Assignment, Placement
from blazar.calendar.timeline import epoch
from blazar.manager.booking.repacking import RepackedPlan, count_repacked, find_moves
from blazar.manager.common.runtime import Runtime
from blazar.manager.search.free_time import FreeTime
from blazar.model.base.proof import RefusalProof
from blazar.model.base.window import Window
from blazar.model.search.availability import FreeWindow


def find_by_moves(
    runtime: Runtime, free_time: FreeTime, window: Window, now: datetime, before: Window | None
) -> FreeWindow | RefusalProof | None:
    """Return a window that does not fit as it would be booked if others get other hosts, or what the search proves.

    ``before`` is the window that the lease has, None of a new one. None if no others are asked to leave.
    """
    prolongs = before is None or (window.covers(before) and window.end > before.end)
    if not (prolongs and _has_candidates(free_time.searches)):
        return None
    found = find_moves(runtime, free_time.lease, window, free_time.requests, now)
    return _describe_moved(free_time, window, found) if isinstance(found, RepackedPlan) else found


def _has_candidates(searches: Sequence[KindSearch]) -> bool:
    """Tell whether there are as many resources as each demand for whole ones asks for, free or not."""
    return all(
        not demand.whole or len(search.candidates(demand)) >= demand.min_count
        for search in searches
        for demand in search.demands
    )


def _describe_moved(free_time: FreeTime, window: Window, found: RepackedPlan) -> FreeWindow:
    """Return a window that is free once other leases get other hosts; nothing is known of starts beside it."""
    placements = []
    for kind in free_time.kinds:
        ids = [request.reservation_id for request in free_time.requests if request.demand.kind == kind]
        given = [[a for a in found.plan.allocations if a.reservation_id == id_] for id_ in ids]
        placements.append(Placement(tuple(tuple(Assignment(a.resource_id, a.count) for a in of) for of in given)))
    opening = Opening(epoch(window.start), epoch(window.start), epoch(window.end), tuple(placements))
    return replace(free_time.free_window(opening, window.duration), moves_others=count_repacked(found.moved))
