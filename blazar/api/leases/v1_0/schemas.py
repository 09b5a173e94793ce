# SPDX-License-Identifier: Apache-2.0
"""JSON schemas of requests about leases at 1.0 and in version 2, as data."""

from __future__ import annotations

import copy

from blazar.api.http.bodies import Schema
from blazar.model.leases.states import EventType

_DATE: Schema = {
    "type": "string",
    "maxLength": 64,
    "description": "a date in UTC. Required format: %Y-%m-%d %H:%M, for example 2030-04-01 08:00, or 'now'",
}
_OPTIONAL_DATE: Schema = {
    "type": ["string", "null"],
    "maxLength": 64,
    "description": "a date in UTC strictly inside the lease. Required format: %Y-%m-%d %H:%M, or null or '' for the "
    "default",
}
_EVENT_DATE: Schema = {**_OPTIONAL_DATE, "description": "a date. Required format: %Y-%m-%d %H:%M"}
_KEYS: Schema = {"maxLength": 255, "description": "an object whose keys have at most 255 characters"}
FIELDS: Schema = {
    "resource_properties": {
        "description": "requirements as in hypervisor_properties; both must hold. A JSON string, or '' for any host"
    },
    "before_end": {
        "description": "action before the end: default (the operator's choice), none, notification (or ''), "
        "snapshot (an image of every server) or, for physical:host, migration (servers move to hosts outside the "
        "freepool and reservation aggregates)"
    },
    "before_end_action": {"description": "alias of before_end"},
    "amount": {
        "description": "virtual:instance, flavor:instance: the number of servers, virtual:floatingip: the number of "
        "addresses; a whole number from 1"
    },
}
"""Fields of reservations that several resource types have; the other ones are described by the kinds.

They are validated by the resource type, because their meaning depends on ``resource_type``.
"""

_NAME: Schema = {"type": "string", "maxLength": 80, "description": "a string of at most 80 characters"}

LEASE_CREATE: Schema = {
    "type": "object",
    "required": ["name", "start_date", "end_date"],
    "additionalProperties": False,
    "properties": {
        "name": _NAME,
        "start_date": _DATE,
        "end_date": _DATE,
        "before_end_date": _OPTIONAL_DATE,
        "reservations": {
            "type": "array",
            "maxItems": 100,
            "description": "a list of at most 100 reservations",
            "items": {
                "type": "object",
                "required": ["resource_type"],
                "maxProperties": 100,
                "propertyNames": _KEYS,
                "description": "an object with resource_type (for example 'physical:host') and the fields of that type",
                "properties": {
                    "resource_type": {
                        "type": "string",
                        "maxLength": 66,
                        "description": "a string, for example 'physical:host'",
                    },
                },
            },
        },
        "events": {
            "type": "array",
            "maxItems": 100,
            "description": "a list of at most 100 custom events; they are stored and trigger no action",
            "items": {
                "type": "object",
                "required": ["event_type"],
                "additionalProperties": False,
                "description": "an object with event_type and event_date (or its alias time)",
                "properties": {
                    "event_type": {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": 66,
                        # A client's event with the type of one of the service's own events would be processed as such.
                        "not": {"enum": [kind.value for kind in EventType]},
                        "description": "a string other than the types of the service's own events, such as end_lease",
                    },
                    "event_date": _EVENT_DATE,
                    "time": _EVENT_DATE,
                },
            },
        },
    },
}

LEASE_UPDATE: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "name": _NAME,
        "start_date": _DATE,
        "end_date": _DATE,
        "before_end_date": _OPTIONAL_DATE,
        "reservations": {
            "type": "array",
            "maxItems": 100,
            "description": "a list of the lease's reservations, each with its id and the fields to change",
            "items": {
                "type": "object",
                "maxProperties": 100,
                "propertyNames": _KEYS,
                "description": "an object with the reservation's id and the fields to change",
                "properties": {
                    "id": {
                        "type": "string",
                        "maxLength": 255,
                        "description": "the id of one of the lease's reservations",
                    },
                    "resource_type": {"type": "string", "maxLength": 66, "description": "the reservation's type"},
                },
            },
        },
    },
}

_FORMATS_OF_V2 = "%Y-%m-%d %H:%M (2030-04-01 08:00) or ISO 8601 (2030-04-01T08:00:00Z)"
_DATE_OF_V2: Schema = {
    "type": "string",
    "maxLength": 64,
    "description": f"a date, in UTC if it has no zone. Required format: {_FORMATS_OF_V2}",
}
_OPTIONAL_DATE_OF_V2: Schema = {
    "type": ["string", "null"],
    "maxLength": 64,
    "description": f"a date strictly inside the lease, or null for the default. Required format: {_FORMATS_OF_V2}",
}


def _of_v2(schema: Schema) -> Schema:
    ours = copy.deepcopy(schema)
    properties = ours["properties"]
    properties |= {"start_date": _DATE_OF_V2, "end_date": _DATE_OF_V2, "before_end_date": _OPTIONAL_DATE_OF_V2}
    if "events" in properties:
        description = f"a date, or null. Required format: {_FORMATS_OF_V2}"
        properties["events"]["items"]["properties"]["event_date"] = {**_OPTIONAL_DATE_OF_V2, "description": description}
    return ours


LEASE_CREATE_V2 = _of_v2(LEASE_CREATE)
LEASE_UPDATE_V2 = _of_v2(LEASE_UPDATE)


def with_fields(schema: Schema, fields: Schema) -> Schema:
    """Return the schema of a request about a lease with these fields of reservations, as the document shows it."""
    described = copy.deepcopy(schema)
    described["properties"]["reservations"]["items"]["properties"] |= fields
    return described
