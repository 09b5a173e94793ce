# SPDX-License-Identifier: Apache-2.0
"""Reports of capacity: in which states resources were, as far as the asker sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from blazar.manager.common.runtime import Runtime
from blazar.manager.reports.questions import read_period, read_property
from blazar.model.base.clock import spell, to_second
from blazar.model.base.errors import InvalidInput, query_field
from blazar.model.base.window import Window
from blazar.model.calendar.views import Viewer
from blazar.model.reports.capacity import (
    CapacityGrouping,
    CapacityReport,
    CapacityReportQuestion,
    list_rows,
    sum_capacity,
)
from blazar.model.reports.periods import split_window
from blazar.model.reports.usage import MOST_ROWS, too_many_rows
from blazar.model.resources.resource import ResourceKind
from blazar.resources.contract.kind import Kind


class CapacityReports:
    """Answers questions about what became of the capacity."""

    def __init__(self, runtime: Runtime, kinds: Mapping[ResourceKind, Kind]) -> None:
        self._store = runtime.store
        self._clock = runtime.clock
        self._kinds = kinds
        self._reads = runtime.settings.reads
        self._settings = runtime.settings.reports

    def capacity(self, question: CapacityReportQuestion) -> CapacityReport:
        """Return in which states the resources were that the asker sees. InvalidInput names the parameter.

        Three statements, and four for each kind of resource.
        """
        now, zone = to_second(self._clock.now()), self._settings.zone
        window = read_period(question.start, question.end, zone, now)
        self._check(question, window)
        parts = split_window(window, question.step, zone)
        through = max(min(window.end, now), window.start)
        report = CapacityReport(window, self._settings.time_zone, question.step, through, question.group_by)
        if through == window.start:
            return report
        traced = self._store.capacity.trace(
            Window(window.start, through),
            now=now,
            names=(question.prop,) if question.prop else (),
            project_id=None if question.operator else question.project_id,
        )
        past = [Window(part.start, min(part.end, through)) for part in parts if part.start < through]
        sums = sum_capacity(traced, past, CapacityGrouping(question.group_by, question.prop or "").group_of)
        if len(sums) > MOST_ROWS:
            raise too_many_rows()
        return replace(report, rows=list_rows(sums, parts))

    def _check(self, question: CapacityReportQuestion, window: Window) -> None:
        """Raise InvalidInput if the asker may not see so far back, or knows no such property."""
        earliest = to_second(self._clock.now()) - self._reads.back_for(operator=question.operator)
        if not question.operator and window.start < earliest:
            raise InvalidInput(
                f"from is before {spell(earliest)} UTC, and members see the calendar only since then; give a later one",
                code="out_of_bounds",
                at=query_field("from"),
            )
        if question.prop is not None:
            viewer = Viewer(question.project_id, question.operator, question.operator, question.operator)
            read_property(self._store, self._kinds, question.prop, viewer)
