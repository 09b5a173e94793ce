# SPDX-License-Identifier: Apache-2.0
"""Reads of the cloud that callers share who need them at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Generic, TypeVar

from blazar.context import current
from blazar.model.base.errors import BlazarError

T = TypeVar("T")

MAX_CONCURRENT = 2
"""Concurrent calls of one read; callers that arrive later share the next one."""

WAIT_SECONDS = 2.0
"""Seconds for which a caller waits for others before it reads alone. A call that hangs delays nobody for longer."""


class _SharedCall(Generic[T]):
    """A call of the read. The caller that needed it first makes it, as soon as ``begin`` is set."""

    def __init__(self) -> None:
        self.begin = threading.Event()
        self.outcome: Future[T] = Future()


class SharedRead(Generic[T]):
    """A read of the cloud of which a burst of callers makes a few calls only, instead of one each.

    A caller gets the answer of a call that began after it arrived, as if it had made the call itself: while a call is
    in progress, a caller that arrives does not get its answer, but that of the next one. Not for values that callers
    change.
    """

    def __init__(self, read: Callable[[], T], *, wait_seconds: float = WAIT_SECONDS) -> None:
        self._read = read
        self._wait_seconds = wait_seconds
        self._lock = threading.Lock()
        # The lock guards both. There is a next call only while MAX_CONCURRENT calls are in progress.
        self._in_progress = 0
        self._next: _SharedCall[T] | None = None

    def __call__(self) -> T:
        """Return what the read returns. Raises what the read raises."""
        if current().remaining() is not None:
            # A caller with a deadline neither waits for others nor makes them fail by its deadline.
            return self._read()
        with self._lock:
            call, first = self._next, self._next is None
            if call is None:
                call = _SharedCall()
                if self._in_progress < MAX_CONCURRENT:
                    self._in_progress += 1
                    call.begin.set()
                else:
                    self._next = call
        return self._make(call) if first else self._wait_for(call)

    def _make(self, call: _SharedCall[T]) -> T:
        if not call.begin.wait(self._wait_seconds):
            self._begin_anyway(call)
        try:
            found = self._read()
        except BlazarError as error:
            call.outcome.set_exception(error)
            raise
        else:
            call.outcome.set_result(found)
            return found
        finally:
            # Any other exception concerns this thread alone; those who wait read alone then.
            call.outcome.cancel()
            self._finish()

    def _wait_for(self, call: _SharedCall[T]) -> T:
        try:
            # The call begins and ends within that time, unless it or an earlier one hangs.
            return call.outcome.result(2 * self._wait_seconds)
        except (CancelledError, FutureTimeout):
            return self._read()

    def _begin_anyway(self, call: _SharedCall[T]) -> None:
        with self._lock:
            if self._next is call:
                self._next = None
                self._in_progress += 1
                call.begin.set()

    def _finish(self) -> None:
        with self._lock:
            if self._next is None:
                self._in_progress -= 1
            else:
                # The next call is in progress from now on; later callers share the one after it.
                self._next.begin.set()
                self._next = None
