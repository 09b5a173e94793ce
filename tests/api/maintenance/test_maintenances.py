# SPDX-License-Identifier: Apache-2.0
"""``/v1/maintenances``: windows as operators see them, and what nobody else does."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.api.conftest import app_of, client_of, token
from tests.world import NOON, PROJECT, World, a_host

HOUR = timedelta(hours=1)
OPERATOR = token("root", "admin", "admin")
URL = "/v1/maintenances"


@pytest.fixture
def world(a_world) -> World:
    return a_world(hosts=3)


@pytest.fixture
def http(world):
    return client_of(app_of(world.manager))


def call(http, method: str, path: str = URL, body=None, *, version: str = "1.1", operator: bool = True, **headers):
    who = OPERATOR if operator else token("curie", PROJECT)
    version = {"OpenStack-API-Version": f"reservation {version}"}
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return http.open(path, method=method, json=body, headers={**version, **who, **sent})


def asked(*hosts: str, **more):
    return {
        "name": "firmware",
        "start_date": "2030-04-01T13:00:00Z",
        "end_date": "+PT4H",
        **({"hosts": list(hosts)} if hosts else {}),
        **more,
    }


def code(answer):
    (error,) = answer.json["errors"]
    return answer.status_code, error["code"].removeprefix("reservation."), error.get("pointer")


def test_a_window_from_its_impact_to_its_end(world, http):
    lease = world.lease(a_host(), start=2 * HOUR)
    (name,) = world.hosts_of(lease)
    host = name.removeprefix("node-")
    impact = call(http, "POST", f"{URL}?dry_run=true", asked(host))
    assert impact.status_code == 200
    assert impact.json["impact"]["summary"]["moved"] == 1
    (found,) = impact.json["impact"]["leases"]
    assert (found["lease_id"], found["outcome"], found["hosts"], found["done"]) == (lease.id, "moved", [host], False)
    assert call(http, "GET").json["maintenances"] == []
    made = call(http, "POST", URL, asked(host, impact_id=impact.json["impact"]["id"], reason="new disks"))
    assert made.status_code == 201
    one = made.headers["Location"]
    shown = call(http, "GET", one)
    assert shown.json == made.json
    assert shown.headers["ETag"] == made.headers["ETag"]
    assert shown.json["maintenance"]["leases"][0]["moves"] == found["moves"]
    assert [each["name"] for each in call(http, "GET", f"{URL}?status=PLANNED").json["maintenances"]] == ["firmware"]
    assert call(http, "GET", f"{URL}?status=DONE&with_count=true").json["count"] == 0
    longer = call(http, "PATCH", one, {"end_date": "+PT6H", "name": "disks"}, If_Match=made.headers["ETag"])
    assert longer.json["maintenance"]["end_date"] == "2030-04-01T19:00:00Z"
    stale = call(http, "PATCH", one, {"name": "again"}, If_Match=made.headers["ETag"])
    assert code(stale)[:2] == (412, "precondition_failed")
    assert code(call(http, "POST", f"{one}/end"))[:2] == (409, "invalid_state")
    world.clock.to(NOON + HOUR)
    world.manager.maintenance_work.run_once()
    assert code(call(http, "DELETE", one))[:2] == (409, "invalid_state")
    ended = call(http, "POST", f"{one}/end")
    assert (ended.status_code, ended.json["maintenance"]["status"]) == (200, "ENDING")
    assert call(http, "GET", f"{URL}/nothing").status_code == 404


def test_a_lease_in_use_is_migrated_if_that_is_asked_for(world, http):
    lease = world.lease(a_host(), hours=12)
    world.run()
    (name,) = world.hosts_of(lease)
    host = name.removeprefix("node-")
    listed = call(http, "POST", f"{URL}?dry_run=true", asked(host)).json["impact"]
    assert (listed["leases"][0]["outcome"], listed["leases"][0]["note"]) == ("active", None)
    impact = call(http, "POST", f"{URL}?dry_run=true", asked(host, active="migrate")).json["impact"]
    assert impact["summary"]["migrated"] == 1
    assert (impact["leases"][0]["hosts"], impact["leases"][0]["done"]) == ([host], False)
    made = call(http, "POST", URL, asked(host, active="migrate", impact_id=impact["id"]))
    assert made.json["maintenance"]["active"] == "migrate"
    for _ in range(3):
        world.clock.by(seconds=5)
        world.manager.maintenance_work.run_once()
    (shown,) = call(http, "GET", made.headers["Location"]).json["maintenance"]["leases"]
    assert (shown["outcome"], shown["done"], shown["note"]) == ("migrated", True, None)
    assert [(move["from_host"], move["count"]) for move in shown["moves"]] == [(host, 1)]
    assert name not in world.hosts_of(lease)


def test_what_has_become_of_leases_is_read_with_the_tag_of_before(world, http):
    lease = world.lease(a_host(), start=2 * HOUR)
    (name,) = world.hosts_of(lease)
    made = call(http, "POST", URL, asked(name.removeprefix("node-")))
    one, tag = made.headers["Location"], made.headers["ETag"]
    assert call(http, "GET", one, If_None_Match=tag).status_code == 304
    world.manager.maintenance_work.run_once()
    moved = call(http, "GET", one, If_None_Match=tag)
    assert moved.json["maintenance"]["leases"][0]["done"]
    assert moved.headers["ETag"] != tag
    # The window itself is as it was.
    assert call(http, "PATCH", one, {"name": "disks"}, If_Match=tag).status_code == 200


def test_a_window_is_cancelled_before_its_start(world, http):
    one = call(http, "POST", URL, asked("1")).headers["Location"]
    assert call(http, "PATCH", f"{one}?dry_run=true", {"end_date": "+PT9H"}).json["impact"]["leases"] == []
    assert call(http, "DELETE", one).status_code == 204
    assert call(http, "GET", one).json["maintenance"]["status"] == "CANCELLED"


def test_an_impact_that_has_changed_is_refused_with_that_of_now(world, http):
    lease = world.lease(a_host(), start=2 * HOUR)
    (name,) = world.hosts_of(lease)
    host = name.removeprefix("node-")
    shown = call(http, "POST", f"{URL}?dry_run=true", asked(host)).json["impact"]
    world.change(lease, name="another name")
    refused = call(http, "POST", URL, asked(host, impact_id=shown["id"]))
    assert code(refused)[:2] == (409, "impact_changed")
    now = refused.json["errors"][0]["data"]["impact"]
    assert now["leases"][0]["name"] == "another name"
    assert call(http, "POST", URL, asked(host, impact_id=now["id"])).status_code == 201


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (asked(), (400, "missing_field", "/hosts")),
        ({**asked("1"), "name": "  "}, (400, "invalid_value", "/name")),
        ({**asked("1"), "hosts": ["1", None]}, (400, "invalid_value", "/hosts/1")),
        (asked("1", requirement=["==", "$vcpus", "8"]), (400, "invalid_value", "/requirement")),
        (asked("4711"), (400, "unknown_reference", "/hosts")),
        (asked(requirement=["==", "$rack", "r7"]), (400, "unknown_property", "/requirement")),
        (asked("1", active="end"), (400, "invalid_value", "/active")),
        (asked("1", end_date="now"), (400, "invalid_date", "/end_date")),
        (asked("1", end_date="2030-04-01T12:59:00Z"), (400, "invalid_window", "/end_date")),
        (asked("1", start_date="2030-04-01T11:00:00Z"), (400, "date_in_past", "/start_date")),
        (asked("1", pending="kill"), (400, "invalid_value", "/pending")),
        (asked("1", unknown=1), (400, "unknown_field", "/unknown")),
    ],
)
def test_what_is_wrong_with_a_request_is_named(http, body, expected):
    assert code(call(http, "POST", URL, body)) == expected


def test_windows_are_for_operators_and_from_1_3_on(world, http):
    one = call(http, "POST", URL, asked("1")).headers["Location"]
    calls = (
        ("GET", URL, None),
        ("POST", URL, asked("1")),
        ("GET", one, None),
        ("PATCH", one, {"name": "x"}),
        ("DELETE", one, None),
        ("POST", f"{one}/end", None),
    )
    for method, path, body in calls:
        assert call(http, method, path, body, operator=False).status_code == 403
        assert call(http, method, path, body, version="1.0").status_code == 404


def test_the_calendar_says_maintenance(world, http):
    call(http, "POST", URL, asked("1", reason="new disks"))
    range_ = "from=2030-04-01T12:00:00Z&to=2030-04-01T20:00:00Z"

    def blocks(**more):
        answer = call(http, "GET", f"/v1/calendar?{range_}", **more)
        rows = answer.json["calendar"]["resources"]
        return [(b["code"], b["start"], b["end"], b["reason"]) for row in rows for b in row["blocks"]]

    span = ("2030-04-01T13:00:00Z", "2030-04-01T17:00:00Z")
    assert blocks() == [("maintenance", *span, "new disks")]
    assert blocks(operator=False) == [("maintenance", *span, None)]
