# SPDX-License-Identifier: Apache-2.0
"""API 1.0 as its clients know it."""

from __future__ import annotations

import json
import logging
import re
from datetime import timedelta

import pytest
from werkzeug.test import Client

from blazar.api.http.access import AccessLog
from blazar.api.http.identity import StandaloneIdentity
from blazar.clouds.ports.compute import Flavor
from blazar.model.base.errors import StoreUnavailable
from blazar.model.resources.resource import HOST
from tests.api.conftest import app_of, client_of, token
from tests.observed import FailingManager
from tests.world import NOON

HOST_RESERVATION = {
    "resource_type": "physical:host",
    "min": 1,
    "max": 2,
    "hypervisor_properties": "",
    "resource_properties": "",
}
LEASE = {
    "name": "nightly",
    "start_date": "2030-04-02 08:00",
    "end_date": "2030-04-02 20:00",
    "before_end_date": None,
    "events": [],
    "reservations": [HOST_RESERVATION],
}


def create(http, **changes):
    answer = http.post("/v1/leases", json={**LEASE, **changes}, headers=token())
    assert answer.status_code == 201, answer.text
    return answer.json["lease"]


INSTANCE_RESERVATION = {
    "resource_type": "virtual:instance",
    "amount": 3,
    "vcpus": "2",
    "memory_mb": 4096,
    "disk_gb": 20,
    "affinity": "False",
    "resource_properties": "",
}


def test_a_reservation_of_instances_has_all_keys_that_clients_know(http):
    reservation = create(http, reservations=[INSTANCE_RESERVATION])["reservations"][0]
    assert {key: reservation[key] for key in INSTANCE_RESERVATION} == {
        **INSTANCE_RESERVATION,
        "vcpus": 2,
        "affinity": False,
    }
    assert reservation["flavor_id"] == reservation["id"]
    assert isinstance(reservation["aggregate_id"], int)
    assert isinstance(reservation["server_group_id"], str)
    assert reservation["before_end"] == "default"
    anywhere = create(http, reservations=[{**INSTANCE_RESERVATION, "affinity": "None"}])["reservations"][0]
    assert (anywhere["affinity"], anywhere["server_group_id"]) == (None, None)


@pytest.fixture
def offered(world):
    """Flavors to choose from: one for everybody, one for the art project."""
    specs = {"hw:cpu_policy": "shared"}
    for flavor in (
        Flavor("3", "m1.medium", 2, 4096, 20, 5, 512, specs, public=True),
        Flavor("theirs", "x1.theirs", 1, 512, 1),
    ):
        world.simulated.operators.offer_flavor(flavor, projects=() if flavor.public else ["art"])


# As the client of the command line makes it, and as Tempest adds to it.
FLAVOR_RESERVATION = {"resource_type": "flavor:instance", "flavor_id": 3, "amount": 2, "affinity": "None"}


def test_a_reservation_of_a_flavor_has_all_keys_that_clients_know(http, offered):
    for more in ({}, {"resource_properties": ""}, {"hypervisor_properties": "", "vcpus": 99}):
        reservation = create(http, reservations=[{**FLAVOR_RESERVATION, **more}])["reservations"][0]
        shown = {key: reservation[key] for key in ("amount", "vcpus", "memory_mb", "disk_gb", "affinity")}
        assert shown == {"amount": 2, "vcpus": 2, "memory_mb": 4096, "disk_gb": 20, "affinity": None}
        assert reservation["flavor_id"] == reservation["id"]
        assert reservation["server_group_id"] is None
        assert json.loads(reservation["resource_properties"]) == {
            "id": "3",
            "name": "m1.medium",
            "vcpus": 2,
            "ram": 4096,
            "disk": 20,
            "OS-FLV-EXT-DATA:ephemeral": 5,
            "swap": 512,
            "rxtx_factor": 1.0,
            "os-flavor-access:is_public": True,
            "OS-FLV-DISABLED:disabled": False,
            "extra_specs": {"hw:cpu_policy": "shared"},
        }


def test_a_shown_flavor_reservation_may_be_sent_back(http, offered):
    lease = create(http, reservations=[FLAVOR_RESERVATION])
    shown = lease["reservations"][0]
    ours = ("created_at", "updated_at", "lease_id", "resource_id", "status", "missing_resources", "resources_changed")
    change = {"reservations": [{key: value for key, value in shown.items() if key not in ours} | {"amount": 3}]}
    changed = http.put(f"/v1/leases/{lease['id']}", json=change, headers=token())
    assert changed.status_code == 200, changed.text
    assert changed.json["lease"]["reservations"][0] == {
        **shown,
        "amount": 3,
        "updated_at": changed.json["lease"]["reservations"][0]["updated_at"],
    }


