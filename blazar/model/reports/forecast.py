# SPDX-License-Identifier: Apache-2.0
"""How much of the resources will be in use: what is promised, and what was still booked before such days. Pure.

Of a day that is some days ahead, the days of the same weekday in the last weeks tell how much was still booked after
the moment at which they were as far ahead: the *late bookings*. What is expected is what is promised by now, with their
lower quartile, median and upper quartile. Who was refused is no part of it.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta

from blazar.model.base.values import dataclass, field
from blazar.model.reports.capacity import CapacityCell, CapacityDay, CapacityGroup
from blazar.model.reports.states import ResourceState

DISTANCES = (1, 3, 7, 14, 28)
"""How many days before a day it is recorded how much of it is promised."""
WEEKS = 8
"""How many weeks back days are looked at."""
LEAST_WEEKS = 4
"""With fewer of these days known nothing is expected: a quartile of three says nothing."""
JUDGED_DAYS = 28
"""How many past days tell how far off forecasts were."""
JUDGED_DISTANCE = 7
"""How many days before these days that forecast would have been made."""


@dataclass(frozen=True, slots=True)
class PastDay:
    """A day that is over, of a group of resources: seconds registered and promised; what was promised days before."""

    day: date
    registered: int
    promised: int
    promised_before: Mapping[int, int] = field(default_factory=dict)

    def find_late_bookings(self, ahead: int) -> int | None:
        """Return what was booked of it in its last so many days, less what was given back; None if not known.

        Between the distances that are recorded it is as much for each day; further ahead than the last one it is as of
        that one, which is the least that it was.
        """
        known = {0: self.promised, **self.promised_before}
        wanted = min(ahead, DISTANCES[-1])
        below = max((near for near in known if near <= wanted), default=0)
        above = min((far for far in known if far >= wanted), default=None)
        if above is None or not self._are_neighbours(below, above):
            return None
        if above == below:
            return self.promised - known[below]
        part = (known[above] - known[below]) * (wanted - below)
        return self.promised - known[below] - round(part / (above - below))

    def _are_neighbours(self, below: int, above: int) -> bool:
        """Return whether no distance lies between these that ought to be recorded."""
        return not any(below < distance < above for distance in DISTANCES)


@dataclass(frozen=True, slots=True)
class Expected:
    """Seconds that are expected to be in use: in a quarter of such weeks less than ``lower``, more than ``upper``."""

    lower: int
    median: int
    upper: int


@dataclass(frozen=True, slots=True)
class DayForecast:
    """What is promised and expected of a day, in seconds of ``registered``; ``weeks``: how many such days are known.

    ``expected`` is None if they are too few.
    """

    day: date
    registered: int
    promised: int
    expected: Expected | None
    weeks: int


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How far off forecasts of past days were: the mean of the differences as a part of the time registered.

    None if there is no such day.
    """

    days: int
    mean_error: float | None


@dataclass(frozen=True, slots=True)
class ForecastQuestion:
    """What a forecast is to have: so many ``days`` from today on; the rest as in ``CapacityReportQuestion``."""

    project_id: str
    days: int = 28
    group_by: tuple[CapacityGroup, ...] = ()
    prop: str | None = None
    operator: bool = False


@dataclass(frozen=True, slots=True)
class ForecastRow:
    """A row of a forecast: the values of its groups, in their order, and what is expected of a day."""

    groups: tuple[str | None, ...]
    day: DayForecast


@dataclass(frozen=True, slots=True)
class UnmetDemand:
    """What was refused of a resource type lately: requests, different ones, and of these seconds times units."""

    resource_type: str
    refused: int
    refused_distinct: int
    refused_seconds: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """A forecast, as of an instant. ``unmet`` is what was refused in the last ``JUDGED_DAYS``, which it leaves out."""

    as_of: datetime
    time_zone: str
    group_by: tuple[CapacityGroup, ...]
    rows: tuple[ForecastRow, ...]
    accuracy: Accuracy
    unmet: tuple[UnmetDemand, ...] = ()


def forecast_day(
    day: date, *, today: date, registered: int, promised: int, past: Mapping[date, PastDay]
) -> DayForecast:
    """Return what is expected of a day, today or later, by the days that are over."""
    ahead = max((day - today).days, 1)
    found: list[int] = []
    first = day
    while first >= today:
        first -= timedelta(weeks=1)
    for week in range(WEEKS):
        known = past.get(first - timedelta(weeks=week))
        late = None if known is None else known.find_late_bookings(ahead)
        if late is not None:
            found.append(late)
    if len(found) < LEAST_WEEKS:
        return DayForecast(day, registered, promised, None, len(found))
    quartiles = (_bound(promised + round(late), registered) for late in statistics.quantiles(found, method="inclusive"))
    return DayForecast(day, registered, promised, Expected(*quartiles), len(found))


def judge_forecasts(past: Mapping[date, PastDay], *, today: date) -> Accuracy:
    """Return how far off the forecasts of the last days would have been, made a week before from what was known then.

    A day counts if it was known then what is promised of it, and enough days were over.
    """
    differences: list[float] = []
    for back in range(1, JUDGED_DAYS + 1):
        day = past.get(today - timedelta(days=back))
        if day is None or not day.registered or JUDGED_DISTANCE not in day.promised_before:
            continue
        then = day.day - timedelta(days=JUDGED_DISTANCE)
        known = {one: past[one] for one in past if one < then}
        promised = day.promised_before[JUDGED_DISTANCE]
        told = forecast_day(day.day, today=then, registered=day.registered, promised=promised, past=known)
        if told.expected is not None:
            differences.append(abs(told.expected.median - day.promised) / day.registered)
    return Accuracy(len(differences), statistics.fmean(differences) if differences else None)


def list_past_days(
    days: Iterable[CapacityDay], is_wanted: Callable[[CapacityCell], bool] = lambda _: True
) -> Mapping[date, PastDay]:
    """Return the days that are over, with the sums of the cells that are wanted.

    What was promised so many days before is known of all cells if it is of one, whether that is wanted or not: of a
    cell that was not there yet nothing was promised.
    """
    sums: dict[date, list[CapacityDay]] = defaultdict(list)
    known: dict[date, set[int]] = defaultdict(set)
    over: set[date] = set()
    for day in days:
        known[day.day].update(day.promised_before)
        if day.seconds is not None:
            over.add(day.day)
        if is_wanted(day.cell):
            sums[day.day].append(day)
    return {
        one: PastDay(
            one,
            sum(sum((day.seconds or {}).values()) for day in sums[one]),
            sum((day.seconds or {}).get(ResourceState.PROMISED, 0) for day in sums[one]),
            {ahead: sum(day.promised_before.get(ahead, 0) for day in sums[one]) for ahead in sorted(known[one])},
        )
        for one in sorted(over)
    }


def _bound(seconds: int, registered: int) -> int:
    return max(0, min(seconds, registered))
