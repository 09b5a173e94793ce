# SPDX-License-Identifier: Apache-2.0
"""What was asked for and not granted: requests that were refused, and those that waited for resources. Pure."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from enum import StrEnum
from zoneinfo import ZoneInfo

from blazar.model.base.amounts import Amounts
from blazar.model.base.clock import to_second
from blazar.model.base.moments import DayOrMoment
from blazar.model.base.values import dataclass, field
from blazar.model.base.window import Window
from blazar.model.reports.periods import ReportStep
from blazar.model.reports.usage import MOST_ROWS, too_many_rows

LONGEST_REQUIREMENT = 1000
"""Characters of a requirement that are kept; a longer one counts as any."""
MOST_OF_PROJECT = 100
"""Different refused requests of a project that are told apart between two writes; of more, only the number is kept."""
MOST = 5000
"""The same of all projects together; of more, only how many there are by code."""


@dataclass(frozen=True, slots=True)
class RefusedDemand:
    """What a refused request asked for of one resource type; ``hour`` is the one in which it was refused.

    ``units`` are resources, or instances that take ``amounts`` each, for so many ``seconds``. There are none if only
    the number of refusals is kept, and project and type are empty if not even these are.
    """

    hour: datetime
    code: str
    project_id: str = ""
    resource_type: str = ""
    requirement: str = ""
    units: int = 0
    seconds: int = 0
    amounts: Amounts = Amounts()

    @property
    def is_known(self) -> bool:
        """Return whether it is known what was asked for."""
        return self.units > 0

    @property
    def fingerprint(self) -> str:
        """Return what is the same of requests that ask for the same again within an hour."""
        what = [self.hour.isoformat(), self.code, self.project_id, self.resource_type, self.requirement]
        text = json.dumps([*what, self.units, self.amounts.items])
        return hashlib.sha256(text.encode()).hexdigest()


class RefusalCounts:
    """Counts refused requests until they are written, in bounded memory. Not for several threads at a time.

    Of the same request within an hour the longest is kept.
    """

    def __init__(self) -> None:
        self._counts: dict[str, tuple[RefusedDemand, int]] = {}
        self._of_project: Counter[str] = Counter()

    def add(self, refused: RefusedDemand, times: int = 1) -> None:
        """Count a request."""
        for kept in self._list_forms(refused):
            known = self._counts.get(kept.fingerprint)
            if known is not None or self._has_room(kept):
                break
        if known is None:
            self._of_project[kept.project_id] += 1
            known = kept, 0
        longest = known[0] if known[0].seconds >= kept.seconds else kept
        self._counts[kept.fingerprint] = longest, known[1] + times

    def _list_forms(self, refused: RefusedDemand) -> tuple[RefusedDemand, ...]:
        """Return a refusal, and what is kept of it where there is no room for that."""
        number = RefusedDemand(refused.hour, refused.code, refused.project_id, refused.resource_type)
        return refused, number, RefusedDemand(refused.hour, refused.code)

    def _has_room(self, refused: RefusedDemand) -> bool:
        if not refused.project_id:
            return True
        few = not refused.is_known or self._of_project[refused.project_id] < MOST_OF_PROJECT
        return few and len(self._counts) < MOST

    def take(self) -> Sequence[tuple[RefusedDemand, int]]:
        """Return what was counted since the last time, and how often."""
        found = list(self._counts.values())
        self._counts.clear()
        self._of_project.clear()
        return found


@dataclass(frozen=True, slots=True)
class LeaseMoment:
    """What the journal says of a lease at a moment: its state from then on."""

    lease_id: str
    project_id: str
    at: datetime
    status: str
    resource_types: tuple[str, ...] = ()


_WAITING, _CREATING, _TIMED_OUT = "WAITING", "CREATING", "TIMED_OUT"
_GRANTED = frozenset({"PENDING", "STARTING", "ACTIVE"})


@dataclass(frozen=True, slots=True)
class DemandSums:
    """The measures of a row.

    ``refused`` requests, of which ``refused_distinct`` are different ones, with the seconds times units and times
    amounts of those only. Leases ``waited`` so many seconds on the waiting list; ``granted`` and ``timed_out`` are
    numbers of those that left it.
    """

    refused: int = 0
    refused_distinct: int = 0
    refused_seconds: int = 0
    refused_amounts: Mapping[str, int] = field(default_factory=dict)
    waited: int = 0
    granted: int = 0
    timed_out: int = 0

    def __add__(self, other: DemandSums) -> DemandSums:
        amounts = Counter(dict(self.refused_amounts))
        amounts.update(other.refused_amounts)
        return DemandSums(
            self.refused + other.refused,
            self.refused_distinct + other.refused_distinct,
            self.refused_seconds + other.refused_seconds,
            dict(sorted(amounts.items())),
            self.waited + other.waited,
            self.granted + other.granted,
            self.timed_out + other.timed_out,
        )


@dataclass(frozen=True, slots=True)
class DemandKey:
    """What demand is told apart by; ``code`` and ``requirement`` are empty of what is not refused."""

    project_id: str = ""
    resource_type: str = ""
    code: str = ""
    requirement: str = ""


@dataclass(frozen=True, slots=True)
class DemandDay:
    """The refused requests of a local day."""

    day: date
    key: DemandKey
    sums: DemandSums


def measure_waits(
    moments: Iterable[LeaseMoment], parts: Sequence[Window]
) -> Mapping[tuple[int, DemandKey], DemandSums]:
    """Return how long leases waited in each part of a period, and how many left the list in it, by part and key.

    ``moments`` are those of each lease in their order; a lease that still waits does so to the end of the period. One
    of several types counts for each.
    """
    of_lease: dict[str, list[LeaseMoment]] = defaultdict(list)
    for moment in moments:
        of_lease[moment.lease_id].append(moment)
    found: dict[tuple[int, DemandKey], DemandSums] = defaultdict(DemandSums)
    for of_one in of_lease.values():
        for place, moment in enumerate(of_one):
            if moment.status != _WAITING:
                continue
            later = of_one[place + 1 :]
            end = to_second(later[0].at) if later else parts[-1].end
            # What is made for it may fail: then it waits again, and was granted nothing.
            became = next((one.status for one in later if one.status != _CREATING), "")
            for number, sums in _split_wait(to_second(moment.at), end, became, parts):
                for resource_type in moment.resource_types:
                    found[number, DemandKey(moment.project_id, resource_type)] += sums
    return found


def _split_wait(
    start: datetime, end: datetime, became: str, parts: Sequence[Window]
) -> Iterable[tuple[int, DemandSums]]:
    for number, part in enumerate(parts):
        waited = min(end, part.end) - max(start, part.start)
        left = part.contains(end) and bool(became)
        sums = DemandSums(
            waited=max(0, int(waited.total_seconds())),
            granted=int(left and became in _GRANTED),
            timed_out=int(left and became == _TIMED_OUT),
        )
        if sums.waited or sums.granted or sums.timed_out:
            yield number, sums


class DemandGroup(StrEnum):
    """What rows of a report of demand can be told apart by."""

    PROJECT = "project"
    RESOURCE_TYPE = "resource_type"
    CODE = "code"
    REQUIREMENT = "requirement"


@dataclass(frozen=True, slots=True)
class DemandQuestion:
    """What a report of demand is to have; ``project_id``: of this project only."""

    start: DayOrMoment | None = None
    end: DayOrMoment | None = None
    group_by: tuple[DemandGroup, ...] = ()
    step: ReportStep = ReportStep.ALL
    project_id: str | None = None


@dataclass(frozen=True, slots=True)
class DemandRow:
    """A row of a report of demand: the part of the period, the values of its groups, in their order, and the sums."""

    window: Window
    groups: tuple[str, ...]
    sums: DemandSums


@dataclass(frozen=True, slots=True)
class DemandReport:
    """A report of demand over whole local days, of what was so until ``computed_through``."""

    window: Window
    time_zone: str
    step: ReportStep
    computed_through: datetime
    group_by: tuple[DemandGroup, ...] = ()
    rows: tuple[DemandRow, ...] = ()


def sum_demand(
    sums: Iterable[tuple[int, DemandKey, DemandSums]], parts: Sequence[Window], group_by: Sequence[DemandGroup]
) -> tuple[DemandRow, ...]:
    """Return the rows of a report, by part and by group. InvalidInput if there are too many."""
    found: dict[tuple[int, tuple[str, ...]], DemandSums] = defaultdict(DemandSums)
    for number, key, more in sums:
        found[number, tuple(_value_of(key, group) for group in group_by)] += more
    if len(found) > MOST_ROWS:
        raise too_many_rows()
    return tuple(DemandRow(parts[number], groups, found[number, groups]) for number, groups in sorted(found))


def _value_of(key: DemandKey, group: DemandGroup) -> str:
    return key.project_id if group is DemandGroup.PROJECT else str(getattr(key, str(group)))


def shorten_requirement(text: str) -> str:
    """Return what is kept of a requirement: it, or nothing if it is too long."""
    return text if len(text) <= LONGEST_REQUIREMENT else ""


def begin_of_hour(instant: datetime, zone: ZoneInfo) -> datetime:
    """Return the begin of the local hour of an instant, in UTC: no hour lies on two local days."""
    return instant.astimezone(zone).replace(minute=0, second=0, microsecond=0).astimezone(UTC)
