# SPDX-License-Identifier: Apache-2.0
"""The only source of now."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """Tells the time; a test injects its own."""

    def now(self) -> datetime:
        """Return the present instant, aware, in UTC."""

    def elapsed(self) -> float:
        """Return seconds since some instant, never fewer than before; they also count while the process stands still
        or the machine sleeps."""

    def synchronize(self) -> None:
        """Compare with the clock that this one follows, if it follows another. StoreUnavailable."""


class SystemClock:
    """The clock of the machine."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read = monotonic(), time.time()
        self._elapsed = 0.0

    def now(self) -> datetime:
        """Return the present instant, aware, in UTC."""
        return datetime.now(UTC)

    def elapsed(self) -> float:
        """Return the seconds by the monotonic or the wall clock, whichever went further.

        In a virtual machine that was paused, the monotonic clock stands still, and the wall clock is set when it goes
        on. A wall clock that is set for another reason makes this clock fast for once: claims end early, never late.
        """
        with self._lock:
            before, self._read = self._read, (monotonic(), time.time())
            self._elapsed += max(0.0, *(now - then for now, then in zip(self._read, before, strict=True)))
            return self._elapsed

    def synchronize(self) -> None:
        """Do nothing: it follows no other."""


def monotonic() -> float:
    """Return seconds of a clock that nobody sets, and that counts while the machine is suspended."""
    return time.clock_gettime(_BOOTTIME)


END_OF_TIME = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
"""The last second that there is a date for."""


def later(instant: datetime, by: timedelta) -> datetime:
    """Return the instant that much later; leases may be for ever, and after the end of time there is nothing."""
    return END_OF_TIME if by > END_OF_TIME - instant else instant + by


def to_second(instant: datetime) -> datetime:
    """Cut an instant to the whole second, the grain of the calendar."""
    return instant.replace(microsecond=0)


def to_minute(instant: datetime) -> datetime:
    """Cut an instant to the whole minute, the grain in which users of API 1.0 speak."""
    return instant.replace(second=0, microsecond=0)
