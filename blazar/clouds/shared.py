# SPDX-License-Identifier: Apache-2.0
"""Reads that those who ask at the same time share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Generic, TypeVar

from blazar.context import current
from blazar.model.errors import BlazarError

T = TypeVar("T")

AT_ONCE = 2
"""Calls of one read that go on at once; who comes later shares the next one."""

PATIENCE = 2.0
"""Seconds for which a caller waits for others; then it reads alone. Calls that hang delay nobody else for longer."""


class _Call(Generic[T]):
    """A call that is to be made: by whoever asked for it first, as soon as it may ``begin``."""

    def __init__(self) -> None:
        self.begin = threading.Event()
        self.outcome: Future[T] = Future()


class SharedRead(Generic[T]):
    """A read of the cloud that a burst makes a few times only, instead of once for everybody in it.

    What it returns was always asked for after the caller came, as if the caller had made the call alone and the cloud
    taken its time: who comes while a call is under way does not get its answer, but that of the next one. Not for
    values that callers change.
    """

    def __init__(self, read: Callable[[], T], *, patience: float = PATIENCE) -> None:
        self._read = read
        self._patience = patience
        self._lock = threading.Lock()
        # Both are guarded by it. A next call is there only while as many as may be are under way.
        self._under_way = 0
        self._next: _Call[T] | None = None

    def __call__(self) -> T:
        """Return what the cloud tells. Raises what the read raises."""
        if current().remaining() is not None:
            # Who has a limit neither waits for others nor lets them fail by it.
            return self._read()
        with self._lock:
            call, first = self._next, self._next is None
            if call is None:
                call = _Call()
                if self._under_way < AT_ONCE:
                    self._under_way += 1
                    call.begin.set()
                else:
                    self._next = call
        return self._make(call) if first else self._share(call)

    def _make(self, call: _Call[T]) -> T:
        if not call.begin.wait(self._patience):
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
            # Whatever else went wrong is a matter of this thread, and tells nothing to those who wait.
            call.outcome.cancel()
            self._go_on()

    def _share(self, call: _Call[T]) -> T:
        try:
            # The call begins and ends within that, unless it or those before it hang.
            return call.outcome.result(2 * self._patience)
        except (CancelledError, FutureTimeout):
            return self._read()

    def _begin_anyway(self, call: _Call[T]) -> None:
        with self._lock:
            if self._next is call:
                self._next = None
                self._under_way += 1
                call.begin.set()

    def _go_on(self) -> None:
        with self._lock:
            if self._next is None:
                self._under_way -= 1
            else:
                # From now on it is under way, and whoever comes shares the one after it.
                self._next.begin.set()
                self._next = None
