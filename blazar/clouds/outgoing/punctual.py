# SPDX-License-Identifier: Apache-2.0
"""HTTP with a total deadline for an answer, however slowly its bytes arrive.

The time limits of the libraries are per read of a socket, so that a slow peer could hold a thread indefinitely.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPResponse, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection


@contextmanager
def _cut_after(connection: HTTPConnection) -> Iterator[None]:
    """Shut the socket down if the block exceeds the connection's time limit: a blocked reader wakes up."""
    wire, limit = connection.sock, connection.timeout
    late = threading.Event()

    def cut() -> None:
        late.set()
        # Not with the socket's own method: with TLS it would try to say goodbye, and wait for an answer.
        with suppress(OSError):
            socket.socket.shutdown(wire, socket.SHUT_RDWR)

    if wire is None or not isinstance(limit, int | float):
        yield
        return
    timer = threading.Timer(limit, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    if late.is_set():
        # A truncated answer looks complete if enough of it has arrived.
        raise TimeoutError("the answer took too long")


class _PunctualConnection(HTTPConnection):
    def getresponse(self) -> HTTPResponse:  # type: ignore[override]  # as the library has it itself
        """Return status and headers, in time."""
        with _cut_after(self):
            return super().getresponse()


class _PunctualTlsConnection(HTTPSConnection):
    def getresponse(self) -> HTTPResponse:  # type: ignore[override]  # as the library has it itself
        """Return status and headers, in time."""
        with _cut_after(self):
            return super().getresponse()


class _Pool(HTTPConnectionPool):
    ConnectionCls = _PunctualConnection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _PunctualTlsConnection


class PunctualAdapter(HTTPAdapter):
    """Limits the time for the headers of an answer to that of its request. The reader of a body limits that itself."""

    def init_poolmanager(self, *arguments: Any, **named: Any) -> None:
        """Use our connection classes."""
        super().init_poolmanager(*arguments, **named)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}
