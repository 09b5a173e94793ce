# SPDX-License-Identifier: Apache-2.0
"""Answers questions for reports: of what was so until now, each from one snapshot of the database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from blazar.manager.common.runtime import Runtime
from blazar.manager.reports.capacity import CapacityReports
from blazar.manager.reports.demand import DemandReports
from blazar.manager.reports.forecast import Forecasts
from blazar.manager.reports.questions import read_period, read_property
from blazar.model.base.clock import to_second
from blazar.model.base.window import Window
from blazar.model.calendar.views import Viewer
from blazar.model.reports.capacity import CapacityReport, CapacityReportQuestion
from blazar.model.reports.demand import DemandQuestion, DemandReport
from blazar.model.reports.forecast import Forecast, ForecastQuestion
from blazar.model.reports.periods import split_window
from blazar.model.reports.sums import Grouping, sum_uses
from blazar.model.reports.usage import UsageQuestion, UsageReport
from blazar.model.resources.resource import ResourceKind
from blazar.resources.contract.kind import Kind


class ReportService:
    """Answers questions for reports."""

    def __init__(self, runtime: Runtime, kinds: Mapping[ResourceKind, Kind]) -> None:
        self._store = runtime.store
        self._clock = runtime.clock
        self._kinds = kinds
        self._settings = runtime.settings.reports
        self._capacity, self._forecasts = CapacityReports(runtime, kinds), Forecasts(runtime, kinds)
        self._demand = DemandReports(runtime)

    def usage(self, question: UsageQuestion) -> UsageReport:
        """Return for whom resources were reserved in a period, and for how long. InvalidInput names the parameter.

        Six statements, and one for each kind of resource if a property is asked for.
        """
        now, zone = to_second(self._clock.now()), self._settings.zone
        window = read_period(question.start, question.end, zone, now)
        parts = split_window(window, question.step, zone)
        grouping = Grouping(question.group_by, self._read_properties(question), question.user_id)
        through = max(min(window.end, now), window.start)
        report = UsageReport(window, self._settings.time_zone, question.step, through, question.group_by)
        if through == window.start:
            return report
        # What is still to come is promised, and nobody has had it.
        past = [Window(part.start, min(part.end, through)) for part in parts if part.start < through]
        whole = {part.start: part for part in parts}
        with self._store.reports.view_usage(
            Window(window.start, through), now=now, project_id=question.project_id
        ) as view:
            rows = sum_uses(view.uses, past, grouping, view.facts)
        return replace(report, rows=tuple(replace(row, window=whole[row.window.start]) for row in rows))

    def capacity(self, question: CapacityReportQuestion) -> CapacityReport:
        """Return what became of the capacity in a period, as ``CapacityReports`` does. InvalidInput."""
        return self._capacity.capacity(question)

    def forecast(self, question: ForecastQuestion) -> Forecast:
        """Return what is expected of days to come, as ``Forecasts`` does. InvalidInput."""
        return self._forecasts.forecast(question)

    def demand(self, question: DemandQuestion) -> DemandReport:
        """Return what was asked for and not granted in a period, as ``DemandReports`` does. InvalidInput."""
        return self._demand.demand(question)

    def _read_properties(self, question: UsageQuestion) -> Mapping[int, str]:
        """Return the value of the property of a question by resource. InvalidInput if the asker knows none such."""
        if question.prop is None:
            return {}
        viewer = Viewer(question.asked_by_project, question.private, question.private, question.private)
        return read_property(self._store, self._kinds, question.prop, viewer)
