# SPDX-License-Identifier: Apache-2.0
"""When a site is open, by the wall clock of a time zone, as spans of UTC. Pure, in whole seconds since the epoch.

Each local day's hours are converted at their two ends, so that a day of 23 or 25 hours needs no case of its own. A time
that the clocks skip counts with the offset before the gap; of two equal times hours begin at the first, and end at the
second, as the hour between belongs to them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from blazar.model.base.values import dataclass
from blazar.model.base.week_hours import DAY, WeekHours

Span = tuple[int, int]
"""From one instant to another one, which is not in it."""

_DAY = timedelta(days=1)
_FIRST, _LAST = date(1970, 1, 2), date(9998, 12, 30)


@dataclass(frozen=True, slots=True)
class OpenTime:
    """Hours of the week in a zone of the IANA database, without some days."""

    zone: str
    hours: tuple[WeekHours, ...]
    closed_on: frozenset[date] = frozenset()

    def list_spans(self, start: int, end: int) -> list[Span]:
        """Return the longest open spans that share an instant with ``[start, end]``, earliest first."""
        # What begins in a year by the clocks of a zone may begin, and end, in the one after it by those of UTC.
        first, last = (datetime.fromtimestamp(instant, UTC) for instant in (start - 3 * DAY, end + 3 * DAY))
        near: list[Span] = []
        for year in range(first.year, last.year + 1):
            spans = _list_year(self, year)
            near += spans[bisect_left(spans, start, key=_end_of) : bisect_right(spans, end, key=_start_of)]
        return list(_merge(near))


def _start_of(span: Span) -> int:
    return span[0]


def _end_of(span: Span) -> int:
    return span[1]


@lru_cache(maxsize=512)
def _list_year(of: OpenTime, year: int) -> tuple[Span, ...]:
    """Return the open spans that begin on the local days of a year."""
    day, over = max(date(year, 1, 1), _FIRST), min(date(year, 12, 31), _LAST)
    opened, closed = [], []
    while day <= over:
        opened += [_convert(of.zone, day, hours) for hours in of.hours if day.weekday() in hours.days]
        day += _DAY
    for shut in sorted(of.closed_on):
        # What begins on the day before may last until then.
        if year <= (shut + _DAY).year and shut.year <= year + 1:
            closed.append(_convert(of.zone, shut, WeekHours(frozenset(range(7)), 0, 0)))
    return tuple(_subtract(_merge(sorted(span for span in opened if span[0] < span[1])), closed))


def _convert(zone: str, day: date, hours: WeekHours) -> Span:
    midnight = datetime.combine(day, time())
    return (
        min(_list_instants(zone, midnight + timedelta(seconds=hours.start))),
        max(_list_instants(zone, midnight + timedelta(seconds=hours.start + hours.length))),
    )


def _list_instants(zone: str, local: datetime) -> tuple[int, ...]:
    """Return the instants of a local time: two if it comes twice; one if it is skipped, by the offset before."""
    known = ZoneInfo(zone)
    first, second = (local.replace(tzinfo=known, fold=fold) for fold in (0, 1))
    found = int(first.timestamp()), int(second.timestamp())
    return found if found[0] < found[1] else found[:1]


def _merge(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield sorted spans, of which those that touch or overlap become one."""
    begun: Span | None = None
    for start, end in spans:
        if begun is not None and start <= begun[1]:
            begun = begun[0], max(begun[1], end)
            continue
        if begun is not None:
            yield begun
        begun = start, end
    if begun is not None:
        yield begun


def _subtract(spans: Iterable[Span], closed: list[Span]) -> Iterator[Span]:
    """Yield what is left of spans without others."""
    for start, end in spans:
        for shut, opened in closed:
            if shut < end and start < opened:
                if start < shut:
                    yield start, shut
                start = max(start, opened)
        if start < end:
            yield start, end
