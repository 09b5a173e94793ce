#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small enforcement service: every project has a budget of host-hours.

It shows the whole protocol of Blazar's ExternalServiceFilter, needs nothing but Python, and keeps its data in memory
only. Start it, and configure Blazar to call it:

    python examples/enforcement_service.py --port 8080 --token secret --host-hours 100

    [enforcement]
    enabled_filters = ExternalServiceFilter
    external_service_base_endpoint = http://127.0.0.1:8080/
    external_service_commit_create_endpoint = http://127.0.0.1:8080/commit-create
    external_service_commit_update_endpoint = http://127.0.0.1:8080/commit-update
    external_service_token = secret

Requests are POSTs of JSON, {"context": …, "lease": …}. Answers:

    check-create, check-update   204: granted. 403 with {"message": "…"}: denied, and the message is for the user.
    commit-create, commit-update           204: granted and recorded. 403 (or another 4xx): the lease is undone.
    on-end                                 204: recorded. After 5xx or no answer it is sent again later, with the same
                                           X-OpenStack-Request-ID, by which a service detects duplicates.

A granted check is not final: the lease may still fail. So the accounting is based on the commits. This
service accepts all of them; credit_service.py refuses a commit that exceeds the account, as a service must do if
accounts may never be overdrawn.
"""

from __future__ import annotations

import argparse
import hmac
import json
import threading
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]


class Denied(Exception):
    """The lease is denied; the text is for its user."""

    status = 403


class Books:
    """The host-hours that each project has spent."""

    def __init__(self, host_hours: float) -> None:
        self.host_hours = host_hours
        self.spent: dict[str, tuple[str, float]] = {}
        """By lease id: the project and the host-hours."""
        self._heard: set[str] = set()
        self._lock = threading.Lock()

    def hear(self, path: str, body: Json, request_id: str | None) -> None:
        """Record a message of Blazar, or raise Denied for a check."""
        with self._lock:
            match path:
                case "/check-create" | "/check-update":
                    self._check(body["lease"])
                case "/commit-create" | "/commit-update" | "/on-end" if request_id in self._heard:
                    pass
                case "/commit-create" | "/commit-update":
                    self._note(body["lease"], end=body["lease"]["end_date"])
                case "/on-end":
                    # Unused hours are refunded.
                    self._note(body["lease"], end=min(body["lease"]["end_date"], body["occurred_at"]))
            if request_id and not path.startswith("/check"):
                self._heard.add(request_id)

    def left(self, project_id: str, *, besides: str | None = None) -> float:
        """Return the remaining host-hours of a project, not counting one lease."""
        spent = (cost for lease, (whose, cost) in self.spent.items() if whose == project_id and lease != besides)
        return self.host_hours - sum(spent)

    def _check(self, lease: Json) -> None:
        wanted, left = cost(lease, lease["end_date"]), self.left(lease["project_id"], besides=lease["id"])
        if wanted > left:
            raise Denied(f"the lease costs {wanted:g} host-hours, and the project has {left:g} left")

    def _note(self, lease: Json, *, end: str) -> None:
        self.spent[lease["id"]] = (lease["project_id"], cost(lease, end))


def cost(lease: Json, end: str) -> float:
    """Return the host-hours of a lease until ``end``. Dates are UTC and sort as strings."""
    hosts = sum(len(reservation["allocations"]) for reservation in lease["reservations"])
    length = datetime.fromisoformat(end) - datetime.fromisoformat(lease["start_date"])
    return hosts * max(0.0, length.total_seconds() / 3600)


class Handler(BaseHTTPRequestHandler):
    """Handles the requests of Blazar."""

    protocol_version = "HTTP/1.1"
    books: Books
    token: str

    def do_POST(self) -> None:
        """Handle a check or a message."""
        text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        given = self.headers.get("X-Auth-Token", "")
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            return self.answer(401, {"message": "X-Auth-Token is missing or wrong"})
        try:
            self.books.hear(self.path, json.loads(text), self.headers.get("X-OpenStack-Request-ID"))
        except Denied as denied:
            return self.answer(denied.status, {"message": str(denied)})
        return self.answer(204)

    def answer(self, status: int, body: Json | None = None) -> None:
        """Send an answer."""
        text = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        if body is not None:
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


def server(books: Books, *, port: int = 0, token: str = "", handler: type[Handler] = Handler) -> ThreadingHTTPServer:
    """Return a server on loopback; port 0 selects a free one."""
    made = type("Handler", (handler,), {"books": books, "token": token})
    return ThreadingHTTPServer(("127.0.0.1", port), made)


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--token", default="")
    parser.add_argument("--host-hours", type=float, default=100.0)
    options = parser.parse_args()
    with server(Books(options.host_hours), port=options.port, token=options.token) as serving:
        print(f"http://127.0.0.1:{serving.server_port}/ gives every project {options.host_hours:g} host-hours")
        try:
            serving.serve_forever()
        except KeyboardInterrupt:
            print("bye")


if __name__ == "__main__":
    main()
