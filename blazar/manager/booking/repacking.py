# SPDX-License-Identifier: Apache-2.0
"""Repacking: leases that have not started get other hosts, so that one more fits, or one keeps its own for longer.

They get them for the same time, in the transaction of the change. Nothing of them is in the cloud yet.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from blazar.calendar.repack.values import NotRepacked, RepackMode
from blazar.calendar.timeline import from_epoch
from blazar.manager.booking.booking import PlacementRequest, Selectable, plan_allocations
from blazar.manager.booking.host_reading import HostReading
from blazar.manager.booking.host_search import HostSearch, RepackedPlan, open_search
from blazar.manager.common.notifications import MOVED
from blazar.manager.common.runtime import Runtime
from blazar.model.base.errors import NotEnoughResources, StaleLease
from blazar.model.base.proof import FullInstant, RefusalProof
from blazar.model.base.window import Window
from blazar.model.calendar.allocations import AllocationPlan
from blazar.model.journal.entries import REPACKED, REPACKED_AGAIN
from blazar.model.leases.lease import Lease
from blazar.model.resources.resource import HOST
from blazar.observe import metrics
from blazar.store.booking.commit import LeaseWrite

LOG = logging.getLogger(__name__)

MOST_ATTEMPTS = 4
"""How often what was found may be outdated; then it is tried without."""

MOST_ENDS = 4
"""How many ends are tried to find the latest one: each that is full proves that no later one is possible."""


def plan_repacked(
    runtime: Runtime,
    lease: Lease,
    window: Window,
    requests: Sequence[PlacementRequest],
    *,
    selectable: Selectable,
    now: datetime,
    attempt: int,
) -> RepackedPlan:
    """Return the plan of ``plan_allocations``; if a lease that is changed finds too few hosts, one with moves.

    While anybody waits for a turn nobody is moved. NotEnoughResources is that of the plan without moves.
    """
    try:
        plan = plan_allocations(runtime, lease.id, window, requests, selectable=selectable, now=now, attempt=attempt)
        return RepackedPlan(plan)
    except NotEnoughResources as refused:
        found = plan_moves(runtime, lease, window, requests, refused, selectable=selectable, now=now, attempt=attempt)
        if found is None:
            raise
        return found


def plan_moves(
    runtime: Runtime,
    lease: Lease,
    window: Window,
    requests: Sequence[PlacementRequest],
    refused: NotEnoughResources,
    *,
    selectable: Selectable,
    now: datetime,
    attempt: int,
) -> RepackedPlan | None:
    """Return a plan for a lease that was ``refused`` whole hosts, for which others leave theirs; None if none is found.

    If one was looked for in vain, the refusal says what that proves. While anybody waits for a turn nobody is moved.
    NotEnoughResources if there is not enough of another kind.
    """
    mine = [request for request in requests if request.demand.kind == HOST]
    if refused.kinds != (HOST,) or attempt >= MOST_ATTEMPTS or selectable.only is not None or selectable.emptied:
        return None
    if not _do_others_move(runtime, mine):
        return None
    with metrics.REPACK_DURATION.measure():
        search = open_search(runtime, lease, mine, selectable, now, window)
        found = _note_outcome(search, window, search.find(window))
    if isinstance(found, NotRepacked):
        refused.proof = make_proof(found)
        return None
    others = [request for request in requests if request.demand.kind != HOST]
    if found is None or not others:
        return found
    rest = plan_allocations(runtime, lease.id, window, others, selectable=selectable, now=now, attempt=attempt)
    allocations = (*rest.allocations, *found.plan.allocations)
    return replace(found, plan=AllocationPlan(allocations, {**rest.generations, **found.plan.generations}))


def plan_first(
    runtime: Runtime,
    lease: Lease,
    window: Window,
    requests: Sequence[PlacementRequest],
    *,
    selectable: Selectable,
    now: datetime,
    taken: Iterable[tuple[int, Window]] = (),
    reading: HostReading | None = None,
) -> RepackedPlan | None:
    """Return a plan for which others leave their hosts, for who has its turn or lost a host; None if none is found.

    Hosts that are ``taken`` for some time are for those that come before it. As long as nothing has changed for it, it
    is not searched for again. ``reading`` is what is read for several of them. StaleLease.
    """
    if not requests or not _do_others_move(runtime, requests, comes_first=True):
        return None
    with metrics.REPACK_DURATION.measure():
        search = open_search(runtime, lease, requests, selectable, now, reading or window)
        for host, span in taken:
            search.reserve(host, span)
        found = _note_outcome(search, window, search.find_if_changed(window))
    # What is free by now is not for others to leave.
    return found if isinstance(found, RepackedPlan) and found.moved else None


def _note_outcome(
    search: HostSearch, window: Window, found: RepackedPlan | NotRepacked | None
) -> RepackedPlan | NotRepacked | None:
    """Return what was found, counted."""
    if found is not None:
        metrics.REPACKINGS.add(_name_outcome(found))
    if isinstance(found, RepackedPlan):
        moved = ", ".join(write.after.id for write in found.moved)
        LOG.info("Lease %s gets its hosts until %s, for leases %s get others", search.lease.id, window.end, moved)
    return found


def _do_others_move(runtime: Runtime, requests: Sequence[PlacementRequest], *, comes_first: bool = False) -> bool:
    """Tell whether others get other hosts for such requests: while anybody waits, only for who ``comes_first``."""
    if not all(request.demand.whole for request in requests) or runtime.settings.repack.mode is RepackMode.OFF:
        return False
    return comes_first or not runtime.store.waiting_list.is_anybody_waiting()


def open_moves(
    runtime: Runtime,
    lease: Lease,
    requests: Sequence[PlacementRequest],
    now: datetime,
    around: Window,
    *,
    without: frozenset[str] = frozenset(),
) -> HostSearch | None:
    """Return the search that a booking of whole hosts makes, for any window in ``around``; None if it makes none.

    Leases ``without`` give up what they have.
    """
    if not requests or not _do_others_move(runtime, requests):
        return None
    search = open_search(runtime, lease, requests, Selectable(lease.project_id), now, around)
    # Of many windows none is worth that long.
    search.exact = timedelta(0)
    # How many hosts are in use counts what they have.
    return replace(search, without=without, in_use=None) if without else search


def find_moves(
    runtime: Runtime, lease: Lease, window: Window, requests: Sequence[PlacementRequest], now: datetime
) -> RepackedPlan | RefusalProof | None:
    """Return the plan with moves that a booking or prolongation would get if it was refused hosts, or what that proves.

    None if none is looked for, or if something else lacks.
    """
    refused = NotEnoughResources("")
    refused.kinds, select = (HOST,), Selectable(lease.project_id)
    if not any(request.demand.kind == HOST for request in requests):
        return None
    try:
        found = plan_moves(runtime, lease, window, requests, refused, selectable=select, now=now, attempt=0)
    except (NotEnoughResources, StaleLease):
        return None
    return found or refused.proof


def find_farthest_end(
    runtime: Runtime, lease: Lease, latest: datetime, requests: Sequence[PlacementRequest], now: datetime
) -> datetime | None:
    """Return the latest end to which a lease can be prolonged if others get other hosts; None if that is not known.

    What is full at an instant, whatever is moved, ends it there: with a proof it is exact.
    """
    end, cleaning = latest, runtime.store.calendar.cleaning_time
    for _ in range(MOST_ENDS):
        if end <= lease.window.end:
            return None
        found = find_moves(runtime, lease, Window(lease.window.start, end), requests, now)
        if isinstance(found, RepackedPlan):
            return end
        if found is None or found.full is None:
            return None
        end = found.full.at - cleaning
    return None


def count_repacked(moved: Iterable[LeaseWrite]) -> int:
    """Return how many of these leases get other hosts so that another one fits."""
    return sum(write.makes_room in (REPACKED, REPACKED_AGAIN) for write in moved)


def tell_moved(runtime: Runtime, moved: Iterable[LeaseWrite]) -> None:
    """Tell the owners of leases that were moved, unless they were told within a day; and count them."""
    moved = tuple(moved)
    metrics.REPACKED_LEASES.add(by=count_repacked(moved))
    for write in moved:
        if write.makes_room == REPACKED:
            runtime.notifier.notify(MOVED, write.saved)


def _name_outcome(found: RepackedPlan | NotRepacked) -> str:
    if isinstance(found, RepackedPlan):
        return "found"
    if found.proof is not None:
        return "proven"
    return "too_many" if found.leases else "not_proven"


def make_proof(found: NotRepacked) -> RefusalProof | None:
    """Return what a refusal proves, without names; None if no host would do, which other reasons say better."""
    full = found.full
    if full is None:
        return RefusalProof(None, found.proof is not None, found.leases)
    if not full.hosts:
        return None
    return RefusalProof(FullInstant(from_epoch(full.at), len(full.hosts), full.promised, full.asked))
