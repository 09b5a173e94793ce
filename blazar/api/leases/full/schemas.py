# SPDX-License-Identifier: Apache-2.0
"""Schemas of requests about leases from 1.1 on: what each of our resource types takes, and nothing else."""

from __future__ import annotations

from blazar.api import moments
from blazar.api.shapes import Json
from blazar.resources.described import SCHEMAS

_DATE = {"type": "string", "maxLength": 64}
_START: Json = {**_DATE, "description": moments.DATE_FORMAT}
_END: Json = {**_DATE, "description": f"{moments.DATE_FORMAT}, or a duration from the start such as +P3D or +72h"}
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
_REGION: Json = {"type": "string", "minLength": 1, "maxLength": 64, "description": "the name of a region"}
"""Not in a change: a reservation stays in its region."""


def _if_of(resource_type: str, more: Json) -> Json:
    schema = {key: value for key, value in SCHEMAS[resource_type].items() if key != "examples"}
    return {
        "if": {"properties": {"resource_type": {"const": resource_type}}, "required": ["resource_type"]},
        "then": {**schema, "properties": {"resource_type": _TYPE, **more, **schema["properties"]}},
    }


def reservations(*, regions: bool) -> Json:
    """Return the schema of the reservations of a new lease; types of other packages check their own fields."""
    more = {"region": _REGION} if regions else {}
    return {
        "type": "array",
        "minItems": 1,
        "maxItems": 100,
        "description": "a list of 1 to 100 reservations",
        "items": {
            "type": "object",
            "required": ["resource_type"],
            "maxProperties": 100,
            "description": "an object with resource_type and the fields of that type",
            "properties": {"resource_type": _TYPE, **more},
            "allOf": [_if_of(resource_type, more) for resource_type in SCHEMAS],
        },
    }


_DATES_AND_NAME: Json = {
    "name": _NAME,
    "start_date": _START,
    "end_date": _END,
    "before_end_date": _BEFORE_END,
    "time_zone": _ZONE,
}


def lease_create(*, regions: bool) -> Json:
    """Return the schema of a new lease; ``regions``: its reservations may name theirs."""
    return {
        "type": "object",
        "required": ["name", "end_date", "reservations"],
        "additionalProperties": False,
        "properties": {**_DATES_AND_NAME, "reservations": reservations(regions=regions)},
    }


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
    "properties": {**_DATES_AND_NAME, "reservations": CHANGED_RESERVATIONS},
}

CHANGES: Json = {
    resource_type: {
        "type": "object",
        "additionalProperties": False,
        "properties": {"id": _ID, "resource_type": _TYPE, **schema["properties"]},
        "description": "an object with the reservation's id and the fields to change",
    }
    for resource_type, schema in SCHEMAS.items()
}
"""The schema of the change of a reservation, by resource type."""
