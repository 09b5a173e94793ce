"""Dates in requests of API 1.0."""

from __future__ import annotations

from datetime import UTC, datetime

from blazar.model.errors import InvalidInput
from blazar.model.requests import NOW, Moment

FORMAT = "%Y-%m-%d %H:%M"


def date(text: str, field: str) -> datetime:
    """Read a date to the minute; InvalidInput with the words that clients look for."""
    try:
        return datetime.strptime(text, FORMAT).replace(tzinfo=UTC)
    except ValueError:
        raise InvalidInput(f"{field}: {text} is an invalid date. Required format: {FORMAT}") from None


def moment(text: str, field: str) -> Moment:
    """Read a date, or ``now``."""
    return NOW if text == "now" else date(text, field)
