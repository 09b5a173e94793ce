# SPDX-License-Identifier: Apache-2.0
"""Microversion 1.1: what leases that nobody uses show, and how they are kept."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from blazar.cmd.db_manage import unused_lines
from blazar.manager.common.settings import Settings
from blazar.model.use.policy import UseMode, UsePolicies, UsePolicy
from tests.api.conftest import app_of, client_of, token
from tests.world import NOON, PROJECT, World

HOUR = timedelta(hours=1)
OPERATOR = token("root", "admin", "admin")


@pytest.fixture
def on(a_world) -> World:
    return a_world(settings=Settings(use_policies=UsePolicies(UsePolicy(UseMode.ON))))


@pytest.fixture
def http(on):
    return client_of(app_of(on.manager))


def call(http, method: str, path: str, *, version: str = "1.1", operator: bool = False):
    headers = {"OpenStack-API-Version": f"reservation {version}"}
    return http.open(path, method=method, headers={**headers, **(OPERATOR if operator else token("curie", PROJECT))})


def use(http, lease, **more):
    shown = call(http, "GET", f"/v1/leases/{lease.id}", **more).json["lease"]
    return tuple(shown.get(key, "-") for key in ("usage", "used_at", "release_at", "end_reason"))


def test_a_lease_says_that_it_is_unused_and_when_it_is_released(on, http):
    lease = on.lease(hours=48)
    assert use(http, lease) == (None, None, None, None)
    on.run()
    assert use(http, lease) == ("unknown", None, None, None)
    on.run_to(NOON + 6 * HOUR)
    assert use(http, lease) == ("unused", None, "2030-04-01T21:00:00Z", None)
    assert use(http, lease, version="1.0") == ("-",) * 4
    listed = call(http, "GET", "/v1/leases").json["leases"]
    assert [each["release_at"] for each in listed] == ["2030-04-01T21:00:00Z"]
    on.run_to(NOON + 9 * HOUR + timedelta(minutes=1))
    assert use(http, lease)[2:] == (None, "unused")


def test_its_owner_keeps_it_once_and_an_operator_as_often_as_need_be(on, http):
    lease = on.lease(hours=96)
    on.run()
    keep = f"/v1/leases/{lease.id}/keep"
    early = call(http, "POST", keep)
    assert (early.status_code, early.json["errors"][0]["code"]) == (409, "reservation.not_threatened")
    on.run_to(NOON + 7 * HOUR)
    kept = call(http, "POST", keep)
    assert (kept.status_code, kept.json["lease"]["release_at"]) == (200, None)
    assert "ETag" in kept.headers
    on.run_to(NOON + 14 * HOUR)
    again = call(http, "POST", keep)
    assert (again.status_code, again.json["errors"][0]["code"]) == (409, "reservation.kept_already")
    assert call(http, "POST", keep, operator=True).status_code == 200
    assert call(http, "POST", keep, version="1.0").status_code == 404


def test_an_operator_holds_it_and_lets_go(on, http):
    lease = on.lease(hours=96)
    on.run()
    hold = f"/v1/leases/{lease.id}/hold"
    assert call(http, "PUT", hold).status_code == 403
    first, again = (call(http, "PUT", hold, operator=True) for _ in range(2))
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json["lease"]["revision"] == again.json["lease"]["revision"]
    assert first.json["lease"]["held"] is True
    on.run_to(NOON + 24 * HOUR)
    assert call(http, "GET", f"/v1/leases/{lease.id}").json["lease"]["held"] is True
    assert use(http, lease)[2:] == (None, None)
    first, again = (call(http, "DELETE", hold, operator=True) for _ in range(2))
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json["lease"]["revision"] == again.json["lease"]["revision"]
    assert first.json["lease"]["held"] is False
    on.run_to(NOON + 36 * HOUR)
    assert use(http, lease)[3] == "unused"
    # Who works in another project is not named to the owner.
    told = call(http, "GET", f"/v1/leases/{lease.id}/history").json["history"]
    assert [(each["verb"], each["by"]) for each in told if each["by"]["kind"] == "operator"] == [
        ("held", {"kind": "operator", "user_id": None, "project_id": None}),
        ("let_go", {"kind": "operator", "user_id": None, "project_id": None}),
    ]
    assert [each["verb"] for each in told if each["verb"] in ("kept", "changed")] == []


def test_no_request_makes_the_event_of_a_look(http):
    event = {"event_type": "usage_check", "event_date": "2030-04-02 12:00"}
    body = {"name": "x", "start_date": "now", "end_date": "2030-04-03 12:00", "reservations": [], "events": [event]}
    refused = http.post("/v1/leases", json=body, headers=token("curie", PROJECT))
    assert (refused.status_code, "event_type" in refused.text) == (400, True)


def test_the_report_has_every_lease_that_is_looked_at_with_its_history(on):
    lease = on.lease(hours=48)
    on.run()
    on.run_to(NOON + 6 * HOUR)
    head, row = unused_lines(on.store.unused, as_json=False)
    assert head.split()[:4] == ["id", "project", "mode", "usage"]
    assert row.split()[:5] == [lease.id, PROJECT, "on", "unused", "2030-04-01T21:00:00Z"]
    (line,) = unused_lines(on.store.unused, as_json=True)
    looks = json.loads(line)["looks"]
    assert [(each["step"], each["usage"]) for each in looks] == [("warned", "unused")]
