# SPDX-License-Identifier: Apache-2.0
"""What users give that nobody may see: kept apart from what is shown, by every resource type in the same way.

A type says what is secret by one function, ``masked``: it returns parameters as anybody may see them. What they had
besides is kept under one key, which is never shown or sent, and is null as soon as nobody needs it any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = Mapping[str, Any]

SECRET = "secret"
"""The key of kept parameters under which those are that nobody may see; null once they are forgotten."""

UNSHOWN = frozenset({SECRET, "source_flavor"})
"""Keys of kept parameters that are not shown; but for the secrets they are of no use to anybody."""

HIDDEN = "******"
"""What is shown in place of a part that is secret, as Heat does."""


def parted(given: Json, masked: Json) -> tuple[Json, Json]:
    """Return parameters as they may be shown, and those of them that are secret, as they were given."""
    different = (key for key in given if key not in masked or masked[key] != given[key])
    return masked, {key: given[key] for key in different if given[key] is not None}


def sealed(shown: Json, secret: Json) -> Json:
    """Return parameters as they are kept."""
    return {**shown, SECRET: dict(secret)} if secret else shown


def opened(kept: Json) -> Json:
    """Return parameters as they were given; what was forgotten is left as it is shown."""
    secret = kept.get(SECRET)
    return {**{key: value for key, value in kept.items() if key != SECRET}, **(secret or {})}


def has_forgotten(kept: Json) -> bool:
    """Return whether there were secrets, which nobody knows any more."""
    return SECRET in kept and kept[SECRET] is None


def shown(kept: Json) -> Json:
    """Return kept parameters without what nobody may see."""
    return {key: value for key, value in kept.items() if key not in UNSHOWN}


def forgotten(kept: Json) -> Json:
    """Return kept parameters with null in place of what users have given as a secret."""
    return {**kept, SECRET: None} if kept.get(SECRET) is not None else kept
