# SPDX-License-Identifier: Apache-2.0
"""What is near to a request and fits into its window: fewer, for a shorter time, or with less required."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from blazar.calendar.openings import KindSearch, last_fitting_end
from blazar.calendar.placement import Placement
from blazar.calendar.reasons import RequirementPart
from blazar.model.base.errors import NotEnoughResources
from blazar.model.calendar.demand import Demand
from blazar.model.resources.requirements import join_requirements

SHORTEST = 60
"""Seconds below which nobody wants a window."""

MOST_PARTS = 8
"""Parts of a requirement that are left out in turn; a requirement may have a thousand."""


Granted = Callable[[int, Sequence[Placement]], bool]
"""Tells whether the limits of the project allow these placements, one for each kind, up to an end.

The more or the longer, the less is granted.
"""


def find_fewer(
    kinds: Sequence[KindSearch], free: Sequence[Sequence[int]], start: int, end: int, granted: Granted
) -> list[list[int]] | None:
    """Return as many of each demand as fit into a window together and are granted, by kind; None if one gets nothing.

    ``free`` is what each could get by itself. If all of that does not fit, the same smaller number is tried for all, so
    that the largest is found by bisection. A request that takes nothing, as one for what others have, has none.
    """
    if not kinds or not all(count for counts in free for count in counts):
        return None
    low, high = 0, max(count for counts in free for count in counts)
    found: list[list[int]] | None = None
    tried = high
    while low < high and not any(kind.budget.is_spent for kind in kinds):
        wanted = [
            [round_down(demand, min(count, tried)) for demand, count in zip(kind.demands, counts, strict=True)]
            for kind, counts in zip(kinds, free, strict=True)
        ]
        if _do_fit(kinds, wanted, start, end, granted):
            low, found = tried, wanted
        else:
            high = tried - 1
        tried = (low + high + 1) // 2
    return found


def find_shorter(kinds: Sequence[KindSearch], start: int, end: int, granted: Granted) -> int | None:
    """Return the last end before that of a window for which all demands fit and are granted, None if it is too near."""
    low = start + SHORTEST
    if end <= low or not _can_be_granted(kinds, start, low, granted):
        return None
    high = last_fitting_end(kinds, start, low, end)
    tried = high
    while low < high:
        if _can_be_granted(kinds, start, tried, granted):
            low = tried
        else:
            high = tried - 1
        tried = (low + high + 1) // 2
    return low


def _can_be_granted(kinds: Sequence[KindSearch], start: int, end: int, granted: Granted) -> bool:
    """Return whether all demands fit up to an end and are granted."""
    placements = [placed for kind in kinds if (placed := kind.find_placement(start, end)) is not None]
    return len(placements) == len(kinds) and granted(end, placements)


def find_hindrance(
    kinds: Sequence[KindSearch],
    at: tuple[int, int],
    parts: Sequence[RequirementPart],
    start: int,
    end: int,
    granted: Granted,
) -> RequirementPart | None:
    """Return the first part of a demand's requirement without which all demands fit into a window and are granted.

    ``at`` is the place of the demand's kind, and its place in that.
    """
    number, index = at
    kind = kinds[number]
    others = [other.find_placement(start, end) for other in kinds if other is not kind]
    if any(placement is None for placement in others):
        return None
    besides = [placement for placement in others if placement is not None]
    open_parts = [part for part in _find_gaining_parts(kind, parts) if part.pointer is not None and not part.needed]
    for part in open_parts[:MOST_PARTS]:
        if kind.budget.is_spent:
            return None
        # To match the rest costs as much as its parts.
        kind.budget.spend(len(parts))
        rest = join_requirements(*(p.requirement for p in parts if p is not part))
        demands = [replace(d, requirement=rest) if i == index else d for i, d in enumerate(kind.demands)]
        try:
            placement = kind.place(start, end, demands)
        except NotEnoughResources:
            continue
        if granted(end, [*besides[:number], placement, *besides[number:]]):
            return part
    return None


def _find_gaining_parts(kind: KindSearch, parts: Sequence[RequirementPart]) -> list[RequirementPart]:
    """Return the parts that alone exclude a resource: without any other one, the candidates stay the same."""
    met = [{resource.id for resource in kind.matching(part.requirement)} for part in parts]
    unmet = {resource.id: [i for i, ids in enumerate(met) if resource.id not in ids] for resource in kind.resources}
    alone = {missed[0] for missed in unmet.values() if len(missed) == 1}
    return [part for i, part in enumerate(parts) if i in alone]


def round_down(demand: Demand, count: int) -> int:
    """Return the largest count up to this one that can be asked for: at least what is fixed, and in whole groups."""
    together = demand.topology.together
    size = together.size if together is not None else 0
    least = max(1, demand.fixed_count, count)
    return least if not size else max(size, least // size * size)


def _do_fit(
    kinds: Sequence[KindSearch], wanted: Sequence[Sequence[int]], start: int, end: int, granted: Granted
) -> bool:
    """Return whether so many of each demand, by kind, fit into a window together and are granted."""
    placements = []
    for kind, counts in zip(kinds, wanted, strict=True):
        kind.budget.spend()
        demands = [replace(d, min_count=count, max_count=count) for d, count in zip(kind.demands, counts, strict=True)]
        try:
            placements.append(kind.place(start, end, demands))
        except NotEnoughResources:
            return False
    return granted(end, placements)
