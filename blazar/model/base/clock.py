# SPDX-License-Identifier: Apache-2.0
"""The only source of the current time."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Protocol

_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """A clock; tests inject their own."""

    def now(self) -> datetime:
        """Return the present instant, aware, in UTC."""

    def elapsed(self) -> float:
        """Return seconds since some instant; they never decrease, and count while the process or machine is paused."""

    def synchronize(self) -> None:
        """Synchronize with the reference clock, if there is one. Raise StoreUnavailable."""

    def offset(self) -> timedelta:
        """Return how far the clock of this machine is ahead of the reference clock; zero without one."""


class SystemClock:
    """The clock of this machine."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read = monotonic(), time.time()
        self._elapsed = 0.0

    def now(self) -> datetime:
        """Return the present instant, aware, in UTC."""
        return datetime.now(UTC)

    def elapsed(self) -> float:
        """Return the seconds by the monotonic or the wall clock, whichever advanced more.

        While a virtual machine is paused, its monotonic clock stops; its wall clock is set when it resumes. A wall
        clock that is set forward for another reason makes this clock jump once: claims expire early, never late.
        """
        with self._lock:
            before, self._read = self._read, (monotonic(), time.time())
            self._elapsed += max(0.0, *(now - then for now, then in zip(self._read, before, strict=True)))
            return self._elapsed

    def synchronize(self) -> None:
        """Do nothing: there is no reference clock."""

    def offset(self) -> timedelta:
        """Return zero."""
        return timedelta(0)


def monotonic() -> float:
    """Return the seconds of a clock that is never set, and that counts while the machine is suspended."""
    return time.clock_gettime(_BOOTTIME)


END_OF_TIME = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
"""The last second that ``datetime`` can express."""


def later(instant: datetime, by: timedelta) -> datetime:
    """Return the instant plus ``by``, at most ``END_OF_TIME``: leases may last for ever."""
    return END_OF_TIME if by > END_OF_TIME - instant else instant + by


# All instants are UTC, so the zone after the fraction, or after the second, is constant and can be cut off.
# The same instants recur (a lease's end is also its event's time), and formatting one is the most expensive step.
@lru_cache(maxsize=8192)
def zulu(instant: datetime) -> str:
    """Return an instant as RFC 3339 in UTC to the second, as ``2030-04-01T08:00:00Z``."""
    return instant.isoformat("T", "seconds")[:19] + "Z"


def zulu_or_none(instant: datetime | None) -> str | None:
    """Return an instant as ``zulu`` does; None for None."""
    return None if instant is None else zulu(instant)


@lru_cache(maxsize=8192)
def iso(instant: datetime) -> str:
    """Return an instant in ISO format with six fractional digits, which clients of 1.0 parse."""
    return instant.isoformat("T", "microseconds")[:26]


@lru_cache(maxsize=8192)
def spaced_text(instant: datetime) -> str:
    """Return an instant to the second, with a space between date and time."""
    return instant.isoformat(" ", "seconds")[:19]


def spaced_or_none(instant: datetime | None) -> str | None:
    """Return an instant as ``spaced_text`` does; None for None."""
    return None if instant is None else spaced_text(instant)


def spell(instant: datetime) -> str:
    """Return an instant for a sentence, as ``2030-04-01 08:00``, with its seconds only if there are any."""
    return f"{instant:%Y-%m-%d %H:%M:%S}" if instant.second else f"{instant:%Y-%m-%d %H:%M}"


def to_second(instant: datetime) -> datetime:
    """Truncate an instant to the second, the resolution of the calendar."""
    return instant.replace(microsecond=0)


def to_minute(instant: datetime) -> datetime:
    """Truncate an instant to the minute, the resolution of dates in API 1.0."""
    return instant.replace(second=0, microsecond=0)