def test_a_flavor_must_be_accessible_to_the_project_of_the_lease(http, offered):
    theirs = {"reservations": [{**FLAVOR_RESERVATION, "flavor_id": "theirs"}]}
    body = {**LEASE, **theirs}
    assert http.post("/v1/leases", json=body, headers=token("curie", "physics", "admin")).status_code == 404
    assert http.post("/v1/leases", json=body, headers=token("frida", "art")).status_code == 201
    lease = create(http, reservations=[FLAVOR_RESERVATION])
    change = {"reservations": [{"id": lease["reservations"][0]["id"], "flavor_id": "theirs"}]}
    answer = http.put(f"/v1/leases/{lease['id']}", json=change, headers=token("root", "art", "admin"))
    assert answer.status_code == 404, answer.text


def test_a_reservation_of_instances_can_be_changed_as_clients_change_it(http):
    lease = create(http, reservations=[INSTANCE_RESERVATION])
    change = {"reservations": [{"id": lease["reservations"][0]["id"], "amount": 2, "affinity": "True"}]}
    changed = http.put(f"/v1/leases/{lease['id']}", json=change, headers=token()).json["lease"]
    assert (changed["status"], changed["reservations"][0]["amount"]) == ("PENDING", 2)
    assert changed["reservations"][0]["affinity"] is True
    group = changed["reservations"][0]["server_group_id"]
    assert group not in (None, lease["reservations"][0]["server_group_id"])
    assert http.get(f"/v1/leases/{lease['id']}", headers=token()).json["lease"] == changed
    assert http.get("/v1/leases", headers=token()).json["leases"] == [changed]


@pytest.mark.parametrize("name", ["before_end", "before_end_action"])
def test_the_before_end_action_has_two_names_and_can_be_changed(http, name):
    lease = create(http, reservations=[{**HOST_RESERVATION, name: "snapshot"}])
    assert lease["reservations"][0]["before_end"] == "snapshot"
    change = {"reservations": [{"id": lease["reservations"][0]["id"], name: "migration"}]}
    changed = http.put(f"/v1/leases/{lease['id']}", json=change, headers=token())
    assert changed.json["lease"]["reservations"][0]["before_end"] == "migration"


def test_a_lease_has_all_keys_in_the_formats_that_clients_parse(http):
    lease = create(http)
    assert list(lease) == [
        "id",
        "name",
        "user_id",
        "project_id",
        "start_date",
        "end_date",
        "trust_id",
        "status",
        "degraded",
        "created_at",
        "updated_at",
        "reservations",
        "events",
    ]
    assert (lease["user_id"], lease["project_id"], lease["status"]) == ("curie", "physics", "PENDING")
    assert lease["start_date"] == "2030-04-02T08:00:00.000000"
    assert lease["created_at"] == "2030-04-01 12:00:00"
    assert {e["event_type"]: e["time"] for e in lease["events"]} == {
        "start_lease": "2030-04-02T08:00:00.000000",
        "end_lease": "2030-04-02T20:00:00.000000",
        "before_end_lease": "2030-04-02T19:00:00.000000",
    }
    (reservation,) = lease["reservations"]
    assert reservation["lease_id"] == lease["id"]
    assert (reservation["min"], reservation["max"], reservation["before_end"]) == (1, 2, "default")
    assert (reservation["status"], reservation["missing_resources"], reservation["resources_changed"]) == (
        "pending",
        False,
        False,
    )


def test_superfluous_keys_that_clients_send_are_accepted(http):
    reservation = {
        **HOST_RESERVATION,
        "min": "1",
        "max": "2",
        "amount": 1,
        "affinity": "None",
        "required_floatingips": [],
        "vcpus": "",
    }
    lease = create(
        http, reservations=[reservation], events=[{"event_type": "notification", "event_date": "2030-04-02 10:00"}]
    )
    assert (lease["reservations"][0]["min"], lease["reservations"][0]["max"]) == (1, 2)
    assert "vcpus" not in lease["reservations"][0]
    assert "notification" in {event["event_type"] for event in lease["events"]}


