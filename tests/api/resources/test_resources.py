# SPDX-License-Identifier: Apache-2.0
"""Resources of every kind, from 1.1 on: what kinds there are, what operators do, and what members see of it."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest

from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST, KindShape, ResourceKind
from blazar.resources.contract.checked import CheckedKind
from blazar.resources.contract.kind import Kind, describe
from tests.api.conftest import app_of, client_of, token
from tests.statements import counted
from tests.world import World, a_host, addresses, devices, servers, things, units

VERSION = {"OpenStack-API-Version": "reservation 1.1"}
MEMBER = {**VERSION, **token()}
STRANGER = {**VERSION, **token("frida", "art")}


def get(http, path, status=200, headers=VERSION):
    answer = http.get(f"/v1/resources{path}", headers=headers)
    assert answer.status_code == status, answer.text
    return answer


def ids(http, query, kind="host", headers=VERSION):
    return [each["id"] for each in get(http, f"/{kind}?{query}", headers=headers).json["resources"]]


@pytest.fixture
def marked(world) -> World:
    """Three hosts: one is for physics only, one has a private property, and an address."""
    change = world.manager.resources.change
    change(HOST, "1", ResourceChange({"gpu": "A100"}, open_to=("physics",), sets_projects=True))
    change(HOST, "2", ResourceChange({"gpu": "A100", "rack": "r7"}))
    change(HOST, "3", ResourceChange({"rack": "r8"}, disabled=True))
    world.manager.resources.set_property(HOST, "rack", private=True)
    world.register_addresses(10)
    return world


def test_the_kinds_say_what_they_are_and_how_a_resource_is_registered(http):
    found = {each["name"]: each for each in get(http, "", headers=MEMBER).json["kinds"]}
    assert found.keys() == {"host", "floatingip", "network", "device", "generic", "volume"}
    host, address = found["host"], found["floatingip"]
    on_hosts = ["flavor:instance", "physical:host", "virtual:instance", "virtual:server", "virtual:stack"]
    assert host["resource_types"] == on_hosts
    assert (host["has_candidates"], address["has_candidates"]) == (True, True)
    assert (address["noun"], address["nouns"]) == ("floating IP", "floating IPs")
    general = {"properties", "disabled", "authorized_projects"}
    assert host["registration"]["properties"].keys() == {"name", "id", "evacuable", *general}
    assert address["registration"]["required"] == ["floating_network_id", "floating_ip_address"]
    assert host["attributes"]["memory_mb"] == {"type": "integer", "description": "MiB"}
    assert address["parameters"]["virtual:floatingip"]["properties"].keys() >= {"network_id", "amount"}
    assert host["links"][0]["href"] == "http://localhost/v1/resources/host"


def test_a_thing_with_a_hook_is_registered_and_leased_and_members_never_see_its_url(world, http):
    body = {"name": "microscope-1", "class": "microscope", "capacity": 4, "hook_url": "https://lab.example/secret"}
    made = http.post("/v1/resources/generic", json={**body, "properties": {"lens": "60"}}, headers=VERSION)
    assert made.status_code == 201, made.text
    assert made.json["resource"]["attributes"]["hook_url"] == "https://lab.example/secret"
    (seen,) = get(http, "/generic", headers=MEMBER).json["resources"]
    assert (seen["name"], seen["attributes"], seen["capacity"]) == (
        "microscope-1",
        {"class": "microscope", "capacity": 4},
        {"UNIT": 4},
    )
    for query in ("property=hook_url:https://lab.example/secret", "requirement=" + quote('["=", "$hook_url", "x"]')):
        get(http, f"/generic?{query}", 400, MEMBER)
    for reservation in ({"amount": 3}, {"min": 1, "max": 1}):
        lease = {
            "name": "cells",
            "start_date": "2031-01-01T10:00:00Z",
            "end_date": "2031-01-01T12:00:00Z",
            "reservations": [{"resource_type": "generic", "class": "microscope", **reservation}],
        }
        booked = http.post("/v1/leases", json=lease, headers=MEMBER)
        if "amount" in reservation:
            assert booked.status_code == 201, booked.text
            assert booked.json["lease"]["reservations"][0]["amount"] == 3
        else:
            assert booked.json["errors"][0]["code"] == "reservation.not_enough_resources"
        assert "secret" not in booked.text
    for wrong in ({"hook_url": "ftp://x"}, {"capacity": 0}, {"class": "No Class"}, {"colour": "red"}):
        refused = http.post("/v1/resources/generic", json={**body, "name": "m", **wrong}, headers=VERSION)
        (field,) = wrong
        assert (refused.status_code, refused.json["errors"][0]["pointer"]) == (400, f"/{field}")


def test_what_a_registration_has_said_of_a_thing_is_changed(world, http):
    thing = world.register_thing("microscope-1", capacity=4)
    url = f"/v1/resources/generic/{thing.external_id}"
    change = {"attributes": {"capacity": 6, "hook_url": "https://new.example/"}, "properties": {"lens": "40"}}
    changed = http.put(url, json=change, headers=VERSION)
    assert changed.status_code == 200, changed.text
    assert changed.json["resource"]["attributes"] == {"class": "microscope", **change["attributes"]}
    assert (changed.json["resource"]["capacity"], changed.json["resource"]["properties"]) == (
        {"UNIT": 6},
        {"lens": "40"},
    )
    world.lease(units(5), start=timedelta(hours=1))
    refused = http.put(url, json={"attributes": {"capacity": 4}}, headers=VERSION)
    assert (refused.status_code, refused.json["errors"][0]["code"]) == (409, "reservation.resource_in_use")
    for wrong in ({"capacity": 0}, {"name": "x"}, {"capacity": [1]}, {"class": None}):
        refused = http.put(url, json={"attributes": wrong}, headers=VERSION)
        (field,) = wrong
        assert (refused.status_code, refused.json["errors"][0]["pointer"]) == (400, f"/attributes/{field}"), (
            refused.text
        )
    assert http.put(url, json={"attributes": {}}, headers=VERSION).status_code == 400
    late = {**VERSION, "If-Match": '"0.1.m"'}
    assert http.put(url, json={"attributes": {"capacity": 9}}, headers=late).status_code == 412
    assert http.put(url, json={"attributes": {"capacity": 9}}, headers=MEMBER).status_code == 403


def test_a_misspelt_field_of_a_reservation_of_things_is_refused_and_ids_may_be_asked_for(world, http):
    thing = world.register_thing("microscope-1")
    asked = {"resource_type": "generic", "class": "microscope", "min": 1}
    lease = {"name": "cells", "end_date": "+P1D", "reservations": [asked]}
    wrong = {**lease, "reservations": [{**asked, "resource_propertes": ["==", "$lens", "60"]}]}
    refused = http.post("/v1/leases", json=wrong, headers=MEMBER)
    (fault,) = refused.json["errors"]
    assert (fault["code"], fault["pointer"]) == ("reservation.unknown_field", "/reservations/0/resource_propertes")
    chosen = {**asked, "resource_properties": ["==", "$id", thing.external_id]}
    booked = http.post("/v1/leases", json={**lease, "reservations": [chosen]}, headers=MEMBER)
    assert booked.status_code == 201, booked.text
    (made,) = booked.json["lease"]["reservations"]
    change = {"reservations": [{"id": made["id"], "maximum": 2}]}
    refused = http.put(f"/v1/leases/{booked.json['lease']['id']}", json=change, headers=MEMBER)
    assert refused.json["errors"][0]["code"] == "reservation.unknown_field"


def test_a_lease_of_a_thing_tells_its_members_which_it_is_and_what_its_hook_answered(world, http):
    thing = world.register_thing("microscope-1")
    lease = world.lease(things())
    world.run()
    for headers in (MEMBER, {**MEMBER, "OpenStack-API-Version": "reservation 1.1"}):
        (shown,) = http.get(f"/v1/leases/{lease.id}", headers=headers).json["lease"]["reservations"]
        (allocation,) = shown["allocations"]
        assert allocation["resource"] == {"id": thing.external_id, "type": "generic", "name": "microscope-1"}
        answer = {"address": f"{thing.external_id}.simulated.example"}
        assert shown["resources"] == [{"id": thing.external_id, "name": "microscope-1", "answer": answer}]
        assert "cloud_ids" not in shown
        assert "hook" not in str(shown)
        for named in (thing.external_id, thing.label):
            (found,) = http.get(f"/v1/leases?resource={named}", headers=headers).json["leases"]
            assert found["id"] == lease.id


def test_members_find_leases_by_ids_that_they_see_and_not_by_those_of_hosts(world, http):
    world.register_addresses(10)
    lease = world.lease(a_host(), addresses(1))
    ids = {a.kind: a.external_id for a in world.manager.leases.details(lease.id).held}
    found = {kind: http.get(f"/v1/leases?resource={ids[kind]}", headers=MEMBER).json["leases"] for kind in ids}
    assert {kind: len(leases) for kind, leases in found.items()} == {"host": 0, "floatingip": 1}


def test_an_unknown_kind_is_refused_with_those_that_there_are(http):
    for headers in (VERSION, MEMBER):
        (fault,) = get(http, "/rocket", 404, headers).json["errors"]
        assert (fault["code"], fault["data"]) == (
            "reservation.kind_not_found",
            {"kinds": ["device", "floatingip", "generic", "host", "network", "volume"]},
        )


def test_the_same_host_is_served_as_at_1_0(http):
    for body in ({"properties": {"gpu": "A100"}}, {"disabled": {"reason": "fan", "until": "+P1D"}}):
        changed = http.put("/v1/resources/host/1", json=body, headers=VERSION)
        assert changed.status_code == 200, changed.text
    shown = get(http, "/host/1")
    assert (shown.json, shown.headers["ETag"]) == (changed.json, changed.headers["ETag"])
    host, resource = http.get("/v1/os-hosts/1").json["host"], shown.json["resource"]
    assert (host["id"], host["gpu"], host["disabled"], host["reservable"]) == ("1", "A100", True, False)
    assert {key: host[key] for key in resource["attributes"] if key in host}.items() <= resource["attributes"].items()
    assert (resource["name"], resource["attributes"]["hypervisor_hostname"]) == ("node-1", "node-1")
    assert get(http, "/host/1", 304, {**VERSION, "If-None-Match": shown.headers["ETag"]}).data == b""
    gone = http.delete("/v1/resources/host/1", headers={**VERSION, "If-Match": shown.headers["ETag"]})
    assert gone.status_code == 204
    assert get(http, "/host/1", 404).json["errors"][0]["code"] == "reservation.host_not_found"


def test_an_address_is_registered_disabled_and_restricted_as_any_resource(world, http):
    world.register_addresses(10)
    body = {
        "floating_network_id": "public",
        "floating_ip_address": "203.0.113.11",
        "properties": {"dns": "web.example"},
        "authorized_projects": ["physics"],
    }
    made = http.post("/v1/resources/floatingip", json=body, headers=VERSION)
    assert made.status_code == 201, made.text
    url = made.headers["Location"].removeprefix("http://localhost/v1/resources")
    changed = http.put(f"/v1/resources{url}", json={"disabled": {"reason": "spam"}}, headers=VERSION)
    assert changed.json["resource"]["disabled"]["reason"] == "spam"
    assert ids(http, "property=floating_ip_address:203.0.113.11", "floatingip") == [made.json["resource"]["id"]]
    seen = get(http, url, headers=MEMBER).json["resource"]
    assert (seen["attributes"]["floating_ip_address"], seen["properties"]) == ("203.0.113.11", {"dns": "web.example"})
    assert seen["reservable"] is False
    assert get(http, url, 404, STRANGER).json["errors"][0]["code"] == "reservation.floating_ip_not_found"
    assert len(ids(http, "", "floatingip", MEMBER)) == 2
    assert len(ids(http, "", "floatingip", STRANGER)) == 1


def test_operators_filter_by_condition_project_property_text_and_requirement(http, marked):
    assert ids(http, "condition=disabled") == ["3"]
    assert ids(http, "condition=ok&sort_dir=desc") == ["2", "1"]
    assert ids(http, "project_id=physics") == ["1"]
    assert ids(http, "property=gpu:A100&property=rack:r7") == ["2"]
    assert ids(http, "property=hypervisor_hostname:node-3") == ["3"]
    assert ids(http, "text=ODE-2") == ["2"]
    assert ids(http, "name=in:node-1,node-3&reservable=true") == ["1"]
    assert ids(http, "requirement=" + quote('["==","$rack","r8"]')) == ["3"]
    page = get(http, "/host?limit=2&fields=name&with_count=true").json
    assert (page["count"], [each.keys() for each in page["resources"]]) == (3, [{"id", "name"}] * 2)
    (following,) = [link["href"] for link in page["links"] if link["rel"] == "next"]
    (last,) = http.get(following, headers=VERSION).json["resources"]
    assert last["name"] == "node-3"


def test_a_member_sees_what_is_public_of_what_its_project_may_reserve(http, marked):
    seen = get(http, "/host", headers=MEMBER).json["resources"]
    labels = [each.label for each in marked.manager.resources.all(HOST)]
    assert [each["id"] for each in seen] == sorted(labels)
    assert [each["id"] for each in get(http, "/host", headers=STRANGER).json["resources"]] == sorted(labels[1:])
    second = get(http, f"/host/{labels[1]}", headers=MEMBER).json["resource"]
    assert (second["name"], second["properties"]) == (None, {"gpu": "A100"})
    assert second["attributes"].keys() == {"vcpus", "memory_mb", "local_gb", "availability_zone", "hypervisor_type"}
    third = get(http, f"/host/{labels[2]}", headers=MEMBER).json["resource"]
    assert (third["reservable"], third["properties"]) == (False, {})
    assert get(http, f"/host/{labels[0]}", 404, STRANGER).json["errors"][0]["code"] == "reservation.host_not_found"
    assert get(http, "/host/1", 404, MEMBER).json["errors"][0]["code"] == "reservation.host_not_found"
    assert get(http, f"/host/{labels[0]}", 404).json["errors"][0]["code"] == "reservation.host_not_found"


def test_a_member_filters_by_what_it_sees_only(http, marked):
    labels = [each.label for each in marked.manager.resources.all(HOST)]
    assert ids(http, "text=node", headers=MEMBER) == []
    assert ids(http, f"text={labels[1]}", headers=MEMBER) == [labels[1]]
    assert ids(http, "name=node-2", headers=MEMBER) == []
    assert ids(http, "property=gpu:A100", headers=STRANGER) == [labels[1]]
    assert ids(http, "reservable=false", headers=MEMBER) == [labels[2]]
    (hidden,) = get(http, "/host?property=rack:r7", 400, MEMBER).json["errors"]
    (missing,) = get(http, "/host?property=deck:r7", 400, MEMBER).json["errors"]
    assert hidden["detail"].replace("rack", "deck") == missing["detail"]
    page = get(http, "/host?limit=1&with_count=true", headers=STRANGER).json
    assert (page["count"], len(page["resources"])) == (2, 1)


def test_the_tag_of_a_member_changes_only_with_what_it_sees(http, marked):
    label = marked.manager.resources.one(HOST, "2").label
    tag = get(http, f"/host/{label}", headers=MEMBER).headers["ETag"]
    assert tag.startswith("W/")
    marked.manager.resources.change(HOST, "2", ResourceChange({"rack": "r9"}))
    known = {**MEMBER, "If-None-Match": tag}
    assert get(http, f"/host/{label}", 304, known).data == b""
    marked.manager.resources.change(HOST, "2", ResourceChange({"gpu": "H100"}))
    assert get(http, f"/host/{label}", 200, known).json["resource"]["properties"] == {"gpu": "H100"}


def test_operators_see_allocations_candidates_and_properties_of_any_kind(sqlite):
    world = World(sqlite, hosts=3, register=False)
    world.register("node-1")
    lease = world.lease()
    http = client_of(app_of(world.manager))
    (of_one,) = get(http, "/host/allocations").json["allocations"]
    assert (of_one["resource_id"], of_one["reservations"][0]["lease_id"]) == ("1", lease.id)
    assert get(http, f"/host/1/allocations?lease_id={lease.id}").json["allocation"] == of_one
    assert get(http, "/floatingip/allocations").json["allocations"] == []
    free = get(http, "/host/candidates?registered=false").json["candidates"]
    assert [(each["name"], each["resource_id"]) for each in free] == [("node-2", None), ("node-3", None)]
    newer = get(http, "/host/candidates?registered=false", headers=VERSION).json["candidates"]
    assert [each["registration"] for each in newer] == [{"name": "node-2"}, {"name": "node-3"}]
    assert get(http, "/generic/candidates").json["candidates"] == []
    assert http.put("/v1/resources/host/1", json={"properties": {"gpu": "A100"}}, headers=VERSION).status_code == 200
    url = "/v1/resources/host/properties/gpu"
    assert http.patch(url, json={"private": True}, headers=VERSION).json["property"]["private"] is True
    assert get(http, "/host/properties?with_count=true").json["properties"] == [
        {"name": "gpu", "private": True, "values": ["A100"]}
    ]
    assert http.post("/v1/resources/host/1/refresh", headers=VERSION).json["resource"]["name"] == "node-1"


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", ["host", "floatingip", "device", "generic"])
def test_a_reservation_is_moved_to_another_resource(world, http, kind):
    world.register_addresses(10, 11)
    for name in ("one", "two"):
        world.register_device(name)
        world.register_thing(name)
    asked = {"host": a_host, "floatingip": addresses, "device": devices, "generic": things}[kind]()
    lease = world.lease(asked, start=timedelta(hours=1))
    (held,) = world.manager.leases.details(lease.id).held
    url, body = f"/v1/resources/{kind}/{held.external_id}/allocations", {"reservation_id": lease.reservations[0].id}
    moved = http.put(url, json=body, headers=VERSION)
    assert moved.status_code == 200, moved.text
    assert moved.json == {"allocation": {"resource_id": held.external_id, "reservations": []}}
    assert moved.headers["Cache-Control"] == "no-store"
    (now,) = world.manager.leases.details(lease.id).held
    assert now.external_id != held.external_id
    (fault,) = http.put(url, json=body, headers=VERSION).json["errors"]
    assert (fault["status"], fault["code"], fault["pointer"]) == (
        400,
        "reservation.unknown_reference",
        "/reservation_id",
    )
    (missing,) = http.put(url, json={}, headers=VERSION).json["errors"]
    assert (missing["code"], missing["pointer"]) == ("reservation.missing_field", "/reservation_id")
    assert http.put(url, json=body, headers=MEMBER).status_code == 403
    nowhere = http.put(f"/v1/resources/{kind}/99/allocations", json=body, headers=VERSION)
    assert nowhere.status_code == 404


def test_resources_are_listed_in_the_order_of_an_attribute_or_a_property(http, marked):
    assert ids(http, "sort_key=property:rack") == ["2", "3", "1"]
    assert ids(http, "sort_key=property:rack&sort_dir=desc&limit=2") == ["1", "3"]
    assert ids(http, "sort_key=property:hypervisor_hostname&sort_dir=desc") == ["3", "2", "1"]
    walked, path = [], "/v1/resources/host?sort_key=property:rack&limit=1"
    while path:
        page = http.get(path, headers=VERSION).json
        walked += [each["id"] for each in page["resources"]]
        path = next((link["href"] for link in page["links"] if link["rel"] == "next"), None)
    assert walked == ["2", "3", "1"]
    labels = [each.label for each in marked.manager.resources.all(HOST)]
    assert ids(http, "sort_key=property:gpu", headers=STRANGER) == [labels[1], labels[2]]
    for headers, name in ((VERSION, "deck"), (MEMBER, "deck"), (MEMBER, "rack"), (MEMBER, "hypervisor_hostname")):
        (fault,) = get(http, f"/host?sort_key=property:{name}", 400, headers).json["errors"]
        assert (fault["code"], fault["parameter"]) == ("reservation.unknown_property", "sort_key")
    found = get(http, "/host/allocations?sort_key=property:rack").json["allocations"]
    assert [each["resource_id"] for each in found] == ["2", "3", "1"]
    for wrong in ("property:", "deck", f"property:{'x' * 320}"):
        (fault,) = get(http, f"/host?sort_key={wrong}", 400).json["errors"]
        assert (fault["code"], fault["parameter"]) == ("reservation.invalid_query", "sort_key")


@pytest.mark.parametrize(
    ("path", "instead"),
    [
        ("os-hosts", "resources/host"),
        ("os-hosts.json", "resources/host"),
        ("os-hosts/1", "resources/host"),
        ("os-hosts/allocations", "resources/host"),
        ("floatingips", "resources/floatingip"),
        ("networks/1", "resources/network"),
        ("devices/properties", "resources/device"),
        ("leases/1/hosts", "leases/{lease_id}"),
    ],
)
def test_a_route_of_one_kind_is_at_1_0_only_and_the_refusal_names_the_new_one(http, path, instead):
    for method in ("GET", "DELETE"):
        answer = http.open(f"/v1/{path}", method=method, headers=VERSION)
        (fault,) = answer.json["errors"]
        assert (answer.status_code, fault["code"]) == (404, "reservation.uri_not_found")
        assert f"use /v1/{instead}," in fault["detail"]


def test_1_0_has_none_of_it(http):
    headers = {"OpenStack-API-Version": "reservation 1.0"}
    assert http.get("/v1/resources", headers=headers).status_code == 404
    assert http.post("/v1/resources/host", json={"name": "node-1"}, headers=headers).status_code == 404


def test_hosts_that_can_be_emptied_are_registered(sqlite):
    http = client_of(app_of(World(sqlite, hosts=3, register=False).manager))
    body = {"name": "node-1", "evacuable": True}
    made = http.post("/v1/resources/host", json=body, headers=VERSION)
    assert (made.status_code, made.json["resource"]["attributes"]["evacuable"]) == (201, True)


@pytest.mark.parametrize("hosts", [2, 12])
def test_the_number_of_statements_does_not_depend_on_the_number_of_resources(sqlite, hosts):
    world = World(sqlite, hosts=hosts)
    http = client_of(app_of(world.manager))
    label = world.manager.resources.one(HOST, "1").label

    def cost(method: str, path: str, headers: dict[str, str] = VERSION, json: Any = None) -> int:
        with counted(world.engine) as statements:
            answer = http.open(f"/v1/resources{path}", method=method, headers=headers, json=json)
        assert answer.status_code in (200, 201, 204), answer.text
        return statements.count

    cost("GET", "/host")
    cost("GET", "/floatingip")
    assert cost("GET", "") == 0
    assert cost("GET", "/host") == cost("GET", "/host", MEMBER) == cost("GET", f"/host/{label}", MEMBER) == 1
    assert cost("GET", "/host/1") == 2
    assert cost("GET", "/host/allocations") == 2
    assert cost("GET", "/host/properties") == 2
    assert cost("GET", "/host/candidates") == cost("GET", "/floatingip/candidates") == 1
    tag = {**VERSION, "If-Match": get(http, "/host/1").headers["ETag"]}
    put = cost("PUT", "/host/1", tag, {"disabled": {"reason": "fan"}})
    with counted(world.engine) as statements:
        http.put("/v1/os-hosts/2", json={"disabled": True})
    assert put == statements.count + 1


class Desks(Kind):
    """A kind that describes itself, perhaps wrongly."""

    kind = ResourceKind("desk")

    def __init__(self, shape: object) -> None:
        self.shape = shape

    def find(self, request: object) -> Any:
        """Find nothing."""

    def details(self, in_cloud: object) -> Any:
        """Know nothing."""


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ("a desk", "shape of the kind desk is 'a desk', not a KindShape"),
        (KindShape("desk", "desks", {"type": "string"}), "that is not the schema of an object"),
        (KindShape("desk", "desks", {"type": "objekt"}), "a schema that cannot be used: 'objekt' is not valid"),
        (KindShape("desk", "desks", attributes={"legs": {"minimum": "four"}}), "a schema that cannot be used"),
        (KindShape("desk", "desks", {"type": "object", "x": {1, 2}}), "a schema that cannot be used"),
        (
            KindShape("desk", "desks", {"type": "object", "properties": {"disabled": {}}}),
            "has the field disabled, which every registration has; rename it",
        ),
    ],
)
def test_a_kind_that_describes_itself_wrongly_stops_the_start_with_the_reason(shape, words):
    with pytest.raises(TypeError) as refused:
        CheckedKind(Desks(shape))
    assert words in str(refused.value)


def test_a_kind_that_says_nothing_of_itself_has_the_words_of_its_name():
    class Plain(Kind):
        kind = ResourceKind("desk")
        find = details = Desks.find

    described = describe(CheckedKind(Plain()), {"lab:desk": None})
    assert (described.shape.noun, described.shape.nouns, described.resource_types) == ("desk", "desks", ("lab:desk",))


def test_at_1_0_a_lease_of_a_device_shows_what_was_handed_over(world, http):
    device = world.register_device()
    lease = world.lease(devices())
    world.run()
    (shown,) = http.get(f"/v1/leases/{lease.id}", headers=token()).json["lease"]["reservations"]
    answer = {"address": f"{device.external_id}.simulated.example"}
    assert shown["resources"] == [{"id": device.external_id, "name": device.name, "answer": answer}]


def test_a_lease_of_servers_tells_their_ids_in_every_version(world, http):
    lease = world.lease(servers(2))
    for _ in range(5):
        world.clock.by(seconds=2)
        world.run()
    booted = world.now(lease).reservations[0].shown["server_ids"]
    assert len(booted) == 2
    for version in ("1.0", "1.1"):
        headers = {**token(), "OpenStack-API-Version": f"reservation {version}"}
        (shown,) = http.get(f"/v1/leases/{lease.id}", headers=headers).json["lease"]["reservations"]
        assert shown["server_ids"] == booted
        assert ("aggregate_id" in shown) == (version == "1.0")


def test_pools_that_can_be_registered_come_with_what_registers_them(sqlite):
    world = World(sqlite, hosts=1)
    world.register_pools(1)
    http = client_of(app_of(world.manager))
    (pool,) = get(http, "/volume/candidates", headers=VERSION).json["candidates"]
    (registered,) = get(http, "/volume").json["resources"]
    assert pool["resource_id"] == registered["id"]
    assert http.delete(f"/v1/resources/volume/{registered['id']}", headers=VERSION).status_code == 204
    (free,) = get(http, "/volume/candidates?registered=false", headers=VERSION).json["candidates"]
    assert free["registration"].keys() == {"pool", "volume_type", "gigabytes"}
    made = http.post("/v1/resources/volume", json=free["registration"], headers=VERSION)
    assert made.status_code == 201, made.text


def test_addresses_that_can_be_registered_come_with_what_registers_them(sqlite):
    world = World(sqlite, hosts=1)
    (known,) = world.register_addresses(10)
    http = client_of(app_of(world.manager))
    free = get(http, "/floatingip/candidates?registered=false", headers=VERSION).json["candidates"]
    assert (len(free), free[0]["name"]) == (125, "203.0.113.2 on public")
    given = {"floating_network_id": "public", "floating_ip_address": "203.0.113.2"}
    assert free[0]["registration"] == given
    made = http.post("/v1/resources/floatingip", json=given, headers=VERSION)
    assert made.status_code == 201, made.text
    registered = get(http, "/floatingip/candidates?registered=true", headers=VERSION).json["candidates"]
    ids = [made.json["resource"]["id"], known.external_id]
    assert [(each["name"], each["resource_id"]) for each in registered] == [
        ("203.0.113.2 on public", ids[0]),
        ("203.0.113.10 on public", ids[1]),
    ]
    with world.simulated.change_state() as state:
        state.networks["public"].external = False
    assert get(http, "/floatingip/candidates").json["candidates"] == []


def test_forms_have_no_words_of_schemas(http):
    for kind in get(http, "", headers=VERSION).json["kinds"]:
        fields = kind["registration"]["properties"] if kind["registration"] else {}
        for name, field in fields.items():
            # Those of every kind have controls of their own.
            if name not in ("properties", "disabled", "authorized_projects"):
                words = set(re.findall(r"[a-z]+", field.get("description", "").lower()))
                assert not words & {"null", "string", "integer", "object", "array", "enum"}, (kind["name"], name)
