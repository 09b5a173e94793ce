# SPDX-License-Identifier: Apache-2.0
"""A cloud of few words: a Keystone that lets in or does not, a Nova with aggregates, a Placement without providers."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PASSWORD = "correct-horse"
SERVICES = {
    "compute": "compute",
    "placement": "placement",
    "network": "network/v2.0",
    "volumev3": "volume/v3",
    "image": "image/v2",
    "orchestration": "heat/v1",
}
"""The paths of the services in the catalog."""
PROJECT = "5e71ce0000000000000000000000cafe"


@dataclass
class StubCloud:
    """Answers as the fields say; ``statuses`` holds, by the beginning of a path, what fails with which status."""

    aggregates: list[dict[str, Any]] = field(default_factory=list)
    statuses: dict[str, int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    projects: list[str] = field(default_factory=lambda: [PROJECT, "physics"])
    """Where the service user has a role."""
    regions: tuple[str, ...] = ("r",)
    """The regions in the catalog; all have the same endpoints."""

    def __post_init__(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.port = int(self._server.server_address[1])
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def add_aggregate(self, name: str, zone: str | None = None) -> None:
        self.aggregates.append(
            {"id": len(self.aggregates) + 1, "name": name, "availability_zone": zone, "hosts": [], "metadata": {}}
        )

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any, dict[str, str]]:
        self.asked.append(f"{method} {path}")
        for start, status in self.statuses.items():
            if path.startswith(start):
                return status, {"error": {"code": status, "message": "as the test wants it"}}, {}
        match path.partition("?")[0].rstrip("/"):
            case "/v3/auth/tokens":
                return self._login(body)
            case "":
                return 300, {"versions": {"values": [self._version("v3.14", "v3")]}}, {}
            case "/v3":
                return 200, {"version": self._version("v3.14", "v3")}, {}
            case "/v3/auth/projects":
                return 200, {"projects": [{"id": id_} for id_ in self.projects]}, {}
            case "/compute":
                return 200, {"version": self._version("v2.1", "compute", version="2.100", min_version="2.1")}, {}
            case "/compute/os-aggregates":
                return 200, {"aggregates": self.aggregates}, {}
            case "/placement":
                return (
                    200,
                    {"versions": [self._version("v1.0", "placement", max_version="1.39", min_version="1.0")]},
                    {},
                )
            case "/placement/resource_providers":
                return 200, {"resource_providers": []}, {}
            case "/network/v2.0/networks":
                return 200, {"networks": []}, {}
            case "/image/v2/images":
                return 200, {"images": []}, {}
            case "/heat/v1/stacks":
                return 200, {"stacks": []}, {}
            case "/volume/v3/types":
                return 200, {"volume_types": []}, {}
        return 404, {"error": {"code": 404, "message": "nothing here"}}, {}

    def _login(self, body: Any) -> tuple[int, Any, dict[str, str]]:
        if body["auth"]["identity"]["password"]["user"]["password"] != PASSWORD:
            return 401, {"error": {"code": 401, "message": "Wrong user or password.", "title": "Unauthorized"}}, {}
        catalog = [
            {
                "type": kind,
                "name": kind,
                "id": kind,
                "endpoints": [
                    {"id": f"{kind}-{i}-{r}", "interface": i, "region": r, "region_id": r, "url": f"{self.url}/{path}"}
                    for i in ("public", "internal", "admin")
                    for r in self.regions
                ],
            }
            for kind, path in SERVICES.items()
        ]
        token = {
            "methods": ["password"],
            "user": {"id": "u", "name": "blazar", "domain": {"id": "default", "name": "Default"}},
            "project": {"id": PROJECT, "name": "service", "domain": {"id": "default", "name": "Default"}},
            "roles": [{"id": "r", "name": "admin"}],
            "issued_at": "2030-01-01T00:00:00.000000Z",
            "expires_at": "2099-01-01T00:00:00.000000Z",
            "catalog": catalog,
        }
        return 201, {"token": token}, {"X-Subject-Token": "a-token"}

    def _version(self, name: str, kind: str, **limits: str) -> dict[str, Any]:
        links = [{"rel": "self", "href": f"{self.url}/{kind}"}]
        return {"id": name, "status": "CURRENT", "links": links, **limits}


def _handler(cloud: StubCloud) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            status, answer, headers = cloud.answer(self.command, self.path, body)
            raw = json.dumps(answer).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", "Content-Length": str(len(raw)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(raw)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    return Handler
