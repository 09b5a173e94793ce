# SPDX-License-Identifier: Apache-2.0
"""Adds up what leases had of resources, by parts of a period and by groups. Pure.

Instants are seconds since the epoch.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from blazar.model.base.window import Window
from blazar.model.reports.usage import MOST_ROWS, Measure, UsageGroup, UsageRow, UsageSums, too_many_rows
from blazar.model.use.policy import Usage

Span = tuple[int, int]
"""A begin and an end, in seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """What a lease has of a resource for some time, as it is on record.

    It begins at ``start``, was to end at ``due``, and ends at ``left``: what lies between is overrun. ``units`` is how
    much of the resource it is: 1 of a whole one, the number of instances, addresses, or volumes. ``handed_over`` is
    when the start of the lease was done, if it is.
    """

    lease_id: str
    project_id: str
    user_id: str
    lease_kind: str
    resource_type: str
    resource_id: int
    kind: str
    region: str
    start: int
    due: int
    left: int
    handed_over: int | None = None
    units: int = 1


@dataclass(frozen=True, slots=True)
class UsageFacts:
    """What else is known of uses.

    When looks at leases found another usage than before; when resources had failed; and what was promised, from
    ``start`` to ``left``, and given back before.
    """

    looks: Mapping[str, Sequence[tuple[int, Usage]]] = field(default_factory=dict)
    failures: Mapping[int, Sequence[Span]] = field(default_factory=dict)
    returned: Sequence[ResourceUse] = ()


_SEEN = {Usage.USED: Measure.USED, Usage.IDLE: Measure.IDLE, Usage.UNUSED: Measure.IDLE, Usage.UNKNOWN: Measure.UNSEEN}


def measure_use(use: ResourceUse, facts: UsageFacts) -> Iterator[tuple[Measure, int, int]]:
    """Yield the spans of a use by measure; those of one measure do not overlap."""
    end = min(use.due, use.left)
    if use.start < end:
        yield Measure.RESERVED, use.start, end
        seen, since = Usage.UNKNOWN, use.start
        for at, found in facts.looks.get(use.lease_id, ()):
            stop = min(at, end)
            if since < stop:
                yield _SEEN[seen], since, stop
            seen, since = found, max(since, stop)
        if since < end:
            yield _SEEN[seen], since, end
        for begin, stop in _join_spans(_list_losses(use, facts)):
            if max(begin, use.start) < min(stop, end):
                yield Measure.LOST, max(begin, use.start), min(stop, end)
    # Of a lease that never was handed over nobody had anything, however late its end was.
    if use.handed_over is not None and (over := max(use.start, end, use.handed_over)) < use.left:
        yield Measure.OVERRUN, over, use.left


def _list_losses(use: ResourceUse, facts: UsageFacts) -> list[Span]:
    late = (use.start, use.left if use.handed_over is None else use.handed_over)
    return [late, *facts.failures.get(use.resource_id, ())]


def measure_uses(uses: Iterable[ResourceUse], facts: UsageFacts) -> Iterator[tuple[ResourceUse, Measure, int, int]]:
    """Yield the spans of uses by measure, with what was given back and not taken again by the same lease."""
    had: dict[tuple[str, int], list[Span]] = {_place_of(use): [] for use in facts.returned}
    for use in uses:
        for measure, begin, end in measure_use(use, facts):
            yield use, measure, begin, end
            if measure is Measure.RESERVED and (spans := had.get(_place_of(use))) is not None:
                spans.append((begin, end))
    for use in sorted(facts.returned, key=lambda use: use.start):
        taken = had[_place_of(use)]
        for begin, end in _cut_spans((use.start, use.left), taken):
            yield use, Measure.RETURNED, begin, end
        # Of time that was given back twice, once.
        taken.append((use.start, use.left))


def _place_of(use: ResourceUse) -> tuple[str, int]:
    return use.lease_id, use.resource_id


def _cut_spans(span: Span, others: Iterable[Span]) -> Iterator[Span]:
    """Yield what of a span is in none of the others."""
    begin, last = span
    for start, end in sorted(others):
        if end > begin and start < last:
            if begin < start:
                yield begin, start
            begin = max(begin, end)
    if begin < last:
        yield begin, last


