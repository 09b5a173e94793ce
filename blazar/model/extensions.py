# SPDX-License-Identifier: Apache-2.0
"""Extensions that other packages bring, by their entry points. Only what is named is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from blazar.model.errors import InvalidInput

OURS = "blazar"


def offered(namespace: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of a namespace by name. Where another package has a name of ours, ours counts."""
    points = sorted(entry_points(group=namespace), key=lambda point: point.module.partition(".")[0] == OURS)
    return {point.name: point for point in points}


def load(point: EntryPoint, protocol: type, *, named: str, advice: str) -> Any:
    """Return what an entry point is for; InvalidInput, with the true reason, if that does not follow a protocol.

    ``named`` says who names it, and ``advice`` where it is told what such an extension must be.
    """
    package = f" (of {point.dist.name} {point.dist.version})" if point.dist else ""
    try:
        kind = point.load()
    except Exception as error:
        # The border to code of others: importing it may raise anything.
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        missing = getattr(error, "name", None) or ""
        older = missing.partition(".")[0] == OURS
        why = "; it was written for the existing Blazar, which had that module" if older else ""
        raise InvalidInput(
            f"{named} names {point.name}{package}, which can not be loaded: {reason}{why}; take it out, or see {advice}"
        ) from error
    lacking = sorted(name for name in _members(protocol) if not hasattr(kind, name))
    if lacking:
        raise InvalidInput(
            f"{named} names {point.name}{package}, which is no extension of this version, perhaps one of the existing "
            f"Blazar: {point.value} has no {', '.join(lacking)}; take it out, or see {advice}"
        )
    return kind


def _members(protocol: type) -> set[str]:
    return {name for name in {*vars(protocol), *protocol.__annotations__} if not name.startswith("_")}
