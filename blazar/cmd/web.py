# SPDX-License-Identifier: Apache-2.0
"""The HTTP server of blazar-api and blazar-standalone: waitress, with bounds on what connections can take.

By itself waitress stops to listen when a hundred connections are open, whatever they are doing; nobody has to send
anything to keep all others away. Here those that have been without a request for the longest make room.
"""

from __future__ import annotations

import socket
import time
from typing import Any

from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.server import MultiSocketServer, TcpWSGIServer
from waitress.task import ThreadedTaskDispatcher

from blazar.api.app import MAX_BODY_BYTES
from blazar.cmd import files

CONNECTIONS = 1000
"""Connections that are open at a time, by default."""

IDLE = 75
"""Seconds after which an idle connection is closed: more than the 60 for which proxies keep theirs open, so that it is
they who close it."""

_OTHER_FILES = 256
"""Files that a process has open beside its connections: of the message bus, of the database, of the log."""

_LONGEST_ANSWER = 1024 * 1024 * 1024
"""Bytes of an answer that are kept (in a file, if many) for a client that reads slowly, so that no thread waits."""


class _Parser(HTTPRequestParser):  # type: ignore[misc]  # a library without types
    """Refuses a request that says in two ways where it ends: a proxy before us may have understood the other one."""

    def parse_header(self, header_plus: bytes) -> None:
        super().parse_header(header_plus)
        if self.chunked and "CONTENT_LENGTH" in self.headers:
            raise ParsingError("Content-Length together with Transfer-Encoding; send one of them")
        if "TRANSFER_ENCODING" in self.headers:
            raise ParsingError("Transfer-Encoding in a request of version 1.0; send Content-Length")


class _Channel(HTTPChannel):  # type: ignore[misc]  # a library without types
    """A connection that knows when it was last of use."""

    parser_class = _Parser
    served = 0.0

    def service(self) -> None:
        self.served = time.time()
        super().service()
        self.served = time.time()

    @property
    def idle_since(self) -> float:
        # Not the last byte counts: who sends one a minute has not asked for anything.
        return max(self.served, float(self.creation_time))

    @property
    def idle(self) -> bool:
        return not (self.requests or self.total_outbufs_len or self.will_close)


class _Server(TcpWSGIServer):  # type: ignore[misc]  # a library without types
    """Listens always: a tenth of the connections make room before there are too many."""

    channel_class = _Channel

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
    """Return a server on a host and port, or on a socket; OSError if it can not listen."""
    where: dict[str, Any] = {"host": host, "port": port} if listener is None else {"sockets": [listener]}
    settings = Adjustments(
        **where,
        threads=threads,
        ident="blazar",
        clear_untrusted_proxy_headers=not trusts_proxy,
        max_request_body_size=2 * MAX_BODY_BYTES,
        connection_limit=_possible(connections),
        channel_timeout=IDLE,
        cleanup_interval=10,
        # The other way to look at sockets does not know numbers beyond 1023.
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
    """Return how many connections there can be, when as many files may be open as the system allows."""
    return max(20, min(connections, files.allow(connections + _OTHER_FILES) - _OTHER_FILES))
