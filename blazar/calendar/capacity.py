# SPDX-License-Identifier: Apache-2.0
"""How much of a set of resources is free, promised and out of use over time, in steps. Pure.

Instants are seconds since the epoch.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import add

from blazar.calendar.blocks import Use, join_spans
from blazar.calendar.curves import (
    NOTHING,
    Counted,
    Curve,
    Group,
    Part,
    PromisedCurves,
    add_parts,
    sum_promised,
)
from blazar.calendar.kept import KeptResource, Span
from blazar.calendar.timeline import epoch
from blazar.model.base.values import dataclass, replace
from blazar.model.calendar.views import PROJECT_GROUP, CapacityPoint, CapacitySeries, order_of


@dataclass(frozen=True, slots=True)
class Steps:
    """A range in steps of so many seconds, of which the last one may be shorter."""

    start: int
    end: int
    step: int

    @property
    def starts(self) -> Sequence[int]:
        """The beginnings of the steps."""
        return range(self.start, self.end, self.step)

    def split(self, instant: int) -> tuple[Steps | None, Steps | None]:
        """Return the steps that begin before an instant, and the others; None is no step."""
        border = min(self.end, self.start + -(-max(0, instant - self.start) // self.step) * self.step)
        return (
            replace(self, end=border) if border > self.start else None,
            replace(self, start=border) if border < self.end else None,
        )


@dataclass(frozen=True, slots=True)
class Supply:
    """What is counted: resources, by id, of which some are ``out`` of use at times; what is promised of them.

    ``uses`` are all uses in the range. If it is told to which projects what is promised, ``projects`` has the uses of
    each, and is None otherwise.
    """

    counted: Mapping[int, Counted]
    totals: Mapping[Group, int]
    out: Mapping[int, Sequence[Span]]
    promised: PromisedCurves
    projects: Mapping[str, Mapping[Group, Curve]] | None = None

    @classmethod
    def of_uses(
        cls,
        counted: Mapping[int, Counted],
        out: Mapping[int, Sequence[Span]],
        uses: Mapping[int, Iterable[Use]],
        measure: str | None,
        *,
        by_project: bool,
    ) -> Supply:
        """Build from uses as they are read, by resource."""
        nothing = PromisedCurves(measure)
        projects: dict[str, dict[int, list[Use]]] = {}
        if by_project:
            for id_, some in uses.items():
                for use in some:
                    projects.setdefault(use.project_id or "", {}).setdefault(id_, []).append(use)
        return cls(
            counted,
            count_totals(counted),
            out,
            nothing.follow(counted, _keep(uses)),
            {project: nothing.follow(counted, _keep(some)).curves for project, some in projects.items()}
            if by_project
            else None,
        )


def _keep(uses: Mapping[int, Iterable[Use]]) -> Mapping[int, KeptResource]:
    return {
        id_: KeptResource.of_uses(
            0, [(epoch(use.start), epoch(max(use.end, use.clean_at)), 1, use.amounts) for use in some]
        )
        for id_, some in uses.items()
    }


def count_totals(counted: Mapping[int, Counted]) -> Mapping[Group, int]:
    """Return how much there is of each group."""
    totals: dict[Group, int] = defaultdict(int)
    for group, amount in counted.values():
        totals[group] += amount
    return dict(sorted(totals.items(), key=lambda item: tuple(map(order_of, item[0]))))


@dataclass(frozen=True, slots=True)
class _Point:
    """The instant of a step at which the fewest are free, and the sums at it."""

    at: int
    promised: int
    out: int


def compute_series(supply: Supply, steps: Steps, keys: Sequence[str]) -> list[CapacitySeries]:
    """Return a series for each group.

    A resource that is promised is not out of use, whatever its condition; one of which a part is promised is not free.
    ``keys`` name the values of groups. If it is told to which projects what is promised, there is a series for each
    project to which something is promised, at the instants at which the fewest resources of the group are free, and
    one for the rest.
    """
    out: dict[Group, dict[int, int]] = {}
    for id_, spans in supply.out.items():
        if (counted := supply.counted.get(id_)) is not None:
            group, amount = counted
            resource = supply.promised.resources.get(id_)
            promised = sum_promised(resource.uses, amount, supply.promised.measure) if resource else ()
            parts = _sum_out_of_use(promised, amount, spans, steps)
            add_parts(out.setdefault(group, defaultdict(int)), parts)
    return [
        one
        for group, total in supply.totals.items()
        for one in _compute_group(group, total, supply, Curve.of_changes(out.get(group, {})), steps, keys)
    ]


def join_series(before: Sequence[CapacitySeries], after: Sequence[CapacitySeries]) -> list[CapacitySeries]:
    """Return the series of the same groups in two ranges, of which one follows the other, as series of both."""
    return [
        replace(
            one,
            total=one.total + other.total,
            free=one.free + other.free,
            promised=one.promised + other.promised,
            out_of_use=one.out_of_use + other.out_of_use,
        )
        for one, other in zip(before, after, strict=True)
    ]


def _sum_out_of_use(promised: Sequence[Part], amount: int, out: Sequence[Span], steps: Steps) -> list[Part]:
    """Return how much of a resource is out of use: what is not promised of it while it is out of use."""
    found: list[Part] = []
    within = [(max(start, steps.start), min(end, steps.end)) for start, end in out]
    for out_start, out_end in join_spans([span for span in within if span[0] < span[1]]):
        at = out_start
        for start, end, taken in promised:
            start, end = max(start, at), min(end, out_end)
            if start >= end:
                continue
            if at < start:
                found.append((at, start, amount))
            found.append((start, end, amount - taken))
            at = end
        if at < out_end:
            found.append((at, out_end, amount))
    return found


def _compute_group(
    group: Group, total: int, supply: Supply, out_of_use: Curve, steps: Steps, keys: Sequence[str]
) -> list[CapacitySeries]:
    curve = supply.promised.curves.get(group, NOTHING)
    points = _sample_points(curve, out_of_use, steps)
    promised = tuple(point.promised for point in points)
    out = tuple(point.out for point in points)
    free = tuple(total - point.promised - point.out for point in points)
    named = dict(zip((key for key in keys if key != PROJECT_GROUP), group, strict=True))
    # At the beginning itself, whatever leaves or comes in its step.
    taken, broken = curve.at(steps.start), out_of_use.at(steps.start)
    begin = CapacityPoint(total, total - taken - broken, taken, broken)
    if supply.projects is None:
        return [CapacitySeries(named, (total,) * len(points), free, promised, out, begin)]
    nothing = (0,) * len(points)
    found: list[CapacitySeries] = []
    for project, curves in sorted(supply.projects.items()):
        own = curves.get(group, NOTHING)
        theirs = tuple(own.at(point.at) for point in points)
        if any(theirs):
            taken = own.at(steps.start)
            start = CapacityPoint(taken, 0, taken, 0)
            found.append(CapacitySeries({**named, PROJECT_GROUP: project}, theirs, nothing, theirs, nothing, start))
    rest = tuple(map(sum, zip(free, out, strict=True)))
    left = CapacityPoint(begin.free + begin.out_of_use, begin.free, 0, begin.out_of_use)
    return [*found, CapacitySeries({**named, PROJECT_GROUP: None}, rest, free, nothing, out, left)]


def _sample_points(promised: Curve, out: Curve, steps: Steps) -> list[_Point]:
    """Return the point of each step: the first instant at which the sum of what is not free is highest."""
    instants, sums, both = promised.instants, promised.sums, promised.sums
    if out.instants:
        instants = sorted(
            {steps.start, *(at for curve in (promised, out) for at in curve.list_instants(steps.start, steps.end))}
        )
        sums = promised.list_at(instants)
        both = list(map(add, sums, out.list_at(instants)))
    found: list[_Point] = []
    place = 0
    for start in steps.starts:
        # Before the first instant there is nothing.
        place = bisect_right(instants, start, place)
        until = bisect_left(instants, min(start + steps.step, steps.end), place)
        best, at, highest = place - 1, start, both[place - 1] if place else 0
        if place < until and (most := max(both[place:until])) > highest:
            best = both.index(most, place, until)
            at, highest = instants[best], most
        taken = sums[best] if best >= 0 else 0
        found.append(_Point(at, taken, highest - taken))
    return found
