# SPDX-License-Identifier: Apache-2.0
"""A search for hosts that others leave: what is promised around a window is read once, and searched for each window.

It is read at the first window of which the numbers of hosts in use, which are kept, do not tell that it is full.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from blazar.calendar.maintenance import PromisedPiece, Span
from blazar.calendar.repack.in_use import HostsInUse
from blazar.calendar.repack.refused import RefusedSearch
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
from blazar.calendar.timeline import epoch
from blazar.enforcement import Occasion
from blazar.manager.booking.booking import PlacementRequest, Selectable, match_visible
from blazar.manager.booking.held_calendar import HeldCalendar
from blazar.manager.booking.host_reading import HostReading
from blazar.manager.common.runtime import Runtime
from blazar.model.base.clock import later, to_second
from blazar.model.base.errors import StaleLease
from blazar.model.base.values import dataclass, field, replace
from blazar.model.base.window import Window
from blazar.model.calendar.allocations import Allocation, AllocationPlan
from blazar.model.calendar.demand import Affinity, Demand
from blazar.model.journal.entries import REPACKED, REPACKED_AGAIN
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import LeaseStatus
from blazar.model.resources.requirements import property_keys
from blazar.model.resources.resource import HOST, NAMES, Resource
from blazar.store.booking.commit import LeaseWrite

LONGEST_SEARCH = 0.25
"""Seconds of CPU that a search may take: others that book wait meanwhile."""

MOST_SEARCHES = 3
"""How often is searched, if leases were found that may not move after all."""

TELL_AGAIN = timedelta(days=1)
"""The owner of a lease that is moved again within this time is not told once more."""


@dataclass(frozen=True, slots=True)
class RepackedPlan:
    """What a lease gets, and the leases that make room for it."""

    plan: AllocationPlan
    moved: tuple[LeaseWrite, ...] = ()


@dataclass(slots=True)
class HostSearch:
    """A search for the hosts of a lease, which others leave, in any window within the ``reading``."""

    runtime: Runtime
    lease: Lease
    requests: Sequence[PlacementRequest]
    selectable: Selectable
    now: datetime
    reading: HostReading
    in_use: HostsInUse | None = None
    without: frozenset[str] = frozenset()
    """Leases that give up what they have in the same transaction."""
    exact: timedelta = timedelta(0)
    """How long a solver goes on where the search for a window gives up."""
    _stay: set[str] = field(default_factory=set)
    """Leases that may not move, as was found."""
    _planned: list[PromisedPiece] = field(default_factory=list)
    """What is planned besides, by what was found for other windows."""
    _went: dict[PromisedPiece, int] = field(default_factory=dict)
    """Where pieces go by that, as they are promised."""
    _last: dict[PromisedPiece, int] = field(default_factory=dict)

    @property
    def held(self) -> HeldCalendar:
        """Return what is promised."""
        return self.reading.held

    def find(
        self, window: Window, requests: Sequence[PlacementRequest] | None = None
    ) -> RepackedPlan | NotRepacked | None:
        """Return the plan for the hosts with the moves, or that there is none; None if the search is not for these.

        A window outside of what was read has no answer. ``requests`` are others than those of the lease. The moves are
        those of all that was found and is kept, too.
        """
        wanted = self.requests if requests is None else requests
        start, cleaning = max(window.start, to_second(self.now)), self.runtime.store.calendar.cleaning_time
        span = epoch(start), epoch(later(window.end, cleaning))
        if (full := self._find_full(wanted, span)) is not None:
            return NotRepacked(full)
        pieces, choices = self._list_pieces(span)
        spent = time.thread_time() + LONGEST_SEARCH
        settings, solved = self.runtime.settings.repack, time.monotonic() + self.exact.total_seconds()
        # Before its start it may get others, too; but it is asked for those that it has.
        first, second = self._list_needs(wanted, keeps=True), self._list_needs(wanted, keeps=False)
        refused: NotRepacked | None = None
        for needs in (first, second) if first != second else (first,):
            if not needs:
                continue
            refused = NotRepacked()
            for _ in range(MOST_SEARCHES):
                pieces = [replace(p, movable=False) if p.lease_id in self._stay else p for p in pieces]
                limits = RepackLimits(
                    settings.most_leases,
                    is_spent=lambda: time.thread_time() > spent,
                    exact=solved - time.monotonic(),
                )
                found = repack(RepackProblem(span, needs, pieces, choices, self.held.closed), limits)
                if isinstance(found, NotRepacked):
                    refused = found
                    break
                self._last = self._follow(found.moves)
                moved = self._list_moved(self._last)
                if moved is not None:
                    return self._make_plan(window, wanted, found, moved)
        return refused

    def _find_full(self, requests: Sequence[PlacementRequest], span: Span) -> FullAt | None:
        """Return the proof that so few hosts are free; None if others have to be looked at."""
        if self.in_use is None or any(request.demand.required or request.demand.topology for request in requests):
            return None
        asked = [self.in_use.count_asked(r.demand.min_count, r.demand.pinned) for r in requests]
        return self.in_use.find_full(span, sum(asked))

    def find_next_start(self, at: int, full: FullAt | None) -> int | None:
        """Return the first instant after one that is refused at which there may be room: ``full`` is the proof."""
        if full is None:
            return self._find_next_end(at)
        if self.in_use is not None and full.hosts is self.in_use.hosts:
            return self.in_use.find_room(full.at, full.asked)
        return self._find_next_end(full.at, full.hosts)

    def keep(self, allocations: Iterable[Allocation]) -> None:
        """Let these, and the moves that were found last, be so for all that is searched for after it."""
        self._went = self._last
        for allocation in allocations:
            self.reserve(allocation.resource_id, allocation.window)

    def reserve(self, host: int, window: Window) -> None:
        """Let a host be taken in a window, for all that is searched for after it."""
        span = epoch(window.start), epoch(later(window.end, self.runtime.store.calendar.cleaning_time))
        self._planned.append(PromisedPiece("", "", host, *span, movable=False))

    def _follow(self, moves: Sequence[RepackMove]) -> dict[PromisedPiece, int]:
        """Return where pieces go by all that is kept and by these moves, as they are promised."""
        origins, found = {(p.reservation_id, to): p for p, to in self._went.items()}, dict(self._went)
        for move in moves:
            found[origins.get((move.piece.reservation_id, move.piece.resource_id), move.piece)] = move.to
        return {piece: to for piece, to in found.items() if piece.resource_id != to}

    def find_if_changed(self, window: Window) -> RepackedPlan | NotRepacked | None:
        """Return what ``find`` does; None if that has found no way before, and nothing has changed for it since."""
        begin, end = epoch(max(window.start, to_second(self.now))), epoch(window.end)
        if (full := self._find_full(self.requests, (begin, end))) is not None:
            return NotRepacked(full)
        memory, state = self.runtime.refused_searches, self._sum_up((begin, end))
        if memory.has(self.lease.id, state, begin, end):
            return None
        found = self.find(window)
        if isinstance(found, NotRepacked):
            memory.add(self.lease.id, RefusedSearch(state, begin, end, self._find_next_end(begin)))
        return found

    def _sum_up(self, span: Span) -> int:
        """Return a number that is another one once something has changed that a search in a span depends on."""
        held, near = self.held, self._find_near(span)
        rows = [(piece, held.rows[piece]) for piece in held.held if piece.meets(near)]
        pieces = frozenset((piece, row.keep_hosts, row.lease_status, row.released) for piece, row in rows)
        asked = repr((self.requests, self.selectable, self._planned, sorted(held.closed.items())))
        return hash((pieces, held.view.catalog.version, asked))

    def _find_next_end(self, at: int, hosts: Collection[int] | None = None) -> int | None:
        """Return when the first ends of what is on some hosts at an instant, or of all that is there after it."""
        ends = [
            end
            for host, start, end in (
                *((piece.resource_id, piece.start, piece.end) for piece in self.held.held),
                *((host, *span) for host, spans in self.held.closed.items() for span in spans),
            )
            if end > at and (hosts is None or (host in hosts and start <= at))
        ]
        return min(ends, default=None)

    def _list_needs(self, requests: Sequence[PlacementRequest], *, keeps: bool) -> list[WholeNeed]:
        """Return what is needed, with what the lease has if it ``keeps`` that.

        Nothing if it asks for hosts by name that it cannot have, or for more hosts that lie like those that it has:
        where hosts lie is not known to the search.
        """
        held = self.held
        find, needs = match_visible(held.view.catalog, self.selectable), []
        own: dict[str, set[int]] = {}
        for piece in held.held:
            if piece.lease_id == self.lease.id and keeps and not held.rows[piece].released:
                own.setdefault(piece.reservation_id, set()).add(piece.resource_id)
        for request in requests:
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

    def _find_near(self, span: Span) -> Span:
        """Return the time of all that meets a span."""
        met = [piece for piece in self.held.held if piece.meets(span)]
        return min((p.start for p in met), default=span[0]), max((p.end for p in met), default=span[1])

    def _list_pieces(self, span: Span) -> tuple[list[PromisedPiece], Mapping[str, frozenset[int]]]:
        """Return what others have, with what may be moved, and the hosts that each group of these may have.

        What lies outside of what meets the span was not read as a whole: only what lies inside may move.
        """
        held = self.held
        first, last = self._find_near(span)
        settings = self.runtime.settings.repack
        earliest = epoch(self.now) + int(settings.notice.total_seconds())
        likeness = held.view.catalog.likeness
        choices: dict[str, frozenset[int]] = {}
        pieces = list(self._planned)
        # Filters were not asked about other hosts: for them an equal one is the same.
        goes_anywhere = settings.mode is RepackMode.ANY and not self.runtime.enforcement.enabled
        now_on = {(piece.reservation_id, piece.resource_id): to for piece, to in self._went.items()}
        mine = [piece for piece in held.held if piece.lease_id == self.lease.id] if self._holds_meanwhile else []
        for piece in held.held:
            if piece.lease_id == self.lease.id or piece.lease_id in self.without or not piece.meets((first, last)):
                continue
            here = now_on.get((piece.reservation_id, piece.resource_id), piece.resource_id)
            inside = first <= piece.start and piece.end <= last
            if not (inside and self._may_move(piece, earliest)):
                pieces.append(replace(piece, resource_id=here, movable=False))
                continue
            like = None if goes_anywhere else likeness[piece.resource_id]
            kept = sorted(own.resource_id for own in mine if own.meets((piece.start, piece.end)))
            group = json.dumps([piece.group, like, kept])
            if group not in choices:
                known = held.candidates(piece)
                fitting = frozenset(r.id for r in known if like is None or likeness[r.id] == like)
                choices[group] = fitting.difference(kept)
            pieces.append(replace(piece, resource_id=here, group=group))
        return pieces, choices

    @property
    def _holds_meanwhile(self) -> bool:
        """Whether the lease may hold what it has until a change of it is made in steps, or undone: no others get it."""
        types = self.runtime.types
        only_hosts = all(
            types[r.resource_type].kind == HOST for r in self.lease.reservations if r.resource_type in types
        )
        in_steps = self.runtime.enforcement.needs_acceptance(Occasion.UPDATED, self.lease.project_id)
        return in_steps or not only_hosts or self.lease.status is not LeaseStatus.PENDING

    def _may_move(self, piece: PromisedPiece, earliest: int) -> bool:
        held = self.held
        row = held.rows[piece]
        waits = piece.movable and row.lease_status == str(LeaseStatus.PENDING) and piece.start >= earliest
        waits = waits and not row.keep_hosts
        if not (waits and piece.per_instance is None and piece.affinity is Affinity.ANY):
            return False
        demand = held.find_demand(piece)
        return demand is not None and not demand.topology and not property_keys(demand.requirement) & NAMES

    def _list_moved(self, went: Mapping[PromisedPiece, int]) -> tuple[LeaseWrite, ...] | None:
        """Return the writes of the leases that are moved; None if some may not, which are noted. StaleLease."""
        by_lease: dict[str, list[RepackMove]] = {}
        for piece, to in went.items():
            by_lease.setdefault(piece.lease_id, []).append(RepackMove(piece, to))
        ids = sorted(by_lease)
        revisions = {row.lease_id: row.lease_revision for row in self.held.rows.values()}
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

    def _make_plan(
        self,
        window: Window,
        requests: Sequence[PlacementRequest],
        found: Repack,
        moved: tuple[LeaseWrite, ...],
    ) -> RepackedPlan:
        allocations = tuple(
            Allocation(HOST, host, self.lease.id, request.reservation_id, window)
            for request, hosts in zip(requests, found.hosts, strict=True)
            for host in sorted(hosts)
        )
        gaining = {a.resource_id for a in allocations} | set(self._last.values())
        return RepackedPlan(AllocationPlan(allocations, {id_: self.reading.generations[id_] for id_ in gaining}), moved)


def open_search(
    runtime: Runtime,
    lease: Lease,
    requests: Sequence[PlacementRequest],
    selectable: Selectable,
    now: datetime,
    around: Window | HostReading,
) -> HostSearch:
    """Return a search for all windows in one; two statements now, and a constant number if more has to be read.

    ``around`` a window, or in what is read for several leases.
    """
    reading = HostReading(runtime, now, around) if isinstance(around, Window) else around
    in_use = None if selectable.emptied else reading.read_in_use(lease, requests)
    exact = runtime.settings.repack.exact
    return HostSearch(runtime, lease, requests, selectable, now, reading, in_use, exact=exact)


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
