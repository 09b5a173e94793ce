# SPDX-License-Identifier: Apache-2.0
"""Histories of leases over HTTP: what they tell, to whom, and what they keep to themselves."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from blazar.model.base.clock import zulu
from blazar.store.sql.tables import journal
from blazar.store.store import Store, StoreLimits
from tests.api.conftest import app_of, client_of, token
from tests.statements import counted
from tests.world import NOON, PROJECT, World

HOUR = timedelta(hours=1)
VERSION = {"OpenStack-API-Version": "reservation 1.1"}
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
    ]
    created, renamed, extended, *_ = told
    assert created["by"] == {"kind": "user", "user_id": "curie", "project_id": PROJECT}
    assert created["resources"][0]["come"] == [held["resource"]["id"]]
    assert [(each["field"], each["before"], each["after"]) for each in renamed["changes"]] == [
        ("name", "plan", "other")
    ]
    assert [each["field"] for each in extended["changes"]] == ["end_date"]
    assert told[-1]["reason"] == "deleted"


def test_who_ends_a_lease_early_is_told_once(world, http):
    lease_id = book(http, start_date="now", end_date=zulu(NOON + 100 * HOUR))
    world.run_to(world.clock.now() + HOUR)
    ended = zulu(world.clock.now())
    answer = http.put(f"/v1/leases/{lease_id}", json={"end_date": "now"}, headers=MEMBER)
    assert (answer.json["lease"]["status"], answer.json["lease"]["end_reason"]) == ("ACTIVE", "ended_early")
    world.run()
    lease = http.get(f"/v1/leases/{lease_id}", headers=MEMBER).json["lease"]
    assert (lease["status"], lease["end_date"], lease["end_reason"]) == ("TERMINATED", ended, "ended_early")
    told = history(http, lease_id)
    assert [(each["verb"], each["by"]["kind"]) for each in told] == [
        ("created", "user"),
        ("started", "service"),
        ("ended", "user"),
    ]
    assert (told[-1]["reason"], told[-1]["by"]["user_id"]) == ("ended_early", "curie")
    assert [each["field"] for each in told[-1]["changes"]] == ["end_date"]


def test_an_early_end_that_is_taken_back_in_time_is_no_reason_of_the_end(world, http):
    lease_id = book(http, start_date="now", end_date=zulu(NOON + 100 * HOUR))
    world.run_to(world.clock.now() + HOUR)
    http.put(f"/v1/leases/{lease_id}", json={"end_date": "now"}, headers=MEMBER)
    end = zulu(NOON + 50 * HOUR)
    lease = http.put(f"/v1/leases/{lease_id}", json={"end_date": end}, headers=MEMBER).json["lease"]
    assert (lease["status"], lease["end_date"], lease["end_reason"]) == ("ACTIVE", end, None)
    assert lease["before_end_date"] > zulu(world.clock.now())
    world.run_to(NOON + 50 * HOUR)
    assert history(http, lease_id)[-1]["reason"] == "ended"


def test_a_change_of_nothing_but_the_warning_or_how_far_it_goes_on_is_told(http):
    lease_id = book(http)
    for change in ({"before_end_date": "-PT30M"}, {"extend_if_free": {"until": "+P1D"}}, {"extend_if_free": None}):
        assert http.put(f"/v1/leases/{lease_id}", json=change, headers=MEMBER).status_code == 200
    told = history(http, lease_id)[1:]
    assert [(each["verb"], each["by"]["user_id"]) for each in told] == [("changed", "curie")] * 3
    until = zulu(NOON + 27 * HOUR)
    assert [[(c["field"], c["before"], c["after"]) for c in each["changes"]] for each in told] == [
        [("before_end_date", zulu(NOON + 2 * HOUR), zulu(NOON + 2.5 * HOUR))],
        [("extend_if_free", None, until)],
        [("extend_if_free", until, None)],
    ]


def test_a_lease_that_is_deleted_before_its_start_has_not_ended_as_well(world, http):
    lease_id = book(http)
    http.delete(f"/v1/leases/{lease_id}", headers=MEMBER)
    world.run()
    assert [each["verb"] for each in history(http, lease_id)] == ["created", "deleted"]


def test_a_lease_that_ended_by_itself_says_so_and_is_deleted_later(world, http):
    lease_id = book(http)
    world.run_to(NOON + 4 * HOUR)
    http.delete(f"/v1/leases/{lease_id}", headers=MEMBER)
    world.run()
    told = [(each["verb"], each["by"]["kind"], each["reason"]) for each in history(http, lease_id)]
    assert told[2:] == [("before_end", "service", None), ("ended", "service", "ended"), ("deleted", "user", None)]


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


@pytest.mark.slow
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


@pytest.mark.slow
def test_no_id_of_another_project_is_in_a_history(a_world):
    """However a lease came to a project: entries name nothing that is another project's, and are counted one by one."""
    world = a_world(hosts=6)
    http = client_of(app_of(world.manager))
    taker = {**VERSION, **token("turing", "computing")}
    three = [{"resource_type": "physical:host", "min": 2, "max": 2}, {"resource_type": "physical:host", "min": 1}]

    def parts(lease_id: str) -> list[str]:
        shown = http.get(f"/v1/leases/{lease_id}", headers=OPERATOR).json["lease"]
        return [each["id"] for each in shown["reservations"]]

    whole = book(http, reservations=three)
    first, second = parts(whole)
    change = {"reservations": [{"id": first, "min": 3, "max": 3}, {"id": second, "before_end": "none"}]}
    assert http.put(f"/v1/leases/{whole}", json=change, headers=MEMBER).status_code == 200
    for body in ({"reservations": [{"id": second}]}, {"reservations": [{"id": first, "count": 1}]}):
        assert http.post(f"/v1/leases/{whole}/split", json=body, headers=MEMBER).status_code == 201
    at = {"at": zulu(NOON + 2 * HOUR)}
    later = http.post(f"/v1/leases/{whole}/split", json=at, headers=MEMBER).json["leases"][1]["id"]
    merged = book(http, end_date=zulu(NOON + 2 * HOUR))
    assert http.post(f"/v1/leases/{whole}/merge", json={"with": merged}, headers=MEMBER).status_code == 200
    for lease in (whole, later):
        offered = http.post(f"/v1/leases/{lease}/transfer", json={"project_id": "computing"}, headers=MEMBER)
        assert offered.status_code == 201, offered.json
        assert http.post(f"/v1/transfers/{lease}/accept", headers=taker).status_code == 200
    world.run()
    every = http.get("/v1/leases?limit=1000", headers=OPERATOR).json["leases"]
    ids = {each["id"]: [each["id"], *parts(each["id"])] for each in every} | {merged: [merged, *parts(merged)]}
    owners = dict.fromkeys(ids, MEMBER) | {whole: taker, later: taker}
    verbs = set()
    for lease, headers in owners.items():
        told = history(http, lease, headers)
        foreign = {id_ for other, named in ids.items() if owners[other] is not headers for id_ in named}
        assert [id_ for id_ in foreign if id_ in str(told)] == []
        assert PROJECT not in str(told) or headers is MEMBER
        assert [each["id"] for each in told] == [str(number) for number in range(1, len(told) + 1)]
        verbs |= {each["verb"] for each in told}
    assert {"split", "merged", "offered", "transferred", "changed"} <= verbs
    assert merged in str(history(http, whole, OPERATOR))


