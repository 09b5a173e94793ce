# SPDX-License-Identifier: Apache-2.0
"""The periods of a budget: calendar months and weeks, or rolling periods of days. All in UTC."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from blazar.model.clock import END_OF_TIME, later
from blazar.model.errors import InvalidInput
from blazar.model.spending import UsageCurve, rolling, second
from blazar.model.window import Window

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
LONGEST = 3660
"""Maximum days of a rolling period."""


class Period(Protocol):
    """A division of time into periods."""

    @property
    def words(self) -> str:
        """Return what people call one of them."""

    def reach(self, window: Window) -> Window:
        """Return the time of all periods that touch a window."""

    def within(self, total: UsageCurve, growth: UsageCurve, window: Window) -> Iterator[Window]:
        """Yield the periods that overlap the window and in which usage grows, as far as they can be the worst."""


@dataclass(frozen=True, slots=True)
class Calendar:
    """Months from the first day at midnight, or weeks from Monday at midnight."""

    months: bool = True

    @property
    def words(self) -> str:
        """Return what people call one of them."""
        return "a month" if self.months else "a week"

    def reach(self, window: Window) -> Window:
        """Return the time of all periods that touch a window."""
        return Window(self._begin(window.start), self._next(self._begin(window.end - SECOND)))

    def within(self, total: UsageCurve, growth: UsageCurve, window: Window) -> Iterator[Window]:
        """Yield periods in which usage grows, one of which is the fullest.

        Where no use begins or ends for longer, each period equals the next one of its length; of two months one has 31
        days.
        """
        reach = self.reach(window)
        first, last = second(reach.start), second(reach.end)
        starts: set[datetime] = set()
        for edge in {first, *total.instants, *growth.instants}:
            if first <= edge < last:
                start = self._begin(datetime.fromtimestamp(edge, UTC))
                starts |= {start, self._next(start), self._next(self._next(start))}
        for start in sorted(start for start in starts if start < window.end):
            period = Window(start, self._next(start))
            if growth.between(second(period.start), second(period.end)) > 0:
                yield period

    def _begin(self, instant: datetime) -> datetime:
        day = instant.replace(hour=0, minute=0, second=0)
        return day.replace(day=1) if self.months else day - day.weekday() * DAY

    def _next(self, start: datetime) -> datetime:
        following = later(start, 32 * DAY if self.months else 7 * DAY)
        return following.replace(day=1) if self.months and following != END_OF_TIME else following


@dataclass(frozen=True, slots=True)
class Rolling:
    """Rolling periods of ``days``, beginning at any time."""

    days: int

    @property
    def words(self) -> str:
        """Return what people call one of them."""
        return f"any {self.days} days" if self.days > 1 else "any 24 hours"

    def reach(self, window: Window) -> Window:
        """Return the time of all periods that touch a window."""
        return Window(window.start - self.days * DAY, later(window.end, self.days * DAY))

    def within(self, total: UsageCurve, growth: UsageCurve, window: Window) -> Iterator[Window]:
        """Yield spans in which usage grows, one of which is the fullest."""
        for start in rolling(total, growth, window, self.days * 86400):
            begin = datetime.fromtimestamp(start, UTC)
            yield Window(begin, later(begin, self.days * DAY))


def parse(text: str) -> Period:
    """Return the period that an operator configures: ``month``, ``week`` or a number of days. InvalidInput."""
    match text.strip().lower():
        case "month":
            return Calendar()
        case "week":
            return Calendar(months=False)
        case digits if digits.isascii() and digits.isdigit() and 1 <= int(digits[:9]) <= LONGEST:
            return Rolling(int(digits))
    raise InvalidInput(
        f"[enforcement] resource_hours_period cannot be {text[:40]!r}; give month, week, or a number of days from 1 "
        f"to {LONGEST}"
    )
