# SPDX-License-Identifier: Apache-2.0
"""Microversion 1.1: leases that wait for their turn, and what those see of them who know nothing of that."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.manager.common.settings import Settings
from blazar.model.base.errors import CloudRefused
from blazar.model.leases.states import LeaseKind
from tests.api.conftest import app_of, client_of, token
from tests.world import NOON, World, a_host

HOST = {"resource_type": "physical:host", "min": 3}
WAITING = {"name": "ours", "end_date": "+2h", "wait": {"until": "+1d"}, "reservations": [HOST]}


@pytest.fixture
def world(sqlite) -> World:
    """All of its three hosts are in use for two hours."""
    world = World(sqlite)
    world.waits = True
    world.lease(a_host(3), project="biology")
    world.run()
    return world


@pytest.fixture
def http(world):
    return client_of(app_of(world.manager))


def ask(http, method="POST", path="/v1/leases", body=None, version="1.1", **headers):
    sent = {"OpenStack-API-Version": f"reservation {version}", **(headers or token())}
    return http.open(path, method=method, json=body, headers=sent)


def fault(answer):
    (found,) = answer.json["errors"]
    return answer.status_code, found["code"].partition(".")[2], found.get("pointer")


def hours(lease) -> list[str]:
    """Return when a lease starts, warns and ends; its dates and its events say the same."""
    found = [lease[key][11:16] for key in ("start_date", "before_end_date", "end_date")]
    assert [each["time"][11:16] for each in lease["events"]] == found
    return found


def test_a_lease_tells_how_it_waits_and_then_starts(http, world):
    answer = ask(http, body=WAITING)
    lease = answer.json["lease"]
    assert (answer.status_code, lease["status"]) == (201, "WAITING")
    until = {"queued_at": "2030-04-01T12:00:00Z", "until": "2030-04-02T12:00:00Z"}
    until |= {"earliest": "2030-04-01T12:00:00Z"}
    until |= {"latest": None, "at_least": None, "advance": False, "max_price": None, "tries": None, "failed_tries": []}
    assert lease["wait"] == {**until, "position": None, "estimated_start": None, "reason": None}
    world.run()
    lease = ask(http, "GET", f"/v1/leases/{lease['id']}").json["lease"]
    assert lease["wait"] == {**until, "position": 1, "estimated_start": "2030-04-01T14:00:00Z", "reason": None}
    assert hours(lease) == ["14:00", "15:00", "16:00"]
    world.run_to(NOON + timedelta(hours=2))
    lease = ask(http, "GET", f"/v1/leases/{lease['id']}").json["lease"]
    assert (lease["status"], lease["wait"]) == ("ACTIVE", None)


def test_the_list_has_it_and_can_be_filtered(http, world):
    ask(http, body=WAITING)
    world.run()
    (found,) = ask(http, "GET", "/v1/leases?status=WAITING&fields=name,wait").json["leases"]
    assert (found["name"], found["wait"]["position"]) == ("ours", 1)


def test_a_lease_that_waited_in_vain_says_so(http, world):
    id_ = ask(http, body={**WAITING, "wait": {"until": "2030-04-01T13:00:00Z"}}).json["lease"]["id"]
    world.run()
    lease = ask(http, "GET", f"/v1/leases/{id_}").json["lease"]
    assert (lease["wait"]["estimated_start"], hours(lease)) == (None, ["12:00", "13:00", "14:00"])
    assert lease["wait"]["reason"] == (
        "it would fit from 2030-04-01 14:00 UTC on, but it waits only until 2030-04-01 13:00 UTC"
    )
    world.run_to(NOON + timedelta(hours=1))
    lease = ask(http, "GET", f"/v1/leases/{id_}").json["lease"]
    assert hours(lease) == ["12:00", "13:00", "14:00"], "as it was asked for"
    assert (lease["status"], lease["wait"]["until"], lease["end_reason"]) == ("TIMED_OUT", "2030-04-01T13:00:00Z", None)
    assert fault(ask(http, "PUT", f"/v1/leases/{id_}", {"end_date": "+5h"})) == (409, "lease_ended", None)
    assert ask(http, "DELETE", f"/v1/leases/{id_}").status_code == 204


def test_a_lease_that_was_deleted_while_it_waited_has_one_timetable(http, world):
    id_ = ask(http, body=WAITING).json["lease"]["id"]
    world.run()
    assert ask(http, "DELETE", f"/v1/leases/{id_}").status_code == 204
    world.run()
    (lease,) = [each for each in ask(http, "GET", "/v1/leases?state=past").json["leases"] if each["id"] == id_]
    assert hours(lease)[0] == "14:00"
    assert (lease["end_reason"], lease["wait"]) == ("left_line", None), "it had nothing that could end"


@pytest.mark.parametrize(
    ("wait", "shown"), [("+1d", "CREATING"), ("+1h", "ERROR")], ids=["while it waits", "when it has in vain"]
)
def test_at_1_0_programs_see_a_state_that_they_know(http, world, wait, shown):
    id_ = ask(http, body={**WAITING, "wait": {"until": wait}}).json["lease"]["id"]
    world.run_to(NOON + timedelta(hours=1))
    lease = ask(http, "GET", f"/v1/leases/{id_}", version="1.0").json["lease"]
    assert (lease["status"], "wait" in lease) == (shown, False)
    assert shown in {each["status"] for each in ask(http, "GET", "/v1/leases", version="1.0").json["leases"]}
    assert http.get(f"/v2/leases/{id_}", headers=token()).json["status"] == shown


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("wait", "pointer"),
    [
        ({"until": "now"}, "/wait/until"),
        ({"until": "2030-04-01T12:00:00Z"}, "/wait/until"),
        ({"until": "+3y"}, "/wait/until"),
        ({"until": "P800D"}, "/wait/until"),
        ({"until": "+800d"}, "/wait/until"),
        ({"until": "soon"}, "/wait/until"),
        ({"until": 5}, "/wait/until"),
        ({}, "/wait/until"),
        ({"until": "+1d", "tries": 3}, "/wait/tries"),
        ({"until": "+1d", "tries": 0}, "/wait/tries"),
        ({"until": "+1d", "latest": "2030-04-01T11:00:00Z"}, "/wait/latest"),
        ({"until": "+1d", "latest": "now"}, "/wait/latest"),
        ({"until": "+1d", "latest": "P1D"}, "/wait/latest"),
        ({"until": "+1d", "at_least": "PT3H"}, "/wait/at_least"),
        ({"until": "+1d", "at_least": "+PT1H"}, "/wait/at_least"),
        ({"until": "+1d", "at_least": "PT0S"}, "/wait/at_least"),
        ({"until": "+1d", "at_least": 3600}, "/wait/at_least"),
        ({"until": "+1d", "tries": True}, "/wait/tries"),
        ({"until": "+1d", "trials": 3}, "/wait/trials"),
        ("+1d", "/wait"),
        (True, "/wait"),
    ],
)
def test_a_wait_that_cannot_be_is_refused_with_its_place(http, wait, pointer):
    assert fault(ask(http, body={**WAITING, "wait": wait}))[::2] == (400, pointer)
    assert [each["name"] for each in ask(http, "GET", "/v1/leases").json["leases"]] == []


def test_a_dry_run_says_that_it_would_wait(http, world):
    dry = ask(http, path="/v1/leases?dry_run=true", body=WAITING)
    lease = dry.json["lease"]
    assert (dry.status_code, lease["status"], lease["id"]) == (200, "WAITING", None)
    assert (lease["wait"]["until"], lease["wait"]["position"]) == ("2030-04-02T12:00:00Z", None)
    assert ask(http, "GET").json["leases"] == []
    fits = ask(http, path="/v1/leases?dry_run=true", body={**WAITING, "start_date": "2030-04-01T15:00:00Z"})
    assert (fits.status_code, fits.json["lease"]["status"], fits.json["lease"]["wait"]) == (200, "PENDING", None)


def test_null_is_not_to_wait(http):
    assert fault(ask(http, body={**WAITING, "wait": None}))[:2] == (409, "not_enough_resources")


def test_an_immediate_lease_does_not_wait(http):
    assert fault(ask(http, body={**WAITING, "kind": "immediate"})) == (400, "invalid_value", "/wait")


def test_a_key_makes_one_lease_that_waits(http):
    key = {**token(), "Idempotency-Key": "once"}
    first, again = (ask(http, body=WAITING, **key) for _ in range(2))
    assert first.json["lease"]["id"] == again.json["lease"]["id"]
    assert again.headers["Idempotency-Replayed"] == "true"


def test_who_would_delay_one_who_waits_is_told_when_it_fits(http, world):
    ask(http, body=WAITING)
    body = {**WAITING, "start_date": "2030-04-01T14:00:00Z", "wait": None}
    refused = ask(http, body=body, **token("hahn", "chemistry"))
    assert fault(refused) == (409, "others_wait", None)
    (error,) = refused.json["errors"]
    assert error["data"] == {"before": 1, "opening": "2030-04-01T16:00:00Z"}
    dry = http.post(
        "/v1/leases?dry_run=true",
        json=body,
        headers={"OpenStack-API-Version": "reservation 1.1", **token("hahn", "chemistry")},
    )
    assert fault(dry)[:2] == (409, "others_wait")


def test_others_see_nothing_of_who_waits(http, world):
    id_ = ask(http, body=WAITING).json["lease"]["id"]
    assert ask(http, "GET", f"/v1/leases/{id_}", **token("hahn", "chemistry")).status_code == 404
    assert ask(http, "GET", "/v1/leases", **token("hahn", "chemistry")).json["leases"] == []


RETRIES = {
    "name": "ours",
    "kind": "retries",
    "end_date": "+2h",
    "wait": {"until": "+1d", "tries": 2},
    "reservations": [{**HOST, "min": 1}],
}


@pytest.fixture
def free(sqlite):
    world = World(sqlite)
    world.waits = True
    return world


@pytest.mark.parametrize("caller", ["member", "operator"])
def test_a_lease_that_is_tried_again_says_why_each_try_failed(free, caller):
    http = client_of(app_of(free.manager))
    who = token() if caller == "member" else token("root", "admin", "admin")
    lease = ask(http, body=RETRIES).json["lease"]
    assert (lease["kind"], lease["wait"]["tries"], lease["wait"]["failed_tries"]) == ("retries", 2, [])
    free.faults.fail_before("add_host", CloudRefused("nova refused for host node-3"))
    free.run()
    lease = ask(http, "GET", f"/v1/leases/{lease['id']}", **who).json["lease"]
    assert (lease["status"], lease["wait"]["queued_at"]) == ("WAITING", "2030-04-01T12:00:00Z")
    (failed,) = lease["wait"]["failed_tries"]
    assert failed["at"] == "2030-04-01T12:00:00Z"
    assert failed["reason"]["code"] == "not_started"
    assert failed["reason"]["message"] == "its start failed: the cloud refused a step"
    assert ("node-3" in failed["reason"].get("detail", "")) == (caller == "operator")
    assert ask(http, "GET", f"/v1/leases/{lease['id']}", version="1.0").json["lease"]["status"] == "CREATING"
    free.run_to(NOON + timedelta(minutes=2))
    lease = ask(http, "GET", f"/v1/leases/{lease['id']}").json["lease"]
    assert (lease["status"], len(lease["wait"]["failed_tries"])) == ("ACTIVE", 1)
    (found,) = ask(http, "GET", "/v1/leases?kind=retries&fields=kind").json["leases"]
    assert found["kind"] == "retries"


@pytest.mark.parametrize(
    ("wait", "pointer"),
    [(None, "/wait"), ({"until": "+1d", "tries": 11}, "/wait/tries"), ({"tries": 2}, "/wait/until")],
)
def test_the_kind_of_retries_needs_a_limit_in_time_and_number(http, wait, pointer):
    assert fault(ask(http, body={**RETRIES, "wait": wait}))[::2] == (400, pointer)


def test_a_dry_run_of_retries_says_whether_enough_is_free(free):
    http = client_of(app_of(free.manager))
    answer = ask(http, path="/v1/leases?dry_run=true", body=RETRIES)
    assert (answer.status_code, answer.json["lease"]["kind"]) == (200, "retries")


def test_an_operator_may_allow_no_retries(sqlite):
    kinds = frozenset({LeaseKind.SCHEDULED, LeaseKind.IMMEDIATE})
    http = client_of(app_of(World(sqlite, settings=Settings(kinds=kinds)).manager))
    assert fault(ask(http, body=RETRIES)) == (400, "invalid_value", "/kind")


def test_a_promised_start_is_shown_and_that_it_may_become_earlier(sqlite):
    world = World(sqlite, settings=Settings())
    world.waits = True
    full = world.lease(a_host(3), project="biology")
    world.run()
    http = client_of(app_of(world.manager))
    id_ = ask(http, body=WAITING).json["lease"]["id"]
    world.run()
    lease = ask(http, "GET", f"/v1/leases/{id_}").json["lease"]
    assert (lease["status"], lease["wait"]["advance"], lease["start_date"]) == ("PENDING", True, "2030-04-01T14:00:00Z")
    assert ask(http, "GET", f"/v1/leases/{id_}", version="1.0").json["lease"]["status"] == "PENDING"
    world.manager.leases.delete(full.id)
    world.run()
    lease = ask(http, "GET", f"/v1/leases/{id_}").json["lease"]
    assert (lease["status"], lease["wait"], lease["start_date"]) == ("ACTIVE", None, "2030-04-01T12:00:00Z")


def test_what_a_request_leaves_open_is_shown_and_what_it_got(http, world):
    open_ = {"until": "+1d", "latest": "+PT6H", "at_least": "PT1H"}
    body = {**WAITING, "start_date": "2030-04-01T13:00:00Z", "end_date": "+4h", "wait": open_}
    world.lease(a_host(3), project="biology", start=timedelta(hours=3.5))
    id_ = ask(http, body=body).json["lease"]["id"]
    world.run()
    wait = ask(http, "GET", f"/v1/leases/{id_}").json["lease"]["wait"]
    assert (wait["latest"], wait["at_least"]) == ("2030-04-01T19:00:00Z", "PT1H")
    world.run_to(NOON + timedelta(hours=2))
    lease = ask(http, "GET", f"/v1/leases/{id_}").json["lease"]
    assert (lease["status"], lease["start_date"], lease["end_date"]) == (
        "ACTIVE",
        "2030-04-01T14:00:00Z",
        "2030-04-01T15:30:00Z",
    )
