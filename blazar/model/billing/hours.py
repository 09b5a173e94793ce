# SPDX-License-Identifier: Apache-2.0
"""Factors by the local time of day and week, and how much of a span of time each of them has. Pure, in whole seconds.

Instants are seconds since the epoch. What counts is the wall clock of each second: where it goes back, a time of day
comes twice and so does its factor, and where it goes forward, what would begin in the gap begins at its end.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import prod
from zoneinfo import ZoneInfo

from blazar.model.base.values import dataclass, field
from blazar.model.base.week_hours import DAY, WEEK, WeekHours
from blazar.model.billing.charges import WHOLE

_MONDAY = 3 * DAY
"""From the begin of a week to that of the epoch, which was a Thursday."""
_LAST = int(datetime(9999, 12, 30, tzinfo=UTC).timestamp())
"""Later ones are beyond the end of time by the clocks of some zone."""
_ERA = 365 * DAY
"""For how long the offsets of a zone are looked up at once."""


@dataclass(frozen=True, slots=True)
class HoursFactor(WeekHours):
    """A factor for some hours of the local week."""

    factor: Fraction = field(hash=False)
    """The hash of a fraction takes long."""


FactorTime = tuple[Fraction, int, int, int]
"""The seconds of a span that have a factor, and the instants between which all of them are: factor, seconds, both."""


@dataclass(frozen=True, slots=True)
class FactorWeek:
    """The factors of a week, and the parts of it that have one each, in their order.

    Of each part it has the ``edges`` at which it begins, the number of its factor, and by the numbers of all factors:
    how long they hold in the week before it, when they begin after it, and when they ended before it. The last two
    may be in the week after, or before. ``totals`` are how long they hold in all.
    """

    factors: tuple[Fraction, ...]
    edges: tuple[int, ...]
    numbers: tuple[int, ...]
    sums: tuple[tuple[int, ...], ...]
    begins: tuple[tuple[int, ...], ...]
    ends: tuple[tuple[int, ...], ...]
    totals: tuple[int, ...]

    @classmethod
    def of(cls, hours: Sequence[HoursFactor]) -> FactorWeek:
        """Return the week of some factors; those of several that hold at once are multiplied."""
        starts = {(day * DAY + band.start) % WEEK for band in hours for day in band.days}
        overs = {(day * DAY + band.start + band.length) % WEEK for band in hours for day in band.days}
        edges = sorted({0, *starts, *overs})
        parts = [prod((band.factor for band in hours if band.holds_at(edge)), start=WHOLE) for edge in edges]
        factors = tuple(dict.fromkeys(parts))
        numbers = tuple(map(factors.index, parts))
        after = [*edges[1:], WEEK]
        lengths = [
            [over - edge if number == part else 0 for edge, over, part in zip(edges, after, numbers, strict=True)]
            for number in range(len(factors))
        ]
        sums = zip(*([0, *accumulate(some)][:-1] for some in lengths), strict=True)
        begins = [_list_nexts(edges, [n == part for part in numbers]) for n in range(len(factors))]
        ends = [_list_lasts(after, [n == part for part in numbers]) for n in range(len(factors))]
        totals = tuple(map(sum, lengths))
        turned = tuple(zip(*begins, strict=True)), tuple(zip(*ends, strict=True))
        return cls(factors, tuple(edges), numbers, tuple(sums), *turned, totals)

    def split(self, start: int, end: int) -> Sequence[FactorTime]:
        """Return the factors of a span of local time without a change of clocks, from the begin of some week on."""
        found: list[FactorTime] = []
        week, start_at = divmod(start, WEEK)
        last_week, last_at = divmod(end - 1, WEEK)
        first, last = bisect_right(self.edges, start_at) - 1, bisect_right(self.edges, last_at) - 1
        before, until, weeks = self.sums[first], self.sums[last], last_week - week
        for number, factor in enumerate(self.factors):
            seconds = weeks * self.totals[number] + until[number] - before[number]
            begin, over = week * WEEK + self.begins[first][number], last_week * WEEK + self.ends[last][number]
            if self.numbers[first] == number:
                seconds, begin = seconds - start_at + self.edges[first], start
            if self.numbers[last] == number:
                seconds, over = seconds + last_at + 1 - self.edges[last], end
            if seconds:
                found.append((factor, seconds, begin, over))
        return found


def _list_nexts(edges: Sequence[int], holds: Sequence[bool]) -> list[int]:
    """Return for each part when the next one after it begins of those that hold; there is one at least."""
    found: list[int] = []
    following = WEEK + next(edge for edge, one in zip(edges, holds, strict=True) if one)
    for edge, one in zip(reversed(edges), reversed(holds), strict=True):
        found.append(following)
        following = edge if one else following
    return found[::-1]


def _list_lasts(ends: Sequence[int], holds: Sequence[bool]) -> list[int]:
    """Return for each part when the last one before it ended of those that hold; there is one at least."""
    return [WEEK - edge for edge in _list_nexts([WEEK - end for end in reversed(ends)], holds[::-1])[::-1]]


def split_by_hours(week: FactorWeek, zone: str, start: int, end: int) -> Sequence[FactorTime]:
    """Return the factors of a span by the clocks of a zone, with their time."""
    if len(week.factors) == 1:
        return [(week.factors[0], end - start, start, end)]
    found: list[FactorTime] = []
    for begin, over, offset in _list_stretches(zone, start, end):
        shift = offset + _MONDAY
        for factor, seconds, first, last in week.split(begin + shift, over + shift):
            found.append((factor, seconds, first - shift, last - shift))
    return found


def _list_stretches(zone: str, start: int, end: int) -> Sequence[tuple[int, int, int]]:
    """Return the parts of a span in which clocks have one offset from UTC, with that offset."""
    found: list[tuple[int, int, int]] = []
    begin, offset = start, 0
    for era in range(start // _ERA, (end - 1) // _ERA + 1):
        for instant, now in _list_offsets(zone, era):
            if instant >= end:
                break
            if instant > begin and now != offset:
                found.append((begin, instant, offset))
                begin = instant
            offset = now
    found.append((begin, end, offset))
    return found


@lru_cache(maxsize=1024)
def _list_offsets(zone: str, era: int) -> tuple[tuple[int, int], ...]:
    """Return the offset at the begin of an era, and each change in it, with their instants.

    Each day is looked at: no zone has changed its offset twice within a week since 1970.
    """
    local = ZoneInfo(zone)
    before, over = era * _ERA, (era + 1) * _ERA
    found = [(before, _offset_at(before, local))]
    for day in range(before + DAY, over + DAY, DAY):
        offset = _offset_at(day, local)
        if offset != found[-1][1]:
            found.append((_find_change(day - DAY, day, local), offset))
    return tuple(change for change in found if change[0] < over)


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
