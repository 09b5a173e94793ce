"""Placement: which resources to take for all demands of a lease together.

Whole resources are a bipartite matching between demands (each standing for ``min_units`` seats) and resources;
it is solved exactly with augmenting paths (Kuhn, 1955). Units that share resources are placed by a search that
backtracks over the demands; it is exact up to ``MOST_STEPS`` steps and then gives up as if nothing fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from blazar.calendar.snapshot import Snapshot
from blazar.calendar.strategies import Strategy, in_order
from blazar.model.amounts import Amounts
from blazar.model.demand import Affinity, Demand
from blazar.model.errors import NotEnoughResources
from blazar.model.requirements import Anything, Requirement, matches
from blazar.model.resource import Resource

MOST_STEPS = 20_000
"""Bound of the search for units: enough for every lease that people write, a few ms at most."""

Matching = Callable[[Requirement], Sequence[Resource]]


@dataclass(frozen=True, slots=True)
class Share:
    """Units of one resource for one demand."""

    resource_id: int
    units: int


@dataclass(frozen=True, slots=True)
class Placement:
    """For every demand, in the order they were given, what it gets."""

    shares: tuple[tuple[Share, ...], ...]

    @property
    def resource_ids(self) -> frozenset[int]:
        """All resources that are taken."""
        return frozenset(share.resource_id for shares in self.shares for share in shares)


def place(
    demands: Sequence[Demand],
    snapshot: Snapshot,
    *,
    strategy: Strategy = Strategy.PACK,
    seed: int = 0,
    matching: Matching | None = None,
) -> Placement:
    """Place all demands so that each gets at least its minimum, and then as much as there is up to its maximum.

    Whole resources are shared with nobody, neither inside nor outside the lease. ``matching`` may give the
    resources that meet a requirement faster than by trying each. Raises NotEnoughResources with the counts of what
    there is. Exact for whole resources; for shared ones within ``MOST_STEPS``.
    """
    find = matching or (lambda requirement: _matching(snapshot.resources, requirement))
    candidates = [_candidates(demand, snapshot, strategy, seed, find) for demand in demands]
    units = [index for index, demand in enumerate(demands) if not demand.whole]
    if not units:
        return _place_whole(demands, candidates, snapshot, find)
    return _place_mixed(demands, candidates, snapshot, find)


def _matching(resources: Sequence[Resource], requirement: Requirement) -> Sequence[Resource]:
    if requirement == Anything():
        return resources
    return [resource for resource in resources if matches(requirement, resource.properties)]


def _candidates(demand: Demand, snapshot: Snapshot, strategy: Strategy, seed: int, find: Matching) -> list[Resource]:
    """Return what the demand could take, in the order in which it would: pinned, preferred, by strategy."""
    occupancy = snapshot.occupancy
    if demand.whole:
        fitting = [
            r
            for r in find(demand.requirement)
            if r.reservable and occupancy.is_free(r.id) and r.id not in demand.pinned
        ]
    else:
        fitting = [r for r in find(demand.requirement) if r.reservable and r.id not in demand.pinned]
    ordered = in_order(fitting, strategy, seed)
    if demand.preferred:
        ordered = sorted(ordered, key=lambda r: r.id not in demand.preferred)
    if not demand.pinned:
        return list(ordered)
    # Pinned resources are in use: they stay, whatever their properties say by now.
    pinned = [r for r in snapshot.resources if r.id in demand.pinned]
    return [*pinned, *ordered]


def _place_whole(
    demands: Sequence[Demand], candidates: Sequence[Sequence[Resource]], snapshot: Snapshot, find: Matching
) -> Placement:
    for index, demand in enumerate(demands):
        _check_pinned(index, demands, candidates[index], snapshot)
        if len(candidates[index]) < demand.min_units:
            raise _not_enough(index, demands, len(candidates[index]), find)
    if len(demands) == 1:
        return Placement((_shares(candidates[0][: demands[0].max_units]),))
    owner = _matched(demands, candidates, find)
    return Placement(
        tuple(_shares([r for r in candidates[index] if owner.get(r.id) == index]) for index in range(len(demands)))
    )


def _matched(demands: Sequence[Demand], candidates: Sequence[Sequence[Resource]], find: Matching) -> Mapping[int, int]:
    """Return resource id → demand index, so that minima are met and the total is as large as it can be."""
    owner: dict[int, int] = {}
    held = [0] * len(demands)
    fixed: dict[int, int] = {}
    for index, demand in enumerate(demands):
        for resource_id in demand.pinned:
            owner[resource_id] = fixed[resource_id] = index
            held[index] += 1
    able = [{r.id for r in resources} for resources in candidates]

    def seat(index: int, seen: set[int]) -> bool:
        """Give the demand one more resource, moving others' seats along an augmenting path if need be."""
        free = next((r.id for r in candidates[index] if r.id not in owner), None)
        if free is not None:
            owner[free] = index
            return True
        for resource in candidates[index]:
            if resource.id in seen or resource.id in fixed or owner[resource.id] == index:
                continue
            seen.add(resource.id)
            if seat(owner[resource.id], seen):
                owner[resource.id] = index
                return True
        return False

    # The choosiest demand first: fewer seats have to be moved later.
    order = sorted(range(len(demands)), key=lambda i: len(candidates[i]))
    for index in order:
        while held[index] < demands[index].min_units:
            if not seat(index, set()):
                together = len(set().union(*able))
                raise _not_enough(index, demands, together, find, jointly=True)
            held[index] += 1
    growing = True
    while growing:
        growing = False
        for index in order:
            if held[index] < demands[index].max_units and seat(index, set()):
                held[index] += 1
                growing = True
    return owner


