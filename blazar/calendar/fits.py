# SPDX-License-Identifier: Apache-2.0
"""How many instances of one size fit on a resource, as a step function of time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from blazar.calendar.timeline import Timeline, Use, add_cleaning_before
from blazar.model.base.amounts import NOTHING, Amounts
from blazar.model.resources.resource import Resource

Step = tuple[int, int]
"""An instant, and the number from then on, to the instant of the next step."""

NEVER = 2**62

_Sizes = tuple[Amounts | None, ...]


class Fits:
    """How many instances fit beside the uses of a timeline; each resource is computed once."""

    def __init__(self, timeline: Timeline, per_instance: Amounts) -> None:
        self._timeline = timeline
        self._per_instance = per_instance
        self._steps: dict[int, Sequence[Step]] = {}
        # Hosts of one model with servers of one size have the same numbers: they are computed once for all of them.
        self._known: dict[tuple[Amounts, _Sizes], dict[tuple[int, ...], int]] = {}

    def steps_of(self, resource: Resource) -> Sequence[Step]:
        """Return the steps of a resource, in order; the first one is before all time."""
        known = self._steps.get(resource.id)
        if known is None:
            known = self._steps[resource.id] = self._compute_steps(resource)
        return known

    def _compute_steps(self, resource: Resource) -> Sequence[Step]:
        timeline = self._timeline
        uses: list[Use] = [add_cleaning_before(use, timeline.cleaning) for use in timeline.uses.get(resource.id, ())]
        if late := timeline.late.get(resource.id):
            uses += [(start, timeline.now + 1, count, amounts) for start, _, count, amounts in late]
        fit = resource.count_beside(NOTHING, self._per_instance)
        steps = [(-NEVER, fit)]
        if not uses or not fit:
            return steps
        places: dict[Amounts | None, int] = {}
        changes: list[tuple[int, int, int]] = []
        for start, end, count, amounts in uses:
            place = places.setdefault(amounts, len(places))
            changes += ((start, place, count), (end, place, -count))
        changes.sort()
        sizes = tuple(places)
        known = self._known.setdefault((resource.capacity, sizes), {})
        levels = [0] * len(sizes)
        following = [at for at, _, _ in changes[1:]] + [NEVER]
        for (at, place, change), after in zip(changes, following, strict=True):
            levels[place] += change
            if after == at:
                continue
            key = tuple(levels)
            now = known.get(key)
            if now is None:
                now = known[key] = self._count_beside(resource.capacity, sizes, key)
            if now != fit:
                fit = now
                steps.append((at, fit))
        return steps

    def _count_beside(self, capacity: Amounts, sizes: _Sizes, counts: Sequence[int]) -> int:
        """Return how many instances fit beside these counts of uses, by size."""
        used = Amounts()
        for size, count in zip(sizes, counts, strict=True):
            if count and size is None:
                return 0
            if size is not None:
                used += size.times(count)
        return self._per_instance.times_within(capacity, used)


def find_lowest(steps: Sequence[Step], length: int) -> Iterator[Step]:
    """Yield the starts at which the lowest number changes that is met in ``length`` seconds, with that number.

    The sliding minimum of a step function, with a queue of the values that may become the lowest.
    """
    queue = deque([0])
    entered, left = 1, 0
    yield -NEVER, steps[0][1]
    while True:
        enters = steps[entered][0] - length + 1 if entered < len(steps) else NEVER
        leaves = steps[left + 1][0] if left + 1 < len(steps) else NEVER
        at = min(enters, leaves)
        if at == NEVER:
            return
        if enters == at:
            while queue and steps[queue[-1]][1] >= steps[entered][1]:
                queue.pop()
            queue.append(entered)
            entered += 1
        if leaves == at:
            if queue[0] == left:
                queue.popleft()
            left += 1
        yield at, steps[queue[0]][1]