def _join_spans(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield spans, those that overlap as one."""
    last: Span | None = None
    for begin, end in sorted(spans):
        if last is not None and begin <= last[1]:
            last = (last[0], max(last[1], end))
            continue
        if last is not None:
            yield last
        last = (begin, end)
    if last is not None:
        yield last


@dataclass(frozen=True, slots=True)
class Grouping:
    """How uses are grouped: by what, the values of the property by resource, and whose users are told apart."""

    group_by: tuple[UsageGroup, ...]
    properties: Mapping[int, str] = field(default_factory=dict)
    user_id: str | None = None

    def key_of(self, use: ResourceUse) -> tuple[str | None, ...]:
        """Return the values of the groups of a use."""
        return tuple(_VALUES[group](use, self) for group in self.group_by)


def _user_of(use: ResourceUse, grouping: Grouping) -> str | None:
    return use.user_id if grouping.user_id in (None, use.user_id) else None


_VALUES: Mapping[UsageGroup, Callable[[ResourceUse, Grouping], str | None]] = {
    UsageGroup.PROJECT: lambda use, _: use.project_id,
    UsageGroup.USER: _user_of,
    UsageGroup.RESOURCE_TYPE: lambda use, _: use.resource_type,
    UsageGroup.KIND: lambda use, _: use.kind,
    UsageGroup.REGION: lambda use, _: use.region,
    UsageGroup.LEASE_KIND: lambda use, _: use.lease_kind,
    UsageGroup.PROPERTY: lambda use, grouping: grouping.properties.get(use.resource_id),
}


@dataclass(slots=True)
class _Cell:
    """The sums of one row while they are added up."""

    seconds: dict[Measure, int] = field(default_factory=lambda: defaultdict(int))
    leases: set[str] = field(default_factory=set)

    def close(self) -> UsageSums:
        return UsageSums(**{str(measure): self.seconds[measure] for measure in Measure}, leases=len(self.leases))


class UsageTable:
    """The rows of a report while they are added up, by part of the period and by group.

    The parts follow each other without a gap.
    """

    def __init__(self, parts: Sequence[Window], grouping: Grouping) -> None:
        self._parts = parts
        self._grouping = grouping
        self._borders = [int(part.start.timestamp()) for part in parts] + [int(parts[-1].end.timestamp())]
        self._cells: dict[tuple[int, tuple[str | None, ...]], _Cell] = defaultdict(_Cell)

    def add_uses(self, uses: Iterable[ResourceUse], facts: UsageFacts, within: Window) -> None:
        """Add what of uses lies in a window. InvalidInput if there are too many rows."""
        first, last = int(within.start.timestamp()), int(within.end.timestamp())
        for use, measure, start, stop in measure_uses(uses, facts):
            begin, end = max(start, first), min(stop, last)
            key = self._grouping.key_of(use)
            for number in range(max(bisect_right(self._borders, begin) - 1, 0), len(self._parts)):
                seconds = min(end, self._borders[number + 1]) - max(begin, self._borders[number])
                if seconds <= 0:
                    break
                self._add(number, key, use.lease_id, {measure: seconds * use.units})

    def add_sums(self, sums: Iterable[tuple[int, ResourceUse, Mapping[Measure, int]]]) -> None:
        """Add what leases had in parts, by their numbers. InvalidInput if there are too many rows."""
        for number, use, seconds in sums:
            self._add(number, self._grouping.key_of(use), use.lease_id, seconds)

    def _add(self, number: int, key: tuple[str | None, ...], lease_id: str, seconds: Mapping[Measure, int]) -> None:
        cell = self._cells[number, key]
        for measure, more in seconds.items():
            cell.seconds[measure] += more
        cell.leases.add(lease_id)
        if len(self._cells) > MOST_ROWS:
            raise too_many_rows()

    def list_rows(self) -> tuple[UsageRow, ...]:
        """Return the rows by part, then by group, what has no value last."""
        order = sorted(self._cells, key=_order_of)
        return tuple(UsageRow(self._parts[number], key, self._cells[number, key].close()) for number, key in order)


def _order_of(place: tuple[int, tuple[str | None, ...]]) -> tuple[int, tuple[tuple[bool, str], ...]]:
    return place[0], tuple((value is None, value or "") for value in place[1])
