# SPDX-License-Identifier: Apache-2.0
"""The service and all around it that can fail: a manager, an API, users of it, and ways that can be cut."""

from __future__ import annotations

import json
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from sqlalchemy.engine import make_url

from blazar.store.sql.engine import make_engine
from blazar.store.sql.migrate import upgrade
from tests.cmd.stub import PASSWORD, StubCloud
from tests.proxy import Proxy
from tests.slow.alerts.programs import HOSTS, simulated
from tests.slow.alerts.watching import free_port

CONF = """
[DEFAULT]
host = 127.0.0.1
port = {port}
transport_url = {bus}
control_exchange = {topic}
rpc_response_timeout = 1
log_file = {log}

[monitoring]
listen = 127.0.0.1:{metrics}
sample_interval = 1

[manager]
rpc_topic = {topic}
minutes_before_end_lease = 1
sweep_interval = 5
claim_ttl = 6

[database]
connection = {database}

[physical:host]
polling_interval = 1

[enforcement]
enabled_filters = ExternalServiceFilter
external_service_base_endpoint = {credit}/
external_service_timeout = 1
external_service_attempts = 1

[oslo_messaging_rabbit]
kombu_reconnect_delay = 0.2

[keystone_authtoken]
auth_type = v3password
auth_url = {keystone}/v3
username = blazar
user_domain_id = default
project_name = service
project_domain_id = default
password = {password}
http_request_max_retries = 0
token_cache_time = -1
"""


ONLY_NEWER = ("/v1/problems", "/v1/managers")
"""Paths that the first version does not have."""


class Keystone(StubCloud):
    """A Keystone that knows one token, of an operator, until the password of the service is another one."""

    has_other_password = False

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any, dict[str, str]]:
        """Answer a request."""
        if path.startswith("/v3/auth/tokens"):
            if self.has_other_password:
                return 401, {"error": {"code": 401, "message": "Wrong user or password.", "title": "Unauthorized"}}, {}
            login = body or {"auth": {"identity": {"password": {"user": {"password": PASSWORD}}}}}
            _, found, headers = self._login(login)
            places = [{"id": i, "interface": i, "region": "r", "url": f"{self.url}/v3"} for i in ("internal", "admin")]
            found["token"]["catalog"].append({"type": "identity", "name": "identity", "id": "i", "endpoints": places})
            return 201 if body else 200, found, headers
        return super().answer(method, path, body)


class CreditService:
    """Allows all that it is asked about, while it is there."""

    def __init__(self) -> None:
        self.is_away = False
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                self.send_response(503 if service.is_away else 204)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        """Go away for good."""
        self._server.shutdown()
        self._server.server_close()


