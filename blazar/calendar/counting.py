# SPDX-License-Identifier: Apache-2.0
"""From which starts on enough resources are free, by counting: without a placement for each of them.

All starts of uses of one length are judged in one pass. A use stands in the way of the starts from its own start, less
that length and the cleaning, to its end; between these instants nothing changes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain, combinations

from blazar.calendar.fits import NEVER, Fits, Step, find_lowest
from blazar.calendar.timeline import Timeline
from blazar.model.base.values import dataclass
from blazar.model.calendar.demand import Affinity, Demand
from blazar.model.resources.resource import Resource

Run = tuple[int, int]
"""The first and the last of consecutive starts."""

MOST_CHOICES = 6
"""Maximum number of different sets of candidates for which all combinations are counted: there are 2^6 of them."""


@dataclass(frozen=True, slots=True)
class LeastFree:
    """At least ``least`` of ``resources`` are free, or as many instances as ``fits`` counts fit on them.

    For instances that are ``apart``, each resource counts once; for instances that are ``together``, those resources
    count that have room for as many.
    """

    resources: Collection[Resource]
    least: int
    fits: Fits | None = None
    apart: bool = False
    together: int = 0

    def find_runs(self, timeline: Timeline, length: int, first: int, last: int) -> list[Run]:
        """Return the longest runs of starts, from ``first`` to ``last``, in which this holds for ``length`` seconds."""
        if self.fits is None:
            count = len(self.resources)
            changes = _count_blocks(self.resources, timeline, length, first, last)
        else:
            changes = {}
            count = sum(self._add_fits(changes, self.fits, r, length) for r in self.resources)
        return _find_runs_with(self.least, count, changes, first, last)

    def find_last_end(self, timeline: Timeline, start: int, end: int) -> int:
        """Return the last end for which this holds from ``start`` on, if it holds to ``end``."""
        if self.fits is None:
            ends = [_free_until(timeline, resource.id, start, end) for resource in self.resources]
            return sorted(ends, reverse=True)[self.least - 1]
        losses: dict[int, int] = {}
        count = 0
        for resource in self.resources:
            count += self._add_losses(losses, self.fits.steps_of(resource), start, end)
        for at in sorted(losses):
            count -= losses[at]
            if count < self.least:
                return at
        return NEVER

    def _count_useful(self, fit: int) -> int:
        if self.together:
            return int(fit >= self.together)
        return min(fit, 1) if self.apart else fit

    def _add_fits(self, changes: dict[int, int], fits: Fits, resource: Resource, length: int) -> int:
        """Add the changes of how many instances fit on one resource, and return how many did at first."""
        steps = find_lowest(fits.steps_of(resource), length)
        _, fit = next(steps)
        begun = weight = self._count_useful(fit)
        for at, fit in steps:
            if (now := self._count_useful(fit)) != weight:
                changes[at] = changes.get(at, 0) + now - weight
                weight = now
        return begun

    def _add_losses(self, losses: dict[int, int], steps: Sequence[Step], start: int, end: int) -> int:
        """Add what fits no longer after each instant from ``end`` on, and return how many fit until then."""
        least = NEVER
        begun = weight = 0
        for (at, fit), (following, _) in zip(steps, [*steps[1:], (NEVER, 0)], strict=True):
            if following <= start or fit >= least:
                continue
            least = fit
            if at < end:
                begun = weight = self._count_useful(fit)
                continue
            now = self._count_useful(fit)
            losses[at] = losses.get(at, 0) + weight - now
            weight = now
        return begun


def derive_conditions(
    demands: Sequence[Demand], candidates: Sequence[Sequence[Resource]], timeline: Timeline
) -> tuple[tuple[LeastFree, ...], bool]:
    """Return what must hold for demands on one kind to fit, and whether they fit wherever it holds.

    ``candidates`` are the resources that each demand can have when they are free. Of resources in use nothing is
    counted.
    """
    if any(demand.pinned or demand.kept for demand in demands):
        return (), False
    if all(demand.whole for demand in demands):
        conditions, exact = _derive_whole_conditions(demands, candidates)
        # Where they lie is not counted, only placed.
        return conditions, exact and not any(demand.topology for demand in demands)
    found = []
    for demand, resources in zip(demands, candidates, strict=True):
        fits = None if demand.per_instance is None else Fits(timeline, demand.per_instance)
        if demand.affinity is Affinity.TOGETHER and fits is not None:
            found.append(LeastFree(resources, 1, fits, together=demand.min_count))
        else:
            found.append(LeastFree(resources, demand.min_count, fits, apart=demand.affinity is Affinity.APART))
    return tuple(found), len(demands) == 1


def _derive_whole_conditions(
    demands: Sequence[Demand], candidates: Sequence[Sequence[Resource]]
) -> tuple[tuple[LeastFree, ...], bool]:
    """Return Hall's condition: any demands together have at least as many candidates as they need."""
    if len(demands) == 1 and not demands[0].required:
        return (LeastFree(candidates[0], demands[0].min_count),), True
    required = []
    for demand, resources in zip(demands, candidates, strict=True):
        if demand.required:
            named = [r for r in resources if r.name in demand.required]
            required.append(LeastFree(named, len(demand.required)))
    choices: dict[frozenset[int], int] = {}
    known: dict[int, Resource] = {}
    for demand, resources in zip(demands, candidates, strict=True):
        ids = frozenset(resource.id for resource in resources)
        choices[ids] = choices.get(ids, 0) + demand.min_count
        known.update((resource.id, resource) for resource in resources)
    sets = list(choices)
    exact = len(sets) <= MOST_CHOICES
    sizes = range(1, len(sets) + 1) if exact else (1, len(sets))
    found = []
    for some in chain.from_iterable(combinations(sets, size) for size in sizes):
        together = [known[id_] for id_ in frozenset().union(*some)]
        found.append(LeastFree(together, sum(choices[ids] for ids in some)))
    return (*required, *found), exact and (not required or len(demands) == 1)


