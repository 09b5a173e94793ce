# SPDX-License-Identifier: Apache-2.0
"""Surgery on leases over HTTP: who may do it, what comes back, and how it is refused."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.api.conftest import app_of, client_of, token
from tests.world import PROJECT, World, a_host

HOUR = timedelta(hours=1)
OPERATOR = token("root", "admin", "admin")


@pytest.fixture
def world(a_world) -> World:
    return a_world(hosts=4)


@pytest.fixture
def http(world):
    return client_of(app_of(world.manager))


def call(http, path: str, body=None, *, operator: bool = False, who: str = PROJECT, **headers):
    version = {"OpenStack-API-Version": "reservation 1.1"}
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    caller = OPERATOR if operator else token("curie", who)
    return http.post(path, json=body, headers={**version, **caller, **sent})


def swap_of(lease) -> str:
    return f"/v1/leases/{lease.id}/reservations/{lease.reservations[0].id}/swap"


def code(answer):
    (error,) = answer.json["errors"]
    return answer.status_code, error["code"].removeprefix("reservation."), error.get("pointer")


def label(world: World, lease) -> str:
    (found,) = {each.label for each in world.manager.leases.details(lease.id).held if not each.released}
    return found


def test_a_member_gives_up_a_host_and_gets_any_that_fits(world, http):
    lease = world.lease(a_host(), start=HOUR)
    before = label(world, lease)
    planned = call(http, f"{swap_of(lease)}?dry_run=true", {"host": before})
    assert planned.status_code == 200
    assert "ETag" not in planned.headers
    done = call(http, swap_of(lease), {"host": before, "for": None}, Idempotency_Key="once")
    (shown,) = done.json["leases"]
    (held,) = shown["reservations"][0]["allocations"]
    assert held["resource"]["id"] == label(world, lease) != before
    assert done.headers["ETag"] == f'"{world.now(lease).revision}.1.m"'
    again = call(http, swap_of(lease), {"host": before, "for": None}, Idempotency_Key="once")
    assert again.json == done.json
    assert again.headers["Idempotency-Replayed"] == "true"
    other = call(http, swap_of(lease), {"host": "else"}, Idempotency_Key="once")
    assert code(other) == (409, "idempotency_key_reused", None)


def test_naming_the_host_to_get_is_for_operators(world, http):
    lease = world.lease(a_host(), start=HOUR)
    (host,) = world.hosts_of(lease)
    free = min({"node-1", "node-2", "node-3", "node-4"} - {host})
    assert code(call(http, swap_of(lease), {"host": label(world, lease), "for": free}))[:2] == (403, "forbidden")
    assert call(http, swap_of(lease), {"host": host, "for": free}, operator=True).status_code == 200
    assert world.hosts_of(lease) == {free}


def test_an_unknown_host_a_changed_lease_and_a_missing_reservation_are_refused(world, http):
    lease = world.lease(a_host(), start=HOUR)
    assert code(call(http, swap_of(lease), {"host": "cn99"})) == (400, "unknown_reference", "/host")
    assert code(call(http, swap_of(lease), {})) == (400, "missing_field", "/host")
    stale = call(http, swap_of(lease), {"host": label(world, lease)}, If_Match='"7.1.m"')
    assert code(stale)[:2] == (412, "precondition_failed")
    missing = call(http, f"/v1/leases/{lease.id}/reservations/none/swap", {"host": "x"})
    assert code(missing)[:2] == (404, "reservation_not_found")


def test_leases_of_one_project_exchange_hosts_and_foreign_ones_are_not_there(world, http):
    lease, other = world.lease(a_host(), start=HOUR), world.lease(a_host(), start=HOUR)
    foreign = world.lease(a_host(), start=HOUR, project="chemistry")

    def body(partner):
        where = {"lease_id": partner.id, "reservation_id": partner.reservations[0].id}
        return {"host": label(world, lease), "for": label(world, partner), "with": where}

    mine, theirs = world.hosts_of(lease), world.hosts_of(other)
    done = call(http, swap_of(lease), body(other))
    assert [each["id"] for each in done.json["leases"]] == [lease.id, other.id]
    assert (world.hosts_of(lease), world.hosts_of(other)) == (theirs, mine)
    refused = call(http, swap_of(lease), body(foreign))
    assert code(refused) == (400, "unknown_reference", "/with/lease_id")
    without = {key: value for key, value in body(other).items() if key != "for"}
    assert code(call(http, swap_of(lease), without)) == (400, "missing_field", "/for")
    hosts = {"host": min(world.hosts_of(lease)), "for": min(world.hosts_of(foreign))}
    assert call(http, swap_of(lease), {**body(foreign), **hosts}, operator=True).status_code == 200


def test_a_lease_is_split_by_the_labels_of_hosts(world, http):
    lease = world.lease(a_host(2), start=HOUR)
    reservation = lease.reservations[0].id
    chosen = min(each.label for each in world.manager.leases.details(lease.id).held)
    body = {"name": "second", "reservations": [{"id": reservation, "resources": [chosen]}]}
    path = f"/v1/leases/{lease.id}/split"
    planned = call(http, f"{path}?dry_run=true", body)
    assert (planned.status_code, len(planned.json["leases"])) == (200, 2)
    done = call(http, path, body, Idempotency_Key="once")
    assert done.status_code == 201
    first, second = done.json["leases"]
    assert (first["id"], second["name"]) == (lease.id, "second")
    assert done.headers["Location"].endswith(f"/v1/leases/{second['id']}")
    held = [each["resource"]["id"] for r in second["reservations"] for each in r["allocations"]]
    assert held == [chosen]
    again = call(http, path, body, Idempotency_Key="once")
    assert (again.status_code, again.json, again.headers["Idempotency-Replayed"]) == (201, done.json, "true")


def test_a_lease_is_split_by_units_or_by_time(world, http):
    lease = world.lease(a_host(2), start=HOUR, hours=4)
    path, part = f"/v1/leases/{lease.id}/split", {"id": lease.reservations[0].id, "count": 1}
    at = "2030-04-01T15:00:00Z"
    assert code(call(http, path, {"name": "x"})) == (400, "missing_field", "/reservations")
    assert code(call(http, path, {"at": at, "reservations": [part]})) == (400, "invalid_value", "/at")
    assert code(call(http, path, {"at": "now"}))[0::2] == (400, "/at")
    both = {"reservations": [{**part, "resources": ["x"]}]}
    assert code(call(http, path, both)) == (400, "invalid_value", "/reservations/0/count")
    done = call(http, path, {"at": at})
    assert [each["end_date"] for each in done.json["leases"]] == [at, "2030-04-01T17:00:00Z"]


def test_two_leases_become_one_and_the_second_is_a_past_one(world, http):
    lease, other = world.lease(a_host(), start=HOUR), world.lease(a_host(), start=HOUR)
    path = f"/v1/leases/{lease.id}/merge"
    planned = call(http, f"{path}?dry_run=true", {"with": other.id})
    (shown,) = planned.json["leases"]
    assert len(shown["reservations"][0]["allocations"]) == 2
    done = call(http, path, {"with": other.id}, Idempotency_Key="once")
    assert done.status_code == 200
    world.run()
    again = call(http, path, {"with": other.id}, Idempotency_Key="once")
    assert (again.json, again.headers["Idempotency-Replayed"]) == (done.json, "true")
    version = {"OpenStack-API-Version": "reservation 1.1", **token("curie", PROJECT)}
    gone = http.get(f"/v1/leases/{other.id}", headers=version).json["lease"]
    assert (gone["status"], gone["end_reason"]) == ("TERMINATED", "merged")
    assert code(call(http, path, {"with": other.id}))[:2] == (400, "unknown_reference")


def test_a_foreign_lease_is_not_there_to_be_merged(world, http):
    lease, foreign = world.lease(a_host(), start=HOUR), world.lease(a_host(), start=HOUR, project="chemistry")
    path = f"/v1/leases/{lease.id}/merge"
    assert code(call(http, path, {"with": foreign.id})) == (400, "unknown_reference", "/with")
    assert code(call(http, path, {"with": foreign.id}, operator=True)) == (409, "invalid_state", "/with")
    assert code(call(http, path, {"with": lease.id})) == (400, "invalid_value", "/with")
