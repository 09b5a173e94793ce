# SPDX-License-Identifier: Apache-2.0
"""Reports of demand: what was asked for and not granted, by days of the site."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from blazar.manager.common.runtime import Runtime
from blazar.manager.reports.questions import read_period
from blazar.model.base.clock import to_second
from blazar.model.base.moments import start_of_day
from blazar.model.base.window import Window
from blazar.model.reports.demand import (
    DemandKey,
    DemandQuestion,
    DemandReport,
    DemandSums,
    measure_waits,
    sum_demand,
)
from blazar.model.reports.periods import DAY, day_at, split_window

SECOND = timedelta(seconds=1)


class DemandReports:
    """Answers questions about demand."""

    def __init__(self, runtime: Runtime) -> None:
        self._store = runtime.store.demand
        self._clock = runtime.clock
        self._settings = runtime.settings.reports

    def demand(self, question: DemandQuestion) -> DemandReport:
        """Return what was asked for and not granted in a period, widened to whole local days; three statements.

        InvalidInput names the parameter.
        """
        now, zone = to_second(self._clock.now()), self._settings.zone
        asked = read_period(question.start, question.end, zone, now)
        first, last = day_at(asked.start, zone), day_at(asked.end - SECOND, zone)
        window = Window(start_of_day(first, zone), start_of_day(last + DAY, zone))
        through = max(min(window.end, now), window.start)
        report = DemandReport(window, self._settings.time_zone, question.step, through, question.group_by)
        if through == window.start:
            return report
        parts = split_window(window, question.step, zone)
        past = [Window(part.start, min(part.end, through)) for part in parts if part.start < through]
        sums = [*self._read_refused(question, past), *self._read_waits(question, past)]
        rows = sum_demand(sums, past, question.group_by)
        whole = {part.start: part for part in parts}
        return replace(report, rows=tuple(replace(row, window=whole[row.window.start]) for row in rows))

    def _read_refused(
        self, question: DemandQuestion, parts: Sequence[Window]
    ) -> Iterator[tuple[int, DemandKey, DemandSums]]:
        zone = self._settings.zone
        first, last = day_at(parts[0].start, zone), day_at(parts[-1].end - SECOND, zone)
        numbers = {day_at(part.start, zone): number for number, part in enumerate(parts)}
        for day in self._store.read_days(first, last, question.project_id):
            number = max((begin, number) for begin, number in numbers.items() if begin <= day.day)[1]
            yield number, day.key, day.sums

    def _read_waits(
        self, question: DemandQuestion, parts: Sequence[Window]
    ) -> Iterator[tuple[int, DemandKey, DemandSums]]:
        moments = self._store.read_waits(Window(parts[0].start, parts[-1].end), question.project_id)
        for (number, key), sums in measure_waits(moments, parts).items():
            if question.project_id in (None, key.project_id):
                yield number, key, sums
