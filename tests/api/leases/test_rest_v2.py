# SPDX-License-Identifier: Apache-2.0
"""Version 2 of the API: other keys and no envelopes, the same leases and hosts."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.api.app import create_app
from blazar.api.http.identity import StandaloneIdentity
from blazar.api.http.openapi import Served
from blazar.api.leases.v1_0.formats import parse_instant
from blazar.api.parts import all_parts
from blazar.model.base.errors import InvalidInput, StoreUnavailable
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
    "reservations": [HOST_RESERVATION],
}


def create(http, **changes):
    answer = http.post("/v2/leases", json={**LEASE, **changes}, headers=token())
    assert answer.status_code == 201, answer.text
    return answer.json


def change(http, lease, **changes):
    answer = http.put(f"/v2/leases/{lease['id']}", json=changes, headers=token())
    assert answer.status_code == 200, answer.text
    return answer.json


def test_a_lease_has_no_envelope_and_the_keys_of_version_2(http):
    lease = create(http)
    assert list(lease) == [
        "id",
        "name",
        "start_date",
        "end_date",
        "before_end_date",
        "user_id",
        "project_id",
        "trust_id",
        "reservations",
        "events",
        "status",
        "created_at",
        "updated_at",
    ]
    assert (lease["user_id"], lease["project_id"], lease["status"]) == ("curie", "physics", "PENDING")
    assert lease["start_date"] == "2030-04-02T08:00:00.000000"
    assert lease["before_end_date"] == "2030-04-02T19:00:00.000000"
    assert lease["created_at"] == "2030-04-01 12:00:00"
    (reservation,) = lease["reservations"]
    assert (reservation["before_end_action"], reservation["lease_id"]) == ("default", lease["id"])
    assert "before_end" not in reservation


def test_a_lease_is_the_same_in_both_versions_except_for_known_differences(http):
    shown = create(http)
    other = http.get(f"/v1/leases/{shown['id']}", headers=token()).json["lease"]
    (mine,), (theirs,) = shown["reservations"], other["reservations"]
    assert {**other, "reservations": [], "degraded": None, "before_end_date": None} == {
        **shown,
        "reservations": [],
        "degraded": None,
        "before_end_date": None,
    }
    assert {**theirs, "before_end_action": theirs["before_end"]} == {**mine, "before_end": mine["before_end_action"]}


def test_lists_have_no_envelope_and_show_the_current_state(http, world):
    assert http.get("/v2/leases", headers=token()).json == []
    first = create(http)
    world.clock.by(seconds=1)
    second = create(http, reservations=[])
    for _ in range(2):
        assert http.get("/v2/leases", headers=token()).json == [first, second]
    assert [lease["id"] for lease in http.get("/v1/leases", headers=token()).json["leases"]] == [
        first["id"],
        second["id"],
    ]
    renamed = change(http, first, name="renamed")
    assert http.get("/v2/leases.json", headers=token()).json == [renamed, second]
    assert http.get(f"/v2/leases/{first['id']}", headers=token()).json == renamed


def test_the_before_end_action_and_date_are_set_shown_and_changed(http):
    lease = create(
        http,
        before_end_date="2030-04-02T19:30:00Z",
        reservations=[{**HOST_RESERVATION, "before_end_action": "snapshot"}],
    )
    (reservation,) = lease["reservations"]
    assert (lease["before_end_date"], reservation["before_end_action"]) == ("2030-04-02T19:30:00.000000", "snapshot")
    lease = change(
        http,
        lease,
        before_end_date="2030-04-02 19:45",
        reservations=[{"id": reservation["id"], "before_end_action": "migration"}],
    )
    (reservation,) = lease["reservations"]
    assert (lease["before_end_date"], reservation["before_end_action"]) == ("2030-04-02T19:45:00.000000", "migration")
    assert create(http, before_end_date=None)["before_end_date"] == "2030-04-02T19:00:00.000000"


def test_an_update_may_send_the_whole_reservation_as_shown(http):
    lease = create(http, reservations=[{**HOST_RESERVATION, "before_end_action": "snapshot"}])
    (shown,) = lease["reservations"]
    (changed,) = change(http, lease, reservations=[{**shown, "max": 3, "before_end_action": "none"}])["reservations"]
    assert (changed["max"], changed["before_end_action"], changed["id"]) == (3, "none", shown["id"])


def test_values_may_be_strings_as_in_maps_of_version_2(http):
    lease = create(
        http,
        reservations=[{**HOST_RESERVATION, "min": "1", "max": "2", "before_end_action": ""}],
        events=[{"event_type": "mine", "event_date": "2030-04-02T10:00"}],
    )
    assert (lease["reservations"][0]["min"], lease["reservations"][0]["before_end_action"]) == (1, "")
    assert {e["event_type"]: e["time"] for e in lease["events"]}["mine"] == "2030-04-02T10:00:00.000000"


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    "text",
    [
        "2030-04-02 08:00",
        "2030-4-2 8:00",
        "2030-04-02T08:00",
        "2030-04-02T08:00:00",
        "2030-04-02T08:00:00.000000",
        "2030-04-02T08:00Z",
        "2030-04-02T10:00:00+02:00",
        "2030-04-01T22:30-09:30",
    ],
)
def test_dates_are_parsed_to_the_minute_or_as_iso_8601(http, text):
    assert create(http, start_date=text)["start_date"] == "2030-04-02T08:00:00.000000"


@pytest.mark.parametrize("text", ["", "now", "2030-04-02", "2030-04-02T08:00:00.1", "0001-01-01T00:00+00:01"])
def test_invalid_dates_are_refused_with_the_name_of_their_field(text):
    with pytest.raises(InvalidInput, match=r"^end_date: .*Required format: %Y-%m-%d %H:%M, or ISO 8601"):
        parse_instant(text, "end_date")


def test_version_2_creates_starts_updates_and_deletes_a_lease(http, world):
    lease = create(http, start_date="2030-04-01 12:00", end_date="2030-04-01 14:00")
    world.run()
    shown = http.get(f"/v2/leases/{lease['id']}", headers=token()).json
    assert (shown["status"], shown["reservations"][0]["status"]) == ("ACTIVE", "active")
    prolonged = change(http, lease, end_date="2030-04-01T15:00:00Z")
    assert (prolonged["status"], prolonged["end_date"]) == ("ACTIVE", "2030-04-01T15:00:00.000000")
    assert prolonged["before_end_date"] == "2030-04-01T14:00:00.000000"
    world.run_to(NOON + timedelta(hours=3))
    assert http.get(f"/v2/leases/{lease['id']}", headers=token()).json["status"] == "TERMINATED"
    gone = http.delete(f"/v2/leases/{lease['id']}", headers=token())
    assert (gone.status_code, gone.data) == (204, b"")
    assert http.get(f"/v2/leases/{lease['id']}", headers=token()).status_code == 404


def test_an_empty_change_changes_nothing(http):
    lease = create(http)
    assert change(http, lease) == lease


def test_a_host_has_its_capabilities_and_some_attributes_in_a_map(http):
    http.delete("/v2/os-hosts/3")
    asked = {"hypervisor_hostname": "node-3", "extra_capas": {"gpu": True, "slots": 5}}
    answer = http.post("/v2/os-hosts", json=asked)
    assert answer.status_code == 201, answer.text
    host = answer.json
    assert list(host) == [
        "id",
        "hypervisor_hostname",
        "hypervisor_type",
        "vcpus",
        "hypervisor_version",
        "memory_mb",
        "local_gb",
        "cpu_info",
        "trust_id",
        "extra_capas",
        "created_at",
        "updated_at",
    ]
    assert (host["id"], host["hypervisor_hostname"], host["vcpus"], host["trust_id"]) == (3, "node-3", 16, None)
    facts = {"service_name": "node-3", "availability_zone": "az-2", "reservable": True}
    assert host["extra_capas"] == {"gpu": "1", "slots": "5", **facts}
    changed = http.put("/v2/os-hosts/3", json={"extra_capas": {"slots": None, "gpu": "no", "rack": "r7"}}).json
    assert changed["extra_capas"] == {"gpu": "no", "rack": "r7", **facts}
    assert changed == http.get("/v2/os-hosts/3").json
    assert [h["id"] for h in http.get("/v2/os-hosts").json] == [1, 2, 3]
    assert http.get("/v1/os-hosts/3").json["host"]["rack"] == "r7"
    assert http.delete("/v2/os-hosts/3").status_code == 204
    assert [h["id"] for h in http.get("/v2/os-hosts").json] == [1, 2]


@pytest.mark.parametrize(
    "sent",
    [{"name": "node-3"}, {"id": 3}, {"id": "3"}, {"name": "node-3", "hypervisor_hostname": "node-3"}],
    ids=str,
)
def test_a_host_is_registered_by_name_hostname_or_id(http, sent):
    http.delete("/v2/os-hosts/3")
    told = {"vcpus": 9999, "memory_mb": None, "cpu_info": "{}", "trust_id": "x"}  # is read from the cloud
    host = http.post("/v2/os-hosts", json={**sent, **told}).json
    assert (host["id"], host["hypervisor_hostname"], host["vcpus"], host["trust_id"]) == (3, "node-3", 16, None)


def test_version_2_has_no_microversions(http):
    for headers in ({}, {"OpenStack-API-Version": "reservation 99.9"}, {"OpenStack-API-Version": "reservation one"}):
        answer = http.get("/v2/leases", headers=headers)
        assert answer.status_code == 200
        assert "OpenStack-API-Version" not in answer.headers
        assert answer.headers["Vary"] == "X-Auth-Token, Accept-Encoding"


def test_an_unknown_url_has_the_error_shape_of_version_2(http):
    answer = http.get("/v2/nothing")
    assert (answer.status_code, answer.json["code"], answer.json["title"]) == (404, 404, "Not Found")
    refused = http.get("/v2")
    assert (refused.status_code, refused.json["title"]) == (405, "Method Not Allowed")
    assert refused.headers["Allow"]


def test_an_internal_error_is_a_500_without_details(world, caplog):
    http = client_of(app_of(FailingManager(world.manager, {"leases.one": RuntimeError("secret detail")})))
    answer = http.get("/v2/leases/x")
    assert answer.status_code == 500
    assert answer.json == {"error_code": 500, "error_message": "Internal Server Error", "error_name": 500}
    assert "secret detail" in caplog.text


def test_an_unreachable_database_is_503(world):
    gone = StoreUnavailable("the database does not answer")
    http = client_of(app_of(FailingManager(world.manager, {"resources.all": gone})))
    answer = http.get("/v2/os-hosts")
    assert (answer.status_code, answer.json["error_name"]) == (503, 503)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("controllers", "statuses"),
    [(["leases"], (200, 404, 405)), (["oshosts"], (404, 200, 405)), ([], (404, 404, 404))],
    ids=["leases", "oshosts", "none"],
)
def test_only_the_configured_controllers_are_served(world, controllers, statuses):
    http = client_of(
        create_app(world.manager, identity=StandaloneIdentity(), served=Served(all_parts(), v2_controllers=controllers))
    )
    paths = ("/v2/leases", "/v2/os-hosts", "/v2")
    assert tuple(http.get(path).status_code for path in paths) == statuses
    documented = http.get("/openapi.json").json["paths"]
    assert [path in documented for path in paths[:2]] == [status == 200 for status in statuses[:2]]
    versions = [version["id"] for version in http.get("/").json["versions"]]
    assert versions == (["v1.0", "v2.0"] if controllers else ["v1.0"])
    assert http.get("/v1/leases").status_code == http.get("/v1/os-hosts").status_code == 200


def test_version_2_may_be_served_alone(world):
    http = client_of(
        create_app(world.manager, identity=StandaloneIdentity(), served=Served(all_parts(), enable_v1=False))
    )
    (version,) = http.get("/").json["versions"]
    assert (version["id"], version["links"][0]["href"]) == ("v2.0", "http://localhost/v2")
    for path in ("/v1", "/v1/", "/v1/leases", "/v1/os-hosts", "/v1/os-hosts/allocations"):
        assert http.get(path).status_code == 404
    assert not [path for path in http.get("/openapi.json").json["paths"] if path.startswith("/v1")]
    assert http.get("/v2/leases").status_code == http.get("/v2/os-hosts").status_code == 200
