# SPDX-License-Identifier: Apache-2.0
"""``OpenStack-API-Version``: the microversion that a request asks for."""

from __future__ import annotations

import re

from blazar.api.errors import BadFrame

HEADER = "OpenStack-API-Version"
SERVICE = "reservation"
MIN_VERSION = (1, 0)
MAX_VERSION = (1, 0)
HIDES_LEASES = (1, 1)
"""From this version on, a lease that the caller may not see gives 404; in older versions, 403."""
_VERSION = re.compile(r"(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})", re.ASCII)


def requested(header: str | None) -> tuple[int, int]:
    """Return the requested version, by default the lowest.

    Raises BadFrame 400 for a malformed version and 406 for an unsupported one.
    """
    for part in (header or "").split(","):
        words = part.split()
        if not words or words[0].lower() != SERVICE:
            continue
        text = " ".join(words[1:])
        if text == "latest":
            return MAX_VERSION
        match = _VERSION.fullmatch(text)
        if match is None:
            raise BadFrame(
                400, f"{HEADER}: {text[:40]!r} is not a version; send 'reservation X.Y' or 'reservation latest'."
            )
        version = int(match[1]), int(match[2])
        if not MIN_VERSION <= version <= MAX_VERSION:
            raise BadFrame(
                406,
                f"{HEADER}: version {text} is not supported; the lowest is {as_text(MIN_VERSION)} and the "
                f"highest {as_text(MAX_VERSION)}.",
            )
        return version
    return MIN_VERSION


def as_text(version: tuple[int, int]) -> str:
    """Return a version as ``X.Y``."""
    return f"{version[0]}.{version[1]}"
