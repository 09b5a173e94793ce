# SPDX-License-Identifier: Apache-2.0
"""The example service, over real HTTP, with bad manners where a test wants them."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import credit_service as strict
import enforcement_service as example

TOKEN = "a-secret-that-nobody-logs"

Manners = Callable[[Any, str], bool]


class Service:
    """The example, and what it was sent. ``manners`` may answer in its place; then they return True."""

    def __init__(self, books: Any = None) -> None:
        self.books = books or example.Books(100.0)
        self.got: list[tuple[str, dict[str, Any], dict[str, str]]] = []
        self.refused: list[tuple[str, int]] = []
        self.manners: list[Manners] = []
        self.after_check: Callable[[], object] = lambda: None
        service = self

        class Handler(example.Handler):
            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                service.got.append((self.path.rpartition("/")[2], json.loads(raw), dict(self.headers)))
                if service.manners and service.manners[0](self, self.path):
                    self.close_connection = True
                    return
                self.rfile, kept = _Again(raw), self.rfile
                try:
                    super().do_POST()
                finally:
                    self.rfile = kept

            def silently(self, path: str) -> None:
                """Do what is asked, and do not answer."""
                try:
                    body, request_id = service.got[-1][1], self.headers.get("X-OpenStack-Request-ID")
                    service.books.hear(path, body, request_id)
                except example.Denied as denied:
                    service.refused.append((path.rpartition("/")[2], denied.status))

            def close(self) -> None:
                self.close_connection = True

            def answer(self, status: int, body: dict[str, Any] | None = None) -> None:
                if status >= 400:
                    service.refused.append((self.path.rpartition("/")[2], status))
                elif self.path.startswith("/check"):
                    service.after_check()
                super().answer(status, body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = example.server(self.books, token=TOKEN, handler=Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def asked(self) -> list[str]:
        return [name for name, _, _ in self.got]

    def bodies(self, name: str) -> list[dict[str, Any]]:
        return [body for each, body, _ in self.got if each == name]

    def answers(self, status: int, text: bytes = b"", **headers: str) -> None:
        """Answer everything so from now on."""

        def so(handler: Any, path: str) -> bool:
            handler.send_response(status)
            for name, value in {"Content-Length": str(len(text)), **headers}.items():
                handler.send_header(name.replace("_", "-"), value)
            handler.end_headers()
            handler.wfile.write(text)
            return True

        self.manners = [so]

    def behaves(self) -> None:
        """Be the example again."""
        self.manners = []

    def drips(self, text: bytes, *, pause: float) -> None:
        """Answer 403, one byte at a time."""

        def so(handler: Any, path: str) -> bool:
            handler.send_response(403)
            handler.send_header("Content-Length", str(len(text)))
            handler.end_headers()
            try:
                for byte in text:
                    handler.wfile.write(bytes([byte]))
                    handler.wfile.flush()
                    time.sleep(pause)
            except OSError:
                pass
            return True

        self.manners = [so]

    def sleeps(self, seconds: float) -> None:
        """Say nothing for a while."""

        def so(handler: Any, path: str) -> bool:
            time.sleep(seconds)
            return True

        self.manners = [so]

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Again:
    """What was read, once more."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def read(self, length: int) -> bytes:
        return self._raw[:length]


@pytest.fixture
def service() -> Iterator[Service]:
    """A service that gives every project 100 host-hours."""
    made = Service()
    yield made
    made.stop()


@pytest.fixture
def credits() -> Iterator[Service]:
    """A strict service that gives every project 100 hours of 16 VCPUs, and of all else more than enough."""
    made = Service(strict.Books({"VCPU": 1600, "MEMORY_MB": 10**9, "DISK_GB": 10**9}))
    yield made
    made.stop()
