# SPDX-License-Identifier: Apache-2.0
"""JSON schemas of request bodies of version 2; those of leases differ from version 1 only in their dates."""

from __future__ import annotations

import copy

from blazar.api import schemas
from blazar.api.schemas import Schema
from blazar.api.v2.render import FACTS_AMONG_CAPABILITIES

_FORMATS = "%Y-%m-%d %H:%M (2030-04-01 08:00) or ISO 8601 (2030-04-01T08:00:00Z)"
_DATE: Schema = {
    "type": "string",
    "maxLength": 64,
    "description": f"a date, in UTC if it has no zone. Required format: {_FORMATS}",
}
_OPTIONAL_DATE: Schema = {
    "type": ["string", "null"],
    "maxLength": 64,
    "description": f"a date strictly inside the lease, or null for the default. Required format: {_FORMATS}",
}


def _of_leases(theirs: Schema) -> Schema:
    ours = copy.deepcopy(theirs)
    properties = ours["properties"]
    properties |= {"start_date": _DATE, "end_date": _DATE, "before_end_date": _OPTIONAL_DATE}
    if "events" in properties:
        description = f"a date, or null. Required format: {_FORMATS}"
        properties["events"]["items"]["properties"]["event_date"] = {**_OPTIONAL_DATE, "description": description}
    return ours


LEASE_CREATE = _of_leases(schemas.LEASE_CREATE)
LEASE_UPDATE = _of_leases(schemas.LEASE_UPDATE)

_NAME = {"type": "string", "maxLength": 255, "description": "the hypervisor's hostname"}

HOST_CREATE: Schema = {
    "type": "object",
    "description": "an object",
    "additionalProperties": False,
    "properties": {
        **{
            key: value
            for key, value in schemas.HOST_CREATE["properties"].items()
            if key not in FACTS_AMONG_CAPABILITIES and key not in schemas.OPERATORS_WORD
        },
        "name": {**_NAME, "description": "alias of hypervisor_hostname"},
        "hypervisor_hostname": _NAME,
        "extra_capas": {
            "type": "object",
            "maxProperties": 500,
            "description": 'an object of at most 500 capabilities, for example {"gpu": "A100"}',
            "additionalProperties": schemas.HOST_CREATE["additionalProperties"],
        },
    },
}

HOST_UPDATE: Schema = {
    "type": "object",
    "required": ["extra_capas"],
    "description": "an object",
    "additionalProperties": False,
    "properties": {
        "extra_capas": {
            "type": "object",
            "minProperties": 1,
            "maxProperties": 500,
            "description": 'an object of 1 to 500 capabilities, for example {"gpu": "A100"}; null removes a capability',
            "additionalProperties": schemas.HOST_UPDATE["additionalProperties"],
        }
    },
}