def _place_mixed(
    demands: Sequence[Demand], candidates: Sequence[Sequence[Resource]], snapshot: Snapshot, find: Matching
) -> Placement:
    for index, demand in enumerate(demands):
        if demand.whole:
            _check_pinned(index, demands, candidates[index], snapshot)
    search = _Search(demands, candidates, snapshot)
    if not search.fill(0):
        worst = max(range(len(demands)), key=lambda i: demands[i].min_units - search.room(i))
        raise _not_enough(worst, demands, search.room(worst), find, jointly=len(demands) > 1)
    search.top_up()
    return search.placement()


class _Search:
    """Places units one demand after the other, and goes back to an earlier one when a later one finds no room."""

    def __init__(self, demands: Sequence[Demand], candidates: Sequence[Sequence[Resource]], snapshot: Snapshot) -> None:
        self._demands = demands
        self._candidates = candidates
        self._snapshot = snapshot
        self._steps = 0
        self._whole: dict[int, int] = {}
        self._used: dict[int, Amounts] = {}
        self._given: list[dict[int, int]] = [{} for _ in demands]

    def room(self, index: int) -> int:
        """Return how many units of a demand fit if it were alone."""
        demand = self._demands[index]
        if demand.unit is None:
            return len(self._candidates[index])
        counts = [self._snapshot.occupancy.units_free(r, demand.unit) for r in self._candidates[index]]
        match demand.affinity:
            case Affinity.TOGETHER:
                return max(counts, default=0)
            case Affinity.APART:
                return sum(1 for count in counts if count)
        return sum(counts)

    def fill(self, index: int) -> bool:
        """Give every demand from this one on its minimum; tell whether there is a way."""
        if index == len(self._demands):
            return True
        return self._give(index, self._demands[index].min_units, 0)

    def top_up(self) -> None:
        """Give every demand what still fits up to its maximum, one unit at a time in turn."""
        growing = True
        while growing:
            growing = False
            for index, demand in enumerate(self._demands):
                if sum(self._given[index].values()) < demand.max_units:
                    fit = next((r for r in self._candidates[index] if self._may(index, r)), None)
                    if fit is not None:
                        self._take(index, fit, 1)
                        growing = True

    def placement(self) -> Placement:
        """Return what was given."""
        return Placement(tuple(tuple(Share(rid, n) for rid, n in given.items() if n) for given in self._given))

    def _give(self, index: int, missing: int, position: int) -> bool:
        if missing == 0:
            return self._pins_are_met(index) and self.fill(index + 1)
        if position == len(self._candidates[index]):
            return False
        self._steps += 1
        if self._steps > MOST_STEPS:
            return False
        resource = self._candidates[index][position]
        for count in range(min(missing, self._fits(index, resource)), -1, -1):
            demand = self._demands[index]
            if demand.affinity is Affinity.TOGETHER and demand.unit is not None and 0 < count < missing:
                continue
            if count == 0 and resource.id in demand.pinned:
                return False
            if count:
                self._take(index, resource, count)
            if self._give(index, missing - count, position + 1):
                return True
            if count:
                self._untake(index, resource, count)
        return False

    def _pins_are_met(self, index: int) -> bool:
        return self._demands[index].pinned <= {rid for rid, n in self._given[index].items() if n}

    def _may(self, index: int, resource: Resource) -> bool:
        demand, given = self._demands[index], self._given[index]
        if demand.unit is not None and demand.affinity is Affinity.TOGETHER and given and resource.id not in given:
            return False
        return self._fits(index, resource) > 0

    def _fits(self, index: int, resource: Resource) -> int:
        demand = self._demands[index]
        if demand.unit is None:
            return int(resource.id not in self._whole and resource.id not in self._used)
        if resource.id in self._whole:
            return 0
        occupancy = self._snapshot.occupancy
        if not occupancy.units_free(resource, demand.unit):
            return 0
        used = occupancy.peaks.get(resource.id, Amounts()) + self._used.get(resource.id, Amounts())
        count = demand.unit.units_within(resource.capacity, used)
        if demand.affinity is Affinity.APART:
            return min(count, 0 if self._given[index].get(resource.id) else 1)
        return count

    def _take(self, index: int, resource: Resource, count: int) -> None:
        unit = self._demands[index].unit
        if unit is None:
            self._whole[resource.id] = index
        else:
            self._used[resource.id] = self._used.get(resource.id, Amounts()) + unit.times(count)
        self._given[index][resource.id] = self._given[index].get(resource.id, 0) + count

    def _untake(self, index: int, resource: Resource, count: int) -> None:
        unit = self._demands[index].unit
        if unit is None:
            del self._whole[resource.id]
        else:
            left = self._used[resource.id].minus(unit.times(count))
            if left:
                self._used[resource.id] = left
            else:
                del self._used[resource.id]
        self._given[index][resource.id] -= count
        if not self._given[index][resource.id]:
            del self._given[index][resource.id]


