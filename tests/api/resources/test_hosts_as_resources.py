# SPDX-License-Identifier: Apache-2.0
"""Hosts at ``/v1/resources``: labels, conditions with reasons, filters, pages, changes that nothing overtakes."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import quote

import pytest

from blazar.api.app import create_app
from blazar.api.http.identity import StandaloneIdentity
from blazar.api.http.openapi import Served
from blazar.api.http.policy import Policy
from blazar.api.parts import BUILTIN
from blazar.model.resources.resource import HOST
from blazar.store.resources import inventory
from tests.api.conftest import client_of, token
from tests.statements import counted
from tests.world import NOON, World

VERSION = {"OpenStack-API-Version": "reservation 1.1"}
MEMBER = {**VERSION, **token("curie", "physics")}


def serve(world):
    served = Served(BUILTIN, newest=(1, 1))
    policy = Policy(parts=BUILTIN)
    return client_of(create_app(world.manager, identity=StandaloneIdentity(), policy=policy, served=served))


@pytest.fixture
def http(world):
    return serve(world)


def get(http, path, status=200, **headers):
    answer = http.get(path, headers={**VERSION, **headers})
    assert answer.status_code == status, answer.text
    return answer


def put(http, body, status=200, path="/v1/resources/host/1", **headers):
    answer = http.put(path, json=body, headers={**VERSION, **headers})
    assert answer.status_code == status, answer.text
    return answer


def names(http, query):
    return [host["name"] for host in get(http, f"/v1/resources/host?{query}").json["resources"]]


@pytest.mark.slow
def test_a_host_is_registered_shown_and_unregistered(sqlite):
    world = World(sqlite, hosts=2, register=False)
    http = serve(world)
    body = {
        "name": "node-1",
        "properties": {"gpu": "A100", "slots": 4},
        "disabled": {"reason": "new", "until": "+P1D"},
        "authorized_projects": ["physics"],
    }
    made = http.post("/v1/resources/host", json=body, headers=VERSION)
    assert made.status_code == 201
    assert made.headers["Location"] == "http://localhost/v1/resources/host/1"
    assert made.headers["Cache-Control"] == "no-store"
    host = made.json["resource"]
    assert host["label"].startswith("h-")
    assert host["properties"] == {"gpu": "A100", "slots": "4"}
    assert host["disabled"] == {"reason": "new", "since": "2030-04-01T12:00:00Z", "until": "2030-04-02T12:00:00Z"}
    assert (host["reservable"], host["failure"], host["authorized_projects"]) == (False, None, ["physics"])
    assert host["capacity"].keys() == {"VCPU", "MEMORY_MB", "DISK_GB"}
    shown = get(http, "/v1/resources/host/1")
    assert shown.json == made.json
    assert shown.headers["ETag"] == made.headers["ETag"]
    assert shown.headers["Cache-Control"] == "private, no-cache, no-transform"
    again = http.post("/v1/resources/host", json=body, headers=VERSION)
    assert (again.status_code, again.json["errors"][0]["code"]) == (409, "reservation.already_registered")
    assert http.delete("/v1/resources/host/1", headers=VERSION).status_code == 204
    assert get(http, "/v1/resources/host/1", 404).json["errors"][0]["code"] == "reservation.host_not_found"


@pytest.mark.slow
def test_a_change_touches_only_what_it_names(http, world):
    put(http, {"properties": {"gpu": "A100", "rack": "r7"}})
    host = put(http, {"properties": {"gpu": None}}).json["resource"]
    assert host["properties"] == {"rack": "r7"}
    host = put(http, {"disabled": {"reason": "fan", "until": "2030-04-05T00:00+02:00"}}).json["resource"]
    assert host["disabled"] == {"reason": "fan", "since": "2030-04-01T12:00:00Z", "until": "2030-04-04T22:00:00Z"}
    world.clock.by(hours=1)
    host = put(http, {"authorized_projects": ["physics"]}).json["resource"]
    assert host["disabled"]["reason"] == "fan"
    host = put(http, {"disabled": {}}).json["resource"]
    assert host["disabled"] == {"reason": None, "since": "2030-04-01T12:00:00Z", "until": None}
    host = put(http, {"disabled": None, "authorized_projects": None}).json["resource"]
    assert (host["disabled"], host["authorized_projects"], host["reservable"]) == (None, None, True)
    assert host["properties"] == {"rack": "r7"}


@pytest.mark.slow
def test_a_host_disabled_until_then_is_enabled_then(http, world):
    put(http, {"disabled": {"until": "+2h"}})
    world.clock.to(NOON + timedelta(hours=2))
    world.manager.enabler.run_once()
    host = get(http, "/v1/resources/host/1").json["resource"]
    assert (host["disabled"], host["reservable"]) == (None, True)


def test_1_0_shows_the_same_host_as_before(http):
    put(http, {"properties": {"rack": "r7"}, "disabled": {"reason": "fan", "until": "+P1D"}})
    host = http.get("/v1/os-hosts/1").json["host"]
    assert (host["rack"], host["disabled"]) == ("r7", True)
    assert not {"label", "revision", "disabled_reason", "reason", "until"} & host.keys()
    assert http.put("/v1/os-hosts/1", json={"disabled": "False"}).json["host"]["reservable"]


@pytest.mark.slow
def test_a_stale_change_is_refused_and_changes_nothing(http, world):
    before = get(http, "/v1/resources/host/1")
    tag = before.headers["ETag"]
    assert tag.startswith('"')
    assert http.get("/v1/resources/host/1", headers={**VERSION, "If-None-Match": tag}).status_code == 304
    first = put(http, {"properties": {"rack": "r1"}}, **{"If-Match": tag})
    assert first.headers["ETag"] != tag
    for sent in (tag, f"W/{first.headers['ETag']}", '"nonsense"', ""):
        refused = put(http, {"properties": {"rack": "r2"}}, 412, **{"If-Match": sent}).json["errors"][0]
        assert (refused["code"], refused["header"]) == ("reservation.precondition_failed", "If-Match")
        assert refused["data"]["etag"] == first.headers["ETag"]
        assert ("weak" in refused["detail"]) == sent.startswith("W/")
    gone = http.delete("/v1/resources/host/1", headers={**VERSION, "If-Match": tag})
    assert gone.status_code == 412
    now = get(http, "/v1/resources/host/1")
    assert (now.json["resource"]["properties"], now.headers["ETag"]) == ({"rack": "r1"}, first.headers["ETag"])
    # A booking is no edit.
    world.lease()
    put(http, {"properties": {"rack": "r3"}}, **{"If-Match": f'"other", {first.headers["ETag"]}'})
    put(http, {"properties": {"rack": "r4"}}, **{"If-Match": "*"})
    assert http.delete(
        "/v1/resources/host/2", headers={**VERSION, "If-Match": get(http, "/v1/resources/host/2").headers["ETag"]}
    )


def test_the_tag_of_a_host_that_came_back_is_another(http):
    before = get(http, "/v1/resources/host/1").headers["ETag"]
    assert http.delete("/v1/resources/host/1", headers=VERSION).status_code == 204
    assert http.post("/v1/resources/host", json={"name": "node-1"}, headers=VERSION).headers["ETag"] != before


def test_hosts_are_filtered_sorted_and_paged(sqlite):
    world = World(sqlite, hosts=6)
    http = serve(world)
    put(http, {"properties": {"gpu": "A100"}, "disabled": {}})
    put(http, {"properties": {"gpu": "A100"}, "authorized_projects": ["physics"]}, path="/v1/resources/host/2")
    world.store.resource_health.set_failed(HOST, {world.manager.resources.one(HOST, "3").id: "down"}, at=NOON)
    assert get(http, "/v1/resources/host/3").json["resource"]["failure"] == {
        "reason": "down",
        "since": "2030-04-01T12:00:00Z",
    }
    assert names(http, "condition=disabled") == ["node-1"]
    assert names(http, "condition=in:disabled,failed") == ["node-1", "node-3"]
    assert names(http, "condition=ok&sort_dir=desc") == ["node-6", "node-5", "node-4", "node-2"]
    assert names(http, "reservable=false") == ["node-1", "node-3"]
    assert names(http, "project_id=physics") == ["node-2"]
    assert names(http, "name=in:node-5,node-1") == ["node-1", "node-5"]
    assert names(http, "text=ODE-4") == ["node-4"]
    assert names(http, "requirement=" + quote('["==","$gpu","A100"]')) == ["node-1", "node-2"]
    label = get(http, "/v1/resources/host/4").json["resource"]["label"]
    assert names(http, f"label={label}") == ["node-4"]
    page = get(http, "/v1/resources/host?limit=4&fields=label&with_count=true").json
    assert page["count"] == 6
    assert [host.keys() for host in page["resources"]] == [{"id", "label"}] * 4
    (following,) = [link["href"] for link in page["links"] if link["rel"] == "next"]
    rest = get(http, following.removeprefix("http://localhost")).json["resources"]
    assert [host["id"] for host in rest] == ["5", "6"]
    assert names(http, "marker=4") == ["node-5", "node-6"]
    with counted(sqlite) as statements:
        names(http, "limit=2")
    assert statements.count == 1


BAD = [
    ({}, "invalid_value", None),
    ({"rack": "r1"}, "unknown_field", "/rack"),
    ({"label": "h-000000"}, "read_only_field", "/label"),
    ({"properties": []}, "invalid_value", "/properties"),
    ({"properties": {"rack": []}}, "invalid_value", "/properties/rack"),
    ({"properties": {"name": "x"}}, "invalid_value", "/properties"),
    ({"disabled": True}, "invalid_value", "/disabled"),
    ({"disabled": {"why": "fan"}}, "unknown_field", "/disabled/why"),
    ({"disabled": {"reason": "x" * 1001}}, "invalid_value", "/disabled/reason"),
    ({"disabled": {"until": "tomorrow"}}, "invalid_date", "/disabled/until"),
    ({"disabled": {"until": "P1D"}}, "invalid_date", "/disabled/until"),
    ({"disabled": {"until": "-P1D"}}, "invalid_date", "/disabled/until"),
    ({"disabled": {"until": "now"}}, "date_in_past", "/disabled/until"),
    ({"disabled": {"until": "2030-04-01T12:00:00Z"}}, "date_in_past", "/disabled/until"),
    ({"authorized_projects": []}, "invalid_value", "/authorized_projects"),
    ({"authorized_projects": "physics"}, "invalid_value", "/authorized_projects"),
    ({"authorized_projects": [" "]}, "invalid_value", "/authorized_projects"),
]


@pytest.mark.sample(1)
@pytest.mark.parametrize(("body", "code", "pointer"), BAD, ids=[str(body)[:50] for body, *_ in BAD])
def test_bad_changes_are_refused_with_the_field(http, body, code, pointer):
    before = get(http, "/v1/resources/host/1").json
    error = put(http, body, 400).json["errors"][0]
    assert (error["code"], error.get("pointer") or None) == (f"reservation.{code}", pointer)
    assert get(http, "/v1/resources/host/1").json == before


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("?condition=broken", "invalid_query"),
        ("?sort_key=rack", "invalid_query"),
        ("?marker=99", "invalid_marker"),
        ("?requirement=%5B%22~%22%5D", "malformed_requirement"),
        ("?requirement=%5B%22%3D%3D%22,%22%24colour%22,%22red%22%5D", "unknown_property"),
        ("?detail=true", "unknown_query_parameter"),
        ("?text=x", "invalid_query"),
    ],
)
def test_bad_lists_are_refused(http, path, code):
    assert get(http, f"/v1/resources/host{path}", 400).json["errors"][0]["code"] == f"reservation.{code}"


def test_hosts_stay_for_operators(http):
    for method, path in (("POST", ""), ("PUT", "/1"), ("DELETE", "/1")):
        answer = http.open(f"/v1/resources/host{path}", method=method, json={"disabled": None}, headers=MEMBER)
        assert answer.status_code == 403
        assert answer.json["errors"][0]["code"] == "reservation.forbidden"
    assert get(http, "/v1/resources/host/none", 404).json["errors"][0]["code"] == "reservation.host_not_found"


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("key", "pointer"),
    [("vcpus", "/properties/vcpus"), ("name", "/properties"), ("k" * 65, "/properties"), (" ", "/properties")],
)
def test_a_refused_property_is_pointed_at(http, key, pointer):
    answer = http.put("/v1/resources/host/1", json={"properties": {key: "1"}}, headers=VERSION)
    assert (answer.status_code, answer.json["errors"][0].get("pointer")) == (400, pointer)


@pytest.mark.parametrize("key", ["name", "id"])
def test_a_hypervisor_that_is_unknown_is_pointed_at(http, key):
    answer = http.post("/v1/resources/host", json={key: "4711"}, headers=VERSION)
    assert (answer.status_code, answer.json["errors"][0].get("pointer")) == (400, f"/{key}")


def test_a_data_sheet_that_would_count_for_nothing_is_refused(http, world):
    error = put(http, {"properties": {"power_idle_w": "180 W"}}, 400).json["errors"][0]
    assert error["pointer"] == "/properties/power_idle_w"
    assert "power_idle_w is '180 W'; it is watts, as 180" in error["detail"]
    assert http.put("/v1/os-hosts/1", json={"lifespan_years": "0"}).status_code == 400
    put(http, {"properties": {"power_idle_w": "180"}})
    error = put(http, {"properties": {"power_max_w": "100"}}, 400).json["errors"][0]
    assert error["pointer"] == "/properties/power_max_w"
    put(http, {"properties": {"power_max_w": "420"}})


def test_what_a_host_has_had_for_long_keeps_nobody_from_changing_something_else(http, world):
    host = world.store.resources.one(HOST, "1")
    with world.engine.begin() as connection:
        inventory.set_capabilities(connection, HOST, host.id, {"power_idle_w": "hot"}, NOON)
    put(http, {"properties": {"rack": "7"}})
