# SPDX-License-Identifier: Apache-2.0
"""The occurrences of a series: dates of a rule at a time of day, as instants by the clocks of a time zone.

Each occurrence is computed from its own date alone, never from the one before it. A start that the clocks skip counts
with the offset before the gap (RFC 5545, 3.3.5), so that 02:30 becomes 03:30; of two equal local times the first one
counts. 3.3.10 would leave out a start that the clocks skip; it is kept: who asks for every night gets every night.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from blazar.model.base.clock import later
from blazar.model.base.values import dataclass
from blazar.model.base.window import Window
from blazar.model.series.rule import Rule, Walk

MOST_DAYS = 1096
"""The days of three years: how far one expansion goes, and a rule with a COUNT from its start."""

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class LocalEnd:
    """The wall clock at which an occurrence ends, some days after the date of its start."""

    at: time
    days: int = 0

    def after(self, start: datetime) -> datetime:
        """Return the local end for a local start."""
        return datetime.combine(start.date() + self.days * _DAY, self.at)


@dataclass(frozen=True, slots=True)
class Recurrence:
    """When a series recurs: ``start`` is its first start, a local time of ``zone``, a name of the IANA database.

    ``length`` of each occurrence is elapsed time, or the wall clock at its end. ``excluded`` are local starts of the
    rule that are left out (EXDATE), ``added`` local starts beside the rule (RDATE).
    """

    start: datetime
    zone: str
    rule: Rule
    length: timedelta | LocalEnd
    excluded: frozenset[datetime] = frozenset()
    added: frozenset[datetime] = frozenset()

    def __post_init__(self) -> None:
        for local in (self.start, *self.excluded, *self.added):
            if local.tzinfo is not None or local.microsecond:
                raise ValueError(f"{local!r} is not a local time in whole seconds")

    def occurrences(self, within: Window) -> tuple[Occurrence, ...]:
        """Return the occurrences that start in a window of at most ``MOST_DAYS``, earliest first."""
        if within.duration > MOST_DAYS * _DAY:
            raise ValueError(f"a window of {within.duration} is too long for an expansion")
        zone = ZoneInfo(self.zone)
        # A start that the clocks skip is moved, by a day at most.
        first = (within.start.astimezone(zone) - _DAY).date()
        last = (within.end.astimezone(zone) + _DAY).date()
        starts = {*self.rule_starts(first, last)} - self.excluded | self.added
        found = (self.occurrence(local) for local in starts if first <= local.date() <= last)
        return tuple(sorted((o for o in found if within.contains(o.start)), key=Occurrence.sort_key))

    def rule_starts(self, first: date, last: date) -> Iterator[datetime]:
        """Yield the local starts of the rule by their dates, those that are excluded too.

        With a COUNT none is more than ``MOST_DAYS`` after the first start.
        """
        rule, at = self.rule, self.start.time()
        walk = Walk(rule, self.start.date())
        dates = walk.dates(first, last)
        if rule.count is not None:
            # Which ones these are can only be told by counting them from the first one on.
            every = walk.dates(self.start.date(), min(last, self.start.date() + MOST_DAYS * _DAY))
            dates = (day for _, day in zip(range(rule.count), every, strict=False) if day >= first)
        for day in dates:
            local = datetime.combine(day, at)
            if rule.until is not None and self._is_after(local, rule.until):
                return
            yield local

    def occurrence(self, local: datetime) -> Occurrence:
        """Return the occurrence with a local start, which need not be one of the rule."""
        zone = ZoneInfo(self.zone)
        start = _instant(local, zone)
        end = (
            later(start, self.length)
            if isinstance(self.length, timedelta)
            else _instant(self.length.after(local), zone)
        )
        return Occurrence(local, start, end, is_moved=start.astimezone(zone).replace(tzinfo=None) != local)

    def _is_after(self, local: datetime, until: datetime) -> bool:
        return (local if until.tzinfo is None else _instant(local, ZoneInfo(self.zone))) > until


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One occurrence of a series, from ``start`` to ``end`` in UTC.

    ``recurrence_id`` is its local start by the rule, which names it whatever becomes of its window.
    ``is_moved``: the clocks skip that time, and it starts as much later. The end need not be after the start: between
    two local times there may be nothing, on a day on which the clocks change.
    """

    recurrence_id: datetime
    start: datetime
    end: datetime
    is_moved: bool = False

    @property
    def window(self) -> Window | None:
        """Return its window; None if there is no time between its start and its end."""
        return Window(self.start, self.end) if self.start < self.end else None

    def sort_key(self) -> tuple[datetime, datetime]:
        """Return the key that sorts occurrences by their starts."""
        return self.start, self.recurrence_id


def _instant(local: datetime, zone: ZoneInfo) -> datetime:
    return local.replace(tzinfo=zone, fold=0).astimezone(UTC)
