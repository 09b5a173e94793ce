# SPDX-License-Identifier: Apache-2.0
"""How a report of usage is asked for and shown."""

from __future__ import annotations

from dataclasses import fields

from flask import Response

from blazar.api.http.context import Call
from blazar.api.http.routes import ADMIN, READER, Rule
from blazar.api.http.shapes import NUMBER, TEXT_OR_NULL, ZULU, Json, an_object
from blazar.api.reports.csv_text import Column, answer_report
from blazar.api.reports.shapes import describe_report, show_example, show_report
from blazar.model.base.clock import zulu
from blazar.model.base.errors import Denied, InvalidInput, query_field
from blazar.model.reports.periods import ReportStep
from blazar.model.reports.usage import MOST_GROUPS, UsageGroup, UsageQuestion, UsageRow, UsageSums

GET = Rule("blazar:reports:get", READER, "See what the own project had of resources, operators: what all had.")
USERS = Rule("blazar:reports:get_users", ADMIN, "See the users of the project in reports, not only oneself.")

_KEYS = {group: f"{group}_id" if group in (UsageGroup.PROJECT, UsageGroup.USER) else str(group) for group in UsageGroup}
"""The key of each group in a row."""

_MEASURES: Json = {
    "reserved": "seconds of resources that were promised and not given back; of servers and addresses, of each",
    "used": "of reserved, what the last look at the lease found in use",
    "idle": "of reserved, what the last look found stopped or empty",
    "unseen": "of reserved, what nobody looks at, or of which the last look found out nothing",
    "lost": "of reserved, what leases had to do without: late starts, resources that had failed",
    "overrun": "seconds of resources that users had beyond the end of their leases; not in reserved",
    "returned": "seconds of resources that were promised and given back before; not in reserved",
    "leases": "the number of leases",
}
MEASURES = tuple(field.name for field in fields(UsageSums))
_COLUMNS = tuple(Column(name, is_time=name != "leases") for name in MEASURES)
_ROW: Json = {
    "project_id": "71bb40c6a5b94e0f8f2f0a3d1c9e7b55",
    "resource_type": "physical:host",
    "reserved": 1209600,
    "used": 800000,
    "idle": 300000,
    "unseen": 109600,
    "lost": 7200,
    "overrun": 0,
    "returned": 86400,
    "leases": 14,
}
COMPONENTS: Json = {
    "UsageRow": an_object(
        {
            "from": {**ZULU, "description": "the part of the period, unless step is all"},
            "to": ZULU,
            **dict.fromkeys(_KEYS.values(), TEXT_OR_NULL),
            **{name: {**NUMBER, "minimum": 0, "description": _MEASURES[name]} for name in MEASURES},
        },
        optional=("from", "to", *_KEYS.values()),
        example=_ROW,
    ),
    "UsageReport": describe_report(
        "UsageRow",
        show_example(_ROW, computed_through="2030-04-26T13:00:00Z"),
        through="until when it says what was; what is to come is not in it",
    ),
}


def usage(call: Call) -> Json | Response:
    """Return for whom resources were reserved, and what became of that."""
    report = call.manager.reports.usage(_read_question(call))
    keys = [_KEYS[group] for group in report.group_by]
    shown = show_report(report, [_render(row, keys, report.step) for row in report.rows])
    return answer_report(call, "usage", shown, keys, _COLUMNS)


def read_project(call: Call) -> str | None:
    """Return the project that a report is about, None: all. Denied if it is another one."""
    own = call.caller.project_id
    project_id: str | None = call.asked.one("project_id", None if call.is_operator else own)
    if project_id != own and not call.is_operator:
        raise Denied(
            "project_id is not the own one; only operators see reports of others; leave it out",
            at=query_field("project_id"),
        )
    return project_id


def _read_question(call: Call) -> UsageQuestion:
    """Return what is asked for. InvalidInput; Denied if it is about another project."""
    asked, own = call.asked, call.caller.project_id
    project_id = read_project(call)
    wanted, prop = asked.one("group_by", frozenset()), asked.one("property")
    groups = tuple(group for group in UsageGroup if group in wanted)
    if len(groups) > MOST_GROUPS:
        raise invalid("group_by", f"group_by names {len(groups)} groups; give {MOST_GROUPS} at most")
    if (UsageGroup.PROPERTY in groups) is not (prop is not None):
        raise invalid("property", "group_by=property and property=NAME belong together; give both, or none of them")
    return UsageQuestion(
        own,
        asked.one("from"),
        asked.one("to"),
        groups,
        ReportStep(asked.one("step", ReportStep.ALL)),
        prop,
        project_id,
        None if call.allows(USERS.name) else call.caller.user_id,
        call.is_operator,
    )


def invalid(name: str, sentence: str) -> InvalidInput:
    """Return the error for a query parameter."""
    return InvalidInput(sentence, code="invalid_query", at=query_field(name))


def _render(row: UsageRow, keys: list[str], step: ReportStep) -> Json:
    when = {} if step is ReportStep.ALL else {"from": zulu(row.window.start), "to": zulu(row.window.end)}
    sums = {name: getattr(row.sums, name) for name in MEASURES}
    return {**when, **dict(zip(keys, row.groups, strict=True)), **sums}
