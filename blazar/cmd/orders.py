# SPDX-License-Identifier: Apache-2.0
"""What signals tell a manager: to drain, to stop, to end at once."""

from __future__ import annotations

import math
import threading
import time

AGAIN_SECONDS = 1.0
"""A signal to stop that comes sooner after another one is no new wish: shells and make pass on what they get, too."""


class Orders(threading.Event):
    """What a manager was told by signals: it is set once it is to end, in which case it may be to drain before.

    ``at_once`` is set once it is to leave to others what it has begun.
    """

    def __init__(self) -> None:
        super().__init__()
        self._drains_since: float | None = None
        self.at_once = threading.Event()
        self._stopped_at: float | None = None

    def drain(self) -> None:
        """Tell it to finish what it has begun, without a hurry, and to end then."""
        if not self.is_set():
            self._drains_since = time.monotonic()
        self.set()

    @property
    def drains(self) -> bool:
        """Whether it is to end without a hurry."""
        return self._drains_since is not None

    def seconds_left(self, to_drain: float) -> float:
        """Return how long it may take, of the seconds ``to_drain``; without a limit if it is in a hurry.

        It then ends as soon as it can, or is killed by what told it to.
        """
        return math.inf if self._drains_since is None else self._drains_since + to_drain - time.monotonic()

    def stop(self) -> None:
        """Tell it to finish what it has begun, and to end; told a second time, it ends at once."""
        now = time.monotonic()
        if self._stopped_at is not None and now - self._stopped_at >= AGAIN_SECONDS:
            self.at_once.set()
        self._stopped_at = self._stopped_at or now
        self.set()
