# SPDX-License-Identifier: Apache-2.0
"""Parse dates in requests and format instants in responses."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

from blazar.model.errors import InvalidInput
from blazar.model.requests import NOW, Moment

FORMAT = "%Y-%m-%d %H:%M"
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.0{1,6})?)?(Z|[+-]\d\d:\d\d)?", re.ASCII)
"""The supported subset of ISO 8601: dates to the second, without week dates and fractions of a second."""


def date(text: str, field: str) -> datetime:
    """Parse a date to the minute; raise InvalidInput with the wording that clients match."""
    try:
        return datetime.strptime(text, FORMAT).replace(tzinfo=UTC)
    except ValueError:
        raise InvalidInput(f"{field}: {text} is an invalid date. Required format: {FORMAT}") from None


def moment(text: str, field: str) -> Moment:
    """Parse a start or end date of version 1: a date, or ``now``."""
    return NOW if text == "now" else date(text, field)


def instant(text: str, field: str) -> datetime:
    """Parse a date of version 2: to the minute, or ISO 8601 to the second; UTC if it has no zone."""
    try:
        if not ISO.fullmatch(text):
            return datetime.strptime(text, FORMAT).replace(tzinfo=UTC)
        named = datetime.fromisoformat(text)
        return named.replace(tzinfo=UTC) if named.tzinfo is None else named.astimezone(UTC)
    except (OverflowError, ValueError):
        # Conversion to UTC can overflow for dates in the first and the last day that datetime supports.
        raise InvalidInput(
            f"{field}: {text} is an invalid date. Required format: {FORMAT}, or ISO 8601 to the second, for example "
            f"2030-04-01T08:00:00Z"
        ) from None


# All instants are UTC, so the zone after the fraction, or after the second, is constant and can be cut off.
# The same instants recur (a lease's end is also its event's time), and formatting one is the most expensive step.
@lru_cache(maxsize=8192)
def iso(instant: datetime) -> str:
    """Return an instant in ISO format with six fractional digits, which clients parse."""
    return instant.isoformat("T", "microseconds")[:26]


@lru_cache(maxsize=8192)
def spaced(instant: datetime) -> str:
    """Return an instant to the second, with a space between date and time."""
    return instant.isoformat(" ", "seconds")[:19]


def spaced_or_none(instant: datetime | None) -> str | None:
    """Return an instant as ``spaced`` does; None for None."""
    return None if instant is None else spaced(instant)
