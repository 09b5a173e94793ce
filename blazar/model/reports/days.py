# SPDX-License-Identifier: Apache-2.0
"""Days of usage that are kept on record: what leases had in each, and which of them a report reads. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import Window
from blazar.model.energy.book import EnergyBook
from blazar.model.journal.entries import ObjectType, Verb
from blazar.model.reports.periods import DAY, day_at, list_days, window_of_day
from blazar.model.reports.sums import DrawnEnergy, ResourceUse, UsageFacts, measure_energy, measure_uses
from blazar.model.reports.usage import Measure

SETTLED = timedelta(hours=1)
"""How long after its end a day is closed: what was done in it is written by then."""


@dataclass(frozen=True, slots=True)
class ClosedDay:
    """A day on record, by the days of a zone; it has what the journal tells until ``computed_through``, a position."""

    day: date
    time_zone: str
    computed_through: int


@dataclass(frozen=True, slots=True)
class UsageDay:
    """What a lease had of a resource in a day: whose it is, without its times, and seconds times units by measure.

    ``drawn`` is what a host drew for it; None if nothing is on record of that.
    """

    day: date
    whose: ResourceUse
    seconds: Mapping[Measure, int]
    drawn: DrawnEnergy | None = None


@dataclass(frozen=True, slots=True)
class TouchedTime:
    """What an entry of the journal may have changed: what was so from an instant until another."""

    start: datetime
    end: datetime


def find_touched_time(object_type: ObjectType, verb: Verb, at: datetime, start: datetime | None) -> TouchedTime | None:
    """Return the time that an entry may have changed; ``start`` is that of a lease. None: nothing that is reported.

    Most say what is so from then on. Who a lease is for, and what it is part of, holds for all of its time.
    """
    if object_type not in (ObjectType.LEASE, ObjectType.RESOURCE):
        return None
    whole = verb in (Verb.TRANSFERRED, Verb.SPLIT, Verb.MERGED) and start is not None and start < at
    return TouchedTime(start if whole and start is not None else at, at)


def list_touched(times: Iterable[TouchedTime], closed: Collection[date], zone: ZoneInfo) -> frozenset[date]:
    """Return the closed days of which any of these times has a part."""
    found: set[date] = set()
    for time in times:
        first, last = day_at(time.start, zone), day_at(time.end, zone)
        found.update(day for day in closed if first <= day <= last)
    return frozenset(found)


def sum_day(
    day: date, window: Window, uses: Iterable[ResourceUse], facts: UsageFacts, book: EnergyBook | None = None
) -> tuple[UsageDay, ...]:
    """Return what leases had in a day, by lease, resource and type; by a ``book`` also what that drew."""
    first, last = int(window.start.timestamp()), int(window.end.timestamp())
    found: dict[ResourceUse, dict[Measure, int]] = defaultdict(lambda: defaultdict(int))
    drawn: dict[ResourceUse, DrawnEnergy] = {}

    def meter() -> Iterator[ResourceUse]:
        for use in uses:
            yield use
            if book is not None and (more := measure_energy(use, first, last, book)) is not None:
                whose = _name(use)
                drawn[whose] = more if whose not in drawn else drawn[whose].add(more)

    for use, measure, begin, end in measure_uses(meter(), facts):
        if (seconds := min(end, last) - max(begin, first)) > 0:
            found[_name(use)][measure] += seconds * use.units
    return tuple(UsageDay(day, whose, seconds, drawn.get(whose)) for whose, seconds in found.items())


def _name(use: ResourceUse) -> ResourceUse:
    """Return whose a use is, without its times and amounts."""
    return replace(use, start=0, due=0, left=0, handed_over=None, units=1, vcpus=None)


def find_closed_run(window: Window, closed: Collection[date], zone: ZoneInfo) -> tuple[date, date] | None:
    """Return the first and the last day of the longest run of closed days that lie wholly in a window; None: none."""
    best: list[date] = []
    for run in _list_runs(window, closed, zone):
        best = max(best, run, key=len)
    return (best[0], best[-1]) if best else None


def _list_runs(window: Window, closed: Collection[date], zone: ZoneInfo) -> Iterator[list[date]]:
    run: list[date] = []
    for day in list_days(window, zone):
        whole = window_of_day(day, zone)
        if whole is None or (day in closed and window.covers(whole)):
            run.append(day)
        else:
            yield run
            run = []
    yield run


def list_open_days(first: date, last: date, closed: Collection[date], zone: ZoneInfo, now: datetime) -> Sequence[date]:
    """Return the days from one to another that can be closed by now, and are not."""
    days = (first + number * DAY for number in range((last - first).days + 1))
    return [
        day
        for day in days
        if day not in closed and (window := window_of_day(day, zone)) is not None and window.end + SETTLED <= now
    ]