def test_a_requirement_may_be_a_list(http):
    lease = create(http, reservations=[{**HOST_RESERVATION, "resource_properties": [">=", "$vcpus", 2]}])
    assert lease["reservations"][0]["resource_properties"] == '[">=", "$vcpus", 2]'


def test_dates_are_parsed_as_strptime_parses_them(http):
    lease = create(http, start_date="2030-4-2 8:05")
    assert lease["start_date"] == "2030-04-02T08:05:00.000000"


def test_now_is_the_current_minute(http, world):
    world.clock.by(seconds=42)
    assert create(http, start_date="now")["start_date"] == "2030-04-01T12:00:00.000000"


def test_a_lease_is_created_started_updated_and_deleted(http, world):
    lease = create(http, start_date="now", end_date="2030-04-01 14:00")
    world.run()
    shown = http.get(f"/v1/leases/{lease['id']}", headers=token()).json["lease"]
    assert shown["status"] == "ACTIVE"
    assert shown["reservations"][0]["status"] == "active"
    changed = http.put(f"/v1/leases/{lease['id']}", json={"end_date": "2030-04-01 15:00"}, headers=token())
    assert changed.status_code == 200
    assert changed.json["lease"]["status"] == "ACTIVE"
    world.run_to(NOON + timedelta(hours=3))
    shown = http.get(f"/v1/leases/{lease['id']}.json", headers=token()).json["lease"]
    assert shown["status"] == "TERMINATED"
    assert shown["reservations"][0]["status"] == "deleted"
    assert {e["event_type"]: e["status"] for e in shown["events"]}["end_lease"] == "DONE"
    assert http.delete(f"/v1/leases/{lease['id']}", headers=token()).status_code == 204
    assert http.get(f"/v1/leases/{lease['id']}", headers=token()).status_code == 404


def test_an_empty_change_changes_nothing(http):
    lease = create(http)
    for empty in ({"json": {}}, {}):
        answer = http.put(f"/v1/leases/{lease['id']}", headers=token(), **empty)
        assert (answer.status_code, answer.json["lease"]) == (200, lease)


def test_a_project_sees_its_own_leases_and_operators_see_all(http):
    mine = create(http)["id"]
    theirs = http.post("/v1/leases", json=LEASE, headers=token("frida", "art")).json["lease"]["id"]

    def seen(headers):
        return {lease["id"] for lease in http.get("/v1/leases?project_id=art&all=1", headers=headers).json["leases"]}

    assert seen(token()) == {mine}
    assert seen(token("frida", "art", "reader")) == {theirs}
    assert seen({}) == {mine, theirs}


def test_a_list_shows_the_current_state_of_every_lease(http, world):
    kept = [create(http, start_date="now", end_date="2030-04-01 14:00")]
    world.clock.by(seconds=1)
    kept.append(create(http))

    def listed():
        return http.get("/v1/leases", headers=token()).json["leases"]

    def shown():
        return [http.get(f"/v1/leases/{lease['id']}", headers=token()).json["lease"] for lease in kept]

    assert listed() == kept == listed()
    world.run()
    assert [lease["status"] for lease in listed()] == ["ACTIVE", "PENDING"]
    http.put(f"/v1/leases/{kept[1]['id']}", json={"name": "renamed"}, headers=token())
    assert listed() == shown()
    world.clock.by(seconds=1)
    kept.append(create(http))
    http.delete(f"/v1/leases/{kept.pop(0)['id']}", headers=token())
    assert listed() == shown()
    assert http.get("/v1/leases", headers=token("frida", "art")).json["leases"] == []


def test_a_host_shows_its_attributes_and_its_capabilities_as_strings(http, world):
    world.manager.resources.unregister(HOST, "3")
    made = http.post("/v1/os-hosts", json={"name": "node-3", "gpu": True, "slots": 5, "vcpus": 9999, "status": "x"})
    assert made.status_code == 400
    host = http.post("/v1/os-hosts", json={"name": "node-3", "gpu": True, "slots": 5, "vcpus": 9999}).json["host"]
    assert (host["id"], host["gpu"], host["slots"], host["vcpus"], host["reservable"]) == ("3", "1", "5", 16, True)
    assert (host["status"], host["trust_id"], host["availability_zone"]) == (None, None, "az-2")
    changed = http.put("/v1/os-hosts/3", json={"slots": None, "gpu": "no"}).json["host"]
    assert "slots" not in changed
    assert changed["gpu"] == "no"
    assert [h["id"] for h in http.get("/v1/os-hosts").json["hosts"]] == ["1", "2", "3"]
    assert http.delete("/v1/os-hosts/3").status_code == 204


