# SPDX-License-Identifier: Apache-2.0
"""What is promised of each resource in one window, and with the resources the snapshot that a placement reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, Generic, TypeVar

from blazar.model.base.amounts import NOTHING, Amounts
from blazar.model.base.values import dataclass, field
from blazar.model.base.window import Window
from blazar.model.calendar.allocations import Allocation
from blazar.model.resources.resource import Resource

R = TypeVar("R")
T = TypeVar("T")
Instant = TypeVar("Instant", int, datetime)

Use = tuple[Instant, Instant, int, Amounts]
"""A use of a part of a resource: start, end, count, and the amounts per instance."""

Span = tuple[Instant, Instant, int]
"""Start, end, and the amount that is taken."""


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
    def of_uses(
        cls,
        taken: Iterable[int],
        shared: Mapping[int, Sequence[Use[Instant]]],
        room: Mapping[int, timedelta] | None = None,
    ) -> Occupancy:
        """Build from the resources taken whole, and the uses of the shared ones by resource.

        All uses overlap the window, and the instants of a resource are of one kind: aware, naive, or seconds. Uses are
        got from ``shared`` for the resources that the search inspects, once for each: on a large calendar these are
        few, so it may parse them then.
        """
        return cls(frozenset(taken), _Peaks(shared), room or {})

    @classmethod
    def of_allocations(cls, window: Window, allocations: Iterable[Allocation]) -> Occupancy:
        """Build from allocations; those that do not overlap the window count only for the room beside it.

        The caller may have extended the windows by the cleaning time.
        """
        taken: set[int] = set()
        shared: dict[int, list[Use[datetime]]] = defaultdict(list)
        ends: dict[int, datetime] = {}
        starts: dict[int, datetime] = {}
        for a in allocations:
            if a.window.overlaps(window):
                if a.per_instance is None:
                    taken.add(a.resource_id)
                else:
                    shared[a.resource_id].append((a.window.start, a.window.end, a.count, a.per_instance))
            elif a.window.end <= window.start:
                ends[a.resource_id] = max(a.window.end, ends.get(a.resource_id, a.window.end))
            else:
                starts[a.resource_id] = min(a.window.start, starts.get(a.resource_id, a.window.start))
        return cls.of_uses(taken, dict(shared), Room(window.start, window.end, ends, starts))

    def is_free(self, resource_id: int) -> bool:
        """Return whether nothing is promised of the resource in the window."""
        return resource_id not in self.taken and resource_id not in self.peaks

    def count_free(self, resource: Resource, per_instance: Amounts) -> int:
        """Return how many such instances fit on the resource throughout the window.

        0 where more is promised than its capacity, as after a resource has shrunk.
        """
        if resource.id in self.taken:
            return 0
        return resource.count_beside(self.peaks.get(resource.id, NOTHING), per_instance)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The calendar as read at one instant, for one kind and one window.

    ``resources`` is the whole inventory of the kind, free or not, by tier, smallest first. ``asleep`` are those that
    would have to be woken, and could not be in time: they are chosen last.
    """

    resources: Sequence[Resource]
    occupancy: Occupancy
    asleep: frozenset[int] = frozenset()


def roominess_key(resource: Resource) -> tuple[tuple[int, ...], str, int]:
    """Return the sort key for smallest first; the name and id make the order total.

    Resources of other kinds than hosts have none of the classes of hosts: their size is the sum of what they have.
    """
    amounts = resource.capacity
    sizes = (amounts.get("VCPU") + amounts.get("PCPU"), amounts.get("MEMORY_MB"), amounts.get("DISK_GB"))
    return sizes if any(sizes) else (sum(amount for _, amount in amounts), 0, 0), resource.name, resource.id


class Room(Mapping[int, timedelta]):
    """The length of the shorter gap beside a window, by resource that is used before or after it.

    ``ends`` has the last end before the window by resource, ``starts`` the first start after it. A search on a large
    calendar reads few of them, so they may be parsed when they are read. ``start`` and ``end``, and all instants, are
    aware, or all of them are naive.
    """

    def __init__(
        self, start: datetime, end: datetime, ends: Mapping[int, datetime], starts: Mapping[int, datetime]
    ) -> None:
        self._start, self._end = start, end
        self._ends, self._starts = ends, starts

    def __getitem__(self, resource_id: int) -> timedelta:
        if resource_id not in self._ends:
            return self._starts[resource_id] - self._end
        before = self._start - self._ends[resource_id]
        return min(before, self._starts[resource_id] - self._end) if resource_id in self._starts else before

    def __contains__(self, resource_id: object) -> bool:
        return resource_id in self._ends or resource_id in self._starts

    def __iter__(self) -> Iterator[int]:
        return iter(dict.fromkeys(chain(self._ends, self._starts)))

    def __len__(self) -> int:
        return len(frozenset(self._ends).union(self._starts))


class Lazy(Mapping[int, T], Generic[R, T]):
    """Values by resource that are computed when they are read: a search on a large calendar reads few of them.

    ``raw`` has what they are computed from; a subclass computes one in ``__getitem__``.
    """

    def __init__(self, raw: Mapping[int, R]) -> None:
        self._raw = raw

    def __contains__(self, resource_id: object) -> bool:
        return resource_id in self._raw

    def __iter__(self) -> Iterator[int]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)


class _Peaks(Lazy[Sequence[Use[Any]], Amounts]):
    """The peaks of resources, each computed on first access."""

    def __init__(self, uses: Mapping[int, Sequence[Use[Any]]]) -> None:
        super().__init__(uses)
        self._known: dict[int, Amounts] = {}

    def __getitem__(self, resource_id: int) -> Amounts:
        known = self._known.get(resource_id)
        if known is None:
            known = self._known[resource_id] = _sum_peaks(self._raw[resource_id])
        return known


def _sum_peaks(uses: Sequence[Use[Instant]]) -> Amounts:
    """Return the highest sum of each class that is taken of a resource at any one instant."""
    first = uses[0][3]
    if all(per_instance is first or per_instance == first for _, _, _, per_instance in uses):
        # Usually all servers have one size: then it is enough to count servers.
        return first.times(_highest_sum([(start, end, count) for start, end, count, _ in uses]))
    by_class: dict[str, list[Span[Instant]]] = defaultdict(list)
    for start, end, count, per_instance in uses:
        for name, amount in per_instance:
            by_class[name].append((start, end, count * amount))
    return Amounts.of({name: _highest_sum(spans) for name, spans in by_class.items()})


def _highest_sum(spans: list[Span[Instant]]) -> int:
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
