# SPDX-License-Identifier: Apache-2.0
"""Histories of leases over HTTP: what they tell, to whom, and what they keep to themselves."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.model.clock import zulu
from tests.api.conftest import app_of, client_of, token
from tests.world import NOON, PROJECT, World

HOUR = timedelta(hours=1)
VERSION = {"OpenStack-API-Version": "reservation 1.3"}
MEMBER = {**VERSION, **token("curie", PROJECT)}
OPERATOR = {**VERSION, **token("root", "admin", "admin")}


@pytest.fixture
def world(a_world) -> World:
    return a_world(hosts=4)


@pytest.fixture
def http(world):
    return client_of(app_of(world.manager))


def book(http, **more) -> str:
    body = {
        "name": "plan",
        "start_date": zulu(NOON + HOUR),
        "end_date": zulu(NOON + 3 * HOUR),
        "reservations": [{"resource_type": "physical:host", "min": 1, "max": 1}],
        **more,
    }
    answer = http.post("/v1/leases", json=body, headers=MEMBER)
    assert answer.status_code == 201, answer.json
    return answer.json["lease"]["id"]


def history(http, lease_id: str, headers=MEMBER, query: str = ""):
    answer = http.get(f"/v1/leases/{lease_id}/history{query}", headers=headers)
    assert answer.status_code == 200, answer.json
    return answer.json["history"]


def test_a_life_is_told_in_order_with_who_did_what(world, http):
    lease_id = book(http)
    (held,) = http.get(f"/v1/leases/{lease_id}", headers=MEMBER).json["lease"]["reservations"][0]["allocations"]
    http.put(f"/v1/leases/{lease_id}", json={"name": "other"}, headers=MEMBER)
    http.put(f"/v1/leases/{lease_id}", json={"end_date": zulu(NOON + 5 * HOUR)}, headers=MEMBER)
    world.run_to(world.clock.now() + 2 * HOUR)
    http.delete(f"/v1/leases/{lease_id}", headers=MEMBER)
    world.run()
    told = history(http, lease_id)
    assert [(each["verb"], each["by"]["kind"]) for each in told] == [
        ("created", "user"),
        ("changed", "user"),
        ("extended", "user"),
        ("started", "service"),
        ("deleted", "user"),
        ("ended", "user"),
    ]
    created, renamed, extended, *_ = told
    assert created["by"] == {"kind": "user", "user_id": "curie", "project_id": PROJECT}
    assert created["resources"][0]["come"] == [held["resource"]["id"]]
    assert [(each["field"], each["before"], each["after"]) for each in renamed["changes"]] == [
        ("name", "plan", "other")
    ]
    assert [each["field"] for each in extended["changes"]] == ["end_date"]
    assert told[-2]["reason"] == "deleted"


def test_a_lease_that_ended_by_itself_says_so_and_is_deleted_later(world, http):
    lease_id = book(http)
    world.run_to(NOON + 4 * HOUR)
    http.delete(f"/v1/leases/{lease_id}", headers=MEMBER)
    world.run()
    told = [(each["verb"], each["by"]["kind"], each["reason"]) for each in history(http, lease_id)]
    assert told[2:] == [("ended", "service", "ended"), ("deleted", "user", None)]


def test_a_page_goes_on_where_the_last_one_ended(http):
    lease_id = book(http)
    for number in range(4):
        http.put(f"/v1/leases/{lease_id}", json={"name": f"n{number}"}, headers=MEMBER)
    url = f"/v1/leases/{lease_id}/history?limit=2&with_count=true"
    found, pages = [], 0
    while url:
        answer = http.get(url, headers=MEMBER).json
        assert answer["count"] == 5
        found += [each["id"] for each in answer["history"]]
        url = next((link["href"] for link in answer["links"] if link["rel"] == "next"), None)
        pages += 1
    assert (len(found), len(set(found)), pages) == (5, 5, 3)
    newest = history(http, lease_id, query="?sort_dir=desc&limit=1")
    assert newest[0]["id"] == found[-1]
    assert [each["id"] for each in history(http, lease_id, query=f"?marker={found[3]}")] == found[4:]
    refused = http.get(f"/v1/leases/{lease_id}/history?marker=none", headers=MEMBER)
    assert (refused.status_code, refused.json["errors"][0]["code"]) == (400, "reservation.invalid_marker")


def test_an_operator_is_not_named_to_users_of_other_projects(http):
    lease_id = book(http)
    http.put(f"/v1/leases/{lease_id}", json={"name": "by root"}, headers=OPERATOR)
    assert history(http, lease_id)[-1]["by"] == {"kind": "operator", "user_id": None, "project_id": None}
    shown = history(http, lease_id, OPERATOR)[-1]["by"]
    assert shown == {"kind": "operator", "user_id": "root", "project_id": "admin"}


def test_surgery_is_told_by_its_name_on_each_lease_that_it_changed(world, http):
    whole = book(http, reservations=[{"resource_type": "physical:host", "min": 3, "max": 3}])
    reservation = http.get(f"/v1/leases/{whole}", headers=MEMBER).json["lease"]["reservations"][0]
    body = {"reservations": [{"id": reservation["id"], "count": 1}]}
    first, second = http.post(f"/v1/leases/{whole}/split", json=body, headers=MEMBER).json["leases"]
    assert [each["verb"] for each in history(http, first["id"])] == ["created", "split"]
    assert [each["verb"] for each in history(http, second["id"])] == ["split"]
    merged = http.post(f"/v1/leases/{whole}/merge", json={"with": second["id"]}, headers=MEMBER)
    assert merged.status_code == 200
    assert [each["verb"] for each in history(http, whole)] == ["created", "split", "merged"]
    assert history(http, second["id"])[1]["verb"] == "merged"
    host = http.get(f"/v1/leases/{whole}", headers=MEMBER).json["lease"]["reservations"][0]["allocations"][0]
    path = f"/v1/leases/{whole}/reservations/{reservation['id']}/swap"
    done = http.post(path, json={"host": host["resource"]["id"]}, headers=MEMBER)
    assert done.status_code == 200, done.json
    swapped = history(http, whole)[-1]
    assert swapped["verb"] == "swapped"
    assert swapped["resources"][0]["gone"] == [host["resource"]["id"]]
    assert len(swapped["resources"][0]["come"]) == 1


def test_a_dry_run_and_a_refusal_leave_nothing(http):
    lease_id = book(http)
    http.put(f"/v1/leases/{lease_id}?dry_run=true", json={"name": "x"}, headers=MEMBER)
    http.put(f"/v1/leases/{lease_id}", json={"end_date": "+P9999D"}, headers={**MEMBER, "If-Match": '"0.3"'})
    assert len(history(http, lease_id)) == 1
