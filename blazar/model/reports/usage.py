# SPDX-License-Identifier: Apache-2.0
"""Reports of usage: for whom resources were reserved, for how long, and what became of that."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from blazar.model.base.errors import InvalidInput, query_field
from blazar.model.base.window import Window
from blazar.model.reports.periods import ReportInstant, ReportStep

MOST_ROWS = 10_000
MOST_GROUPS = 3


class UsageGroup(StrEnum):
    """What rows of a report can be told apart by. ``PROPERTY`` is one property of resources, which is named."""

    PROJECT = "project"
    USER = "user"
    RESOURCE_TYPE = "resource_type"
    KIND = "kind"
    REGION = "region"
    LEASE_KIND = "lease_kind"
    PROPERTY = "property"


@dataclass(frozen=True, slots=True)
class UsageQuestion:
    """What a report is to have: the period, by default the month so far; the groups and the length of its parts.

    ``prop`` is the property of the group of that name. ``project_id``: of this project only. ``user_id``: users other
    than this one are not told apart; None: all are. ``private``: the asker knows private properties.
    """

    asked_by_project: str
    start: ReportInstant | None = None
    end: ReportInstant | None = None
    group_by: tuple[UsageGroup, ...] = ()
    step: ReportStep = ReportStep.ALL
    prop: str | None = None
    project_id: str | None = None
    user_id: str | None = None
    private: bool = False


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """What a lease has of a resource for some time, as it is on record.

    It begins at ``start``, was to end at ``due``, and ends at ``left``: what lies between is overrun. Both are seconds
    since the epoch. ``units`` is how much of the resource it is: 1 of a whole one, the number of instances, addresses,
    or volumes.
    """

    lease_id: str
    project_id: str
    user_id: str
    lease_kind: str
    resource_type: str
    resource_id: int
    kind: str
    region: str
    start: int
    due: int
    left: int
    units: int = 1


@dataclass(frozen=True, slots=True)
class UsageSums:
    """The measures of a row, in seconds times units; ``leases`` is a number of leases.

    ``reserved``: resources were promised and not given back. ``overrun``: what users had of them beyond their end.
    """

    reserved: int = 0
    overrun: int = 0
    leases: int = 0


@dataclass(frozen=True, slots=True)
class UsageRow:
    """A row of a report: the part of the period, the values of its groups, in their order, and the sums."""

    window: Window
    groups: tuple[str | None, ...]
    sums: UsageSums


@dataclass(frozen=True, slots=True)
class UsageReport:
    """A report: rows by time and groups, of what was so until ``computed_through``.

    ``time_zone`` is that of its days.
    """

    window: Window
    time_zone: str
    step: ReportStep
    computed_through: datetime
    group_by: tuple[UsageGroup, ...] = ()
    rows: tuple[UsageRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Grouping:
    """How uses are grouped: by what, the values of the property by resource, and whose users are told apart."""

    group_by: tuple[UsageGroup, ...]
    properties: Mapping[int, str] = field(default_factory=dict)
    user_id: str | None = None

    def key_of(self, use: ResourceUse) -> tuple[str | None, ...]:
        """Return the values of the groups of a use."""
        return tuple(_VALUES[group](use, self) for group in self.group_by)


def _user_of(use: ResourceUse, grouping: Grouping) -> str | None:
    return use.user_id if grouping.user_id in (None, use.user_id) else None


_VALUES: Mapping[UsageGroup, Callable[[ResourceUse, Grouping], str | None]] = {
    UsageGroup.PROJECT: lambda use, _: use.project_id,
    UsageGroup.USER: _user_of,
    UsageGroup.RESOURCE_TYPE: lambda use, _: use.resource_type,
    UsageGroup.KIND: lambda use, _: use.kind,
    UsageGroup.REGION: lambda use, _: use.region,
    UsageGroup.LEASE_KIND: lambda use, _: use.lease_kind,
    UsageGroup.PROPERTY: lambda use, grouping: grouping.properties.get(use.resource_id),
}


@dataclass(slots=True)
class _Cell:
    """The sums of one row while they are added up."""

    reserved: int = 0
    overrun: int = 0
    leases: set[str] = field(default_factory=set)

    def close(self) -> UsageSums:
        return UsageSums(self.reserved, self.overrun, len(self.leases))


def sum_uses(uses: Iterable[ResourceUse], parts: Sequence[Window], grouping: Grouping) -> tuple[UsageRow, ...]:
    """Return the rows of uses, by part and by group. InvalidInput if there are too many.

    The parts follow each other without a gap.
    """
    borders = [int(part.start.timestamp()) for part in parts] + [int(parts[-1].end.timestamp())]
    cells: dict[tuple[int, tuple[str | None, ...]], _Cell] = defaultdict(_Cell)
    for use in uses:
        key = grouping.key_of(use)
        for number in range(_find_part(borders, use.start), len(parts)):
            begin, end = borders[number], borders[number + 1]
            if use.left <= begin:
                break
            _add_use(cells[number, key], use, begin, end)
        if len(cells) > MOST_ROWS:
            raise too_many_rows()
    order = sorted(cells, key=lambda place: (place[0], tuple((value is None, value or "") for value in place[1])))
    return tuple(UsageRow(parts[number], key, cells[number, key].close()) for number, key in order)


def _find_part(borders: Sequence[int], instant: int) -> int:
    """Return the number of the part in which an instant lies; 0 if it lies before them all."""
    return max(bisect_right(borders, instant) - 1, 0)


def _add_use(cell: _Cell, use: ResourceUse, begin: int, end: int) -> None:
    """Add what of a use lies between two instants."""
    due = min(use.due, use.left)
    reserved = max(0, min(due, end) - max(use.start, begin))
    overrun = max(0, min(use.left, end) - max(use.start, due, begin))
    if reserved or overrun:
        cell.reserved += reserved * use.units
        cell.overrun += overrun * use.units
        cell.leases.add(use.lease_id)


def too_many_rows() -> InvalidInput:
    """Return the error for a report with too many rows."""
    return InvalidInput(
        f"the report has more than {MOST_ROWS} rows; give a longer step, fewer groups, or a shorter period",
        code="out_of_bounds",
        at=query_field("group_by"),
        data={"maximum": MOST_ROWS},
    )
