# SPDX-License-Identifier: Apache-2.0
"""``manager``: the managers of the service."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.blazarclient.commands.conftest import NEW, SPOKEN, URL, Run, sent

WORK = {
    "event_id": "11111111-2222-4333-8444-000000000002",
    "lease_id": "11111111-2222-4333-8444-000000000001",
    "event_type": "start_lease",
    "since": "2026-11-23T10:15:12Z",
}
FAILING = {
    "name": "outbox",
    "last_round_at": "2026-11-23T10:15:40Z",
    "failing_since": "2026-11-23T10:10:00Z",
    "error": "the database is not available; please try again",
}


def manager(number: int, host: str = "ctl1", *, up: bool = True, **more: Any) -> dict[str, Any]:
    return {
        "id": f"{host}:471{number}:9f2c01a{number}",
        "host": host,
        "version": "19.0.0",
        "rpc_version": "2.0",
        "state": "running",
        "up": up,
        "started_at": "2026-11-23T08:00:00Z",
        "seen_at": "2026-11-23T10:15:40Z",
        "clock_offset_ms": 12,
        "work": [],
        "regions": [""],
        "options_agree": True,
        "threads": [{"name": "engine", "last_round_at": "2026-11-23T10:15:41Z", "failing_since": None, "error": None}],
        **more,
    }


@pytest.fixture
def told(service: Any) -> list[dict[str, Any]]:
    """What the service tells; a test changes it."""
    managers = [manager(1), manager(2, "ctl2", up=False, work=[WORK], threads=[FAILING])]
    service.get(f"{URL}/managers", json=lambda *_: {"managers": managers, "links": []}, headers=NEW)
    return managers


def test_a_list_says_who_is_up_how_much_each_works_on_and_what_fails(run: Run, service: Any, told: Any) -> None:
    code, out, err = run("manager", "list", "-f", "value", "--timezone", "UTC")
    assert (code, err) == (0, "")
    first, second = out.splitlines()
    assert first == "ctl1:4711:9f2c01a1 running True 19.0.0 2026-11-23 10:15:40+00:00 0 "
    assert second.startswith("ctl2:4712:9f2c01a2 running False 19.0.0")
    assert second.endswith("1 outbox: the database is not available; please try again")
    (request,) = sent(service, "GET")
    assert request.headers["OpenStack-API-Version"] == SPOKEN


def test_programs_get_what_the_service_tells(run: Run, told: Any) -> None:
    code, out, _ = run("manager", "list", "-f", "json")
    assert code == 0
    keys = ("id", "state", "up", "version", "seen_at", "work", "threads")
    assert json.loads(out) == [{key: one[key] for key in keys} for one in told]


def test_one_is_found_by_its_id_or_by_its_host(run: Run, told: Any) -> None:
    code, out, _ = run("manager", "show", "ctl2", "--timezone", "UTC")
    assert code == 0
    assert "start_lease of 11111111-2222-4333-8444-000000000001 since 2026-11-23 10:15:12+00:00" in out
    assert "outbox: last round 2026-11-23 10:15:40+00:00, fails since 2026-11-23 10:10+00:00: the database" in out
    code, out, _ = run("manager", "show", told[0]["id"], "-f", "json")
    assert json.loads(out) == told[0]


def test_of_several_on_a_host_the_one_that_is_up_is_meant(run: Run, told: Any) -> None:
    told.append(manager(3, up=False))
    code, out, _ = run("manager", "show", "ctl1", "-f", "value", "-c", "id")
    assert (code, out) == (0, f"{told[0]['id']}\n")
    told.append(manager(4))
    code, _, err = run("manager", "show", "ctl1")
    assert code != 0
    assert f"2 managers are on the host ctl1; give an id: {told[0]['id']}, {told[3]['id']}" in err
    code, _, err = run("manager", "show", "nowhere")
    assert (code != 0, "There is no manager nowhere" in err) == (True, True)
