# SPDX-License-Identifier: Apache-2.0
"""How much of groups of resources is promised over time: curves that follow what changes of a kept calendar. Pure.

Instants are seconds since the epoch.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate, chain
from operator import sub

from blazar.calendar.blocks import join_spans
from blazar.calendar.kept import KeptResource
from blazar.calendar.timeline import Use
from blazar.model.base.values import dataclass, field
from blazar.model.resources.resource import PropertyValue

Group = tuple[PropertyValue, ...]
Counted = tuple[Group, int]
"""The group of a resource, and how much it has of what is counted: 1 if whole resources are."""
Part = tuple[int, int, int]
"""A start, an end, and how much of a resource is promised, or out of use, meanwhile."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A sum over time: ``sums`` has what it is from each of the ``instants`` on; before the first it is 0."""

    instants: Sequence[int] = ()
    sums: Sequence[int] = ()

    @classmethod
    def of_changes(cls, changes: Mapping[int, int]) -> Curve:
        """Build from instants and by how much the sum changes there."""
        instants = sorted([instant for instant, change in changes.items() if change])
        return cls(instants, list(accumulate([changes[instant] for instant in instants])))

    def add(self, changes: Mapping[int, int]) -> Curve:
        """Return it with more changes."""
        every = dict(zip(self.instants, map(sub, self.sums, chain((0,), self.sums)), strict=True))
        for instant, change in changes.items():
            every[instant] = every.get(instant, 0) + change
        return Curve.of_changes(every)

    def at(self, instant: int) -> int:
        """Return the sum at an instant."""
        place = bisect_right(self.instants, instant)
        return self.sums[place - 1] if place else 0

    def list_at(self, instants: Sequence[int]) -> list[int]:
        """Return the sum at each of some instants, which rise and among which all of its own are that they span."""
        known = dict(zip(self.instants, self.sums, strict=True))
        found: list[int] = []
        latest = self.at(instants[0]) if instants else 0
        for instant in instants:
            latest = known.get(instant, latest)
            found.append(latest)
        return found

    def list_instants(self, start: int, end: int) -> Sequence[int]:
        """Return the instants from a start on and before an end at which it changes."""
        return self.instants[bisect_left(self.instants, start) : bisect_left(self.instants, end)]


NOTHING = Curve()


@dataclass(frozen=True, slots=True)
class PromisedCurves:
    """How much of each group is promised, of resources that are ``counted``, by id, in classes or as a whole.

    ``measure`` is the class, or None. A resource of which a part is promised counts as promised if it is None.
    """

    measure: str | None
    counted: Mapping[int, Counted] = field(default_factory=dict)
    resources: Mapping[int, KeptResource] = field(default_factory=dict)
    curves: Mapping[Group, Curve] = field(default_factory=dict)

    def follow(self, counted: Mapping[int, Counted], resources: Mapping[int, KeptResource]) -> PromisedCurves:
        """Return them as they are now, which costs no more than what has changed: the resources are compared."""
        before, known = self.counted, self.resources
        if counted is before:
            changed = [id_ for id_ in counted if resources.get(id_) is not known.get(id_)]
        else:
            changed = [
                id_
                for id_ in counted.keys() | before.keys()
                if counted.get(id_) != before.get(id_) or resources.get(id_) is not known.get(id_)
            ]
        more: dict[Group, dict[int, int]] = {}
        for id_ in changed:
            _add_changes(more, before.get(id_), known.get(id_), self.measure, -1)
            _add_changes(more, counted.get(id_), resources.get(id_), self.measure, 1)
        curves = {group: self.curves.get(group, NOTHING).add(changes) for group, changes in more.items()}
        return PromisedCurves(self.measure, counted, resources, {**self.curves, **curves})


def _add_changes(
    found: dict[Group, dict[int, int]],
    counted: Counted | None,
    resource: KeptResource | None,
    measure: str | None,
    times: int,
) -> None:
    """Add what is promised of a resource, so many times, to the changes of its group."""
    if counted is None or resource is None or not resource.uses:
        return
    group, amount = counted
    add_parts(found.setdefault(group, defaultdict(int)), sum_promised(resource.uses, amount, measure), times)


def add_parts(changes: dict[int, int], parts: Sequence[Part], times: int = 1) -> None:
    """Add parts, so many times, to the changes of a sum, which are 0 by default."""
    for start, end, amount in parts:
        changes[start] += times * amount
        changes[end] -= times * amount


def sum_promised(uses: Sequence[Use], amount: int, measure: str | None) -> list[Part]:
    """Return how much of a resource is promised, at most all of it, in parts that do not overlap, earliest first."""
    whole: list[tuple[int, int]] = []
    changes: dict[int, int] = defaultdict(int)
    for start, end, count, amounts in uses:
        # What was given back before it began has nothing of it.
        if start >= end:
            continue
        if measure is None or amounts is None:
            whole.append((start, end))
        elif taken := count * amounts.get(measure):
            changes[start] += taken
            changes[end] -= taken
    spans = join_spans(whole)
    if not changes:
        return [(start, end, amount) for start, end in spans]
    for start, end in spans:
        changes[start] += amount
        changes[end] -= amount
    found: list[Part] = []
    instants = sorted(changes)
    taken = 0
    for start, end in zip(instants, instants[1:], strict=False):
        taken += changes[start]
        if taken:
            found.append((start, end, min(taken, amount)))
    return found
