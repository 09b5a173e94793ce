# SPDX-License-Identifier: Apache-2.0
"""Enables resources that operators disabled until an instant, at that instant."""

from __future__ import annotations

import logging
from collections.abc import Callable

from blazar.manager.common.background import BackgroundThread
from blazar.manager.common.runtime import Runtime
from blazar.model.resource import noun

LOG = logging.getLogger(__name__)

LONGEST_PAUSE_SECONDS = 60.0
"""After this time it is seen what requests to other managers have changed."""

RETRY_SECONDS = 5.0


class Enabling(BackgroundThread):
    """Enables resources when their time has come. Any number of managers may do so: one of them changes a resource.

    It has a thread of its own, so that no poll and no healing makes it late. ``enabled`` is called after a change.
    """

    def __init__(self, runtime: Runtime, *, enabled: Callable[[], None]) -> None:
        super().__init__("enabling", work="Resources cannot be enabled", retry=RETRY_SECONDS)
        self._store = runtime.store.resources
        self._clock = runtime.clock
        self._enabled = enabled

    def run_once(self) -> None:
        """Enable what is due. One statement while nothing is."""
        due = self._store.next_enabling()
        now = self._clock.now()
        if due is None or due > now:
            return
        for resource in self._store.enable_due(at=now):
            LOG.info("%s %s is enabled: it was disabled until now", noun(resource.kind).capitalize(), resource.name)
        self._enabled()

    def _round(self) -> float:
        self.run_once()
        due = self._store.next_enabling()
        if due is None:
            return LONGEST_PAUSE_SECONDS
        return min(max(0.0, (due - self._clock.now()).total_seconds()), LONGEST_PAUSE_SECONDS)
