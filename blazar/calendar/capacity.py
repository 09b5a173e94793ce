# SPDX-License-Identifier: Apache-2.0
"""How much of a set of resources is free, promised and out of use over time, in steps. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from blazar.calendar.blocks import Use, join_spans
from blazar.model.base.window import Window
from blazar.model.calendar.views import PROJECT_GROUP, CapacityPoint, CapacitySeries, order_of
from blazar.model.resources.resource import PropertyValue

Span = tuple[datetime, datetime]
Group = tuple[PropertyValue, ...]

_Changes = dict[datetime, int]
"""Instants and by how much a sum changes there."""


@dataclass(frozen=True, slots=True)
class Supply:
    """A resource that is counted: its group, how much of the measure it has, and when it is out of use.

    ``amount`` is 1 if whole resources are counted.
    """

    resource_id: int
    group: Group
    amount: int
    out: tuple[Span, ...] = ()


@dataclass(slots=True)
class _Sums:
    """The changes of the sums of one group; ``by_project`` those of what is promised to each project."""

    total: int
    promised: _Changes
    out: _Changes
    by_project: dict[str, _Changes]


@dataclass(frozen=True, slots=True)
class _Point:
    """The instant of a step at which the fewest are free, and the sums at it."""

    at: datetime
    promised: int
    out: int


def compute_series(
    supplies: Iterable[Supply],
    uses: Mapping[int, Sequence[Use]],
    window: Window,
    step: timedelta,
    *,
    keys: Sequence[str],
    measure: str | None,
) -> list[CapacitySeries]:
    """Return a series for each group; ``uses`` by resource. Resources are counted whole if ``measure`` is None.

    A resource that is promised is not out of use, whatever its condition; one of which a part is promised is not free.
    ``keys`` name the values of groups. If the last of them is the project, there is a series for each project to which
    something is promised, at the instants at which the fewest resources of the group are free, and one for the rest.
    """
    by_project = PROJECT_GROUP in keys
    groups: dict[Group, _Sums] = {}
    for supply in supplies:
        sums = groups.get(supply.group)
        if sums is None:
            sums = groups[supply.group] = _Sums(0, defaultdict(int), defaultdict(int), {})
        sums.total += supply.amount
        _add_supply(sums, supply, uses.get(supply.resource_id, ()), window, measure, by_project=by_project)
    starts = [window.start + number * step for number in range(-(-window.duration // step))]
    return [
        one
        for group, sums in sorted(groups.items(), key=lambda item: tuple(map(order_of, item[0])))
        for one in _compute_group(group, sums, starts, keys, by_project=by_project)
    ]


def _add_supply(
    sums: _Sums, supply: Supply, uses: Sequence[Use], window: Window, measure: str | None, *, by_project: bool
) -> None:
    """Add a resource to the sums of its group."""
    promised = _sum_promised(uses, supply.amount, window, measure)
    for start, end, amount in promised:
        sums.promised[start] += amount
        sums.promised[end] -= amount
    for start, end, amount in _sum_out_of_use(promised, supply, window):
        sums.out[start] += amount
        sums.out[end] -= amount
    if by_project:
        theirs: dict[str, list[Use]] = defaultdict(list)
        for use in uses:
            theirs[use.project_id or ""].append(use)
        for project, some in theirs.items():
            changes = sums.by_project.setdefault(project, defaultdict(int))
            for start, end, amount in _sum_promised(some, supply.amount, window, measure):
                changes[start] += amount
                changes[end] -= amount


def _sum_promised(
    uses: Sequence[Use], amount: int, window: Window, measure: str | None
) -> list[tuple[datetime, datetime, int]]:
    """Return how much of a resource is promised, at most all of it, in spans that do not overlap."""
    whole: list[Span] = []
    changes: _Changes = defaultdict(int)
    for use in uses:
        start, end = max(use.start, window.start), min(max(use.end, use.clean_at), window.end)
        if start >= end:
            continue
        if measure is None or use.amounts is None:
            whole.append((start, end))
        elif taken := use.amounts.get(measure):
            changes[start] += taken
            changes[end] -= taken
    spans = join_spans(whole)
    if not changes:
        return [(start, end, amount) for start, end in spans]
    for start, end in spans:
        changes[start] += amount
        changes[end] -= amount
    found: list[tuple[datetime, datetime, int]] = []
    instants = sorted(changes)
    taken = 0
    for start, end in zip(instants, instants[1:], strict=False):
        taken += changes[start]
        if taken:
            found.append((start, end, min(taken, amount)))
    return found


def _sum_out_of_use(
    promised: Sequence[tuple[datetime, datetime, int]], supply: Supply, window: Window
) -> list[tuple[datetime, datetime, int]]:
    """Return how much of a resource is out of use: what is not promised of it while it is out of use."""
    found: list[tuple[datetime, datetime, int]] = []
    for out_start, out_end in join_spans([(max(s, window.start), min(e, window.end)) for s, e in supply.out]):
        at = out_start
        for start, end, amount in promised:
            start, end = max(start, at), min(end, out_end)
            if start >= end:
                continue
            if at < start:
                found.append((at, start, supply.amount))
            found.append((start, end, supply.amount - amount))
            at = end
        if at < out_end:
            found.append((at, out_end, supply.amount))
    return found


def _compute_group(
    group: Group, sums: _Sums, starts: Sequence[datetime], keys: Sequence[str], *, by_project: bool
) -> list[CapacitySeries]:
    points = _sample_points(sums, starts)
    promised = tuple(point.promised for point in points)
    out = tuple(point.out for point in points)
    free = tuple(sums.total - point.promised - point.out for point in points)
    named = dict(zip((key for key in keys if key != PROJECT_GROUP), group, strict=True))
    begin = _sample_start(sums, starts[0])
    if not by_project:
        return [CapacitySeries(named, (sums.total,) * len(points), free, promised, out, begin)]
    nothing = (0,) * len(points)
    found: list[CapacitySeries] = []
    for project, changes in sorted(sums.by_project.items()):
        theirs = _sample_sums([point.at for point in points], changes)
        if any(theirs):
            (taken,) = _sample_sums(starts[:1], changes)
            own = CapacityPoint(taken, 0, taken, 0)
            found.append(CapacitySeries({**named, PROJECT_GROUP: project}, theirs, nothing, theirs, nothing, own))
    rest = tuple(map(sum, zip(free, out, strict=True)))
    left = CapacityPoint(begin.free + begin.out_of_use, begin.free, 0, begin.out_of_use)
    return [*found, CapacitySeries({**named, PROJECT_GROUP: None}, rest, free, nothing, out, left)]


def _sample_start(sums: _Sums, start: datetime) -> CapacityPoint:
    """Return how much there is at the beginning itself, whatever leaves or comes in its step."""
    (promised,), (out,) = _sample_sums([start], sums.promised), _sample_sums([start], sums.out)
    return CapacityPoint(sums.total, sums.total - promised - out, promised, out)


def _sample_points(sums: _Sums, starts: Sequence[datetime]) -> list[_Point]:
    """Return the point of each step: the first instant at which the sum of what is not free is highest."""
    instants = sorted(sums.promised.keys() | sums.out.keys())
    found: list[_Point] = []
    promised = out = position = 0
    for number, start in enumerate(starts):
        following = starts[number + 1] if number + 1 < len(starts) else None
        # The last step also sees the end of the window, at which everything only leaves.
        while position < len(instants) and instants[position] <= start:
            promised += sums.promised.get(instants[position], 0)
            out += sums.out.get(instants[position], 0)
            position += 1
        best = _Point(start, promised, out)
        while position < len(instants) and (following is None or instants[position] < following):
            promised += sums.promised.get(instants[position], 0)
            out += sums.out.get(instants[position], 0)
            if promised + out > best.promised + best.out:
                best = _Point(instants[position], promised, out)
            position += 1
        found.append(best)
    return found


def _sample_sums(instants: Sequence[datetime], changes: _Changes) -> tuple[int, ...]:
    """Return a sum at each of some instants, which rise."""
    found: list[int] = []
    ordered = sorted(changes)
    position = total = 0
    for instant in instants:
        while position < len(ordered) and ordered[position] <= instant:
            total += changes[ordered[position]]
            position += 1
        found.append(total)
    return tuple(found)
