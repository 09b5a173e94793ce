# SPDX-License-Identifier: Apache-2.0
"""What operators may say of a resource of any kind, and how the API shows it: properties, projects, out of use or not.

The fields are ``properties``, ``disabled`` and ``authorized_projects``, at registration and in a change, from 1.1 on.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from blazar.api.http.bodies import Schema
from blazar.api.http.shapes import FLAG, TEXT, TEXT_OR_NULL, ZULU, ZULU_OR_NULL, Json, a_list, an_object
from blazar.model.base.clock import zulu
from blazar.model.base.dates import MOST_CHARACTERS, in_body, moment_or_duration
from blazar.model.base.errors import InvalidInput, pointer_to, pointing_at
from blazar.model.base.moments import NOW, Duration
from blazar.model.resources.changes import Disabling, Registration, ResourceChange
from blazar.model.resources.resource import Resource

CAPABILITY: Schema = {
    "type": ["string", "integer", "number", "boolean"],
    "maxLength": 65535,
    "description": "a capability's value: a string, a number, true or false (stored as a string)",
}
CAPABILITY_CHANGE: Schema = {
    **CAPABILITY,
    "type": [*CAPABILITY["type"], "null"],
    "description": "a capability's value: a string, a number, true or false; or null to remove the capability",
}
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


def fields(value: Schema) -> Schema:
    """Return the schemas of these fields in a request; ``value`` is that of the value of a property."""
    return {
        "properties": {
            "type": "object",
            "maxProperties": 500,
            "additionalProperties": value,
            "description": 'an object of at most 500 properties, such as {"gpu": "A100"}',
        },
        "disabled": _DISABLED,
        "authorized_projects": _PROJECTS,
    }


CHANGE: Schema = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": False,
    "description": "an object with properties, disabled or authorized_projects",
    "properties": fields(CAPABILITY_CHANGE),
}
SHOWN: Json = {
    "properties": {"type": "object", "additionalProperties": TEXT},
    "reservable": {**FLAG, "description": "takes new leases: it has not failed and is not disabled"},
    "disabled": {
        **an_object({"reason": TEXT_OR_NULL, "since": ZULU_OR_NULL, "until": ZULU_OR_NULL}),
        "type": ["object", "null"],
    },
    "failure": {**an_object({"reason": TEXT_OR_NULL, "since": ZULU}), "type": ["object", "null"]},
    "authorized_projects": {**a_list(TEXT), "type": ["array", "null"], "description": "null: all projects"},
    "created_at": ZULU,
    "updated_at": ZULU_OR_NULL,
}
"""The schemas of what ``shown`` returns."""


def render_state(resource: Resource) -> Json:
    """Render what operators have said of a resource, and its condition."""
    failed = resource.failed_since
    projects = resource.authorized_projects
    return {
        "properties": dict(resource.capabilities),
        "reservable": resource.reservable,
        "disabled": _render_disabled(resource),
        "failure": None if failed is None else {"reason": resource.failure, "since": zulu(failed)},
        "authorized_projects": None if projects is None else sorted(projects),
        "created_at": zulu(resource.created_at),
        "updated_at": None if resource.updated_at is None else zulu(resource.updated_at),
    }


def _render_disabled(resource: Resource) -> Json | None:
    if not resource.disabled:
        return None
    since, until = resource.disabled_since, resource.disabled_until
    return {
        "reason": resource.disabled_reason,
        "since": None if since is None else zulu(since),
        "until": None if until is None else zulu(until),
    }


def registration(given: Json, body: Json) -> Registration:
    """Return the request to register the resource that ``given`` names. InvalidInput."""
    return Registration(
        given,
        {name: text for name, text in _properties(body).items() if text is not None},
        disabled=body.get("disabled") is not None,
        open_to=_projects(body.get("authorized_projects")),
        disabling=_disabling(body.get("disabled")) or Disabling(),
    )


def change(body: Json, revisions: tuple[int, ...] | None) -> ResourceChange:
    """Return the change that a body describes; ``revisions`` are those that the resource may have. InvalidInput."""
    return ResourceChange(
        _properties(body),
        disabled=body["disabled"] is not None if "disabled" in body else None,
        open_to=_projects(body.get("authorized_projects")),
        sets_projects="authorized_projects" in body,
        disabling=_disabling(body.get("disabled")),
        revisions=revisions,
        attributes=body.get("attributes", {}),
    )


def _properties(body: Json) -> Mapping[str, str | None]:
    """Return the properties to set, and to take away where the value is null. InvalidInput."""
    given = body.get("properties", {})
    for name, value in given.items():
        if name.startswith("$") and value is not None:
            # Such a one was possible before 1.1, and can still be taken away.
            raise InvalidInput(
                f"properties.{name[:80]} begins with $, which is how requirements mark a property; leave the $ out",
                at=pointer_to(("properties", name)),
            )
    with pointing_at("/properties"):
        return capability_changes(given)


def _projects(given: list[str] | None) -> tuple[str, ...] | None:
    with pointing_at("/authorized_projects"):
        return projects(given)


def _disabling(given: Json | None) -> Disabling | None:
    if given is None:
        return None
    reason, text = given.get("reason"), given.get("until")
    if text is None:
        return Disabling(reason)
    place = in_body("disabled", "until")
    until = moment_or_duration(text, place)
    if isinstance(until, Duration):
        return Disabling(reason, lasting=until)
    if until is NOW:
        raise place.invalid(text, "a later date, a duration such as +P3D, or null", "date_in_past")
    assert isinstance(until, datetime)
    return Disabling(reason, until)


FLAT_FIELDS: Schema = {
    "disabled": {
        "enum": [True, False, "true", "false", "True", "False"],
        "description": "true (it takes no new leases) or false",
    },
    "authorized_projects": {
        "type": ["array", "string", "null"],
        "minItems": 1,
        "maxItems": 1000,
        "minLength": 1,
        "maxLength": 65535,
        "items": {"type": "string", "minLength": 1, "maxLength": 255, "description": "the id of a project"},
        "description": "a list of project ids (or a comma-separated string), or null for all projects",
    },
}
"""Fields that are sent beside capabilities up to version 1.0, and are not capabilities."""


def flag(given: object) -> bool:
    """Return a boolean; clients of API 1.0 may send it as a string."""
    return given is True or given in ("true", "True")


_NOT_CAPABILITIES = frozenset({"name", "trust_id", "disabled", "authorized_projects", "failure", "failed_since"})
"""Keys of a resource in version 1 that do not come from the cloud; capabilities of these names would hide them."""


def capabilities(given: Mapping[str, object]) -> dict[str, str]:
    """Return capabilities to set, as strings; InvalidInput if one has the name of another field of a resource."""
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


def projects(given: object) -> tuple[str, ...] | None:
    """Return the projects that may reserve a resource; None for all projects."""
    if given is None:
        return None
    names = given.split(",") if isinstance(given, str) else given
    found = tuple(dict.fromkeys(name.strip() for name in names if name.strip())) if isinstance(names, list) else ()
    if not found:
        raise InvalidInput("authorized_projects names no project; give project ids, or null for all projects")
    return found
