# SPDX-License-Identifier: Apache-2.0
"""``maintenance``: periods in which an operator books hosts out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.blazarclient.commands.conftest import NEW, SPOKEN, URL, Run, refusal, sent

ID = "7c1f0a52-3c1e-4a1b-9c07-5f2c6f0c7a11"
OTHER = "11111111-2222-4333-8444-000000000009"
LEASE = {
    "lease_id": "11111111-2222-4333-8444-000000000001",
    "name": "training",
    "project_id": "physics",
    "user_id": "curie",
    "start_date": "2026-12-01T08:00:00Z",
    "end_date": "2026-12-02T08:00:00Z",
    "status": "PENDING",
    "outcome": "moved",
    "makes_room": False,
    "hosts": ["1"],
    "moves": [{"reservation_id": "r", "from_host": "1", "to_host": "3", "count": 1}],
    "openings": [],
    "done": False,
    "told_at": None,
}
WINDOW: dict[str, Any] = {
    "id": ID,
    "name": "disks",
    "reason": None,
    "start_date": "2026-12-01T07:00:00Z",
    "end_date": "2026-12-01T19:00:00Z",
    "status": "PLANNED",
    "hosts": [{"id": "1", "name": "node-1", "servers": None}],
    "requirement": None,
    "pending": "move",
    "active": "list",
    "disable_service": False,
    "trouble": None,
    "revision": 0,
    "created_at": "2026-11-23T10:15:42Z",
    "updated_at": None,
}
WHOLE = {**WINDOW, "leases": [LEASE]}
WORDS = ("disks", "--host", "node-1", "--start", "2026-12-01 07:00Z", "--end", "+12h")


@pytest.fixture(autouse=True)
def hosts(service: Any) -> None:
    host = {"id": "1", "name": "node-1"}
    service.get(f"{URL}/resources/host", json={"resources": [host]}, headers=NEW)
    service.get(f"{URL}/resources/host/1", json={"resource": host}, headers=NEW)


def says(value: Any, **more: Any) -> dict[str, Any]:
    return {"json": {"maintenance": value}, "headers": NEW, **more}


def test_the_impact_names_each_lease_and_the_id_to_open_the_window_with(run: Run, service: Any) -> None:
    impact = {
        "id": "b33f",
        "start_date": WINDOW["start_date"],
        "end_date": WINDOW["end_date"],
        "hosts": ["1"],
        "summary": {"moved": 1, "active": 0},
        "leases": [LEASE],
    }
    service.post(f"{URL}/maintenances?dry_run=true", json={"impact": impact}, headers=NEW)
    code, out, err = run("maintenance", "impact", *WORDS)
    again = "1 lease (1 moved); open it with --start 2026-12-01T07:00:00Z --impact-id b33f"
    assert (code, again in err) == (0, True), err
    assert "moved" in out
    assert "1 to 3" in out
    (request,) = sent(service, "POST")
    assert request.headers["OpenStack-API-Version"] == SPOKEN
    times = {"start_date": "2026-12-01T07:00:00Z", "end_date": "+PT12H"}
    assert request.json() == {"name": "disks", **times, "hosts": ["1"]}


def test_the_impact_of_what_starts_now_has_no_id_to_come_back_with(run: Run, service: Any) -> None:
    impact = {"id": "b33f", "start_date": WINDOW["start_date"], "end_date": WINDOW["end_date"], "leases": []}
    service.post(f"{URL}/maintenances?dry_run=true", json={"impact": impact}, headers=NEW)
    code, _, err = run("maintenance", "impact", "disks", "--host", "node-1", "--end", "+12h")
    assert (code, "0 leases (none)" in err, "--impact-id" in err) == (0, True, False), err


def test_a_window_is_opened_and_shown_with_its_leases(run: Run, service: Any) -> None:
    service.post(f"{URL}/maintenances", **says(WHOLE, status_code=201))
    more = ("--reason", "old", "--disable-service", "--impact-id", "b33f", "--pending", "leave")
    more += ("--active", "migrate")
    code, out, err = run("maintenance", "create", *WORDS, *more)
    assert (code, "training" in out, "node-1 to 3 (not yet)" in out) == (0, True, True), err
    body = sent(service, "POST")[-1].json()
    assert {key: body[key] for key in ("reason", "disable_service", "impact_id", "pending", "active")} == {
        "reason": "old",
        "disable_service": True,
        "impact_id": "b33f",
        "pending": "leave",
        "active": "migrate",
    }


def test_another_impact_than_the_one_that_was_shown_is_a_conflict(run: Run, service: Any) -> None:
    service.post(f"{URL}/maintenances", **refusal("impact_changed", "the impact is another one by now", 409))
    code, _, err = run("maintenance", "create", *WORDS, "--impact-id", "b33f")
    assert (code != 0, "another one by now" in err) == (True, True), err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("x", "--end", "+1h"), "Say which hosts: with --host, or with --requirement"),
        (
            ("x", "--end", "+1h", "--host", "node-1", "--requirement", "gpu=A100"),
            "--host and --requirement are both given; give one of them",
        ),
        (("x", "--host", "node-1", "--end", "soon"), "--end: 'soon' is no time"),
        (("x", "--host", "node-1", "--start", "soon", "--end", "+1h"), "--start: 'soon' is no time"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_sent(
    run: Run, service: Any, words: tuple[str, ...], sentence: str
) -> None:
    code, _, err = run("maintenance", "create", *words)
    assert (code != 0, err.startswith(sentence), sent(service, "POST")) == (True, True, []), err


def test_windows_are_listed_with_the_names_of_their_hosts(run: Run, service: Any) -> None:
    service.get(f"{URL}/maintenances", json={"maintenances": [WINDOW]}, headers=NEW)
    code, out, err = run("maintenance", "list", "--status", "planned", "-f", "value", "-c", "name", "-c", "hosts")
    assert (code, out.split()) == (0, ["disks", "node-1"]), err
    assert sent(service, "GET")[-1].qs["status"] == ["planned"]
    assert json.loads(run("maintenance", "list", "-f", "json")[1])[0]["hosts"][0]["name"] == "node-1"


def test_a_window_is_changed_ended_and_cancelled_by_its_name(run: Run, service: Any) -> None:
    service.get(f"{URL}/maintenances", json={"maintenances": [WINDOW]}, headers=NEW)
    service.get(f"{URL}/maintenances/{ID}", **says(WHOLE))
    service.patch(f"{URL}/maintenances/{ID}", **says(WHOLE))
    service.post(f"{URL}/maintenances/{ID}/end", **says(WHOLE))
    service.delete(f"{URL}/maintenances/{ID}", status_code=204, headers=NEW)
    assert run("maintenance", "change", "disks", "--end", "+10h", "--name", "old disks")[0] == 0
    assert sent(service, "PATCH")[-1].json() == {"name": "old disks", "end_date": "+PT10H"}
    assert run("maintenance", "change", "disks")[0] != 0
    assert run("maintenance", "end", "disks")[0] == 0
    code, out, err = run("maintenance", "delete", "disks", "nothing")
    assert (code != 0, "Deleted maintenance window: disks" in out, "There is no maintenance window nothing" in err) == (
        True,
        True,
        True,
    )


def test_what_a_change_would_do_is_shown_with_the_id_to_make_just_that_change(run: Run, service: Any) -> None:
    impact = {
        "id": "abc",
        "start_date": "2026-12-01T07:00:00Z",
        "end_date": "2026-12-01T17:00:00Z",
        "hosts": ["1"],
        "summary": {"moved": 1, "stays": 0},
        "leases": [LEASE],
    }
    service.get(f"{URL}/maintenances/{ID}", **says(WHOLE))
    service.patch(f"{URL}/maintenances/{ID}", json={"impact": impact}, headers=NEW)
    code, out, _ = run("maintenance", "change", ID, "--end", "+10h", "--dry-run")
    assert (code, "abc" in out, "1 moved" in out, "node-1 to 3" in out) == (0, True, True, True)
    assert sent(service, "PATCH")[-1].qs == {"dry_run": ["true"]}
    code, out, _ = run("maintenance", "change", ID, "--end", "+10h", "--dry-run", "-f", "json")
    assert json.loads(out)["leases"][0]["outcome"] == "moved"
    service.patch(f"{URL}/maintenances/{ID}", **says(WHOLE))
    assert run("maintenance", "change", ID, "--end", "+10h", "--impact-id", "abc")[0] == 0
    assert sent(service, "PATCH")[-1].json() == {"end_date": "+PT10H", "impact_id": "abc"}


@pytest.mark.parametrize("over", ["DONE", "CANCELLED"])
def test_a_window_that_is_over_is_shown_by_its_name_if_no_other_has_it(run: Run, service: Any, over: str) -> None:
    before = {**WINDOW, "id": OTHER, "status": over, "start_date": "2026-11-01T07:00:00Z"}
    last = {**WINDOW, "status": over}
    for windows, shown in (([last, before], ID), ([{**before, "status": "ACTIVE"}, last], OTHER)):
        service.get(f"{URL}/maintenances", json={"maintenances": windows}, headers=NEW)
        service.get(f"{URL}/maintenances/{shown}", **says({**WHOLE, "id": shown}))
        code, out, err = run("maintenance", "show", "disks", "-f", "value", "-c", "id")
        assert (code, out) == (0, f"{shown}\n"), err