@pytest.mark.slow
def test_a_long_history_has_its_first_and_last_entries_and_says_what_is_left_out(sqlite):
    world = World(sqlite)
    store = Store(sqlite, limits=StoreLimits(history_entries=10))
    http = client_of(app_of(world.another_manager(store=store)))
    lease_id = book(http)
    rows = sa.select(sa.func.count()).select_from(journal).where(journal.c.object_id == lease_id)
    counts = []
    for number in range(160):
        with counted(sqlite) as statements:
            http.put(f"/v1/leases/{lease_id}", json={"name": f"n{number}"}, headers=MEMBER)
        store.journal.number(500, now=NOON)
        with sqlite.connect() as connection:
            assert connection.execute(rows).scalar_one() <= 100 + 1 + 10 + 10
        counts.append(statements.count)
    assert max(counts) <= counts[0]
    told = history(http, lease_id, query="?limit=1000")
    (out,) = [each for each in told if each["verb"] == "left_out"]
    assert [each["id"] for each in told[:100]] == [str(number) for number in range(1, 101)]
    (entries,) = out["changes"]
    assert (out["by"]["kind"], entries["field"], int(out["id"])) == ("service", "entries", 100 + int(entries["after"]))
    after = [int(each["id"]) for each in told[101:]]
    assert after == list(range(int(out["id"]) + 1, 162))
    assert len(after) >= 10
    assert told[-1]["changes"][0]["after"] == "n159"
    page = history(http, lease_id, query=f"?marker={out['id']}&limit=2")
    assert [int(each["id"]) for each in page] == after[:2]
    http.delete(f"/v1/leases/{lease_id}", headers=MEMBER)
    with sqlite.connect() as connection:
        assert connection.execute(rows).scalar_one() <= 100 + 1 + 10 + 10
