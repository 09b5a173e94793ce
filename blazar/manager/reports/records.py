# SPDX-License-Identifier: Apache-2.0
"""Keeps days of capacity on record: what became of it once they are over, and how much was promised days before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta

from blazar.manager.common.background import BackgroundThread
from blazar.manager.common.runtime import Runtime
from blazar.model.base.clock import to_second
from blazar.model.base.window import Window
from blazar.model.reports.capacity import CapacityCell, CapacityDay, CapacitySums, cell_of, sum_capacity
from blazar.model.reports.forecast import DISTANCES
from blazar.model.reports.periods import DAY, day_at, window_of_day
from blazar.model.reports.states import ResourceState, TracedResource

INTERVAL = 600.0
"""Seconds between two looks whether something is to be recorded."""
PAUSE = 5.0
"""Seconds until the next round while there may be more to record."""
SETTLED = timedelta(hours=1)
"""How long after its end a day is recorded: what was done in it is written by then."""
BACK = 31
"""Days before today that are recorded if they are not yet, as at the first start and after a long outage."""


class CapacityRecords(BackgroundThread):
    """Records days. Managers do so side by side: what one has recorded stays, and the others find the same."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__("capacity-records", work="Days of capacity cannot be recorded", retry=INTERVAL)
        self._store = runtime.store.capacity
        self._clock = runtime.clock
        self._settings = runtime.settings.reports
        # Days on which nothing was registered leave no record.
        self._empty: set[date] = set()

    def run_once(self) -> int:
        """Record the first day that is over and not recorded yet, and what is promised of days to come.

        Return how many days; a day at a time, as a month of a large cloud is much to read. One statement if there is
        nothing to record. StoreUnavailable.
        """
        now, zone = to_second(self._clock.now()), self._settings.zone
        today = day_at(now, zone)
        known = self._store.read_days(today - BACK * DAY, today + DISTANCES[-1] * DAY)
        closed = {day.day for day in known if day.seconds is not None} | self._empty
        promised = {(day.day, ahead) for day in known for ahead in day.promised_before}
        over = (
            (day, window)
            for day in (today - back * DAY for back in range(BACK, 0, -1))
            if day not in closed and (window := window_of_day(day, zone)) and window.end + SETTLED <= now
        )
        coming = [
            (ahead, window)
            for ahead in DISTANCES
            if (today + ahead * DAY, ahead) not in promised and (window := window_of_day(today + ahead * DAY, zone))
        ]
        found = list(self._list_promised(coming, today, now))
        for day, window in over:
            if past := list(self._list_closed(day, window, now)):
                found += past
                break
            self._empty.add(day)
        if found:
            self._store.record(found)
        return len({day.day for day in found})

    def _list_closed(self, day: date, window: Window, now: datetime) -> Iterator[CapacityDay]:
        traced = self._store.trace(window, now=now, names=self._settings.properties)
        for _, cell, sums in _sum_cells(traced, [window]):
            yield CapacityDay(day, cell, sums.seconds)

    def _list_promised(self, coming: Sequence[tuple[int, Window]], today: date, now: datetime) -> Iterator[CapacityDay]:
        if not coming:
            return
        windows = [window for _, window in coming]
        traced = self._store.foresee(windows, now=now, names=self._settings.properties)
        for number, cell, sums in _sum_cells(traced, windows):
            ahead = coming[number][0]
            before = {ahead: sums.seconds[ResourceState.PROMISED]}
            yield CapacityDay(today + ahead * DAY, cell, promised_before=before)

    def _round(self) -> float:
        return PAUSE if self.run_once() else INTERVAL


def _sum_cells(
    traced: Sequence[TracedResource], windows: Sequence[Window]
) -> Iterator[tuple[int, CapacityCell, CapacitySums]]:
    for (number, cell), sums in sum_capacity(traced, windows, cell_of).items():
        yield number, cell, sums
