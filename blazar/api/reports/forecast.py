# SPDX-License-Identifier: Apache-2.0
"""How a forecast is asked for and shown."""

from __future__ import annotations

from flask import Response

from blazar.api.http.context import Call
from blazar.api.http.csv_text import Column, answer_csv, flatten_row, wants_csv
from blazar.api.http.shapes import NUMBER, TEXT, TEXT_OR_NULL, ZULU, Json, a_list, an_object, or_null, ref
from blazar.api.reports.capacity import GROUPS, read_groups
from blazar.model.base.clock import zulu
from blazar.model.reports.capacity import CapacityGroup
from blazar.model.reports.forecast import (
    JUDGED_DAYS,
    JUDGED_DISTANCE,
    LEAST_WEEKS,
    WEEKS,
    ForecastQuestion,
    ForecastRow,
)

USUAL_DAYS, MOST_DAYS = 28, 92
METHOD = (
    f"expected is promised, and what was still booked of the same weekdays of the last {WEEKS} weeks when they were as "
    f"far ahead: the lower quartile, the median and the upper quartile; requests that were refused are no part of it"
)
_BECAUSE = f"{{weeks}} such days are on record, and {LEAST_WEEKS} are needed; they are kept from the first start on"

_SECONDS: Json = {**NUMBER, "minimum": 0}
_DAY: Json = {**TEXT, "format": "date"}
_ROW: Json = {
    "day": "2030-05-02",
    "kind": "host",
    "registered": 1036800,
    "promised": 345600,
    "expected": {"lower": 388800, "median": 432000, "upper": 518400},
    "weeks": 8,
    "because": None,
}
_UNMET: Json = {
    "resource_type": "physical:host",
    "refused": 12,
    "refused_distinct": 3,
    "refused_seconds": 86400,
}
COMPONENTS: Json = {
    "ForecastRow": an_object(
        {
            "day": {**_DAY, "description": "a local day"},
            **dict.fromkeys(GROUPS, TEXT_OR_NULL),
            "registered": {**_SECONDS, "description": "seconds of the resources that are registered today"},
            "promised": {**_SECONDS, "description": "seconds in which something of them is promised by now"},
            "expected": or_null(an_object(dict.fromkeys(("lower", "median", "upper"), _SECONDS))),
            "weeks": {**_SECONDS, "description": "how many such days it is made of"},
            "because": {**TEXT_OR_NULL, "description": "why nothing is expected"},
        },
        optional=GROUPS,
        example=_ROW,
    ),
    "Forecast": an_object(
        {
            "as_of": ZULU,
            "time_zone": {**TEXT, "description": "of its days"},
            "unit": {"const": "seconds"},
            "method": {**TEXT, "description": "what is expected, in a sentence"},
            "rows": a_list(ref("ForecastRow")),
            "accuracy": {
                **an_object(
                    {"days": _SECONDS, "days_ahead": _SECONDS, "mean_error": or_null({"type": "number", "minimum": 0})}
                ),
                "description": (
                    f"how far off medians of days in the last {JUDGED_DAYS} were, as a part of the time registered; "
                    f"null without any"
                ),
            },
            "unmet": {
                **a_list(an_object(dict.fromkeys(_UNMET, _SECONDS) | {"resource_type": TEXT})),
                "description": f"what was refused in the last {JUDGED_DAYS} days",
            },
        },
        example={
            "as_of": "2030-05-01T09:00:00Z",
            "time_zone": "UTC",
            "unit": "seconds",
            "method": METHOD,
            "rows": [_ROW],
            "accuracy": {"days": 28, "days_ahead": 7, "mean_error": 0.061},
            "unmet": [_UNMET],
        },
    ),
}


_COLUMNS = (
    *(Column(name, is_time=True) for name in ("registered", "promised")),
    *(Column(f"expected.{name}", is_time=True) for name in ("lower", "median", "upper")),
    Column("weeks"),
    Column("because"),
)


def forecast(call: Call) -> Json | Response:
    """Return what is promised and expected of the days to come."""
    groups, prop = read_groups(call)
    found = call.manager.reports.forecast(
        ForecastQuestion(call.caller.project_id, call.asked.one("days", USUAL_DAYS), groups, prop, call.is_operator)
    )
    error = found.accuracy.mean_error
    shown: Json = {
        "as_of": zulu(found.as_of),
        "time_zone": found.time_zone,
        "unit": "seconds",
        "method": METHOD,
        "rows": [_render(row, found.group_by) for row in found.rows],
        "accuracy": {
            "days": found.accuracy.days,
            "days_ahead": JUDGED_DISTANCE,
            "mean_error": None if error is None else round(error, 6),
        },
        "unmet": [{name: getattr(unmet, name) for name in _UNMET} for unmet in found.unmet],
    }
    if not wants_csv(call.asked.one("format")):
        return {"forecast": shown, "links": []}
    columns = (Column("day"), *map(Column, map(str, found.group_by)), *_COLUMNS)
    return answer_csv(f"blazar-forecast-{zulu(found.as_of)[:10]}", columns, map(flatten_row, shown["rows"]))


def _render(row: ForecastRow, groups: tuple[CapacityGroup, ...]) -> Json:
    day, expected = row.day, row.day.expected
    return {
        "day": day.day.isoformat(),
        **dict(zip(map(str, groups), row.groups, strict=True)),
        "registered": day.registered,
        "promised": day.promised,
        "expected": None
        if expected is None
        else {"lower": expected.lower, "median": expected.median, "upper": expected.upper},
        "weeks": day.weeks,
        "because": None if expected is not None else _BECAUSE.format(weeks=day.weeks),
    }
