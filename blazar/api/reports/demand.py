# SPDX-License-Identifier: Apache-2.0
"""How a report of demand is asked for and shown."""

from __future__ import annotations

from flask import Response

from blazar.api.http.context import Call
from blazar.api.http.csv_text import Column, answer_report
from blazar.api.http.shapes import NUMBER, TEXT, ZULU, Json, an_object
from blazar.api.reports.shapes import describe_report, show_example, show_report
from blazar.api.reports.usage import read_project
from blazar.model.base.clock import zulu
from blazar.model.reports.demand import DemandGroup, DemandQuestion, DemandRow
from blazar.model.reports.periods import ReportStep

COUNTED = (
    "refused requests are counted in memory and written each minute: of a manager that is killed the last minute is "
    "missing"
)

_KEYS = {group: "project_id" if group is DemandGroup.PROJECT else str(group) for group in DemandGroup}
_SUM: Json = {**NUMBER, "minimum": 0}
_SUMS: Json = {
    "refused": "reservations that were refused, for lack of resources or by a limit",
    "refused_distinct": "of these the different ones: the same again within an hour does not count",
    "refused_seconds": "seconds that the different ones asked for, times resources or instances",
    "refused_amounts": "the same times amounts, by resource class",
    "waited": "seconds for which leases were on the waiting list, with neither a promise nor resources",
    "granted": "leases that were promised something after they had waited",
    "timed_out": "leases that waited in vain",
}
_COLUMNS = tuple(Column(name, is_time=name == "waited") for name in _SUMS)
_ROW: Json = {
    "resource_type": "physical:host",
    "refused": 12,
    "refused_distinct": 3,
    "refused_seconds": 86400,
    "refused_amounts": {},
    "waited": 5400,
    "granted": 2,
    "timed_out": 1,
}
COMPONENTS: Json = {
    "DemandRow": an_object(
        {
            "from": {**ZULU, "description": "the part of the period, unless step is all"},
            "to": ZULU,
            **dict.fromkeys(_KEYS.values(), {**TEXT, "description": "empty where there is none"}),
            **{name: {**_SUM, "description": text} for name, text in _SUMS.items()},
            "refused_amounts": {
                "type": "object",
                "additionalProperties": _SUM,
                "description": _SUMS["refused_amounts"],
            },
        },
        optional=("from", "to", *_KEYS.values()),
        example=_ROW,
    ),
    "DemandReport": describe_report(
        "DemandRow",
        show_example(_ROW, counted=COUNTED),
        counted={**TEXT, "description": "what is missing of the refused requests"},
    ),
}
GROUPS = tuple(map(str, DemandGroup))


def demand(call: Call) -> Json | Response:
    """Return what was asked for and not granted."""
    asked = call.asked
    wanted = asked.one("group_by", frozenset({str(DemandGroup.RESOURCE_TYPE)}))
    report = call.manager.reports.demand(
        DemandQuestion(
            asked.one("from"),
            asked.one("to"),
            tuple(group for group in DemandGroup if group in wanted),
            ReportStep(asked.one("step", ReportStep.ALL)),
            read_project(call),
        )
    )
    keys = [_KEYS[group] for group in report.group_by]
    shown = show_report(report, [_render(row, keys, report.step) for row in report.rows], counted=COUNTED)
    return answer_report(call, "demand", shown, keys, _COLUMNS)


def _render(row: DemandRow, keys: list[str], step: ReportStep) -> Json:
    when = {} if step is ReportStep.ALL else {"from": zulu(row.window.start), "to": zulu(row.window.end)}
    sums = {name: getattr(row.sums, name) for name in _SUMS}
    sums["refused_amounts"] = dict(row.sums.refused_amounts)
    return {**when, **dict(zip(keys, row.groups, strict=True)), **sums}
