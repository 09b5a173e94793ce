# SPDX-License-Identifier: Apache-2.0
"""Transfer of leases over HTTP: who may offer and accept, what they see, and how it is refused."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.api.conftest import app_of, client_of, token
from tests.world import PROJECT, World, a_host

HOUR = timedelta(hours=1)
CURIE = token("curie", PROJECT)
TURING = token("turing", "computing")
MALLORY = token("mallory", "elsewhere")
OPERATOR = token("root", "admin", "admin")
TO_COMPUTING = {"project_id": "computing", "message": "for your course"}


@pytest.fixture
def world(a_world) -> World:
    return a_world(hosts=3)


@pytest.fixture
def http(world):
    return client_of(app_of(world.manager))


def call(http, method: str, path: str, caller, body=None, **headers):
    version = {"OpenStack-API-Version": "reservation 1.1"}
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return http.open(f"/v1{path}", method=method, json=body, headers={**version, **caller, **sent})


def offer(http, lease, body=TO_COMPUTING, **headers):
    return call(http, "POST", f"/leases/{lease.id}/transfer", CURIE, body, **headers)


def refusal(answer):
    (error,) = answer.json["errors"]
    return answer.status_code, error["code"].removeprefix("reservation."), error.get("pointer")


def test_what_is_offered_is_seen_by_both_and_goes_when_it_is_accepted(world, http):
    lease = world.lease(a_host(2), start=HOUR)
    made = offer(http, lease)
    assert made.status_code == 201
    assert made.headers["Location"].endswith(f"/v1/transfers/{lease.id}")
    shown = call(http, "GET", f"/leases/{lease.id}", CURIE)
    assert shown.headers["ETag"] == made.headers["ETag"]
    assert shown.json["lease"]["transfer"] == {
        "project_id": "computing",
        "user_id": None,
        "message": "for your course",
        "offered_at": "2030-04-01T12:00:00Z",
        "expires_at": "2030-04-02T12:00:00Z",
    }

    (listed,) = call(http, "GET", "/transfers", TURING).json["transfers"]
    one = call(http, "GET", f"/transfers/{lease.id}", TURING)
    assert one.json["transfer"] == listed == made.json["transfer"]
    assert (listed["from_project_id"], listed["from_user_id"]) == (PROJECT, "curie")
    (reserved,) = listed["lease"]["reservations"]
    assert (reserved["resource_type"], reserved["count"], reserved["parameters"]["min"]) == ("physical:host", 2, 2)
    assert "node-" not in str(listed)

    taken = call(http, "POST", f"/transfers/{lease.id}/accept", TURING, If_Match=one.headers["ETag"])
    assert taken.status_code == 200
    assert (taken.json["lease"]["project_id"], taken.json["lease"]["user_id"]) == ("computing", "turing")
    assert taken.json["lease"]["transfer"] is None
    assert taken.headers["ETag"] == f'"{world.now(lease).revision}.1.m"'
    assert call(http, "GET", f"/leases/{lease.id}", TURING).status_code == 200
    assert call(http, "GET", f"/leases/{lease.id}", CURIE).status_code == 404
    assert call(http, "GET", "/transfers?with_count=true", TURING).json["count"] == 0


def test_nobody_else_sees_or_takes_it_not_even_an_operator(world, http):
    lease = world.lease(a_host(), start=HOUR)
    offer(http, lease)
    for method, path in (
        ("GET", f"/transfers/{lease.id}"),
        ("POST", f"/transfers/{lease.id}/accept"),
        ("POST", f"/transfers/{lease.id}/decline"),
    ):
        assert refusal(call(http, method, path, MALLORY))[:2] == (404, "transfer_not_found")
        assert refusal(call(http, method, path, CURIE))[:2] == (404, "transfer_not_found")
        assert refusal(call(http, method, path, OPERATOR))[:2] == (404, "transfer_not_found")
        unknown = call(http, method, path.replace(lease.id, "none"), MALLORY)
        assert refusal(unknown)[:2] == (404, "transfer_not_found")
    # The offer does not open the lease itself.
    assert call(http, "GET", f"/leases/{lease.id}", TURING).status_code == 404
    assert call(http, "DELETE", f"/leases/{lease.id}/transfer", TURING).status_code == 404
    assert world.now(lease).project_id == PROJECT


def test_it_is_withdrawn_by_the_giver_and_declined_by_the_taker(world, http):
    lease = world.lease(a_host(), start=HOUR)
    offer(http, lease)
    assert call(http, "DELETE", f"/leases/{lease.id}/transfer", CURIE).status_code == 204
    assert refusal(call(http, "POST", f"/transfers/{lease.id}/accept", TURING))[:2] == (404, "transfer_not_found")
    none = call(http, "DELETE", f"/leases/{lease.id}/transfer", CURIE)
    assert refusal(none)[:2] == (404, "transfer_not_found")
    # It is the giver who asks.
    assert none.json["errors"][0]["detail"] == f"lease {lease.id} is not offered to anybody"
    offer(http, lease)
    assert call(http, "POST", f"/transfers/{lease.id}/decline", TURING).status_code == 204
    assert call(http, "GET", f"/leases/{lease.id}", CURIE).json["lease"]["transfer"] is None


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, (400, "missing_field", "/project_id")),
        ({"message": "x"}, (400, "missing_field", "/project_id")),
        ({"project_id": PROJECT}, (400, "invalid_value", "/project_id")),
        ({"user_id": "curie"}, (400, "invalid_value", "/user_id")),
        ({"project_id": ""}, (400, "invalid_value", "/project_id")),
        ({"project_id": None}, (400, "invalid_value", "/project_id")),
        ({"project_id": "computing", "message": "x" * 256}, (400, "invalid_value", "/message")),
        ({"project_id": "computing", "expires_at": "never"}, (400, "unknown_field", "/expires_at")),
    ],
)
def test_bad_offers_name_the_field(world, http, body, expected):
    assert refusal(offer(http, world.lease(a_host(), start=HOUR), body)) == expected


def test_the_tags_of_offers_and_leases_guard_both_sides(world, http):
    lease = world.lease(a_host(), start=HOUR)
    assert refusal(offer(http, lease, If_Match='"9.1.m"'))[:2] == (412, "precondition_failed")
    offer(http, lease)
    seen = call(http, "GET", f"/transfers/{lease.id}", TURING).headers["ETag"]
    world.change(lease, name="another name")
    for verb in ("accept", "decline"):
        stale = call(http, "POST", f"/transfers/{lease.id}/{verb}", TURING, If_Match=seen)
        assert refusal(stale)[:2] == (412, "precondition_failed")
    now = call(http, "GET", f"/transfers/{lease.id}", TURING).headers["ETag"]
    assert now != seen
    assert call(http, "POST", f"/transfers/{lease.id}/accept", TURING, If_Match=now).status_code == 200


def test_accepted_again_with_the_same_key_it_is_the_same_lease(world, http):
    lease = world.lease(a_host(), start=HOUR)
    offer(http, lease)
    path = f"/transfers/{lease.id}/accept"
    first = call(http, "POST", path, TURING, Idempotency_Key="once")
    again = call(http, "POST", path, TURING, Idempotency_Key="once")
    assert again.json == first.json
    assert again.headers["Idempotency-Replayed"] == "true"
    assert call(http, "POST", path, TURING).status_code == 404


def test_who_made_a_lease_with_a_key_does_not_see_it_after_it_went(world, http):
    body = {
        "name": "training",
        "start_date": "2030-04-02T08:00:00Z",
        "end_date": "2030-04-02T10:00:00Z",
        "reservations": [{"resource_type": "physical:host", "min": 1, "max": 1}],
    }
    made = call(http, "POST", "/leases", CURIE, body, Idempotency_Key="once").json["lease"]
    call(http, "POST", f"/leases/{made['id']}/transfer", CURIE, TO_COMPUTING)
    call(http, "POST", f"/transfers/{made['id']}/accept", TURING)
    again = call(http, "POST", "/leases", CURIE, body, Idempotency_Key="once")
    assert refusal(again)[:2] == (409, "idempotency_key_reused")
    assert "turing" not in again.text


def test_a_dry_run_says_whether_it_could_go(world, http):
    lease = world.lease(a_host(), start=HOUR)
    dry = call(http, "POST", f"/leases/{lease.id}/transfer?dry_run=true", CURIE, TO_COMPUTING)
    assert (dry.status_code, "ETag" in dry.headers) == (200, False)
    assert dry.json["transfer"]["lease"]["reservations"][0]["count"] == 1
    assert call(http, "GET", "/transfers", TURING).json["transfers"] == []
    offer(http, lease)
    planned = call(http, "POST", f"/transfers/{lease.id}/accept?dry_run=true", TURING)
    assert planned.json["lease"]["project_id"] == "computing"
    assert world.now(lease).project_id == PROJECT


def told(http, lease, caller):
    """Return what the history tells somebody of the transfers of a lease."""
    found = call(http, "GET", f"/leases/{lease.id}/history", caller).json["history"]
    return [
        (e["verb"], e["by"]["user_id"], {c["field"]: (c["before"], c["after"]) for c in e["changes"]})
        for e in found[1:]
    ]


def test_the_history_names_only_the_own_project_and_users_and_those_to_whom_one_has_offered(world, http):
    lease = world.lease(a_host(), start=HOUR)
    offer(http, lease)
    assert told(http, lease, CURIE) == [("offered", "curie", {"offered_to": (None, "computing")})]
    call(http, "POST", f"/transfers/{lease.id}/accept", TURING)
    assert told(http, lease, TURING) == [
        ("offered", None, {"offered_to": (None, "computing")}),
        ("transferred", "turing", {"project_id": (None, "computing"), "user_id": (None, "turing")}),
    ]
    call(http, "POST", f"/leases/{lease.id}/transfer", TURING, {"project_id": "elsewhere"})
    assert told(http, lease, TURING)[2:] == [("offered", "turing", {"offered_to": (None, "elsewhere")})]
    call(http, "POST", f"/transfers/{lease.id}/accept", MALLORY)
    assert told(http, lease, MALLORY) == [
        ("offered", None, {"offered_to": (None, None)}),
        ("transferred", None, {"project_id": (None, None), "user_id": (None, None)}),
        ("offered", None, {"offered_to": (None, "elsewhere")}),
        ("transferred", "mallory", {"project_id": (None, "elsewhere"), "user_id": (None, "mallory")}),
    ]
    first, last = (each for verb, _, each in told(http, lease, OPERATOR) if verb == "transferred")
    assert first["project_id"] == (PROJECT, "computing")
    assert last == {"project_id": ("computing", "elsewhere"), "user_id": ("turing", "mallory")}


def test_a_transfer_within_the_project_names_both_users_to_the_project_alone(world, http):
    lease = world.lease(a_host(), start=HOUR)
    offer(http, lease, {"user_id": "noether"})
    call(http, "POST", f"/transfers/{lease.id}/accept", token("noether", PROJECT))
    users = {"user_id": (lease.user_id, "noether"), "offered_to": (PROJECT, None)}
    assert told(http, lease, CURIE)[-1] == ("transferred", "noether", users)
    assert told(http, lease, OPERATOR)[-1] == ("transferred", "noether", users)
    call(http, "POST", f"/leases/{lease.id}/transfer", CURIE, TO_COMPUTING)
    call(http, "POST", f"/transfers/{lease.id}/accept", TURING)
    assert told(http, lease, TURING)[1] == (
        "transferred",
        None,
        {"user_id": (None, None), "offered_to": (None, None)},
    )


def test_1_0_knows_of_no_transfers(world, http):
    lease = world.lease(a_host(), start=HOUR)
    version = {"OpenStack-API-Version": "reservation 1.0", **CURIE}
    assert http.get("/v1/transfers", headers=version).status_code == 404
    offer(http, lease)
    assert "transfer" not in http.get(f"/v1/leases/{lease.id}", headers=version).json
