# SPDX-License-Identifier: Apache-2.0
"""Answers questions for reports: of what was so until now, each from one snapshot of the database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from blazar.manager.common.runtime import Runtime
from blazar.manager.requests.visible_resources import Visible, no_such_property
from blazar.model.base.clock import to_second, zulu
from blazar.model.base.errors import InvalidInput, query_field
from blazar.model.base.window import Window
from blazar.model.calendar.views import Viewer
from blazar.model.reports.periods import instant_of, split_window, start_of_month
from blazar.model.reports.usage import Grouping, UsageQuestion, UsageReport, sum_uses
from blazar.model.resources.resource import ResourceKind
from blazar.resources.contract.kind import Kind

LONGEST = timedelta(days=31, hours=1)
"""A month, also one in which clocks are set back."""


class ReportService:
    """Answers questions for reports."""

    def __init__(self, runtime: Runtime, kinds: Mapping[ResourceKind, Kind]) -> None:
        self._store = runtime.store
        self._clock = runtime.clock
        self._kinds = kinds
        self._settings = runtime.settings.reports

    def usage(self, question: UsageQuestion) -> UsageReport:
        """Return for whom resources were reserved in a period, and for how long. InvalidInput names the parameter.

        Two statements, and one for each kind of resource if a property is asked for.
        """
        now, zone = to_second(self._clock.now()), self._settings.zone
        window = self._read_window(question, now)
        parts = split_window(window, question.step, zone)
        grouping = Grouping(question.group_by, self._read_properties(question), question.user_id)
        through = max(min(window.end, now), window.start)
        report = UsageReport(window, self._settings.time_zone, question.step, through, question.group_by)
        if through == window.start:
            return report
        # What is still to come is promised, and nobody has had it.
        past = [Window(part.start, min(part.end, through)) for part in parts if part.start < through]
        whole = {part.start: part for part in parts}
        with self._store.reports.view_uses(
            Window(window.start, through), now=now, project_id=question.project_id
        ) as uses:
            rows = sum_uses(uses, past, grouping)
        return replace(report, rows=tuple(replace(row, window=whole[row.window.start]) for row in rows))

    def _read_window(self, question: UsageQuestion, now: datetime) -> Window:
        """Return the period that is meant. InvalidInput names ``from`` or ``to``."""
        zone = self._settings.zone
        end = now if question.end is None else instant_of(question.end, zone, now)
        start = start_of_month(end, zone) if question.start is None else instant_of(question.start, zone, now)
        if end <= start:
            raise InvalidInput(
                f"to is {zulu(end)}, which is not after from, {zulu(start)}; give a later one",
                code="invalid_window",
                at=query_field("to"),
            )
        if end - start > LONGEST:
            raise InvalidInput(
                f"from and to are {(end - start).days} days apart; a report has at most {LONGEST.days} days",
                code="out_of_bounds",
                at=query_field("to"),
                data={"maximum": int(LONGEST.total_seconds())},
            )
        return Window(start, end)

    def _read_properties(self, question: UsageQuestion) -> Mapping[int, str]:
        """Return the value of the property of a question by resource. InvalidInput if the asker knows none such."""
        if question.prop is None:
            return {}
        viewer = Viewer(question.asked_by_project, question.private, question.private, question.private)
        found: dict[int, str] = {}
        known = False
        for kind, described in self._kinds.items():
            with self._store.calendar.view_uses(kind) as view:
                visible = Visible(view.catalog, described.shape, viewer)
                if question.prop in visible.keys:
                    known = True
                    for resource in view.catalog.resources:
                        if (value := resource.properties.get(question.prop)) is not None:
                            found[resource.id] = str(value)
        if not known:
            raise no_such_property([question.prop], "property")
        return found
