# SPDX-License-Identifier: Apache-2.0
"""``Idempotency-Key``: one lease for each key, also when answers are lost, requests race, or a creation is undone."""

from __future__ import annotations

import threading
from contextlib import suppress
from datetime import timedelta

import pytest
import sqlalchemy as sa

from blazar.model.base.errors import CloudUnavailable, ManagerUnavailable
from blazar.store.sql.tables import idempotency_keys, leases
from tests.api.conftest import app_of, token
from tests.observed import Killed, ObservedManager, ObservedStore

HOST = {"resource_type": "physical:host", "min": 1}
LEASE = {"name": "x", "end_date": "+2h", "reservations": [HOST]}
SERVERS = {"resource_type": "virtual:instance", "amount": 1, "vcpus": 1, "memory_mb": 512, "disk_gb": 1}


def post(client, key, body=LEASE, query="", **headers):
    sent = {"OpenStack-API-Version": "reservation 1.1", "Idempotency-Key": key, **token(), **headers}
    return client.post(f"/v1/leases{query}", json=body, headers=sent)


def code(answer):
    (fault,) = answer.json["errors"]
    return answer.status_code, fault["code"].partition(".")[2]


def count(world, table=leases):
    with world.engine.connect() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()


def test_the_same_request_gets_the_same_lease(http, world):
    first = post(http, '"abc"')
    assert (first.status_code, "Idempotency-Replayed" in first.headers) == (201, False)
    world.clock.by(hours=3)
    again = post(http, "abc")
    assert (again.status_code, again.headers["Idempotency-Replayed"]) == (201, "true")
    assert again.headers["Location"] == first.headers["Location"]
    assert again.headers["ETag"] == first.headers["ETag"]
    assert again.json == first.json
    assert count(world) == 1
    # What is meant by "now" and by durations does not count, but what was sent.
    assert again.json["lease"]["start_date"] == "2030-04-01T12:00:00Z"


def test_it_gets_the_lease_as_it_is_now_also_if_that_is_deleted(http, world):
    lease = post(http, "k").json["lease"]
    headers = {"OpenStack-API-Version": "reservation 1.1", **token()}
    assert http.delete(f"/v1/leases/{lease['id']}", headers=headers).status_code == 204
    again = post(http, "k")
    assert (again.status_code, again.json["lease"]["id"]) == (201, lease["id"])
    assert again.json["lease"]["deleted_at"] is not None


@pytest.mark.parametrize("body", [{**LEASE, "name": "y"}, {**LEASE, "end_date": "+120m"}, {"nonsense": 1}])
def test_another_request_with_the_key_is_refused(http, world, body):
    post(http, "k")
    assert code(post(http, "k", body)) == (409, "idempotency_key_reused")
    assert count(world) == 1


def test_the_order_of_keys_in_the_body_does_not_count(http, world):
    assert post(http, "k").json == post(http, "k", dict(reversed(LEASE.items()))).json


def test_a_key_is_that_of_one_user_in_one_project(http, world):
    made = {
        post(http, "k", **token(user, project)).json["lease"]["id"]
        for user, project in (("curie", "physics"), ("pierre", "physics"), ("curie", "art"))
    }
    assert len(made) == 3


def test_a_refusal_is_not_remembered(http, world):
    blocking = post(http, "first", {**LEASE, "reservations": [{**HOST, "min": 3}]}).json["lease"]
    assert code(post(http, "k")) == (409, "not_enough_resources")
    assert count(world, idempotency_keys) == 1
    headers = {"OpenStack-API-Version": "reservation 1.1", **token()}
    http.delete(f"/v1/leases/{blocking['id']}", headers=headers)
    assert post(http, "k").status_code == 201


def test_a_dry_run_has_no_key(http, world):
    assert post(http, "k", query="?dry_run=true").status_code == 200
    assert count(world, idempotency_keys) == 0
    assert post(http, "k", {**LEASE, "name": "y"}).status_code == 201


@pytest.mark.parametrize("key", ["", '""', "x" * 256, "a b", '"a', "é", '"a"b"'])
def test_a_malformed_key_is_refused(http, world, key):
    answer = post(http, key)
    assert code(answer) == (400, "invalid_value")
    assert answer.json["errors"][0]["header"] == "Idempotency-Key"
    assert count(world) == 0


