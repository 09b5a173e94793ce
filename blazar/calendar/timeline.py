# SPDX-License-Identifier: Apache-2.0
"""What is promised of the resources of one kind over a range of time, from which the occupancy of any window follows.

Instants are seconds since the epoch: a search compares very many of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from operator import itemgetter

from blazar.calendar import occupancy
from blazar.calendar.occupancy import Lazy, Occupancy, Room
from blazar.model.base.amounts import Amounts
from blazar.model.base.values import dataclass, field

Use = tuple[int, int, int, Amounts | None]
"""A use of a resource: its start, its end with the cleaning after it, the count, and the amounts per instance.

None as amounts is the whole resource.
"""


@dataclass(frozen=True, slots=True)
class TimelineTerms:
    """How a timeline is read: from ``now`` on, with ``cleaning`` seconds kept free after every use.

    They are also kept free after the use that is searched for. If ``without_amounts``, nothing but whole resources is
    searched for, and every use counts as whole.
    """

    now: int
    cleaning: int = 0
    without_amounts: bool = False


@dataclass(frozen=True, slots=True)
class OutsideUses:
    """What is known of uses outside the range of a timeline, by resource.

    ``late`` should have ended and have not; they stand in the way of windows that begin by now. ``last_ends`` are the
    last ends before the range and ``first_starts`` the first starts after it, of resources that are used then.
    """

    late: Mapping[int, Sequence[Use]] = field(default_factory=dict)
    last_ends: Mapping[int, int] = field(default_factory=dict)
    first_starts: Mapping[int, int] = field(default_factory=dict)


_NONE_OUTSIDE = OutsideUses()


def sort_uses(uses: Mapping[int, Iterable[Use]]) -> dict[int, list[Use]]:
    """Return uses by resource, those of each by their start."""
    by_start = itemgetter(0)
    return {id_: sorted(found, key=by_start) for id_, found in uses.items()}


class Timeline:
    """The uses of the resources of one kind from now on, or from the beginning of a later range, to the range's end.

    ``uses`` are by resource, those of each sorted by start.
    """

    def __init__(
        self, uses: Mapping[int, Sequence[Use]], terms: TimelineTerms, outside: OutsideUses = _NONE_OUTSIDE
    ) -> None:
        self.uses = uses
        self.terms = terms
        self.outside = outside
        self.now, self.cleaning, self.without_amounts = terms.now, terms.cleaning, terms.without_amounts
        self.late = outside.late

    def occupancy(self, start: int, end: int) -> Occupancy:
        """Return the occupancy of a window in the range, as a booking of that window would read it.

        A window that has begun counts from now on, as for a booking.
        """
        begin = max(start, self.now)
        until = max(end, begin + 1) + self.cleaning
        taken: set[int] = set()
        shared: dict[int, list[Use]] = {}
        ends, starts = dict(self.outside.last_ends), dict(self.outside.first_starts)
        without_amounts = self.without_amounts
        if without_amounts:
            self._add_whole(begin, until, taken, ends, starts)
        for id_, uses in () if without_amounts else self.uses.items():
            for use in uses:
                starts_at, blocks_until, _, amounts = use
                if starts_at >= until:
                    if amounts is None:
                        starts[id_] = starts_at
                        break
                elif blocks_until <= begin:
                    if amounts is None:
                        ends[id_] = max(blocks_until, ends.get(id_, blocks_until))
                elif amounts is None:
                    taken.add(id_)
                else:
                    shared.setdefault(id_, []).append(use)
        if start <= self.now:
            for id_, late in self.late.items():
                for use in late:
                    if without_amounts or use[3] is None:
                        taken.add(id_)
                    else:
                        shared.setdefault(id_, []).append((use[0], until - self.cleaning, use[2], use[3]))
        room = Room(from_epoch(start), from_epoch(end + self.cleaning), _Instants(ends), _Instants(starts))
        return Occupancy.of_uses(taken, CleanedUses(shared, self.cleaning), room)

    def _add_whole(self, begin: int, until: int, taken: set[int], ends: dict[int, int], starts: dict[int, int]) -> None:
        """Add what is taken in a window, and of the rest the last end before it and the first start after it."""
        for id_, uses in self.uses.items():
            last = None
            for starts_at, blocks_until, _, _ in uses:
                if starts_at >= until:
                    starts[id_] = starts_at
                    break
                if blocks_until > begin:
                    taken.add(id_)
                    break
                if last is None or blocks_until > last:
                    last = blocks_until
            if last is not None and last > ends.get(id_, last - 1):
                ends[id_] = last

    def add_uses(self, uses: Mapping[int, Sequence[Use]]) -> Timeline:
        """Return this timeline with more uses."""
        changed = sort_uses({id_: [*self.uses.get(id_, ()), *added] for id_, added in uses.items()})
        return Timeline({**self.uses, **changed}, self.terms, self.outside)

    def narrow(self, start: int, end: int) -> Timeline:
        """Return the timeline of a part of the range: windows in it have the same occupancy, which is read faster."""
        until = end + self.cleaning
        uses: dict[int, list[Use]] = {}
        before, after = dict(self.outside.last_ends), dict(self.outside.first_starts)
        for id_, every in self.uses.items():
            found = []
            for use in every:
                if use[0] < until and use[1] > start:
                    found.append(use)
                elif use[3] is None or self.without_amounts:
                    if use[1] <= start:
                        before[id_] = max(use[1], before.get(id_, use[1]))
                    else:
                        after[id_] = min(use[0], after.get(id_, use[0]))
            if found:
                uses[id_] = found
        return Timeline(uses, self.terms, OutsideUses(self.late, before, after))

    def next_start(self, ids: Collection[int], after: int) -> int | None:
        """Return the first start of a use of these resources at or after an instant, if there is one."""
        found = [start for id_ in ids for start, *_ in self.uses.get(id_, ()) if start >= after]
        return min(found, default=None)

    def next_end(self, after: int) -> int | None:
        """Return the first instant after another one at which something of a resource becomes free."""
        place = bisect_left(self._ends, after + 1)
        return self._ends[place] if place < len(self._ends) else None

    def last_ends(self, start: int, end: int) -> list[int]:
        """Return, in order, the last instants for a window to end from ``start`` to ``end`` before it meets a use."""
        return self._starts[bisect_left(self._starts, start) : bisect_left(self._starts, end)]

    @cached_property
    def _ends(self) -> list[int]:
        ends = {use[1] for uses in self.uses.values() for use in uses}
        if self.late:
            ends.add(self.now + 1)
        return sorted(ends)

    @cached_property
    def _starts(self) -> list[int]:
        return sorted({use[0] - self.cleaning for uses in self.uses.values() for use in uses})


def epoch(at: datetime) -> int:
    """Return an instant in seconds since the epoch."""
    return int(at.timestamp())


def from_epoch(at: int) -> datetime:
    """Return seconds since the epoch as an instant."""
    return datetime.fromtimestamp(min(at, _LAST), UTC)


_LAST = epoch(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC))


class _Instants(Lazy[int, datetime]):
    """Instants by resource."""

    def __getitem__(self, resource_id: int) -> datetime:
        return from_epoch(self._raw[resource_id])


class CleanedUses(Lazy[Sequence[Use], Sequence[occupancy.Use[int]]]):
    """The uses of shared resources, each with the cleaning before it."""

    def __init__(self, uses: Mapping[int, Sequence[Use]], cleaning: int) -> None:
        super().__init__(uses)
        self._cleaning = cleaning

    def __getitem__(self, resource_id: int) -> Sequence[occupancy.Use[int]]:
        cleaned = (add_cleaning_before(use, self._cleaning) for use in self._raw[resource_id])
        return [(start, end, count, amounts) for start, end, count, amounts in cleaned if amounts is not None]


def add_cleaning_before(use: Use, cleaning: int) -> Use:
    """Return a use with the cleaning that must precede it.

    A use that was released in the second in which it began has no length, only the cleaning after it.
    """
    start, end, count, amounts = use
    return min(start - cleaning, end - 1), end, count, amounts
