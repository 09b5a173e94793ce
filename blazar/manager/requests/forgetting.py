# SPDX-License-Identifier: Apache-2.0
"""Forgets what would grow without end: keys of requests that nobody sends again, histories of past leases.

What was forgotten meanwhile, as secrets of leases that are over, is written over in the files of standalone mode.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from blazar.manager.common.background import BackgroundThread
from blazar.manager.common.runtime import Runtime

LOG = logging.getLogger(__name__)

PAUSE_SECONDS = 600.0
PORTION = 1000
"""Keys that one transaction forgets."""
LEASES = 200
"""Leases whose history one transaction forgets."""


class Forgetting(BackgroundThread):
    """Forgets old keys and histories in portions. Any number of managers may do so."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(
            "forgetting",
            work="Old keys of requests, and histories of past leases, cannot be forgotten",
            retry=PAUSE_SECONDS,
            first_pause=60,
        )
        self._store = runtime.store
        self._keys = runtime.store.idempotency
        self._history = runtime.store.history
        self._clock = runtime.clock
        self._retention = runtime.settings.idempotency_retention
        self._kept = runtime.settings.past_history

    def run_once(self) -> int:
        """Forget what is old; return how many keys, and histories of leases, that were."""
        keys = self._in_portions(lambda: self._keys.purge(self._clock.now() - self._retention, PORTION), PORTION)
        histories = self._forget_histories()
        if not self._store.erase():
            LOG.debug("What was forgotten stays in the log of the database until nobody reads it")
        return keys + histories

    def _forget_histories(self) -> int:
        keep, total = self._kept, 0
        if keep is None:
            return 0
        now = self._clock.now()
        for project_id in self._history.crowded(keep, now=now):
            total += self._in_portions(partial(self._history.forget, project_id, keep, LEASES, now=now), LEASES)
        return total

    def _in_portions(self, forget: Callable[[], int], portion: int) -> int:
        total = 0
        while not self._stopping.is_set():
            gone = forget()
            total += gone
            if gone < portion:
                break
        return total

    def _round(self) -> float:
        self.run_once()
        return PAUSE_SECONDS
