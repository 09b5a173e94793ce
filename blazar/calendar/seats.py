# SPDX-License-Identifier: Apache-2.0
"""Whole resources assigned to the demands of a lease: a flow from each demand, by way of its values, to resources.

It grows along augmenting paths (Berge, 1957), each of which is found breadth first. The values are of the property that
a demand is spread over, of each of which it takes so many at most; a demand that is not spread has one way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from blazar.model.calendar.demand import Demand
from blazar.model.calendar.topology import value_of
from blazar.model.resources.resource import Resource

Way = tuple[int, str]
"""A demand, by its index, and a value of which it may take resources."""

_Path = Mapping[Way, tuple[Way, int] | None]
"""How a search came by a way: from another one, for a resource of it that this one gives up; None where it began."""

_ANY = ""


class Seats:
    """Which demand has which resource; one more is assigned at a time, and others may be exchanged for it.

    ``owner`` is the index of the demand by resource id, ``held`` how many each has. What is pinned is never exchanged.
    """

    def __init__(self, demands: Sequence[Demand], candidates: Sequence[Sequence[Resource]]) -> None:
        self.owner: dict[int, int] = {}
        self.held = [0] * len(demands)
        self._most = [None if d.topology.spread is None else d.topology.spread.most for d in demands]
        self._ways = [_find_ways(d, some) for d, some in zip(demands, candidates, strict=True)]
        self._count_ways = sum(map(len, self._ways))
        # Of what is not spread there is one way, which needs not be looked up.
        self._value_of = [
            {} if most is None else {id_: value for value, ids in ways.items() for id_ in ids}
            for most, ways in zip(self._most, self._ways, strict=True)
        ]
        self._used: Counter[Way] = Counter()
        # How many of the first resources of each way have an owner: they never become free.
        self._owned: Counter[Way] = Counter()
        for index, demand in enumerate(demands):
            for id_ in demand.pinned:
                self._seat(id_, index)
        self._fixed = frozenset(self.owner)

    def fill(self, index: int, count: int) -> bool:
        """Assign resources to a demand until it has so many; return whether that succeeded."""
        while self.held[index] < count:
            if not self.add(index):
                return False
        return True

    def add(self, index: int) -> bool:
        """Assign one more resource to a demand; return whether that succeeded.

        A breadth-first search over ways, each visited once: the path is one of the shortest.
        """
        begin = [way for value in self._ways[index] if self._has_room(way := (index, value))]
        came_by: dict[Way, tuple[Way, int] | None] = dict.fromkeys(begin)
        queue = list(begin)
        for at in queue:
            free = self._find_free(at)
            if free is not None:
                self._shift(at, free, came_by)
                return True
            for id_ in self._ways[at[0]][at[1]]:
                if len(queue) == self._count_ways:
                    break
                holder = self.owner[id_]
                if id_ in self._fixed:
                    continue
                # It gives that up for another of the same value, or for one of a value of which it may have more.
                left = self._value_of[holder].get(id_, _ANY)
                for value in self._ways[holder]:
                    way = holder, value
                    if way not in came_by and (value == left or self._has_room(way)):
                        came_by[way] = at, id_
                        queue.append(way)
        return False

    def _has_room(self, way: Way) -> bool:
        most = self._most[way[0]]
        return most is None or self._used[way] < most

    def _find_free(self, way: Way) -> int | None:
        ids = self._ways[way[0]][way[1]]
        for position in range(self._owned[way], len(ids)):
            if ids[position] not in self.owner:
                return ids[position]
            self._owned[way] = position + 1
        return None

    def _shift(self, at: Way, free: int, came_by: _Path) -> None:
        """Assign the free resource to the last demand of a path, and to each earlier one what the next one had."""
        while True:
            self._seat(free, at[0])
            came = came_by[at]
            if came is None:
                return
            at, free = came

    def _seat(self, id_: int, index: int) -> None:
        before = self.owner.get(id_)
        if before is not None:
            self.held[before] -= 1
            self._used[before, self._value_of[before].get(id_, _ANY)] -= 1
        self.owner[id_] = index
        self.held[index] += 1
        self._used[index, self._value_of[index].get(id_, _ANY)] += 1


def _find_ways(demand: Demand, resources: Sequence[Resource]) -> Mapping[str, list[int]]:
    """Return the ids that a demand may take by value. Of what has no value only that which is in use is among them."""
    spread = demand.topology.spread
    if spread is None:
        return {_ANY: [r.id for r in resources]}
    ways: dict[str, list[int]] = {}
    for resource in resources:
        value = value_of(resource, spread.key)
        if value is not None or resource.id in demand.pinned:
            ways.setdefault(_ANY if value is None else f"={value}", []).append(resource.id)
    return ways
