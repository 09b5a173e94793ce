# SPDX-License-Identifier: Apache-2.0
"""What is near to a window that is refused, fits, and is within the limits of the project. Nothing is read here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial

from blazar.calendar import alternatives
from blazar.calendar.alternatives import Granted
from blazar.calendar.placement import Placement
from blazar.calendar.reasons import RequirementPart
from blazar.calendar.timeline import epoch, from_epoch
from blazar.manager.search.free_time import FreeTime
from blazar.manager.search.moved_windows import MovedWindows
from blazar.manager.search.request_places import ask_for_count
from blazar.model.base.values import dataclass
from blazar.model.base.window import Window
from blazar.model.billing.prices import LeasePrice
from blazar.model.resources.resource import HOST, ResourceKind
from blazar.model.search.availability import Alternative, Change, FreeWindow, WindowReason


def find_alternatives(
    free_time: FreeTime,
    window: Window,
    reasons: Sequence[WindowReason],
    first: FreeWindow | None,
    moved: MovedWindows | None = None,
) -> tuple[Alternative, ...]:
    """Return what is near to a window that is refused, fits, and is within the limits of the project.

    Without ``reasons`` the window fits, and is beyond these limits. ``first`` is the first opening within them.
    With ``moved`` others get other hosts for more of them, or for longer.
    """
    start, end = epoch(window.start), epoch(window.end)
    found = []
    if first is not None:
        found.append(Alternative(Change.TIME, first.window, price=first.price))
    granted = _Granting(free_time, window.start)
    if (fewer := _find_fewer(free_time, window, reasons, granted, moved)) is not None:
        found.append(fewer)
    if (shorter := _find_shorter(free_time, window, granted, moved)) is not None:
        found.append(shorter)
    if (part := _find_droppable(free_time, reasons, start, end, granted)) is not None:
        found.append(Alternative(Change.REQUIREMENT, window, drop=part.pointer, price=granted.quote()))
    return tuple(found)


def _find_fewer(
    free_time: FreeTime,
    window: Window,
    reasons: Sequence[WindowReason],
    granted: _Granting,
    moved: MovedWindows | None,
) -> Alternative | None:
    """Return the most of each reservation that would be granted in a window; None if that is nothing of one."""
    # Nobody can ask for fewer of what a reservation is made of.
    if any(reservation.parent is not None for reservation in free_time.lease.reservations):
        return None
    short = {reason.reservation: reason.free for reason in reasons}
    free: dict[ResourceKind, list[int]] = {kind: [] for kind in free_time.kinds}
    # Of what fits a lease would get as much as it asks for at most, which may be what is too much.
    asked = [r.demand.min_count if reasons else r.demand.max_count for r in free_time.requests]
    for number, request in enumerate(free_time.requests):
        free[request.demand.kind].append(short.get(number, asked[number]))
    start, end = epoch(window.start), epoch(window.end)
    counts = alternatives.find_fewer(free_time.searches, list(free.values()), start, end, granted)
    by_kind: Mapping[ResourceKind, Sequence[int]] | None
    by_kind = None if counts is None else dict(zip(free_time.kinds, counts, strict=True))
    price = None if counts is None else granted.quote()
    if moved is not None and (more := _find_more(moved, window, by_kind)) is not None:
        by_kind, price = more
    if by_kind is None:
        return None
    fewer = tuple(
        ask_for_count(reservation.parameters, place, min(by_kind[kind][index], most))
        for reservation, most, place, (kind, index) in zip(
            free_time.lease.reservations, asked, free_time.asked, free_time.places, strict=True
        )
    )
    return Alternative(Change.COUNT, window, counts=fewer, price=price)


def _find_shorter(
    free_time: FreeTime, window: Window, granted: _Granting, moved: MovedWindows | None
) -> Alternative | None:
    """Return the longest time from the start of a window that would be granted; None if it is too short."""
    start, end = epoch(window.start), epoch(window.end)
    until = alternatives.find_shorter(free_time.searches, start, end, granted)
    longest = None if moved is None else moved.find_longest(window)
    later = longest is not None and (until is None or epoch(longest.window.end) > until)
    if longest is not None and later and not longest.refusals:
        return Alternative(Change.DURATION, longest.window, price=longest.price)
    if until is None:
        return None
    return Alternative(Change.DURATION, Window(window.start, from_epoch(until)), price=granted.quote())


def _find_more(
    moved: MovedWindows, window: Window, counts: Mapping[ResourceKind, Sequence[int]] | None
) -> tuple[Mapping[ResourceKind, Sequence[int]], LeasePrice | None] | None:
    """Return more of hosts than these ``counts`` if others get other hosts, and what that costs; None if no more.

    Where there are other kinds, as many of these are free as are asked for, or the lease is not granted by moves.
    """
    more = moved.find_more(window, () if counts is None else counts[HOST])
    if more is None:
        return None
    found, hosts = more
    rest = {
        kind: [demand.min_count for demand in search.demands]
        for kind, search in moved.free_time.kinds.items()
        if kind != HOST
    }
    return {**rest, HOST: hosts}, found.price


def _find_droppable(
    free_time: FreeTime, reasons: Sequence[WindowReason], start: int, end: int, granted: Granted
) -> RequirementPart | None:
    """Return the part of a requirement without which everything fits into a window, and is granted."""
    names = list(free_time.kinds)
    for reason in reasons:
        kind, index = free_time.places[reason.reservation]
        parts = free_time.parts(reason.reservation)
        part = alternatives.find_hindrance(free_time.searches, (names.index(kind), index), parts, start, end, granted)
        if part is not None:
            return part
    return None


@dataclass(slots=True)
class _Granting:
    """Tells whether the limits of the project allow placements from a start on, and remembers the last that they do.

    That is what a search for the most that is granted has found in the end.
    """

    free_time: FreeTime
    start: datetime
    _last: tuple[Window, Mapping[ResourceKind, Placement]] | None = None

    def __call__(self, end: int, placements: Sequence[Placement]) -> bool:
        window = Window(self.start, from_epoch(end))
        of_kinds = dict(zip(self.free_time.kinds, placements, strict=True))
        is_granted = not self.free_time.refusals(window, of_kinds)
        if is_granted:
            self._last = window, of_kinds
        return is_granted

    def quote(self) -> LeasePrice | None:
        """Return what that costs; None: nothing has a price."""
        if self._last is None:
            return None
        window, placements = self._last
        return self.free_time.quote(window, partial(self.free_time.allocated, placements))
