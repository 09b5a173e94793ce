# SPDX-License-Identifier: Apache-2.0
"""Recurrence rules (RFC 5545, 3.3.10): on which dates a series has an occurrence.

A subset: days, weeks, months and years, with the parts of ``Rule``. ``rule_text`` reads and writes rules. All is done
on the dates of the local calendar; the time of day is always that of the first start. The walk looks at each day of a
range at most once, so that no rule costs more than the days of the range, whether it has occurrences in it or not.
"""

from __future__ import annotations

from calendar import isleap, monthrange
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from enum import StrEnum

from blazar.model.base.values import dataclass

MOST_INTERVAL = 366
"""The largest interval: so that the period after the last date of all is still one of the calendar."""

_DAY = timedelta(days=1)
_DAYS_OF_WEEK = 7
_MONTHS_OF_YEAR = 12


class Frequency(StrEnum):
    """The period of a rule; its value is the word of the RFC."""

    DAILY = "DAILY"
    WEEKLY = "WEEKLY"
    MONTHLY = "MONTHLY"
    YEARLY = "YEARLY"


@dataclass(frozen=True, slots=True)
class Weekday:
    """A weekday, Monday is 0: the first (1), the last (-1) … of its month or year, or each one without ``ordinal``."""

    day: int
    ordinal: int | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A recurrence rule: every ``interval`` periods, the days that all of the given parts allow.

    * ``weekdays`` (BYDAY), ``month_days`` (BYMONTHDAY, negative from the end of the month), ``months`` (BYMONTH): empty
      if not given. What they leave open is taken from the first start, as the RFC says.
    * ``positions`` (BYSETPOS): only these of the days of a period, negative from its end.
    * ``week_start`` (WKST): the weekday on which the weeks begin that ``interval`` counts.
    * ``count``: how many occurrences it has. ``until``: the last start that it can have; aware in UTC, or naive as a
      local time. Neither: it has no end.
    """

    frequency: Frequency
    interval: int = 1
    count: int | None = None
    until: datetime | None = None
    weekdays: tuple[Weekday, ...] = ()
    month_days: tuple[int, ...] = ()
    months: tuple[int, ...] = ()
    positions: tuple[int, ...] = ()
    week_start: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.interval <= MOST_INTERVAL:
            raise ValueError(f"an interval of {self.interval} is not from 1 to {MOST_INTERVAL}")
        if self.count is not None and self.count < 1:
            raise ValueError("a rule has at least one occurrence")
        if self.count is not None and self.until is not None:
            raise ValueError("a rule has a count or an until, not both")

    @property
    def has_end(self) -> bool:
        """Return whether the rule says when it ends."""
        return self.count is not None or self.until is not None


class Walk:
    """The dates of a rule from the date of a first start on; its ``count`` and ``until`` are left to the caller.

    ``steps`` counts the days that were looked at: at most those of all ranges asked for, and for a rule with positions
    those of the periods at both ends of them, which are at most a year each.
    """

    def __init__(self, rule: Rule, start: date) -> None:
        self.steps = 0
        self._rule = rule
        self._start = start
        self._week = start - timedelta(days=(start.weekday() - rule.week_start) % _DAYS_OF_WEEK)
        self._in_months = rule.frequency is Frequency.MONTHLY or bool(rule.months)
        self._each = frozenset(weekday.day for weekday in rule.weekdays if weekday.ordinal is None)
        self._ordinal = frozenset((w.day, w.ordinal) for w in rule.weekdays if w.ordinal is not None)
        self._month_days = frozenset(rule.month_days)
        self._months = frozenset(rule.months)
        self._known: dict[int, Sequence[date]] = {}
        if not rule.weekdays and not rule.month_days:
            self._fill_in_from_start()

    def dates(self, first: date, last: date) -> Iterator[date]:
        """Yield the dates of the rule from ``first`` to ``last``, in order; none is before the first start."""
        first = max(first, self._start)
        if first > last:
            return
        interval = self._rule.interval
        number = self._period_number(first)
        number += -number % interval
        while (period := self._period_span(number))[0] <= last:
            for day in self._dates_in_period(number, *period, first, last):
                if first <= day <= last:
                    yield day
            number += interval

    def _fill_in_from_start(self) -> None:
        """Set what the rule leaves open to the weekday, the day, or the day and the month of the first start."""
        match self._rule.frequency:
            case Frequency.WEEKLY:
                self._each = frozenset({self._start.weekday()})
            case Frequency.MONTHLY:
                self._month_days = frozenset({self._start.day})
            case Frequency.YEARLY:
                self._month_days = frozenset({self._start.day})
                self._months = self._months or frozenset({self._start.month})

    def _period_number(self, day: date) -> int:
        """Return the number of the period of a day; that of the first start has the number 0."""
        match self._rule.frequency:
            case Frequency.DAILY:
                return (day - self._start).days
            case Frequency.WEEKLY:
                return (day - self._week).days // _DAYS_OF_WEEK
            case Frequency.MONTHLY:
                return _MONTHS_OF_YEAR * (day.year - self._start.year) + day.month - self._start.month
        return day.year - self._start.year

    def _period_span(self, number: int) -> tuple[date, date]:
        """Return the first and the last day of a period."""
        match self._rule.frequency:
            case Frequency.DAILY:
                day = self._start + number * _DAY
                return day, day
            case Frequency.WEEKLY:
                day = self._week + number * _DAYS_OF_WEEK * _DAY
                return day, day + (_DAYS_OF_WEEK - 1) * _DAY
            case Frequency.MONTHLY:
                years, month = divmod(self._start.month - 1 + number, _MONTHS_OF_YEAR)
                year = self._start.year + years
                return date(year, month + 1, 1), date(year, month + 1, _last_day(year, month + 1))
        year = self._start.year + number
        return date(year, 1, 1), date(year, _MONTHS_OF_YEAR, 31)

    def _dates_in_period(self, number: int, begin: date, end: date, first: date, last: date) -> Sequence[date]:
        """Return the dates of a period, as far as they are asked for: positions count those of the whole period."""
        if not self._rule.positions:
            return self._fitting_days(max(begin, first), min(end, last))
        if number not in self._known:
            found = self._fitting_days(begin, end)
            places = {place - 1 if place > 0 else len(found) + place for place in self._rule.positions}
            self._known[number] = [found[place] for place in sorted(places) if 0 <= place < len(found)]
        return self._known[number]

    def _fitting_days(self, first: date, last: date) -> list[date]:
        days = [first + number * _DAY for number in range((last - first).days + 1)]
        self.steps += len(days)
        return [day for day in days if self._fits(day)]

    def _fits(self, day: date) -> bool:
        if self._months and day.month not in self._months:
            return False
        if self._month_days and self._month_days.isdisjoint((day.day, day.day - _last_day(day.year, day.month) - 1)):
            return False
        if not self._each and not self._ordinal:
            return True
        return day.weekday() in self._each or self._is_ordinal(day)

    def _is_ordinal(self, day: date) -> bool:
        """Return whether a day is one of the weekdays that are counted within their month or year."""
        if not self._ordinal:
            return False
        if self._in_months:
            place, last = day.day, _last_day(day.year, day.month)
        else:
            place, last = day.timetuple().tm_yday, 366 if isleap(day.year) else 365
        weekday = day.weekday()
        from_start = (place - 1) // _DAYS_OF_WEEK + 1
        from_end = -((last - place) // _DAYS_OF_WEEK + 1)
        return (weekday, from_start) in self._ordinal or (weekday, from_end) in self._ordinal


def _last_day(year: int, month: int) -> int:
    return monthrange(year, month)[1]
