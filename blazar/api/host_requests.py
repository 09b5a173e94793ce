# SPDX-License-Identifier: Apache-2.0
"""Parse capabilities, flags and projects in requests about hosts, for all versions."""

from __future__ import annotations

from collections.abc import Mapping

from blazar.model.errors import InvalidInput

_SHADOWS = frozenset({"name", "trust_id", "disabled", "authorized_projects", "failure", "failed_since"})
"""Keys of a host in version 1 that do not come from the cloud; capabilities of these names would hide them."""


def capabilities(given: Mapping[str, object]) -> dict[str, str]:
    """Return capabilities to set, as strings; InvalidInput if one has the name of another field of a host."""
    shadows = sorted(given.keys() & _SHADOWS)
    if shadows:
        raise InvalidInput(f"{shadows[0]} is not a capability and cannot be changed; choose another key")
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
