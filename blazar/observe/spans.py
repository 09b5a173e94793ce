# SPDX-License-Identifier: Apache-2.0
"""Traces: what a request or an event does, as spans of OpenTelemetry, in all processes that have a part in it.

While tracing is off, which it is by default, a span costs nothing but a call, and no package of OpenTelemetry is
imported. Spans have ids, never names that users gave, bodies or addresses: who may read traces may not read leases.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from enum import Enum
from typing import TYPE_CHECKING, Any

from blazar.model.base.errors import BlazarError
from blazar.model.base.values import dataclass

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, SpanContext

PARENT = "traceparent"
"""The header, and the key in the context of a message, that says which span a call belongs to (W3C Trace Context)."""

SLOW_WRITE_SECONDS = 0.02
"""Writes to the database that take longer are spans of their own."""

SERVICE = "blazar"

_PARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


class Side(Enum):
    """Where work is done, as OpenTelemetry tells it: asked by another process, asking another one, or here."""

    SERVER = 1
    CLIENT = 2
    HERE = 0


class Note:
    """A span as work adds to it; this one belongs to no trace."""

    def add(self, **attributes: str | int) -> None:
        """Add attributes, whose names have ``_`` for a dot: ``lease_id`` is lease.id."""

    def note_status(self, status: int) -> None:
        """Say with what status of HTTP a call was answered."""

    def fail(self, sentence: str) -> None:
        """Say that the work failed, and why, without anything secret."""


class _KeptNote(Note):
    def __init__(self, span: Span) -> None:
        self._span = span

    def add(self, **attributes: str | int) -> None:
        self._span.set_attributes(_name_attributes(attributes))

    def note_status(self, status: int) -> None:
        self._span.set_attribute("http.response.status_code", status)
        if status >= 500:
            self.fail(f"status {status}")

    def fail(self, sentence: str) -> None:
        from opentelemetry.trace import Status, StatusCode

        self._span.set_status(Status(StatusCode.ERROR, sentence))


_NO_SPAN: AbstractContextManager[Note] = nullcontext(Note())


@dataclass(frozen=True, slots=True)
class Tracing:
    """How traces are made: ``trust_incoming`` continues those of callers of the API, who could force them otherwise."""

    provider: TracerProvider
    trust_incoming: bool = False


_tracing: Tracing | None = None


def start_tracing(tracing: Tracing | None) -> None:
    """Trace from now on; None: no more."""
    global _tracing
    _tracing = tracing


def is_traced() -> bool:
    """Return whether spans are made."""
    return _tracing is not None


def span(
    name: str, *, side: Side = Side.HERE, parent: str | None = None, **attributes: str | int
) -> AbstractContextManager[Note]:
    """Do a part of the work as a span of the current trace, or of that of ``parent``, or of a new one.

    ``parent`` is a ``traceparent`` of one of our own processes. An error that the block raises fails the span.
    """
    if _tracing is None:
        return _NO_SPAN
    return _span(_tracing.provider, name, side, _context_of(parent), (), attributes)


def span_of_request(name: str, parent: str | None, **attributes: str | int) -> AbstractContextManager[Note]:
    """Serve a request as a span, which only refers to the ``parent`` that its sender names unless callers are trusted.

    Callers could otherwise have all of them traced.
    """
    if _tracing is None:
        return _NO_SPAN
    known = _context_of(parent)
    if _tracing.trust_incoming or known is None:
        return _span(_tracing.provider, name, Side.SERVER, known, (), attributes)
    return _span(_tracing.provider, name, Side.SERVER, None, (known,), attributes)


def record_write(begin: float, end: float) -> None:
    """Make a write to the database a span if it was slow; the times are of ``time.monotonic``.

    Outside of requests and events, as of a heartbeat, it would be a trace that tells nothing.
    """
    if _tracing is None or end - begin < SLOW_WRITE_SECONDS or current_parent() is None:
        return
    now = time.time_ns() - int((time.monotonic() - end) * 1e9)
    tracer = _tracing.provider.get_tracer(SERVICE)
    tracer.start_span("db write", start_time=now - int((end - begin) * 1e9)).end(now)


def current_parent() -> str | None:
    """Return the ``traceparent`` for what this thread calls; None if it is not traced."""
    if _tracing is None:
        return None
    from opentelemetry.trace import get_current_span

    known = get_current_span().get_span_context()
    if not known.is_valid:
        return None
    return f"00-{known.trace_id:032x}-{known.span_id:016x}-{int(known.trace_flags):02x}"


def parent_headers() -> dict[str, str]:
    """Return the header of a call to another service; none if it is not traced."""
    return {} if (parent := current_parent()) is None else {PARENT: parent}


@contextmanager
def _span(
    provider: TracerProvider,
    name: str,
    side: Side,
    parent: SpanContext | None,
    links: tuple[SpanContext, ...],
    attributes: Mapping[str, str | int],
) -> Iterator[Note]:
    from opentelemetry import trace

    above = None if parent is None else trace.set_span_in_context(trace.NonRecordingSpan(parent))
    kinds = {Side.SERVER: trace.SpanKind.SERVER, Side.CLIENT: trace.SpanKind.CLIENT}
    with provider.get_tracer(SERVICE).start_as_current_span(
        name,
        context=above,
        kind=kinds.get(side, trace.SpanKind.INTERNAL),
        links=[trace.Link(link) for link in links],
        attributes=_name_attributes(attributes),
        # The message of an error may quote what a user wrote; its class is enough here, and the log has the rest.
        record_exception=False,
        set_status_on_exception=False,
    ) as made:
        note = _KeptNote(made)
        try:
            yield note
        except BlazarError as error:
            if error.status >= 500:
                note.fail(type(error).__name__)
            else:
                note.add(refused=error.code)
            raise
        except BaseException as error:
            note.fail(type(error).__name__)
            raise


def _context_of(parent: str | None) -> SpanContext | None:
    """Return the span that a ``traceparent`` names; None if it names none."""
    if parent is None or _PARENT.fullmatch(parent) is None:
        return None
    from opentelemetry.trace import SpanContext, TraceFlags

    _, trace_id, span_id, flags = parent.split("-")
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=TraceFlags(int(flags, 16)))


def _name_attributes(attributes: Mapping[str, Any]) -> dict[str, str | int]:
    """Return attributes by the names of OpenTelemetry; ids of requests are single words there."""
    return {
        key if key == "request_id" else key.replace("_", ".", 1): value
        for key, value in attributes.items()
        if value is not None
    }
