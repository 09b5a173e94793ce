# SPDX-License-Identifier: Apache-2.0
"""``OpenStack-API-Version``: the microversion that a request asks for."""

from __future__ import annotations

import re

from blazar.api.errors import BadFrame

HEADER = "OpenStack-API-Version"
SERVICE = "reservation"
Version = tuple[int, int]
MIN_VERSION: Version = (1, 0)
MAX_VERSION: Version = (1, 0)
_VERSION = re.compile(r"(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})", re.ASCII)


def requested(header: str | None, newest: Version) -> Version:
    """Return the requested version, by default the lowest; ``newest`` is the highest.

    Raises BadFrame 400 for a malformed version and 406 for an unsupported one.
    """
    for part in (header or "").split(","):
        words = part.split()
        if not words or words[0].lower() != SERVICE:
            continue
        text = " ".join(words[1:])
        if text == "latest":
            return newest
        match = _VERSION.fullmatch(text)
        if match is None:
            raise BadFrame(
                400, f"{HEADER}: {text[:40]!r} is not a version; send 'reservation X.Y' or 'reservation latest'."
            )
        version = int(match[1]), int(match[2])
        if not MIN_VERSION <= version <= newest:
            raise BadFrame(
                406,
                f"{HEADER}: version {text} is not supported; the lowest is {as_text(MIN_VERSION)} and the "
                f"highest {as_text(newest)}.",
            )
        return version
    return MIN_VERSION


def as_text(version: Version) -> str:
    """Return a version as ``X.Y``."""
    return f"{version[0]}.{version[1]}"
