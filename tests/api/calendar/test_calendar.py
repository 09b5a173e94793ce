# SPDX-License-Identifier: Apache-2.0
"""The calendar over HTTP: what members and operators get of it."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import quote

import pytest
from flask import Response
from flask.testing import FlaskClient
from oslo_config import cfg
from oslo_policy import opts

from blazar.api.app import create_app
from blazar.api.http.identity import StandaloneIdentity
from blazar.api.http.openapi import Served
from blazar.api.http.policy import Policy
from blazar.api.parts import BUILTIN
from blazar.model.leases.states import LeaseStatus
from blazar.model.resources.changes import Disabling, ResourceChange
from blazar.model.resources.resource import HOST
from tests.api.conftest import client_of, token
from tests.manager.health.steps import ON_NODE_1
from tests.statements import counted
from tests.world import NOON, a_host

HOUR = timedelta(hours=1)
VERSION = {"OpenStack-API-Version": "reservation 1.1"}
MEMBER = {**VERSION, **token("curie", "physics")}
STRANGER = {**VERSION, **token("frida", "art")}
SERVICE = {**VERSION, **token("nova", "art", "service")}
ROOT = VERSION
"""Without a token, one is the operator."""


@pytest.fixture
def http(world):
    served = Served(BUILTIN, newest=(1, 1))
    return client_of(
        create_app(world.manager, identity=StandaloneIdentity(), policy=Policy(parts=BUILTIN), served=served)
    )


def get(http, path, headers=MEMBER, status=200):
    answer = http.get(path, headers=headers)
    assert answer.status_code == status, answer.text
    return answer


def shown(http, headers=MEMBER, query=""):
    return get(http, f"/v1/calendar?{query}", headers).json["calendar"]


@pytest.mark.slow
def test_a_member_and_an_operator_see_a_lease_each_in_their_way(http, world):
    lease = world.lease(start=HOUR, hours=2, name="gan-training")
    times = {"start": "2030-04-01T13:00:00Z", "end": "2030-04-01T15:00:00Z", "used": None}
    facts = {"lease_id": lease.id, "name": "gan-training", "status": "PENDING"}

    def blocks(headers):
        return [block for row in shown(http, headers)["resources"] for block in row["blocks"]]

    reservation = {"reservation_id": lease.reservations[0].id}
    assert blocks(MEMBER) == [{"kind": "mine", **times, **facts, **reservation}]
    assert blocks(STRANGER) == [{"kind": "other", **times}]
    assert blocks(ROOT) == [{"kind": "lease", **times, **facts, "project_id": "physics", "user_id": "curie"}]


@pytest.mark.slow
def test_a_user_who_has_not_left_has_the_host_until_now(http, world):
    lease = world.lease(a_host(needs=ON_NODE_1), hours=1)
    world.run()
    world.simulated.users.boot_server("stubborn", project_id="physics", user_id="curie", host="node-1")
    world.simulated.durations.deletion = timedelta(hours=5)

    def block(headers):
        (row,) = shown(http, headers, f"from=2030-04-01T12:00Z&resource={label}")["resources"]
        (found,) = row["blocks"]
        return found["kind"], found["start"], found["end"]

    label = next(host.label for host in world.manager.resources.all(HOST) if host.name == "node-1")
    for instant, end in ((NOON + HOUR, "13:00:00"), (NOON + 3 * HOUR / 2, "13:30:00"), (NOON + 2 * HOUR, "14:00:00")):
        world.clock.to(instant)
        world.run()
        assert world.now(lease).status is LeaseStatus.TERMINATING
        for headers, kind in ((MEMBER, "mine"), (STRANGER, "other"), (ROOT, "lease")):
            assert block(headers) == (kind, "2030-04-01T12:00:00Z", f"2030-04-01T{end}Z")
    world.clock.by(hours=4)
    world.run()
    assert world.now(lease).status is LeaseStatus.TERMINATED
    # The host was in use until the service saw that the server is gone.
    assert block(STRANGER) == ("other", "2030-04-01T12:00:00Z", "2030-04-01T18:00:00Z")
    world.clock.by(hours=1)
    assert block(STRANGER) == ("other", "2030-04-01T12:00:00Z", "2030-04-01T18:00:00Z")


def test_a_page_says_what_it_shows_and_where_it_goes_on(http):
    answer = get(http, "/v1/calendar?limit=2&with_count=true")
    assert answer.json.keys() == {"calendar", "links"}
    page = answer.json["calendar"]
    assert page.keys() == {"as_of", "from", "to", "resources", "count"}
    assert (page["as_of"], page["from"], page["to"]) == (
        "2030-04-01T12:00:00Z",
        "2030-04-01T12:00:00Z",
        "2030-04-15T12:00:00Z",
    )
    assert page["count"] == 3
    first, second = page["resources"]
    assert first.keys() == {"id", "type", "name", "reservable", "capacity", "properties", "blocks"}
    assert first["id"] < second["id"]
    (following,) = [link["href"] for link in answer.json["links"] if link["rel"] == "next"]
    assert answer.headers["Link"] == f'<{following}>; rel="next"'
    last = get(http, following.removeprefix("http://localhost"))
    rest = last.json["calendar"]
    assert [row["id"] for row in rest["resources"]] > [second["id"]]
    assert [link["rel"] for link in last.json["links"]] == ["self"]
    assert get(http, f"/v1/calendar?limit=2&marker={second['id']}").json["calendar"]["resources"] == rest["resources"]
    assert [row.keys() for row in shown(http, query="fields=id")["resources"]] == [{"id"}] * 3
    assert [row.keys() for row in shown(http, query="fields=blocks")["resources"]] == [{"id", "blocks"}] * 3
    (row,) = shown(http, query=f"resource={second['id']}")["resources"]
    assert row == second
    both = shown(http, query=f"resource=in:{second['id']},{first['id']}&sort_dir=desc")["resources"]
    assert [row["id"] for row in both] == [second["id"], first["id"]]
    by_zone = shown(http, query="sort_key=availability_zone")["resources"]
    zones = [row["properties"]["availability_zone"] for row in by_zone]
    assert zones == sorted(zones)


def test_operators_see_labels_and_names_and_why_a_host_is_out_of_use(http, world):
    disabling = Disabling("fan replaced", NOON + HOUR)
    world.manager.resources.change(HOST, "2", ResourceChange({}, disabled=True, disabling=disabling))
    (row,) = shown(http, ROOT, "resource=2")["resources"]
    assert (row["id"], row["name"], row["reservable"]) == ("2", "node-2", False)
    out = {"kind": "out_of_use", "start": "2030-04-01T12:00:00Z", "end": "2030-04-01T13:00:00Z", "code": "disabled"}
    later = {**out, "start": out["end"], "end": None, "code": "to_be_enabled"}
    assert row["blocks"] == [{**each, "reason": "fan replaced"} for each in (out, later)]
    (same,) = shown(http, query=f"resource={row['label']}")["resources"]
    assert same["blocks"] == [{**out, "reason": None}, {**later, "reason": None}]
    assert (same["id"], same["name"]) == (row["label"], None)


def test_the_tag_does_not_change_with_time_but_with_the_leases_that_are_shown(http, world):
    query = "/v1/calendar?from=2030-04-01T00:00Z&to=%2B7d"
    before = get(http, query)
    assert before.headers["Cache-Control"] == "private, no-cache"
    world.clock.by(minutes=5)
    again = http.get(query, headers={**MEMBER, "If-None-Match": before.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")
    world.lease(start=HOUR, project="art")
    changed = get(http, query)
    assert changed.headers["ETag"] != before.headers["ETag"]


def test_policies_decide_who_sees_names_and_owners(world, tmp_path):
    file = tmp_path / "policy.yaml"
    file.write_text('"blazar:calendar:get_names": "rule:project_reader_or_admin"\n')
    conf = cfg.ConfigOpts()
    conf([], project="blazar", default_config_files=[], default_config_dirs=[])
    opts.set_defaults(conf)
    conf.set_override("policy_file", str(file), group="oslo_policy")
    policy = Policy(conf, parts=BUILTIN)
    served = Served(BUILTIN, newest=(1, 1))
    http = client_of(create_app(world.manager, identity=StandaloneIdentity(), policy=policy, served=served))
    world.lease(project="art", name="secret")
    page = get(http, "/v1/calendar?resource=1").json["calendar"]
    assert [row["name"] for row in page["resources"]] == ["node-1"]
    assert "secret" not in get(http, "/v1/calendar").text


@pytest.mark.slow
def test_capacity_over_time_by_property(http, world):
    world.manager.resources.change(HOST, "1", ResourceChange({"gpu": "A100"}))
    world.lease(start=HOUR, hours=1)
    found = get(http, "/v1/capacity?to=%2B3h&step=1h").json["capacity"]
    assert (found["step_seconds"], found["measure"]) == (3600, "resource")
    (one,) = found["series"]
    assert one == {
        "group": {},
        "total": [3, 3, 3],
        "free": [3, 2, 3],
        "promised": [0, 1, 0],
        "out_of_use": [0, 0, 0],
        "at_start": {"total": 3, "free": 3, "promised": 0, "out_of_use": 0},
    }
    groups = get(http, "/v1/capacity?to=%2B3h&step=1h&group_by=gpu&group_by=availability_zone").json["capacity"][
        "series"
    ]
    assert [group["group"].keys() for group in groups] == [{"gpu", "availability_zone"}] * len(groups)
    by_project = get(http, "/v1/capacity?group_by=project_id", ROOT).json["capacity"]["series"]
    assert [group["group"] for group in by_project] == [{"project_id": "physics"}, {"project_id": None}]
    cpus = get(http, "/v1/capacity?measure=VCPU&to=%2B3h&step=3h").json["capacity"]["series"][0]
    assert cpus["total"][0] == cpus["free"][0] + cpus["promised"][0]


def test_what_is_free_now_is_not_the_least_of_the_hour(world):
    served = Served(BUILTIN, newest=(1, 1))
    app = create_app(world.manager, identity=StandaloneIdentity(), policy=Policy(parts=BUILTIN), served=served)
    world.lease(start=HOUR / 2, hours=1)
    newest = {**MEMBER, "OpenStack-API-Version": "reservation 1.1"}
    (one,) = get(client_of(app), "/v1/capacity?from=now&to=%2B3h&step=1h", newest).json["capacity"]["series"]
    assert one["free"] == [2, 2, 3]
    assert one["at_start"] == {"total": 3, "free": 3, "promised": 0, "out_of_use": 0}


def test_properties_with_their_values(http, world):
    world.manager.resources.change(HOST, "1", ResourceChange({"gpu": "A100", "price": "9"}))
    world.manager.resources.set_property(HOST, "price", private=True)
    found = {each["name"]: each for each in get(http, "/v1/properties").json["properties"]}
    assert found["gpu"] == {
        "name": "gpu",
        "type": "text",
        "private": False,
        "values": [{"value": "A100", "count": 1}],
        "truncated": False,
    }
    assert found["vcpus"]["type"] == "number"
    assert found["vcpus"].keys() >= {"minimum", "maximum"}
    assert "price" not in found
    assert "hypervisor_hostname" not in found
    assert "price" in [each["name"] for each in get(http, "/v1/properties", ROOT).json["properties"]]
    assert get(http, "/v1/properties?resource_type=virtual:floatingip").json == {"properties": []}


SHUT = [
    ("/v1/calendar?nonsense=1", "unknown_query_parameter", "nonsense"),
    ("/v1/calendar?from=yesterday", "invalid_date", "from"),
    ("/v1/calendar?to=P3D", "invalid_date", "to"),
    ("/v1/calendar?from=2029-01-01", "invalid_date", "from"),
    ("/v1/calendar?from=2029-01-01T00:00Z", "out_of_bounds", "from"),
    ("/v1/calendar?to=2040-01-01T00:00Z", "out_of_bounds", "to"),
    ("/v1/calendar?to=2030-01-01T00:00Z", "invalid_window", "to"),
    ("/v1/calendar?resource_type=physical:moon", "invalid_query", "resource_type"),
    ("/v1/calendar?requirement=x", "invalid_query", "requirement"),
    ('/v1/calendar?requirement=["~"]', "malformed_requirement", "requirement"),
    ('/v1/calendar?requirement=["==","$colour","red"]', "unknown_property", "requirement"),
    ("/v1/calendar?sort_key=colour", "unknown_property", "sort_key"),
    ("/v1/calendar?sort_dir=up", "invalid_query", "sort_dir"),
    ("/v1/calendar?limit=0", "invalid_query", "limit"),
    ("/v1/calendar?marker=h-000000", "invalid_marker", "marker"),
    ("/v1/calendar?marker=c.eyJrIjoiWzFdIiwiaSI6IngifQ", "invalid_marker", "marker"),
    ("/v1/calendar?marker=c.!", "invalid_marker", "marker"),
    ("/v1/calendar?fields=colour", "invalid_query", "fields"),
    ("/v1/calendar?occupied_by=others", "invalid_query", "occupied_by"),
    ("/v1/calendar?resource=gte:5", "invalid_query", "resource"),
    ("/v1/capacity?step=1s", "invalid_query", "step"),
    ("/v1/capacity?step=nonsense", "invalid_date", "step"),
    ("/v1/capacity?step=60s&to=%2B300d", "out_of_bounds", "step"),
    ("/v1/capacity?group_by=project_id", "unknown_property", "group_by"),
    ("/v1/capacity?group_by=colour", "unknown_property", "group_by"),
    ("/v1/capacity?group_by=a&group_by=b&group_by=c", "invalid_query", "group_by"),
    ("/v1/capacity?measure=VGPU", "invalid_query", "measure"),
    ("/v1/properties?resource_type=physical:moon", "invalid_query", "resource_type"),
    ("/v1/properties?limit=1", "unknown_query_parameter", "limit"),
]


@pytest.mark.sample(1)
@pytest.mark.parametrize(("path", "code", "parameter"), SHUT, ids=[path for path, *_ in SHUT])
def test_bad_questions_are_refused_with_the_parameter(http, path, code, parameter):
    (error,) = get(http, quote(path, safe="/?=&:%+-.!"), status=400).json["errors"]
    assert (error["code"], error["parameter"]) == (f"reservation.{code}", parameter)
    assert parameter in error["detail"] or code == "unknown_query_parameter"


@pytest.mark.sample(1)
@pytest.mark.parametrize("path", ["/v1/calendar", "/v1/capacity", "/v1/properties"])
def test_the_routes_are_for_readers_from_1_1_on(http, path):
    assert get(http, path, token("pierre", "physics", "reader") | VERSION).status_code == 200
    (error,) = get(http, path, SERVICE, 403).json["errors"]
    assert error["code"] == "reservation.forbidden"
    assert http.get(path, headers={**VERSION, "X-Auth-Token": "nobody"}).status_code == 401
    # The document describes the versions that have the route.
    assert FlaskClient(http.application, Response).get(path, headers=token()).status_code == 404
    assert http.head(path, headers=MEMBER).status_code == 200
    assert http.post(path, headers=MEMBER).status_code == 405


@pytest.mark.slow
@pytest.mark.parametrize("leases", [1, 12])
def test_the_number_of_statements_does_not_depend_on_leases(http, world, sqlite, leases):
    for start in range(leases):
        world.lease(start=3 * start * HOUR)
    for headers in (MEMBER, ROOT):
        get(http, "/v1/calendar", headers)
        # What is kept of the calendar is read by the first one.
        get(http, "/v1/capacity", headers)
        for path, expected in (("/v1/calendar", 3), ("/v1/capacity", 1), ("/v1/properties", 1)):
            with counted(sqlite) as statements:
                get(http, path, headers)
            assert statements.count == expected
