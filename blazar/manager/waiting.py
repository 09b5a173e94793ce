# SPDX-License-Identifier: Apache-2.0
"""Who waits until something else is done with a lease: few at a time, as each holds a thread that others need."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

MOST = 8
"""Requests that wait at a time: half of the threads that an API has by default."""

MOST_OF_PROJECT = 3
"""Requests about leases of one project that wait at a time."""


class Waiting:
    """The places for those who wait. Whoever gets none is told at once what there would be to wait for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: Counter[str] = Counter()

    @contextmanager
    def place(self, project_id: str) -> Iterator[bool]:
        """Tell whether there is a place, which is taken while the block runs."""
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
