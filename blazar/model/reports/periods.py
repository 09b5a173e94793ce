# SPDX-License-Identifier: Apache-2.0
"""The periods of reports: days, weeks and months of the site's time zone, and what is asked for.

A day begins at local midnight: where clocks change it has 23 or 25 hours. A week begins on Monday.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from blazar.model.base.moments import start_of_day
from blazar.model.base.values import dataclass
from blazar.model.base.window import Window

DAY = timedelta(days=1)


class ReportStep(StrEnum):
    """The length of the parts of a report: ``ALL`` is one part, the whole period."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class ReportSettings:
    """Settings of reports: the time zone by which they have days, weeks and months.

    ``properties`` are those of resources by which days are kept, so that forecasts can tell them apart.
    """

    time_zone: str = "UTC"
    properties: tuple[str, ...] = ()

    @property
    def zone(self) -> ZoneInfo:
        """The time zone."""
        return ZoneInfo(self.time_zone)


def day_at(instant: datetime, zone: ZoneInfo) -> date:
    """Return the local day to which an instant belongs."""
    day = instant.astimezone(zone).date()
    # Where midnight comes twice, the hour before the second one belongs to the day that began with the first.
    return day + DAY if start_of_day(day + DAY, zone) <= instant else day


def window_of_day(day: date, zone: ZoneInfo) -> Window | None:
    """Return the window of a local day; None of a day that clocks have skipped."""
    start, end = start_of_day(day, zone), start_of_day(day + DAY, zone)
    return Window(start, end) if start < end else None


def list_days(window: Window, zone: ZoneInfo) -> Iterator[date]:
    """Yield the local days that a window touches, in their order."""
    day, last = day_at(window.start, zone), day_at(window.end - timedelta(seconds=1), zone)
    while day <= last:
        yield day
        day += DAY


def split_window(window: Window, step: ReportStep, zone: ZoneInfo) -> tuple[Window, ...]:
    """Return the parts of a window by local days, weeks or months, the first and the last one cut at its edges."""
    if step is ReportStep.ALL:
        return (window,)
    borders = [window.start]
    first = _begin_of_step(day_at(window.start, zone), step)
    while (border := start_of_day(first := _next_of_step(first, step), zone)) < window.end:
        if border > borders[-1]:
            borders.append(border)
    return tuple(Window(*pair) for pair in zip(borders, [*borders[1:], window.end], strict=True))


def start_of_month(instant: datetime, zone: ZoneInfo) -> datetime:
    """Return the instant at which the local month of an instant begins."""
    return start_of_day(day_at(instant, zone).replace(day=1), zone)


def _begin_of_step(day: date, step: ReportStep) -> date:
    if step is ReportStep.WEEK:
        return day - day.weekday() * DAY
    return day.replace(day=1) if step is ReportStep.MONTH else day


def _next_of_step(day: date, step: ReportStep) -> date:
    if step is ReportStep.MONTH:
        return (day + 31 * DAY).replace(day=1)
    return day + (7 * DAY if step is ReportStep.WEEK else DAY)
