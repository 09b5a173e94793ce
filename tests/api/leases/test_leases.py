# SPDX-License-Identifier: Apache-2.0
"""Leases from 1.1 on: shape, dates, pages, filters, past ones, tags, dry runs and privacy."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import cache
from urllib.parse import quote

import pytest

from blazar.api.http.openapi import Served
from blazar.api.parts import all_parts
from blazar.clouds.ports.compute import Flavor
from blazar.manager.common.settings import Settings
from blazar.model.base.errors import CloudUnavailable
from blazar.model.leases.limits import Bounds
from tests.api.conftest import app_of, client_of, token
from tests.manager.health.steps import look
from tests.statements import counted
from tests.tables import new_sqlite
from tests.world import World, a_host, addresses, flavored, instances

ADMIN = token("root", "demo", "admin")
HOST = {"resource_type": "physical:host", "min": 1}
LEASE = {"name": "x", "start_date": "2030-05-01T10:00Z", "end_date": "+2h", "reservations": [HOST]}


@cache
def served() -> Served:
    return Served(all_parts(), newest=(1, 1))


@pytest.fixture
def limited(tmp_path):
    settings = Settings(claim_ttl=timedelta(seconds=30), bounds=Bounds(leases=1))
    return asking(World(new_sqlite(tmp_path / "bounded.sqlite"), settings=settings))


@pytest.fixture
def http(world):
    return asking(world)


def asking(world):
    client = client_of(app_of(world.manager, served=served()))

    def ask(method, path, body=None, headers=None, **more):
        sent = {"OpenStack-API-Version": "reservation 1.1", **token(), **(headers or {}), **more}
        return client.open(path, method=method, json=body, headers=sent)

    return ask


def create(http, headers=None, **changes):
    made = http("POST", "/v1/leases", {**LEASE, **changes}, headers)
    assert made.status_code == 201, made.text
    return made.json["lease"]


def fault(answer):
    (found,) = answer.json["errors"]
    return answer.status_code, found["code"].partition(".")[2], found.get("pointer") or found.get("parameter")


@pytest.mark.slow
def test_a_lease_is_made_with_a_duration_in_a_zone_and_shown_in_full(http, world):
    made = http(
        "POST",
        "/v1/leases",
        {
            "name": "gan-training",
            "start_date": "2030-05-01T10:00",
            "end_date": "+P3D",
            "before_end_date": "-PT2H",
            "time_zone": "Europe/Paris",
            "reservations": [{**HOST, "resource_properties": [">=", "$vcpus", 1], "before_end": "snapshot"}],
        },
    )
    assert made.status_code == 201
    lease = made.json["lease"]
    assert made.headers["Location"] == f"http://localhost/v1/leases/{lease['id']}"
    assert made.headers["ETag"] == f'"{lease["revision"]}.1.m"'
    assert made.headers["Cache-Control"] == "no-store"
    assert (lease["start_date"], lease["end_date"], lease["before_end_date"], lease["status"]) == (
        "2030-05-01T08:00:00Z",
        "2030-05-04T08:00:00Z",
        "2030-05-04T06:00:00Z",
        "PENDING",
    )
    (reservation,) = lease["reservations"]
    assert (reservation["min"], reservation["max"], reservation["before_end"]) == (1, 1, "snapshot")
    assert reservation["resource_properties"] == [">=", "$vcpus", 1]
    assert reservation["hypervisor_properties"] == []
    assert reservation["use"]["scheduler_hints"] == {"reservation": reservation["id"]}
    (allocation,) = reservation["allocations"]
    assert (allocation["status"], allocation["used"], allocation["count"]) == ("promised", None, 1)
    assert allocation["resource"]["id"].startswith("h-")
    assert allocation["resource"]["name"] is None
    assert [e["event_type"] for e in lease["events"]] == ["start_lease", "before_end_lease", "end_lease"]
    shown = http("GET", f"/v1/leases/{lease['id']}")
    assert (shown.json["lease"], shown.headers["ETag"]) == (lease, made.headers["ETag"])
    assert "no-transform" in shown.headers["Cache-Control"]
    of_admin = http("GET", f"/v1/leases/{lease['id']}", headers=ADMIN)
    assert of_admin.headers["ETag"].endswith('.a"')
    (resource,) = (a["resource"] for a in of_admin.json["lease"]["reservations"][0]["allocations"])
    assert resource["name"].startswith("node-")
    assert resource["label"] == allocation["resource"]["id"]


def test_every_type_is_shown_with_what_it_uses(http, world):
    world.register_addresses(10, 11)
    world.simulated.operators.offer_flavor(Flavor("small", "m1.small", 1, 512, 1, public=True))
    lease = world.lease(instances(2), flavored(), addresses(1), start=timedelta(days=1))
    shown = http("GET", f"/v1/leases/{lease.id}").json["lease"]
    servers, of_flavor, ips = shown["reservations"]
    assert sum(a["count"] for a in servers["allocations"]) == 2
    assert servers["allocations"][0]["used"]["VCPU"] == 2 * servers["allocations"][0]["count"]
    assert servers["use"]["flavor_id"] == servers["id"]
    assert of_flavor["flavor_id"] == "small"
    assert "resource_properties" not in of_flavor
    (held,) = (a["resource"]["name"] for a in ips["allocations"])
    assert ips["use"]["addresses"] == [held]
    assert held in ("203.0.113.10", "203.0.113.11")
    assert {a["resource"]["type"] for r in shown["reservations"] for a in r["allocations"]} == {"host", "floatingip"}


def test_now_is_the_second_and_a_start_may_be_a_minute_past(http, world):
    world.clock.by(seconds=42)
    assert create(http, start_date="now", end_date="+1h")["start_date"] == "2030-04-01T12:00:42Z"
    assert create(http, start_date="2030-04-01T11:59:42Z")["start_date"] == "2030-04-01T11:59:42Z"
    late = http("POST", "/v1/leases", {**LEASE, "start_date": "2030-04-01T11:59:41Z"})
    assert fault(late) == (400, "date_in_past", "/start_date")
    assert late.json["errors"][0]["data"] == {"now": "2030-04-01T12:00:42Z"}
    without = {key: value for key, value in LEASE.items() if key != "start_date"}
    assert http("POST", "/v1/leases", without).json["lease"]["start_date"] == "2030-04-01T12:00:42Z"


SERVERS = {"resource_type": "virtual:instance", "amount": 1, "vcpus": 1, "memory_mb": 512, "disk_gb": 0}
FLAVORED = {"resource_type": "flavor:instance", "flavor_id": "nope", "amount": 1}


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("changes", "status", "code", "pointer"),
    [
        ({"end_date": "2030-05-01T10:00Z"}, 400, "invalid_window", "/end_date"),
        ({"end_date": "P3D"}, 400, "invalid_date", "/end_date"),
        ({"end_date": "-P3D"}, 400, "invalid_date", "/end_date"),
        ({"start_date": "+P3D"}, 400, "invalid_date", "/start_date"),
        ({"start_date": "8999-12-31T00:00Z", "end_date": "+P1M"}, 400, "invalid_window", "/end_date"),
        ({"before_end_date": "+P3D"}, 400, "invalid_window", "/before_end_date"),
        ({"before_end_date": "now"}, 400, "invalid_date", "/before_end_date"),
        ({"time_zone": "Mars"}, 400, "invalid_value", "/time_zone"),
        ({"events": []}, 400, "unknown_field", "/events"),
        ({"id": "x"}, 400, "read_only_field", "/id"),
        ({"revision": 1}, 400, "read_only_field", "/revision"),
        ({"reservations": [{**HOST, "allocations": []}]}, 400, "read_only_field", "/reservations/0/allocations"),
        (
            {"reservations": [{**SERVERS, "before_end": "migration"}]},
            400,
            "invalid_value",
            "/reservations/0/before_end",
        ),
        ({"reservations": []}, 400, "invalid_value", "/reservations"),
        ({"reservations": [{"resource_type": "physical:host"}]}, 400, "missing_field", "/reservations/0/min"),
        ({"reservations": [{**HOST, "mn": 1}]}, 400, "unknown_field", "/reservations/0/mn"),
        ({"reservations": [{**HOST, "min": "1"}]}, 400, "invalid_value", "/reservations/0/min"),
        ({"reservations": [HOST, {**HOST, "before_end": ""}]}, 400, "invalid_value", "/reservations/1/before_end"),
        ({"reservations": [{"resource_type": "x:y"}]}, 400, "invalid_value", "/reservations/0/resource_type"),
        (
            {"reservations": [{**HOST, "resource_properties": ["=="]}]},
            400,
            "malformed_requirement",
            "/reservations/0/resource_properties",
        ),
        (
            {"reservations": [{**HOST, "resource_properties": ["==", "$nothing", "1"]}]},
            400,
            "unknown_property",
            "/reservations/0/resource_properties",
        ),
        ({"reservations": [{**HOST, "min": 99}]}, 409, "not_enough_resources", None),
        ({"reservations": [FLAVORED]}, 400, "unknown_reference", "/reservations/0/flavor_id"),
    ],
)
def test_a_bad_lease_is_refused_with_a_code_and_the_place(http, changes, status, code, pointer):
    answer = http("POST", "/v1/leases", {**LEASE, **changes})
    found = fault(answer)
    assert found[:2] == (status, code), answer.text
    assert pointer is None or found[2] == pointer


NAMES = [["==", "$hypervisor_hostname", "node-1"], [">=", "$id", "1"], ["not", ["in", "$service_name", ["node-1"]]]]


@pytest.mark.slow
@pytest.mark.parametrize("requirement", NAMES)
def test_names_of_hosts_are_unknown_properties_to_members(http, world, requirement):
    servers = {"resource_type": "virtual:instance", "amount": 1, "vcpus": 1, "memory_mb": 1, "disk_gb": 1}
    for wanted, key in (
        (HOST, "resource_properties"),
        (HOST, "hypervisor_properties"),
        (servers, "resource_properties"),
    ):
        place = (400, "unknown_property", f"/reservations/1/{key}")
        reservations = [HOST, {**wanted, key: requirement}]
        question = {"reservations": reservations, "duration": "1h"}
        body = {**LEASE, "reservations": reservations}
        for query in ("", "?dry_run=true"):
            assert fault(http("POST", f"/v1/leases{query}", body)) == place
        assert fault(http("POST", "/v1/availability", question)) == place
        assert http("POST", "/v1/availability", question, ADMIN).status_code == 200
    for sent in (requirement, json.dumps(requirement)):
        changes = {"reservations": [{"id": create(http)["reservations"][0]["id"], "resource_properties": sent}]}
        (url,) = (f"/v1/leases/{each['id']}" for each in http("GET", "/v1/leases").json["leases"])
        for query in ("", "?dry_run=true"):
            assert fault(http("PUT", url + query, changes))[:2] == (400, "unknown_property")
        asked = http("POST", "/v1/availability", {"lease_id": url.rpartition("/")[2], **changes})
        assert fault(asked) == (400, "unknown_property", "/reservations/0/resource_properties")
        assert http("PUT", url, changes, ADMIN).status_code == 200
        # What it has may stay, but not be turned into another question.
        assert http("PUT", url, {**changes, "end_date": "+3h"}).status_code == 200
        http("DELETE", url)


def test_a_change_that_does_not_fit_what_is_in_use_names_no_host_to_members(http, world):
    lease = create(http, start_date="now")
    world.run()
    changes = {"reservations": [{"id": lease["reservations"][0]["id"], "resource_properties": [">=", "$vcpus", 999]}]}
    mine, of_admin = (
        http("PUT", f"/v1/leases/{lease['id']}", changes, headers).json["errors"][0]["detail"]
        for headers in ({}, ADMIN)
    )
    assert "node-" not in mine
    assert "1 of its hosts" in mine
    assert "node-" in of_admin


def test_a_refusal_by_a_limit_has_its_numbers(limited):
    create(limited)
    answer = limited("POST", "/v1/leases", LEASE)
    assert fault(answer)[:2] == (403, "limit_exceeded")
    assert answer.json["errors"][0]["data"] == {
        "limit": "leases_per_project",
        "measure": "leases",
        "value": 1,
        "used": 1,
        "requested": 1,
        "fits": {},
    }


def test_a_dry_run_books_nothing(http, world):
    answer = http("POST", "/v1/leases?dry_run=true", LEASE)
    lease = answer.json["lease"]
    assert (answer.status_code, lease["id"], lease["status"], lease["links"]) == (200, None, "PENDING", [])
    assert [a["status"] for a in lease["reservations"][0]["allocations"]] == ["promised"]
    assert {e["id"] for e in lease["events"]} == {None}
    assert http("GET", "/v1/leases?state=all").json["leases"] == []
    kept = create(http)
    dry = http("PUT", f"/v1/leases/{kept['id']}?dry_run=true", {"end_date": "+5h"})
    assert dry.json["lease"]["end_date"] == "2030-05-01T15:00:00Z"
    assert http("GET", f"/v1/leases/{kept['id']}").json["lease"] == kept
    real = http("PUT", f"/v1/leases/{kept['id']}", {"end_date": "+5h"})
    assert [(e["id"], e["time"]) for e in dry.json["lease"]["events"]] == [
        (e["id"], e["time"]) for e in real.json["lease"]["events"]
    ]
    refused = http("POST", "/v1/leases?dry_run=true", {**LEASE, "reservations": [{**HOST, "min": 9}]})
    assert refused.status_code == 409


def test_a_lease_is_changed_and_ended(http, world):
    lease = create(http, start_date="now")
    url = f"/v1/leases/{lease['id']}"
    (reservation,) = lease["reservations"]
    assert http("PUT", url, {"end_date": "+P1D"}).json["lease"]["end_date"] == "2030-04-02T12:00:00Z"
    warned = http("PUT", url, {"before_end_date": "+1h"}).json["lease"]
    assert warned["before_end_date"] == "2030-04-01T13:00:00Z"
    reset = http("PUT", url, {"before_end_date": None}).json["lease"]["before_end_date"]
    assert reset == "2030-04-02T11:00:00Z"
    more = http("PUT", url, {"reservations": [{"id": reservation["id"], "max": 2, "resource_properties": []}]})
    assert len(more.json["lease"]["reservations"][0]["allocations"]) == 2
    assert fault(http("PUT", url, {"reservations": [{"id": reservation["id"], "amount": 2}]})) == (
        400,
        "unknown_field",
        "/reservations/0/amount",
    )
    assert fault(http("PUT", url, {"reservations": [{"id": "nobody"}]})) == (
        400,
        "unknown_reference",
        "/reservations/0/id",
    )
    world.run()
    world.clock.by(minutes=5, seconds=7)
    assert http("PUT", url, {"end_date": "now"}).json["lease"]["end_date"] == "2030-04-01T12:05:07Z"
    world.run()
    ended = http("GET", url).json["lease"]
    assert ended["status"] == "TERMINATED"
    assert {a["status"] for r in ended["reservations"] for a in r["allocations"]} == {"released"}
    assert fault(http("PUT", url, {"end_date": "+P1D"}))[:2] == (409, "lease_ended")
    # A name is all that it may still get, whatever comes with it.
    assert http("PUT", url, {"name": "told", "extend_if_free": None}).json["lease"]["name"] == "told"
    extended = {"name": "y", "extend_if_free": {"until": "2030-04-09T00:00:00Z"}}
    assert fault(http("PUT", url, extended))[:2] == (409, "lease_ended")
    assert http("GET", url).json["lease"]["name"] == "told"


def test_a_stale_change_is_412(http, world):
    made = http("POST", "/v1/leases", LEASE)
    url, tag = f"/v1/leases/{made.json['lease']['id']}", made.headers["ETag"]
    changed = http("PUT", url, {"name": "y"}, headers={"If-Match": tag})
    assert changed.status_code == 200
    for stale in (tag, f"W/{changed.headers['ETag']}", '"other"', changed.headers["ETag"].replace("m", "a")):
        refused = http("PUT", url, {"name": "z"}, headers={"If-Match": stale})
        assert fault(refused)[:2] == (412, "precondition_failed")
        (item,) = refused.json["errors"]
        assert item["data"] == {"etag": changed.headers["ETag"], "revision": changed.json["lease"]["revision"]}
        assert http("DELETE", url, headers={"If-Match": stale}).status_code == 412
    # A refusal that needs no work comes first.
    assert http("PUT", url, {"nme": "z"}, headers={"If-Match": tag}).status_code == 400
    for good in (f'"x", {changed.headers["ETag"]}', "*"):
        assert http("PUT", url, {"end_date": "+3h"}, headers={"If-Match": good}).status_code == 200
        changed = http("GET", url)
    assert http("DELETE", url, headers={"If-Match": changed.headers["ETag"]}).status_code == 204


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ('W/"1.1.m"', "only a weak tag"),
        ('"1.1.a"', "no tag that"),
        ("1.1.m", "no tag that"),
        ('"9.1.m"', "has changed"),
    ],
)
def test_a_refused_tag_is_told_what_is_wrong_with_it(http, sent, says):
    refused = http("PUT", f"/v1/leases/{create(http)['id']}", {"name": "z"}, headers={"If-Match": sent})
    assert refused.status_code == 412
    assert says in refused.json["errors"][0]["detail"]


def test_names_are_measured_kept_and_found_in_their_normal_form(http):
    decomposed, name = "e\u0301" * 80, "\u00e9" * 80
    lease = create(http, name=decomposed)
    assert lease["name"] == name
    for query in (f"name={decomposed}", f"text={decomposed}"):
        (found,) = http("GET", f"/v1/leases?{quote(query, safe='=')}").json["leases"]
        assert found["id"] == lease["id"]
    url = f"/v1/leases/{lease['id']}"
    assert http("PUT", url, {"name": "e\u0301"}).json["lease"]["name"] == "\u00e9"
    # This one is longer in its normal form.
    assert fault(http("PUT", url, {"name": "\u0958" * 41})) == (400, "invalid_value", "/name")


def test_changes_within_a_second_are_found_by_that_second(http, world):
    world.clock.by(seconds=5, milliseconds=700)
    lease = create(http)
    at = lease["created_at"]

    def found(condition, second=at):
        return len(http("GET", f"/v1/leases?updated_at={condition}{second}").json["leases"])

    assert at == "2030-04-01T12:00:05Z"
    assert [found(each) for each in ("", "lte:", "gte:")] == [1, 1, 1]
    assert [found(each) for each in ("neq:", "lt:", "gt:")] == [0, 0, 0]
    after = "2030-04-01T12:00:06Z"
    assert [found(each, after) for each in ("", "gte:", "gt:", "lt:", "lte:", "neq:")] == [0, 0, 0, 1, 1, 1]
    assert found("gte:", "now") == found("", "now") == 1


def test_past_leases_are_shown_and_deleting_twice_is_fine(http, world):
    lease = create(http, name="gone")
    world.clock.by(seconds=1)
    kept = create(http, name="kept")
    url = f"/v1/leases/{lease['id']}"
    assert [http("DELETE", url).status_code for _ in range(2)] == [204, 204]
    past = http("GET", url).json["lease"]
    assert (past["status"], past["deleted_at"]) == ("TERMINATED", "2030-04-01T12:00:01Z")
    assert fault(http("PUT", url, {"name": "y"}))[:2] == (409, "lease_ended")

    def names(state):
        return [found["name"] for found in http("GET", f"/v1/leases?state={state}").json["leases"]]

    assert (names("all&status=TERMINATED"), names("all&status=DELETING")) == (["gone"], [])
    assert names("all&sort_key=status") == ["kept", "gone"]
    assert (names("current"), names("past"), names("all")) == (["kept"], ["gone"], ["gone", "kept"])
    assert kept["deleted_at"] is None


def test_a_creation_that_was_undone_never_was_a_lease(http, world):
    world.faults.fail_before("create_flavor", CloudUnavailable("no"))
    body = {"resource_type": "virtual:instance", "amount": 1, "vcpus": 1, "memory_mb": 512, "disk_gb": 1}
    refused = http("POST", "/v1/leases", {**LEASE, "reservations": [body]})
    assert refused.status_code == 503
    assert http("GET", "/v1/leases?state=all", headers=ADMIN).json["leases"] == []


@pytest.mark.slow
def test_lists_have_pages_filters_fields_and_a_count(http, world):
    for number in range(7):
        create(http, name=f"Lease {number % 3}", start_date=f"2030-05-{number + 1:02}T10:00Z")
        world.clock.by(seconds=1)
    create(http, token("frida", "art"), name="foreign", start_date="2030-06-01T10:00Z")
    url, seen = "/v1/leases?limit=2&with_count=true&fields=name&sort_key=start_date&sort_dir=desc", []
    while url:
        answer = http("GET", url)
        assert answer.json["count"] == 7
        seen += answer.json["leases"]
        assert http("GET", url, headers={"If-None-Match": answer.headers["ETag"]}).status_code == 304
        url = next((each["href"] for each in answer.json["links"] if each["rel"] == "next"), None)
    assert [each["name"] for each in seen] == [f"Lease {number % 3}" for number in reversed(range(7))]
    assert all(each.keys() == {"id", "name"} for each in seen)

    def count(query, headers=None):
        return http("GET", f"/v1/leases?{query}&with_count=true", headers=headers).json["count"]

    assert count("name=Lease 0") == 3
    assert count("name=in:Lease 0,Lease 1") == 5
    assert count("text=EASE") == 7
    assert count("text=%25%25") == 0
    assert count("from=2030-05-03T00:00Z&to=2030-05-05T00:00Z") == 2
    assert count("start_date=gte:2030-05-03T10:00:00Z&start_date=lt:2030-05-05T00:00Z") == 2
    assert count("updated_at=gte:now") == 0
    assert count("status=PENDING&degraded=false&resource_type=physical:host") == 7
    assert count("status=ACTIVE") == count("resource_type=virtual:floatingip") == 0
    assert count("project_id=physics") == 7
    assert count("project_id=art", ADMIN) == 1
    assert count("user_id=curie", ADMIN) == 7
    assert http("GET", "/v1/leases?project_id=art").status_code == 403
    assert fault(http("GET", "/v1/leases?colour=red")) == (400, "unknown_query_parameter", "colour")


def test_a_limit_is_cut_however_large_it_is(http, world):
    create(http)
    assert len(http("GET", f"/v1/leases?limit=1{'0' * 21}").json["leases"]) == 1
    assert fault(http("GET", f"/v1/leases?limit={'0' * 21}")) == (400, "invalid_query", "limit")


def test_a_body_of_too_much_text_is_out_of_bounds(http, world):
    long = ["in", "$vcpus", ["x" * 70_000]]
    answer = http("POST", "/v1/leases", {**LEASE, "reservations": [{**HOST, "resource_properties": long}]})
    assert fault(answer)[:2] == (400, "out_of_bounds")
    assert answer.json["errors"][0]["data"] == {"maximum": 32 * 1024}


def test_a_marker_of_another_project_is_unknown(http, world):
    mine = create(http)
    other = create(http, token("frida", "art"), start_date="2030-06-01T10:00Z")
    assert http("GET", f"/v1/leases?marker={mine['id']}").json["leases"] == []
    answers = [http("GET", f"/v1/leases?marker={marker}") for marker in (other["id"], "nobody")]
    assert [fault(answer) for answer in answers] == [(400, "invalid_marker", "marker")] * 2
    one, two = (answer.json["errors"][0]["detail"] for answer in answers)
    assert one == two


@pytest.mark.sample(1)
@pytest.mark.parametrize("key", ["created_at", "updated_at", "start_date", "end_date", "name", "status"])
@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_a_walk_in_any_order_sees_every_lease_once(http, world, key, direction):
    made = {create(http, name=f"l{n % 2}", start_date=f"2030-05-0{n % 3 + 1}T10:00Z")["id"] for n in range(6)}
    seen, url = [], f"/v1/leases?limit=2&fields=status&sort_key={key}&sort_dir={direction}"
    while url:
        page = http("GET", url).json
        seen += [each["id"] for each in page["leases"]]
        url = next((each["href"] for each in page["links"] if each["rel"] == "next"), None)
    assert sorted(seen) == sorted(made)


def test_a_page_costs_at_most_five_statements(http, world):
    create(http)
    with counted(world.engine) as first:
        http("GET", "/v1/leases?with_count=true")
    for number in range(5):
        create(http, start_date=f"2030-05-0{number + 2}T10:00Z")
    with counted(world.engine) as later:
        http("GET", "/v1/leases?with_count=true")
    assert later.count == first.count <= 5


def test_a_member_learns_nothing_of_leases_of_others(http, world):
    other = create(http, token("frida", "art"), start_date="now", name="secret", end_date="+1h")
    nobody = "00000000-0000-4000-8000-000000000000"

    def told(method, lease_id, body=None):
        answer = http(method, f"/v1/leases/{lease_id}", body)
        (item,) = answer.json["errors"]
        return answer.status_code, item["code"], item["detail"].replace(lease_id, "ID")

    for method, body in (("GET", None), ("PUT", {"name": "y"}), ("DELETE", None)):
        assert told(method, other["id"], body) == told(method, nobody, body)
        assert told(method, nobody, body)[:2] == (404, "reservation.lease_not_found")
    texts = [
        http("GET", "/v1/leases?state=all").text,
        http("POST", "/v1/leases", {**LEASE, "start_date": "now", "reservations": [{**HOST, "min": 3}]}).text,
    ]
    foreign = [other["id"], "secret", "frida", "art", other["reservations"][0]["id"], "node-"]
    assert not [word for word in foreign for text in texts if f'"{word}' in text or "node-" in text]


def test_reasons_are_codes_for_members_and_texts_for_operators(http, world):
    world.simulated.users.boot_server("old", project_id="chemistry", user_id="u", host="node-1")
    lease = world.lease(a_host(needs='["==", "$hypervisor_hostname", "node-1"]'))
    world.run()
    (start, *_), (condition,) = (
        http("GET", f"/v1/leases/{lease.id}").json["lease"][key] for key in ("events", "conditions")
    )
    assert (start["reason"]["code"], condition["type"]) == ("server_in_the_way", "start_delayed")
    assert "detail" not in start["reason"]
    assert "node-1" not in json.dumps([start, condition])
    (event, *_) = http("GET", f"/v1/leases/{lease.id}", headers=ADMIN).json["lease"]["events"]
    assert "node-1" in event["reason"]["detail"]


def test_failed_hosts_of_a_lease_are_counted_and_marked(http, world):
    lease = create(http, start_date="now", reservations=[{**HOST, "max": 3}])
    world.run()

    def seen():
        shown = http("GET", f"/v1/leases/{lease['id']}").json["lease"]
        statuses = sorted(each["status"] for each in shown["reservations"][0]["allocations"])
        return [each["count"] for each in shown["conditions"]], statuses, shown["revision"]

    seen_before = seen()
    assert seen_before[:2] == ([], ["in_use"] * 3)
    for failed in (1, 2):
        world.simulated.operators.host_down(f"node-{failed}")
        look(world)
        assert seen()[:2] == ([failed], ["failed"] * failed + ["in_use"] * (3 - failed))
        assert seen()[2] > seen_before[2], "what is shown changes with the revision only"
        seen_before = seen()
    world.simulated.operators.host_up("node-1")
    look(world, 3)
    assert seen()[:2] == ([1], ["failed", "in_use", "in_use"])
    world.simulated.operators.host_up("node-2")
    look(world, 3)
    assert seen()[:2] == ([], ["in_use"] * 3)


@pytest.mark.slow
def test_the_json_of_a_revision_never_changes(http, world):
    lease = create(http, start_date="now", end_date="+3h")
    seen = {}
    for _ in range(40):
        world.run()
        shown = http("GET", f"/v1/leases/{lease['id']}")
        assert seen.setdefault(shown.headers["ETag"], shown.text) == shown.text
        world.clock.by(minutes=7)
    assert len(seen) >= 3
