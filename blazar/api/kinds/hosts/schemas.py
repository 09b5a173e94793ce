# SPDX-License-Identifier: Apache-2.0
"""JSON schemas of requests about hosts, as data."""

from __future__ import annotations

from blazar.api.kinds.changes import CAPABILITY, CAPABILITY_CHANGE, FLAT_FIELDS
from blazar.api.validation import Schema
from blazar.resources.hosts.ids import HOST_ID, HOST_ID_DESCRIPTION

_READ_FROM_NOVA = (
    "availability_zone",
    "hypervisor_hostname",
    "service_name",
    "vcpus",
    "cpu_info",
    "hypervisor_type",
    "hypervisor_version",
    "memory_mb",
    "local_gb",
    "trust_id",
)
"""Fields that a client may send when it registers a host, and that are read from Nova instead."""

HOST_CREATE: Schema = {
    "type": "object",
    "maxProperties": 500,
    "description": "an object of at most 500 keys",
    "properties": {
        "name": {"type": "string", "maxLength": 255, "description": "the hypervisor's hostname"},
        "id": {
            "type": ["string", "integer"],
            "pattern": HOST_ID,
            "minimum": 0,
            "maxLength": 255,
            "description": HOST_ID_DESCRIPTION,
        },
        **FLAT_FIELDS,
        **dict.fromkeys(_READ_FROM_NOVA, {"description": "read from Nova; a value in the request is ignored"}),
    },
    "additionalProperties": CAPABILITY,
}

HOST_UPDATE: Schema = {
    "type": "object",
    "minProperties": 1,
    "maxProperties": 500,
    "description": 'an object with at least one capability, for example {"gpu": "A100"}',
    "properties": FLAT_FIELDS,
    "additionalProperties": CAPABILITY_CHANGE,
}

ALLOCATION_UPDATE: Schema = {
    "type": "object",
    "required": ["reservation_id"],
    "additionalProperties": False,
    "properties": {
        "reservation_id": {
            "type": "string",
            "maxLength": 255,
            "description": "the id of the reservation to move to another host",
        }
    },
}

PROPERTY_UPDATE: Schema = {
    "type": "object",
    "required": ["private"],
    "additionalProperties": False,
    "properties": {"private": {"type": "boolean", "description": "true or false"}},
}
