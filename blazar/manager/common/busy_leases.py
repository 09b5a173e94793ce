# SPDX-License-Identifier: Apache-2.0
"""Requests that wait for other work on a lease: for a moment, and few, as each holds a thread that others need."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from blazar.manager.common.runtime import Runtime
from blazar.model.base.clock import monotonic
from blazar.model.base.errors import NotFound, WrongState
from blazar.model.leases.lease import Lease

T = TypeVar("T")

POLL_SECONDS = 0.1
"""Seconds between two reads of a lease that a request waits for."""

MOST = 8
"""Maximum of waiting requests: half of the threads that an API has by default."""

MOST_OF_PROJECT = 3
"""Maximum of waiting requests about leases of one project."""


class Busy(WrongState):
    """Work on a lease of this project is in progress, and should finish in a moment."""

    code = "lease_busy"

    def __init__(self, message: str, project_id: str) -> None:
        super().__init__(message)
        self.project_id = project_id


class WaitingPlaces:
    """The places for waiting requests. A request without a place fails at once, with the reason to wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: Counter[str] = Counter()

    @contextmanager
    def place(self, project_id: str) -> Iterator[bool]:
        """Give whether there is a place, which is taken while the block runs."""
        with self._lock:
            free = self._of.total() < MOST and self._of[project_id] < MOST_OF_PROJECT
            self._of[project_id] += free
        try:
            yield free
        finally:
            with self._lock:
                self._of[project_id] -= free
                if not self._of[project_id]:
                    del self._of[project_id]


class LeasePatience:
    """Lets requests wait up to ``patience`` for other work on their lease to finish."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.waiting = WaitingPlaces()

    def until_free(self, change: Callable[[], T]) -> T:
        """Make a change; while it raises Busy, retry it as long as the patience lasts."""
        end = self._end()
        try:
            return change()
        except Busy as busy:
            with self.waiting.place(busy.project_id) as waits:
                if not waits:
                    raise
                while monotonic() < end:
                    time.sleep(POLL_SECONDS)
                    with suppress(Busy):
                        return change()
                raise

    def until_gone(self, lease: Lease) -> None:
        """Wait for a deletion that others finish, so that the resources of the lease can be booked again."""
        end = self._end()
        with self.waiting.place(lease.project_id) as waits:
            while waits and monotonic() < end:
                try:
                    self._runtime.store.leases.one(lease.id)
                except NotFound:
                    return
                time.sleep(POLL_SECONDS)

    def _end(self) -> float:
        return monotonic() + self._runtime.settings.patience.total_seconds()
