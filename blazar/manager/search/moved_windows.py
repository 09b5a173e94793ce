# SPDX-License-Identifier: Apache-2.0
"""Windows that are free once other leases get other hosts, as a booking would find them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from blazar.calendar.alternatives import SHORTEST, round_down
from blazar.calendar.openings import KindSearch, Opening
from blazar.calendar.placement import Assignment, Placement
from blazar.calendar.repack.values import FullAt, NotRepacked
from blazar.calendar.timeline import epoch, from_epoch
from blazar.manager.booking.booking import PlacementRequest
from blazar.manager.booking.host_search import HostSearch, RepackedPlan
from blazar.manager.booking.repacking import count_repacked, open_moves
from blazar.manager.common.runtime import Runtime
from blazar.manager.search.free_time import FreeTime
from blazar.manager.search.search_times import Times
from blazar.model.base.errors import StaleLease
from blazar.model.base.values import dataclass, field, replace
from blazar.model.base.window import Window
from blazar.model.resources.resource import HOST, ResourceKind
from blazar.model.search.availability import FreeWindow

LONGEST_SEARCHES = 1.0
"""Seconds of CPU after which no other window of a question is searched for."""

MOST_ENDS = 4
"""How many ends are tried to find the latest one: each that is full proves that no later one is possible."""


MOVES_AHEAD = timedelta(days=14)
"""How far after the first window another time is looked for: all leases of that time are read."""

SECOND = timedelta(seconds=1)


def open_windows(runtime: Runtime, free_time: FreeTime, times: Times, now: datetime) -> MovedWindows | None:
    """Return the search for windows from the first one that is asked for on; None if no others are asked to leave."""
    around = Window(times.window.start, max(times.window.end, min(times.latest, times.window.end + MOVES_AHEAD)))
    if not _has_candidates(free_time.searches):
        return None
    requests = [request for request in free_time.requests if request.demand.kind == HOST]
    search = open_moves(runtime, free_time.lease, requests, now, around)
    if search is None:
        return None
    return MovedWindows(free_time, search, around.end, runtime.store.calendar.cleaning_time)


@dataclass(slots=True)
class MovedWindows:
    """Finds windows that end until ``latest``, one after the other, until the time for it is spent."""

    free_time: FreeTime
    search: HostSearch
    latest: datetime
    cleaning: timedelta
    _known: dict[Window, FreeWindow | NotRepacked | None] = field(default_factory=dict)
    _spent: float = field(default_factory=lambda: time.thread_time() + LONGEST_SEARCHES)

    def look(self, window: Window) -> FreeWindow | NotRepacked | None:
        """Return a window as it would be booked, or that it would not; None if that is not searched for."""
        if window not in self._known:
            self._known[window] = self._look(window)
        return self._known[window]

    def _look(
        self, window: Window, requests: Sequence[PlacementRequest] | None = None
    ) -> FreeWindow | NotRepacked | None:
        """Search for a window; ``requests`` are others for hosts."""
        if window.end > self.latest or time.thread_time() > self._spent:
            return None
        others: dict[ResourceKind, Placement] = {}
        for kind, of_kind in self.free_time.kinds.items():
            if kind != HOST:
                placement = of_kind.find_placement(epoch(window.start), epoch(window.end))
                if placement is None:
                    return None
                others[kind] = placement
        try:
            found = self.search.find(window, requests)
        except StaleLease:
            return None
        return self._describe(window, found, others) if isinstance(found, RepackedPlan) else found

    def list_openings(self, found: Sequence[FreeWindow], times: Times, most: int) -> list[FreeWindow]:
        """Return the earliest openings: those that were ``found`` as it is, and those that others make between them."""
        openings: list[FreeWindow] = []
        at = times.window.start
        for opening in (*found, None):
            until = times.last_start if opening is None else opening.window.start - SECOND
            if at <= until:
                window = Window(at, at + times.window.duration)
                for first, last in self.free_time.list_allowed(window, until):
                    self._add_between(
                        openings, window.duration, from_epoch(first), from_epoch(last), times.latest, most
                    )
            if opening is not None:
                openings.append(opening)
                at = opening.last_start + SECOND
        return openings

    def _add_between(
        self,
        openings: list[FreeWindow],
        length: timedelta,
        at: datetime,
        until: datetime,
        latest: datetime,
        most: int,
    ) -> None:
        """Add the openings that others make at a run of starts."""
        while at <= until and len(openings) < most:
            made = self.find_opening(length, at, until, latest)
            if made is None:
                break
            if openings and openings[-1].moves_others and made.window.start == at == openings[-1].last_start + SECOND:
                # The same run of starts, of which no more was known.
                openings[-1] = replace(openings[-1], last_start=made.last_start)
            else:
                openings.append(made)
            at = made.last_start + SECOND

    def find_opening(self, length: timedelta, first: datetime, last: datetime, latest: datetime) -> FreeWindow | None:
        """Return the first opening from ``first`` to ``last``, its last end, and the starts that are known."""
        at: datetime | None = first
        while at is not None and at <= last:
            found = self.look(Window(at, at + length))
            if isinstance(found, FreeWindow):
                return self._extend(found, last, latest)
            if found is None:
                return None
            at = self._find_next_start(at, found.full)
        return None

    def _extend(self, opening: FreeWindow, last: datetime, latest: datetime) -> FreeWindow:
        """Return an opening with what is known of later starts: all that end with a window which has room."""
        window = opening.window
        far = min(latest, self.latest)
        longest = None if far <= window.end else self.find_longest(Window(window.start, far))
        until = window.end if longest is None else max(window.end, longest.window.end)
        last_start = max(window.start, min(last, until - window.duration))
        return replace(opening, last_start=last_start, open_until=None if until >= latest else until)

    def _find_next_start(self, at: datetime, full: FullAt | None) -> datetime | None:
        """Return the first start after one that is refused that may not be: once something of what is there ends."""
        start = self.search.find_next_start(epoch(at), full)
        return None if start is None else from_epoch(start)

    def find_longest(self, window: Window) -> FreeWindow | None:
        """Return the window up to its last end that fits; None if that is not known, or too near."""
        end, shortest = window.end, window.start + timedelta(seconds=SHORTEST)
        for _ in range(MOST_ENDS):
            if end < shortest:
                return None
            found = self.look(Window(window.start, end))
            if isinstance(found, FreeWindow):
                return found
            if found is None or found.full is None:
                return None
            # At that instant all is full: what ends before it, and is clean by then, may have room.
            end = from_epoch(found.full.at) - self.cleaning
        return None

    def find_more(self, window: Window, counts: Sequence[int]) -> tuple[FreeWindow, Sequence[int]] | None:
        """Return the window with the most of each request for hosts that is granted, and how many; None if no more.

        ``counts`` are what is free of each as it is. The same bound is tried for all.
        """
        requests = self.search.requests
        asked = [request.demand.min_count for request in requests]
        low, high = max(counts, default=0), max(asked, default=0) - 1
        best: tuple[FreeWindow, Sequence[int]] | None = None
        while low < high:
            tried = (low + high + 1) // 2
            many = [round_down(r.demand, min(n, tried)) for r, n in zip(requests, asked, strict=True)]
            fewer = [
                replace(r, demand=replace(r.demand, min_count=n, max_count=n))
                for r, n in zip(requests, many, strict=True)
            ]
            found = self._look(window, fewer)
            if found is None:
                break
            if isinstance(found, FreeWindow) and not found.refusals:
                low, best = tried, (found, many)
            else:
                high = tried - 1
        return best

    def _describe(self, window: Window, found: RepackedPlan, others: Mapping[ResourceKind, Placement]) -> FreeWindow:
        free_time, placements = self.free_time, []
        for kind in free_time.kinds:
            if kind in others:
                placements.append(others[kind])
                continue
            given = [
                [a for a in found.plan.allocations if a.reservation_id == request.reservation_id]
                for request in self.search.requests
            ]
            placements.append(Placement(tuple(tuple(Assignment(a.resource_id, a.count) for a in of) for of in given)))
        opening = Opening(epoch(window.start), epoch(window.start), epoch(window.end), tuple(placements))
        return replace(free_time.free_window(opening, window.duration), moves_others=count_repacked(found.moved))


def _has_candidates(searches: Sequence[KindSearch]) -> bool:
    """Tell whether there are as many resources as each demand for whole ones asks for, free or not."""
    return all(
        not demand.whole or len(search.candidates(demand)) >= demand.min_count
        for search in searches
        for demand in search.demands
    )