def test_allocations_are_listed_by_host(http):
    lease = create(http)
    listed = http.get("/v1/os-hosts/allocations").json["allocations"]
    assert [a["resource_id"] for a in listed] == ["1", "2", "3"]
    busy = [a for a in listed if a["reservations"]]
    assert len(busy) == 2
    assert busy[0]["reservations"] == [
        {
            "id": lease["reservations"][0]["id"],
            "lease_id": lease["id"],
            "start_date": "2030-04-02T08:00:00.000000",
            "end_date": "2030-04-02T20:00:00.000000",
        }
    ]
    one = http.get(f"/v1/os-hosts/{busy[0]['resource_id']}/allocation").json["allocation"]
    assert one == busy[0]
    none = http.get("/v1/os-hosts/allocations?lease_id=%00'").json["allocations"]
    assert len(none) == 3
    assert not any(a["reservations"] for a in none)


def test_properties_are_listed_and_hidden(http):
    http.put("/v1/os-hosts/1", json={"gpu": "A100", "rack": "r1"})
    assert http.get("/v1/os-hosts/properties").json["resource_properties"] == [
        {"property": "gpu"},
        {"property": "rack"},
    ]
    hidden = http.patch("/v1/os-hosts/properties/rack", json={"private": True}).json["resource_property"]
    assert (hidden["property_name"], hidden["private"], hidden["resource_type"]) == ("rack", True, "physical:host")
    detailed = http.get("/v1/os-hosts/properties?detail=True").json["resource_properties"]
    assert detailed == [{"property": "gpu", "private": False, "values": ["A100"]}]
    assert len(http.get("/v1/os-hosts/properties?all=True").json["resource_properties"]) == 2


def test_a_private_capability_is_known_to_operators_only(http):
    http.put("/v1/os-hosts/1", json={"rack": "r1"})
    http.patch("/v1/os-hosts/properties/rack", json={"private": True})
    asking = {**LEASE, "reservations": [{**HOST_RESERVATION, "resource_properties": '["==", "$rack", "r1"]'}]}
    refused = http.post("/v1/leases", json=asking, headers=token())
    assert (refused.status_code, "$rack, which no host has" in refused.json["error_message"]) == (400, True)
    lease = http.post("/v1/leases", json=asking)
    assert lease.status_code == 201
    url, reservation = f"/v1/leases/{create(http)['id']}", asking["reservations"][0]
    change = {"reservations": [{**reservation, "id": http.get(url).json["lease"]["reservations"][0]["id"], "max": 1}]}
    assert http.put(url, json=change, headers=token()).status_code == 400
    assert http.put(url, json=change).status_code == 409


@pytest.mark.parametrize("path", ["/", "/versions"])
def test_versions_are_listed_without_a_token_below_any_mount(http, path):
    answer = http.get(path, base_url="http://controller:1234", environ_overrides={"SCRIPT_NAME": "/reservation"})
    assert answer.status_code == 300
    assert answer.json["versions"] == [
        {
            "id": "v1.0",
            "status": "CURRENT",
            "min_version": "1.0",
            "max_version": "1.1",
            "links": [{"rel": "self", "href": "http://controller:1234/reservation/v1"}],
        },
        {
            "id": "v2.0",
            "status": "DEPRECATED",
            "links": [{"rel": "self", "href": "http://controller:1234/reservation/v2"}],
        },
    ]


def test_every_answer_has_a_request_id_and_a_versioned_one_its_version(http):
    plain = http.get("/v1/leases", headers={"X-OpenStack-Request-ID": "req-11111111-2222-3333-4444-555555555555"})
    assert re.fullmatch(r"req-[0-9a-f-]{36}", plain.headers["x-openstack-request-id"])
    assert "11111111-2222" not in plain.headers["x-openstack-request-id"]
    assert plain.headers["OpenStack-API-Version"] == "reservation 1.0"
    assert plain.headers["Vary"] == "X-Auth-Token, OpenStack-API-Version, Accept-Encoding"
    for header in ("reservation latest", "reservation 1.0", "compute 2.90", "compute 2.90, reservation 1.0"):
        assert http.get("/v1/leases", headers={"OpenStack-API-Version": header}).status_code == 200
    error = http.get("/v1/leases/nobody")
    assert error.headers["OpenStack-API-Version"] == "reservation 1.0"
    for refused in (
        http.get("/v1/nothing"),
        http.get("/v1/leases", headers={"OpenStack-API-Version": "reservation 7.0"}),
    ):
        assert "OpenStack-API-Version" not in refused.headers
        assert refused.headers["x-openstack-request-id"]


