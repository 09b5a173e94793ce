# SPDX-License-Identifier: Apache-2.0
"""Repacking: leases that have not started get other hosts, so that one more fits, or one keeps its own for longer.

They get them for the same time, in the transaction of the change. Nothing of them is in the cloud yet.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from blazar.calendar.maintenance import PromisedPiece, Span
from blazar.calendar.repack.search import repack
from blazar.calendar.repack.values import (
    FullAt,
    NotRepacked,
    Repack,
    RepackLimits,
    RepackMode,
    RepackMove,
    RepackProblem,
    WholeNeed,
)
from blazar.calendar.timeline import epoch, from_epoch
from blazar.manager.booking.booking import PlacementRequest, Selectable, match_visible, plan_allocations
from blazar.manager.booking.held_calendar import HeldCalendar
from blazar.manager.common.notifications import MOVED
from blazar.manager.common.runtime import Runtime
from blazar.model.base.clock import later, to_second
from blazar.model.base.errors import NotEnoughResources, StaleLease
from blazar.model.base.proof import FullInstant, RefusalProof
from blazar.model.base.window import Window
from blazar.model.calendar.allocations import Allocation, AllocationPlan
from blazar.model.calendar.demand import Affinity, Demand
from blazar.model.journal.entries import REPACKED, REPACKED_AGAIN
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import LeaseStatus
from blazar.model.resources.requirements import property_keys
from blazar.model.resources.resource import HOST, NAMES, Resource
from blazar.observe import metrics
from blazar.store.booking.commit import LeaseWrite

LOG = logging.getLogger(__name__)

LONGEST_SEARCH = 0.25
"""Seconds of CPU that a search may take: others that book wait meanwhile."""

MOST_SEARCHES = 3
"""How often is searched, if leases were found that may not move after all."""

MOST_ATTEMPTS = 4
"""How often what was found may be outdated; then it is tried without."""

MOST_ENDS = 4
"""How many ends are tried to find the latest one: each that is full proves that no later one is possible."""

TELL_AGAIN = timedelta(days=1)
"""The owner of a lease that is moved again within this time is not told once more."""


@dataclass(frozen=True, slots=True)
class RepackedPlan:
    """What a lease gets, and the leases that make room for it."""

    plan: AllocationPlan
    moved: tuple[LeaseWrite, ...] = ()


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
    """Return the plan of ``plan_allocations``; if a lease that is prolonged finds too few hosts, one with moves.

    While anybody waits for a turn nobody is moved. NotEnoughResources is that of the plan without moves.
    """
    try:
        plan = plan_allocations(runtime, lease.id, window, requests, selectable=selectable, now=now, attempt=attempt)
        return RepackedPlan(plan)
    except NotEnoughResources as refused:
        prolongs = window.covers(lease.window) and window.end > lease.window.end
        found = None
        if prolongs:
            found = plan_moves(
                runtime, lease, window, requests, refused, selectable=selectable, now=now, attempt=attempt
            )
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
    possible = refused.kinds == (HOST,) and all(r.demand.whole for r in mine)
    if not possible or attempt >= MOST_ATTEMPTS or selectable.only is not None or selectable.emptied:
        return None
    if runtime.settings.repack.mode is RepackMode.OFF or runtime.store.waiting_list.is_anybody_waiting():
        return None
    with metrics.REPACK_DURATION.measure():
        found = _HostSearch(runtime, lease, window, mine, selectable, now).find()
    if found is not None:
        metrics.REPACKINGS.add(_name_outcome(found))
    if isinstance(found, NotRepacked):
        refused.proof = _make_proof(found.proof)
        return None
    others = [request for request in requests if request.demand.kind != HOST]
    if found is None or not others:
        return found
    rest = plan_allocations(runtime, lease.id, window, others, selectable=selectable, now=now, attempt=attempt)
    allocations = (*rest.allocations, *found.plan.allocations)
    return replace(found, plan=AllocationPlan(allocations, {**rest.generations, **found.plan.generations}))


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


@dataclass(slots=True)
class _HostSearch:
    """A search for the hosts of a lease, which others leave."""

    runtime: Runtime
    lease: Lease
    window: Window
    requests: Sequence[PlacementRequest]
    selectable: Selectable
    now: datetime
    _stay: set[str] = field(default_factory=set)
    """Leases that may not move, as was found."""

    def find(self) -> RepackedPlan | NotRepacked | None:
        """Return the plan for the hosts with the moves, or that there is none; None if the search is not for these.

        A constant number of statements.
        """
        start, cleaning = max(self.window.start, to_second(self.now)), self.runtime.store.calendar.cleaning_time
        around = Window(start, later(self.window.end, cleaning))
        with self.runtime.store.maintenances.open_planning(HOST, self.now, around=around) as view:
            generations = view.generations([resource.id for resource in view.catalog.resources])
        held = HeldCalendar(self.runtime, HOST, view, self.now)
        span = epoch(around.start), epoch(around.end)
        pieces, choices = self._list_pieces(held, span)
        spent = time.thread_time() + LONGEST_SEARCH
        limits = RepackLimits(is_spent=lambda: time.thread_time() > spent)
        # Before its start it may get others, too; but it is asked for those that it has.
        first, second = self._list_needs(held, keeps=True), self._list_needs(held, keeps=False)
        refused: NotRepacked | None = None
        for needs in (first, second) if first != second else (first,):
            if not needs:
                continue
            refused = NotRepacked()
            for _ in range(MOST_SEARCHES):
                pieces = [replace(p, movable=False) if p.lease_id in self._stay else p for p in pieces]
                found = repack(RepackProblem(span, needs, pieces, choices, held.closed), limits)
                if isinstance(found, NotRepacked):
                    refused = found
                    break
                moved = self._list_moved(held, found.moves)
                if moved is not None:
                    return self._make_plan(found, moved, generations)
        return refused

    def _list_needs(self, held: HeldCalendar, *, keeps: bool) -> list[WholeNeed]:
        """Return what is needed, with what the lease has if it ``keeps`` that.

        Nothing if it asks for hosts by name that it cannot have, or for more hosts that lie like those that it has:
        where hosts lie is not known to the search.
        """
        find, needs = match_visible(held.view.catalog, self.selectable), []
        own: dict[str, set[int]] = {}
        for piece in held.held:
            if piece.lease_id == self.lease.id and keeps and not held.rows[piece].released:
                own.setdefault(piece.reservation_id, set()).add(piece.resource_id)
        for request in self.requests:
            demand = request.demand
            fitting = {r.id: r for r in find(demand.requirement) if r.reservable and demand.is_met_by(r)}
            named = frozenset(id_ for id_, resource in fitting.items() if resource.name in demand.required)
            if len(named) < len(demand.required):
                return []
            kept = demand.pinned | named | (own.get(request.reservation_id, set()) & fitting.keys())
            if demand.topology:
                if not demand.min_count <= len(kept) <= demand.max_count:
                    return []
                fitting, demand = {}, replace(demand, max_count=len(kept))
            needs.append(_make_need(demand, fitting, kept))
        return needs

    def _list_pieces(self, held: HeldCalendar, span: Span) -> tuple[list[PromisedPiece], Mapping[str, frozenset[int]]]:
        """Return what others have, with what may be moved, and the hosts that each group of these may have.

        What lies outside of what meets the span was not read as a whole: only what lies inside may move.
        """
        met = [piece for piece in held.held if piece.meets(span)]
        first, last = min((p.start for p in met), default=span[0]), max((p.end for p in met), default=span[1])
        settings = self.runtime.settings.repack
        earliest = epoch(self.now) + int(settings.notice.total_seconds())
        likeness = held.view.catalog.likeness
        choices: dict[str, frozenset[int]] = {}
        pieces = []
        for piece in held.held:
            if piece.lease_id == self.lease.id:
                continue
            inside = first <= piece.start and piece.end <= last
            if not (inside and self._may_move(piece, held, earliest)):
                pieces.append(replace(piece, movable=False))
                continue
            like = likeness[piece.resource_id] if settings.mode is RepackMode.EQUAL else None
            group = json.dumps([piece.group, like])
            if group not in choices:
                known = held.candidates(piece)
                choices[group] = frozenset(r.id for r in known if like is None or likeness[r.id] == like)
            pieces.append(replace(piece, group=group))
        return pieces, choices

    def _may_move(self, piece: PromisedPiece, held: HeldCalendar, earliest: int) -> bool:
        row = held.rows[piece]
        waits = piece.movable and row.lease_status == str(LeaseStatus.PENDING) and piece.start >= earliest
        waits = waits and not row.keep_hosts
        if not (waits and piece.per_instance is None and piece.affinity is Affinity.ANY):
            return False
        demand = held.find_demand(piece)
        return demand is not None and not demand.topology and not property_keys(demand.requirement) & NAMES

    def _list_moved(self, held: HeldCalendar, moves: Sequence[RepackMove]) -> tuple[LeaseWrite, ...] | None:
        """Return the writes of the leases that are moved; None if some may not, which are noted. StaleLease."""
        by_lease: dict[str, list[RepackMove]] = {}
        for move in moves:
            by_lease.setdefault(move.piece.lease_id, []).append(move)
        ids = sorted(by_lease)
        revisions = {row.lease_id: row.lease_revision for row in held.rows.values()}
        leases = {lease.id: lease for lease in self.runtime.store.leases.by_ids(ids)}
        allocations = self.runtime.store.bookings.load_allocations(ids)
        earlier = self.runtime.store.history.count_moves(ids)
        found = []
        for id_ in ids:
            lease = leases.get(id_)
            if lease is None or lease.revision != revisions[id_]:
                raise StaleLease(f"lease {id_} has changed meanwhile")
            past = earlier.get(id_)
            often = (0 if past is None else past.number) >= self.runtime.settings.repack.most_moves
            if often or _is_bound(lease, by_lease[id_]):
                self._stay.add(id_)
                continue
            had = allocations.get(id_, ())
            reason = REPACKED if past is None or past.last <= self.now - TELL_AGAIN else REPACKED_AGAIN
            moved = tuple(_move_allocations(had, by_lease[id_]))
            found.append(LeaseWrite(lease, lease, moved, makes_room=reason))
        return None if self._stay.intersection(ids) else tuple(found)

    def _make_plan(self, found: Repack, moved: tuple[LeaseWrite, ...], generations: Mapping[int, int]) -> RepackedPlan:
        allocations = tuple(
            Allocation(HOST, host, self.lease.id, request.reservation_id, self.window)
            for request, hosts in zip(self.requests, found.hosts, strict=True)
            for host in sorted(hosts)
        )
        gaining = {a.resource_id for a in allocations} | {move.to for move in found.moves}
        LOG.info(
            "Lease %s gets its hosts until %s, for leases %s get others",
            self.lease.id,
            self.window.end,
            ", ".join(write.after.id for write in moved),
        )
        return RepackedPlan(AllocationPlan(allocations, {id_: generations[id_] for id_ in gaining}), moved)


def _name_outcome(found: RepackedPlan | NotRepacked) -> str:
    if isinstance(found, RepackedPlan):
        return "found"
    return "not_proven" if found.proof is None else "proven"


def _make_proof(full: FullAt | None) -> RefusalProof | None:
    """Return what a refusal proves, without names; None if no host would do, which other reasons say better."""
    if full is None:
        return RefusalProof()
    if not full.hosts:
        return None
    return RefusalProof(FullInstant(from_epoch(full.at), len(full.hosts), full.promised, full.asked))


def _make_need(demand: Demand, fitting: Mapping[int, Resource], keeps: Collection[int]) -> WholeNeed:
    """Return the need of a demand for hosts that ``keeps`` some, up to its maximum."""
    first = sorted(demand.pinned) + sorted(frozenset(keeps) - demand.pinned)
    pinned = frozenset(first[: max(len(demand.pinned), demand.max_count)])
    count = max(demand.min_count, len(pinned))
    return WholeNeed(count, frozenset(fitting) | pinned, pinned, demand.max_count)


def _is_bound(lease: Lease, moves: Sequence[RepackMove]) -> bool:
    """Tell whether a lease is bound to its hosts for a reason that the calendar does not know."""
    parts = {reservation.id for reservation in lease.reservations if reservation.parent is not None}
    return lease.is_undecided or any(move.piece.reservation_id in parts for move in moves)


def _move_allocations(held: Sequence[Allocation], moves: Sequence[RepackMove]) -> Iterator[Allocation]:
    to = {(move.piece.reservation_id, move.piece.resource_id): move.to for move in moves}
    for allocation in held:
        target = to.get((allocation.reservation_id, allocation.resource_id))
        yield allocation if target is None else replace(allocation, resource_id=target)
