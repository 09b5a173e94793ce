# SPDX-License-Identifier: Apache-2.0
"""A machine that reads our OpenAPI document finds nothing that makes the service fail."""

from __future__ import annotations

import os

import pytest
import schemathesis
from hypothesis import given, settings
from schemathesis import GenerationMode

from blazar.api.app import create_app
from blazar.api.identity import StandaloneIdentity
from tests.tables import new_sqlite
from tests.world import World

CASES = int(os.environ.get("BLAZAR_FUZZ", "15"))
CHECKS = [
    schemathesis.checks.not_a_server_error,
    schemathesis.checks.response_schema_conformance,
    schemathesis.checks.status_code_conformance,
    schemathesis.checks.content_type_conformance,
]


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda mode: mode.value)
def test_no_request_makes_the_service_fail(tmp_path, mode):
    engine = new_sqlite(tmp_path / "blazar.sqlite")
    app = create_app(World(engine).manager, identity=StandaloneIdentity())
    schema = schemathesis.openapi.from_wsgi("/openapi.json", app)
    asked = 0
    versions = set()
    for found in schema.get_all_operations():
        operation = found.ok()
        if mode is GenerationMode.NEGATIVE and not operation.body:
            # Headers and parameters are texts: without a body there is nothing that could be wrong.
            continue

        versions.add(operation.path[:4])

        @settings(max_examples=CASES, deadline=None)
        @given(case=operation.as_strategy(generation_mode=mode))
        def check(case):
            nonlocal asked
            answer = case.call()
            asked += 1
            assert answer.status_code < 500
            case.validate_response(answer, checks=CHECKS)

        check()
    assert asked >= CASES * 5
    assert {"/v1/", "/v2/"} <= versions
