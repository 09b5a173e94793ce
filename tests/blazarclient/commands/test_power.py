# SPDX-License-Identifier: Apache-2.0
"""``power``: what sleeps and why, by what hosts are switched, and wakes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.blazarclient.commands.conftest import NEW, URL, Run, sent

STATUS = {"state": "off", "since": "2026-11-20T09:00:00Z", "reason": "done"}
HOST = {
    "id": "12",
    "name": "cn12",
    "adapter": "redfish",
    "target": "https://10.30.0.11/redfish/v1/Systems/1",
    "policy": "auto",
    **STATUS,
    "kept_until": None,
    "rehearsed": None,
}
SUMS = {"slept_hours": 12.5, "switched_off": 3, "woken": 2, "failed_wakes": 0, "missed_starts": 0}
REPORT = {
    "mode": "on",
    "from": "2026-10-20T09:00:00Z",
    "to": "2026-11-20T09:00:00Z",
    "switched_hosts": 2,
    "kept_hosts": 0,
    "done": {"hosts": [{"state": "off", "reason": "done", "hosts": 1}], **SUMS},
    "rehearsed": {"hosts": [], **SUMS, "slept_hours": 99.0},
    "classes": [
        {
            "group": {"gpu": None},
            "hosts": 4,
            "asleep": 3,
            "spare": 1,
            "lead_seconds": 1500,
            "wake_seconds": 300,
            "spare_source": "fixed",
            "spare_rule": "MO-FR; 07:00-19:00",
            "asked_at_once": 0,
        },
        {
            "group": {"gpu": "A100"},
            "hosts": 2,
            "asleep": 0,
            "spare": 2,
            "lead_seconds": 1800,
            "wake_seconds": 600,
            "spare_source": "asked",
            "spare_rule": None,
            "asked_at_once": 1,
        },
    ],
}
MOVE = {
    "id": "7",
    "at": "2026-11-20T09:00:00Z",
    "before": "going_off",
    "seconds": 184,
    "after": "off",
    "reason": "done",
    "rehearsed": False,
}
HOSTS = f"{URL}/power/hosts"


@pytest.fixture
def told(service: Any) -> Any:
    """A service with a host that sleeps."""
    service.get(f"{URL}/power", json={"power": REPORT}, headers=NEW)
    service.get(HOSTS, json={"hosts": [HOST], "links": []}, headers=NEW)
    missing = {"errors": [{"code": "reservation.not_found", "status": 404, "title": "x", "detail": "no such host"}]}
    service.get(f"{HOSTS}/cn12", json=missing, status_code=404, headers=NEW)
    service.get(f"{HOSTS}/12", json={"host": HOST}, headers=NEW)
    service.put(f"{HOSTS}/12", json={"host": {**HOST, "policy": "keep"}}, headers=NEW)
    woken = {**HOST, "state": "waking", "reason": "operator", "kept_until": "2026-11-20T13:00:00Z"}
    service.post(f"{HOSTS}/12/wake", json={"host": woken}, headers=NEW)
    service.get(f"{HOSTS}/12/log", json={"log": [MOVE], "links": []}, headers=NEW)
    return service


def test_the_report_is_of_what_is_done_or_of_the_dry_run(run: Run, told: Any) -> None:
    code, out, _ = run("power", "report", "-f", "json", "--last", "7d")
    assert (code, json.loads(out)["slept_hours"]) == (0, 12.5)
    assert "from=-p7d" in sent(told, "GET")[-1].url.lower()
    shown = run("power", "report")[1]
    assert "1 off (done)" in shown
    fixed = "spare 1 (fixed for MO-FR; 07:00-19:00)"
    assert f"gpu=none: 3 of 4 asleep, {fixed}, woken 25 min before a start, a wake takes 5 min" in shown
    assert "gpu=A100: 0 of 2 asleep, spare 2 (half more than the 1 asked for at once)" in shown
    told.get(f"{URL}/power", json={"power": {**REPORT, "mode": "dry_run"}}, headers=NEW)
    assert json.loads(run("power", "report", "-f", "json")[1])["slept_hours"] == 99.0


def test_hosts_are_listed_by_what_they_do(run: Run, told: Any) -> None:
    code, out, _ = run("power", "list", "--state", "off", "-f", "json")
    assert (code, [row["name"] for row in json.loads(out)]) == (0, ["cn12"])
    assert "state=off" in sent(told, "GET")[-1].url


def test_a_host_is_found_by_its_name(run: Run, told: Any) -> None:
    code, out, _ = run("power", "show", "cn12", "-f", "json")
    assert (code, json.loads(out)["target"]) == (0, HOST["target"])
    assert json.loads(run("power", "log", "12", "-f", "json")[1])[0]["seconds"] == 184
    assert run("power", "log", "12", "--limit", "0")[0] != 0


@pytest.mark.parametrize(
    ("words", "body"),
    [
        (("--policy", "keep"), {"policy": "keep"}),
        (("--adapter", "ironic", "--target", "cn12"), {"adapter": "ironic", "target": "cn12"}),
        (("--adapter", "none"), {"adapter": None, "target": None}),
    ],
)
def test_what_is_named_is_set(run: Run, told: Any, words: tuple[str, ...], body: dict[str, Any]) -> None:
    code, out, _ = run("power", "set", "12", *words, "-f", "json")
    assert (code, json.loads(out)["policy"]) == (0, "keep")
    (request,) = sent(told, "PUT")
    assert request.json() == body


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "Nothing is to change"),
        (("--target", "x"), "--adapter and --target go together"),
        (("--adapter", "none", "--target", "x"), "--adapter none has no --target"),
    ],
)
def test_halves_are_not_sent(run: Run, told: Any, words: tuple[str, ...], sentence: str) -> None:
    code, _, err = run("power", "set", "12", *words)
    assert code != 0
    assert sentence in err
    assert not sent(told, "PUT")


def test_hosts_are_woken(run: Run, told: Any) -> None:
    code, out, _ = run("power", "wake", "12", "--timezone", "UTC")
    assert code == 0
    assert out.startswith("cn12 is waking, and stays on until ")