def intersect_runs(one: Sequence[Run], other: Sequence[Run]) -> list[Run]:
    """Return the runs of starts that are in both."""
    found: list[Run] = []
    here = there = 0
    while here < len(one) and there < len(other):
        first, last = max(one[here][0], other[there][0]), min(one[here][1], other[there][1])
        if first <= last:
            found.append((first, last))
        if one[here][1] < other[there][1]:
            here += 1
        else:
            there += 1
    return found


def _find_runs_with(least: int, count: int, changes: dict[int, int], first: int, last: int) -> list[Run]:
    """Return the runs in which a count, with these changes, is at least so much."""
    found: list[Run] = []
    begun: int | None = None if count < least else first
    for at in sorted(changes):
        if at > last:
            break
        count += changes[at]
        if count >= least:
            if begun is None:
                begun = max(at, first)
        elif begun is not None:
            if at > begun:
                found.append((begun, at - 1))
            begun = None
    if begun is not None:
        found.append((begun, last))
    return found


def _count_blocks(
    resources: Collection[Resource], timeline: Timeline, length: int, first: int, last: int
) -> dict[int, int]:
    """Return by how many fewer resources are free from each start on: minus one where one is used, plus one after it.

    Uses that stand in the way of no start from ``first`` to ``last`` are passed over.
    """
    lead = timeline.cleaning + length - 1
    changes: dict[int, int] = {}
    uses_of, late, change = timeline.uses.get, timeline.late, changes.get
    # A plan goes through all resources for each request: most of its time is spent in this loop.
    for resource in resources:
        id_ = resource.id
        until = None
        if id_ in late:
            until = timeline.now + 1
            changes[-NEVER] = change(-NEVER, 0) - 1
        for start, end, _, _ in uses_of(id_, ()):
            if end <= first:
                continue
            begin = start - lead
            if begin > last:
                break
            if begin >= end:
                continue
            if until is None:
                changes[begin] = change(begin, 0) - 1
                until = end
            elif begin > until:
                changes[until] = change(until, 0) + 1
                changes[begin] = change(begin, 0) - 1
                until = end
            elif end > until:
                until = end
        if until is not None:
            changes[until] = change(until, 0) + 1
    return changes


def _free_until(timeline: Timeline, resource_id: int, start: int, end: int) -> int:
    """Return when a resource that is free from ``start`` to ``end`` is used next; 0 if it is not free then."""
    begin = max(start, timeline.now)
    if start <= timeline.now and resource_id in timeline.late:
        return 0
    for starts_at, blocks_until, _, _ in timeline.uses.get(resource_id, ()):
        if blocks_until > begin:
            used = starts_at - timeline.cleaning
            return used if used >= end else 0
    return NEVER
