# SPDX-License-Identifier: Apache-2.0
"""Traces of a process: whether they are made, of how many requests and events, and where they are sent to.

They go by OTLP over HTTP to where the variables of OpenTelemetry say (``OTEL_EXPORTER_OTLP_ENDPOINT`` and others).
"""

from __future__ import annotations

import importlib
import logging
import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import requests
from oslo_config import cfg

from blazar import __version__
from blazar.model.base.errors import InvalidInput
from blazar.model.base.log_lines import Trouble
from blazar.observe.spans import SERVICE, Tracing, start_tracing

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
    from opentelemetry.sdk.trace.export import SpanExportResult

LOG = logging.getLogger(__name__)

GROUP = "tracing"

OPTIONS: list[cfg.Opt] = [
    cfg.BoolOpt(
        "enabled",
        default=False,
        help="Send traces of requests and events to an OpenTelemetry collector, by OTLP over HTTP; where it is, the "
        "variables OTEL_EXPORTER_OTLP_ENDPOINT and others say. It needs the packages of blazar[tracing].",
    ),
    cfg.FloatOpt(
        "ratio",
        default=0.05,
        min=0,
        max=1,
        help="The part of requests and events that are traced, of those that no traced request has led to.",
    ),
    cfg.BoolOpt(
        "trust_incoming",
        default=False,
        help="Continue the traces of callers of the API, who then decide what is traced. Otherwise a trace only refers "
        "to theirs.",
    ),
]

PARTING_SECONDS = 3.0
"""How long a stopping process sends what is left; a collector that is away does not hold it."""

EXPORT_SECONDS = 5.0
"""How long one message to the collector may take."""

_PROTOCOL = "http/protobuf"

_LIBRARIES = ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http.trace_exporter")


def start(conf: cfg.ConfigOpts, program: str) -> Callable[[], None]:
    """Begin to trace if that is configured; return what ends it. InvalidInput if the packages are missing.

    In a WSGI server it is called in each worker process, after the server has forked.
    """
    section = conf[GROUP]
    if not section.enabled:
        return lambda: None
    for name in _LIBRARIES:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise InvalidInput(
                f"[{GROUP}] enabled needs the packages of OpenTelemetry ({error}); install them by "
                "pip install 'blazar[tracing]', or set it to false"
            ) from error
    try:
        provider = _make_provider(program, section.ratio)
    except ValueError as error:
        raise InvalidInput(f"[{GROUP}] enabled: a variable of OpenTelemetry cannot be used: {error}") from error
    start_tracing(Tracing(provider, trust_incoming=section.trust_incoming))
    LOG.info("Traces are made of %g %% of requests and events", 100 * section.ratio)

    def stop() -> None:
        start_tracing(None)
        sending = threading.Thread(target=provider.shutdown, name="last traces", daemon=True)
        sending.start()
        sending.join(PARTING_SECONDS)

    return stop


def _make_provider(program: str, ratio: float) -> TracerProvider:
    """Return what makes spans, and sends them. ValueError if a variable of OpenTelemetry has no value of its kind."""
    from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_NAMESPACE, SERVICE_VERSION, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio

    about = {SERVICE_NAME: program, SERVICE_NAMESPACE: SERVICE, SERVICE_VERSION: __version__}
    provider = TracerProvider(ParentBasedTraceIdRatio(ratio), Resource.create(about), shutdown_on_exit=False)
    provider.add_span_processor(_make_processor())
    return provider


class _Way(requests.Session):
    """The way to the collector; ``end`` says what became of the last message."""

    end = "not sent"

    def send(self, request: requests.PreparedRequest, **more: Any) -> requests.Response:
        """Send a message. TooManyRedirects for the first one: the library would take it for a success."""
        try:
            answer = super().send(request, **{**more, "allow_redirects": False})
        except requests.RequestException as error:
            self.end = type(error).__name__
            raise
        self.end = f"status {answer.status_code}"
        if answer.is_redirect:
            self.end += ", which leads elsewhere"
            raise requests.TooManyRedirects(self.end)
        return answer


def _make_processor() -> SpanProcessor:
    """Return what sends spans to the collector, in a thread of its own."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult

    # The library logs each attempt of each message; that the collector is away is one thing to know.
    logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL)
    trouble, way = Trouble(LOG, "Traces reach the collector"), _Way()

    class Exporter(OTLPSpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            way.end = "not sent"
            result = super().export(spans)
            if result is SpanExportResult.SUCCESS:
                trouble.log_recovery()
            else:
                trouble.log_failure(
                    f"Traces cannot be sent to the collector, {place}, and are lost meanwhile: {way.end}",
                    level=logging.WARNING,
                )
            return result

    exporter = Exporter(timeout=EXPORT_SECONDS, session=way)
    place = _name_place(exporter._endpoint)
    for name in ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        if (protocol := os.environ.get(name, _PROTOCOL)) != _PROTOCOL:
            LOG.warning("%s %s is not used: traces are sent by %s, mostly to port 4318", name, protocol, _PROTOCOL)
    return BatchSpanProcessor(exporter)


def _name_place(endpoint: str) -> str:
    """Return where a URL leads to, without what may be secret in it. ValueError if it is none."""
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(
            "OTEL_EXPORTER_OTLP_ENDPOINT (or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT) is no URL; write http://HOST:4318"
        )
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
