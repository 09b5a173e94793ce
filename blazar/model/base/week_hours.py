# SPDX-License-Identifier: Apache-2.0
"""Hours of the local day on some days of the week. Pure, in whole seconds of the wall clock."""

from __future__ import annotations

from blazar.model.base.values import dataclass

DAY = 86400
WEEK = 7 * DAY
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


@dataclass(frozen=True, slots=True)
class WeekHours:
    """From one second of the local day to another, on days of the week, of which Monday is 0.

    An ``end`` that is not after the ``start`` is on the next day.
    """

    days: frozenset[int]
    start: int
    end: int

    @property
    def length(self) -> int:
        """Return its seconds on a day on which no clock changes."""
        return (self.end - self.start) % DAY or DAY

    def holds_at(self, second: int) -> bool:
        """Return whether it holds at a second of the week."""
        return any((second - day * DAY - self.start) % WEEK < self.length for day in self.days)
