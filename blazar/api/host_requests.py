"""What all versions take for a capability of a host."""

from __future__ import annotations

from collections.abc import Mapping

from blazar.model.errors import InvalidInput

_SHADOWS = frozenset({"name", "trust_id"})
"""Version 1 shows capabilities beside a host's own keys, of which these two are not the cloud's."""


def capabilities(given: Mapping[str, object]) -> dict[str, str]:
    """Return capabilities to set, as texts; InvalidInput if one would pass for something else."""
    shadows = sorted(given.keys() & _SHADOWS)
    if shadows:
        raise InvalidInput(f"{shadows[0]} is not a capability and can not be changed; choose another key")
    return {key: value if isinstance(value, str) else str(value) for key, value in given.items()}


def capability_changes(given: Mapping[str, object]) -> dict[str, str | None]:
    """Return capabilities to set, or to take away where the value is null."""
    return {key: None if given[key] is None else text for key, text in capabilities(given).items()}
