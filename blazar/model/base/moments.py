# SPDX-License-Identifier: Apache-2.0
"""Times as clients write them: ``now``, and lengths in which a month or a day depends on the calendar."""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, date, datetime, time, timedelta
from enum import Enum
from zoneinfo import ZoneInfo

from blazar.model.base.values import dataclass

MONTHS_OF_YEAR = 12
_DAYS_OF_MONTH = 365.25 / MONTHS_OF_YEAR


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time, forward or ``backward``, all parts at least 0.

    Years and months are added first, on the calendar of ``zone``, with the day cut to the last of the month; then days,
    on its wall clock: across a change of clocks a day has 23 or 25 hours. Seconds pass as they are.
    """

    years: int = 0
    months: int = 0
    days: int = 0
    seconds: int = 0
    zone: str = "UTC"
    backward: bool = False

    @property
    def longest(self) -> timedelta:
        """Return its length if years and months have their mean number of days; at most that of ``timedelta``."""
        days = self.days + (MONTHS_OF_YEAR * self.years + self.months) * _DAYS_OF_MONTH + self.seconds / 86400
        return timedelta(days=min(days, timedelta.max.days))

    def after(self, instant: datetime) -> datetime:
        """Return the instant, in UTC, that lies this duration after ``instant``; before it, if it goes backward.

        OverflowError or ValueError if ``datetime`` cannot express it.
        """
        sign = -1 if self.backward else 1
        months = sign * (MONTHS_OF_YEAR * self.years + self.months)
        if months or self.days:
            wall = instant.astimezone(ZoneInfo(self.zone)).replace(tzinfo=None, fold=0)
            wall = _months_later(wall, months) + sign * timedelta(days=self.days)
            # In a gap the offset before it counts, and of two equal times the first.
            instant = wall.replace(tzinfo=ZoneInfo(self.zone)).astimezone(UTC)
        return instant + sign * timedelta(seconds=self.seconds)


def _months_later(wall: datetime, months: int) -> datetime:
    """Return a local time months later, or earlier; on the last day of a month that is too short."""
    years, month = divmod(wall.month - 1 + months, MONTHS_OF_YEAR)
    year = wall.year + years
    _, last = monthrange(year, month + 1)
    return wall.replace(year=year, month=month + 1, day=min(wall.day, last))


class Now(Enum):
    """The literal ``now`` of a request: the time of the server's clock."""

    NOW = "now"


NOW = Now.NOW


Moment = datetime | Now


@dataclass(frozen=True, slots=True)
class LocalDay:
    """A day of the site's time zone, which the asker does not know; it stands for the instant at which it begins."""

    year: int
    month: int
    day: int

    @property
    def date(self) -> date:
        """The day as a date."""
        return date(self.year, self.month, self.day)


DayOrMoment = LocalDay | Moment
"""Where a period begins or ends, as it is asked for."""


End = Moment | Duration
"""The end of a lease: a duration counts from its start."""


BeforeEnd = datetime | Duration | None
"""A time before the end of a lease: a duration counts from its start or, backward, before its end."""


def start_of_day(day: date, zone: ZoneInfo) -> datetime:
    """Return the instant at which a local day begins, in UTC.

    Where midnight comes twice it is the first one, and where clocks skip it the instant at which they do.
    """
    return datetime.combine(day, time(0), zone).astimezone(UTC)


def instant_of(asked: DayOrMoment, zone: ZoneInfo, now: datetime) -> datetime:
    """Return the instant that is asked for; ``now`` is to the second."""
    if asked is NOW:
        return now
    return start_of_day(asked.date, zone) if isinstance(asked, LocalDay) else asked
