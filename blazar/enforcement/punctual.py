# SPDX-License-Identifier: Apache-2.0
"""HTTP with an end: no answer takes longer than it may, however slowly its bytes come.

The time limits of the libraries are for each read of a socket, so that whoever sends one byte of a header now and then
keeps a thread for as long as he likes.
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
    """Shut the socket if what goes on is not over within the connection's time limit: whoever reads wakes up."""
    wire, limit = connection.sock, connection.timeout
    late = threading.Event()

    def cut() -> None:
        late.set()
        # Not by the socket's own method: one with TLS would try to say goodbye, and wait for an answer.
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
        # What was cut off looks like an answer that is complete, if enough of it has come.
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
    """Ends every answer's headers with the time limit of its request. Bodies are for whoever reads them."""

    def init_poolmanager(self, *arguments: Any, **named: Any) -> None:
        """Let connections be ours."""
        super().init_poolmanager(*arguments, **named)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}
