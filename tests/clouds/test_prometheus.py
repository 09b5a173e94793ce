# SPDX-License-Identifier: Apache-2.0
"""Measurements from Prometheus: an answer counts only if nothing about it is in doubt."""

from __future__ import annotations

import base64
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import pytest

from blazar.clouds.prometheus import AT_ONCE, MOST, NOBODY, Prometheus, QueryTemplate
from blazar.clouds.prometheus_server import MOST_BYTES, Login, PrometheusServer
from blazar.model.base.errors import CloudUnavailable, InvalidInput

A, B = "0f9c2d1e-0000-4000-8000-00000000000a", "0f9c2d1e-0000-4000-8000-00000000000b"
QUERY = 'max by (uuid) (max_over_time(cpu{uuid=~"{server_id}"}[2h]))'
TEMPLATE = QueryTemplate.of(QUERY, "[unused] prometheus_query")


@dataclass
class Service:
    """A Prometheus that answers as a test says, and what it was asked."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    heard: list[dict[str, str]] = field(default_factory=list)
    url: str = ""

    def says(self, *series: Any, **more: Any) -> None:
        answer = {"status": "success", "data": {"resultType": "vector", "result": list(series)}, **more}
        self.body = json.dumps(answer).encode()


@pytest.fixture
def service() -> Iterator[Service]:
    known = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            known.asked += parse_qs(text)["query"]
            known.heard.append({name.lower(): value for name, value in self.headers.items()} | {"path": self.path})
            self.send_response(known.status)
            for name, value in known.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(known.body)))
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(known.body)

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    known.url = f"http://127.0.0.1:{server.server_address[1]}/prom/"
    known.says()
    yield known
    server.shutdown()
    server.server_close()


def series(id_: str, value: Any, *, label: str = "uuid", age: float = 0) -> dict[str, Any]:
    return {"metric": {label: id_}, "value": [time.time() - age, value]}


def ask(service: Service, *ids: str, **more: Any) -> dict[str, float]:
    return dict(Prometheus(PrometheusServer(service.url, **more), TEMPLATE).measure_servers(ids or (A, B)))


def test_one_query_asks_for_all_servers_and_each_has_its_value(service):
    service.says(series(A, "0.25"), series(B, "0"))
    assert ask(service) == {A: 0.25, B: 0.0}
    assert service.asked == [QUERY.replace("{server_id}", f"{A}|{B}")]
    assert service.heard[0]["path"] == "/prom/api/v1/query"


def test_an_empty_answer_says_nothing_of_any_server(service):
    assert ask(service) == {}


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "", "many", 0, None, True])
def test_a_value_that_is_no_number_is_none(service, value):
    service.says(series(A, value), series(B, "1"))
    with suppress(CloudUnavailable):
        assert A not in ask(service)


def test_several_series_of_one_server_say_nothing_of_it(service):
    service.says(series(A, "0"), series(A, "9"), series(B, "1"))
    assert ask(service) == {B: 1.0}


def test_an_old_value_says_nothing(service):
    service.says(series(A, "0", age=3600), series(B, "0"))
    assert ask(service) == {B: 0.0}


@pytest.mark.parametrize(
    "answer",
    [
        {"status": "error", "errorType": "timeout", "error": "query timed out"},
        {"status": "success", "data": {"resultType": "scalar", "result": [1, "0"]}},
        {"status": "success", "data": {"resultType": "matrix", "result": []}},
        {"status": "success", "data": {"resultType": "vector", "result": None}},
        {"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}, "value": "0"}]}},
        {"status": "success", "data": {"resultType": "vector", "result": [series(A, "0")]}, "warnings": ["partial"]},
        {"status": "success", "data": {"resultType": "vector", "result": [series(A, "0", label="instance")]}},
        {"status": "success", "data": {"resultType": "vector", "result": [series("another", "0")]}},
        {"status": "success", "data": []},
        [],
        None,
    ],
)
def test_an_answer_with_any_doubt_is_none(service, answer):
    service.body = json.dumps(answer).encode()
    with pytest.raises(CloudUnavailable):
        ask(service)


@pytest.mark.parametrize("status", [204, 301, 400, 401, 403, 404, 422, 429, 500, 503])
def test_any_status_but_200_is_no_answer(service, status):
    service.says(series(A, "0"))
    service.status, service.headers = status, {"Location": service.url}
    if status == 204:
        service.body = b""
    with pytest.raises(CloudUnavailable, match=f"Prometheus answered {status}"):
        ask(service)
    assert len(service.asked) == 1


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"status": "succ', b"[" * 100_000])
def test_what_is_not_json_is_no_answer(service, body):
    service.body = body
    with pytest.raises(CloudUnavailable, match="not JSON"):
        ask(service)


def test_an_answer_that_is_too_long_is_not_read(service):
    service.body = b" " * (MOST_BYTES + 1)
    with pytest.raises(CloudUnavailable, match="more than"):
        ask(service)


@contextmanager
def speaking(speak: Callable[[socket.socket], None]) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError):
                wire, _ = listening.accept()
                with wire:
                    speak(wire)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"])
def test_however_slowly_an_answer_drips_there_is_one_time_limit(head):
    over = threading.Event()

    def drip(wire: socket.socket) -> None:
        wire.sendall(head or b"HTTP/1.1 200")
        with suppress(OSError):
            while not over.wait(0.05):
                wire.sendall(b" ")

    with speaking(drip) as url:
        begun = time.monotonic()
        with pytest.raises(CloudUnavailable, match="did not answer in time"):
            Prometheus(PrometheusServer(url, timeout=0.3), TEMPLATE).measure_servers([A])
        assert time.monotonic() - begun < 2
        over.set()


def test_a_connection_that_breaks_is_no_answer():
    half = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}"
    with speaking(lambda wire: wire.sendall(half)) as url, pytest.raises(CloudUnavailable):
        Prometheus(PrometheusServer(url), TEMPLATE).measure_servers([A])
    with pytest.raises(CloudUnavailable, match="cannot be reached"):
        Prometheus(PrometheusServer(url), TEMPLATE).measure_servers([A])


def test_many_servers_cost_a_bounded_number_of_queries(service):
    assert ask(service, *(f"server-{n}" for n in range(2 * AT_ONCE + 1))) == {}
    assert len(service.asked) == 3
    with pytest.raises(CloudUnavailable, match=f"more than {MOST} running servers"):
        ask(service, *(f"server-{n}" for n in range(MOST + 1)))
    assert len(service.asked) == 3


@pytest.mark.parametrize("id_", ['a"} or vector(0) #', "a|.*", "", "a" * 65, "a\\"])
def test_an_id_that_could_be_read_as_a_part_of_the_query_is_never_sent(service, id_):
    with pytest.raises(CloudUnavailable, match="cannot be asked for"):
        ask(service, A, id_)
    assert service.asked == []


@pytest.mark.parametrize(
    ("login", "sent"),
    [
        (Login(), None),
        (Login("blazar", "s3cret"), f"Basic {base64.b64encode(b'blazar:s3cret').decode()}"),
        (Login(bearer_token="s3cret"), "Bearer s3cret"),
    ],
)
def test_credentials_are_sent_and_never_told(service, login, sent, caplog):
    ask(service, login=login)
    assert service.heard[0].get("authorization") == sent
    service.status = 401
    with pytest.raises(CloudUnavailable) as refused:
        ask(service, login=login)
    assert "s3cret" not in f"{refused.value.message} {caplog.text} {login!r}"


def test_the_check_asks_for_nobody(service):
    Prometheus(PrometheusServer(service.url), TEMPLATE).check()
    assert NOBODY in service.asked[0]
    service.status = 400
    with pytest.raises(CloudUnavailable, match="probably not correct PromQL"):
        Prometheus(PrometheusServer(service.url), TEMPLATE).check()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "up",
        'cpu{uuid="{server_id}"}',
        "cpu{server_id}",
        'cpu{uuid=~"{server_id}.*"}',
        'cpu{uuid=~"{server_id}"} / mem{id=~"{server_id}"}',
        'cpu{uuid=~"{server_id}"} + {server_id}',
        'cpu{uuid=~"{server_id}"}\n',
        f'cpu{{uuid=~"{{server_id}}"}}{" " * 2000}',
    ],
)
def test_a_template_that_does_not_ask_for_servers_by_one_label_is_refused(text):
    with pytest.raises(InvalidInput, match=r"\[unused\] prometheus_query"):
        QueryTemplate.of(text, "[unused] prometheus_query")


def test_a_template_may_name_the_server_twice():
    known = QueryTemplate.of('a{id=~"{server_id}"} / b{id =~ "{server_id}"}', "q")
    assert (known.label, known.query(["b", "a"])) == ("id", 'a{id=~"a|b"} / b{id =~ "a|b"}')
