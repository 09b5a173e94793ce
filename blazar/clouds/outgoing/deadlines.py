# SPDX-License-Identifier: Apache-2.0
"""Shuts connections down at their deadlines, whatever is being waited for; one thread does it for all of a process."""

from __future__ import annotations

import heapq
import http.client
import itertools
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Cutoff:
    """A connection that is shut down at its deadline unless it is let go before; ``late`` says whether it was."""

    def __init__(self, handle: socket.socket) -> None:
        self._handle: socket.socket | None = handle
        self._lock = threading.Lock()
        self.late = False

    def shut_down(self) -> None:
        """Shut the connection down, if it has not been let go."""
        with self._lock:
            if self._handle is not None:
                self.late = True
                with suppress(OSError):
                    self._handle.shutdown(socket.SHUT_RDWR)

    def let_go(self) -> None:
        """Leave the connection alone from now on."""
        with self._lock:
            self._handle = None


class Deadlines:
    """The deadlines of a process."""

    def __init__(self) -> None:
        self._order = itertools.count()
        self._waiting: list[tuple[float, int, Cutoff]] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def add(self, deadline: float, cut: Cutoff) -> None:
        """Shut a connection down at a deadline (``time.monotonic``)."""
        with self._changed:
            heapq.heappush(self._waiting, (deadline, next(self._order), cut))
            # Also after a fork, which leaves the thread behind.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="deadlines", daemon=True)
                self._thread.start()
            elif self._waiting[0][2] is cut:
                self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting or (left := self._waiting[0][0] - time.monotonic()) > 0:
                    self._changed.wait(left if self._waiting else None)
                _, _, cut = heapq.heappop(self._waiting)
            cut.shut_down()


_DEADLINES = Deadlines()


@contextmanager
def shut_down_at(handle: socket.socket, deadline: float) -> Iterator[Cutoff]:
    """Shut a connection down at the deadline, whatever is being waited for; an error after that is a TimeoutError."""
    cut = Cutoff(handle)
    _DEADLINES.add(deadline, cut)
    try:
        yield cut
    except (OSError, http.client.HTTPException) as error:
        if cut.late:
            raise TimeoutError("the answer took too long") from error
        raise
    finally:
        cut.let_go()
