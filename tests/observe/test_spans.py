# SPDX-License-Identifier: Apache-2.0
"""Spans: what belongs to one trace, what they may say, and that they cost nothing while nobody wants them."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from blazar.model.base.errors import CloudUnavailable, NotFound
from blazar.observe import spans
from blazar.observe.spans import Side, Tracing, span, span_of_request, start_tracing
from tests.api.conftest import app_of, client_of, token
from tests.api.leases.test_rest_v1 import LEASE

TRACE, ABOVE = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{ABOVE}-01"


class Made(InMemorySpanExporter):
    """The spans that a test has made."""

    @property
    def names(self) -> list[str]:
        return [one.name for one in self.get_finished_spans()]

    def one(self, name: str) -> ReadableSpan:
        (found,) = (made for made in self.get_finished_spans() if made.name == name)
        return found


def trace_with(exporter: InMemorySpanExporter, **how: bool) -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    start_tracing(Tracing(provider, **how))


@pytest.fixture
def made() -> Iterator[Made]:
    exporter = Made()
    trace_with(exporter)
    yield exporter
    start_tracing(None)


def test_without_tracing_a_span_is_nothing_and_needs_no_package():
    program = (
        "import sys; from blazar.observe.spans import span, current_parent, parent_headers\n"
        "with span('work', lease_id='1') as note: note.add(attempt=1); note.note_status(500); note.fail('no')\n"
        "assert current_parent() is None and parent_headers() == {}\n"
        "assert span('work') is span('other')\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_work_within_work_is_its_child(made):
    with span("outer"), span("inner", side=Side.CLIENT, lease_id="5f0c", attempt=2) as note:
        note.note_status(204)
        headers = spans.parent_headers()
    outer, inner = made.one("outer"), made.one("inner")
    assert inner.parent.span_id == outer.context.span_id
    assert dict(inner.attributes) == {"lease.id": "5f0c", "attempt": 2, "http.response.status_code": 204}
    ids = f"{inner.context.trace_id:032x}-{inner.context.span_id:016x}"
    assert headers == {"traceparent": f"00-{ids}-{int(inner.context.trace_flags):02x}"}


def test_another_process_goes_on_with_the_trace_of_the_one_that_called(made):
    with span("serve leases.create", side=Side.SERVER, parent=PARENT):
        pass
    served = made.one("serve leases.create")
    assert (f"{served.context.trace_id:032x}", f"{served.parent.span_id:016x}") == (TRACE, ABOVE)


def test_a_caller_is_only_referred_to_unless_callers_are_trusted(made):
    with span_of_request("GET /v1/leases", PARENT):
        pass
    trace_with(made, trust_incoming=True)
    with span_of_request("GET /v1/os-hosts", PARENT):
        pass
    ours, theirs = made.one("GET /v1/leases"), made.one("GET /v1/os-hosts")
    assert ours.parent is None
    assert f"{ours.context.trace_id:032x}" != TRACE
    assert [f"{link.context.trace_id:032x}" for link in ours.links] == [TRACE]
    assert (f"{theirs.context.trace_id:032x}", list(theirs.links)) == (TRACE, [])


@pytest.mark.parametrize(
    "parent",
    [
        "",
        "garbage",
        PARENT + "-more",
        PARENT.upper(),
        f"00-{'0' * 32}-{ABOVE}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"ff-{TRACE}-{ABOVE}-01",
        PARENT + "\n",
        "٠0" + PARENT[2:],
    ],
)
def test_a_header_that_names_no_trace_is_as_none(made, parent):
    with span_of_request("GET /v1/leases", parent):
        pass
    served = made.one("GET /v1/leases")
    assert (served.parent, list(served.links)) == (None, [])


def test_what_fails_says_so_and_what_is_refused_does_not(made):
    with pytest.raises(CloudUnavailable), span("cloud"):
        raise CloudUnavailable("secret of somebody")
    with pytest.raises(NotFound), span("look"):
        raise NotFound("there is no lease of that name")
    with pytest.raises(KeyError), span("bug"):
        raise KeyError("a name")
    failed, refused, bug = made.one("cloud"), made.one("look"), made.one("bug")
    assert (failed.status.is_ok, failed.status.description) == (False, "CloudUnavailable")
    assert (refused.status.is_ok, dict(refused.attributes)) == (True, {"refused": "unknown_reference"})
    assert bug.status.description == "KeyError"
    assert not [event for one in made.get_finished_spans() for event in one.events]


def test_only_slow_writes_are_spans(made):
    now = time.monotonic()
    with span("book"):
        spans.record_write(now - 0.019, now)
    # That of a heartbeat would be a trace that tells nothing.
    spans.record_write(now - 0.5, now)
    assert made.names == ["book"]
    with span("event start_lease"):
        spans.record_write(now - 0.5, now)
    slow = made.one("db write")
    assert slow.parent.span_id == made.one("event start_lease").context.span_id
    assert (slow.end_time - slow.start_time) / 1e9 == pytest.approx(0.5)


def test_a_lease_is_traced_from_the_request_to_the_cloud_and_again_at_its_start(made, world):
    http = client_of(app_of(world.manager))
    answer = http.post("/v1/leases", json=LEASE, headers=token())
    lease_id = answer.json["lease"]["id"]
    request = made.one("POST /v1/leases")
    assert request.attributes["http.response.status_code"] == 201
    assert request.attributes["request_id"] == answer.headers["x-openstack-request-id"]
    book = made.one("book")
    assert (book.parent.span_id, book.attributes["lease.id"]) == (request.context.span_id, lease_id)
    assert "cloud simulated create_aggregate" in children_of(request, made)

    made.clear()
    world.run_to(world.store.leases.one(lease_id).window.start)
    start = made.one("event start_lease")
    assert (start.attributes["lease.id"], start.attributes["attempt"]) == (lease_id, 1)
    assert "cloud simulated add_host" in children_of(start, made)


def children_of(above: ReadableSpan, made: Made) -> set[str]:
    found = made.get_finished_spans()
    return {one.name for one in found if one.parent is not None and one.parent.span_id == above.context.span_id}


def test_a_span_has_ids_and_nothing_that_a_user_wrote(made, world):
    http = client_of(app_of(world.manager))
    body = {**LEASE, "name": "the name of a secret project"}
    answer = http.post("/v1/leases", json=body, headers=token())
    http.put(f"/v1/leases/{answer.json['lease']['id']}", json={"name": "another secret"}, headers=token())
    http.post("/v1/leases", json={"name": "a secret that is refused"}, headers=token())
    world.run_to(world.store.leases.one(answer.json["lease"]["id"]).window.end)
    told = made.get_finished_spans()
    assert len(told) > 10
    for one in told:
        assert re.fullmatch(r"[A-Za-z0-9_.:/{}<> -]+", one.name), one.name
        assert "secret" not in one.to_json()
        assert one.attributes.keys() <= {
            "lease.id",
            "event.id",
            "attempt",
            "request_id",
            "refused",
            "http.response.status_code",
        }
