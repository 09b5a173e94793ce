# SPDX-License-Identifier: Apache-2.0
"""Schemas of requests about leases from 1.1 on: what each of our resource types takes, and nothing else."""

from __future__ import annotations

from blazar.api import moments
from blazar.api.shapes import Json
from blazar.model.requirements import LONGEST_TEXT

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
_AMOUNT: Json = {"type": "integer", "minimum": 1, "maximum": 2**31 - 1, "description": "a whole number from 1"}
_SIZE: Json = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1, "description": "a whole number"}
_REQUIREMENT: Json = {
    "type": ["array", "string", "null"],
    "description": 'a requirement as a list such as ["==", "$gpu", "A100"], or its JSON text of at most '
    f"{LONGEST_TEXT} characters",
}
_AFFINITY: Json = {"type": ["boolean", "null"], "description": "true, false or null"}
_ID: Json = {"type": "string", "minLength": 1, "maxLength": 255, "description": "an id"}
_ACTION: Json = {
    "enum": ["default", "none", "notification", "snapshot", "migration"],
    "description": "one of default, none, notification, snapshot and migration",
}
_ADDRESSES: Json = {
    "type": "array",
    "maxItems": 1000,
    "items": {"type": "string", "maxLength": 64, "description": "an IP address"},
    "description": "a list of addresses",
}
_DESCRIPTION: Json = {"type": "string", "maxLength": 255, "description": "a text of at most 255 characters"}
_NETWORK_NAME: Json = {**_DESCRIPTION, "minLength": 1, "description": "a name of 1 to 255 characters"}
_CLASS: Json = {"description": "the class of the resources, such as microscope"}
_NUMBER: Json = {"description": "a whole number from 1"}
"""Of these the type itself checks the values."""

_COMMON: Json = {"before_end": _ACTION}
FIELDS: Json = {
    "physical:host": {
        "min": _AMOUNT,
        "max": _AMOUNT,
        "hypervisor_properties": _REQUIREMENT,
        "resource_properties": _REQUIREMENT,
        **_COMMON,
    },
    "virtual:instance": {
        "amount": _AMOUNT,
        "vcpus": _AMOUNT,
        "memory_mb": _AMOUNT,
        "disk_gb": _SIZE,
        "affinity": _AFFINITY,
        "resource_properties": _REQUIREMENT,
        **_COMMON,
    },
    "flavor:instance": {"flavor_id": _ID, "amount": _AMOUNT, "affinity": _AFFINITY, **_COMMON},
    "virtual:floatingip": {"network_id": _ID, "amount": _AMOUNT, "required_floatingips": _ADDRESSES, **_COMMON},
    "network": {
        "network_name": _NETWORK_NAME,
        "network_description": _DESCRIPTION,
        "network_properties": _REQUIREMENT,
        "resource_properties": _REQUIREMENT,
        **_COMMON,
    },
    "generic": {
        "class": _CLASS,
        "min": _NUMBER,
        "max": _NUMBER,
        "amount": _NUMBER,
        "resource_properties": _REQUIREMENT,
        **_COMMON,
    },
}
"""The fields of each of our types."""
_REQUIRED: Json = {
    "physical:host": ["min"],
    "virtual:instance": ["amount", "vcpus", "memory_mb", "disk_gb"],
    "flavor:instance": ["flavor_id", "amount"],
    "virtual:floatingip": ["network_id", "amount"],
    "network": ["network_name"],
    "generic": ["class"],
}
DEFAULTS: Json = {
    "physical:host": {"hypervisor_properties": [], "resource_properties": []},
    "virtual:instance": {"affinity": None, "resource_properties": []},
    "flavor:instance": {"affinity": None},
    "virtual:floatingip": {"required_floatingips": []},
    "network": {"network_description": "", "network_properties": [], "resource_properties": []},
}
_TYPE: Json = {
    "type": "string",
    "minLength": 1,
    "maxLength": 66,
    "description": "a resource type such as 'physical:host'",
}
_WHAT = "an object with resource_type and the fields of that type"


def _if_of(resource_type: str) -> Json:
    return {
        "if": {"properties": {"resource_type": {"const": resource_type}}, "required": ["resource_type"]},
        "then": {
            "type": "object",
            "required": _REQUIRED[resource_type],
            "additionalProperties": False,
            "properties": {"resource_type": _TYPE, **FIELDS[resource_type]},
            "description": _WHAT,
        },
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
        "description": _WHAT,
        "properties": {"resource_type": _TYPE},
        "allOf": [_if_of(resource_type) for resource_type in FIELDS],
    },
}
"""The reservations of a new lease; types of other packages check their own fields."""

LEASE_CREATE: Json = {
    "type": "object",
    "required": ["name", "end_date", "reservations"],
    "additionalProperties": False,
    "properties": {
        "name": _NAME,
        "start_date": _START,
        "end_date": _END,
        "before_end_date": _BEFORE_END,
        "time_zone": _ZONE,
        "reservations": RESERVATIONS,
    },
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
    "properties": {**LEASE_CREATE["properties"], "reservations": CHANGED_RESERVATIONS},
}

CHANGES: Json = {
    resource_type: {
        "type": "object",
        "additionalProperties": False,
        "properties": {"id": _ID, "resource_type": _TYPE, **fields},
        "description": "an object with the reservation's id and the fields to change",
    }
    for resource_type, fields in FIELDS.items()
}
"""The schema of the change of a reservation, by resource type."""
