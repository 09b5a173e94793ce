# SPDX-License-Identifier: Apache-2.0
"""Schemas of answers about free time in the OpenAPI document."""

from __future__ import annotations

from blazar.api.shapes import (
    FLAG,
    NUMBER,
    TEXT,
    TEXT_OR_NULL,
    ZULU,
    ZULU_OR_NULL,
    Json,
    a_list,
    an_object,
    one_of,
    ref,
)
from blazar.model.availability import Change, LimitedBy, StepCode

_COUNTS: Json = {"type": "object", "properties": {"id": TEXT}, "additionalProperties": NUMBER}
_STEP: Json = an_object(
    {
        "code": one_of(StepCode),
        "remaining": {**NUMBER, "description": "resources that are left; after affinity or others, what fits"},
        "removed": NUMBER,
        "until": {**ZULU, "description": "when enough of them are free again"},
        "pointer": {**TEXT, "description": "the part of the request that is the reason"},
    },
    optional=("removed", "until", "pointer"),
)
_WINDOW: Json = an_object({"start_date": ZULU, "end_date": ZULU})
_REFUSALS: Json = {**a_list(ref("Refusal")), "description": "why usage enforcement would not grant it"}
_OPENING: Json = an_object(
    {
        "start_date": ZULU,
        "end_date": ZULU,
        "last_start_date": {**ZULU, "description": "every start up to this one has room for the whole duration"},
        "open_until": {**ZULU_OR_NULL, "description": "the last end that fits; null: beyond latest"},
        "reservations": a_list(an_object({"count": NUMBER})),
        "refusals": _REFUSALS,
    }
)
_IN_REGIONS: Json = {
    **_OPENING,
    "properties": {
        **_OPENING["properties"],
        "reservations": a_list(an_object({"count": NUMBER, "region": TEXT}, optional=("region",))),
    },
}
_REASON: Json = an_object(
    {
        "pointer": {**TEXT_OR_NULL, "description": "the reservation in the request; null: a change does not name it"},
        "window": _WINDOW,
        "asked": NUMBER,
        "free": NUMBER,
        "steps": a_list(_STEP),
        "message": TEXT,
    }
)
_ALTERNATIVE: Json = an_object(
    {
        "change": one_of(Change),
        "start_date": ZULU,
        "end_date": ZULU,
        "reservations": {**a_list(_COUNTS), "description": "fewer of each reservation, with lease_id by id"},
        "drop": {**TEXT, "description": "the part of a requirement to leave out"},
    },
    optional=("reservations", "drop"),
)
_LIMITED_BY: Json = {
    **one_of(LimitedBy, None),
    "description": "null: none of these, as where a resource of the lease is out of use",
}
_EXTENSION: Json = an_object({"open_until": ZULU, "limited_by": _LIMITED_BY, "refusals": _REFUSALS})

_AVAILABILITY: Json = {
    "as_of": ZULU,
    "earliest": ZULU,
    "latest": ZULU,
    "duration_seconds": NUMBER,
    "searched_until": {**ZULU, "description": "from here another search goes on"},
    "complete": {**FLAG, "description": "false: the search was given up before it had found all"},
    "openings": a_list(_OPENING),
    "not_checked": {**a_list(TEXT), "description": "filters of usage enforcement that were not asked"},
    "reasons": a_list(_REASON),
    "alternatives": a_list(_ALTERNATIVE),
    "extension": {"anyOf": [_EXTENSION, {"type": "null"}]},
}
_EXAMPLE: Json = {
    "as_of": "2026-11-23T10:15:42Z",
    "earliest": "2026-11-23T10:15:42Z",
    "latest": "2027-01-22T10:15:42Z",
    "duration_seconds": 259200,
    "searched_until": "2027-01-22T10:15:42Z",
    "complete": True,
    "openings": [
        {
            "start_date": "2026-12-03T14:00:00Z",
            "end_date": "2026-12-06T14:00:00Z",
            "last_start_date": "2026-12-04T08:00:00Z",
            "open_until": "2026-12-07T08:00:00Z",
            "reservations": [{"count": 5}],
            "refusals": [],
        }
    ],
    "not_checked": ["ExternalServiceFilter"],
    "reasons": [],
    "alternatives": [],
    "extension": None,
}

COMPONENTS: Json = {
    "Refusal": an_object(
        {"code": TEXT, "message": TEXT, "data": {"type": "object"}},
        example={"code": "reservation.limit_exceeded", "message": "the lease would last 9 days", "data": {}},
    ),
    "Availability": an_object(_AVAILABILITY, example=_EXAMPLE),
    "Availability1_2": an_object({**_AVAILABILITY, "openings": a_list(_IN_REGIONS)}, example=_EXAMPLE),
}
