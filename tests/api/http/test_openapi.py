# SPDX-License-Identifier: Apache-2.0
"""The document that the service serves is valid, complete, and its examples are true."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from tests.api.conftest import token

STANDS_FOR = {
    "lease_id": "9f0d0a3e-6f0e-4f57-9d0a-0e1f2a3b4c5d",
    "host_id": "1",
    "name": "gpu",
    "floating_ip_id": "0b1c2d3e-1111-4222-8333-444455556666",
    "network_id": "0b1c2d3e-1111-4222-8333-444455556666",
    "device_id": "0b1c2d3e-1111-4222-8333-444455556666",
}


@pytest.fixture
def document(http) -> dict[str, Any]:
    return http.get("/openapi.json").json


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if method != "parameters":
                yield path, method, operation


@pytest.mark.slow
def test_the_served_document_is_valid_openapi(document):
    validate(document)


def test_every_route_is_documented_and_nothing_else(app, document):
    served = {
        (re.sub(r"<(\w+)>", r"{\1}", rule.rule), method.lower())
        for rule in app.url_map.iter_rules()
        for method in rule.methods - {"HEAD", "OPTIONS"}
        if rule.rule == "/openapi.json" or not rule.rule.endswith(".json")
    }
    assert served == {(path, method) for path, method, _ in operations(document)}


def test_every_get_is_also_served_with_the_suffix_json(http, document):
    for path, method, _ in operations(document):
        is_new = "Since version" in document["paths"][path][method].get("description", "")
        if path.startswith(("/v1/", "/v2/")) and path != "/v1/" and method == "get" and not is_new:
            for name, value in STANDS_FOR.items():
                path = path.replace(f"{{{name}}}", value)
            plain, suffixed = http.get(path), http.get(f"{path}.json")
            assert (suffixed.status_code, suffixed.json) == (plain.status_code, plain.json)


def test_every_example_fits_its_schema(document):
    shown = 0

    def check(schema: Any) -> None:
        nonlocal shown
        if isinstance(schema, dict):
            for example in schema.get("examples", []):
                Draft202012Validator({**schema, "components": document["components"]}).validate(example)
                shown += 1
            for part in schema.values():
                check(part)
        elif isinstance(schema, list):
            for part in schema:
                check(part)

    check(document["components"]["schemas"])
    assert shown > 20
    assert all("examples" in schema for schema in document["components"]["schemas"].values())


def test_the_examples_of_requests_work(http, document):
    examples = {name: schema["examples"] for name, schema in document["components"]["schemas"].items()}
    (wanted,) = examples["LeaseCreate"]
    made = http.post("/v1/leases", json={**wanted, "start_date": "2030-05-01 08:00", "end_date": "2030-05-01 20:00"})
    assert made.status_code == 201
    lease = made.json["lease"]
    later, bigger = examples["LeaseUpdate"]
    (reservation,) = bigger["reservations"]
    changes = [
        {**later, "end_date": "2030-05-01 22:00"},
        {**bigger, "reservations": [{**reservation, "id": lease["reservations"][0]["id"]}]},
    ]
    for change in changes:
        assert http.put(f"/v1/leases/{lease['id']}", json=change).status_code == 200
    for change in examples["HostUpdate"]:
        assert http.put("/v1/os-hosts/1", json=change).status_code == 200
    for change in examples["PropertyUpdate"]:
        assert http.patch("/v1/os-hosts/properties/rack", json=change).status_code == 200


def test_the_examples_of_requests_of_version_2_work(http, document):
    examples = {name: schema["examples"] for name, schema in document["components"]["schemas"].items()}
    (wanted,) = examples["LeaseCreateV2"]
    days = {"start_date": "2030-05-01 08:00", "end_date": "2030-05-01T20:00Z", "before_end_date": "2030-05-01 19:30"}
    lease = http.post("/v2/leases", json={**wanted, **days})
    assert lease.status_code == 201, lease.text
    later, other = examples["LeaseUpdateV2"]
    (reservation,) = other["reservations"]
    for change in (
        {**later, "end_date": "2030-05-01T22:00:00Z"},
        {**other, "reservations": [{**reservation, "id": lease.json["reservations"][0]["id"]}]},
    ):
        assert http.put(f"/v2/leases/{lease.json['id']}", json=change).status_code == 200
    for change in examples["HostUpdateV2"]:
        assert http.put("/v2/os-hosts/1", json=change).status_code == 200
    for path in (f"/v2/leases/{lease.json['id']}", "/v2/os-hosts/3"):
        assert http.delete(path).status_code == 204
    for wanted in examples["HostCreateV2"]:
        assert http.post("/v2/os-hosts", json={**wanted, "hypervisor_hostname": "node-3"}).status_code == 201


def test_version_2_is_deprecated_in_every_operation_and_has_no_microversions(document):
    for path, _, operation in operations(document):
        assert operation.get("deprecated", False) == path.startswith("/v2")
        if path.startswith("/v2"):
            assert {"400", "401", "403", "500", "503"} <= operation["responses"].keys()
            assert "406" not in operation["responses"]
            assert "OpenStack-API-Version" not in {p["name"] for p in operation["parameters"]}
            assert ("requestBody" in operation) == ("413" in operation["responses"])


def test_every_operation_documents_its_errors_and_headers(document):
    for path, _, operation in operations(document):
        if path.startswith("/v1/") and path != "/v1/":
            assert {"400", "401", "403", "406", "500", "503"} <= operation["responses"].keys()
            assert {p["name"] for p in operation["parameters"]} >= {"X-Auth-Token", "OpenStack-API-Version"}
            assert ("requestBody" in operation) == ("413" in operation["responses"])


def test_the_header_of_the_version_says_which_versions_have_an_operation(document):
    for path, _, operation in operations(document):
        for header in (each for each in operation["parameters"] if each["name"] == "OpenStack-API-Version"):
            is_new = operation.get("description", "").startswith("Since version 1.1.")
            assert header["description"].startswith(f"`reservation 1.{int(is_new)}`"), path
            assert header["description"].endswith("which does not have this" if is_new else "without it, 1.0"), path


def test_an_error_has_the_shape_that_the_document_gives_its_status(http, document):
    shapes = {
        "ApplicationError": http.get("/v1/os-hosts", headers=token()),
        "FrameError": http.patch("/v1/leases"),
        "VersionError": http.get("/v1/leases", headers={"OpenStack-API-Version": "reservation 7.0"}),
        "AuthenticationError": http.get("/v1/leases", headers={"X-Auth-Token": "nobody"}),
    }
    assert [answer.status_code for answer in shapes.values()] == [403, 405, 406, 401]
    for name, answer in shapes.items():
        Draft202012Validator(document["components"]["schemas"][name]).validate(answer.json)
