#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small service that decides about leases: every project has a budget of host-hours.

It shows the whole conversation with Blazar's ExternalServiceFilter, needs nothing but Python, and forgets everything
when it ends. Start it, and let Blazar ask it:

    python examples/enforcement_service.py --port 8080 --token secret --host-hours 100

    [enforcement]
    enabled_filters = ExternalServiceFilter
    external_service_base_endpoint = http://127.0.0.1:8080/
    external_service_commit_create_endpoint = http://127.0.0.1:8080/commit-create
    external_service_commit_update_endpoint = http://127.0.0.1:8080/commit-update
    external_service_token = secret

What comes in is a POST of JSON, {"context": …, "lease": …}. What goes out:

    check-create, check-update   204: granted. 403 with {"message": "…"}: denied, and the message is for the user.
    commit-create, commit-update           204: granted and noted. 403 (or another 4xx): the lease is undone.
    on-end                                 204: noted. 5xx or nothing, and it comes again later, with the same
                                           X-OpenStack-Request-ID: by that, a service notices what it has heard before.

A check promises nothing: the lease may still not come to be. So it is the commits that the books are kept by. This
service takes them all; credit_service.py refuses what the account does not bear, which a service should do that must
never be overdrawn.
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
    """The lease can not be; the text is for its user."""

    status = 403


class Books:
    """Who has spent how many host-hours."""

    def __init__(self, host_hours: float) -> None:
        self.host_hours = host_hours
        self.spent: dict[str, tuple[str, float]] = {}
        """By lease: the project and the host-hours."""
        self._heard: set[str] = set()
        self._lock = threading.Lock()

    def hear(self, path: str, body: Json, request_id: str | None) -> None:
        """Take note of what Blazar says, or object to what it asks."""
        with self._lock:
            match path:
                case "/check-create" | "/check-update":
                    self._check(body["lease"])
                case "/commit-create" | "/commit-update" | "/on-end" if request_id in self._heard:
                    pass
                case "/commit-create" | "/commit-update":
                    self._note(body["lease"], end=body["lease"]["end_date"])
                case "/on-end":
                    # What was not used is given back.
                    self._note(body["lease"], end=min(body["lease"]["end_date"], body["occurred_at"]))
            if request_id and not path.startswith("/check"):
                self._heard.add(request_id)

    def left(self, project_id: str, *, besides: str | None = None) -> float:
        """Return how many host-hours a project has left, not counting one lease."""
        spent = (cost for lease, (whose, cost) in self.spent.items() if whose == project_id and lease != besides)
        return self.host_hours - sum(spent)

    def _check(self, lease: Json) -> None:
        wanted, left = cost(lease, lease["end_date"]), self.left(lease["project_id"], besides=lease["id"])
        if wanted > left:
            raise Denied(f"the lease costs {wanted:g} host-hours, and the project has {left:g} left")

    def _note(self, lease: Json, *, end: str) -> None:
        self.spent[lease["id"]] = (lease["project_id"], cost(lease, end))


def cost(lease: Json, end: str) -> float:
    """Return the host-hours of a lease until an instant. Dates are UTC and sort as texts."""
    hosts = sum(len(reservation["allocations"]) for reservation in lease["reservations"])
    length = datetime.fromisoformat(end) - datetime.fromisoformat(lease["start_date"])
    return hosts * max(0.0, length.total_seconds() / 3600)


class Handler(BaseHTTPRequestHandler):
    """Answers Blazar."""

    protocol_version = "HTTP/1.1"
    books: Books
    token: str

    def do_POST(self) -> None:
        """Take a question or a message."""
        text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        given = self.headers.get("X-Auth-Token", "")
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            return self.answer(401, {"message": "who are you?"})
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
    """Return a server on loopback; port 0 is any that is free."""
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
