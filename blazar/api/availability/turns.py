# SPDX-License-Identifier: Apache-2.0
"""Limits how many searches a project has in progress in one process: one project must not slow down the others."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from blazar.model.errors import TooManyRequests


class Turns:
    """Counts the searches in progress; ``most`` at a time for each project."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._busy: Counter[str] = Counter()

    @contextmanager
    def taken(self, project_id: str) -> Iterator[None]:
        """Hold a turn of a project; TooManyRequests if all are taken."""
        with self._lock:
            if self._busy[project_id] >= self._most:
                raise TooManyRequests(
                    f"the project has {self._most} searches in progress, and no more are allowed at once; wait for "
                    "one of them, and try again"
                )
            self._busy[project_id] += 1
        try:
            yield
        finally:
            with self._lock:
                self._busy[project_id] -= 1
                if not self._busy[project_id]:
                    del self._busy[project_id]
