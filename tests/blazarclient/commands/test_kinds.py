# SPDX-License-Identifier: Apache-2.0
"""Kinds of lease on the command line: an immediate lease is there with the answer, or refused with its reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
import requests

from tests.blazarclient.commands.conftest import ID, LEASE, NEW, SPOKEN, URL, Run, says, sent
from tests.blazarclient.commands.conftest import refusal as refused

NOW = ("lease", "create", "ci", "--physical-reservation", "min=1", "--kind", "immediate", "--duration", "2h")
THERE = {**LEASE, "kind": "immediate", "end_reason": None}
REFUSED = "it was not handed over in 45 seconds, and nothing is booked: the resources are not ready yet"


def refusal(code: str, detail: str, status: int, headers: Any = None) -> dict[str, Any]:
    told = refused(code, detail, status)
    return {**told, "headers": headers} if headers else told


def version(service: Any, method: str) -> str:
    return str(sent(service, method)[-1].headers["OpenStack-API-Version"])


def test_an_immediate_lease_is_asked_for_at_1_3_with_the_patience_for_it(run: Run, service: Any) -> None:
    service.post(f"{URL}/leases", **says("lease", THERE, status_code=201))
    code, _, err = run(*NOW)
    (asked,) = sent(service, "POST")
    assert (code, asked.json()["kind"], asked.json()["start_date"]) == (0, "immediate", "now"), err
    assert (version(service, "POST"), asked.timeout >= 60) == (SPOKEN, True)


def test_a_refusal_says_why_and_nothing_is_booked_otherwise(run: Run, service: Any) -> None:
    service.post(f"{URL}/leases", **refusal("not_handed_over", REFUSED, 409, headers=NEW))
    code, out, err = run(*NOW)
    assert (code != 0, out, REFUSED in err) == (True, "", True)
    assert len(sent(service, "POST")) == 1


@pytest.mark.parametrize(
    "answer",
    [
        refusal("version_unsupported", "version 1.1 is not supported; the highest is 1.0", 406),
        refusal("invalid_value", "leases of the kind immediate cannot be booked here", 400, headers=NEW),
    ],
    ids=["too old", "not allowed"],
)
def test_it_is_never_booked_at_an_earlier_version(run: Run, service: Any, answer: dict[str, Any]) -> None:
    service.post(f"{URL}/leases", **answer)
    assert run(*NOW)[0] != 0
    assert [each.headers["OpenStack-API-Version"] for each in sent(service, "POST")] == [SPOKEN]


def test_a_request_that_is_not_decided_yet_is_uncertain(run: Run, service: Any) -> None:
    waits = refusal("request_in_progress", "send it again in a moment", 409, headers=NEW)
    service.post(f"{URL}/leases", [{"exc": requests.exceptions.ReadTimeout}, waits])
    code, _, err = run(*NOW)
    assert (code, "not known whether lease ci was booked" in err) == (9, True), err


def test_events_of_ones_own_and_kinds_do_not_go_together(run: Run, service: Any) -> None:
    code, _, _ = run(*NOW, "--event", "event_type=x,event_date=2026-12-01 09:00")
    assert (code != 0, sent(service, "POST")) == (True, [])


def test_leases_are_listed_by_kind_and_the_column_is_told_if_it_is_asked_for(run: Run, service: Any) -> None:
    body = {"leases": [{**THERE, "end_reason": "ended"}]}
    service.get(f"{URL}/leases", json=body, headers=NEW)
    code, out, err = run("lease", "list", "--kind", "immediate", "-f", "value", "-c", "kind", "-c", "end_reason")
    assert (code, out.split()) == (0, ["immediate", "ended"]), err
    assert sent(service, "GET")[-1].qs["kind"] == ["immediate"]
    assert version(service, "GET") == SPOKEN
    run("lease", "list", "-f", "value", "-c", "kind")
    assert version(service, "GET") == SPOKEN


def test_a_lease_in_full_says_its_kind(run: Run, service: Any) -> None:
    service.get(f"{URL}/leases/{ID}", **says("lease", THERE))
    code, out, err = run("lease", "show", ID, "--long")
    assert (code, "immediate" in out) == (0, True), err
    assert json.loads(run("lease", "show", ID, "--long", "-f", "json")[1])["kind"] == "immediate"


def test_a_file_has_the_kind_too(run: Run, service: Any, tmp_path: Any) -> None:
    path = tmp_path / "lease.yaml"
    path.write_text("name: ci\nkind: immediate\nduration: 2h\nreservations: [{resource_type: physical:host, min: 1}]\n")
    service.post(f"{URL}/leases", **says("lease", THERE, status_code=201))
    assert run("lease", "create", "--file", str(path))[0] == 0
    assert sent(service, "POST")[-1].json()["kind"] == "immediate"


LINE = ("lease", "create", "ci", "--physical-reservation", "min=1", "--duration", "2h", "--queue-until")


@pytest.mark.parametrize(("given", "asked"), [("+3d", "+P3D"), ("2030-04-05 10:00Z", "2030-04-05T10:00:00Z")])
def test_a_place_in_line_is_asked_for_at_1_3(run: Run, service: Any, given: str, asked: str) -> None:
    service.post(f"{URL}/leases", **says("lease", {**LEASE, "status": "WAITING"}, status_code=201))
    code, _, err = run(*LINE, given)
    (post,) = sent(service, "POST")
    assert (code, post.json()["wait"]) == (0, {"until": asked}), err
    assert version(service, "POST") == SPOKEN


def test_what_a_lease_waits_for_is_shown_when_it_is_made(run: Run, service: Any) -> None:
    wait = {"queued_at": "2030-04-01T12:00:00Z", "until": "2030-04-04T12:00:00Z", "position": 3}
    wait |= {"estimated_start": "2030-04-02T08:00:00Z", "reason": None}
    lease = {**LEASE, "status": "WAITING", "wait": wait}
    service.post(f"{URL}/leases", **says("lease", lease, status_code=201))
    service.get(f"{URL}/leases/{ID}", **says("lease", {**lease, "status": "CREATING"}))
    new = {"OpenStack-API-Version": SPOKEN}
    service.get(f"{URL}/leases/{ID}", request_headers=new, **says("lease", lease))
    code, out, err = run(*LINE, "+3d")
    assert code == 0, err
    assert "number 3 in line, probably from 2030-04-02 10:00+02:00, until 2030-04-04 14:00+02:00" in out
    assert ("WAITING" in out, "CREATING" in out) == (True, False)
    code, out, err = run(*LINE, "+3d", "-f", "value", "-c", "status", "-c", "waits")
    assert (code, out.splitlines()[0], "number 3 in line" in out) == (0, "WAITING", True), err
    code, out, err = run(*LINE, "+3d", "-f", "json")
    told = json.loads(out)
    assert (code, told["status"], told["wait"]["position"]) == (0, "WAITING", 3), err
    assert told["waits"].endswith("probably from 2030-04-02 08:00+00:00, until 2030-04-04 12:00+00:00")
    assert "number 3 in line" in run("lease", "show", ID)[1]


def test_a_column_of_those_in_line_is_empty_for_a_lease_that_need_not_wait(run: Run, service: Any) -> None:
    service.post(f"{URL}/leases", **says("lease", LEASE, status_code=201))
    code, out, err = run(*LINE, "+3d", "-f", "value", "-c", "waits", "-c", "status")
    assert (code, out.split()) == (0, ["ACTIVE"]), err


def in_line(service: Any, status: str = "WAITING", old: str = "CREATING", **wait: Any) -> None:
    """Have the service tell of a lease in line, by its own status from 1.1 on only."""
    told = {"queued_at": "2030-04-01T12:00:00Z", "until": "2030-04-04T12:00:00Z", **wait}
    lease = {**LEASE, "status": status, "kind": "scheduled", "wait": told}
    service.post(f"{URL}/leases", **says("lease", lease, status_code=201))
    service.get(f"{URL}/leases/{ID}", **says("lease", {**LEASE, "status": old}))
    new = {"OpenStack-API-Version": SPOKEN}
    service.get(f"{URL}/leases/{ID}", request_headers=new, **says("lease", lease))


def test_who_does_not_wait_for_its_turn_any_longer_is_told_that_nothing_is_booked(run: Run, service: Any) -> None:
    in_line(service, position=3)
    code, _, err = run(*LINE, "+3d", "--wait", "--timeout", "8")
    assert code == 8
    assert "The lease is WAITING after 8 s, number 3 in line, until 2030-04-04 14:00+02:00. Nothing is booked" in err
    assert "stays booked" not in err


def test_a_turn_that_has_not_come_is_a_failure_with_its_reason(run: Run, service: Any) -> None:
    in_line(service, "TIMED_OUT", "ERROR", reason="too few are registered")
    code, _, err = run(*LINE, "+3d", "--wait")
    assert code == 1
    assert "Lease training is TIMED_OUT: it has waited in vain, until 2030-04-04 14:00+02:00: too few" in err


@pytest.mark.parametrize(
    ("until", "reason", "told"),
    [
        ("2030-04-01T12:00:00Z", "it gives up before it fits", False),
        ("2030-04-01T12:00:00Z", None, True),
        ("2030-04-04T12:00:00Z", "it gives up before it fits", True),
    ],
)
def test_no_start_is_called_probable_that_a_lease_does_not_wait_for(
    run: Run, service: Any, until: str, reason: str | None, told: bool
) -> None:
    in_line(service, until=until, reason=reason, estimated_start="2030-04-02T08:00:00Z")
    for words in (("lease", "show", ID), ("lease", "show", ID, "--long"), ("why", ID)):
        _, out, err = run(*words)
        assert "probably" in out if told else "probably" not in out, err


def test_where_nobody_can_wait_nothing_is_booked_without(run: Run, service: Any) -> None:
    service.post(f"{URL}/leases", **refusal("version_unsupported", "version 1.1 is not supported", 406))
    assert run(*LINE, "+3d")[0] != 0
    assert len(sent(service, "POST")) == 1


def test_a_time_that_cannot_be_read_is_refused_before_anything_is_sent(run: Run, service: Any) -> None:
    code, _, err = run(*LINE, "soonish")
    assert (code, err.startswith("--queue-until: 'soonish' is no time"), sent(service, "POST")) == (2, True, []), err


def test_trying_it_out_says_that_it_would_wait(run: Run, service: Any) -> None:
    wait = {"queued_at": "2026-11-23T10:15:42Z", "until": "2026-11-30T10:15:42Z", "position": None}
    would = {**LEASE, "id": None, "status": "WAITING", "wait": {**wait, "estimated_start": None, "reason": None}}
    service.post(f"{URL}/leases?dry_run=true", **says("lease", would))
    host = ("--physical-reservation", "min=1")
    code, out, err = run("lease", "create", "training", *host, "--queue-until", "+7d", "--dry-run")
    assert (code, err) == (0, "Nothing was booked. It would wait for its turn:\n")
    assert "in line, until 2026-11-30 11:15:42+01:00" in out
    assert "start_date" not in out


def test_a_promised_start_is_told_with_the_one_that_is_probable(run: Run, service: Any) -> None:
    wait = {"queued_at": "2030-04-01T12:00:00Z", "until": "2030-04-08T12:00:00Z", "advance": True}
    dates = {"start_date": "2030-04-02T12:00:00Z", "end_date": "2030-04-03T12:00:00Z"}
    lease = {**LEASE, **dates, "status": "PENDING", "wait": {**wait, "estimated_start": "2030-04-02T10:00:00Z"}}
    service.get(f"{URL}/leases/{ID}", **says("lease", lease))
    _, out, err = run("lease", "show", ID, "--long")
    assert "its start was promised, and may become earlier, probably 2030-04-02 12:00+02:00" in out, err


def test_tries_are_asked_for_and_told_with_the_reason_of_each(run: Run, service: Any) -> None:
    failed = [{"at": "2030-04-01T12:00:00Z", "reason": {"code": "not_started", "message": "its start failed: why"}}]
    wait = {"queued_at": "2030-04-01T12:00:00Z", "until": "2030-04-08T12:00:00Z", "tries": 5, "failed_tries": failed}
    lease = {**LEASE, "status": "WAITING", "kind": "retries", "wait": wait}
    service.post(f"{URL}/leases", **says("lease", lease, status_code=201))
    service.get(f"{URL}/leases/{ID}", **says("lease", lease))
    assert run(*LINE, "+7d", "--kind", "retries", "--tries", "5")[0] == 0
    (post,) = sent(service, "POST")
    assert (post.json()["kind"], post.json()["wait"]) == ("retries", {"until": "+P7D", "tries": 5})
    code, out, err = run("lease", "show", ID, "--long")
    assert (code, "1 of 5 failed" in out, "its start failed: why" in out) == (0, True, True), err


def test_tries_without_a_place_in_line_are_refused_before_anything_is_sent(run: Run, service: Any) -> None:
    code, _, err = run(*LINE[:-1], "--kind", "retries", "--tries", "5")
    assert (code != 0, "--queue-until" in err, sent(service, "POST")) == (True, True, [])


def test_what_may_be_left_open_is_asked_for(run: Run, service: Any) -> None:
    service.post(f"{URL}/leases", **says("lease", {**LEASE, "status": "WAITING"}, status_code=201))
    code, _, err = run(*LINE, "+7d", "--latest-start", "+6h", "--at-least", "1h")
    (post,) = sent(service, "POST")
    assert (code, post.json()["wait"]) == (0, {"until": "+P7D", "latest": "+PT6H", "at_least": "PT1H"}), err


EXTENDED = ("lease", "create", "ci", "--physical-reservation", "min=1", "--if-free-until")


@pytest.mark.parametrize(
    ("words", "until", "zone"),
    [
        (("+2d",), "+P2D", "Europe/Paris"),
        (("+2d", "--end", "2026-12-01 09:00"), "+P2D", "Europe/Paris"),
        (("+3h", "--end", "2026-12-01 09:00"), "+PT3H", None),
        (("2026-12-24 18:00", "--end", "2026-12-01 09:00"), "2026-12-24T17:00:00Z", None),
        (("friday 18:00", "--end", "2026-12-01 09:00"), "2026-12-04T17:00:00Z", None),
        (("+3h", "--queue-until", "2030-12-01 09:00Z", "--end", "2026-12-01 09:00"), "+PT3H", None),
    ],
)
def test_a_lease_is_made_that_is_prolonged_by_itself(
    run: Run, service: Any, words: tuple[str, ...], until: str, zone: str | None
) -> None:
    service.post(f"{URL}/leases", **says("lease", LEASE, status_code=201))
    code, _, err = run(*EXTENDED, *words)
    (post,) = sent(service, "POST")
    assert (code, post.json()["extend_if_free"], post.json().get("time_zone")) == (0, {"until": until}, zone), err
    assert version(service, "POST") == SPOKEN


def test_a_file_says_up_to_when_a_lease_is_prolonged_by_itself(run: Run, service: Any, tmp_path: Any) -> None:
    path = tmp_path / "lease.yaml"
    path.write_text("name: ci\nif_free_until: +3h\nreservations: [{resource_type: physical:host, min: 1}]\n")
    service.post(f"{URL}/leases", **says("lease", LEASE, status_code=201))
    assert run("lease", "create", "--file", str(path))[0] == 0
    assert sent(service, "POST")[-1].json()["extend_if_free"] == {"until": "+PT3H"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("soonish",), "--if-free-until: 'soonish' is no time"),
        (("2030-01-01", "--queue-until", "+3d"), "--if-free-until is 2030-01-01, but when a lease in line ends"),
    ],
)
def test_what_a_lease_cannot_be_prolonged_to_is_refused_before_anything_is_sent(
    run: Run, service: Any, words: tuple[str, ...], sentence: str
) -> None:
    code, _, err = run(*EXTENDED, *words)
    assert (code != 0, sentence in err, sent(service, "POST")) == (True, True, [])
