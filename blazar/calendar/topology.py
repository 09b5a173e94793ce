# SPDX-License-Identifier: Apache-2.0
"""Topology: whole resources that lie together or spread, chosen among those that are free.

For one demand all choices are looked at, which is one pass over its candidates. Several demands of which some are to
lie together are a packing problem, and hard in theory: choices are made for one demand after the other, best first, and
taken back where what was chosen cannot be had together, up to a bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from blazar.model.base.values import dataclass, replace
from blazar.model.calendar.demand import Demand
from blazar.model.calendar.topology import Together, group_by_value, value_of
from blazar.model.resources.resource import Resource

MOST_LOOKED_AT = 200_000
"""Candidates that are looked at, each once a trial, until demands of one lease count as in each other's way."""

Choice = Sequence[Resource]
"""Candidates of a demand, in order of preference: those that are pinned first."""


Partial = Mapping[int, Choice]
"""A choice for some of the demands, by index."""


def list_combinations(
    demands: Sequence[Demand], candidates: Sequence[Choice], can_have: Callable[[Partial], bool]
) -> Iterator[Sequence[Choice]]:
    """Yield which candidates each demand may choose from, best first, so that its units lie as it asks.

    ``can_have`` tells whether some of the demands get their minimum of their choices beside each other: what they
    cannot is not tried with the choices of others. No combination: a demand cannot be met.
    """
    choices = [list_choices(demand, some) for demand, some in zip(demands, candidates, strict=True)]
    if all(choices):
        # Those with the least choice first: less is taken back. Who may have any looks at most, and so comes last.
        order = sorted(range(len(demands)), key=lambda i: (demands[i].topology.together is None, len(choices[i])))
        yield from _Trials(choices, order, can_have).list_from({})


@dataclass(slots=True)
class _Trials:
    """A search in depth through the choices of demands, in an order; what it may still look at is bounded."""

    choices: Sequence[Sequence[Choice]]
    order: Sequence[int]
    can_have: Callable[[Partial], bool]
    left: int = MOST_LOOKED_AT

    def list_from(self, chosen: Partial) -> Iterator[Sequence[Choice]]:
        """Yield the combinations that go on from these choices."""
        if len(chosen) == len(self.order):
            yield [chosen[index] for index in range(len(chosen))]
            return
        index = self.order[len(chosen)]
        for choice in self.choices[index]:
            if self.left <= 0:
                return
            more = {**chosen, index: choice}
            self.left -= sum(map(len, more.values()))
            if self.can_have(more):
                yield from self.list_from(more)


def list_choices(demand: Demand, candidates: Choice) -> list[Choice]:
    """Return the choices of one demand that have room for its minimum, best first.

    Best is what has most of the resources that it prefers, gives most up to its maximum, leaves fewest of the value
    unused, takes the least scarce. What a reservation has in use stays, however it lies.
    """
    together, pinned = demand.topology.together, len(demand.pinned)
    if together is None or demand.max_count <= pinned:
        some = [candidates]
    elif together.size:
        some = _list_groups(demand, together, candidates)
    else:
        some = _list_values(demand, together, candidates)
    found = [one for one in some if len(take_spread(demand, one)) >= demand.min_count]
    if not found and demand.min_count <= pinned:
        return [[r for r in candidates if r.id in demand.pinned]]
    return found


def count_units(demand: Demand, resources: Choice) -> int:
    """Return how many units a demand could get of free resources, lying as it asks, if it were the only one."""
    together = demand.topology.together
    if together is None:
        return len(take_spread(demand, resources))
    if together.size:
        groups = _take_groups(demand, together, resources, len(resources))
        return len(demand.pinned) if groups is None else len(groups)
    near = _list_values(demand, together, resources)
    return max((len(take_spread(demand, some)) for some in near), default=len(demand.pinned))


def take_spread(demand: Demand, choice: Choice) -> Choice:
    """Return candidates without those that would be too many of a value for a demand that is spread."""
    spread = demand.topology.spread
    if spread is None:
        return choice
    taken: Counter[str | None] = Counter(value_of(r, spread.key) for r in choice if r.id in demand.pinned)
    kept = []
    for resource in choice:
        if resource.id in demand.pinned:
            kept.append(resource)
        elif (value := value_of(resource, spread.key)) is not None and taken[value] < spread.most:
            taken[value] += 1
            kept.append(resource)
    return kept


