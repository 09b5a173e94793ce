# SPDX-License-Identifier: Apache-2.0
"""Who waits may have its turn because leases that have not started get other hosts.

Newcomers get no room by that while anybody waits; who waits does, and takes nothing that is planned for those before.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import datetime

from blazar.calendar.queue.values import Grant, GrantPart, QueuePlan, Waiter
from blazar.calendar.timeline import epoch, from_epoch
from blazar.manager.booking.booking import Selectable
from blazar.manager.booking.host_reading import HostReading
from blazar.manager.booking.host_search import RepackedPlan
from blazar.manager.booking.repacking import plan_first
from blazar.manager.common.runtime import Runtime
from blazar.manager.queue.snapshot import QueueSnapshot, WaitingLease
from blazar.model.base.errors import NotEnoughResources, StaleLease
from blazar.model.base.values import dataclass
from blazar.model.base.window import Window
from blazar.model.leases.states import LeaseKind
from blazar.model.resources.resource import HOST

LONGEST_SEARCHES = 0.5
"""Seconds of CPU after which nobody else in line is searched for in a round."""


@dataclass(frozen=True, slots=True)
class MovedTurn:
    """What a lease in line gets for which others leave their hosts, and what is planned for those before it."""

    waiter: Waiter
    grant: Grant
    before: tuple[Grant, ...] = ()


def find_turn_by_moves(runtime: Runtime, snapshot: QueueSnapshot, plan: QueuePlan) -> MovedTurn | None:
    """Return what the first in line gets, of those that have no turn from when they have asked for on, by moves.

    None if such a way is not found; behind one of which it is not known what it will get, none is looked for.
    """
    held_back = {blocked.lease_id for blocked in plan.blocked} | snapshot.backing_off.keys()
    placed = {grant.lease_id: grant for grant in plan.placed}
    wanted = {one.lease.id: one for one in snapshot.wanted}
    reading = HostReading(runtime, snapshot.now, _find_span(snapshot))
    before, spent = list(plan.advance), time.thread_time() + LONGEST_SEARCHES
    for waiter in snapshot.order():
        if waiter.lease_id in held_back:
            continue
        start, known = max(epoch(snapshot.now), waiter.earliest), placed.get(waiter.lease_id)
        has_turn = known is not None and known.start <= start
        if not has_turn and start <= waiter.last_start and is_moved_for(wanted[waiter.lease_id]):
            grant = _find_grant(reading, wanted[waiter.lease_id], waiter, start, before)
            if grant is not None:
                return MovedTurn(waiter, grant, tuple(before))
        if known is None or time.thread_time() > spent:
            return None
        before.append(known)
    return None


def _find_span(snapshot: QueueSnapshot) -> Window:
    """Return the time in which leases of the line would lie if each had its turn as soon as it has asked for."""
    now = epoch(snapshot.now)
    ends = [max(now, waiter.earliest) + waiter.length for waiter in snapshot.order()]
    return Window(from_epoch(now), from_epoch(max(ends, default=now + 1)))


def _find_grant(
    reading: HostReading, wanted: WaitingLease, waiter: Waiter, start: int, before: Sequence[Grant]
) -> Grant | None:
    """Return what a lease gets from an instant on by moves, for all of its time, or else for the shortest that does."""
    for length in sorted({waiter.length, waiter.shortest}, reverse=True):
        window = Window(from_epoch(start), from_epoch(start + length))
        try:
            found = plan_turn(reading.runtime, wanted, window, reading.now, before, reading)
        except (NotEnoughResources, StaleLease):
            continue
        numbers = {request.reservation_id: number for number, request in enumerate(wanted.requests)}
        parts = tuple(
            GrantPart(numbers[a.reservation_id], a.kind, a.resource_id, a.count, a.per_instance)
            for a in found.plan.allocations
        )
        return Grant(waiter.lease_id, start, start + length, parts)
    return None


def is_moved_for(wanted: WaitingLease) -> bool:
    """Tell whether others get other hosts for a lease that waits: for whole hosts, and no tries that count."""
    scheduled = wanted.lease.kind is LeaseKind.SCHEDULED
    return scheduled and all(request.demand.kind == HOST for request in wanted.requests)


def plan_turn(
    runtime: Runtime,
    wanted: WaitingLease,
    window: Window,
    now: datetime,
    before: Sequence[Grant] = (),
    reading: HostReading | None = None,
) -> RepackedPlan:
    """Return the hosts of a lease that waits, with the moves of others, and none of what is planned for those before.

    NotEnoughResources, StaleLease.
    """
    found = plan_first(
        runtime,
        wanted.lease,
        window,
        wanted.requests,
        selectable=Selectable(wanted.lease.project_id),
        now=now,
        taken=_list_hosts(before),
        reading=reading,
    )
    if found is None:
        raise NotEnoughResources("too few hosts are free, also if leases that have not started get others")
    return found


def _list_hosts(grants: Sequence[Grant]) -> Iterator[tuple[int, Window]]:
    for grant in grants:
        window = Window(from_epoch(grant.start), from_epoch(grant.end))
        yield from ((part.resource_id, window) for part in grant.parts if part.kind == HOST)
