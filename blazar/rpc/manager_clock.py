# SPDX-License-Identifier: Apache-2.0
"""Estimate of the managers' clock from their answers; deadlines of requests are given in it.

The clocks of two machines differ, and a manager reads a deadline on its own clock. Every answer has the manager's time
at some moment between request and answer, which bounds its offset from a monotonic clock of this process. The lower
bound is used, so that a deadline may be early, by the time that the answer took, and is never late.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from blazar.model.clock import monotonic


class ManagerClock:
    """The managers' time by the best answer so far. Safe to use from several threads."""

    def __init__(self, elapsed: Callable[[], float] = monotonic) -> None:
        self.elapsed = elapsed
        self._ahead: float | None = None
        self._lock = threading.Lock()

    def learn(self, now: float, *, asked: float, answered: float) -> None:
        """Record that a manager's time was ``now`` at some moment between a request and its answer."""
        least, most = now - answered, now - asked
        with self._lock:
            # An estimate stays while answers agree with it; after a clock has been set, the newest answer is used.
            if self._ahead is None or not least <= self._ahead <= most:
                self._ahead = least

    @property
    def known(self) -> bool:
        """Whether an answer has had the time of a manager."""
        return self._ahead is not None

    def after(self, seconds: float) -> float | None:
        """Return the managers' time in some seconds; None if it is unknown."""
        ahead = self._ahead
        return None if ahead is None else self.elapsed() + seconds + ahead
