# SPDX-License-Identifier: Apache-2.0
"""Factors by the local time of day and week, and how much of a span of time each of them has. Pure, in whole seconds.

Instants are seconds since the epoch. What counts is the wall clock of each second: where it goes back, a time of day
comes twice and so does its factor, and where it goes forward, what would begin in the gap begins at its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from math import prod
from zoneinfo import ZoneInfo

from blazar.model.base.week_hours import DAY, WEEK, WeekHours

_MONDAY = 3 * DAY
"""From the begin of a week to that of the epoch, which was a Thursday."""
_LAST = int(datetime(9999, 12, 30, tzinfo=UTC).timestamp())
"""Later ones are beyond the end of time by the clocks of some zone."""


@dataclass(frozen=True, slots=True)
class HoursFactor(WeekHours):
    """A factor for some hours of the local week."""

    factor: Fraction = field(hash=False)
    """The hash of a fraction takes long."""


@dataclass(frozen=True, slots=True)
class FactorTime:
    """The seconds of a span that have a factor, and the instants between which all of them are."""

    factor: Fraction
    seconds: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Week:
    """A week in parts: where each begins and ends, and the number of its factor."""

    factors: tuple[Fraction, ...]
    parts: tuple[tuple[int, int, int], ...]


def split_by_hours(hours: tuple[HoursFactor, ...], zone: str, start: int, end: int) -> Iterator[FactorTime]:
    """Yield the factors of a span with their time, those of several that hold at once multiplied."""
    if not hours:
        yield FactorTime(Fraction(1), end - start, start, end)
        return
    week = _plan_week(hours)
    for begin, over, offset in _list_stretches(zone, start, end):
        shift = offset + _MONDAY
        for time in _split_local(week, begin + shift, over + shift):
            yield FactorTime(time.factor, time.seconds, time.start - shift, time.end - shift)


def _split_local(week: _Week, start: int, end: int) -> Iterator[FactorTime]:
    """Yield the factors of a span of local time without a change of clocks; whole weeks are multiplied."""
    first, last = start // WEEK * WEEK, (end - 1) // WEEK * WEEK
    weeks = (last - first) // WEEK + 1
    found: dict[int, tuple[int, int, int]] = {}
    for begin, over, number in week.parts:
        if weeks == 1 and (first + over <= start or end <= first + begin):
            continue
        length = over - begin
        # What lies before the span of the part in the first week, and after it of that in the last one.
        before = min(max(start - first - begin, 0), length)
        after = min(max(last + over - end, 0), length)
        if seconds := weeks * length - before - after:
            begins = first + begin + (before if before < length else WEEK)
            ends = last + over - (after if after < length else WEEK)
            known, earliest, latest = found.get(number, (0, begins, ends))
            found[number] = known + seconds, min(earliest, begins), max(latest, ends)
    for number, times in found.items():
        yield FactorTime(week.factors[number], *times)


@lru_cache(maxsize=256)
def _plan_week(hours: tuple[HoursFactor, ...]) -> _Week:
    starts = {(day * DAY + band.start) % WEEK for band in hours for day in band.days}
    ends = {(day * DAY + band.start + band.length) % WEEK for band in hours for day in band.days}
    edges = [*sorted({0, *starts, *ends}), WEEK]
    factors = [prod((band.factor for band in hours if band.holds_at(edge)), start=Fraction(1)) for edge in edges[:-1]]
    distinct = tuple(dict.fromkeys(factors))
    return _Week(distinct, tuple(zip(edges, edges[1:], map(distinct.index, factors), strict=False)))


def _list_stretches(zone: str, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the parts of a span in which clocks have one offset from UTC, with that offset."""
    years = range(_year_of(start), _year_of(end - 1) + 1)
    changes = [change for year in years for change in _list_offsets(zone, year)]
    ends = [*(instant for instant, _ in changes[1:]), end]
    for (instant, offset), over in zip(changes, ends, strict=True):
        if (begin := max(start, instant)) < (over := min(end, over)):
            yield begin, over, offset


@lru_cache(maxsize=1024)
def _list_offsets(zone: str, year: int) -> tuple[tuple[int, int], ...]:
    """Return the offset at the begin of a year of UTC, and each change in it, with their instants.

    Each day is looked at: no zone has changed its offset twice within a week since 1970.
    """
    local = ZoneInfo(zone)
    before = _begin_of(year)
    found = [(before, _offset_at(before, local))]
    for day in range(before + DAY, _begin_of(year + 1) + DAY, DAY):
        offset = _offset_at(day, local)
        if offset != found[-1][1]:
            found.append((_find_change(day - DAY, day, local), offset))
    return tuple(change for change in found if change[0] < _begin_of(year + 1))


def _find_change(before: int, after: int, zone: ZoneInfo) -> int:
    """Return the first second with the offset that holds ``after``, and not ``before``."""
    offset = _offset_at(after, zone)
    while after - before > 1:
        middle = (before + after) // 2
        if _offset_at(middle, zone) == offset:
            after = middle
        else:
            before = middle
    return after


def _offset_at(instant: int, zone: ZoneInfo) -> int:
    offset = datetime.fromtimestamp(min(instant, _LAST), zone).utcoffset()
    return 0 if offset is None else offset.days * DAY + offset.seconds


def _year_of(instant: int) -> int:
    return datetime.fromtimestamp(instant, UTC).year


def _begin_of(year: int) -> int:
    return _LAST + 2 * DAY if year > 9999 else int(datetime(year, 1, 1, tzinfo=UTC).timestamp())
