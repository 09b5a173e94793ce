# SPDX-License-Identifier: Apache-2.0
"""How a report of usage is asked for and shown."""

from __future__ import annotations

from dataclasses import fields

from flask import Response

from blazar.api.http.context import Call
from blazar.api.http.csv_text import Column, answer_report, wants_csv
from blazar.api.http.routes import ADMIN, READER, Rule
from blazar.api.http.shapes import NUMBER, TEXT_OR_NULL, ZULU, Json, an_object, ref
from blazar.api.reports.shapes import describe_report, show_example, show_report
from blazar.model.base.clock import zulu
from blazar.model.base.errors import Denied, InvalidInput, query_field
from blazar.model.energy.consumption import EnergySource
from blazar.model.energy.unbooked import UnbookedEnergy, UnbookedPart
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
    "energy_wh": "watt-hours that hosts drew: as recorded, else by their properties power_idle_w and power_max_w at "
    "half of their load; null if nothing is known",
    "gco2": "grams of CO2e of that; null if none are recorded",
}
MEASURES = tuple(field.name for field in fields(UsageSums))
_NO_TIMES = ("leases", "energy_wh", "gco2")
_COLUMNS = tuple(Column(name, is_time=name not in _NO_TIMES) for name in MEASURES)
_TYPES: Json = dict.fromkeys(("energy_wh", "gco2"), {"type": ["integer", "null"]})
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
    "energy_wh": 100800,
    "gco2": 32256,
}
_COUNT: Json = {**NUMBER, "minimum": 0}
_COUNT_OR_NULL: Json = {"type": ["integer", "null"], "minimum": 0}
_UNBOOKED: Json = {
    "idle": {
        "resource_seconds": 172800,
        "energy_wh": 8640,
        "source": "measured",
        "unknown_seconds": 0,
        "gco2": 2765,
    },
    "asleep": {
        "resource_seconds": 86400,
        "energy_wh": 192,
        "source": "measured",
        "unknown_seconds": 0,
        "gco2": 61,
    },
}
COMPONENTS: Json = {
    "UsageRow": an_object(
        {
            "from": {**ZULU, "description": "the part of the period, unless step is all"},
            "to": ZULU,
            **dict.fromkeys(_KEYS.values(), TEXT_OR_NULL),
            **{name: {**_TYPES.get(name, NUMBER), "minimum": 0, "description": _MEASURES[name]} for name in MEASURES},
        },
        optional=("from", "to", *_KEYS.values()),
        example=_ROW,
    ),
    "UnbookedPart": an_object(
        {
            "resource_seconds": {**_COUNT, "description": "seconds of hosts, by the share that no lease had"},
            "energy_wh": {**_COUNT_OR_NULL, "description": "watt-hours; null: nothing is known of these hosts"},
            "source": {"enum": [*map(str, EnergySource), None], "description": "how it is known"},
            "unknown_seconds": {**_COUNT, "description": "of resource_seconds, what nothing is known of"},
            "gco2": {**_COUNT_OR_NULL, "description": "grams of CO2e of that; null: the site tells no carbon"},
        },
        example=_UNBOOKED["idle"],
    ),
    "UnbookedEnergy": an_object(
        {
            "idle": {**ref("UnbookedPart"), "description": "of hosts that were on, or being switched"},
            "asleep": {**ref("UnbookedPart"), "description": "of hosts that were off to save energy"},
        },
        example=_UNBOOKED,
    ),
    "UsageReport": describe_report(
        "UsageRow",
        show_example(_ROW, computed_through="2030-04-26T13:00:00Z", unbooked=_UNBOOKED, lent_seconds=86400),
        through="until when it says what was; what is to come is not in it",
        unbooked={
            "anyOf": [ref("UnbookedEnergy"), {"type": "null"}],
            "description": "what hosts drew that no lease had; null: not asked for, or leases of the time were purged",
        },
        lent_seconds={
            **_COUNT,
            "description": "seconds of hosts that leases had lent to preemptible servers; in reserved, too",
        },
    ),
}


def usage(call: Call) -> Json | Response:
    """Return for whom resources were reserved, and what became of that."""
    report = call.manager.reports.usage(_read_question(call))
    keys = [_KEYS[group] for group in report.group_by]
    rows = [_render(row, keys, report.step) for row in report.rows]
    shown = show_report(report, rows, unbooked=_render_unbooked(report.unbooked), lent_seconds=report.lent_seconds)
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
        _read_unbooked(call),
    )


def _read_unbooked(call: Call) -> bool:
    """Return whether what belongs to nobody is asked for, too. Denied but for operators; InvalidInput."""
    if not call.asked.one("unbooked", False):
        return False
    if not call.is_operator:
        raise Denied("unbooked is told to operators only; leave it out", at=query_field("unbooked"))
    if call.asked.one("project_id") is not None:
        raise invalid("unbooked", "unbooked is of no project; leave out project_id, or unbooked")
    if wants_csv(call.asked.one("format")):
        raise invalid("unbooked", "unbooked is no row, and CSV has rows only; ask for JSON, or leave unbooked out")
    return True


def invalid(name: str, sentence: str) -> InvalidInput:
    """Return the error for a query parameter."""
    return InvalidInput(sentence, code="invalid_query", at=query_field(name))


def _render(row: UsageRow, keys: list[str], step: ReportStep) -> Json:
    when = {} if step is ReportStep.ALL else {"from": zulu(row.window.start), "to": zulu(row.window.end)}
    sums = {name: getattr(row.sums, name) for name in MEASURES}
    return {**when, **dict(zip(keys, row.groups, strict=True)), **sums}


def _render_unbooked(found: UnbookedEnergy | None) -> Json | None:
    return None if found is None else {"idle": _render_part(found.idle), "asleep": _render_part(found.asleep)}


def _render_part(part: UnbookedPart) -> Json:
    return {
        "resource_seconds": part.resource_seconds,
        "energy_wh": part.energy_wh,
        "source": None if part.source is None else str(part.source),
        "unknown_seconds": part.unknown_seconds,
        "gco2": part.gco2,
    }
