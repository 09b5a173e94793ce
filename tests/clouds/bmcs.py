# SPDX-License-Identifier: Apache-2.0
"""BMCs for tests: real servers on loopback that speak as much Redfish as power needs."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from blazar.clouds.outgoing.addresses import Allowed, TargetNames
from blazar.clouds.outgoing.posting import Poster
from blazar.clouds.ports.power import PowerRef
from blazar.clouds.redfish.client import RedfishClient
from blazar.clouds.redfish.options import BmcLogin, CredentialsSource
from blazar.clouds.redfish.power import RedfishPower
from blazar.model.power.addresses import PowerAdapter, PowerAddress

SYSTEM = "/redfish/v1/Systems/1"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
PASSWORD = "a very secret password"
LOOPBACK = Allowed.of((), ("127.0.0.0/8",), http=True, named=TargetNames("target", "redfish"))


@dataclass
class FakeBmc:
    """A BMC and its one system. ``answers`` are those to be given instead of its own, by method and path.

    It is ``slow`` by so many seconds, and gives sessions that are valid until they are cleared.
    """

    power: str = "On"
    kinds: list[str] | None = field(default_factory=lambda: ["On", "ForceOff", "GracefulShutdown"])
    watts: object = None
    old_meter: bool = False
    slow: float = 0.0
    port: int = 0
    scheme: str = "http"
    target: str = RESET
    answers: dict[tuple[str, str], tuple[int, object]] = field(default_factory=dict)
    sessions: set[str] = field(default_factory=set)
    heard: list[tuple[str, str, Any]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}{SYSTEM}"

    def ref(self, host: str = "node-1") -> PowerRef:
        return PowerRef(host, host, PowerAddress(PowerAdapter.REDFISH, self.url))

    def resets(self) -> list[str]:
        return [body["ResetType"] for method, path, body in self.heard if (method, path) == ("POST", self.target)]

    def answer(self, method: str, path: str, body: Any) -> tuple[int, object]:
        if (method, path) in self.answers:
            return self.answers[method, path]
        match method, path:
            case "GET", "/redfish/v1/Systems/1":
                reset: dict[str, Any] = {"target": self.target}
                if self.kinds is not None:
                    reset["ResetType@Redfish.AllowableValues"] = self.kinds
                links = {"Chassis": [{"@odata.id": "/redfish/v1/Chassis/c"}]}
                return 200, {"PowerState": self.power, "Actions": {"#ComputerSystem.Reset": reset}, "Links": links}
            case "GET", "/redfish/v1/Chassis/c":
                meters = {"EnvironmentMetrics": {"@odata.id": "/redfish/v1/Chassis/c/EnvironmentMetrics"}}
                old = {"Power": {"@odata.id": "/redfish/v1/Chassis/c/Power"}}
                return 200, {} if self.watts is None else old if self.old_meter else meters
            case "GET", "/redfish/v1/Chassis/c/EnvironmentMetrics":
                return 200, {"PowerWatts": {"Reading": self.watts}}
            case "GET", "/redfish/v1/Chassis/c/Power":
                return 200, {"PowerControl": [{"PowerConsumedWatts": self.watts}]}
            case "POST", self.target:
                self.power = "On" if body["ResetType"] == "On" else "Off"
                return 204, None
        return 404, {"error": {"message": "there is no such resource"}}


def _handler(bmc: FakeBmc) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            bmc.heard.append((self.command, self.path, body))
            time.sleep(bmc.slow)
            if self.path == "/redfish/v1/SessionService/Sessions" and (self.command, self.path) not in bmc.answers:
                assert body == {"UserName": "blazar", "Password": PASSWORD}
                token = f"token-{len(bmc.heard)}"
                bmc.sessions.add(token)
                return self._give(201, {}, {"X-Auth-Token": token})
            basic = f"Basic {base64.b64encode(f'blazar:{PASSWORD}'.encode()).decode()}"
            known = self.headers.get("X-Auth-Token") in bmc.sessions or self.headers.get("Authorization") == basic
            known |= self.path.endswith("/Sessions")
            status, content = bmc.answer(self.command, self.path, body) if known else (401, {})
            return self._give(status, content, {"Location": "/elsewhere"} if 300 <= status < 400 else {})

        def _give(self, status: int, content: object, headers: dict[str, str]) -> None:
            text = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(0 if status == 204 else len(text)))
            self.end_headers()
            if status != 204:
                self.wfile.write(text)

        do_GET = do_POST = _serve

    return Handler


class _QuietServer(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of callers that hang up."""


@contextmanager
def serving(bmc: FakeBmc | None = None, *, certificate: tuple[Path, Path] | None = None) -> Iterator[FakeBmc]:
    """Serve a BMC; with a certificate and its key: by TLS."""
    bmc = bmc or FakeBmc()
    server = _QuietServer(("127.0.0.1", 0), _handler(bmc))
    server.daemon_threads = True
    bmc.port = server.server_port
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        bmc.scheme = "https"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield bmc
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def redfish(*, timeout: float = 5.0, sessions: bool = False, allowed: Allowed = LOOPBACK, **more: Any) -> RedfishPower:
    """Return the adapter, which may ask this machine."""
    client = RedfishClient(Poster(allowed), timeout=timeout, sessions=sessions)
    return RedfishPower(client, allowed, CredentialsSource(BmcLogin("blazar", PASSWORD), None), **more)
