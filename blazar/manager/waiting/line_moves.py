# SPDX-License-Identifier: Apache-2.0
"""The first in line may have its turn because leases that have not started get other hosts.

Newcomers get no room by that while anybody waits; who waits does.
"""

from __future__ import annotations

from datetime import datetime

from blazar.calendar.queue.values import Grant, GrantPart, QueuePlan, Waiter
from blazar.calendar.timeline import epoch, from_epoch
from blazar.manager.booking.booking import Selectable
from blazar.manager.booking.host_search import RepackedPlan
from blazar.manager.booking.repacking import plan_first
from blazar.manager.common.runtime import Runtime
from blazar.manager.queue.snapshot import QueueSnapshot, WaitingLease
from blazar.model.base.errors import NotEnoughResources, StaleLease
from blazar.model.base.window import Window
from blazar.model.leases.states import LeaseKind
from blazar.model.resources.resource import HOST


def find_turn_by_moves(runtime: Runtime, snapshot: QueueSnapshot, plan: QueuePlan) -> tuple[Waiter, Grant] | None:
    """Return what the first in line gets from when it has asked for on, if others leave their hosts for it.

    None if it has its turn as it is, or such a way is not found.
    """
    held_back = {blocked.lease_id for blocked in plan.blocked} | snapshot.backing_off.keys()
    first = next((waiter for waiter in snapshot.order() if waiter.lease_id not in held_back), None)
    if first is None:
        return None
    wanted = next(one for one in snapshot.wanted if one.lease.id == first.lease_id)
    start = max(epoch(snapshot.now), first.earliest)
    has_turn = any(grant.lease_id == first.lease_id and grant.start <= start for grant in plan.placed)
    if has_turn or start > first.last_start or not is_moved_for(wanted):
        return None
    window = Window(from_epoch(start), from_epoch(start + first.length))
    try:
        found = plan_turn(runtime, wanted, window, snapshot.now)
    except (NotEnoughResources, StaleLease):
        return None
    numbers = {request.reservation_id: number for number, request in enumerate(wanted.requests)}
    parts = tuple(
        GrantPart(numbers[a.reservation_id], a.kind, a.resource_id, a.count, a.per_instance)
        for a in found.plan.allocations
    )
    return first, Grant(first.lease_id, start, start + first.length, parts)


def is_moved_for(wanted: WaitingLease) -> bool:
    """Tell whether others get other hosts for a lease that waits: for whole hosts, and no tries that count."""
    scheduled = wanted.lease.kind is LeaseKind.SCHEDULED
    return scheduled and all(request.demand.kind == HOST for request in wanted.requests)


def plan_turn(runtime: Runtime, wanted: WaitingLease, window: Window, now: datetime) -> RepackedPlan:
    """Return the hosts of a lease that waits, with the moves of others. NotEnoughResources, StaleLease."""
    lease, select = wanted.lease, Selectable(wanted.lease.project_id)
    found = plan_first(runtime, lease, window, wanted.requests, selectable=select, now=now)
    if found is None:
        raise NotEnoughResources("too few hosts are free, also if leases that have not started get others")
    return found
