# SPDX-License-Identifier: Apache-2.0
"""``OpenStack-API-Version``: the microversion that a request asks for."""

from __future__ import annotations

import re

from blazar.api.http.faults import BadFrame
from blazar.model.base.errors import FaultPlace

HEADER = "OpenStack-API-Version"
SERVICE = "reservation"
Version = tuple[int, int]
MIN_VERSION: Version = (1, 0)
MAX_VERSION: Version = (1, 1)
CONVENTIONS: Version = (1, 1)
"""The first version with lists of errors, known query parameters, pages, and tags of what may be kept."""
_VERSION = re.compile(r"(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})", re.ASCII)


class BadVersion(BadFrame):
    """The version header is malformed, or names a version that is not served; the answer names the served ones."""

    def __init__(self, status: int, message: str, newest: Version, *, code: str) -> None:
        served = {"min_version": as_text(MIN_VERSION), "max_version": as_text(newest)}
        super().__init__(status, message, code=code, at=FaultPlace(HEADER, "header"), more=served)


def readable(header: str | None, newest: Version) -> Version | None:
    """Return the requested version; None if the header is malformed or names an unsupported one."""
    try:
        return read_version(header, newest)
    except BadVersion:
        return None


def has_conventions(version: Version | None) -> bool:
    """Return whether a version has the conventions of 1.1; None is no version, as in version 2."""
    return version is not None and version >= CONVENTIONS


def read_version(header: str | None, newest: Version) -> Version:
    """Return the requested version, by default the lowest; ``newest`` is the highest.

    Raises BadVersion 400 for a malformed version and 406 for an unsupported one.
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
            raise BadVersion(
                400,
                f"{HEADER}: {text[:40]!r} is not a version; send 'reservation X.Y' or 'reservation latest'.",
                newest,
                code="invalid_version",
            )
        version = int(match[1]), int(match[2])
        if not MIN_VERSION <= version <= newest:
            raise BadVersion(
                406,
                f"{HEADER}: version {text} is not supported; the lowest is {as_text(MIN_VERSION)} and the "
                f"highest {as_text(newest)}.",
                newest,
                code="version_unsupported",
            )
        return version
    return MIN_VERSION


def as_text(version: Version) -> str:
    """Return a version as ``X.Y``."""
    return f"{version[0]}.{version[1]}"
