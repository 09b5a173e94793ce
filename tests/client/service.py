# SPDX-License-Identifier: Apache-2.0
"""A standalone service in a process of its own, and what others made against it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.forked import Standalone

STARTED_WITHIN = 90
"""Seconds that a service has for its start: machines that run the tests may be busy with something else."""


@dataclass(frozen=True)
class Command:
    """A ``blazar`` command, and the variables that it needs."""

    program: Path
    variables: Mapping[str, str]


class Service:
    """A standalone service in a process of its own, and the client's commands against it."""

    def __init__(self, command: Command, data: Path) -> None:
        self.command = command
        self.data = data
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self.process: Standalone | None = None

    def start(self) -> None:
        environment = {**os.environ, "BLAZAR_PORT": str(self.port), "BLAZAR_DATA": str(self.data)}
        log = self.data.with_name(f"{self.data.name}.log")
        self.process = Standalone(["--no-hosts"], log, environment)
        limit = time.monotonic() + STARTED_WITHIN
        while time.monotonic() < limit:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthcheck", timeout=5):
                    return
            except OSError:
                assert self.process.poll() is None, log.read_text(encoding="utf-8")
                time.sleep(0.1)
        raise AssertionError("the service did not start")

    def stop(self, how: int = signal.SIGINT) -> int:
        self.process.send_signal(how)
        return self.process.wait(30)

    def run(self, *arguments: str) -> str:
        """Run a command as a user would, and return what it prints."""
        done = self.try_(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def try_(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        base = [str(self.command.program), "--os-auth-type", "none", "--os-endpoint", self.url]
        clean = {k: v for k, v in os.environ.items() if not k.startswith("OS_")} | dict(self.command.variables)
        return subprocess.run([*base, *arguments], capture_output=True, text=True, timeout=60, env=clean)

    def json(self, *arguments: str) -> object:
        text = self.run(*arguments, "-f", "json")
        # A creation says so in a line of its own before the JSON.
        return json.loads(text[min(text.find(c) for c in "{[" if c in text) :])

    def leases(self) -> list[dict]:
        """Return all leases by the shortest way, for waiting."""
        with urllib.request.urlopen(f"{self.url}/leases", timeout=5) as answer:
            return json.load(answer)["leases"]

    def lease(self, name: str) -> dict:
        return next(lease for lease in self.leases() if lease["name"] == name)

    def wait(self, name: str, status: str, since: float, limit: float) -> float:
        """Wait until a lease has a status; return the seconds it took since then."""
        while self.lease(name)["status"] != status:
            assert time.time() - since < limit, f"{name} is {self.lease(name)['status']} after {limit} s"
            time.sleep(0.02)
        return time.time() - since

    def freepool(self) -> list[str]:
        state = json.loads((self.data / "cloud.json").read_text(encoding="utf-8"))
        return next(a["hosts"] for a in state["aggregates"].values() if a["name"] == "freepool")


@contextmanager
def serving(command: Command, data: Path) -> Iterator[Service]:
    service = Service(command, data)
    service.start()
    yield service
    service.process.kill()