def _list_values(demand: Demand, together: Together, candidates: Choice) -> list[Choice]:
    pinned = [r for r in candidates if r.id in demand.pinned]
    groups = group_by_value((r for r in candidates if r.id not in demand.pinned), together.key)
    # What it grows by lies where the rest of it does.
    held = {value_of(r, together.key) for r in pinned}
    near = {value: [*pinned, *group] for value, group in groups.items() if not held or value in held}
    counts = {value: len(take_spread(demand, group)) for value, group in near.items()}

    def preference(value: str) -> tuple[int, int, int, int, str]:
        group, gives = near[value], min(demand.max_count, counts[value])
        tiers = sum(r.tier for r in group[:gives])
        return -_count_preferred(group, demand), -gives, len(group) - gives, tiers, value

    found: list[Choice] = [near[value] for value in sorted(near, key=preference)]
    if together.prefer:
        largest = sorted(groups, key=lambda value: (value not in held, -len(take_spread(demand, groups[value])), value))
        found.append([*pinned, *(r for value in largest for r in groups[value])])
    return found


def _list_groups(demand: Demand, together: Together, candidates: Choice) -> list[Choice]:
    """Return the groups for as many as possible, and for no more than needed."""
    found: list[Choice] = []
    for most in (demand.max_count, -(-demand.min_count // together.size) * together.size):
        taken = _take_groups(demand, together, candidates, most)
        if taken is not None and len(taken) <= demand.max_count and taken not in found:
            found.append(taken)
    return found


def _take_groups(demand: Demand, together: Together, candidates: Choice, most: int) -> list[Resource] | None:
    """Return groups of so many resources at most: small rooms first, so that large ones stay whole.

    A group of which a part is in use is completed where it is; None if that cannot be.
    """
    pinned = [r for r in candidates if r.id in demand.pinned]
    rooms = group_by_value((r for r in candidates if r.id not in demand.pinned), together.key)
    taken: list[Resource] = list(pinned)
    for value, count in Counter(value_of(r, together.key) for r in pinned).items():
        missing = -count % together.size
        added = _take_from(rooms.get(str(value), []), missing, taken, demand)
        if value is None or len(added) < missing:
            return None
        taken += added
    for value in sorted(rooms, key=lambda value: (-_count_preferred(rooms[value], demand), len(rooms[value]), value)):
        while len(taken) + together.size <= most:
            added = _take_from(rooms[value], together.size, taken, demand)
            if len(added) < together.size:
                break
            taken += added
    return taken


def _take_from(room: list[Resource], count: int, beside: Sequence[Resource], demand: Demand) -> list[Resource]:
    """Take so many out of a room, if it has them: of a demand that is spread, first of the values that have most left.

    That keeps the more for the groups that follow.
    """
    spread = demand.topology.spread
    if spread is None:
        taken = room[:count]
    else:
        place = {r.id: number for number, r in enumerate(room)}
        used = Counter(value_of(r, spread.key) for r in beside)
        # The nth of a value is taken as if those before it were gone already.
        ranked = [
            (used[value] + n, place[r.id], r)
            for value, some in group_by_value(room, spread.key).items()
            for n, r in enumerate(some[: max(0, spread.most - used[value])])
        ]
        taken = [r for *_, r in sorted(ranked, key=lambda one: one[:2])[:count]]
    if len(taken) < count:
        return []
    gone = {r.id for r in taken}
    room[:] = [r for r in room if r.id not in gone]
    return taken


def _count_preferred(resources: Choice, demand: Demand) -> int:
    return sum(1 for r in resources if r.id in demand.preferred)


def fix_groups(demand: Demand, choice: Choice) -> Demand:
    """Return a demand that takes all that was chosen for it, if that is groups."""
    together = demand.topology.together
    if together is None or not together.size or demand.max_count <= len(demand.pinned):
        return demand
    return replace(demand, min_count=len(choice), max_count=len(choice))
