# SPDX-License-Identifier: Apache-2.0
"""The hosts of the test cloud as machines: their nova-computes go with the power that an emulated BMC gives them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from blazar.model.power.states import MARK
from tests import openstack
from tests.clouds.emulator import run_emulator, system_url, systems_of
from tests.openstack import HOME, eventually

HOSTS = tuple(f"compute-{number}" for number in range(1, 5))


@dataclass
class Machine:
    """A nova-compute of the test cloud, which is killed and started as ``cloud/up`` does it.

    What ``cloud/down`` knows of it is written down with each start.
    """

    name: str
    environment: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        lines = Path(f"/proc/{self.known['pid']}/environ").read_bytes().split(b"\0")
        self.environment = dict(line.decode().split("=", 1) for line in lines if line)

    @property
    def file(self) -> Path:
        return HOME / "run" / f"{self.name}.json"

    @property
    def known(self) -> dict[str, Any]:
        return dict(json.loads(self.file.read_text()))

    @property
    def is_on(self) -> bool:
        return _begun(self.known["pid"]) == self.known["ticks"]

    def turn_off(self) -> None:
        """Take its power."""
        if self.is_on:
            os.killpg(self.known["pid"], signal.SIGKILL)
            if self.process is not None:
                self.process.wait(10)
            while self.is_on:
                time.sleep(0.05)

    def turn_on(self) -> None:
        """Give it power."""
        if self.is_on:
            return
        known = self.known
        with (HOME / "log" / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                known["command"],
                env=self.environment,
                cwd=HOME / "var",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        pid = self.process.pid
        self.file.write_text(json.dumps({**known, "pid": pid, "ticks": _begun(pid), "order": time.time()}))

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Let it do nothing for a while, in which Nova takes it for up."""
        pid = self.known["pid"]
        os.killpg(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(pid, signal.SIGCONT)


def _begun(pid: int) -> int | None:
    """Return when a process was started, in ticks; None if it does not run."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[19])


@dataclass
class Site:
    """The hosts of the test cloud, each with a BMC of the emulator at ``url``."""

    machines: dict[str, Machine]
    url: str
    systems: dict[str, str]

    def target(self, host: str) -> str:
        return system_url(self.url, self.systems[host])


@contextmanager
def powered(folder: Path) -> Iterator[Site]:
    """Give the hosts BMCs; afterwards all of them are on, up and open, whatever has become of a test."""
    machines, systems = {host: Machine(host) for host in HOSTS}, systems_of(HOSTS)
    try:
        with _receiver(machines) as told, run_emulator(folder, systems=systems, told=told) as url:
            yield Site(machines, url, systems)
    finally:
        for machine in machines.values():
            machine.turn_on()
        compute = openstack.admin_compute()
        for host in HOSTS:
            eventually(lambda host=host: compute.hypervisor(hostname=host).up)
            if compute.hypervisor(hostname=host).disabled_reason == MARK:
                compute.enable_service(host)


@contextmanager
def _receiver(machines: dict[str, Machine]) -> Iterator[str]:
    """Listen to what the emulator tells of its systems, and let the machines follow."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            system = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            machine = machines[system["name"]]
            # The first message of a change repeats the old state.
            with lock:
                machine.turn_on() if system["power_state"] == "On" else machine.turn_off()
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
