# SPDX-License-Identifier: Apache-2.0
"""A service that says what the test tells it to, over a real connection: also nothing at all, or half of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from blazarclient.library.transport import MICROVERSION

SPOKEN = f"reservation {MICROVERSION}"
"""What a service says that speaks as the library does."""

NEWEST = {"OpenStack-API-Version": SPOKEN, "Content-Type": "application/json"}
REQUEST_ID = "req-11111111-2222-4333-8444-555555555555"


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True)
class Says:
    """An answer. ``cut``: the connection ends in the middle of it."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False

    @property
    def bytes(self) -> bytes:
        if self.body is None:
            return b""
        return self.body.encode() if isinstance(self.body, str) else json.dumps(self.body).encode()


class Hangs:
    """No answer: the request is read and the connection closed."""


def lease(name: str = "training", **values: Any) -> dict[str, Any]:
    """Return a lease as a service tells it."""
    return {
        "id": "5f0c2b1e-8f0e-4c55-9d57-2d0f6a0e7a11",
        "name": name,
        "project_id": "physics",
        "user_id": "curie",
        "status": "PENDING",
        "degraded": False,
        "revision": 1,
        "start_date": "2030-05-01T10:00:00Z",
        "end_date": "2030-05-04T10:00:00Z",
        "before_end_date": "2030-05-04T09:00:00Z",
        "created_at": "2030-04-01T12:00:00Z",
        "updated_at": None,
        "deleted_at": None,
        "conditions": [],
        "reservations": [],
        "events": [],
        "links": [],
        **values,
    }


def refused(status: int, code: str, detail: str, **more: Any) -> Says:
    """Return a refusal as a service says it."""
    headers = more.pop("headers", {})
    item = {"status": status, "code": f"reservation.{code}", "title": code, "detail": detail, **more}
    return Says(status, {"errors": [{**item, "request_id": REQUEST_ID, "links": []}]}, headers)


class Stub:
    """Gives answers in turn, the last one again and again; remembers what it was asked."""

    def __init__(self) -> None:
        self.answers: list[Says | Hangs | Callable[[Asked], Says]] = []
        self.asked: list[Asked] = []
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                pass

            def answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                text = self.rfile.read(length)
                asked = Asked(self.command, self.path, self.headers, json.loads(text) if text else None)
                says = stub.hears(asked)
                if says is None:
                    stub.asked.append(asked)
                    says = stub.next()
                if callable(says):
                    says = says(asked)
                self.close_connection = True
                if isinstance(says, Hangs):
                    return
                data = says.bytes
                self.send_response(says.status)
                spoken = asked.headers.get("OpenStack-API-Version", NEWEST["OpenStack-API-Version"])
                usual = {**NEWEST, "OpenStack-API-Version": spoken, "x-openstack-request-id": REQUEST_ID}
                for name, value in {**usual, **says.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(data[: len(data) // 2] if says.cut else data)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def says(self, *answers: Says | Hangs | Callable[[Asked], Says]) -> None:
        self.answers = list(answers)

    def hears(self, asked: Asked) -> Says | None:
        """Return an answer of its own, None to leave it to the test."""
        return None

    def next(self) -> Says | Hangs | Callable[[Asked], Says]:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
