# SPDX-License-Identifier: Apache-2.0
"""What one caller can take from all: the memory of the API, the length of a lease; and what caches may keep."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from blazar.api.app import create_app
from blazar.api.http import openapi
from blazar.api.http.bodies import check
from blazar.api.http.identity import StandaloneIdentity
from blazar.api.http.openapi import Served
from blazar.api.kinds.hosts.requests import HOST_CREATE
from blazar.api.leases import limits
from blazar.api.leases.services import LeaseServices, RenderedLeases
from blazar.api.leases.v1_0.formats import V1_0
from blazar.api.leases.v1_0.schemas import LEASE_CREATE
from blazar.api.parts import all_parts
from blazar.model.base.errors import InvalidInput
from tests.api.conftest import token
from tests.api.leases.test_rest_v1 import HOST_RESERVATION, LEASE, create
from tests.world import World


def list_with(rendered: RenderedLeases, world: World, project_id: str | None) -> list[bytes]:
    return [text for piece in rendered.pieces(world.manager, project_id) for text in piece]


def test_the_cache_of_leases_is_limited_in_bytes(world):
    for number in range(3):
        world.lease(start=timedelta(days=number + 1), name=str(number))
        world.clock.by(seconds=1)
    unbounded = RenderedLeases(V1_0.writer)
    list_with(unbounded, world, None)
    rendered = RenderedLeases(V1_0.writer, most_bytes=unbounded.size - 1)
    for _ in range(2):
        assert [json.loads(text)["name"] for text in list_with(rendered, world, None)] == ["0", "1", "2"]
        assert 0 < rendered.size < unbounded.size


@pytest.mark.parametrize("listing", [None, "physics"])
def test_a_deleted_lease_leaves_the_cache(world, listing):
    lease, other = world.lease(), world.lease(project="art", start=timedelta(days=1))
    rendered = RenderedLeases(V1_0.writer)
    assert len(list_with(rendered, world, None)) == 2
    both = rendered.size
    world.manager.leases.delete(lease.id)
    world.run()
    assert len(list_with(rendered, world, listing)) == (1 if listing is None else 0)
    assert 0 < rendered.size < both
    world.manager.leases.delete(other.id)
    world.run()
    assert list_with(rendered, world, None) == []
    assert rendered.size == 0


@pytest.mark.parametrize("root", ["/v1", "/v2"])
def test_deleting_a_lease_removes_it_from_the_caches_of_all_versions(app, http, root):
    lease = create(http)
    for version in ("/v1", "/v2"):
        http.get(f"{version}/leases")
    kept = app.extensions["blazar"].feature(LeaseServices).rendered.values()
    assert all(rendered.size for rendered in kept)
    assert http.delete(f"{root}/leases/{lease['id']}").status_code == 204
    assert not any(rendered.size for rendered in kept)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/leases", 200),
        ("GET", "/v2/leases", 200),
        ("GET", "/v1/leases/none", 404),
        ("POST", "/v1/leases", 400),
        ("GET", "/", 300),
        ("GET", "/openapi.json", 200),
        ("GET", "/nowhere", 404),
        ("PATCH", "/v1/leases", 405),
    ],
)
def test_no_answer_may_be_cached_or_its_type_guessed(http, method, path, status):
    answer = http.open(path, method=method)
    assert answer.status_code == status
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Vary"].split(", ")[0] == "X-Auth-Token"
    assert ("OpenStack-API-Version" in answer.headers["Vary"]) == ("OpenStack-API-Version" in answer.headers)


def test_the_openapi_document_is_rendered_once(world, monkeypatch):
    made = []
    original = openapi.document
    monkeypatch.setattr(openapi, "document", lambda url, *more: made.append(url) or original(url, *more))
    http = create_app(world.manager, identity=StandaloneIdentity()).test_client()
    documents = [http.get("/openapi.json", headers={"Host": host}).json for host in ("one.example", "two.example:1234")]
    assert [d["servers"] for d in documents] == [
        [{"url": "http://one.example"}],
        [{"url": "http://two.example:1234"}],
    ]
    assert len(made) == 1


LONG_RESERVATION = {**HOST_RESERVATION, "resource_properties": json.dumps(["=", "$hypervisor_hostname", "x" * 7000])}


@pytest.mark.parametrize(
    ("changes", "longest"),
    [
        (
            {
                "reservations": [
                    HOST_RESERVATION,
                    *[LONG_RESERVATION] * 4,
                    {**LONG_RESERVATION, "hypervisor_properties": " " * 100},
                ]
            },
            "reservations[1].resource_properties",
        ),
        (
            {"events": [{"event_type": "ü" * 66}] * 100, "reservations": [LONG_RESERVATION] * 3},
            "reservations[0].resource_properties",
        ),
        ({"reservations": [{**HOST_RESERVATION, "x" * 250: ["y" * 40_000]}]}, "reservations[0].x"),
    ],
    ids=["requirements", "events", "something else"],
)
@pytest.mark.parametrize("root", ["/v1", "/v2"])
def test_the_text_of_a_new_lease_is_limited(http, root, changes, longest):
    answer = http.post(f"{root}/leases", json={**LEASE, **changes})
    assert answer.status_code == 400
    assert "at most 32768 are allowed" in answer.json["error_message"]
    assert f"shorten {longest}" in answer.json["error_message"]


def test_an_update_cannot_exceed_the_limit_of_text(http, world):
    lease = create(http, reservations=[{**HOST_RESERVATION, "max": 1}] * 2)
    url = f"/v1/leases/{lease['id']}"
    first, second = (reservation["id"] for reservation in lease["reservations"])
    long = json.dumps(["or", [">", "$vcpus", "1"], ["=", "$hypervisor_type", "x" * 20_000]])

    def change(reservation, text):
        return http.put(url, json={"reservations": [{"id": reservation, "resource_properties": text}]})

    assert change(first, long).status_code == 200
    refused = change(second, long)
    assert refused.status_code == 400
    assert "shorten" in refused.json["error_message"]
    assert http.put(url, json={"name": "another"}).status_code == 200
    assert change(first, "").status_code == 200
    assert change(second, long).status_code == 200


def test_a_lease_beyond_the_limit_of_text_can_be_changed_and_shortened(http, world, monkeypatch):
    lease = create(http, reservations=[{**HOST_RESERVATION, "resource_properties": json.dumps([">", "$vcpus", "1"])}])
    url = f"/v1/leases/{lease['id']}"
    monkeypatch.setattr(limits, "MOST_TEXT", 50)
    assert http.put(url, json={"end_date": "2030-04-03 08:00"}).status_code == 200
    assert http.put(url, json={"name": lease["name"] + "!"}).status_code == 400
    shorter = {"id": lease["reservations"][0]["id"], "resource_properties": ""}
    assert http.put(url, json={"reservations": [shorter]}).status_code == 200


def test_a_lease_whose_end_is_past_is_refused(http, world):
    world.clock.by(seconds=30)
    body = {**LEASE, "start_date": "2030-04-01T12:00:05Z", "end_date": "2030-04-01T12:00:20Z"}
    answer = http.post("/v2/leases", json=body)
    assert answer.status_code == 400
    assert answer.json["error_message"] == (
        "End date 2030-04-01 12:00:20 is in the past; it is 2030-04-01 12:00:30 UTC now."
    )
    lease = http.post("/v2/leases", json={**LEASE, "start_date": "2030-04-02 08:00"}).json
    dates = {"start_date": body["start_date"], "end_date": body["end_date"]}
    assert http.put(f"/v2/leases/{lease['id']}", json=dates).status_code == 400


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_from_1_1_on_a_lease_of_another_project_is_404(world, http, method):
    lease = create(http)
    served = Served(all_parts(), newest=(1, 1))
    plain = create_app(world.manager, identity=StandaloneIdentity(), served=served).test_client()

    def told(lease_id, version):
        headers = {**token("frida", "art"), "OpenStack-API-Version": f"reservation {version}"}
        answer = plain.open(f"/v1/leases/{lease_id}", method=method, json={}, headers=headers)
        text = answer.text.replace(lease_id, "ID").replace(answer.headers["x-openstack-request-id"], "REQUEST")
        return answer.status_code, text

    nobody = "00000000-0000-0000-0000-000000000000"
    assert told(lease["id"], "1.1") == told(nobody, "1.1")
    assert told(lease["id"], "1.1")[0] == 404
    assert told(lease["id"], "1.0")[0] == 403
    assert told(nobody, "1.0")[0] == 404


class Watched(list):
    """A list that tells whether somebody has looked into it."""

    looked_into = False

    def __iter__(self):
        self.looked_into = True
        return super().__iter__()

    def __getitem__(self, index):
        self.looked_into = True
        return super().__getitem__(index)


@pytest.mark.parametrize("key", ["reservations", "events"])
def test_the_length_of_a_list_is_checked_before_its_items(key):
    items = Watched([{"resource_type": 5}] * 101)
    with pytest.raises(InvalidInput, match=f"^{key} has 101 entries, and 100 at most are allowed"):
        check({**LEASE, key: items}, LEASE_CREATE)
    assert not items.looked_into


def test_what_is_too_much_is_told_with_the_most_that_there_may_be():
    number = {"type": "integer", "maximum": 9, "description": "a whole number"}
    schema = {"type": "object", "properties": {"amount": number}, "required": []}
    with pytest.raises(InvalidInput, match="^amount is 10, which is more than 9; give a whole number$"):
        check({"amount": 10}, schema, lasting=False)


def test_the_number_of_keys_is_checked_before_their_values():
    capabilities = {f"key {number}" * 100: [] for number in range(501)}
    with pytest.raises(InvalidInput, match="at most 500 keys"):
        check(capabilities, HOST_CREATE)


def test_the_length_of_a_string_is_checked_before_its_pattern():
    with pytest.raises(InvalidInput, match="id is too long"):
        check({"id": "x" * 256}, HOST_CREATE)
