# SPDX-License-Identifier: Apache-2.0
"""Answers questions for reports: of what was so until now, each from one snapshot of the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from blazar.manager.common.runtime import Runtime
from blazar.manager.reports.capacity import CapacityReports
from blazar.manager.reports.demand import DemandReports
from blazar.manager.reports.energy import LeaseEnergies, check_unbooked, read_hosts, read_unbooked
from blazar.manager.reports.forecast import Forecasts
from blazar.manager.reports.questions import LONGEST_ON_RECORD, check_live, read_period, read_property
from blazar.model.base.clock import to_second
from blazar.model.base.errors import InvalidInput
from blazar.model.base.moments import start_of_day
from blazar.model.base.window import Window
from blazar.model.calendar.views import Viewer
from blazar.model.energy.carbon import LeaseEnergy
from blazar.model.energy.consumption import IDLE, MOST, PowerRating
from blazar.model.reports.capacity import CapacityReport, CapacityReportQuestion
from blazar.model.reports.days import find_closed_run
from blazar.model.reports.demand import DemandQuestion, DemandReport
from blazar.model.reports.forecast import Forecast, ForecastQuestion
from blazar.model.reports.periods import DAY, day_at, list_days, split_window
from blazar.model.reports.sums import Grouping, UsageTable
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
        self._demand, self._energies = DemandReports(runtime), LeaseEnergies(runtime)

    def usage(self, question: UsageQuestion) -> UsageReport:
        """Return for whom resources were reserved in a period, and for how long. InvalidInput names the parameter.

        Closed days are read from the record, and what lies before and after them from the leases. At most sixteen
        statements, and one for each kind of resource if a property is asked for; thirteen more for what is unbooked.
        """
        now, zone = to_second(self._clock.now()), self._settings.zone
        window = read_period(question.start, question.end, zone, now, longest=LONGEST_ON_RECORD)
        if question.unbooked:
            check_unbooked(window)
        parts = split_window(window, question.step, zone)
        properties, draws = self._read_properties(question), self._read_draws()
        grouping = Grouping(question.group_by, properties, question.user_id, draws)
        through = max(min(window.end, now), window.start)
        report = UsageReport(window, self._settings.time_zone, question.step, through, question.group_by)
        if through == window.start:
            return report
        table = UsageTable(parts, grouping)
        # What is still to come is promised, and nobody has had it.
        past = Window(window.start, through)
        for live in self._add_closed(table, past, parts, question.project_id):
            book = read_hosts(self._store.energy, live)
            with self._store.reports.view_usage(live, now=now, project_id=question.project_id) as view:
                table.add_uses(view.uses, view.facts, live, book)
        lent = self._store.lending.sum_seconds(past, now=now, project_id=question.project_id)
        report = replace(report, rows=table.list_rows(), lent_seconds=lent)
        if not question.unbooked:
            return report
        return replace(report, unbooked=read_unbooked(self._store, past, zone, now))

    def _add_closed(
        self, table: UsageTable, past: Window, parts: Sequence[Window], project_id: str | None
    ) -> Sequence[Window]:
        """Add what is on record of a time that has passed; return what is left of it. InvalidInput if that is long."""
        zone = self._settings.zone
        days = list(list_days(past, zone))
        closed = self._store.usage_days.list_closed(self._settings.time_zone, days[0], days[-1])
        run = find_closed_run(past, closed, zone)
        if run is None:
            return [check_live(past, past.duration)]
        begin, end = start_of_day(run[0], zone), start_of_day(run[1] + DAY, zone)
        borders = [day_at(max(part.start, begin), zone) for part in parts if part.start < end and begin < part.end]
        skipped = sum(part.end <= begin for part in parts)
        sums = self._store.usage_days.sum_days(*run, borders, project_id=project_id)
        table.add_sums(replace(one, part=skipped + one.part) for one in sums)
        edges = [(past.start, begin), (end, past.end)]
        live = [Window(*edge) for edge in edges if edge[0] < edge[1]]
        check_live(past, sum((window.duration for window in live), timedelta(0)), run)
        return live

    def capacity(self, question: CapacityReportQuestion) -> CapacityReport:
        """Return what became of the capacity in a period, as ``CapacityReports`` does. InvalidInput."""
        return self._capacity.capacity(question)

    def forecast(self, question: ForecastQuestion) -> Forecast:
        """Return what is expected of days to come, as ``Forecasts`` does. InvalidInput."""
        return self._forecasts.forecast(question)

    def demand(self, question: DemandQuestion) -> DemandReport:
        """Return what was asked for and not granted in a period, as ``DemandReports`` does. InvalidInput."""
        return self._demand.demand(question)

    def lease_energy(self, lease_id: str) -> LeaseEnergy:
        """Return what a lease drew and emitted until now, as ``LeaseEnergies`` does."""
        return self._energies.find(lease_id)

    def _read_draws(self) -> Mapping[int, int]:
        """Return the milliwatts of hosts by their ratings, by resource; without those whose rating cannot be."""
        found: dict[int, int] = {}
        for resource_id, properties in self._store.reports.list_host_properties((IDLE, MOST)).items():
            with suppress(InvalidInput):
                if (rating := PowerRating.of_properties(properties)) is not None:
                    found[resource_id] = rating.draw(self._store.energy.terms.load)
        return found

    def _read_properties(self, question: UsageQuestion) -> Mapping[int, str]:
        """Return the value of the property of a question by resource. InvalidInput if the asker knows none such."""
        if question.prop is None:
            return {}
        viewer = Viewer(question.asked_by_project, question.private, question.private, question.private)
        return read_property(self._store, self._kinds, question.prop, viewer)
