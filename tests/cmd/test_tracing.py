# SPDX-License-Identifier: Apache-2.0
"""Traces are sent to a collector as ``[tracing]`` says, and a collector that is away disturbs nobody."""

from __future__ import annotations

import gzip
import logging
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from blazar.cmd import tracing
from blazar.cmd.config import ConfigurationError
from blazar.model.base.errors import InvalidInput
from blazar.observe.spans import is_traced, span, span_of_request

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


class Collector(ThreadingHTTPServer):
    """Takes spans by OTLP over HTTP, as those of operators do."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Taker)
        self.spans: list[tuple[str, str, str]] = []
        """Program, name and trace of each."""
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Taker(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
        for one in ExportTraceServiceRequest.FromString(body).resource_spans:
            (program,) = (a.value.string_value for a in one.resource.attributes if a.key == "service.name")
            for scope in one.scope_spans:
                self.server.spans += [(program, made.name, made.trace_id.hex()) for made in scope.spans]
        self.send_response(self.server.status)
        self.send_header("Location", f"{self.server.url}/elsewhere")
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def collector(monkeypatch) -> Iterator[Collector]:
    served = Collector()
    threading.Thread(target=served.serve_forever, daemon=True).start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", served.url)
    yield served
    served.shutdown()
    served.server_close()


def test_by_default_nothing_is_traced(load, collector):
    stop = tracing.start(load(), "blazar-api")
    assert not is_traced()
    stop()
    assert collector.spans == []


@pytest.mark.parametrize(("ratio", "sent"), [("1", 20), ("0", 0)])
def test_the_part_that_the_file_says_is_sent(load, collector, ratio, sent):
    stop = tracing.start(load("[tracing]", "enabled = true", f"ratio = {ratio}"), "blazar-manager")
    for _ in range(20):
        with span("event start_lease"):
            pass
    stop()
    assert not is_traced()
    assert [one[:2] for one in collector.spans] == [("blazar-manager", "event start_lease")] * sent


@pytest.mark.parametrize("trusted", [True, False])
def test_traces_of_callers_are_continued_if_the_file_says_so(load, collector, trusted):
    lines = ["[tracing]", "enabled = true", "ratio = 1", f"trust_incoming = {trusted}"]
    stop = tracing.start(load(*lines), "blazar-api")
    with span_of_request("GET /v1/leases", f"00-{TRACE}-00f067aa0ba902b7-01"):
        pass
    stop()
    ((_, _, trace_id),) = collector.spans
    assert (trace_id == TRACE) is trusted


def test_a_collector_that_is_away_is_told_once_and_holds_nobody(load, monkeypatch, caplog):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    monkeypatch.setattr(tracing, "EXPORT_SECONDS", 0.1)
    stop = tracing.start(load("[tracing]", "enabled = true", "ratio = 1"), "blazar-api")
    caplog.set_level(logging.INFO)
    until = time.monotonic() + 10
    while not [one for one in caplog.records if one.levelno >= logging.WARNING] and time.monotonic() < until:
        begin = time.perf_counter()
        with span("work"):
            pass
        assert time.perf_counter() - begin < 0.5
        threading.Event().wait(0.05)
    begin = time.monotonic()
    stop()
    assert time.monotonic() - begin < tracing.PARTING_SECONDS + 2
    told = [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]
    away = "Traces cannot be sent to the collector, http://127.0.0.1:9/v1/traces, and are lost meanwhile: "
    assert told == [f"{away}ConnectionError"]


@pytest.mark.parametrize(
    ("status", "why"),
    [(401, "status 401"), (302, "status 302, which leads elsewhere"), (200, None)],
)
def test_a_collector_that_refuses_is_told_with_the_reason_and_without_what_is_secret(
    load, collector, monkeypatch, caplog, status, why
):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.replace("//", "//user:geheim@"))
    collector.status = status
    caplog.set_level(logging.INFO)
    stop = tracing.start(load("[tracing]", "enabled = true", "ratio = 1"), "blazar-api")
    with span("work"):
        pass
    stop()
    told = [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]
    sentence = f"Traces cannot be sent to the collector, {collector.url}/v1/traces, and are lost meanwhile: {why}"
    assert told == ([] if why is None else [sentence])
    assert "geheim" not in caplog.text


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", "no URL; write http://HOST:4318"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "collector", "no URL; write http://HOST:4318"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "-5", "max_queue_size must be a positive integer"),
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "many", "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT must be"),
    ],
)
def test_a_variable_that_cannot_be_used_is_said_at_the_start(load, monkeypatch, name, value, words):
    monkeypatch.setenv(name, value)
    with pytest.raises(InvalidInput, match=f"a variable of OpenTelemetry cannot be used: .*{words}"):
        tracing.start(load("[tracing]", "enabled = true"), "blazar-api")
    assert not is_traced()


def test_a_protocol_that_is_not_spoken_is_told(load, collector, monkeypatch, caplog):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    tracing.start(load("[tracing]", "enabled = true"), "blazar-api")()
    assert "OTEL_EXPORTER_OTLP_PROTOCOL grpc is not used: traces are sent by http/protobuf" in caplog.text


def test_missing_packages_are_told_with_how_to_get_them(load, monkeypatch):
    monkeypatch.setattr(tracing, "_LIBRARIES", ("opentelemetry.of_nobody",))
    with pytest.raises(InvalidInput, match=r"pip install 'blazar\[tracing\]'"):
        tracing.start(load("[tracing]", "enabled = true"), "blazar-api")


def test_a_part_beyond_all_is_refused(load):
    with pytest.raises(ConfigurationError, match="ratio"):
        load("[tracing]", "ratio = 1.5")
