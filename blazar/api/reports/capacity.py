# SPDX-License-Identifier: Apache-2.0
"""How a report of capacity is asked for and shown."""

from __future__ import annotations

from flask import Response

from blazar.api.http.context import Call
from blazar.api.http.csv_text import Column, answer_report
from blazar.api.http.shapes import NUMBER, TEXT_OR_NULL, ZULU, Json, an_object, or_null
from blazar.api.reports.shapes import describe_report, show_example, show_report
from blazar.api.reports.usage import invalid
from blazar.model.base.clock import zulu
from blazar.model.reports.capacity import AmountTime, CapacityGroup, CapacityReportQuestion, CapacityRow
from blazar.model.reports.periods import ReportStep
from blazar.model.reports.states import ResourceState

_STATES: Json = {
    ResourceState.FAILED: "seconds in which resources had failed",
    ResourceState.MAINTENANCE: "seconds in maintenance windows",
    ResourceState.PROMISED: "seconds in which a lease had something of them",
    ResourceState.CLEANING: "seconds of cleaning after a lease",
    ResourceState.DISABLED: "seconds in which they took nothing new, and nobody had them",
    ResourceState.FREE: "all other seconds",
}
"""What each state is; of several that hold at one time the first one counts."""

_COLUMNS = (
    Column("resources"),
    *(Column(name, is_time=True) for name in ("registered", *map(str, ResourceState))),
    *(Column("utilization"), Column("amounts")),
)
_SECONDS: Json = {**NUMBER, "minimum": 0}
_PERIOD: Json = {"from": {**ZULU, "description": "the part of the period, unless step is all"}, "to": ZULU}
GROUPS = tuple(map(str, CapacityGroup))
_ROW: Json = {
    "kind": "host",
    "resources": 12,
    "registered": 31104000,
    "failed": 7200,
    "maintenance": 0,
    "promised": 15552000,
    "cleaning": 36000,
    "disabled": 0,
    "free": 15508800,
    "utilization": 0.500116,
    "amounts": {"VCPU": {"registered": 1990656000, "promised": 995328000}},
}
_AMOUNT = an_object({"registered": _SECONDS, "promised": _SECONDS})
COMPONENTS: Json = {
    "CapacityRow": an_object(
        {
            **_PERIOD,
            **dict.fromkeys(GROUPS, TEXT_OR_NULL),
            "resources": {**_SECONDS, "description": "how many they were; one that lies in two rows counts in both"},
            "registered": {**_SECONDS, "description": "seconds in which they were registered: the sum of the states"},
            **{str(state): {**_SECONDS, "description": _STATES[state]} for state in ResourceState},
            "utilization": {
                **or_null({"type": "number", "minimum": 0, "maximum": 1}),
                "description": "promised as a part of promised, cleaning and free; null without these",
            },
            "amounts": {
                "type": "object",
                "additionalProperties": _AMOUNT,
                "description": "amounts by resource class, times seconds",
            },
        },
        optional=("from", "to", *GROUPS),
        example=_ROW,
    ),
    "CapacityReport": describe_report("CapacityRow", show_example(_ROW)),
}


def capacity(call: Call) -> Json | Response:
    """Return in which states resources were."""
    asked = call.asked
    groups, prop = read_groups(call)
    report = call.manager.reports.capacity(
        CapacityReportQuestion(
            call.caller.project_id,
            asked.one("from"),
            asked.one("to"),
            groups,
            ReportStep(asked.one("step", ReportStep.ALL)),
            prop,
            call.is_operator,
        )
    )
    shown = show_report(report, [_render(row, report.group_by, report.step) for row in report.rows])
    return answer_report(call, "capacity", shown, [str(group) for group in report.group_by], _COLUMNS)


def read_groups(call: Call) -> tuple[tuple[CapacityGroup, ...], str | None]:
    """Return the groups that are asked for, by default the kind, and the property of the last. InvalidInput."""
    wanted = call.asked.one("group_by", frozenset({str(CapacityGroup.KIND)}))
    prop: str | None = call.asked.one("property")
    groups = tuple(group for group in CapacityGroup if group in wanted)
    if (CapacityGroup.PROPERTY in groups) is not (prop is not None):
        raise invalid("property", "group_by=property and property=NAME belong together; give both, or none of them")
    return groups, prop


def _render(row: CapacityRow, groups: tuple[CapacityGroup, ...], step: ReportStep) -> Json:
    when = {} if step is ReportStep.ALL else {"from": zulu(row.window.start), "to": zulu(row.window.end)}
    part = row.sums.utilization
    return {
        **when,
        **dict(zip(map(str, groups), row.groups, strict=True)),
        "resources": row.sums.resources,
        "registered": row.sums.registered,
        **{str(state): row.sums.seconds[state] for state in ResourceState},
        "utilization": None if part is None else round(part, 6),
        "amounts": {name: _render_amount(amount) for name, amount in row.sums.amounts.items()},
    }


def _render_amount(amount: AmountTime) -> Json:
    return {"registered": amount.registered, "promised": amount.promised}
