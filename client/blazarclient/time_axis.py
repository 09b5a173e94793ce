# SPDX-License-Identifier: Apache-2.0
"""An axis of time for a chart of text: cells that begin at round times of a zone, and the header above them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta, timezone
from itertools import pairwise

_MINUTES = (5, 10, 15, 30, 60, 120, 180, 240, 360, 480, 720)
_DAYS = (1, 2, 7, 14, 28, 56, 112, 224, 448)
STEPS = (*(timedelta(minutes=m) for m in _MINUTES), *(timedelta(days=d) for d in _DAYS))
"""Lengths of a cell. Those of hours divide a day, so that each day begins with a cell."""

_WEEK = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True)
class Cell:
    """A step of the axis, in UTC, cut at its range; ``local`` is where it begins on the clock of the zone."""

    start: datetime
    end: datetime
    local: datetime


@dataclass(frozen=True)
class Axis:
    """Cells from the first to the last of a range."""

    step: timedelta
    cells: Sequence[Cell]

    @classmethod
    def of(cls, start: datetime, end: datetime, most: int) -> Axis:
        """Return the axis with the shortest steps of which at most ``most`` span an aware range.

        The zone is that of ``start``. Over a change of clocks a day has an hour more or less, and maybe a cell.
        """
        for step in STEPS:
            if (end.astimezone(timezone.utc) - start.astimezone(timezone.utc)) / step <= most:
                ticks = _ticks(start, end, step)
                if len(ticks) <= most:
                    return cls(step, _cells(ticks, start, end))
        return cls(STEPS[-1], _cells(_ticks(start, end, STEPS[-1])[:most], start, end))

    @property
    def step_text(self) -> str:
        """The length of a cell in words."""
        if self.step >= timedelta(days=1):
            number, unit = self.step.days, "day"
        elif self.step >= timedelta(hours=1):
            number, unit = self.step.seconds // 3600, "hour"
        else:
            number, unit = self.step.seconds // 60, "minute"
        return f"{number} {unit}" + ("s" if number > 1 else "")

    def header(self, now: datetime) -> Iterator[str]:
        """Yield the lines above the cells: days, times of day if there is room, and now if it is inside."""
        yield self._days()
        if self.step < timedelta(hours=12) and (hours := self._hours()):
            yield hours
        at = next((n for n, cell in enumerate(self.cells) if cell.start <= now < cell.end), 0)
        # In the first cell it says nothing.
        if at:
            yield " " * at + "v now"

    def _days(self) -> str:
        firsts = [n for n, cell in enumerate(self.cells) if n == 0 or cell.local.date() != self._local(n - 1).date()]
        gaps = [after - before for before, after in pairwise(firsts[1:])] or [len(self.cells)]
        for pattern in (_weekday_and_date, _weekday_and_day, _day):
            if min(gaps) > len(pattern(self._local(0))):
                return self._placed([(n, pattern(self._local(n))) for n in firsts])
        return self._placed([(n, _date(self._local(n))) for n in firsts])

    def _hours(self) -> str:
        short = self.step >= timedelta(hours=1)
        label = 2 if short else 5
        every = next((s for s in STEPS if s / self.step > label and s < timedelta(days=1)), None)
        if every is None:
            return ""
        pattern = "%H" if short else "%H:%M"
        ticks = [
            (n, f"{cell.local:{pattern}}")
            for n, cell in enumerate(self.cells)
            if _since_midnight(cell) % every == _NO_TIME
        ]
        return self._placed(ticks)

    def _local(self, number: int) -> datetime:
        return self.cells[number].local

    def _placed(self, labels: Sequence[tuple[int, str]]) -> str:
        """Return a line with labels at their cells; one that would touch another is left out."""
        line = ""
        for number, (at, text) in enumerate(labels):
            following = labels[number + 1][0] if number + 1 < len(labels) else len(self.cells) + len(text)
            # The part of a day at the beginning gives way to the first whole day.
            crowded = number == 0 and following <= at + len(text)
            cut = number > 0 and at + len(text) > len(self.cells)
            if not crowded and not cut and (not line or at > len(line)):
                line = f"{line:{at}}{text}"
        return line


_NO_TIME = timedelta()


def _weekday_and_date(day: datetime) -> str:
    return f"{_WEEK[day.weekday()]} {day:%m-%d}"


def _weekday_and_day(day: datetime) -> str:
    return f"{_WEEK[day.weekday()]} {day:%d}"


def _day(day: datetime) -> str:
    return f"{day:%d}"


def _date(day: datetime) -> str:
    return f"{day:%m-%d}"


def _since_midnight(cell: Cell) -> timedelta:
    return timedelta(hours=cell.local.hour, minutes=cell.local.minute)


def _ticks(start: datetime, end: datetime, step: timedelta) -> list[datetime]:
    """Return the instants, in UTC, at which the clock of the zone is at a whole step; the first is not after start."""
    zone = start.tzinfo
    midnight = datetime.combine(start.date(), time())
    wall = start.replace(tzinfo=None, fold=0)
    tick = midnight if step >= timedelta(days=1) else wall - (wall - midnight) % step
    # An hour that comes twice has cells of its own if they are that short.
    folds = (0, 1) if step <= timedelta(hours=1) else (0,)
    last = end.astimezone(timezone.utc)
    found: set[datetime] = set()
    while True:
        instants = [tick.replace(tzinfo=zone, fold=fold).astimezone(timezone.utc) for fold in folds]
        found |= {instant for instant in instants if instant < last}
        if min(instants) >= last:
            break
        tick += step
    begin = start.astimezone(timezone.utc)
    ticks = sorted(found)
    return [tick for n, tick in enumerate(ticks) if n + 1 == len(ticks) or ticks[n + 1] > begin]


def _cells(ticks: Sequence[datetime], start: datetime, end: datetime) -> list[Cell]:
    first, last = start.astimezone(timezone.utc), end.astimezone(timezone.utc)
    return [
        Cell(max(tick, first), following, tick.astimezone(start.tzinfo)) for tick, following in pairwise([*ticks, last])
    ]
