# SPDX-License-Identifier: Apache-2.0
"""Dates in requests."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from blazar.model.errors import InvalidInput
from blazar.model.requests import NOW, Moment

FORMAT = "%Y-%m-%d %H:%M"
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.0{1,6})?)?(Z|[+-]\d\d:\d\d)?", re.ASCII)
"""Of what the standard allows, that which names a second: neither weeks nor fractions."""


def date(text: str, field: str) -> datetime:
    """Read a date to the minute; InvalidInput with the words that clients look for."""
    try:
        return datetime.strptime(text, FORMAT).replace(tzinfo=UTC)
    except ValueError:
        raise InvalidInput(f"{field}: {text} is an invalid date. Required format: {FORMAT}") from None


def moment(text: str, field: str) -> Moment:
    """Read a date of version 1, or ``now``."""
    return NOW if text == "now" else date(text, field)


def instant(text: str, field: str) -> datetime:
    """Read a date of version 2: to the minute, or ISO 8601 to the second, in UTC where it names no zone."""
    try:
        if not ISO.fullmatch(text):
            return datetime.strptime(text, FORMAT).replace(tzinfo=UTC)
        named = datetime.fromisoformat(text)
        return named.replace(tzinfo=UTC) if named.tzinfo is None else named.astimezone(UTC)
    except (OverflowError, ValueError):
        # A zone can shift the first and the last day that there are beyond all days.
        raise InvalidInput(
            f"{field}: {text} is an invalid date. Required format: {FORMAT}, or ISO 8601 to the second, as "
            f"2030-04-01T08:00:00Z"
        ) from None
