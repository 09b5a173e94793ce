# SPDX-License-Identifier: Apache-2.0
"""Limits the requests that wait for other work on a lease: each holds a thread that others need."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

MOST = 8
"""Maximum of waiting requests: half of the threads that an API has by default."""

MOST_OF_PROJECT = 3
"""Maximum of waiting requests about leases of one project."""


class Waiting:
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
