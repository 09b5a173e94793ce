# SPDX-License-Identifier: Apache-2.0
"""``find``: openings, why there is none, and taking the first."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

import pytest
import requests

from tests.blazarclient.commands.conftest import ID, LEASE, URL, Run, refusal, says, sent

OPENING = {
    "start_date": "2026-12-03T14:00:00Z",
    "end_date": "2026-12-06T14:00:00Z",
    "last_start_date": "2026-12-04T08:00:00Z",
    "open_until": "2026-12-07T08:00:00Z",
    "reservations": [{"count": 5}],
    "refusals": [],
}
LATER = {**OPENING, "start_date": "2027-01-02T00:00:00Z", "end_date": "2027-01-05T00:00:00Z", "open_until": None}
ANSWER: dict[str, Any] = {
    "as_of": "2026-11-23T10:15:42Z",
    "earliest": "2026-11-23T10:15:42Z",
    "latest": "2027-01-22T10:15:42Z",
    "searched_until": "2027-01-22T10:15:42Z",
    "complete": True,
    "openings": [OPENING, LATER],
    "reasons": [],
    "alternatives": [],
    "extension": None,
    "proof": None,
}
FIND = ("find", "--host", "min=4,max=6", "--duration", "3d")


@pytest.fixture
def room(service: Any) -> Any:
    service.post(f"{URL}/availability", **says("availability", ANSWER))
    return service


def test_the_question_is_asked_in_the_users_zone(run: Run, room: Any) -> None:
    code, _, err = run(*FIND, "--earliest", "tomorrow 9:00", "--latest", "+60d", "--limit", "2")
    assert (code, err) == (0, "")
    assert sent(room, "POST")[0].json() == {
        "reservations": [{"resource_type": "physical:host", "min": 4, "max": 6}],
        "duration": "P3D",
        "earliest": "2026-11-24T08:00:00Z",
        "latest": "2027-01-23T08:00:00Z",
        "limit": 2,
        "time_zone": "Europe/Paris",
    }


def test_openings_are_told_in_the_users_zone_and_to_programs_in_utc(run: Run, room: Any) -> None:
    _, table, _ = run(*FIND)
    _, text, _ = run(*FIND, "-f", "json")
    assert "2026-12-03 15:00+01:00" in table
    assert json.loads(text)[0] == {
        "start_date": "2026-12-03T14:00:00Z",
        "end_date": "2026-12-06T14:00:00Z",
        "last_start_date": "2026-12-04T08:00:00Z",
        "open_until": "2026-12-07T08:00:00Z",
        "count": [5],
        "refusals": [],
    }


def test_without_room_it_says_why_and_what_would_fit(run: Run, service: Any) -> None:
    alternative = {"start_date": "2026-11-23T10:15:42Z", "end_date": "2026-11-26T10:15:42Z"}
    reason = {"message": "42 hosts; 8 with gpu == A100; 1 free"}
    answer = {
        **ANSWER,
        "openings": [],
        "reasons": [reason],
        "alternatives": [
            {"change": "count", "reservations": [{"min": 1, "max": 1}], **alternative},
            {"change": "requirement", "drop": "/reservations/0/resource_properties", **alternative},
            {"change": "time", **alternative},
        ],
    }
    service.post(f"{URL}/availability", **says("availability", answer))
    code, out, err = run(*FIND, "-f", "json")
    when = "2026-11-23 11:15:42+01:00 to 2026-11-26 11:15:42+01:00"
    assert (code, json.loads(out)) == (5, [])
    assert err.splitlines() == [
        "There is no room from 2026-11-23 11:15:42+01:00 to 2027-01-22 11:15:42+01:00.",
        "  42 hosts; 8 with gpu == A100; 1 free",
        "What would fit:",
        f"  with min=1, max=1: {when}",
        f"  without resource_properties: {when}",
        f"  at another time: {when}",
    ]


@pytest.mark.parametrize(
    ("proof", "said"),
    [
        (
            {"code": "full_at", "at": "2026-11-24T11:00:00Z", "hosts": 6, "promised": 4, "asked": 3},
            "  At 2026-11-24 12:00+01:00 leases that can have no others hold 4 of 6 hosts, and 3 more are needed.",
        ),
        ({"code": "no_arrangement"}, "  However other leases get other hosts, none are free"),
        ({"code": "too_many_moves", "moves_others": 59}, "  It would fit if 59 other leases got other hosts"),
        ({"code": "not_proven"}, "  Whether it would fit if other leases got other hosts was not found in the time"),
    ],
    ids=["full", "no arrangement", "too many", "not proven"],
)
def test_why_there_is_no_room_has_its_proof(run: Run, service: Any, proof: Mapping[str, Any], said: str) -> None:
    service.post(f"{URL}/availability", **says("availability", {**ANSWER, "openings": [], "proof": proof}))
    _, _, err = run(*FIND)
    assert err.splitlines()[1].startswith(said)


def test_a_search_that_was_cut_short_goes_on_from_there(run: Run, service: Any) -> None:
    short = {**ANSWER, "openings": [], "complete": False, "searched_until": "2026-12-01T00:00:00Z"}
    service.post(f"{URL}/availability", [says("availability", short), says("availability", ANSWER)])
    code, _, _ = run(*FIND)
    first, second = (request.json() for request in sent(service, "POST"))
    assert code == 0
    assert "earliest" not in first
    assert (second["earliest"], second["latest"]) == ("2026-12-01T00:00:00Z", "2027-01-22T10:15:42Z")


def test_the_first_is_booked_and_if_it_is_taken_the_next(run: Run, room: Any) -> None:
    taken = refusal("not_enough_resources", "None is free.")
    room.post(f"{URL}/leases", [taken, says("lease", LEASE, status_code=201)])
    code, out, err = run(*FIND, "--book", "training", "-f", "json")
    _, first, second = sent(room, "POST")
    assert code == 0
    assert [(row["lease_id"], row["start_date"]) for row in json.loads(out)] == [(ID, "2027-01-02T00:00:00Z")]
    assert first.json()["start_date"] == "2026-12-03T14:00:00Z"
    assert second.json() == {
        "name": "training",
        "start_date": "2027-01-02T00:00:00Z",
        "end_date": "2027-01-05T00:00:00Z",
        "reservations": [{"resource_type": "physical:host", "min": 4, "max": 6}],
    }
    assert "is taken meanwhile; trying the next" in err


def others_wait(opening: str | None) -> dict[str, Any]:
    return refusal("others_wait", "1 lease waits for the same resources.", data={"before": 1, "opening": opening})


@pytest.mark.parametrize(
    ("opening", "booked"),
    [
        (None, "2027-01-02T00:00:00Z"),
        ("2026-12-03T20:00:00Z", "2026-12-03T20:00:00Z"),
        ("2026-12-20T00:00:00Z", "2026-12-20T00:00:00Z"),
        ("2027-02-01T00:00:00Z", "2027-01-02T00:00:00Z"),
    ],
)
def test_where_others_wait_the_next_that_can_be_had_is_booked(
    run: Run, room: Any, opening: str | None, booked: str
) -> None:
    room.post(f"{URL}/leases", [others_wait(opening), says("lease", LEASE, status_code=201)])
    code, out, err = run(*FIND, "--book", "training", "-f", "json")
    assert (code, [row["start_date"] for row in json.loads(out)]) == (0, [booked]), err
    assert "Others wait for what is free at 2026-12-03 15:00+01:00; trying the next." in err


def test_where_others_wait_for_all_of_it_that_is_told(run: Run, room: Any) -> None:
    room.post(f"{URL}/leases", **others_wait("2027-01-21T00:00:00Z"))
    code, out, err = run(*FIND, "--book", "training")
    assert (code, out, err.splitlines()[-1]) == (6, "", "1 lease waits for the same resources.")
    assert len(sent(room, "POST")) == 3


def test_another_conflict_ends_the_search(run: Run, room: Any) -> None:
    room.post(f"{URL}/leases", **refusal("wrong_state", "It is not so."))
    assert run(*FIND, "--book", "training")[0] == 6
    assert len(sent(room, "POST")) == 2


def test_without_an_answer_the_command_that_books_the_same_opening_is_told(run: Run, room: Any) -> None:
    room.post(f"{URL}/leases", exc=requests.exceptions.ConnectionError("reset"))
    code, out, err = run("find", "--host", "min=4,max=6", "--book", "curie's exam")
    command, _, promise = err.partition("Give ")[2].partition("It finds")
    program, *again = shlex.split(command)
    assert (code, out, program) == (9, "", "blazar")
    assert promise == " the lease, or books it, and never books two.\n"
    run(*again)
    lost = [request for request in sent(room, "POST") if request.path.endswith("/leases")]
    assert len(lost) > 1
    assert len({request.text for request in lost}) == 1
    assert len({request.headers["Idempotency-Key"] for request in lost}) == 1


def test_a_column_that_is_not_there_is_told_of_before_anything_is_booked(run: Run, room: Any) -> None:
    code, out, err = run(*FIND, "--book", "training", "-c", "id")
    assert (code, out) == (1, "")
    assert err.startswith("There is no column id; choose from ")
    assert not sent(room, "POST")


def test_after_ctrl_c_while_it_is_searched_it_is_told_that_nothing_was_booked(run: Run, service: Any) -> None:
    service.post(f"{URL}/availability", exc=KeyboardInterrupt)
    code, _, err = run(*FIND, "--book", "training")
    assert (code, err) == (130, "Stopped; nothing was booked.\n")


def test_an_opening_beyond_the_limits_of_the_project_is_not_booked(run: Run, service: Any) -> None:
    limit = {"code": "reservation.limit_exceeded", "message": "120 of 2000 host-hours are left"}
    answer = {**ANSWER, "openings": [{**OPENING, "refusals": [limit]}]}
    service.post(f"{URL}/availability", **says("availability", answer))
    code, _, err = run(*FIND, "--book", "training")
    assert (code, err) == (5, "120 of 2000 host-hours are left\n")
    assert len(sent(service, "POST")) == 1


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ((), 1, "Nothing is asked for"),
        (("--host", "min=2,max=1"), 1, "min cannot be more than max"),
        (("--host", "min=1", "--duration", "long"), 2, "--duration: 'long' is no length of time"),
        (("--host", "min=1", "--earliest", "soon"), 2, "--earliest: 'soon' is no time"),
        (("--host", "min=1", "--latest", "late"), 2, "--latest: 'late' is no time"),
    ],
)
def test_a_question_that_is_none_is_not_asked(
    run: Run, room: Any, words: tuple[str, ...], code: int, sentence: str
) -> None:
    left, _, err = run("find", *words)
    assert left == code
    assert sentence in err
    assert not sent(room, "POST")


def test_an_old_service_is_told_of(run: Run, old_service: Any) -> None:
    old_service.post(f"{URL}/availability", json={"error": "not found"}, status_code=404)
    code, _, err = run("find", "--host", "min=1")
    assert code in (1, 7)
    assert "the reservation service" in err
