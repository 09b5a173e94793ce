# SPDX-License-Identifier: Apache-2.0
"""Requests about hosts: who may make them, their schemas, and how they are read."""

from __future__ import annotations

from blazar.api.http.bodies import Schema
from blazar.api.http.routes import ADMIN, Rule, in_path
from blazar.api.http.shapes import Json
from blazar.api.resources.handlers import resource_id
from blazar.api.resources.requests import (
    CAPABILITY,
    CAPABILITY_CHANGE,
    FLAT_FIELDS,
    capabilities,
    capability_changes,
    flag,
    projects,
)
from blazar.model.resources.changes import Registration, ResourceChange
from blazar.model.resources.resource import HOST
from blazar.resources.hosts.registration import HOST_ID as HOST_ID_PATTERN
from blazar.resources.hosts.registration import HOST_ID_DESCRIPTION, normalize_host_id

HOST_ID = in_path("host_id", f"the host's id: {HOST_ID_DESCRIPTION}")


def host_id(text: str) -> str:
    """Return the host id from a path; NotFound if it cannot be an id."""
    return resource_id(HOST, text)


def request(body: Json) -> Registration:
    """Return the request to register a host."""
    given = {key: value for key, value in body.items() if key not in HOST_CREATE["properties"]}
    return Registration(
        {"name": body.get("name"), "id": normalize_host_id(body["id"]) if "id" in body else None},
        capabilities(given),
        disabled=flag(body.get("disabled", False)),
        open_to=projects(body.get("authorized_projects")),
    )


def change(body: Json) -> ResourceChange:
    """Return the change of a host that the body describes."""
    given = {key: value for key, value in body.items() if key not in HOST_UPDATE["properties"]}
    return ResourceChange(
        capability_changes(given),
        disabled=flag(body["disabled"]) if "disabled" in body else None,
        open_to=projects(body.get("authorized_projects")),
        sets_projects="authorized_projects" in body,
    )


GET = Rule("blazar:oshosts:get", ADMIN, "List and show hosts.")
POST = Rule("blazar:oshosts:post", ADMIN, "Register a host.")
PUT = Rule("blazar:oshosts:put", ADMIN, "Update a host's capabilities, disabled flag and authorized projects.")
DELETE = Rule("blazar:oshosts:delete", ADMIN, "Unregister a host.")
REFRESH = Rule("blazar:oshosts:refresh", ADMIN, "Refresh a host's data from the cloud.")


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
            "pattern": HOST_ID_PATTERN,
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
