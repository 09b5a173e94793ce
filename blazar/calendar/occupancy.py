"""What is promised of each resource inside one window."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from blazar.model.amounts import Amounts
from blazar.model.demand import Allocation
from blazar.model.resource import Resource
from blazar.model.window import Window


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Resources taken whole, and the peak of what is taken of the others.

    ``peaks`` has, by resource and class, the highest sum of amounts at any one instant of the window. Peaks of
    different classes may lie at different instants; a unit must fit beside each of them.
    """

    taken: frozenset[int] = frozenset()
    peaks: Mapping[int, Amounts] = field(default_factory=dict)

    @classmethod
    def of_busy(cls, resource_ids: Iterable[int]) -> Occupancy:
        """Build for questions about whole resources: these are not free."""
        return cls(taken=frozenset(resource_ids))

    @classmethod
    def of_allocations(cls, window: Window, allocations: Iterable[Allocation]) -> Occupancy:
        """Build from allocations; those that do not overlap the window count for nothing.

        Windows may have been widened by the cleaning time before.
        """
        taken: set[int] = set()
        shared: dict[int, list[Allocation]] = defaultdict(list)
        for allocation in allocations:
            if not allocation.window.overlaps(window):
                continue
            if allocation.unit is None:
                taken.add(allocation.resource_id)
            else:
                shared[allocation.resource_id].append(allocation)
        return cls(frozenset(taken), {resource_id: _peak(parts) for resource_id, parts in shared.items()})

    def is_free(self, resource_id: int) -> bool:
        """Tell whether nothing at all is promised of the resource in the window."""
        return resource_id not in self.taken and resource_id not in self.peaks

    def units_free(self, resource: Resource, unit: Amounts) -> int:
        """Return how many such units fit on the resource throughout the window.

        None at all where more is promised than there is, as when a resource has shrunk since.
        """
        if resource.id in self.taken:
            return 0
        return resource.units_beside(self.peaks.get(resource.id, Amounts()), unit)


def _peak(allocations: Iterable[Allocation]) -> Amounts:
    steps: list[tuple[datetime, int, Amounts]] = []
    for allocation in allocations:
        amounts = allocation.amounts or Amounts()
        steps.append((allocation.window.start, 1, amounts))
        steps.append((allocation.window.end, 0, amounts))
    # At one instant ends come before starts: windows that touch never add up.
    steps.sort(key=lambda step: (step[0], step[1]))
    now: dict[str, int] = defaultdict(int)
    peak: dict[str, int] = defaultdict(int)
    for _, begins, amounts in steps:
        for name, amount in amounts:
            now[name] += amount if begins else -amount
            peak[name] = max(peak[name], now[name])
    return Amounts.of(peak)
