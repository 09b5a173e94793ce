# SPDX-License-Identifier: Apache-2.0
"""Hosts in version 2: numeric ids, capabilities in a separate map, no envelope; handlers are those of version 1.

Only hosts of further regions have ids that are texts, as everywhere.
"""

from __future__ import annotations

import re

from blazar.api.http.bodies import Schema
from blazar.api.http.shapes import FLAG, TEXT, Json, an_object
from blazar.api.kinds.hosts import render
from blazar.api.kinds.hosts.components import COMPONENTS as V1
from blazar.api.kinds.hosts.requests import HOST_CREATE as HOST_CREATE_1_0
from blazar.api.kinds.hosts.requests import HOST_UPDATE as HOST_UPDATE_1_0
from blazar.api.resources.requests import FLAT_FIELDS, capabilities, capability_changes
from blazar.model.base.errors import InvalidInput
from blazar.model.resources.changes import Registration, ResourceChange
from blazar.model.resources.resource import Resource
from blazar.resources.hosts.registration import HOST_ID, normalize_host_id

HOST_KEYS = (
    "id",
    "hypervisor_hostname",
    "hypervisor_type",
    "vcpus",
    "hypervisor_version",
    "memory_mb",
    "local_gb",
    "cpu_info",
    "trust_id",
    "extra_capas",
    "created_at",
    "updated_at",
)
ATTRIBUTES_AMONG_CAPABILITIES = ("service_name", "availability_zone", "reservable")
"""Attributes of a host that are shown in ``extra_capas`` although they are not capabilities."""

_NAME = {"type": "string", "maxLength": 255, "description": "the hypervisor's hostname"}

HOST_CREATE: Schema = {
    "type": "object",
    "description": "an object",
    "additionalProperties": False,
    "properties": {
        **{
            key: value
            for key, value in HOST_CREATE_1_0["properties"].items()
            if key not in ATTRIBUTES_AMONG_CAPABILITIES and key not in FLAT_FIELDS
        },
        "name": {**_NAME, "description": "alias of hypervisor_hostname"},
        "hypervisor_hostname": _NAME,
        "extra_capas": {
            "type": "object",
            "maxProperties": 500,
            "description": 'an object of at most 500 capabilities, for example {"gpu": "A100"}',
            "additionalProperties": HOST_CREATE_1_0["additionalProperties"],
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
            "additionalProperties": HOST_UPDATE_1_0["additionalProperties"],
        }
    },
}

_PROPERTIES: Json = {
    **V1["Host"]["properties"],
    "id": {"type": ["integer", "string"], "description": "a number; of another region than the first as RegionTwo:7"},
    "extra_capas": an_object(
        {key: FLAG if key == "reservable" else TEXT for key in ATTRIBUTES_AMONG_CAPABILITIES},
        more={**TEXT, "description": "a capability"},
    ),
}
_V1_EXAMPLE: Json = V1["Host"]["examples"][0]
_EXAMPLE: Json = {
    **_V1_EXAMPLE,
    "id": 12,
    "extra_capas": {"rack": "r7", **{key: _V1_EXAMPLE[key] for key in ATTRIBUTES_AMONG_CAPABILITIES}},
}

COMPONENTS: Json = {
    "HostV2": an_object(
        {key: _PROPERTIES[key] for key in HOST_KEYS}, example={key: _EXAMPLE[key] for key in HOST_KEYS}
    ),
}

LONGEST_ID = 64
_ID = re.compile(HOST_ID)


def host_id(text: str) -> str:
    """Return the host id from a path; InvalidInput if it is not a number."""
    text = text.removesuffix(".json")
    if len(text) > LONGEST_ID or not _ID.fullmatch(text):
        raise InvalidInput(
            f"the host id {text[:80]!r} is not a number; give the number of its hypervisor, as in /v2/os-hosts/12"
        )
    return normalize_host_id(text)


def request(body: Json) -> Registration:
    """Return the request to register a host."""
    names = {body[key] for key in ("name", "hypervisor_hostname") if key in body}
    if len(names) > 1:
        raise InvalidInput("name and hypervisor_hostname are aliases and differ; give one of them")
    given_id = normalize_host_id(body["id"]) if "id" in body else None
    return Registration({"name": next(iter(names), None), "id": given_id}, capabilities(body.get("extra_capas", {})))


def change(body: Json) -> ResourceChange:
    """Return the change of a host that the body describes."""
    return ResourceChange(capability_changes(body["extra_capas"]))


def host(value: Resource) -> Json:
    """Render a host, with a numeric id and its capabilities in a separate map."""
    known = render.host(value)
    attributes = {key: known[key] for key in ATTRIBUTES_AMONG_CAPABILITIES}
    known |= {
        "id": int(value.external_id) if value.external_id.isdigit() else value.external_id,
        "extra_capas": {**value.capabilities, **attributes},
    }
    return {key: known[key] for key in HOST_KEYS}
