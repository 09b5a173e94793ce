# SPDX-License-Identifier: Apache-2.0
"""Schemas of requests about series."""

from __future__ import annotations

from blazar.api.http.shapes import Json
from blazar.api.leases.v1_1.reminders import EXAMPLE, SERIES_REMINDERS
from blazar.api.leases.v1_1.schemas import KEEP_HOSTS, MAX_PRICE, QUOTED_AT, RESERVATIONS
from blazar.model.series.checks import MOST_DATES, Fit
from blazar.model.series.rule_text import MOST_CHARACTERS

LOCAL = "a local time of the time zone such as 2030-04-01T08:00"
_LOCAL: Json = {"type": "string", "maxLength": 64, "description": LOCAL}
_LOCALS: Json = {"type": "array", "maxItems": MOST_DATES, "items": _LOCAL}
NAME: Json = {"type": "string", "minLength": 1, "maxLength": 80, "description": "a string of 1 to 80 characters"}
RULE: Json = {
    "type": "string",
    "minLength": 1,
    "maxLength": MOST_CHARACTERS,
    "description": "a recurrence rule of RFC 5545 such as FREQ=WEEKLY;BYDAY=MO,WE;COUNT=30",
}
WHEN: Json = {
    "rule": RULE,
    "start": {**_LOCAL, "description": f"the first start, {LOCAL}"},
    "time_zone": {
        "type": "string",
        "maxLength": 64,
        "description": "the name of a time zone such as Europe/Paris; by default UTC",
    },
    "duration": {
        "type": "string",
        "maxLength": 64,
        "description": "how long each lasts as time passes, such as PT4H; either this or until_local",
    },
    "until_local": {
        "type": "string",
        "maxLength": 16,
        "description": "when each ends by the wall clock, such as 17:00, or 06:00+1d on the next day",
    },
    "exdates": {**_LOCALS, "description": f"starts of the rule that are left out, at most {MOST_DATES}"},
    "rdates": {**_LOCALS, "description": f"starts beside those of the rule, at most {MOST_DATES}"},
}
BEFORE_END: Json = {
    "type": ["string", "null"],
    "maxLength": 64,
    "description": "a duration from the start of each such as +P1D, or before its end such as -PT2H; null for the "
    "operator's lead time",
}
FIT: Json = {
    "enum": [str(fit) for fit in Fit],
    "description": "all (default): nothing is booked unless every occurrence fits; as_many: those that fit are",
}

SERIES_CREATE: Json = {
    "type": "object",
    "required": ["name", "rule", "start", "reservations"],
    "additionalProperties": False,
    "properties": {
        "name": NAME,
        **WHEN,
        "before_end_date": BEFORE_END,
        "fit": FIT,
        "max_price": MAX_PRICE,
        "quoted_at": QUOTED_AT,
        "keep_hosts": KEEP_HOSTS,
        "reminders": SERIES_REMINDERS,
        "reservations": RESERVATIONS,
    },
}
SERIES_UPDATE: Json = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "from": {
            **_LOCAL,
            "description": "the recurrence_id of the first occurrence that changes; left out: all that have not begun",
        },
        "changed": {
            "type": "boolean",
            "description": "whether leases that were changed by themselves change, too; by default they stay as they "
            "are",
        },
        "name": NAME,
        **WHEN,
        "before_end_date": BEFORE_END,
        "fit": FIT,
        "max_price": {**MAX_PRICE, "type": ["string", "null"]},
        "keep_hosts": KEEP_HOSTS,
        "reminders": SERIES_REMINDERS,
        "reservations": RESERVATIONS,
    },
}
CHANGES: tuple[Json, ...] = (
    {"from": "2030-05-06T09:00", "until_local": "13:30"},
    {"name": "practical physics II", "reservations": [{"resource_type": "physical:host", "min": 3}]},
)
EXAMPLES: tuple[Json, ...] = (
    {
        "name": "practical physics",
        "rule": "FREQ=WEEKLY;BYDAY=MO,WE;COUNT=24",
        "start": "2030-04-01T09:00",
        "time_zone": "Europe/Paris",
        "until_local": "12:30",
        "exdates": ["2030-04-22T09:00"],
        "reservations": [{"resource_type": "physical:host", "min": 2}],
    },
    {
        "name": "nightly",
        "rule": "FREQ=DAILY",
        "start": "2030-04-01T22:00",
        "duration": "PT8H",
        "fit": "as_many",
        "before_end_date": "-PT30M",
        "reminders": [EXAMPLE],
        "reservations": [{"resource_type": "physical:host", "min": 1}],
    },
)
