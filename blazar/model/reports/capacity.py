# SPDX-License-Identifier: Apache-2.0
"""Reports of capacity: in which states resources were, and for how long. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import date, datetime
from enum import StrEnum
from typing import TypeVar

from blazar.model.base.moments import DayOrMoment
from blazar.model.base.values import dataclass, field
from blazar.model.base.window import Window
from blazar.model.reports.periods import ReportStep
from blazar.model.reports.states import (
    USABLE,
    ResourceCondition,
    ResourceState,
    StateSpan,
    TracedResource,
    list_states,
)


class CapacityGroup(StrEnum):
    """What rows of a report of capacity can be told apart by. ``PROPERTY`` is one property, which is named."""

    KIND = "kind"
    REGION = "region"
    PROPERTY = "property"


@dataclass(frozen=True, slots=True)
class CapacityReportQuestion:
    """What a report of capacity is to have; ``prop`` is the property of the group of that name.

    ``operator``: the asker sees all resources; others those that are open to ``project_id`` now.
    """

    project_id: str
    start: DayOrMoment | None = None
    end: DayOrMoment | None = None
    group_by: tuple[CapacityGroup, ...] = ()
    step: ReportStep = ReportStep.ALL
    prop: str | None = None
    operator: bool = False


@dataclass(frozen=True, slots=True)
class CapacityGrouping:
    """By what rows are told apart."""

    group_by: tuple[CapacityGroup, ...] = ()
    prop: str = ""

    def group_of(self, resource: TracedResource, condition: ResourceCondition) -> tuple[str | None, ...]:
        """Return the values of the groups of a resource at a time; None if it has no such property."""
        return self.values_of(resource.kind, resource.region, condition.properties)

    def values_of(self, kind: str, region: str, properties: Mapping[str, str]) -> tuple[str | None, ...]:
        """Return the values of the groups."""
        known = {CapacityGroup.KIND: kind, CapacityGroup.REGION: region}
        return tuple(
            properties.get(self.prop) if group is CapacityGroup.PROPERTY else known[group] for group in self.group_by
        )


@dataclass(frozen=True, slots=True)
class CapacityCell:
    """What all resources are alike in that are on record together: nothing that a report tells apart differs."""

    kind: str
    region: str = ""
    open_to: tuple[str, ...] | None = None
    properties: tuple[tuple[str, str], ...] = ()

    def is_open_to(self, project_id: str) -> bool:
        """Return whether a project might have them."""
        return self.open_to is None or project_id in self.open_to


def cell_of(resource: TracedResource, condition: ResourceCondition) -> CapacityCell:
    """Return the cell of a resource at a time."""
    open_to = None if resource.open_to is None else tuple(sorted(resource.open_to))
    return CapacityCell(resource.kind, resource.region, open_to, tuple(sorted(condition.properties.items())))


@dataclass(frozen=True, slots=True)
class AmountTime:
    """Amounts of a resource class, times seconds."""

    registered: int = 0
    promised: int = 0


@dataclass(frozen=True, slots=True)
class CapacitySums:
    """What resources were: seconds by state, which add up to those registered, and amounts."""

    resources: int
    seconds: Mapping[ResourceState, int]
    amounts: Mapping[str, AmountTime] = field(default_factory=dict)

    @property
    def registered(self) -> int:
        """Return how long they were registered."""
        return sum(self.seconds.values())

    @property
    def utilization(self) -> float | None:
        """Return which part of the time in which they could be used was promised; None if there was none."""
        usable = sum(self.seconds.get(state, 0) for state in USABLE)
        return self.seconds.get(ResourceState.PROMISED, 0) / usable if usable else None


@dataclass(slots=True)
class _Sum:
    """The sums of one row while they are added up."""

    members: set[int] = field(default_factory=set)
    seconds: Counter[ResourceState] = field(default_factory=Counter)
    registered: Counter[str] = field(default_factory=Counter)
    promised: Counter[str] = field(default_factory=Counter)

    def add(self, resource_id: int, span: StateSpan) -> None:
        length = int(span.window.duration.total_seconds())
        self.members.add(resource_id)
        self.seconds[span.state] += length
        for name, amount in span.condition.capacity:
            self.registered[name] += amount * length
        for name, amount in span.used:
            self.promised[name] += amount * length

    def close(self) -> CapacitySums:
        names = sorted({*self.registered, *self.promised})
        return CapacitySums(
            len(self.members),
            {state: self.seconds[state] for state in ResourceState},
            {name: AmountTime(self.registered[name], self.promised[name]) for name in names},
        )


Group = TypeVar("Group", bound=Hashable)


def sum_capacity(
    resources: Iterable[TracedResource],
    periods: Sequence[Window],
    group_of: Callable[[TracedResource, ResourceCondition], Group],
) -> Mapping[tuple[int, Group], CapacitySums]:
    """Return the sums of resources by period, as its number, and group; none of what has no time in a period.

    The periods follow each other.
    """
    starts = [period.start for period in periods]
    cuts = [*starts, *(period.end for period in periods)]
    found: dict[tuple[int, Group], _Sum] = defaultdict(_Sum)
    for resource in resources:
        for span in list_states(resource, cuts):
            at = bisect_right(starts, span.window.start) - 1
            if at >= 0 and span.window.end <= periods[at].end:
                found[at, group_of(resource, span.condition)].add(resource.id, span)
    return {key: sums.close() for key, sums in found.items()}


@dataclass(frozen=True, slots=True)
class CapacityRow:
    """A row of a report of capacity: the part of the period, the values of its groups, in their order, and the sums."""

    window: Window
    groups: tuple[str | None, ...]
    sums: CapacitySums


def list_rows(
    sums: Mapping[tuple[int, tuple[str | None, ...]], CapacitySums], parts: Sequence[Window]
) -> tuple[CapacityRow, ...]:
    """Return sums as rows, by part and group; what has no value of a group comes last."""
    order = sorted(sums, key=lambda key: (key[0], tuple((value is None, value or "") for value in key[1])))
    return tuple(CapacityRow(parts[number], groups, sums[number, groups]) for number, groups in order)


@dataclass(frozen=True, slots=True)
class CapacityReport:
    """A report of capacity, of what was so until ``computed_through``; ``time_zone`` is that of its days."""

    window: Window
    time_zone: str
    step: ReportStep
    computed_through: datetime
    group_by: tuple[CapacityGroup, ...] = ()
    rows: tuple[CapacityRow, ...] = ()


@dataclass(frozen=True, slots=True)
class CapacityDay:
    """What is on record of a local day and a cell.

    ``seconds`` by state, None before the day is over; ``promised_before``: seconds that were promised so many days
    before.
    """

    day: date
    cell: CapacityCell
    seconds: Mapping[ResourceState, int] | None = None
    promised_before: Mapping[int, int] = field(default_factory=dict)
