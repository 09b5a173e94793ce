# SPDX-License-Identifier: Apache-2.0
"""What time it is at the managers, as their answers tell: deadlines of requests are in it.

The clocks of two machines differ, and a request's deadline is only as good as the clock that it is read on. Every
answer of a manager tells its time, which was so at some moment between question and answer: that bounds how far it is
ahead of a clock of ours that nobody sets. Of the bounds the lower one counts, so that a deadline may come early by the
time that an answer was on its way, and never late.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from blazar.model.clock import monotonic


class TimeOfManagers:
    """The managers' time, by the best answer so far. Safe for several threads."""

    def __init__(self, elapsed: Callable[[], float] = monotonic) -> None:
        self.elapsed = elapsed
        self._ahead: float | None = None
        self._lock = threading.Lock()

    def learn(self, now: float, *, asked: float, answered: float) -> None:
        """Take in that it was ``now`` there, at some moment between a question and its answer."""
        least, most = now - answered, now - asked
        with self._lock:
            # What was known stays while it agrees; clocks are set at times, and then the newest answer counts.
            if self._ahead is None or not least <= self._ahead <= most:
                self._ahead = least

    @property
    def known(self) -> bool:
        """Whether a manager has told its time yet."""
        return self._ahead is not None

    def after(self, seconds: float) -> float | None:
        """Return what time it will be there when so many seconds have gone by; None if that is not known."""
        ahead = self._ahead
        return None if ahead is None else self.elapsed() + seconds + ahead
