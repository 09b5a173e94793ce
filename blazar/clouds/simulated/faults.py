# SPDX-License-Identifier: Apache-2.0
"""Faults on demand: slow answers, failed calls, lost answers."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

Hook = Callable[[str, str], None]
"""Called with a call's name and ``before`` or ``after``; the call fails with what it raises."""


class Faults:
    """Faults of a simulated cloud. Safe to use from several threads."""

    def __init__(
        self,
        *,
        latency: timedelta = timedelta(0),
        sleep: Callable[[float], None] = time.sleep,
        on_call: Hook | None = None,
    ) -> None:
        self.latency = latency
        self.on_call = on_call
        self.calls: Counter[str] = Counter()
        self._sleep = sleep
        self._planned: dict[tuple[str, str], list[Exception]] = {}
        self._lock = threading.Lock()

    def fail_before(self, name: str, error: Exception, times: int = 1) -> None:
        """Let the next calls of this name fail without an effect."""
        self._plan(name, "before", error, times)

    def fail_after(self, name: str, error: Exception, times: int = 1) -> None:
        """Let the next calls of this name take effect, and then fail as if the answer was lost."""
        self._plan(name, "after", error, times)

    def clear(self) -> None:
        """Remove all faults."""
        with self._lock:
            self._planned.clear()
        self.on_call = None
        self.latency = timedelta(0)

    @contextmanager
    def around(self, name: str) -> Iterator[None]:
        """Apply the faults that are planned for a call, before and after it."""
        with self._lock:
            self.calls[name] += 1
        if self.latency:
            self._sleep(self.latency.total_seconds())
        self._apply(name, "before")
        yield
        self._apply(name, "after")

    def _plan(self, name: str, phase: str, error: Exception, times: int) -> None:
        with self._lock:
            self._planned.setdefault((name, phase), []).extend([error] * times)

    def _apply(self, name: str, phase: str) -> None:
        with self._lock:
            planned = self._planned.get((name, phase))
            error = planned.pop(0) if planned else None
        if error is not None:
            raise error
        if self.on_call is not None:
            self.on_call(name, phase)
