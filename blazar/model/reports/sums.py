# SPDX-License-Identifier: Apache-2.0
"""Adds up what leases had of resources, by parts of a period and by groups. Pure.

Instants are seconds since the epoch.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from itertools import pairwise

from blazar.model.base.values import dataclass, field
from blazar.model.base.window import Window
from blazar.model.calendar.views import HOST_TYPE
from blazar.model.energy.book import EnergyBook
from blazar.model.energy.consumption import WATT_HOUR, HostShare
from blazar.model.reports.usage import MOST_ROWS, Measure, UsageGroup, UsageRow, UsageSums, too_many_rows
from blazar.model.resources.resource import HOST
from blazar.model.use.policy import Usage

Span = tuple[int, int]
"""A begin and an end, in seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """What a lease has of a resource for some time, as it is on record.

    It begins at ``start``, was to end at ``due``, and ends at ``left``: what lies between is overrun. ``units`` is how
    much of the resource it is: 1 of a whole one, the number of instances, addresses, or volumes. ``handed_over`` is
    when its reservation was, if it is. ``vcpus`` are those of all servers that it is, on a shared host.
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
    vcpus: int | None = None


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
    # Of a reservation that never was handed over nobody had anything, however late its end was.
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
class DrawnEnergy:
    """What a use drew, in milliwatt-seconds, and emitted, in milligrams of CO2e; None if the site tells no carbon."""

    milliwatt_seconds: int
    carbon_mg: int | None = None

    def add(self, other: DrawnEnergy) -> DrawnEnergy:
        """Return what both drew; of carbon as far as it is known."""
        known = [mg for mg in (self.carbon_mg, other.carbon_mg) if mg is not None]
        return DrawnEnergy(self.milliwatt_seconds + other.milliwatt_seconds, sum(known) if known else None)


def share_host(use: ResourceUse, begin: int, end: int, book: EnergyBook) -> HostShare | None:
    """Return what a use has of a host between two instants, from its hand-over on; None if it has nothing.

    That is all of the host, or the share of its VCPUs that servers have.
    """
    if use.kind != str(HOST) or use.handed_over is None:
        return None
    start, stop = max(use.start, use.handed_over, begin), min(use.left, end)
    if start >= stop:
        return None
    share = Fraction(1) if use.vcpus is None else book.host(use.resource_id).take_share(use.vcpus)
    return HostShare(str(use.resource_id), Window(*(datetime.fromtimestamp(at, UTC) for at in (start, stop))), share)


def measure_energy(use: ResourceUse, begin: int, end: int, book: EnergyBook) -> DrawnEnergy | None:
    """Return what a use drew between two instants; None if nothing is known of that."""
    share = share_host(use, begin, end, book)
    if share is None:
        return None
    energy, footprint = book.measure((share,))
    if energy.source is None:
        return None
    drawn = round(sum((hour.total for hour in energy.hours), Fraction(0)))
    carbon = None if footprint is None else round((footprint.operational + footprint.embodied) * 1000)
    return DrawnEnergy(drawn, carbon)


@dataclass(frozen=True, slots=True)
class Grouping:
    """How uses are grouped: by what, the values of the property by resource, and whose users are told apart.

    ``draws`` is what hosts draw by their ratings, in milliwatts, by resource.
    """

    group_by: tuple[UsageGroup, ...]
    properties: Mapping[int, str] = field(default_factory=dict)
    user_id: str | None = None
    draws: Mapping[int, int] = field(default_factory=dict)

    def key_of(self, use: ResourceUse) -> tuple[str | None, ...]:
        """Return the values of the groups of a use."""
        return tuple(_VALUES[group](use, self) for group in self.group_by)

    def draw_of(self, use: ResourceUse) -> int | None:
        """Return the milliwatts of a use; None for parts of a host, and for what has no rating."""
        return self.draws.get(use.resource_id) if use.resource_type == HOST_TYPE else None


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
    drawn: DrawnEnergy | None = None

    def close(self) -> UsageSums:
        energy_wh = gco2 = None
        if self.drawn is not None:
            energy_wh = round(Fraction(self.drawn.milliwatt_seconds, WATT_HOUR))
            gco2 = None if self.drawn.carbon_mg is None else round(Fraction(self.drawn.carbon_mg, 1000))
        seconds = {str(measure): self.seconds[measure] for measure in Measure}
        return UsageSums(**seconds, leases=len(self.leases), energy_wh=energy_wh, gco2=gco2)


@dataclass(frozen=True, slots=True)
class RecordedSum:
    """What a lease had in a part of a period by days on record, and what hosts drew for it.

    ``unmetered`` are the seconds of hosts of which nothing was on record when their days were closed.
    """

    part: int
    use: ResourceUse
    seconds: Mapping[Measure, int]
    unmetered: int = 0
    drawn: DrawnEnergy | None = None


_DRAWING = (Measure.RESERVED, Measure.OVERRUN)
"""Measures whose seconds do not overlap, and in which a host draws power for a lease."""


class UsageTable:
    """The rows of a report while they are added up, by part of the period and by group.

    The parts follow each other without a gap.
    """

    def __init__(self, parts: Sequence[Window], grouping: Grouping) -> None:
        self._parts = parts
        self._grouping = grouping
        self._borders = [int(part.start.timestamp()) for part in parts] + [int(parts[-1].end.timestamp())]
        self._cells: dict[tuple[int, tuple[str | None, ...]], _Cell] = defaultdict(_Cell)

    def add_uses(
        self, uses: Iterable[ResourceUse], facts: UsageFacts, within: Window, book: EnergyBook | None = None
    ) -> None:
        """Add what of uses lies in a window. InvalidInput if there are too many rows.

        ``book`` is what is on record of hosts; None where nothing is recorded: then energy is by the ratings of hosts.
        """
        first, last = int(within.start.timestamp()), int(within.end.timestamp())
        for use, measure, start, stop in measure_uses(self._meter(uses, first, last, book), facts):
            begin, end = max(start, first), min(stop, last)
            key = self._grouping.key_of(use)
            for number in range(max(bisect_right(self._borders, begin) - 1, 0), len(self._parts)):
                seconds = min(end, self._borders[number + 1]) - max(begin, self._borders[number])
                if seconds <= 0:
                    break
                self._add(number, key, use, {measure: seconds * use.units})
                if book is None and measure in _DRAWING:
                    self._add_rated(number, key, use, seconds)

    def _meter(
        self, uses: Iterable[ResourceUse], first: int, last: int, book: EnergyBook | None
    ) -> Iterator[ResourceUse]:
        """Yield uses, and add what they drew between two instants by what is on record."""
        for use in uses:
            yield use
            if book is None:
                continue
            for number, (begin, end) in enumerate(pairwise(self._borders)):
                drawn = measure_energy(use, max(begin, first), min(end, last), book)
                if drawn is not None:
                    self._draw(number, self._grouping.key_of(use), drawn)

    def add_sums(self, sums: Iterable[RecordedSum]) -> None:
        """Add what leases had in parts, by their numbers. InvalidInput if there are too many rows."""
        for one in sums:
            key = self._grouping.key_of(one.use)
            self._add(one.part, key, one.use, one.seconds)
            self._add_rated(one.part, key, one.use, one.unmetered)
            if one.drawn is not None:
                self._draw(one.part, key, one.drawn)

    def _add_rated(self, number: int, key: tuple[str | None, ...], use: ResourceUse, seconds: int) -> None:
        draw = self._grouping.draw_of(use)
        if draw is not None:
            self._draw(number, key, DrawnEnergy(seconds * draw))

    def _draw(self, number: int, key: tuple[str | None, ...], drawn: DrawnEnergy) -> None:
        cell = self._cells[number, key]
        cell.drawn = drawn if cell.drawn is None else cell.drawn.add(drawn)

    def _add(self, number: int, key: tuple[str | None, ...], use: ResourceUse, seconds: Mapping[Measure, int]) -> None:
        cell = self._cells[number, key]
        for measure, more in seconds.items():
            cell.seconds[measure] += more
        cell.leases.add(use.lease_id)
        if len(self._cells) > MOST_ROWS:
            raise too_many_rows()

    def list_rows(self) -> tuple[UsageRow, ...]:
        """Return the rows by part, then by group, what has no value last."""
        order = sorted(self._cells, key=_order_of)
        return tuple(UsageRow(self._parts[number], key, self._cells[number, key].close()) for number, key in order)


def _order_of(place: tuple[int, tuple[str | None, ...]]) -> tuple[int, tuple[tuple[bool, str], ...]]:
    return place[0], tuple((value is None, value or "") for value in place[1])