def _shares(resources: Sequence[Resource]) -> tuple[Share, ...]:
    return tuple(Share(resource.id, 1) for resource in resources)


def _check_pinned(index: int, demands: Sequence[Demand], candidates: Sequence[Resource], snapshot: Snapshot) -> None:
    """Check that a reservation in use can keep what it has for the whole window."""
    pinned = demands[index].pinned
    lost = [r.name for r in candidates if r.id in pinned and not snapshot.occupancy.is_free(r.id)]
    if lost:
        raise NotEnoughResources(
            f"{', '.join(sorted(lost))} is in use by the reservation and promised to another lease in that time"
        )


def _not_enough(
    index: int, demands: Sequence[Demand], free: int, find: Matching, *, jointly: bool = False
) -> NotEnoughResources:
    demand = demands[index]
    matching = len(find(demand.requirement))
    which = f"reservation {index + 1} of the lease: " if len(demands) > 1 else ""
    together = " beside the lease's other reservations" if jointly else ""
    if demand.whole:
        text = f"at least {demand.min_units} asked for, {matching} match, {free} of them free in that time{together}"
    else:
        text = f"{demand.min_units} units asked for, {matching} {demand.kind}s match, {free} units fit{together}"
    return NotEnoughResources(f"Not enough {demand.kind}s available: {which}{text}.")
