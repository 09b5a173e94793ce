# SPDX-License-Identifier: Apache-2.0
"""Closes days of usage: an hour after its end each is put on record, and again if the journal tells more of it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import date

from blazar.manager.common.background import BackgroundThread
from blazar.manager.common.runtime import Runtime
from blazar.manager.reports.energy import read_hosts
from blazar.model.base.clock import to_second
from blazar.model.reports.days import ClosedDay, list_open_days, list_touched, sum_day
from blazar.model.reports.periods import DAY, day_at, window_of_day

LOG = logging.getLogger(__name__)

INTERVAL = 600.0
"""Seconds between two looks whether something is to be closed."""
BACK = 31
"""Days before today that are closed if they are not yet, as at the first start and after a long outage."""


class UsageDays(BackgroundThread):
    """Puts days on record. Managers do so side by side: each day is written as a whole, and what each finds is alike.

    Which entries of the journal a day has in it is on record with it, so that what one manager has read too early is
    read again.
    """

    def __init__(self, runtime: Runtime) -> None:
        super().__init__("usage-days", work="Days of usage cannot be closed", retry=60.0)
        self._store = runtime.store
        self._clock = runtime.clock
        self._settings = runtime.settings.reports

    def run_once(self) -> int:
        """Close what is over, and once more what the journal tells more of; return how many days. StoreUnavailable."""
        zone, now = self._settings.zone, to_second(self._clock.now())
        known = self._store.usage_days.list_closed(self._settings.time_zone)
        today = day_at(now, zone)
        again: frozenset[date] = frozenset()
        after = through = min(known.values(), default=0)
        if known:
            through, times = self._store.usage_days.list_touched(after)
            again = list_touched(times, known, zone)
        over = list_open_days(today - BACK * DAY, today - DAY, known, zone, now)
        done = self._close(sorted({*over, *again}))
        if through > after and not self._stopping.is_set():
            # Of what is closed again another manager may have written, after this one, what was before these entries.
            untouched, zone_name = known.keys() - again, self._settings.time_zone
            self._store.usage_days.note_position(zone_name, untouched, after=after, position=through)
        return done

    def recompute(self, first: date, last: date) -> int:
        """Put the days from one to another on record again, as far as they are over; return how many."""
        now = to_second(self._clock.now())
        return self._close(list_open_days(first, last, (), self._settings.zone, now))

    def _close(self, days: Sequence[date]) -> int:
        done = 0
        for day in days:
            window = window_of_day(day, self._settings.zone)
            if self._stopping.is_set() or window is None:
                continue
            now = self._clock.now()
            # Before the snapshot: what it does not have has a higher position.
            position = self._store.usage_days.read_position()
            book = read_hosts(self._store.energy, window)
            with self._store.reports.view_usage(window, now=now) as view:
                rows = sum_day(day, window, view.uses, view.facts, book)
            closed = ClosedDay(day, self._settings.time_zone, position)
            self._store.usage_days.replace_day(closed, rows, at=now)
            LOG.debug("Day %s is closed with %s rows", day, len(rows))
            done += 1
        return done

    def _round(self) -> float:
        self.run_once()
        return INTERVAL
