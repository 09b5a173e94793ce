# SPDX-License-Identifier: Apache-2.0
"""Parse requests about hosts: capabilities for all versions, and what only version 1 has."""

from __future__ import annotations

from collections.abc import Mapping

from blazar.api.context import identifier
from blazar.api.kinds.hosts import schemas
from blazar.api.routes import in_path
from blazar.api.shapes import Json
from blazar.model.errors import InvalidInput
from blazar.model.requests import Registration, ResourceChange
from blazar.model.resource import HOST, unknown

HOST_ID = in_path("host_id", "the host's id, the number of its hypervisor in Nova")

_NOT_CAPABILITIES = frozenset({"name", "trust_id", "disabled", "authorized_projects", "failure", "failed_since"})
"""Keys of a host in version 1 that do not come from the cloud; capabilities of these names would hide them."""


def capabilities(given: Mapping[str, object]) -> dict[str, str]:
    """Return capabilities to set, as strings; InvalidInput if one has the name of another field of a host."""
    taken = sorted(given.keys() & _NOT_CAPABILITIES)
    if taken:
        raise InvalidInput(f"{taken[0]} is not a capability and cannot be changed; choose another key")
    return {key: _text(value) for key, value in given.items()}


def _text(value: object) -> str:
    # The existing Blazar passes the value to its database, which stores true as 1.
    return str(int(value)) if isinstance(value, bool) else str(value)


def capability_changes(given: Mapping[str, object]) -> dict[str, str | None]:
    """Return capabilities to set, and to remove where the value is null."""
    return {key: None if given[key] is None else text for key, text in capabilities(given).items()}


def flag(given: object) -> bool:
    """Return a boolean; clients of API 1.0 may send it as a string."""
    return given is True or given in ("true", "True")


def projects(given: object) -> tuple[str, ...] | None:
    """Return the projects that may reserve a host; None for all projects."""
    if given is None:
        return None
    names = given.split(",") if isinstance(given, str) else given
    found = tuple(dict.fromkeys(name.strip() for name in names if name.strip())) if isinstance(names, list) else ()
    if not found:
        raise InvalidInput("authorized_projects names no project; give project ids, or null for all projects")
    return found


def host_id(text: str) -> str:
    """Return the host id from a path; NotFound if it cannot be an id."""
    key = identifier(text)
    if key == "-":
        raise unknown(HOST, text)
    return key


def request(body: Json) -> Registration:
    """Return the request to register a host."""
    given = {key: value for key, value in body.items() if key not in schemas.HOST_CREATE["properties"]}
    return Registration(
        {"name": body.get("name"), "id": str(int(body["id"])) if "id" in body else None},
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
