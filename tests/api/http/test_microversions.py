# SPDX-License-Identifier: Apache-2.0
"""How the API grows: routes, schemas and renderings by ranges of microversions, with a table made up for the test."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import cast

import pytest
from openapi_spec_validator import validate

import blazar.api
from blazar.api.app import create_app
from blazar.api.http.identity import StandaloneIdentity
from blazar.api.http.microversion import MIN_VERSION
from blazar.api.http.openapi import Served
from blazar.api.http.policy import Policy, rules_of
from blazar.api.http.routes import ADMIN, Body, Part, Root, Route, Rule, in_query
from blazar.api.http.shapes import TEXT, an_object, ref
from blazar.api.parts import BUILTIN
from blazar.rpc.interface import Manager

RULE = Rule("blazar:greetings:use", ADMIN, "Greet.")


def of_text(description: str, *, minimum: int = 1) -> dict:
    text = {"type": "string", "minLength": minimum, "description": description}
    return {"type": "object", "required": ["name"], "additionalProperties": False, "properties": {"name": text}}


FIRST = Body("Greeting", of_text("a name"), ({"name": "Bo"},))
LATER = Body("Greeting1_2", of_text("a name of at least three letters", minimum=3), ({"name": "Lise"},))


def handler(call) -> str:
    return call.body()["name"] if call.route.body else "everybody"


route = partial(Route, root=Root.V1, path="/greetings", handler=handler, rule=RULE, summary="Greet")
greet = partial(route, method="POST", name="greet")
PART = Part(
    "greetings",
    routes=(
        greet(
            body=LATER,
            since=(1, 2),
            answers={201: ref("Greeted")},
            render=lambda name: {"greeted": [name]},
            parameters=(in_query("loud", "any value: with an exclamation mark"),),
        ),
        greet(
            body=FIRST,
            since=MIN_VERSION,
            until=(1, 1),
            parameters=(in_query("twice", "any value: greet twice"),),
            errors=(429,),
            answers={200: an_object({"hello": TEXT})},
            render=lambda name: {"hello": name},
        ),
        route(
            method="GET",
            name="list_greetings",
            answers={200: an_object({"hello": TEXT})},
            render=lambda name: {"hello": name},
        ),
        *(
            route(
                method=method,
                path="/farewells",
                name=f"{method.lower()}_farewells",
                until=(1, 1),
                answers={200: an_object({"bye": TEXT})},
                render=lambda name: {"bye": name},
            )
            for method in ("GET", "PUT")
        ),
    ),
    rules=(RULE,),
    components={"Greeted": an_object({"greeted": {"type": "array"}}, example={"greeted": ["Lise"]})},
)
PARTS = (*BUILTIN, PART)


def client(newest):
    served, policy = Served(PARTS, newest=newest), Policy(parts=PARTS)
    # No route of the table asks a manager.
    return create_app(cast(Manager, None), identity=StandaloneIdentity(), policy=policy, served=served).test_client()


@pytest.fixture(scope="module")
def http():
    return client((1, 2))


def ask(http, version, method, path, **more):
    headers = {"OpenStack-API-Version": f"reservation {version}"} if version else {}
    return http.open(path, method=method, headers={**headers, **more.pop("headers", {})}, **more)


def parts_of(answer):
    """Return everything of an answer but the id of its request."""
    headers = {name: value for name, value in answer.headers.items() if name.lower() != "x-openstack-request-id"}
    return answer.status_code, answer.text.replace(answer.headers["x-openstack-request-id"], "REQUEST"), headers


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "OPTIONS", "DELETE"])
@pytest.mark.parametrize("version", ["1.0", None, "1.2"])
def test_a_route_that_does_not_exist_in_a_version_is_an_unknown_url(http, version, method):
    there = ask(http, version, method, "/v1/farewells")
    assert there.status_code == 404
    assert parts_of(there) == parts_of(ask(http, version, method, "/v1/nowhere"))


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "OPTIONS"])
def test_it_exists_in_the_versions_of_its_row(http, method):
    answer = ask(http, "1.1", method, "/v1/farewells")
    assert (answer.status_code, answer.headers["OpenStack-API-Version"]) == (200, "reservation 1.1")


def test_it_needs_a_token_in_every_version(http):
    for version in ("1.0", "1.1"):
        assert ask(http, version, "GET", "/v1/farewells", headers={"X-Auth-Token": "nobody"}).status_code == 401


def test_a_rule_is_checked_in_the_versions_that_have_the_route_only(http):
    member = {"X-Auth-Token": "curie:physics"}
    statuses = [ask(http, v, "GET", "/v1/farewells", headers=member).status_code for v in ("1.0", "1.1", "1.2")]
    assert statuses == [404, 403, 404]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_method_of_a_later_version_is_not_allowed_before(http, method):
    early, wrong = ask(http, "1.0", method, "/v1/greetings"), ask(http, "1.0", "PATCH", "/v1/greetings")
    assert (early.status_code, early.headers["Allow"]) == (405, "OPTIONS, POST")
    assert parts_of(early)[2] | {"Content-Length": ""} == parts_of(wrong)[2] | {"Content-Length": ""}
    assert method == "HEAD" or early.json == wrong.json
    assert ask(http, "1.1", method, "/v1/greetings").status_code == 200


@pytest.mark.parametrize(("version", "allowed"), [("1.0", "OPTIONS, POST"), ("1.1", "GET, HEAD, OPTIONS, POST")])
def test_the_methods_that_a_url_offers_are_those_of_the_version(http, version, allowed):
    offered = ask(http, version, "OPTIONS", "/v1/greetings")
    assert (offered.status_code, ", ".join(sorted(offered.allow))) == (200, allowed)
    assert ask(http, version, "DELETE", "/v1/greetings").headers["Allow"] == allowed


@pytest.mark.parametrize(
    ("version", "name", "status", "answer"),
    [
        (None, "Bo", 200, {"hello": "Bo"}),
        ("1.0", "Bo", 200, {"hello": "Bo"}),
        ("1.1", "Bo", 200, {"hello": "Bo"}),
        ("1.2", "Bo", 400, "name is 'Bo', which is invalid; give a name of at least three letters"),
        ("1.2", "Lise", 201, {"greeted": ["Lise"]}),
        ("latest", "Lise", 201, {"greeted": ["Lise"]}),
    ],
)
def test_a_body_is_validated_and_an_answer_rendered_as_the_version_has_it(http, version, name, status, answer):
    found = ask(http, version, "POST", "/v1/greetings", json={"name": name})
    assert found.status_code == status
    assert (found.json if status < 400 else [fault["detail"] for fault in found.json["errors"]]) in (answer, [answer])


def test_the_newest_version_is_that_of_what_is_served(http):
    assert http.get("/v1").json["version"]["max_version"] == "1.2"
    refused = ask(http, "1.3", "POST", "/v1/greetings", json={"name": "Bo"})
    assert (refused.status_code, "the highest 1.2" in refused.json["error_message"]) == (406, True)


@pytest.mark.slow
def test_the_document_describes_every_version(http):
    document = http.get("/openapi.json").json
    validate(document)
    post, get = (document["paths"]["/v1/greetings"][method] for method in ("post", "get"))
    body = post["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"anyOf": [ref("Greeting"), ref("Greeting1_2")]}
    assert {"200", "201"} <= post["responses"].keys()
    assert post["responses"]["429"]["description"] == "Too Many Requests"
    assert {"loud", "twice"} <= {parameter["name"] for parameter in post["parameters"]}
    assert "description" not in post
    assert get["description"] == "Since version 1.1."
    assert document["paths"]["/v1/farewells"]["get"]["description"] == "Since version 1.1. Until version 1.1."


def test_the_document_leaves_out_versions_that_are_not_offered():
    http = client(MIN_VERSION)
    document = http.get("/openapi.json").json
    assert document["paths"]["/v1/greetings"].keys() == {"post"}
    assert "/v1/farewells" not in document["paths"]
    assert "Greeting1_2" not in document["components"]["schemas"]
    assert "description" not in document["paths"]["/v1/greetings"]["post"]
    (rule,) = [rule for rule in rules_of(PARTS) if rule.name == RULE.name]
    # The policy document is that of the newest version, in which the rows for 1.2 are not.
    assert {(each["method"], each["path"]) for each in rule.operations} == {
        ("POST", "/v1/greetings"),
        ("GET", "/v1/greetings"),
        ("GET", "/v1/farewells"),
        ("PUT", "/v1/farewells"),
    }
    assert ask(http, None, "GET", "/v1/greetings").headers["Allow"] == "OPTIONS, POST"
    assert ask(http, "1.1", "POST", "/v1/greetings").status_code == 406


def test_no_handler_compares_versions():
    folder = Path(blazar.api.__file__).parent
    handlers = [*folder.glob("leases/v1_0/*.py"), *folder.glob("kinds/**/*.py")]
    assert len(handlers) > 10
    for file in handlers:
        assert not re.search(r"g\.version|microversion", file.read_text(encoding="utf-8")), file


def test_what_came_with_1_1():
    later = [row for part in BUILTIN for row in part.routes if row.is_new]
    assert {row.url for row in later} == {
        "/v1/leases",
        "/v1/leases/{lease_id}",
        "/v1/leases/{lease_id}/keep",
        "/v1/leases/{lease_id}/confirm",
        "/v1/leases/{lease_id}/hold",
        "/v1/resources",
        "/v1/resources/{kind}",
        "/v1/resources/{kind}/allocations",
        "/v1/resources/{kind}/candidates",
        "/v1/resources/{kind}/properties",
        "/v1/resources/{kind}/properties/{name}",
        "/v1/resources/{kind}/{resource_id}",
        "/v1/resources/{kind}/{resource_id}/refresh",
        "/v1/resources/{kind}/{resource_id}/allocations",
        "/v1/calendar",
        "/v1/capacity",
        "/v1/properties",
        "/v1/history",
        "/v1/feeds",
        "/v1/feeds/{feed_id}",
        "/v1/subscriptions",
        "/v1/subscriptions/mine",
        "/v1/subscriptions/{subscription_id}",
        "/v1/subscriptions/{subscription_id}/failures",
        "/v1/subscriptions/{subscription_id}/replay",
        "/v1/subscriptions/{subscription_id}/test",
        "/v1/series",
        "/v1/series/{series_id}",
        "/v1/maintenances",
        "/v1/maintenances/{maintenance_id}",
        "/v1/maintenances/{maintenance_id}/end",
        "/v1/power",
        "/v1/power/hosts",
        "/v1/power/hosts/{host_id}",
        "/v1/power/hosts/{host_id}/wake",
        "/v1/power/hosts/{host_id}/log",
        "/v1/power/pools",
        "/v1/power/pools/{pool_id}",
        "/v1/power/pools/{pool_id}/wake",
        "/v1/power/pools/{pool_id}/log",
        "/v1/problems",
        "/v1/reports/capacity",
        "/v1/reports/demand",
        "/v1/reports/forecast",
        "/v1/reports/usage",
        "/v1/problems/{problem_id}",
        "/v1/problems/{problem_id}/{action}",
        "/v1/leases/{lease_id}/reservations/{reservation_id}/swap",
        "/v1/leases/{lease_id}/split",
        "/v1/leases/{lease_id}/merge",
        "/v1/leases/{lease_id}/transfer",
        "/v1/transfers",
        "/v1/transfers/{lease_id}",
        "/v1/transfers/{lease_id}/accept",
        "/v1/transfers/{lease_id}/decline",
        "/v1/leases/{lease_id}/history",
        "/v1/leases/{lease_id}/energy",
        "/v1/availability",
        "/v1/budgets",
        "/v1/charges",
        "/v1/statements",
        "/v1/statements/{month}",
        "/v1/managers",
        "/v1/price-lists",
        "/v1/price-lists/{version}",
        "/v1/rules",
        "/v1/rules/{name}",
        "/v1/info",
    }
