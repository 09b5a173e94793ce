# SPDX-License-Identifier: Apache-2.0
"""Forecasts: what is promised of days to come, and what is expected by the days that are on record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta

from blazar.manager.common.runtime import Runtime
from blazar.manager.reports.questions import read_property
from blazar.model.base.clock import to_second
from blazar.model.base.errors import InvalidInput, query_field
from blazar.model.base.window import Window
from blazar.model.calendar.views import Viewer
from blazar.model.reports.capacity import (
    CapacityCell,
    CapacityDay,
    CapacityGrouping,
    CapacityRow,
    list_rows,
    sum_capacity,
)
from blazar.model.reports.demand import DemandSums
from blazar.model.reports.forecast import (
    JUDGED_DAYS,
    JUDGED_DISTANCE,
    WEEKS,
    Forecast,
    ForecastQuestion,
    ForecastRow,
    PastDay,
    UnmetDemand,
    forecast_day,
    judge_forecasts,
    list_past_days,
)
from blazar.model.reports.periods import DAY, day_at, window_of_day
from blazar.model.reports.states import ResourceState
from blazar.model.resources.resource import ResourceKind
from blazar.resources.contract.kind import Kind

LOOKED_BACK = timedelta(days=JUDGED_DAYS + JUDGED_DISTANCE, weeks=WEEKS + 1)
"""The days on record that a forecast, or the judgement of an earlier one, is made of."""


class Forecasts:
    """Answers questions about days to come."""

    def __init__(self, runtime: Runtime, kinds: Mapping[ResourceKind, Kind]) -> None:
        self._store = runtime.store
        self._clock = runtime.clock
        self._kinds = kinds
        self._settings = runtime.settings.reports

    def forecast(self, question: ForecastQuestion) -> Forecast:
        """Return what is promised and expected of the days from today on. InvalidInput names the parameter.

        Four statements, and four for each kind of resource.
        """
        now, zone = to_second(self._clock.now()), self._settings.zone
        today = day_at(now, zone)
        project_id = None if question.operator else question.project_id
        self._check(question)
        ahead = {today + n * DAY: window_of_day(today + n * DAY, zone) for n in range(question.days)}
        windows = {day: window for day, window in ahead.items() if window is not None}
        names = (question.prop,) if question.prop else ()
        traced = self._store.capacity.foresee(list(windows.values()), now=now, names=names, project_id=project_id)
        grouping = CapacityGrouping(question.group_by, question.prop or "")
        promised = list_rows(sum_capacity(traced, list(windows.values()), grouping.group_of), list(windows.values()))
        known = [
            day
            for day in self._store.capacity.read_days(today - LOOKED_BACK, today - DAY)
            if project_id is None or day.cell.is_open_to(project_id)
        ]
        days = {window: day for day, window in windows.items()}
        return Forecast(
            now,
            self._settings.time_zone,
            question.group_by,
            tuple(_expect(promised, days, known, grouping, today)),
            judge_forecasts(list_past_days(known), today=today),
            self._read_unmet(today, project_id),
        )

    def _check(self, question: ForecastQuestion) -> None:
        """Raise InvalidInput if days are not kept by the property, or the asker knows none such."""
        if question.prop is None:
            return
        viewer = Viewer(question.project_id, question.operator, question.operator, question.operator)
        read_property(self._store, self._kinds, question.prop, viewer)
        if question.prop not in self._settings.properties:
            raise InvalidInput(
                f"days are not kept by property {question.prop!r}, so that nothing is known of it; operators can name "
                f"it in [reports] properties",
                code="invalid_query",
                at=query_field("property"),
            )

    def _read_unmet(self, today: date, project_id: str | None) -> tuple[UnmetDemand, ...]:
        days = self._store.demand.read_days(today - (JUDGED_DAYS - 1) * DAY, today, project_id)
        found: dict[str, DemandSums] = {}
        for day in days:
            found[day.key.resource_type] = found.get(day.key.resource_type, DemandSums()) + day.sums
        return tuple(
            UnmetDemand(name, sums.refused, sums.refused_distinct, sums.refused_seconds)
            for name, sums in sorted(found.items())
        )


def _expect(
    promised: Sequence[CapacityRow],
    days: Mapping[Window, date],
    known: Sequence[CapacityDay],
    grouping: CapacityGrouping,
    today: date,
) -> Iterator[ForecastRow]:
    past = {groups: _select_past(known, grouping, groups) for groups in {row.groups for row in promised}}
    for row in promised:
        yield ForecastRow(
            row.groups,
            forecast_day(
                days[row.window],
                today=today,
                registered=row.sums.registered,
                promised=row.sums.seconds[ResourceState.PROMISED],
                past=past[row.groups],
            ),
        )


def _select_past(
    known: Sequence[CapacityDay], grouping: CapacityGrouping, groups: tuple[str | None, ...]
) -> Mapping[date, PastDay]:
    """Return the days that are over of one group."""

    def is_wanted(cell: CapacityCell) -> bool:
        return grouping.values_of(cell.kind, cell.region, dict(cell.properties)) == groups

    return list_past_days(known, is_wanted)