def test_who_may_not_create_leases_learns_nothing_of_keys(http, world):
    post(http, "k")
    assert post(http, "k", **token("curie", "physics", "reader")).status_code == 403


def test_at_1_0_and_on_other_routes_the_header_is_ignored(http, world):
    old = {"name": "x", "start_date": "now", "end_date": "2030-04-01 14:00", "reservations": []}
    made = {
        http.post("/v1/leases", json=old, headers={"Idempotency-Key": "k", **token()}).json["lease"]["id"]
        for _ in range(2)
    }
    assert (len(made), count(world, idempotency_keys)) == (2, 0)


def test_a_creation_that_is_undone_takes_its_key_along(http, world):
    world.faults.fail_before("create_flavor", CloudUnavailable("no"))
    body = {**LEASE, "reservations": [SERVERS]}
    assert post(http, "k", body).status_code == 503
    assert count(world, idempotency_keys) == 0
    again = post(http, "k", body)
    assert (again.status_code, "Idempotency-Replayed" in again.headers) == (201, False)


def test_while_the_lease_is_being_made_a_repeat_is_told_to_wait(http, world):
    told, threads = [], []

    def meanwhile(name, phase):
        if name == "create_flavor" and not threads:
            # In a thread of its own, as a server does: Flask shares the context of nested requests in one thread.
            repeat = threading.Thread(target=lambda: told.append(post(http, "k", body)))
            threads.append(repeat)
            repeat.start()
            repeat.join(30)

    body = {**LEASE, "reservations": [SERVERS]}
    world.faults.on_call = meanwhile
    assert post(http, "k", body).status_code == 201
    assert code(told[0]) == (409, "request_in_progress")
    assert told[0].headers["Retry-After"] == "1"


def test_a_lost_answer_makes_no_second_lease(world):
    lost = [ManagerUnavailable("no answer"), ManagerUnavailable("no answer")]

    def around(called, call, *arguments, **more):
        done = call(*arguments, **more)
        if called == "leases.book" and lost:
            raise lost.pop()
        return done

    client = app_of(ObservedManager(world.manager, around)).test_client()
    refused = post(client, "k")
    assert code(refused) == (503, "manager_unavailable")
    assert refused.headers["Retry-After"] == "5"
    again = post(client, "k")
    assert (again.status_code, again.headers["Idempotency-Replayed"], count(world)) == (201, "true", 1)


@pytest.mark.sample(3)
@pytest.mark.parametrize("operation", range(12))
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_manager_that_dies_at_any_operation_leaves_one_lease_at_most(world, operation, after):
    done = [0]

    def around(called, call, *arguments, **more):
        done[0] += 1
        dies = done[0] == operation + 1
        if dies and not after:
            raise Killed
        result = call(*arguments, **more)
        if dies:
            raise Killed
        return result

    body = {**LEASE, "reservations": [SERVERS]}
    dying = world.another_manager(store=ObservedStore(world.store, around))
    with suppress(Killed):
        post(app_of(dying).test_client(), "k", body)
    client = app_of(world.manager).test_client()
    first = post(client, "k", body)
    if first.status_code != 201:
        assert code(first) == (409, "request_in_progress")
        world.clock.by(minutes=2)
        world.run()
    again = post(client, "k", body)
    assert again.status_code == 201, again.text
    assert post(client, "k", body).json == again.json
    headers = {"OpenStack-API-Version": "reservation 1.1", **token()}
    assert len(client.get("/v1/leases?state=all", headers=headers).json["leases"]) == 1


def test_keys_are_forgotten_after_a_day(http, world):
    post(http, "old")
    world.clock.by(hours=23)
    post(http, "young")
    assert world.manager.key_expiry.run_once() == 0
    world.clock.by(hours=2)
    assert world.manager.key_expiry.run_once() == 1
    assert count(world, idempotency_keys) == 1
    assert "Idempotency-Replayed" in post(http, "young").headers
    assert timedelta(hours=24) == world.settings.idempotency_retention


def test_of_many_at_once_one_makes_the_lease(world):
    app = app_of(world.manager)
    answers = []

    def send():
        answers.append(post(app.test_client(), "k"))

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = {a.json["lease"]["id"] for a in answers if a.status_code == 201}
    others = {code(a)[1] for a in answers if a.status_code != 201}
    assert len(made) == 1
    assert others <= {"request_in_progress"}
    assert (count(world), count(world, idempotency_keys)) == (1, 1)
