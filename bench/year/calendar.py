# SPDX-License-Identifier: Apache-2.0
"""A calendar in memory on which requests are booked as the service books them: placed, or else others move."""

from __future__ import annotations

import time
from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from operator import attrgetter

from bench.year.trace import ASKED, DAY, HOUR, YearRequest, make_hosts, make_requirements
from blazar.calendar.maintenance import PromisedPiece
from blazar.calendar.occupancy import Occupancy, Snapshot
from blazar.calendar.placement import Strategy, place
from blazar.calendar.repack.search import repack
from blazar.calendar.repack.values import NotRepacked, Repack, RepackLimits, RepackMode, RepackProblem, WholeNeed
from blazar.calendar.scarcity import Sought, rank_resources
from blazar.model.base.errors import NotEnoughResources
from blazar.model.calendar.demand import Demand
from blazar.model.resources.requirements import Requirement
from blazar.model.resources.resource import HOST, Resource

NOTICE = 2 * HOUR
LONGEST_SEARCH = 0.25
_START = attrgetter("start")


@dataclass(slots=True)
class YearCalendar:
    """What is promised of each host, in the order of time, and what came of the requests."""

    mode: RepackMode
    now: int = 0
    exact: float = 0.0
    on: dict[int, list[PromisedPiece]] = field(default_factory=lambda: defaultdict(list))
    counts: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    hosts: Sequence[Resource] = field(default_factory=make_hosts)
    _ranked: Sequence[Resource] = ()
    _ranked_at: int = -DAY
    _class_of: dict[int, object] = field(default_factory=dict)
    _sought: Counter[int] = field(default_factory=Counter)
    _requirements: Sequence[Requirement] = field(default_factory=make_requirements)
    _eligible: dict[Requirement, list[Resource]] = field(default_factory=dict)
    _number: int = 0

    def ask(self, request: YearRequest) -> bool:
        """Book a request, or refuse it; with moves if that is the mode."""
        self.now = request.at
        self._rank()
        self._sought[request.asked] += int(request.host_hours)
        begin = time.thread_time()
        hosts = self._place(request)
        if hosts is None and self.mode is not RepackMode.OFF:
            found = self._repack(request, [self._need(request)])
            hosts = found.hosts[0] if isinstance(found, Repack) else None
        self.seconds["booking"].append(time.thread_time() - begin)
        if hosts is None:
            return False
        self._number += 1
        name = f"l{self._number}"
        for host in hosts:
            self._add(PromisedPiece(name, name, host, request.start, request.end, group=str(request.asked)))
        return True

    def prolong(self, lease: Sequence[PromisedPiece], by: int) -> tuple[bool, bool]:
        """Tell whether a lease in use could go on for so long on its hosts: as it is, and if others may move."""
        start, end = lease[0].end, lease[0].end + by
        own = frozenset(piece.resource_id for piece in lease)
        free = all(self._is_free(host, start, end) for host in own)
        if free or self.mode is RepackMode.OFF:
            return free, free
        asked = YearRequest(self.now, start, end, len(own), 0)
        return False, isinstance(self._repack(asked, [WholeNeed(len(own), own, own)], write=False), Repack)

    def list_in_use(self) -> list[list[PromisedPiece]]:
        """Return what has begun and goes on, by lease."""
        found: dict[str, list[PromisedPiece]] = defaultdict(list)
        for pieces in self.on.values():
            place_ = bisect_left(pieces, self.now + 1, key=_START)
            if place_ and pieces[place_ - 1].end > self.now:
                found[pieces[place_ - 1].lease_id].append(pieces[place_ - 1])
        return list(found.values())

    def count_used(self, days: int) -> float:
        """Return the part of all host-hours of so many days that was promised."""
        spans = [(p.start, min(p.end, days * DAY)) for pieces in self.on.values() for p in pieces]
        return sum(max(0, end - start) for start, end in spans) / (len(self.hosts) * days * DAY)

    def _find(self, requirement: Requirement) -> list[Resource]:
        if requirement not in self._eligible:
            ids = self._classes(requirement)
            self._eligible[requirement] = [host for host in self._ranked if self._class_of[host.id] in ids]
        return self._eligible[requirement]

    def _classes(self, requirement: Requirement) -> set[str]:
        return {f"c{number}" for number in ASKED[self._requirements.index(requirement)][1]}

    def _rank(self) -> None:
        """Rank the hosts once a day by what was asked for, as the service does."""
        if self.now < self._ranked_at + DAY:
            return
        self._ranked_at = self.now
        self._class_of = {host.id: host.properties["class"] for host in self.hosts}
        self._eligible.clear()
        self._ranked = self.hosts
        sought = [Sought(Demand(HOST, 1, 1, self._requirements[n]), hours) for n, hours in self._sought.items()]
        tiers = rank_resources(self.hosts, sought, matching=self._find, public=frozenset({"class"}))
        self._ranked = [replace(host, tier=tiers[host.id]) for host in self.hosts]
        self._ranked.sort(key=lambda host: (host.tier, host.id))
        self._eligible.clear()

    def _is_free(self, host: int, start: int, end: int) -> bool:
        pieces = self.on[host]
        place_ = bisect_left(pieces, end, key=_START)
        return not place_ or pieces[place_ - 1].end <= start

    def _place(self, request: YearRequest) -> frozenset[int] | None:
        taken, room = set(), {}
        for host in self._find(self._requirements[request.asked]):
            pieces = self.on[host.id]
            place_ = bisect_left(pieces, request.end, key=_START)
            if place_ and pieces[place_ - 1].end > request.start:
                taken.add(host.id)
                continue
            before = request.start - pieces[place_ - 1].end if place_ else None
            after = pieces[place_].start - request.end if place_ < len(pieces) else None
            gaps = [gap for gap in (before, after) if gap is not None]
            if gaps:
                room[host.id] = timedelta(seconds=min(gaps))
        demand = Demand(HOST, request.count, request.count, self._requirements[request.asked])
        snapshot = Snapshot(self._ranked, Occupancy(frozenset(taken), {}, room))
        try:
            return place([demand], snapshot, strategy=Strategy.PACK, matching=self._find).resource_ids
        except NotEnoughResources:
            return None

    def _need(self, request: YearRequest) -> WholeNeed:
        hosts = frozenset(host.id for host in self._find(self._requirements[request.asked]))
        return WholeNeed(request.count, hosts, most=request.count)

    def _repack(self, request: YearRequest, needs: list[WholeNeed], *, write: bool = True) -> Repack | NotRepacked:
        begin, window = time.thread_time(), (request.start, request.end)
        problem = RepackProblem(window, needs, *self._movable(window))
        # What reads and writes is not of the search, in the service as here.
        spent = time.thread_time() + LONGEST_SEARCH
        found = repack(problem, RepackLimits(is_spent=lambda: time.thread_time() > spent, exact=self.exact))
        self.seconds["search"].append(time.thread_time() - begin)
        if isinstance(found, NotRepacked):
            self.counts["proven" if found.proof else "too_many" if found.leases else "not_proven"] += write
        elif write:
            self.counts["repacked"] += bool(found.moves)
            self.counts["moved"] += len({move.piece.lease_id for move in found.moves})
            for move in found.moves:
                self._move(move.piece, move.to)
        return found

    def _movable(self, window: tuple[int, int]) -> tuple[list[PromisedPiece], dict[str, frozenset[int]]]:
        """Return what is promised around a window, as the service reads it, and where each may go."""
        begun = self.now - 21 * DAY
        every = [p for pieces in self.on.values() for p in pieces[bisect_left(pieces, begun, key=_START) :]]
        met = [p for p in every if p.meets(window)]
        first, last = min((p.start for p in met), default=window[0]), max((p.end for p in met), default=window[1])
        choices: dict[str, frozenset[int]] = {}
        pieces = []
        for piece in every:
            if not piece.meets((first, last)):
                continue
            like = self._class_of[piece.resource_id] if self.mode is RepackMode.EQUAL else None
            group = piece.group if like is None else f"{piece.group} {like}"
            if group not in choices:
                known = self._find(self._requirements[int(piece.group)])
                choices[group] = frozenset(h.id for h in known if like in (None, self._class_of[h.id]))
            movable = first <= piece.start >= self.now + NOTICE and piece.end <= last
            lease, host = piece.lease_id, piece.resource_id
            pieces.append(PromisedPiece(lease, lease, host, piece.start, piece.end, movable=movable, group=group))
        return pieces, choices

    def _add(self, piece: PromisedPiece) -> None:
        insort(self.on[piece.resource_id], piece, key=_START)

    def _move(self, piece: PromisedPiece, to: int) -> None:
        here = self.on[piece.resource_id]
        place_ = next(n for n, one in enumerate(here) if one.lease_id == piece.lease_id)
        self._add(replace(here.pop(place_), resource_id=to))
