# SPDX-License-Identifier: Apache-2.0
"""What all versions take for a capability of a host, and what they take beside that."""

from __future__ import annotations

from collections.abc import Mapping

from blazar.model.errors import InvalidInput

_SHADOWS = frozenset({"name", "trust_id", "disabled", "authorized_projects", "failure", "failed_since"})
"""Version 1 shows capabilities beside a host's own keys, of which these are not the cloud's."""


def capabilities(given: Mapping[str, object]) -> dict[str, str]:
    """Return capabilities to set, as texts; InvalidInput if one would pass for something else."""
    shadows = sorted(given.keys() & _SHADOWS)
    if shadows:
        raise InvalidInput(f"{shadows[0]} is not a capability and can not be changed; choose another key")
    return {key: _text(value) for key, value in given.items()}


def _text(value: object) -> str:
    # The existing Blazar hands the value to its database, where true is 1.
    return str(int(value)) if isinstance(value, bool) else str(value)


def capability_changes(given: Mapping[str, object]) -> dict[str, str | None]:
    """Return capabilities to set, or to take away where the value is null."""
    return {key: None if given[key] is None else text for key, text in capabilities(given).items()}


def flag(given: object) -> bool:
    """Return what true or false says; clients of API 1.0 write it as a text as well."""
    return given is True or given in ("true", "True")


def projects(given: object) -> tuple[str, ...] | None:
    """Return the projects that a host is for; None for all."""
    if given is None:
        return None
    names = given.split(",") if isinstance(given, str) else given
    found = tuple(dict.fromkeys(name.strip() for name in names if name.strip())) if isinstance(names, list) else ()
    if not found:
        raise InvalidInput("authorized_projects names no project; give ids of projects, or null for all projects")
    return found
