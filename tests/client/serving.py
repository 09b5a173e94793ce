# SPDX-License-Identifier: Apache-2.0
"""The API of a world behind a real port, and a way to it on which requests and answers can be lost."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

from blazarclient.library import Reservations
from blazarclient.library.leases import Leases
from keystoneauth1 import session, token_endpoint
from werkzeug.serving import WSGIRequestHandler, make_server


class Fate(Enum):
    """What becomes of a request."""

    ARRIVES = "arrives"
    LOST = "the request is lost"
    ANSWER_LOST = "the answer is lost"
    CUT = "the answer is cut off"


class Way:
    """Passes requests on; the next ones meet with the ``fates``, all later ones with the ``rest``."""

    def __init__(self, app: Callable[..., Iterable[bytes]]) -> None:
        self._app = app
        self.url = ""
        self.fates: list[Fate] = []
        self.rest = Fate.ARRIVES
        self.met = 0

    def loses(self, *fates: Fate, rest: Fate = Fate.ARRIVES) -> None:
        self.fates, self.rest = list(fates), rest

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        fate = self.fates.pop(0) if self.fates else self.rest
        self.met += fate is not Fate.ARRIVES
        if fate is Fate.LOST:
            return _hang_up(environ)
        answer = self._app(environ, start_response)
        if fate is Fate.ARRIVES:
            return answer
        body = b"".join(answer)
        if fate is Fate.CUT:
            # The headers, which go with the first bytes, announce more than comes.
            return _cut(environ, body[: len(body) // 2])
        return _hang_up(environ)


class _Quiet(WSGIRequestHandler):
    def log(self, *_: Any) -> None:
        pass


def _cut(environ: dict[str, Any], part: bytes) -> Iterator[bytes]:
    yield part
    _hang_up(environ)


def _hang_up(environ: dict[str, Any]) -> Iterable[bytes]:
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    return []


@contextmanager
def serving(app: Callable[..., Iterable[bytes]]) -> Iterator[Way]:
    """Serve an application on a free port of this machine."""
    way = Way(app)
    server = make_server("127.0.0.1", 0, way, threaded=True, request_handler=_Quiet)
    way.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield way
    server.shutdown()
    thread.join()
    server.server_close()


def logged_in(url: str, who: str = "curie:physics") -> session.Session:
    """Return a session of somebody: user, project and roles, as standalone mode takes them for a token."""
    return session.Session(auth=token_endpoint.Token(url, who))


def library(url: str, who: str = "curie:physics") -> Reservations:
    """Return the library of somebody, which pauses nowhere."""
    made = Reservations(logged_in(url, who), sleep=lambda _: None)
    made.leases = Leases(made.transport, sleep=lambda _: None)
    return made