@pytest.mark.parametrize("accept", [None, "text/html", "application/json", "*/*;q=0.1", "nonsense"])
def test_any_accept_header_is_accepted(http, accept):
    assert http.get("/v1/leases", headers={"Accept": accept} if accept else {}).status_code == 200


@pytest.mark.parametrize("level", [logging.DEBUG, logging.WARNING, logging.CRITICAL, logging.CRITICAL + 1])
def test_requests_work_at_every_log_level(http, level):
    levels = {name: logging.getLogger(name).level for name in ("", "blazar", "blazar.api", "blazar.api.app")}
    try:
        for name in levels:
            logging.getLogger(name).setLevel(level)
        lease = create(http)
        assert http.get("/v1/leases", headers=token()).json["leases"] == [lease]
        assert http.get("/v1/nothing", headers=token()).status_code == 404
    finally:
        for name, before in levels.items():
            logging.getLogger(name).setLevel(before)


def test_the_version_document_is_served_below_any_mount(http):
    for path in ("/v1", "/v1/"):
        answer = http.get(path, environ_overrides={"SCRIPT_NAME": "/reservation"}, base_url="http://cloud:1234")
        assert answer.status_code == 200
        assert answer.json["version"]["links"] == [{"rel": "self", "href": "http://cloud:1234/reservation/v1"}]


def test_the_healthcheck_reports_the_state_of_the_service(http, world):
    assert http.get("/healthcheck").json == {"status": "ok"}
    gone = StoreUnavailable("the database does not answer")
    answer = client_of(app_of(FailingManager(world.manager, {"resources.properties": gone}))).get("/healthcheck")
    assert (answer.status_code, answer.json["status"]) == (503, "failing")


def test_an_internal_error_is_a_500_without_details(world, caplog):
    http = client_of(app_of(FailingManager(world.manager, {"leases.revisions": RuntimeError("secret detail")})))
    answer = http.get("/v1/leases")
    assert answer.status_code == 500
    assert answer.json == {
        "error_code": 500,
        "error_message": "Internal Server Error",
        "error_name": "INTERNAL_SERVER_ERROR",
    }
    assert "secret detail" in caplog.text
    assert answer.headers["x-openstack-request-id"] in caplog.text


def test_the_log_of_requests_has_no_tokens_and_no_injected_lines(app, caplog):
    caplog.set_level("DEBUG", logger="blazar")
    http = Client(AccessLog(app))
    http.get("/v1/leases/x%0aERROR%20forged", headers=token("mallory", "art")).close()
    (record,) = [r for r in caplog.records if r.name == "blazar.access"]
    assert "forged" in record.getMessage()
    assert not any("\n" in each.getMessage() for each in caplog.records)
    assert "mallory" not in caplog.text


def test_attributes_of_the_cloud_in_a_registration_are_ignored(http):
    http.delete("/v1/os-hosts/3")
    sent = {"id": 3, "name": "node-3", "vcpus": None, "cpu_info": {"arch": "z80"}, "trust_id": [], "memory_mb": -1}
    host = http.post("/v1/os-hosts", json=sent).json["host"]
    assert (host["id"], host["vcpus"], host["memory_mb"], host["trust_id"]) == ("3", 16, 65536, None)


def test_an_update_may_send_the_whole_reservation_as_shown(http):
    lease = create(http)
    (shown,) = lease["reservations"]
    sent = {**shown, "max": 3, "status": "error", "missing_resources": True, "lease_id": "x", "created_at": None}
    answer = http.put(f"/v1/leases/{lease['id']}", json={"reservations": [sent]}, headers=token())
    (changed,) = answer.json["lease"]["reservations"]
    assert (changed["max"], changed["status"], changed["missing_resources"]) == (3, "pending", False)
    assert (changed["lease_id"], changed["created_at"]) == (lease["id"], shown["created_at"])


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "https://evil.example"}, {"Host": "rebound.example:1234"}, {"Origin": "null"}, {"Host": "192.0.2.7"}],
    ids=str,
)
def test_a_page_of_another_origin_is_unauthenticated(http, headers):
    assert http.post("/v1/leases", json=LEASE, headers=headers).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "127.0.0.1:1234"},
        {"Host": "[::1]:1234"},
        {"Host": "localhost:1234", "Origin": "http://localhost:1234", "Sec-Fetch-Site": "same-origin"},
        {"Host": "127.0.0.1:1234", "Sec-Fetch-Site": "none"},
    ],
    ids=str,
)
def test_local_programs_and_own_pages_are_trusted(http, headers):
    assert http.get("/v1/leases", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://localhost:8080"},
        {"Origin": "http://127.0.0.1:1234"},
        {"Origin": "https://localhost:1234"},
        {"Origin": "http://localhost"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://localhost:1234", "Sec-Fetch-Site": "cross-site"},
    ],
    ids=str,
)
def test_a_page_of_another_local_port_is_unauthenticated(http, headers):
    answer = http.post("/v1/leases", json=LEASE, headers={"Host": "localhost:1234", **headers})
    assert answer.status_code == 401


