# SPDX-License-Identifier: Apache-2.0
"""Requests that wait until an immediate lease is handed over or refused: few, as each holds a thread of the API.

They hold no thread of a manager: each look is a call of its own, and one statement. The limit itself is kept by the
managers, so that a lease is also decided if nobody waits any more.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

from blazar.model.clock import monotonic
from blazar.model.errors import ManagerUnavailable, StoreUnavailable, TooManyRequests
from blazar.model.lease_details import Verdict

MOST = 8
"""Maximum of waiting requests: half of the threads that an API has by default."""

MOST_OF_PROJECT = 4
"""Maximum of waiting requests of one project."""

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 1.0
"""Seconds between two looks: they grow."""

GRACE = 5.0
"""Seconds beyond the limit in which managers refuse a lease, and return what it had."""


def most_of(threads: int) -> int:
    """Return how many requests may wait in an API with so many threads: at most half of them, so that others work."""
    return max(1, min(MOST, threads // 2))


class Waiters:
    """The places for waiting requests, and the wait. TooManyRequests without a place, before anything is booked."""

    def __init__(
        self,
        *,
        most: int = MOST,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._most = most
        self._sleep = sleep
        self._clock = clock
        self._lock = threading.Lock()
        self._of: Counter[str] = Counter()

    @contextmanager
    def place(self, project_id: str) -> Iterator[None]:
        """Take a place while the block runs."""
        with self._lock:
            if self._of.total() >= self._most or self._of[project_id] >= MOST_OF_PROJECT:
                raise TooManyRequests(
                    "too many requests wait for immediate leases, and nothing was booked; wait for one of them, and "
                    "try again"
                )
            self._of[project_id] += 1
        try:
            yield
        finally:
            with self._lock:
                self._of[project_id] -= 1
                if not self._of[project_id]:
                    del self._of[project_id]

    def outcome(self, look: Callable[[], Verdict], limit: timedelta) -> Verdict:
        """Look until a lease is handed over, or refused and gone, a little longer than the limit; return the last."""
        end, pause, found = self._clock() + limit.total_seconds() + GRACE, FIRST_PAUSE, Verdict.WAITING
        while True:
            with suppress(ManagerUnavailable, StoreUnavailable):
                found = look()
            if found in (Verdict.GRANTED, Verdict.GONE) or self._clock() >= end:
                return found
            self._sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
