# SPDX-License-Identifier: Apache-2.0
"""The HTTP server of blazar-api and blazar-standalone: waitress, with limits on connections.

By default waitress stops accepting when a hundred connections are open, even if all are idle, so idle connections can
lock out all other clients. Here the connections that have been idle for the longest are closed instead.
"""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any

from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.server import MultiSocketServer, TcpWSGIServer
from waitress.task import ThreadedTaskDispatcher

from blazar.cmd import process

CONNECTIONS = 1000
"""Default maximum number of open connections."""

IDLE = 75
"""Seconds after which an idle connection is closed: more than the 60 of proxies, so that the proxy closes it first."""

QUIET = 1.0
"""Seconds without a request after which a stopping server closes a connection: the proxy may be about to send one."""

PARTING = 5.0
"""Seconds that a stopping server goes on with the connections that are open."""

_OTHER_FILES = 256
"""Open files other than connections of clients: message bus, database, log."""

LONGEST_BODY = 2 * 1024 * 1024
"""Bytes of the body of a request; an application that takes less can say so in a sentence."""

_LONGEST_ANSWER = 1024 * 1024 * 1024
"""Bytes of a response that are buffered (large ones in a file) for a slow client, so that no thread waits for it."""


class _LengthParser(HTTPRequestParser):  # type: ignore[misc]  # a library without types
    """Rejects requests with an ambiguous length, which a proxy may interpret differently (request smuggling)."""

    def parse_header(self, header_plus: bytes) -> None:
        super().parse_header(header_plus)
        if self.chunked and "CONTENT_LENGTH" in self.headers:
            raise ParsingError("Content-Length together with Transfer-Encoding; send only one of them")
        if "TRANSFER_ENCODING" in self.headers:
            raise ParsingError("Transfer-Encoding in a request of version 1.0; send Content-Length")


class _Channel(HTTPChannel):  # type: ignore[misc]  # a library without types
    """A connection that records when it last served a request."""

    parser_class = _LengthParser
    served = 0.0

    def service(self) -> None:
        self.served = time.time()
        if self.server.is_stopping:
            # As if the client had asked for it: with the answer it hears that the connection ends.
            self.requests[0].headers["CONNECTION"] = "close"
        super().service()
        self.served = time.time()

    @property
    def idle_since(self) -> float:
        # The last received byte does not count: a client that sends a byte a minute completes no request.
        return max(self.served, float(self.creation_time))

    @property
    def idle(self) -> bool:
        return not (self.requests or self.total_outbufs_len or self.will_close)


class _Server(TcpWSGIServer):  # type: ignore[misc]  # a library without types
    """Always accepts: near the limit it closes up to a tenth of the connections, the longest idle first."""

    channel_class = _Channel
    is_stopping = False

    def readable(self) -> bool:
        self._make_room()
        return bool(super().readable())

    def _make_room(self) -> None:
        share = max(1, self.adj.connection_limit // 10)
        if len(self._map) < self.adj.connection_limit - share:
            return
        idle = sorted((c for c in self.active_channels.values() if c.idle), key=lambda channel: channel.idle_since)
        for channel in idle[:share]:
            channel.will_close = True


class Serving:
    """A server that runs until it is asked to stop, and loses no request then.

    A proxy sends its next request on a connection that it has kept open. So a stopping server accepts no connection,
    and goes on to answer on those that are open, until each has been told, or was quiet for a while.
    """

    def __init__(self, server: Any) -> None:
        self._server = server
        self._sockets = server.map if isinstance(server, MultiSocketServer) else server._map
        self._stopping = threading.Event()
        self._turned_at: float | None = None

    def seconds_in_turn(self) -> float:
        """Return for how long the loop that accepts connections has been in its present turn; a turn waits a second."""
        turned_at = self._turned_at
        return 0.0 if turned_at is None else time.monotonic() - turned_at

    def begin_stop(self) -> None:
        """Let ``run`` return; to be called by a signal or another thread."""
        self._stopping.set()
        for channel in list(self._sockets.values()):
            if isinstance(channel, _Server):
                # The loop looks each second, and may have ended and closed this by now.
                with suppress(OSError):
                    channel.trigger.pull_trigger()

    def stop_on_signals(self, begin_drain: Callable[[], None] = lambda: None, drain_seconds: float = 0) -> None:
        """Begin to stop at SIGTERM or Ctrl-C; a second one of a kind raises KeyboardInterrupt.

        ``begin_drain`` is called at once, and requests are served for ``drain_seconds`` more.
        """

        def stop(signum: int, frame: FrameType | None) -> None:
            signal.signal(signum, signal.default_int_handler)
            begin_drain()
            if not drain_seconds:
                self.begin_stop()
                return
            later = threading.Timer(drain_seconds, self.begin_stop)
            later.daemon = True
            later.start()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)

    def run(self, say_stopping: Callable[[], None] = lambda: None) -> None:
        """Serve until it is to stop; then call ``say_stopping``, and finish the work in progress."""
        step = partial(self._server.asyncore.loop, map=self._sockets, use_poll=True, count=1)
        try:
            while not self._stopping.is_set():
                self._turned_at = time.monotonic()
                step(timeout=1)
            say_stopping()
            for server in self._open(_Server):
                server.is_stopping = True
                # Not its trigger, which wakes this loop.
                wasyncore.dispatcher.close(server)
            end = time.monotonic() + PARTING
            while time.monotonic() < end and (connections := self._open(_Channel)):
                for connection in connections:
                    if connection.idle and connection.request is None and time.time() - connection.idle_since > QUIET:
                        connection.will_close = True
                self._turned_at = time.monotonic()
                step(timeout=0.1)
        finally:
            self._server.task_dispatcher.shutdown()

    def _open(self, kind: type[Any]) -> list[Any]:
        return [channel for channel in list(self._sockets.values()) if isinstance(channel, kind)]


def server(
    app: Any,
    *,
    threads: int,
    trusts_proxy: bool,
    host: str | None = None,
    port: int = 0,
    listener: socket.socket | None = None,
    connections: int = CONNECTIONS,
) -> Any:
    """Return a server on a host and port, or on a socket; OSError if it cannot listen."""
    where: dict[str, Any] = {"host": host, "port": port} if listener is None else {"sockets": [listener]}
    settings = Adjustments(
        **where,
        threads=threads,
        ident="blazar",
        clear_untrusted_proxy_headers=not trusts_proxy,
        max_request_body_size=LONGEST_BODY,
        connection_limit=_possible(connections),
        channel_timeout=IDLE,
        cleanup_interval=10,
        # The alternative, select, fails for file descriptors above 1023.
        asyncore_use_poll=True,
        outbuf_high_watermark=_LONGEST_ANSWER,
    )
    workers = ThreadedTaskDispatcher()
    workers.set_thread_count(threads)
    sockets: dict[int, Any] = {}
    made = []
    for known in settings.listen if listener is None else ():
        made.append(_Server(app, sockets, dispatcher=workers, adj=settings, sockinfo=known))
    if listener is not None:
        known = (listener.family, listener.type, listener.proto, listener.getsockname())
        made.append(
            _Server(app, sockets, _sock=listener, dispatcher=workers, adj=settings, sockinfo=known, bind_socket=False)
        )
    if len(made) == 1:
        return made[0]
    addresses = [(one.effective_host, one.effective_port) for one in made]
    return MultiSocketServer(sockets, settings, addresses, workers, made[-1].log_info)


def _possible(connections: int) -> int:
    """Return the possible number of connections, after raising the limit of open files as far as allowed."""
    return max(20, min(connections, process.allow_open_files(connections + _OTHER_FILES) - _OTHER_FILES))
