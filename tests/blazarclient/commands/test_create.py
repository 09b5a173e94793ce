# SPDX-License-Identifier: Apache-2.0
"""``lease create``: times of the user, files, trying it out, waiting, and knowing whether it was booked."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
from blazarclient.commands import base

from tests.blazarclient.commands.conftest import ID, LEASE, NOW, URL, Run, refusal, says, sent

HOST = ("--physical-reservation", "min=1")
FILE = """
name: training
start: tomorrow 9:00
duration: 3d
before_end: 2h
reservations:
  - resource_type: physical:host
    min: 2
    resource_properties: ["==", "$gpu", "A100"]
  - resource_type: virtual:floatingip
    network_id: 5f0c2b1e-8f0e-4c55-9d57-2d0f6a0e7a11
    amount: 1
"""


def dates(service: Any) -> tuple[str, ...]:
    body = sent(service, "POST")[-1].json()
    return tuple(body[key] for key in ("start_date", "end_date", "before_end_date", "time_zone") if key in body)


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ((), ("now", "+PT24H", "Europe/Paris")),
        (("--duration", "3d"), ("now", "+P3D", "Europe/Paris")),
        (("--end", "+3d"), ("now", "+P3D", "Europe/Paris")),
        (("--end", "2026-11-25 18:00"), ("now", "2026-11-25T17:00:00Z")),
        (("--start", "tomorrow 9:00", "--duration", "2h"), ("2026-11-24T08:00:00Z", "2026-11-24T10:00:00Z")),
        (("--start", "tomorrow 9:00", "--end", "18:00"), ("2026-11-24T08:00:00Z", "2026-11-24T17:00:00Z")),
        (("--start", "2026-12-01 09:00", "--end", "friday 18:00"), ("2026-12-01T08:00:00Z", "2026-12-04T17:00:00Z")),
        (("--start", "friday 18:00", "--end", "monday 9:00"), ("2026-11-27T17:00:00Z", "2026-11-30T08:00:00Z")),
        (("--timezone", "UTC", "--start", "tomorrow 9:00"), ("2026-11-24T09:00:00Z", "2026-11-25T09:00:00Z")),
        (
            ("--start", "tomorrow 9:00", "--before-end", "2h"),
            ("2026-11-24T08:00:00Z", "2026-11-25T08:00:00Z", "2026-11-25T06:00:00Z"),
        ),
        (
            ("--start-date", "2026-12-01 09:00", "--end-date", "2026-12-02 09:00"),
            ("2026-12-01T09:00:00Z", "2026-12-02T09:00:00Z"),
        ),
        (("--start-date", "2026-12-01T09:00+01:00"), ("2026-12-01T08:00:00Z", "2026-12-02T08:00:00Z")),
    ],
)
def test_times_are_those_of_the_users_zone_and_utc_with_the_old_options(
    run: Run, service: Any, words: tuple[str, ...], asked: tuple[str, ...]
) -> None:
    code, _, err = run("lease", "create", "training", *HOST, *words)
    assert (code, err) == (0, "")
    assert dates(service) == asked


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("--start", "yesterdayish"), 2, "--start: 'yesterdayish' is no time"),
        (("--start-date", "+3x"), 2, "--start-date: '3x' is no length of time"),
        (("--end", "+1d", "--duration", "1d"), 1, "Both an end and a duration are given"),
        (("--start", "now", "--start-date", "now"), 1, "--start and --start-date are both given"),
        (("--end", "2026-11-31 09:00"), 2, "--end: '2026-11-31 09:00' is no time"),
        (("--end", "+9999999d"), 2, "--end: P9999999D is too long"),
        (("--duration", "long"), 2, "--duration: 'long' is no length of time"),
        (("--before-end", "soon"), 2, "--before-end: 'soon' is no time"),
        (("--wait", "--timeout", "soon"), 2, "--timeout: 'soon' is no length of time"),
        (("--end", "2026-11-01 9:00"), 1, "is not after the start"),
        (("--end", "2026-11-01 09:00"), 1, "is not after the start"),
        (
            ("--start", "tomorrow 18:00", "--end", "tomorrow 9:00"),
            1,
            "is not after the start, 2026-11-24 18:00+01:00; ",
        ),
        (("--before-end", "9d"), 1, "is not within the lease; give a time that is"),
        (("--timeout", "10"), 1, "--timeout is for --wait"),
        (("--timezone", "Mars/Base"), 2, "There is no time zone 'Mars/Base'"),
    ],
)
def test_what_is_no_lease_is_refused_before_anything_is_sent(
    run: Run, service: Any, words: tuple[str, ...], code: int, sentence: str
) -> None:
    left, out, err = run("lease", "create", "training", *HOST, *words)
    assert (left, out) == (code, "")
    assert sentence in err
    assert not sent(service, "POST")


def test_a_lease_may_be_in_a_file_and_options_go_first(run: Run, service: Any, tmp_path: Path) -> None:
    path = tmp_path / "lease.yaml"
    path.write_text(FILE)
    code, _, err = run("lease", "create", "-F", str(path), "--duration", "1d")
    assert (code, err) == (0, "")
    body = sent(service, "POST")[-1].json()
    assert body["name"] == "training"
    assert dates(service) == ("2026-11-24T08:00:00Z", "2026-11-25T08:00:00Z", "2026-11-25T06:00:00Z")
    assert [each["resource_type"] for each in body["reservations"]] == ["physical:host", "virtual:floatingip"]
    assert body["reservations"][0]["resource_properties"] == ["==", "$gpu", "A100"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("name: [", "is no YAML"),
        ("- 1", "has no keys"),
        ("nmae: x", "did you mean name?"),
        ("name: x\nstart: 9:00", "put it in quotes"),
        ("start: now\nstart_date: now", "has start twice"),
        ("name: x\nreservations: [min]", "is no list of reservations"),
        ("name: x", "Nothing is reserved"),
        ("duration: 3d", "The lease has no name"),
    ],
)
def test_a_file_that_is_no_lease_is_told_of(run: Run, service: Any, tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "lease.yaml"
    path.write_text(text)
    code, _, err = run("lease", "create", "-F", str(path))
    assert code == 1
    assert sentence in err
    assert not sent(service, "POST")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("start: soon", "start: 'soon' is no time"),
        ("end: soon", "end: 'soon' is no time"),
        ("duration: long", "duration: 'long' is no length of time"),
        ("before_end_date: soon", "before_end: 'soon' is no time"),
    ],
)
def test_a_time_of_a_file_that_is_none_is_told_by_its_key(
    run: Run, service: Any, tmp_path: Path, text: str, sentence: str
) -> None:
    path = tmp_path / "lease.yaml"
    path.write_text(text)
    code, _, err = run("lease", "create", "training", *HOST, "-F", str(path))
    assert (code, err.startswith(sentence)) == (2, True), err
    assert not sent(service, "POST")


def test_a_file_that_cannot_be_read_is_told_of(run: Run, service: Any, tmp_path: Path) -> None:
    code, _, err = run("lease", "create", "-F", str(tmp_path / "none.yaml"))
    assert code == 1
    assert "The file cannot be read" in err


def test_a_reservation_of_the_old_form_is_sent_as_the_new_one(run: Run, service: Any) -> None:
    text = "resource_type=virtual:instance,vcpus=1,memory_mb=512,disk_gb=1,amount=2,affinity=True"
    run("lease", "create", "training", "--reservation", text, *HOST)
    assert sent(service, "POST")[-1].json()["reservations"] == [
        {"resource_type": "physical:host", "min": 1, "max": 1},
        {
            "resource_type": "virtual:instance",
            "vcpus": 1,
            "memory_mb": 512,
            "disk_gb": 1,
            "amount": 2,
            "affinity": True,
        },
    ]


def test_servers_have_an_ephemeral_disk_and_extra_specs(run: Run, service: Any) -> None:
    text = 'resource_type=virtual:instance,vcpus=1,memory_mb=512,disk_gb=1,ephemeral_gb=30,extra_specs={"hw:a": "1"}'
    run("lease", "create", "training", "--reservation", f"{text},amount=2")
    made = sent(service, "POST")[-1].json()["reservations"][0]
    assert (made["ephemeral_gb"], made["extra_specs"], made["amount"]) == (30, {"hw:a": "1"}, 2)
    run("lease", "update", "training", "--reservation", 'id=r,extra_specs={"hw:a": "1", "hw:b": "2"},ephemeral_gb=0')
    changed = sent(service, "PUT")[-1].json()["reservations"][0]
    assert (changed["ephemeral_gb"], changed["extra_specs"]) == (0, {"hw:a": "1", "hw:b": "2"})


def test_servers_have_gpus_of_a_model(run: Run, service: Any) -> None:
    text = "resource_type=virtual:instance,vcpus=1,memory_mb=512,disk_gb=1,gpus=2,gpu_model=100"
    run("lease", "create", "training", "--reservation", f"{text},amount=1")
    made = sent(service, "POST")[-1].json()["reservations"][0]
    assert (made["gpus"], made["gpu_model"]) == (2, "100")
    run("lease", "update", "training", "--reservation", "id=r,gpus=1")
    assert sent(service, "PUT")[-1].json()["reservations"][0]["gpus"] == 1


def test_an_id_of_digits_is_text(run: Run, service: Any) -> None:
    run("lease", "create", "training", "--reservation", "resource_type=flavor:instance,flavor_id=3,amount=1")
    assert sent(service, "POST")[-1].json()["reservations"][0]["flavor_id"] == "3"


def test_what_only_microversion_1_0_takes_is_sent_with_it(run: Run, service: Any) -> None:
    strict = refusal("invalid_value", "name is too long", status=400)
    service.post(f"{URL}/leases", [strict, says("lease", LEASE, status_code=201)])
    code, _, err = run("lease", "create", "n" * 81, *HOST, "--end-date", "2026-12-01 09:00")
    first, second = sent(service, "POST")
    assert (code, err) == (0, "")
    assert (first.json()["end_date"], second.json()["end_date"]) == ("2026-12-01T09:00:00Z", "2026-12-01 09:00")


def test_what_neither_takes_is_refused_in_the_words_of_the_newer(run: Run, service: Any) -> None:
    strict = refusal("invalid_value", "amount is less than one", status=400)
    old = {"status_code": 400, "json": {"error_message": "amount: wrong"}}
    service.post(f"{URL}/leases", [strict, old])
    code, _, err = run("lease", "create", "training", *HOST)
    assert (code, err) == (1, "amount is less than one\n")


def test_trying_it_out_books_nothing(run: Run, service: Any) -> None:
    service.post(f"{URL}/leases?dry_run=true", **says("lease", {**LEASE, "id": None}))
    code, out, err = run("lease", "create", "training", *HOST, "--dry-run", "-f", "json")
    assert code == 0
    assert json.loads(out)["id"] is None
    assert err == "Nothing was booked. It would be:\n"
    assert [request.qs for request in sent(service, "POST")] == [{"dry_run": ["true"]}]


def test_a_table_of_what_would_be_booked_has_times_of_the_user_and_what_is_promised(run: Run, service: Any) -> None:
    service.post(f"{URL}/leases?dry_run=true", **says("lease", {**LEASE, "id": None}))
    code, out, _ = run("lease", "create", "training", *HOST, "--dry-run")
    fields = [line.split("|")[1].strip() for line in out.splitlines() if "|" in line]
    assert code == 0
    assert [field for field in fields if field] == [
        "Field",
        "name",
        "start_date",
        "end_date",
        "before_end_date",
        "reservations",
    ]
    assert "+01:00" in out
    assert "{" not in out


@pytest.mark.parametrize("words", [("--duration", "1h"), ("--end", "+1h"), ("--duration", "1h", "--before-end", "30m")])
def test_a_lease_may_lie_in_the_hour_that_comes_twice(run: Run, service: Any, words: tuple[str, ...]) -> None:
    """02:30 in Paris comes at 00:30 and at 01:30 of UTC, when clocks are set back."""
    code, _, err = run("lease", "create", "training", *HOST, "--start", "2026-10-25 02:30", *words)
    assert (code, err) == (0, "")
    assert dates(service)[:2] == ("2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z")


def test_every_booking_has_a_key_of_its_own_or_that_of_the_user(run: Run, service: Any) -> None:
    run("lease", "create", "training", *HOST)
    run("lease", "create", "training", *HOST)
    run("lease", "create", "training", *HOST, "--idempotency-key", "monday")
    first, second, third = (request.headers["Idempotency-Key"] for request in sent(service, "POST"))
    assert first != second
    assert third == '"monday"'


def test_what_was_booked_before_with_the_key_is_told_of(run: Run, service: Any) -> None:
    replayed = {"Idempotency-Replayed": "true"}
    service.post(f"{URL}/leases", **says("lease", LEASE, status_code=201, headers=replayed))
    code, out, err = run("lease", "create", "training", *HOST, "--idempotency-key", "monday", "-f", "json")
    assert (code, json.loads(out)["id"]) == (0, ID)
    assert "was booked before with this key" in err


def test_an_answer_that_was_lost_is_asked_for_again_with_the_same_key(run: Run, service: Any) -> None:
    service.post(
        f"{URL}/leases",
        [{"exc": requests.exceptions.ConnectionError("reset")}, says("lease", LEASE, status_code=201)],
    )
    code, _, _ = run("lease", "create", "training", *HOST)
    first, second = sent(service, "POST")
    assert code == 0
    assert first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"]
    assert first.json() == second.json()


def test_without_any_answer_the_key_and_what_to_do_with_it_are_told(run: Run, service: Any) -> None:
    service.post(f"{URL}/leases", exc=requests.exceptions.ConnectionError("reset"))
    code, out, err = run("lease", "create", "training", *HOST)
    key = sent(service, "POST")[0].headers["Idempotency-Key"].strip('"')
    assert (code, out) == (9, "")
    assert "It is not known whether lease training was booked" in err
    assert f"Give the same command once more with --idempotency-key {key}\n" in err


@pytest.mark.parametrize(
    "answer",
    [says("leases", [], status_code=201), says("lease", {}), {"status_code": 500, "text": "<h1>Sorry</h1>"}],
)
def test_an_answer_that_has_no_lease_does_not_say_that_none_was_booked(
    run: Run, service: Any, answer: dict[str, Any]
) -> None:
    service.post(f"{URL}/leases", **answer)
    code, out, err = run("lease", "create", "training", *HOST)
    assert (code, out) == (9, "")
    assert "--idempotency-key" in err


@pytest.mark.parametrize(
    ("words", "again"),
    [
        (("--start", "+1d"), "--start 2026-11-24T10:15:42Z"),
        (("--start-date", "+1d"), "--start-date 2026-11-24T10:15:42Z"),
        (("--duration", "1d", "--before-end", "2h"), "--before-end 2026-11-24T08:15:42Z"),
        (("--start", "tomorrow 9:00", "--end", "+1d"), "--start 2026-11-24T08:00:00Z"),
    ],
)
def test_the_command_that_is_told_sends_the_same_request_at_another_time(
    run: Run, service: Any, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], again: str
) -> None:
    service.post(f"{URL}/leases", exc=requests.exceptions.ConnectionError("reset"))
    _, _, err = run("lease", "create", "training", *HOST, *words)
    told = err.partition("once more with ")[2].splitlines()[0]
    assert told.startswith(again)
    monkeypatch.setattr(base, "clock", lambda: NOW + timedelta(minutes=7))
    run("lease", "create", "training", *HOST, *words, *told.split())
    assert len({request.text for request in sent(service, "POST")}) == 1
    assert len({request.headers["Idempotency-Key"] for request in sent(service, "POST")}) == 1


@pytest.mark.parametrize("zone", ["Europe/Paris", "CET-1CEST,M3.5.0,M10.5.0/3"])
def test_the_same_command_is_the_same_request_also_where_the_zone_has_no_name(
    run: Run, service: Any, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    monkeypatch.setenv("TZ", zone)
    run("lease", "create", "training", *HOST, "--duration", "2d", "--idempotency-key", "monday")
    monkeypatch.setattr(base, "clock", lambda: NOW + timedelta(minutes=7))
    run("lease", "create", "training", *HOST, "--duration", "2d", "--idempotency-key", "monday")
    first, second = sent(service, "POST")
    assert first.json() == second.json()


def test_an_empty_key_is_no_key(run: Run, service: Any) -> None:
    code, _, err = run("lease", "create", "training", *HOST, "--idempotency-key", "")
    assert (code, err) == (1, "--idempotency-key is empty; give 1 to 255 visible ASCII characters\n")
    assert not sent(service, "POST")


def test_a_column_that_is_not_there_is_told_of_before_anything_is_booked(run: Run, service: Any) -> None:
    code, out, err = run("lease", "create", "training", *HOST, "-c", "lease_id")
    assert (code, out) == (1, "")
    assert err.startswith("There is no column lease_id; choose from ")
    assert not sent(service, "POST")


LOST = {"exc": requests.exceptions.ConnectionError("reset")}


def test_a_lease_that_was_booked_is_read_again_if_the_service_fails_for_a_moment(run: Run, service: Any) -> None:
    service.get(f"{URL}/leases/{ID}", [LOST, {"status_code": 503}, says("lease", LEASE)])
    code, out, err = run("lease", "create", "training", *HOST, "-f", "json")
    assert (code, json.loads(out)["status"], err) == (0, "ACTIVE", "Created a new lease:\n")


@pytest.mark.parametrize("fails", [LOST, {"status_code": 500, "text": "<h1>Sorry</h1>"}])
def test_a_lease_that_was_booked_and_cannot_be_shown_has_its_id_told(
    run: Run, service: Any, fails: dict[str, Any]
) -> None:
    """A program that took it for a failure would book once more."""
    service.get(f"{URL}/leases/{ID}", **fails)
    code, out, err = run("lease", "create", "training", *HOST, "-f", "value", "-c", "id")
    assert (code, out) == (0, f"{ID}\n")
    assert "Lease training is booked, but cannot be shown: " in err


def test_after_ctrl_c_while_it_is_shown_the_id_is_told(run: Run, service: Any) -> None:
    service.get(f"{URL}/leases/{ID}", exc=KeyboardInterrupt)
    code, _, err = run("lease", "create", "training", *HOST)
    assert (code, err) == (130, f"Stopped, but lease training is booked: {ID}\n")


def test_after_ctrl_c_before_anything_is_sent_it_is_told_that_nothing_was_booked(run: Run, service: Any) -> None:
    service.get(f"{URL}/info", exc=KeyboardInterrupt)
    code, _, err = run("lease", "create", "training", *HOST)
    assert (code, err) == (130, "Stopped; nothing was booked.\n")
    assert not sent(service, "POST")


@pytest.mark.parametrize(
    ("after", "deleted", "sentence"),
    [
        (says("lease", LEASE, status_code=201), True, "Stopped; lease training is not booked.\n"),
        (
            says("lease", LEASE, status_code=201, headers={"Idempotency-Replayed": "true"}),
            False,
            f"Stopped, but lease training was booked already: {ID}\n",
        ),
        (refusal("not_enough_resources", "None is free."), False, "is not booked, and would not be: None is free.\n"),
    ],
)
def test_after_ctrl_c_it_is_told_whether_it_was_booked(
    run: Run, service: Any, after: dict[str, Any], deleted: bool, sentence: str
) -> None:
    service.post(f"{URL}/leases", [{"exc": KeyboardInterrupt}, after])
    code, _, err = run("lease", "create", "training", *HOST)
    assert code == 130
    assert err.endswith(sentence)
    assert bool(sent(service, "DELETE")) is deleted
    first, second = sent(service, "POST")
    assert first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"]


@pytest.mark.parametrize("failed", [refusal("lease_busy", "It starts."), {"exc": KeyboardInterrupt}])
def test_after_ctrl_c_what_was_booked_and_could_not_be_deleted_is_told(
    run: Run, service: Any, failed: dict[str, Any]
) -> None:
    service.post(f"{URL}/leases", [{"exc": KeyboardInterrupt}, says("lease", LEASE, status_code=201)])
    service.delete(f"{URL}/leases/{ID}", **failed)
    code, _, err = run("lease", "create", "training", *HOST)
    assert code == 130
    assert f"Stopped, but lease training was booked and may still be: {ID}. " in err


def test_a_service_that_failed_may_have_booked(run: Run, service: Any) -> None:
    service.post(f"{URL}/leases", status_code=500, text="<h1>Internal Server Error</h1>")
    code, _, err = run("lease", "create", "training", *HOST)
    assert code == 9
    assert "It is not known whether lease training was booked: HTTP 500: Internal Server Error" in err
    assert "--idempotency-key" in err


def test_after_ctrl_c_twice_the_key_is_told(run: Run, service: Any) -> None:
    service.post(f"{URL}/leases", exc=KeyboardInterrupt)
    code, _, err = run("lease", "create", "training", *HOST)
    assert code == 9
    assert "--idempotency-key" in err


@pytest.mark.parametrize(
    ("statuses", "words", "code", "sentence"),
    [
        (["PENDING", "STARTING", "ACTIVE"], (), 0, ""),
        (["STARTING", "ERROR"], (), 1, "Lease training is ERROR. the host is gone\n"),
        (["PENDING"], ("--timeout", "60"), 8, "The lease is PENDING after 60 s; it stays booked\n"),
    ],
)
def test_waiting_ends_with_the_outcome(
    run: Run, service: Any, statuses: list[str], words: tuple[str, ...], code: int, sentence: str
) -> None:
    event = {
        "event_type": "start_lease",
        "time": "2026-11-23T10:15:42Z",
        "status": "ERROR",
        "reason": {"code": "resource_failed", "message": "the host is gone"},
    }
    service.get(
        f"{URL}/leases/{ID}", [says("lease", {**LEASE, "status": status, "events": [event]}) for status in statuses]
    )
    left, out, err = run("lease", "create", "training", *HOST, "--wait", "-f", "json", *words)
    assert left == code
    assert json.loads(out)["status"] == statuses[-1]
    assert err == "Created a new lease:\n" + sentence


def test_no_longer_waiting_leaves_the_lease_as_it_is(run: Run, service: Any) -> None:
    service.get(f"{URL}/leases/{ID}", exc=KeyboardInterrupt)
    code, _, err = run("lease", "create", "training", *HOST, "--wait")
    assert code == 130
    assert f"the lease stays booked: {ID}" in err
    assert not sent(service, "DELETE")


def test_an_old_service_books_what_it_can(run: Run, old_service: Any) -> None:
    code, _, err = run("lease", "create", "training", *HOST, "--start", "tomorrow 9:00", "--duration", "2h")
    assert (code, err) == (0, "")
    (request,) = sent(old_service, "POST")
    assert request.json()["start_date"] == "2026-11-24 08:00"
    assert request.json()["end_date"] == "2026-11-24 10:00"


@pytest.mark.parametrize(
    "lost", [LOST, {"exc": KeyboardInterrupt}, {"status_code": 500}, {"status_code": 504}, {"text": "<h1>Welcome</h1>"}]
)
def test_without_an_answer_of_an_old_service_the_way_to_find_out_is_told(
    run: Run, old_service: Any, lost: dict[str, Any]
) -> None:
    old_service.post(f"{URL}/leases", **lost)
    code, out, err = run("lease", "create", "training", *HOST)
    assert (code, out) == (9, "")
    assert err.startswith("It is not known whether lease training was booked: ")
    assert err.endswith("see the list of leases first.\n")
    assert len(sent(old_service, "POST")) == 1


def test_what_the_newer_microversion_refuses_is_not_booked_without_a_key_by_options_that_are_new(
    run: Run, service: Any
) -> None:
    service.post(f"{URL}/leases", **refusal("invalid_value", "end_date is too late", status=400))
    code, _, err = run("lease", "create", "training", *HOST, "--duration", "999999d")
    assert (code, err) == (1, "end_date is too late\n")
    assert len(sent(service, "POST")) == 1


@pytest.mark.parametrize("words", [("--dry-run",), ("--idempotency-key", "monday")])
def test_an_old_service_is_told_of_where_it_cannot(run: Run, old_service: Any, words: tuple[str, ...]) -> None:
    code, _, err = run("lease", "create", "training", *HOST, *words)
    assert code == 1
    assert "does not speak microversion 1.1" in err
    assert not sent(old_service, "POST")


def test_events_of_ones_own_are_sent_at_the_old_microversion(run: Run, service: Any) -> None:
    code, _, _ = run("lease", "create", "training", *HOST, "--event", "event_type=notify,event_date=2026-11-24 09:00")
    (request,) = sent(service, "POST")
    assert code == 0
    assert request.json()["events"] == [{"event_type": "notify", "event_date": "2026-11-24 09:00"}]
    assert "OpenStack-API-Version" not in request.headers
