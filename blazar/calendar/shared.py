# SPDX-License-Identifier: Apache-2.0
"""Places instances, which share resources, and whole resources beside them.

A greedy pass serves nearly every lease, and always a single demand. Where it fails, a backtracking search follows; it
is exact up to ``MOST_STEPS`` steps, and then fails as if nothing fitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from blazar.calendar.occupancy import Snapshot
from blazar.model.base.amounts import NOTHING, Amounts
from blazar.model.base.values import dataclass
from blazar.model.calendar.demand import Affinity, Demand
from blazar.model.resources.resource import Resource

MOST_STEPS = 20_000
"""The step limit of the search: far more than usual leases need, and a fraction of a second."""

_CHOOSINESS = (Affinity.TOGETHER, Affinity.APART, Affinity.ANY)


@dataclass(slots=True)
class _Frame:
    """One choice of the search: how many instances of a demand a candidate gets."""

    at: int
    position: int
    missing: int
    counts: Iterator[int]
    taken: int = 0


class SharedSearch:
    """Assigns to every demand its minimum, and then more up to its maximum."""

    def __init__(self, demands: Sequence[Demand], candidates: Sequence[Sequence[Resource]], snapshot: Snapshot) -> None:
        self._demands = demands
        self._candidates = _sort_by_choice(demands, candidates)
        self._occupancy = snapshot.occupancy
        held = frozenset().union(*(demand.pinned.union(demand.kept) for demand in demands))
        self._kept = {r.id: r for r in snapshot.resources if r.id in held} if held else {}
        # Most constrained demand first: flexible demands fit into what remains.
        self._order = sorted(
            range(len(demands)),
            key=lambda i: (not demands[i].whole, _CHOOSINESS.index(demands[i].affinity), len(candidates[i])),
        )
        self._begin()

    def assign_minimums(self) -> bool:
        """Assign to every demand its minimum; return whether that is possible."""
        if self._fill_greedily():
            return True
        if len(self._demands) == 1:
            return False
        self._begin()
        if any(self._count_missing(i) and self.count_room_alone(i) < d.min_count for i, d in enumerate(self._demands)):
            return False
        return self._fill_by_search()

    def assign_up_to_maximums(self) -> None:
        """Assign to every demand what still fits up to its maximum, one instance at a time in turn.

        Where one does not fit now, it never will: so each demand goes through its candidates once.
        """
        left = [d.max_count - sum(given.values()) for d, given in zip(self._demands, self._given, strict=True)]
        positions = [0] * len(left)
        growing = [index for index, count in enumerate(left) if count > 0]
        while growing:
            # Nobody has to wait for a turn of the last one.
            at_once = left[growing[0]] if len(growing) == 1 else 1
            for index in growing:
                left[index] = left[index] - at_once if self._assign_more(index, positions, at_once) else 0
            growing = [index for index in growing if left[index] > 0]

    def _assign_more(self, index: int, positions: list[int], count: int) -> bool:
        """Assign more instances to a demand, from its position among the candidates on; return whether all fitted."""
        candidates = self._candidates[index]
        while count and positions[index] < len(candidates):
            resource = candidates[positions[index]]
            fits = min(count, self._count_fitting(index, resource))
            if fits:
                self._take(index, resource, fits)
                count -= fits
            else:
                positions[index] += 1
        return not count

    def assigned_counts(self, index: int) -> Mapping[int, int]:
        """Return the count that a demand got, by resource."""
        return self._given[index]

    def count_room_alone(self, index: int) -> int:
        """Return how many instances of a demand would fit if it were the only one."""
        demand = self._demands[index]
        if demand.per_instance is None:
            return len(self._candidates[index])
        kept = {id_: self._kept[id_] for id_ in demand.kept}
        # Those that stay together join those that stay where they are.
        open_to = () if kept and demand.affinity is Affinity.TOGETHER else self._candidates[index]
        candidates = {r.id: r for r in open_to} | kept
        # What is kept may be more than fits by now.
        counts = [
            max(demand.kept.get(r.id, 0), self._occupancy.count_free(r, demand.per_instance))
            for r in candidates.values()
        ]
        match demand.affinity:
            case Affinity.TOGETHER:
                return max(counts, default=0)
            case Affinity.APART:
                return sum(1 for count in counts if count)
        return sum(counts)

    def find_overdrawn(self) -> list[str]:
        """Return the names of the resources whose capacity is too small for all that the demands keep there.

        Demands that are ``entitled`` are not checked.
        """
        asked = {id_ for demand in self._demands if not demand.entitled for id_ in demand.kept}
        return sorted(self._kept[id_].name for id_ in asked if self._is_overdrawn(self._kept[id_]))

    def _is_overdrawn(self, resource: Resource) -> bool:
        if resource.id in self._whole:
            return True
        for demand in self._demands:
            count = demand.kept.get(resource.id, 0)
            if demand.per_instance is not None and self._occupancy.count_free(resource, demand.per_instance) < count:
                return True
        total = self._used[resource.id] + self._occupancy.peaks.get(resource.id, NOTHING)
        return any(amount > resource.capacity.get(name) for name, amount in total)

    def _begin(self) -> None:
        self._whole: set[int] = set()
        self._used: dict[int, Amounts] = {}
        self._given: list[dict[int, int]] = [{} for _ in self._demands]
        for index, demand in enumerate(self._demands):
            for resource_id in demand.pinned.union(demand.kept):
                self._take(index, self._kept[resource_id], demand.kept.get(resource_id, 1))

    def _count_missing(self, index: int) -> int:
        return max(0, self._demands[index].min_count - sum(self._given[index].values()))

    def _fill_greedily(self) -> bool:
        for index in self._order:
            missing = self._count_missing(index)
            for resource in self._candidates[index]:
                if not missing:
                    break
                if count := self._count_at_most(index, resource, missing):
                    self._take(index, resource, count)
                    missing -= count
            if missing:
                return False
        return True

    def _fill_by_search(self) -> bool:
        bounds = [self._sum_maximums_from(index) for index in self._order]
        frames: list[_Frame] = []
        if self._search_on(frames, bounds, -1, 0, 0):
            return True
        for _ in range(MOST_STEPS):
            if not frames:
                return False
            frame = frames[-1]
            index = self._order[frame.at]
            resource = self._candidates[index][frame.position]
            if frame.taken:
                self._give_back(index, resource, frame.taken)
                frame.taken = 0
            count = next(frame.counts, None)
            if count is None:
                frames.pop()
                continue
            if count:
                self._take(index, resource, count)
                frame.taken = count
            if self._search_on(frames, bounds, frame.at, frame.position + 1, frame.missing - count):
                return True
        return False

    def _search_on(
        self, frames: list[_Frame], bounds: Sequence[Sequence[int]], at: int, position: int, missing: int
    ) -> bool:
        """Open the next choice, if it can succeed; return whether all choices are made."""
        while missing == 0:
            at, position = at + 1, 0
            if at == len(self._order):
                return True
            missing = self._count_missing(self._order[at])
        index = self._order[at]
        if position < len(self._candidates[index]) and bounds[at][position] >= missing:
            counts = self._list_possible_counts(index, self._candidates[index][position], missing)
            frames.append(_Frame(at, position, missing, counts))
        return False

    def _sum_maximums_from(self, index: int) -> list[int]:
        """Return, for every position among a demand's candidates, the maximum that those from there on can take."""
        total, bounds = 0, []
        for resource in reversed(self._candidates[index]):
            count = self._count_fitting(index, resource)
            total = max(total, count) if self._demands[index].affinity is Affinity.TOGETHER else total + count
            bounds.append(total)
        return bounds[::-1]

    def _list_possible_counts(self, index: int, resource: Resource, missing: int) -> Iterator[int]:
        """Return the counts that a resource may get, the largest first, and finally 0."""
        most = self._count_at_most(index, resource, missing)
        if self._demands[index].affinity is Affinity.TOGETHER:
            return iter((most, 0) if most else (0,))
        return iter(range(most, -1, -1))

    def _count_at_most(self, index: int, resource: Resource, missing: int) -> int:
        """Return the largest count that a resource may get: all that is missing or nothing if they stay together."""
        fits, demand = self._count_fitting(index, resource), self._demands[index]
        if demand.affinity is Affinity.TOGETHER and not demand.whole:
            return missing if fits >= missing else 0
        return min(missing, fits)

    def _count_fitting(self, index: int, resource: Resource) -> int:
        demand, given = self._demands[index], self._given[index]
        if demand.per_instance is None:
            return int(resource.id not in self._whole and resource.id not in self._used)
        if resource.id in self._whole or resource.id in self._occupancy.taken:
            return 0
        if demand.affinity is Affinity.TOGETHER and given and resource.id not in given:
            return 0
        if demand.affinity is Affinity.APART and resource.id in given:
            return 0
        used = self._occupancy.peaks.get(resource.id, NOTHING)
        if resource.id in self._used:
            used += self._used[resource.id]
        count = resource.count_beside(used, demand.per_instance)
        return min(count, 1) if demand.affinity is Affinity.APART else count

    def _take(self, index: int, resource: Resource, count: int) -> None:
        per_instance = self._demands[index].per_instance
        if per_instance is None:
            self._whole.add(resource.id)
        else:
            taken, used = per_instance.times(count), self._used.get(resource.id)
            self._used[resource.id] = used + taken if used else taken
        self._given[index][resource.id] = self._given[index].get(resource.id, 0) + count

    def _give_back(self, index: int, resource: Resource, count: int) -> None:
        per_instance = self._demands[index].per_instance
        if per_instance is None:
            self._whole.remove(resource.id)
        else:
            left = self._used[resource.id].minus(per_instance.times(count))
            if left:
                self._used[resource.id] = left
            else:
                del self._used[resource.id]
        self._given[index][resource.id] -= count
        if not self._given[index][resource.id]:
            del self._given[index][resource.id]


def _sort_by_choice(
    demands: Sequence[Demand], candidates: Sequence[Sequence[Resource]]
) -> Sequence[Sequence[Resource]]:
    """Return the candidates with those of whole demands last that could carry servers of the lease.

    Whole demands are placed first. On hosts that no server of the lease can use they are in nobody's way; otherwise the
    search would have to move many of them, one by one. Preferred resources stay first.
    """
    shared = [(d.per_instance, found) for d, found in zip(demands, candidates, strict=True) if d.per_instance]
    if len(shared) == len(demands):
        return candidates
    wanted: dict[int, int] = {}
    for per_instance, found in shared:
        for resource in found:
            if resource.count_beside(NOTHING, per_instance):
                wanted[resource.id] = wanted.get(resource.id, 0) + 1
    return [
        sorted(found, key=lambda r: (r.id not in d.preferred, wanted.get(r.id, 0))) if d.whole else found
        for d, found in zip(demands, candidates, strict=True)
    ]
