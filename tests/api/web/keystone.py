# SPDX-License-Identifier: Apache-2.0
"""A Keystone of two users over HTTP: passwords, passcodes, application credentials, rescoping, revocation."""

from __future__ import annotations

import itertools
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PASSWORDS = {"curie": "radium", "bohr": "kopenhagen", "noether": "ring", "tesla": "coil"}
NEEDS_PASSCODE = "bohr"
WITHOUT_PROJECT = "tesla"
PASSCODE = "271828"
PROJECTS = {"physics": "Physics", "art": "Art"}
CREDENTIAL = ("ac-1", "ac-secret")
EXPIRES = "2030-01-01T01:00:00.000000Z"


@dataclass
class FakeKeystone:
    """Keeps tokens by id: (user, project, the token it was derived from)."""

    tokens: dict[str, tuple[str, str | None, str | None]] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    status: int | None = None
    """Fail with this status, whatever is asked."""
    hold: threading.Event | None = None
    """Answer only when it is set."""
    entered: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, method: str, path: str, headers: dict[str, str], body: Any) -> tuple[int, Any, dict[str, str]]:
        self.asked.append((method, path))
        self.headers.append(headers)
        self.entered.release()
        if self.hold is not None:
            self.hold.wait(20)
        if self.status is not None:
            return self.status, {"error": {"code": self.status, "message": "as the test wants it"}}, {}
        match method, path.partition("?")[0]:
            case "POST", "/v3/auth/tokens":
                return self._sign_in(headers, body["auth"])
            case "GET", "/v3/auth/projects":
                return self._projects(headers.get("X-Auth-Token", ""))
            case "DELETE", "/v3/auth/tokens":
                return self._revoke(headers["X-Subject-Token"])
        return 404, {"error": {"code": 404, "message": "nothing here"}}, {}

    def user_of(self, token: str) -> tuple[str, str | None] | None:
        found = self.tokens.get(token)
        return None if found is None else found[:2]

    def _sign_in(self, headers: dict[str, str], auth: Any) -> tuple[int, Any, dict[str, str]]:
        identity = auth["identity"]
        match identity["methods"]:
            case ["password"]:
                user = identity["password"]["user"]
                if user["domain"] != {"name": "Default"} or PASSWORDS.get(user["name"]) != user["password"]:
                    return _refused()
                if user["name"] == NEEDS_PASSCODE:
                    told = {"methods": ["password"], "expires_at": EXPIRES, "user": {"name": user["name"]}}
                    body = {"receipt": told, "required_auth_methods": [["password", "totp"]]}
                    return 401, body, {"Openstack-Auth-Receipt": "receipt-of-bohr"}
                return self._issue(user["name"], None, None)
            case ["totp"]:
                user = identity["totp"]["user"]
                if headers.get("Openstack-Auth-Receipt") != "receipt-of-bohr" or user["passcode"] != PASSCODE:
                    return _refused()
                return self._issue(user["name"], None, None)
            case ["application_credential"]:
                given = identity["application_credential"]
                return self._issue("curie", "art", None) if tuple(given.values()) == CREDENTIAL[::-1] else _refused()
            case ["token"]:
                parent = identity["token"]["id"]
                project = auth["scope"]["project"]["id"]
                if parent not in self.tokens or project not in PROJECTS:
                    return _refused()
                return self._issue(self.tokens[parent][0], project, parent)
        return _refused()

    def _issue(self, user: str, project: str | None, parent: str | None) -> tuple[int, Any, dict[str, str]]:
        token = f"gAAAA-token-{next(self._numbers)}" + "x" * 170
        self.tokens[token] = (user, project, parent)
        default = {"id": "default", "name": "Default"}
        body: dict[str, Any] = {
            "methods": ["password"],
            "user": {"id": f"id-of-{user}", "name": user, "domain": default},
            "issued_at": "2030-01-01T00:00:00.000000Z",
            "expires_at": EXPIRES,
        }
        if project is not None:
            body["project"] = {"id": project, "name": PROJECTS[project], "domain": default}
            body["roles"] = [{"id": "r", "name": "member"}, {"id": "s", "name": "reader"}]
        return 201, {"token": body}, {"X-Subject-Token": token}

    def _projects(self, token: str) -> tuple[int, Any, dict[str, str]]:
        if token not in self.tokens:
            return _refused()
        names = {} if self.tokens[token][0] == WITHOUT_PROJECT else {**PROJECTS, "closed": "Closed"}
        found = [
            {"id": id_, "name": name, "domain_id": "default", "enabled": id_ != "closed"} for id_, name in names.items()
        ]
        return 200, {"projects": found}, {}

    def _revoke(self, token: str) -> tuple[int, Any, dict[str, str]]:
        if token not in self.tokens:
            return 404, {"error": {"code": 404, "message": "no such token"}}, {}
        self.tokens = {id_: found for id_, found in self.tokens.items() if token not in (id_, found[2])}
        return 204, None, {}


def _refused() -> tuple[int, Any, dict[str, str]]:
    return 401, {"error": {"code": 401, "message": "Who are you?", "title": "Unauthorized"}}, {}


def _handler(keystone: FakeKeystone) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            status, answer, headers = keystone.answer(self.command, self.path, dict(self.headers), body)
            raw = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", "Content-Length": str(len(raw)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(raw)

        do_POST = do_DELETE = do_GET

        def log_message(self, *_: object) -> None:
            pass

    return Handler
