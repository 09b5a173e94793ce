# SPDX-License-Identifier: Apache-2.0
"""The log has one line for each request: what was asked, what became of it, how long it took, and for whom."""

from __future__ import annotations

import logging
import re

import pytest
from werkzeug.test import Client

from blazar.api.http.access import AccessLog
from blazar.api.http.openapi import Served
from blazar.api.parts import BUILTIN
from tests.api.conftest import token

ROUTES = Served(BUILTIN).routes
ID = "01234567-89ab-cdef-0123-456789abcdef"
GLOBAL = f"req-{ID}"
LINE = re.compile(r"(\S+) (\S+) (\d{3}) (\d+) ms, project (\S+), request (\S+), global request (\S+)")


class Web:
    """Sends requests, and looks at the lines that they leave."""

    def __init__(self, app, caplog: pytest.LogCaptureFixture) -> None:
        self._client = Client(AccessLog(app, clock=iter(n * 0.25 for n in range(10**6)).__next__))
        self._caplog = caplog

    def line(self, method: str, path: str, **more):
        """Return an answer, and the parts of the only line that is logged at INFO."""
        self._caplog.clear()
        answer = self._client.open(path, method=method, **more)
        answer.get_data()
        answer.close()
        lines = [record for record in self._caplog.records if record.name == "blazar.access"]
        lines = [record.getMessage() for record in lines if record.levelno == logging.INFO]
        assert len(lines) == 1, lines
        assert lines[0].isprintable()
        match = LINE.fullmatch(lines[0])
        assert match is not None, lines
        return answer, match.groups()


@pytest.fixture
def web(app, caplog) -> Web:
    caplog.set_level(logging.INFO, "blazar.access")
    return Web(app, caplog)


def filled(url: str) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: "host" if match[1] == "kind" else ID, url)


@pytest.mark.slow
def test_every_route_leaves_one_line_for_each_caller(web):
    for row in (row for row in ROUTES if row.url != "/healthcheck"):
        for headers in ({}, token("root", "demo", "admin"), {"X-Auth-Token": "nobody"}):
            version = {"OpenStack-API-Version": "reservation latest"}
            body = row.body.examples[0] if row.body else None
            path = filled(row.url)
            answer, parts = web.line(row.method, path, json=body, headers={**headers, **version})
            secret = next((begin for begin in ("/feeds/", "/unsubscribe/") if path.startswith(begin)), None)
            shown = path if secret is None else f"{secret}***"
            assert parts[:4] == (row.method, shown, str(answer.status_code), "250")
            assert parts[5] == answer.headers["X-OpenStack-Request-ID"]
            assert parts[6] == "-"
            if answer.status_code < 400 and not row.is_open:
                assert parts[4] == "demo"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/v1/nothing", "404"), ("PATCH", "/v1/leases", "405"), ("OPTIONS", "/v1/leases", "200")],
)
def test_what_is_no_route_leaves_a_line_too(web, method, path, status):
    _, parts = web.line(method, path, headers=token())
    assert parts[:3] == (method, path, status)


def test_the_id_of_the_caller_is_told_beside_our_own(web):
    answer, parts = web.line("GET", "/v1/leases", headers={**token(), "X-OpenStack-Request-ID": GLOBAL})
    assert parts[4:] == ("physics", answer.headers["X-OpenStack-Request-ID"], GLOBAL)
    _, parts = web.line("GET", "/v1/leases", headers={**token(), "X-OpenStack-Request-ID": "req-forged"})
    assert parts[6] == "-"


@pytest.mark.parametrize(
    "path",
    [
        "/feeds/s3cret.ics",
        "/unsubscribe/0b7e3c1a-5d2f-4e6b-8a90-1c2d3e4f5a6b/s3cret",
        "/feeds/s3cret/x",
        "/v1//feeds/s3cret",
        "/Feeds/s3cret",
        "/v1/feeds/s3cret",
        "/feeds%2Fs3cret",
        "/feeds/%2e/s3cret",
        "/v1/leases?token=s3cret",
        "/v1/leases?s3cret",
        "/feeds/x?s3cret=1",
    ],
)
def test_no_secret_of_an_address_is_logged(web, path):
    _, parts = web.line("GET", path, headers=token())
    assert "s3cret" not in "".join(parts)


@pytest.mark.parametrize(
    ("method", "path", "project"),
    [
        ("GET", "/v1/a%0ab%1b[2J%e2%80%ae", "physics"),
        ("GET", "/" + "x" * 5000, "physics"),
        ("GE\x1bT", "/v1/leases", "physics"),
        ("GET", "/v1/leases", "phy\x1bsics"),
    ],
)
def test_nothing_that_a_client_sends_forges_a_line(web, method, path, project):
    _, parts = web.line(method, path, headers=token(project=project))
    assert len("".join(parts)) < 500


def test_a_bug_of_the_service_leaves_its_line(caplog):
    caplog.set_level(logging.INFO, "blazar.access")

    def broken(environ, start_response):
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError):
        Client(AccessLog(broken)).get("/v1/leases")
    assert [record.getMessage().split()[:3] for record in caplog.records] == [["GET", "/v1/leases", "500"]]


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("GET", "/healthcheck", {}),
        ("GET", "/ui/assets/index.js", {}),
        ("OPTIONS", "/v1/leases", {"Origin": "https://x", "Access-Control-Request-Method": "GET"}),
    ],
)
def test_what_asks_all_the_time_is_told_at_debug_only(caplog, method, path, headers):
    caplog.set_level(logging.DEBUG, "blazar.access")

    def served(environ, start_response):
        start_response("200 OK", [])
        return [b""]

    Client(AccessLog(served)).open(path, method=method, headers=headers).close()
    (record,) = caplog.records
    assert record.levelno == logging.DEBUG
