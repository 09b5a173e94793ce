# SPDX-License-Identifier: Apache-2.0
"""Forgets the keys of requests when nobody sends these requests again."""

from __future__ import annotations

import logging

from blazar.manager.common.background import BackgroundThread
from blazar.manager.common.runtime import Runtime

LOG = logging.getLogger(__name__)

PAUSE_SECONDS = 600.0
PORTION = 1000
"""Keys that one transaction forgets."""


class Forgetting(BackgroundThread):
    """Forgets old keys in portions. Any number of managers may do so."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(
            "forgetting", work="Old keys of requests cannot be forgotten", retry=PAUSE_SECONDS, first_pause=60
        )
        self._keys = runtime.store.idempotency
        self._clock = runtime.clock
        self._retention = runtime.settings.idempotency_retention

    def run_once(self) -> int:
        """Forget what is old; return how many keys that were."""
        total = 0
        while not self._stopping.is_set():
            gone = self._keys.purge(self._clock.now() - self._retention, PORTION)
            total += gone
            if gone < PORTION:
                break
        return total

    def _round(self) -> float:
        self.run_once()
        return PAUSE_SECONDS
