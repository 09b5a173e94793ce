# SPDX-License-Identifier: Apache-2.0
"""A trace goes on from the API to the manager that takes the request, by the context of the message."""

from __future__ import annotations

import pytest

from blazar.observe.spans import start_tracing
from tests.api.conftest import token
from tests.api.leases.test_rest_v1 import LEASE
from tests.observe.test_spans import Made, children_of, trace_with


@pytest.fixture
def made():
    exporter = Made()
    trace_with(exporter)
    yield exporter
    start_tracing(None)


def test_one_trace_leads_from_the_request_through_the_bus_to_the_booking(http, made):
    assert http.post("/v1/leases", json=LEASE, headers=token()).status_code == 201
    request = made.one("POST /v1/leases")
    asked, served = made.one("rpc leases.create"), made.one("serve leases.create")
    assert asked.parent.span_id == request.context.span_id
    assert served.parent.span_id == asked.context.span_id
    assert {"book", "cloud simulated create_aggregate"} <= children_of(served, made)
    assert {one.context.trace_id for one in made.get_finished_spans() if one.parent} == {request.context.trace_id}


def test_a_manager_of_before_ignores_what_it_does_not_know(http, made, bus, monkeypatch):
    monkeypatch.setattr("blazar.rpc.server.PARENT", "of another version")
    assert http.post("/v1/leases", json=LEASE, headers=token()).status_code == 201
    assert made.one("serve leases.create").parent is None
