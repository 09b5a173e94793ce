# SPDX-License-Identifier: Apache-2.0
"""Topology: whole resources that lie together or spread, chosen among those that are free.

For one demand all choices are looked at, which is one pass over its candidates. Several demands of which some are to
lie together are a packing problem, and hard in theory; values are tried in order of preference, up to a bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, product

from blazar.model.calendar.demand import Demand
from blazar.model.calendar.topology import Together, group_by_value, value_of
from blazar.model.resources.resource import Resource

MOST_COMBINATIONS = 500
"""Combinations of values that are tried for the demands of one lease."""

Choice = Sequence[Resource]
"""Candidates of a demand, in order of preference: those that are pinned first."""


def list_combinations(demands: Sequence[Demand], candidates: Sequence[Choice]) -> Iterator[Sequence[Choice]]:
    """Yield which candidates each demand may choose from, best first, so that its units lie as it asks.

    Of what is spread, each demand has to take no more of a value than it may. No combination: a demand cannot be met.
    """
    choices = [list_choices(demand, some) for demand, some in zip(demands, candidates, strict=True)]
    if all(choices):
        yield from islice(product(*choices), MOST_COMBINATIONS)


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
    if together is None or together.prefer:
        return len(take_spread(demand, resources))
    if together.size:
        groups = group_by_value(resources, together.key).values()
        return sum(len(group) // together.size for group in groups) * together.size
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
    """Return the groups for as many as possible, and for no more than needed: small rooms first, so that large ones
    stay whole. A group of which a part is in use is completed where it is.
    """
    pinned = [r for r in candidates if r.id in demand.pinned]
    rooms = dict(group_by_value((r for r in candidates if r.id not in demand.pinned), together.key))
    completed: list[Resource] = list(pinned)
    for value, count in Counter(value_of(r, together.key) for r in pinned).items():
        missing, room = -count % together.size, rooms.get(str(value), [])
        if value is None or missing > len(room):
            return []
        completed += room[:missing]
        rooms[value] = room[missing:]
    order = sorted(rooms, key=lambda value: (-_count_preferred(rooms[value], demand), len(rooms[value]), value))
    found: list[Choice] = []
    for most in (demand.max_count, -(-demand.min_count // together.size) * together.size):
        taken = list(completed)
        for value in order:
            groups = min(len(rooms[value]), max(0, most - len(taken))) // together.size
            taken += rooms[value][: groups * together.size]
        if len(taken) <= demand.max_count and taken not in found:
            found.append(taken)
    return found


def _count_preferred(resources: Choice, demand: Demand) -> int:
    return sum(1 for r in resources if r.id in demand.preferred)


def fix_groups(demand: Demand, choice: Choice) -> Demand:
    """Return a demand that takes all that was chosen for it, if that is groups."""
    together = demand.topology.together
    if together is None or not together.size or demand.max_count <= len(demand.pinned):
        return demand
    return replace(demand, min_count=len(choice), max_count=len(choice))
