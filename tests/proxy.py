# SPDX-License-Identifier: Apache-2.0
"""A way to a server that can be cut: for the outage of a server that others use, too."""

from __future__ import annotations

import contextlib
import socket
import threading


class Proxy:
    """Forwards TCP connections from a port of its own to another address, until it is cut."""

    def __init__(self, host: str, port: int) -> None:
        self._to = (host, port)
        self._listener: socket.socket | None = None
        self._open: set[socket.socket] = set()
        self._latest: list[socket.socket] = []
        self._lock = threading.Lock()
        self._flows = threading.Event()
        self._flows.set()
        self.port = 0
        self.mend()

    @property
    def connections(self) -> int:
        """How many ends of connections are open: two each."""
        return len(self._open)

    def mend(self, *, silent: bool = False) -> None:
        """Let connections through (again), at the same port; ``silent``: take them, and never answer."""
        if self._listener is not None:
            return
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(64)
        self.port = listener.getsockname()[1]
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener, silent), daemon=True).start()

    def cut(self) -> None:
        """Break every connection and refuse new ones, as a server does that is stopped."""
        if self._listener is not None:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        self._flows.set()
        with self._lock:
            ends, self._open = self._open, set()
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def freeze(self) -> None:
        """Take what is sent, and pass nothing on: as before a server that stands still."""
        self._flows.clear()

    def thaw(self) -> None:
        """Pass all of it on."""
        self._flows.set()

    def break_latest(self) -> None:
        """Break the connection that was opened last, as a firewall does or a server that ends one session."""
        for end in self._latest:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket, silent: bool) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            if silent:
                with self._lock:
                    self._open.add(near)
                continue
            try:
                far = socket.create_connection(self._to, timeout=10)
            except OSError:
                near.close()
                continue
            far.settimeout(None)
            with self._lock:
                self._open |= {near, far}
                self._latest = [near, far]
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._flows.wait()
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
