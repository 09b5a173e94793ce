"""The only source of now."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time; a test injects its own."""

    def now(self) -> datetime:
        """Return the present instant, aware, in UTC."""


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        """Return the present instant, aware, in UTC."""
        return datetime.now(UTC)


def to_second(instant: datetime) -> datetime:
    """Cut an instant to the whole second, the grain of the calendar."""
    return instant.replace(microsecond=0)


def to_minute(instant: datetime) -> datetime:
    """Cut an instant to the whole minute, the grain in which users of API 1.0 speak."""
    return instant.replace(second=0, microsecond=0)
