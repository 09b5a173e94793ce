# SPDX-License-Identifier: Apache-2.0
"""Schemas of requests about leases from 1.1 on: what each of our resource types takes, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping

from blazar.api.http.shapes import Json
from blazar.api.leases.v1_1.reminders import CHANGED_REMINDERS, REMINDERS
from blazar.model.base import dates
from blazar.model.leases.states import LeaseKind
from blazar.resources.request_schemas import SCHEMAS

_DATE = {"type": "string", "maxLength": 64}
_START: Json = {**_DATE, "description": dates.DATE_FORMAT}
_END: Json = {**_DATE, "description": f"{dates.DATE_FORMAT}, or a duration from the start such as +P3D or +72h"}
_BEFORE_END: Json = {
    "type": ["string", "null"],
    "maxLength": 64,
    "description": "a date, a duration from the start such as +P1D, or before the end such as -PT2H; null for the "
    "operator's lead time",
}
_ZONE: Json = {"type": "string", "maxLength": 64, "description": "the name of a time zone such as Europe/Paris"}
_NAME: Json = {"type": "string", "minLength": 1, "maxLength": 80, "description": "a string of 1 to 80 characters"}
_ID: Json = {"type": "string", "minLength": 1, "maxLength": 255, "description": "an id"}
_TYPE: Json = {
    "type": "string",
    "minLength": 1,
    "maxLength": 66,
    "description": "a resource type such as 'physical:host'",
}
_KIND: Json = {
    "enum": [str(kind) for kind in LeaseKind],
    "description": "scheduled: handed over at its start; immediate: handed over now, with the answer, or refused; "
    "retries: handed over at its start, and if that fails, tried again when its turn comes; best_effort: handed over "
    "now, or when servers of others have been moved off its hosts",
}
_WAIT: Json = {
    "type": ["object", "null"],
    "required": ["until"],
    "additionalProperties": False,
    "properties": {
        "until": {**_DATE, "description": f"{dates.DATE_FORMAT}, or a duration from now such as +P3D"},
        "tries": {
            "type": "integer",
            "minimum": 1,
            "maximum": 100,
            "description": "how many tries of a lease of the kind retries may fail; by default as the operator has set",
        },
        "latest": {
            **_DATE,
            "description": f"the latest start that will do: {dates.DATE_FORMAT}, or a duration from the start "
            "such as +PT6H; by default any up to until",
        },
        "at_least": {
            **_DATE,
            "description": "how long it has to be at least, such as PT4H, if it cannot be as long as it asks for",
        },
    },
    "description": "how the lease waits for its turn if there is not enough; left out: it is refused then",
}
_EXTEND: Json = {
    "type": ["object", "null"],
    "required": ["until"],
    "additionalProperties": False,
    "properties": {"until": {**_DATE, "description": f"{dates.DATE_FORMAT}, or a duration from the end such as +P3D"}},
    "description": "up to when the lease is prolonged if nobody else wants its resources; null: it is not",
}
KEEP_HOSTS: Json = {
    "type": "boolean",
    "description": "true or false: whether the lease keeps its hosts until it starts",
}
_CONFIRM_WITHIN: Json = {
    **_DATE,
    "description": "how long from now somebody may confirm the lease, a duration such as PT10M; then it is deleted "
    "unless somebody has; left out: it is firm at once",
}
_REGION: Json = {"type": "string", "minLength": 1, "maxLength": 64, "description": "the name of a region"}
"""Not in a change: a reservation stays in its region."""


def _if_of(resource_type: str) -> Json:
    schema = {key: value for key, value in SCHEMAS[resource_type].items() if key != "examples"}
    return {
        "if": {"properties": {"resource_type": {"const": resource_type}}, "required": ["resource_type"]},
        "then": {**schema, "properties": {"resource_type": _TYPE, "region": _REGION, **schema["properties"]}},
    }


RESERVATIONS: Json = {
    "type": "array",
    "minItems": 1,
    "maxItems": 100,
    "description": "a list of 1 to 100 reservations",
    "items": {
        "type": "object",
        "required": ["resource_type"],
        "maxProperties": 100,
        "description": "an object with resource_type and the fields of that type",
        "properties": {"resource_type": _TYPE, "region": _REGION},
        "allOf": [_if_of(resource_type) for resource_type in SCHEMAS],
    },
}
"""The reservations of a new lease; types of other packages check their own fields."""


_DATES_AND_NAME: Json = {
    "name": _NAME,
    "start_date": _START,
    "end_date": _END,
    "before_end_date": _BEFORE_END,
    "time_zone": _ZONE,
}


MAX_PRICE: Json = {
    "type": "string",
    "pattern": r"^[0-9]{1,9}(\.[0-9]{1,6})?$",
    "description": 'an amount as a string, such as "640.00", with at most 9 digits and 6 decimals: a lease that costs '
    "more is refused",
}


QUOTED_AT: Json = {
    **_DATE,
    "description": "the quoted_at of a price that was told, such as 2030-04-01T08:00:00Z: it holds for some minutes",
}


LEASE_CREATE: Json = {
    "type": "object",
    "required": ["name", "end_date", "reservations"],
    "additionalProperties": False,
    "properties": {
        **_DATES_AND_NAME,
        "kind": _KIND,
        "wait": _WAIT,
        "extend_if_free": _EXTEND,
        "keep_hosts": KEEP_HOSTS,
        "reminders": REMINDERS,
        "max_price": MAX_PRICE,
        "quoted_at": QUOTED_AT,
        "confirm_within": _CONFIRM_WITHIN,
        "reservations": RESERVATIONS,
    },
}
"""A new lease."""


CHANGED_RESERVATIONS: Json = {
    "type": "array",
    "minItems": 1,
    "maxItems": 100,
    "description": "a list of the lease's reservations, each with its id and the fields to change",
    "items": {
        "type": "object",
        "required": ["id"],
        "maxProperties": 100,
        "description": "an object with the reservation's id and the fields to change",
        "properties": {"id": {**_ID, "description": "the id of one of the lease's reservations"}},
    },
}
"""The reservations of a change; ``changed`` has what each type takes."""


LEASE_UPDATE: Json = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        **_DATES_AND_NAME,
        "extend_if_free": _EXTEND,
        "keep_hosts": KEEP_HOSTS,
        "reminders": CHANGED_REMINDERS,
        "max_price": MAX_PRICE,
        "reservations": CHANGED_RESERVATIONS,
    },
}
"""A change of a lease."""


_GIVEN_UP: Json = {
    "type": "array",
    "minItems": 1,
    "maxItems": 1000,
    "items": {"type": "string", "minLength": 1, "maxLength": 255, "description": "a host of the reservation"},
    "description": "a list of hosts that the reservation gives up, as the lease shows them",
}

OF_CHANGES: Mapping[str, Json] = {"physical:host": {"give_up": _GIVEN_UP}}
"""What only a change may have, by resource type."""

CHANGES: Mapping[str, Json] = {
    resource_type: {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "id": _ID,
            "resource_type": _TYPE,
            **schema["properties"],
            **OF_CHANGES.get(resource_type, {}),
        },
        "description": "an object with the reservation's id and the fields to change",
    }
    for resource_type, schema in SCHEMAS.items()
}
"""The schema of the change of a reservation, by resource type."""
