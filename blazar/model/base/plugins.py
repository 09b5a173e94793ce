# SPDX-License-Identifier: Apache-2.0
"""Extensions of other packages, found by entry point.

Only what the configuration names is loaded; parts of the API need no name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from importlib import metadata
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any, Generic, Protocol

from blazar.model.base.errors import InvalidInput

OURS = "blazar"


def entry_points(*, group: str) -> EntryPoints:
    """Return the entry points of a group that any package has."""
    return _read_all(tuple(sys.path))(group=group)


@lru_cache(maxsize=1)
def _read_all(_path: tuple[str, ...]) -> Callable[..., EntryPoints]:
    """Return what selects of the entry points of all packages on a path; to read them takes 20 ms each time."""
    return metadata.entry_points().select


def entry_points_of(namespace: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of a namespace by name. Ours wins where another package has the same name."""
    points = sorted(entry_points(group=namespace), key=lambda point: point.module.partition(".")[0] == OURS)
    return {point.name: point for point in points}


def load(point: EntryPoint, members: Collection[str], *, named: str, advice: str) -> Any:
    """Return the object of an entry point; InvalidInput, with the real reason, if it lacks one of these members.

    ``named`` is the option that names it; ``advice`` is where such an extension is documented.
    """
    package = f" (of {point.dist.name} {point.dist.version})" if point.dist else ""
    try:
        kind = point.load()
    except Exception as error:
        # Code of other packages: its import may raise anything.
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        missing = getattr(error, "name", None) or ""
        older = missing.partition(".")[0] == OURS
        why = "; it was written for the existing Blazar, which had that module" if older else ""
        raise InvalidInput(
            f"{named} names {point.name}{package}, which cannot be loaded: {reason}{why}; remove it, or see {advice}"
        ) from error
    lacking = sorted(name for name in members if not hasattr(kind, name))
    if lacking:
        raise InvalidInput(
            f"{named} names {point.name}{package}, which is not an extension of this version, perhaps one of the "
            f"existing Blazar: {point.value} has no {', '.join(lacking)}; remove it, or see {advice}"
        )
    return kind


def members_of(protocol: type) -> frozenset[str]:
    """Return the names that a protocol or a class of values declares."""
    own = [base for base in protocol.__mro__ if base not in (object, Protocol, Generic)]
    names = {name for base in own for name in {*vars(base), *getattr(base, "__annotations__", {})}}
    return frozenset(name for name in names if not name.startswith("_"))
