# SPDX-License-Identifier: Apache-2.0
"""Parse requests about hosts: capabilities for all versions, and what only version 1 has."""

from __future__ import annotations

from blazar.api.kinds.changes import capabilities, capability_changes, flag, projects
from blazar.api.kinds.handlers import resource_id
from blazar.api.kinds.hosts import schemas
from blazar.api.routes import in_path
from blazar.api.shapes import Json
from blazar.model.requests import Registration, ResourceChange
from blazar.model.resource import HOST
from blazar.resources.hosts.ids import HOST_ID_DESCRIPTION, normal

HOST_ID = in_path("host_id", f"the host's id: {HOST_ID_DESCRIPTION}")


def host_id(text: str) -> str:
    """Return the host id from a path; NotFound if it cannot be an id."""
    return resource_id(HOST, text)


def request(body: Json) -> Registration:
    """Return the request to register a host."""
    given = {key: value for key, value in body.items() if key not in schemas.HOST_CREATE["properties"]}
    return Registration(
        {"name": body.get("name"), "id": normal(body["id"]) if "id" in body else None},
        capabilities(given),
        disabled=flag(body.get("disabled", False)),
        open_to=projects(body.get("authorized_projects")),
    )


def change(body: Json) -> ResourceChange:
    """Return the change of a host that the body describes."""
    given = {key: value for key, value in body.items() if key not in schemas.HOST_UPDATE["properties"]}
    return ResourceChange(
        capability_changes(given),
        disabled=flag(body["disabled"]) if "disabled" in body else None,
        open_to=projects(body.get("authorized_projects")),
        sets_projects="authorized_projects" in body,
    )
