# SPDX-License-Identifier: Apache-2.0
"""Commands before a service whose answers the test lays down, somewhere in Paris on a day of winter."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from blazarclient import shell
from blazarclient.commands import base, change, create
from blazarclient.library import transport

URL = "http://127.0.0.1:1234/v1"
SPOKEN = f"reservation {transport.MICROVERSION}"
NEW = {"OpenStack-API-Version": SPOKEN, "Content-Type": "application/json"}
ID = "11111111-2222-4333-8444-000000000001"
NOW = datetime(2026, 11, 23, 10, 15, 42, tzinfo=UTC)

LEASE: dict[str, Any] = {
    "id": ID,
    "name": "training",
    "project_id": "physics",
    "user_id": "curie",
    "status": "ACTIVE",
    "degraded": False,
    "revision": 3,
    "start_date": "2026-11-23T10:15:42Z",
    "end_date": "2026-11-26T10:15:42Z",
    "before_end_date": "2026-11-26T09:15:42Z",
    "created_at": "2026-11-23T10:15:42Z",
    "updated_at": None,
    "deleted_at": None,
    "conditions": [],
    "reservations": [],
    "events": [],
    "links": [],
}
INFO = {"info": {"now": "2026-11-23T10:15:42Z"}}

Run = Callable[..., tuple[int, str, str]]


def refusal(code: str, detail: str, status: int = 409, **more: Any) -> dict[str, Any]:
    """Return the arguments of an answer that refuses."""
    item = {"status": status, "code": f"reservation.{code}", "title": code, "detail": detail, **more}
    return {"status_code": status, "json": {"errors": [item]}, "headers": NEW}


def says(key: str, value: Any, **more: Any) -> dict[str, Any]:
    """Return the arguments of an answer."""
    return {"json": {key: value}, "headers": {**NEW, **more.pop("headers", {})}, **more}


class Time:
    """A clock that goes on only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def service(requests_mock: Any) -> Any:
    """A service with one lease, ``training``."""
    requests_mock.get(f"{URL}/info", json=INFO, headers=NEW)
    requests_mock.get(f"{URL}/leases", **says("leases", [{"id": ID, "name": "training"}]))
    requests_mock.get(f"{URL}/leases/{ID}", **says("lease", LEASE, headers={"ETag": '"3.1.m"'}))
    requests_mock.post(f"{URL}/leases", **says("lease", LEASE, status_code=201))
    requests_mock.put(f"{URL}/leases/{ID}", **says("lease", {**LEASE, "revision": 4}))
    requests_mock.delete(f"{URL}/leases/{ID}", status_code=204, headers=NEW)
    return requests_mock


@pytest.fixture
def old_service(requests_mock: Any) -> Any:
    """A service that knows microversion 1.0 only, with the same lease."""

    def answer(body: dict[str, Any], status: int = 200) -> Callable[..., dict[str, Any]]:
        def told(request: Any, context: Any) -> dict[str, Any]:
            if request.headers.get("OpenStack-API-Version") == SPOKEN:
                context.status_code = 406
                return {
                    "errors": [
                        {"status": 406, "title": "Not acceptable", "detail": f"{transport.MICROVERSION} is not known"}
                    ]
                }
            context.status_code = status
            return body

        return told

    lease = {**LEASE, "start_date": "2026-11-23T10:15:00.000000", "end_date": "2026-11-26T10:15:00.000000"}
    requests_mock.get(
        f"{URL}/info", json={"error": "not found"}, status_code=404, headers={"Content-Type": "application/json"}
    )
    requests_mock.get(f"{URL}/leases", json=answer({"leases": [lease]}))
    requests_mock.get(f"{URL}/leases/{ID}", json=answer({"lease": lease}))
    requests_mock.post(f"{URL}/leases", json=answer({"lease": lease}, 201))
    requests_mock.put(f"{URL}/leases/{ID}", json=answer({"lease": lease}))
    return requests_mock


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Run ``blazar`` in Paris and return its exit code, stdout and stderr."""
    for name in [name for name in os.environ if name.startswith("OS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TZ", "Europe/Paris")
    monkeypatch.setattr(base, "clock", lambda: NOW)
    for module in (change, create):
        monkeypatch.setattr(module, "time", Time())
    monkeypatch.setattr(base, "LEAST", 0.0)
    monkeypatch.setattr(transport, "PAUSES", (0.0, 0.0))
    before = logging.getLogger().level

    def run(*arguments: str) -> tuple[int, str, str]:
        try:
            code = shell.main(["--os-endpoint", URL, *arguments])
        except SystemExit as left:
            code = left.code  # type: ignore[assignment]
        return code, *capsys.readouterr()

    yield run
    logging.getLogger().setLevel(before)


def sent(service: Any, method: str) -> list[Any]:
    """Return the requests of a method that came to the service."""
    return [request for request in service.request_history if request.method == method]
