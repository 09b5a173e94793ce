# SPDX-License-Identifier: Apache-2.0
"""Reports of usage: for whom resources were reserved, for how long, and what became of that."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from blazar.model.base.errors import InvalidInput, query_field
from blazar.model.base.moments import DayOrMoment
from blazar.model.base.values import dataclass
from blazar.model.base.window import Window
from blazar.model.energy.unbooked import UnbookedEnergy
from blazar.model.reports.periods import ReportStep

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
    than this one are not told apart; None: all are. ``private``: the asker knows private properties. ``unbooked``: also
    what hosts drew that no lease had.
    """

    asked_by_project: str
    start: DayOrMoment | None = None
    end: DayOrMoment | None = None
    group_by: tuple[UsageGroup, ...] = ()
    step: ReportStep = ReportStep.ALL
    prop: str | None = None
    project_id: str | None = None
    user_id: str | None = None
    private: bool = False
    unbooked: bool = False


class Measure(StrEnum):
    """What is added up, in seconds times units.

    ``RESERVED``: promised and not given back. ``USED``, ``IDLE``, ``UNSEEN``: of that, by what the last look at the
    lease has found; UNSEEN where nobody looks, or the look found out nothing. ``LOST``: of that, what the lease had to
    do without, as its start was late or the resource had failed. ``OVERRUN``: what users had beyond their end.
    ``RETURNED``: what was promised, and given back before.
    """

    RESERVED = "reserved"
    USED = "used"
    IDLE = "idle"
    UNSEEN = "unseen"
    LOST = "lost"
    OVERRUN = "overrun"
    RETURNED = "returned"


@dataclass(frozen=True, slots=True)
class UsageSums:
    """The measures of a row, and the number of leases that had something, or gave something back.

    ``energy_wh`` is what hosts drew, in watt-hours: by what is on record of them, or by their ratings; None if nothing
    is known. ``gco2`` are grams of CO2e; None if the site tells no carbon.
    """

    reserved: int = 0
    used: int = 0
    idle: int = 0
    unseen: int = 0
    lost: int = 0
    overrun: int = 0
    returned: int = 0
    leases: int = 0
    energy_wh: int | None = None
    gco2: int | None = None


@dataclass(frozen=True, slots=True)
class UsageRow:
    """A row of a report: the part of the period, the values of its groups, in their order, and the sums."""

    window: Window
    groups: tuple[str | None, ...]
    sums: UsageSums


@dataclass(frozen=True, slots=True)
class UsageReport:
    """A report: rows by time and groups, of what was so until ``computed_through``.

    ``time_zone`` is that of its days. ``unbooked`` is what hosts drew that no lease had, where that was asked for;
    ``lent_seconds`` are those of hosts that leases had lent to preemptible servers.
    """

    window: Window
    time_zone: str
    step: ReportStep
    computed_through: datetime
    group_by: tuple[UsageGroup, ...] = ()
    rows: tuple[UsageRow, ...] = ()
    unbooked: UnbookedEnergy | None = None
    lent_seconds: int = 0


def too_many_rows() -> InvalidInput:
    """Return the error for a report with too many rows."""
    return InvalidInput(
        f"the report has more than {MOST_ROWS} rows; give a longer step, fewer groups, or a shorter period",
        code="out_of_bounds",
        at=query_field("group_by"),
        data={"maximum": MOST_ROWS},
    )
