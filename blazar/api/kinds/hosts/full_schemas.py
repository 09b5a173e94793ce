# SPDX-License-Identifier: Apache-2.0
"""Schemas of hosts from version 1.1 on: requests, and components of the OpenAPI document."""

from __future__ import annotations

from blazar.api.kinds.hosts.schemas import HOST_CREATE as CREATE_1_0
from blazar.api.kinds.hosts.schemas import HOST_UPDATE as UPDATE_1_0
from blazar.api.moments import MOST_CHARACTERS
from blazar.api.shapes import FLAG, LINKS, NUMBER, TEXT, TEXT_OR_NULL, ZULU, ZULU_OR_NULL, Json, a_list, an_object
from blazar.api.validation import Schema

_DISABLED: Schema = {
    "type": ["object", "null"],
    "description": 'null, or an object such as {"reason": "fan replaced", "until": "+P3D"}',
    "additionalProperties": False,
    "properties": {
        "reason": {
            "type": ["string", "null"],
            "maxLength": 1000,
            "description": "why, in at most 1000 characters; or null",
        },
        "until": {
            "type": ["string", "null"],
            "maxLength": MOST_CHARACTERS,
            "description": "when it is enabled by itself: a date, or a duration from now such as +P3D; or null",
        },
    },
}
_PROJECTS: Schema = {
    "type": ["array", "null"],
    "minItems": 1,
    "maxItems": 1000,
    "items": {"type": "string", "minLength": 1, "maxLength": 255, "description": "the id of a project"},
    "description": "a list of project ids, or null for all projects",
}


def _properties(value: Schema) -> Schema:
    return {
        "type": "object",
        "maxProperties": 500,
        "additionalProperties": value,
        "description": 'an object of at most 500 properties, such as {"gpu": "A100"}',
    }


HOST_CREATE: Schema = {
    "type": "object",
    "additionalProperties": False,
    "description": "an object with name or id",
    "properties": {
        "name": CREATE_1_0["properties"]["name"],
        "id": CREATE_1_0["properties"]["id"],
        "properties": _properties(CREATE_1_0["additionalProperties"]),
        "disabled": _DISABLED,
        "authorized_projects": _PROJECTS,
    },
}
HOST_UPDATE: Schema = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": False,
    "description": "an object with properties, disabled or authorized_projects",
    "properties": {
        "properties": _properties(UPDATE_1_0["additionalProperties"]),
        "disabled": _DISABLED,
        "authorized_projects": _PROJECTS,
    },
}

_VALUES: Json = {"type": "object", "additionalProperties": TEXT}
_HOST: Json = {
    "id": TEXT,
    "label": {**TEXT, "description": "what users see of it: random, and new at each registration"},
    "hypervisor_hostname": TEXT,
    "service_name": TEXT_OR_NULL,
    "hypervisor_type": TEXT_OR_NULL,
    "hypervisor_version": {"type": ["integer", "null"]},
    "availability_zone": TEXT_OR_NULL,
    "cpu_info": {"description": "what Nova says of the processor"},
    "capacity": {"type": "object", "additionalProperties": NUMBER},
    "traits": a_list(TEXT),
    "properties": _VALUES,
    "reservable": {**FLAG, "description": "takes new leases: it has not failed and is not disabled"},
    "disabled": {
        **an_object({"reason": TEXT_OR_NULL, "since": ZULU_OR_NULL, "until": ZULU_OR_NULL}),
        "type": ["object", "null"],
    },
    "failure": {**an_object({"reason": TEXT_OR_NULL, "since": ZULU}), "type": ["object", "null"]},
    "authorized_projects": {**a_list(TEXT), "type": ["array", "null"], "description": "null: all projects"},
    "created_at": ZULU,
    "updated_at": ZULU_OR_NULL,
    "links": LINKS,
}
HOST_KEYS = tuple(key for key in _HOST if key != "id")
_EXAMPLE: Json = {
    "id": "12",
    "label": "h-2mm8qe",
    "hypervisor_hostname": "cn12.example",
    "service_name": "cn12",
    "hypervisor_type": "QEMU",
    "hypervisor_version": 8002000,
    "availability_zone": "az-1",
    "cpu_info": {"arch": "x86_64"},
    "capacity": {"DISK_GB": 890, "MEMORY_MB": 515000, "VCPU": 64},
    "traits": ["HW_CPU_X86_AVX512F"],
    "properties": {"gpu": "A100", "rack": "r7"},
    "reservable": False,
    "disabled": {"reason": "fan replaced", "since": "2026-11-22T08:00:00Z", "until": "2026-12-01T00:00:00Z"},
    "failure": None,
    "authorized_projects": None,
    "created_at": "2026-03-01T09:00:00Z",
    "updated_at": "2026-11-22T08:00:00Z",
    "links": [],
}
COMPONENTS: Json = {
    "Host1_1": an_object(_HOST, example=_EXAMPLE),
    "HostInList1_1": an_object(_HOST, optional=HOST_KEYS, example={"id": "12", "label": "h-2mm8qe"}),
}