class Stage:
    """The processes with their files in a folder; ``bus`` and ``database`` are ways that can be cut."""

    def __init__(self, folder: Path, database_url: str, bus: tuple[str, int], topic: str) -> None:
        self.folder = folder
        url = make_url(database_url)
        self.database = Proxy(str(url.host), int(url.port or 5432))
        self.bus = Proxy(*bus)
        self.keystone, self.credit = Keystone(), CreditService()
        self.cloud = simulated(folder)
        self.ports = {"blazar-manager": free_port(), "blazar-api": free_port()}
        self.logs = {name: folder / f"{name}.log" for name in self.ports}
        self._port = free_port()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        engine = make_engine(database_url)
        upgrade(engine)
        engine.dispose()
        values = {
            "port": self._port,
            "bus": f"rabbit://guest:guest@127.0.0.1:{self.bus.port}/",
            "topic": topic,
            "database": url.set(host="127.0.0.1", port=self.database.port).render_as_string(hide_password=False),
            "credit": self.credit.url,
            "keystone": self.keystone.url,
            "password": PASSWORD,
        }
        for name, metrics in self.ports.items():
            (folder / name).mkdir()
            text = CONF.format(**values, metrics=metrics, log=self.logs[name])
            (folder / name / "blazar.conf").write_text(text, "utf-8")
        self._users: list[Users] = []

    def begin(self) -> None:
        """Start the processes, register hosts, and let users come."""
        for name in self.ports:
            self._start(name)
        end = time.monotonic() + 120
        while self.ask("GET", "/v1/leases")[0] != 200:
            assert time.monotonic() < end, self.tail()
            time.sleep(0.2)
        for number in range(1, HOSTS + 1):
            status, answer = self.ask("POST", "/v1/os-hosts", {"name": f"node-{number}"})
            assert status == 201, answer
        self._users = [Users(self, readers=True), Users(self, readers=False)]
        for users in self._users:
            users.start()

    def _start(self, name: str) -> None:
        file = str(self.folder / name / "blazar.conf")
        command = [sys.executable, "-m", "tests.slow.alerts.programs", name, "--config-file", file]
        with (self.folder / f"{name}.out").open("ab") as output:
            self._processes[name] = subprocess.Popen(command, stdout=output, stderr=output)

    def end(self) -> None:
        """End all that was started."""
        for users in self._users:
            users.stopping.set()
        for process in self._processes.values():
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait(30)
        for users in self._users:
            users.join(30)
        self.database.cut()
        self.bus.cut()
        self.keystone.close()
        self.credit.close()

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request of an operator; return the status, 0 without an answer, and what it says."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "X-Auth-Token": "a-token",
                "Content-Type": "application/json",
                **({"OpenStack-API-Version": "reservation 1.1"} if path in ONLY_NEWER else {}),
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def said(self, name: str) -> str:
        """Return what a process has said: its log, and its standard error."""
        files = (self.logs[name], self.folder / f"{name}.out")
        return "".join(file.read_text("utf-8", "replace") for file in files if file.exists())

    def tail(self) -> str:
        """Return the last lines of all."""
        return "\n".join(line for name in self.ports for line in self.said(name).splitlines()[-15:])

    # What an operator's day brings.

    def hold(self) -> None:
        """Let the manager stand still."""
        with self.cloud.inspect():
            self._processes["blazar-manager"].send_signal(signal.SIGSTOP)

    def release(self) -> None:
        """Let it go on."""
        self._processes["blazar-manager"].send_signal(signal.SIGCONT)

    def set_clock(self, off: float) -> None:
        """Set the clock of the manager's machine wrong by some seconds."""
        (self.folder / "clock").write_text(str(off), "utf-8")

    def fill_disk(self) -> None:
        """Let the log of the API grow no more."""
        self._limit_files(self.logs["blazar-api"].stat().st_size)

    def clear_disk(self) -> None:
        """Let it grow again."""
        self._limit_files(resource.RLIM_INFINITY)

    def _limit_files(self, size: int) -> None:
        pid = self._processes["blazar-api"].pid
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))

    def empty_freepool(self) -> None:
        """Take a host out of the freepool by hand."""
        with self.cloud.change_state() as state:
            _freepool(state).hosts.remove("node-4")

    def refill_freepool(self) -> None:
        """Put it back."""
        with self.cloud.change_state() as state:
            _freepool(state).hosts.append("node-4")

    def begin_snapshot(self) -> None:
        """Have a lease near its end with a server of which an image is made, for ever."""
        now = datetime.now(UTC).replace(second=0, microsecond=0)
        lease = {
            "name": "thesis",
            "start_date": "now",
            "end_date": f"{now + timedelta(minutes=3):%Y-%m-%d %H:%M}",
            "reservations": [
                {
                    "resource_type": "physical:host",
                    "min": 1,
                    "max": 1,
                    "hypervisor_properties": '["==", "$hypervisor_hostname", "node-1"]',
                    "resource_properties": "",
                    "before_end": "snapshot",
                }
            ],
            "events": [],
        }
        status, answer = self.ask("POST", "/v1/leases", lease)
        assert status == 201, answer
        found = answer["lease"]
        end = time.monotonic() + 30
        while found["status"] != "ACTIVE":
            assert time.monotonic() < end, found
            time.sleep(0.2)
            found = self.ask("GET", f"/v1/leases/{found['id']}")[1]["lease"]
        self.cloud.users.boot_server(
            "thesis",
            project_id=found["project_id"],
            user_id=found["user_id"],
            host="node-1",
            hint=found["reservations"][0]["id"],
        )

    def finish_snapshot(self) -> None:
        """Let the image be ready."""
        with self.cloud.change_state() as state:
            for image in state.images.values():
                image.active_at = datetime.now(UTC).isoformat()


def _freepool(state: Any) -> Any:
    (found,) = (aggregate for aggregate in state.aggregates.values() if aggregate.name == "freepool")
    return found


class Users(threading.Thread):
    """Users who look at their leases all day, or book and give back."""

    def __init__(self, stage: Stage, *, readers: bool) -> None:
        super().__init__(daemon=True)
        self.stopping = threading.Event()
        self._stage = stage
        self._readers = readers

    def run(self) -> None:
        """Do so until told to stop."""
        while not self.stopping.wait(0.3):
            if self._readers:
                self._stage.ask("GET", "/v1/leases")
                continue
            lease = {"name": "talk", "start_date": "2090-01-01 10:00", "end_date": "2090-01-01 11:00"}
            status, answer = self._stage.ask("POST", "/v1/leases", {**lease, "reservations": [], "events": []})
            if status == 201:
                with suppress(OSError):
                    self._stage.ask("DELETE", f"/v1/leases/{answer['lease']['id']}")


def reached(host: str, port: int) -> OSError | None:
    """Return why a server is not reached; None if it is."""
    try:
        socket.create_connection((host, port), timeout=5).close()
    except OSError as error:
        return error
    return None
