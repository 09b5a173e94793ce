# SPDX-License-Identifier: Apache-2.0
"""What is promised of each resource in one window."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Generic, TypeVar

from blazar.model.amounts import Amounts
from blazar.model.demand import Allocation
from blazar.model.resource import Resource
from blazar.model.window import Window

Use = tuple[int, datetime, datetime, int, Amounts | None]
"""A use of a resource: resource id, start, end, count, and the amounts per instance; None takes it whole."""

Span = tuple[datetime, datetime, int]
"""Start, end, and the amount that is taken."""

Row = Sequence[Any]
"""A row of a use: the resource id first; last the count, and the amounts per instance (None: taken whole)."""

Reader = Callable[[list[Any]], list[Use]]
"""Converts rows of shared uses to uses."""

Instant = TypeVar("Instant")
"""An instant in the form in which the rows have it."""


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The resources that are taken whole, and the peak use of the others.

    ``peaks`` has, by resource and class, the highest sum of amounts at any one instant of the window. Peaks of
    different classes may be at different instants; an instance must fit beside each of them. ``room`` has, for
    resources that are used before or after the window, the length of the shorter of the two gaps beside it.
    """

    taken: frozenset[int] = frozenset()
    peaks: Mapping[int, Amounts] = field(default_factory=dict)
    room: Mapping[int, timedelta] = field(default_factory=dict)

    @classmethod
    def of_busy(cls, resource_ids: Iterable[int], room: Mapping[int, timedelta] | None = None) -> Occupancy:
        """Build from whole resources that are not free."""
        return cls(taken=frozenset(resource_ids), room=room or {})

    @classmethod
    def of_allocations(cls, window: Window, allocations: Iterable[Allocation]) -> Occupancy:
        """Build from allocations; those that do not overlap the window count only for the room beside it.

        The caller may have extended the windows by the cleaning time.
        """
        within: list[Use] = []
        ends: dict[int, datetime] = {}
        starts: dict[int, datetime] = {}
        for a in allocations:
            if a.window.overlaps(window):
                within.append((a.resource_id, a.window.start, a.window.end, a.count, a.per_instance))
            elif a.window.end <= window.start:
                ends[a.resource_id] = max(a.window.end, ends.get(a.resource_id, a.window.end))
            else:
                starts[a.resource_id] = min(a.window.start, starts.get(a.resource_id, a.window.start))
        return replace(cls.of_uses(within), room=Room(window.start, window.end, ends, starts, lambda instant: instant))

    @classmethod
    def of_uses(cls, uses: Iterable[Use]) -> Occupancy:
        """Build from uses, all of which overlap the window; their instants are all aware or all naive."""
        return cls.of_rows(uses, lambda these: these)

    @classmethod
    def of_rows(cls, rows: Iterable[Row], read: Reader, beside: Callable[[Row], None] | None = None) -> Occupancy:
        """Build from rows, one per use. This dominates the cost of a search on a large calendar.

        So rows are parsed and summed only for the resources that the search inspects. Rows with a count of 0 are uses
        beside the window, and are passed to ``beside``.
        """
        taken: set[int] = set()
        shared: dict[int, list[Row]] = defaultdict(list)
        for row in rows:
            if row[-1] is not None:
                shared[row[0]].append(row)
            elif row[-2] or beside is None:
                taken.add(row[0])
            else:
                beside(row)
        return cls(frozenset(taken), _Peaks(dict(shared), read))

    def is_free(self, resource_id: int) -> bool:
        """Return whether nothing is promised of the resource in the window."""
        return resource_id not in self.taken and resource_id not in self.peaks

    def count_free(self, resource: Resource, per_instance: Amounts) -> int:
        """Return how many such instances fit on the resource throughout the window.

        0 where more is promised than its capacity, as after a resource has shrunk.
        """
        if resource.id in self.taken:
            return 0
        return resource.count_beside(self.peaks.get(resource.id, Amounts()), per_instance)


class Room(Mapping[int, timedelta], Generic[Instant]):
    """The length of the shorter gap beside a window, by resource that is used before or after it.

    A search on a large calendar reads few of these values. So it keeps the last end before the window and the first
    start after it by resource, as they were found, and parses one only when it is needed. The results of ``read``,
    ``start`` and ``end`` are all aware or all naive.
    """

    def __init__(
        self,
        start: datetime,
        end: datetime,
        ends: Mapping[int, Instant],
        starts: Mapping[int, Instant],
        read: Callable[[Instant], datetime],
    ) -> None:
        self._start, self._end = start, end
        self._ends, self._starts = ends, starts
        self._read = read

    def __getitem__(self, resource_id: int) -> timedelta:
        end, start = self._ends.get(resource_id), self._starts.get(resource_id)
        if end is None:
            return self._read(self._starts[resource_id]) - self._end
        before = self._start - self._read(end)
        return before if start is None else min(before, self._read(start) - self._end)

    def __contains__(self, resource_id: object) -> bool:
        return resource_id in self._ends or resource_id in self._starts

    def __iter__(self) -> Iterator[int]:
        return iter({**self._ends, **self._starts})

    def __len__(self) -> int:
        return len(self._ends.keys() | self._starts.keys())


class _Peaks(Mapping[int, Amounts]):
    """The peaks of resources, each computed on first access."""

    def __init__(self, rows: Mapping[int, list[Row]], read: Reader) -> None:
        self._rows = rows
        self._read = read
        self._known: dict[int, Amounts] = {}

    def __getitem__(self, resource_id: int) -> Amounts:
        known = self._known.get(resource_id)
        if known is None:
            known = self._known[resource_id] = _peak(self._read(self._rows[resource_id]))
        return known

    def __contains__(self, resource_id: object) -> bool:
        return resource_id in self._rows

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def _peak(uses: list[Use]) -> Amounts:
    """Return the highest sum of each class that is taken of a resource at any one instant."""
    first = uses[0][4] or Amounts()
    if all(per_instance is first or per_instance == first for _, _, _, _, per_instance in uses):
        # Usually all servers have one size: then it is enough to count servers.
        return _times(first, _most([(start, end, count) for _, start, end, count, _ in uses]))
    by_class: dict[str, list[Span]] = defaultdict(list)
    for _, start, end, count, per_instance in uses:
        for name, amount in per_instance or ():
            by_class[name].append((start, end, count * amount))
    return Amounts.of({name: _most(spans) for name, spans in by_class.items()})


def _most(spans: list[Span]) -> int:
    """Return the highest sum of overlapping spans. Ends sort before starts, so that touching spans are not added."""
    if len(spans) == 1:
        return spans[0][2]
    steps = [(start, amount) for start, _, amount in spans]
    steps += [(end, -amount) for _, end, amount in spans]
    steps.sort()
    now = most = 0
    for _, step in steps:
        now += step
        if now > most:
            most = now
    return most


@lru_cache(maxsize=1024)
def _times(per_instance: Amounts, count: int) -> Amounts:
    return per_instance.times(count)