@pytest.mark.parametrize(
    ("roles", "implied"),
    [
        (("admin",), {"admin", "member", "reader"}),
        (("member",), {"member", "reader"}),
        (("Member",), {"Member", "reader"}),
        (("reader",), {"reader"}),
        (("guest", "member"), {"guest", "member", "reader"}),
    ],
    ids=lambda value: "" if isinstance(value, set) else "+".join(value),
)
def test_a_role_implies_the_same_roles_as_in_keystone(roles, implied):
    assert set(StandaloneIdentity().authenticate(token("alice", "physics", *roles)).roles) == implied


def test_a_member_may_also_read(http):
    lease = create(http)
    headers = token("alice", "physics", "member")
    assert http.get(f"/v1/leases/{lease['id']}", headers=headers).status_code == 200
    assert len(http.get("/v1/leases", headers=headers).json["leases"]) == 1


def test_an_operator_disables_a_host_and_restricts_it_to_projects(http):
    plain = http.get("/v1/os-hosts/1").json["host"]
    assert not plain.keys() & {"disabled", "failure", "failed_since", "authorized_projects"}
    shown = http.put("/v1/os-hosts/1", json={"disabled": "True", "rack": "r1"}).json["host"]
    assert (shown["disabled"], shown["reservable"], shown["rack"]) == (True, False, "r1")
    shown = http.put("/v1/os-hosts/1", json={"disabled": False, "authorized_projects": "art, physics"}).json["host"]
    assert (shown["authorized_projects"], shown["reservable"], "disabled" in shown) == (["art", "physics"], True, False)
    shown = http.put("/v1/os-hosts/1", json={"authorized_projects": ["art"]}).json["host"]
    assert shown["authorized_projects"] == ["art"]
    assert (
        http.put("/v1/os-hosts/1", json={"authorized_projects": None, "rack": None}).json["host"].keys() == plain.keys()
    )
    assert http.get("/v1/os-hosts/properties").json["resource_properties"] == []
    http.delete("/v1/os-hosts/3")
    made = http.post("/v1/os-hosts", json={"name": "node-3", "disabled": True, "authorized_projects": ["art"]})
    assert (made.json["host"]["reservable"], made.json["host"]["authorized_projects"]) == (False, ["art"])


def test_a_failed_host_shows_its_failure(http, world):
    world.simulated.operators.host_down("node-1")
    world.manager.monitor.hint("node-1")
    world.manager.monitor.run_once()
    shown = http.get("/v1/os-hosts/1").json["host"]
    assert (shown["reservable"], shown["failure"]) == (False, "its nova-compute is down")
    assert shown["failed_since"] == "2030-04-01 12:00:00"


def test_an_operator_moves_a_reservation_to_another_host_and_refreshes_a_host(http, world):
    lease = world.lease(start=timedelta(hours=1))
    listed = http.get("/v1/os-hosts/allocations").json["allocations"]
    host = next(item["resource_id"] for item in listed if item["reservations"])
    body = {"reservation_id": lease.reservations[0].id}
    moved = http.put(f"/v1/os-hosts/{host}/allocation", json=body)
    assert moved.json == {"allocation": {"resource_id": host, "reservations": []}}
    assert http.put(f"/v1/os-hosts/{host}/allocation", json=body).status_code == 404
    with world.simulated.change_state() as state:
        state.hosts["1"].vcpus = 5
    assert http.post("/v1/os-hosts/1/refresh").json["host"]["vcpus"] == 5
    world.simulated.operators.host_vanishes("node-2")
    assert http.post("/v1/os-hosts/2/refresh").status_code == 404
