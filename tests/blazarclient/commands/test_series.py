# SPDX-License-Identifier: Apache-2.0
"""``series``: leases that recur."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.blazarclient.commands.conftest import NEW, SPOKEN, URL, Run, refusal, sent

ID = "5d3f0a52-3c1e-4a1b-9c07-5f2c6f0c7a11"
SERIES: dict[str, Any] = {
    "id": ID,
    "name": "practical",
    "status": "ACTIVE",
    "reason": None,
    "rule": "FREQ=DAILY;COUNT=2",
    "start": "2026-12-01T09:00:00",
    "time_zone": "Europe/Paris",
    "duration": "PT4H",
    "until_local": None,
    "exdates": [],
    "rdates": [],
    "fit": "all",
    "before_end_date": None,
    "reservations": [{"resource_type": "physical:host", "min": 1}],
    "booked_until": None,
    "previous_id": None,
    "project_id": "physics",
    "user_id": "curie",
    "revision": 2,
    "created_at": "2026-11-23T10:15:42Z",
    "updated_at": None,
    "deleted_at": None,
}
BOOKED = {
    "recurrence_id": "2026-12-01T09:00:00",
    "start_date": "2026-12-01T08:00:00Z",
    "end_date": "2026-12-01T12:00:00Z",
    "state": "booked",
    "lease_id": "11111111-2222-4333-8444-000000000001",
    "lease_status": "PENDING",
    "changed": False,
    "reason": None,
    "opening": None,
}
UNFIT = {
    **BOOKED,
    "recurrence_id": "2026-12-02T09:00:00",
    "start_date": "2026-12-02T08:00:00Z",
    "state": "unfit",
    "lease_id": None,
    "lease_status": None,
    "reason": "0 hosts are free",
    "opening": {"start_date": "2026-12-02T14:00:00Z", "end_date": "2026-12-02T18:00:00Z"},
}
WHOLE = {**SERIES, "occurrences": [BOOKED, UNFIT]}
WORDS = ("--rule", "FREQ=DAILY;COUNT=2", "--start", "2026-12-01T09:00", "--duration", "4h")
HOST = ("--reservation", "resource_type=physical:host,min=1")


def says(value: Any, **more: Any) -> dict[str, Any]:
    return {"json": {"series": value}, "headers": NEW, **more}


def test_a_series_is_booked_and_shown_with_what_does_not_fit(run: Run, service: Any) -> None:
    service.post(f"{URL}/series", **says(WHOLE, status_code=201))
    words = ("--fit", "as-many", "--except", "2026-12-08T09:00", "--before-end", "2h", "--timezone", "Europe/Paris")
    code, out, err = run("series", "create", "practical", *WORDS, *HOST, *words)
    assert code == 0, err
    assert "1 of 2 occurrences do not fit" in err
    assert "2026-12-01T09:00:00 2026-12-01 09:00+01:00 booked 11111111-2222-4333-8444-000000000001" in out
    assert "unfit 0 hosts are free (fits 2026-12-02 15:00+01:00)" in " ".join(out.split())
    (request,) = sent(service, "POST")
    assert request.headers["OpenStack-API-Version"] == SPOKEN
    assert request.headers["Idempotency-Key"]
    body = request.json()
    assert body.pop("reservations")[0]["resource_type"] == "physical:host"
    assert body == {
        "name": "practical",
        "rule": "FREQ=DAILY;COUNT=2",
        "start": "2026-12-01T09:00",
        "duration": "PT4H",
        "time_zone": "Europe/Paris",
        "fit": "as_many",
        "exdates": ["2026-12-08T09:00"],
        "before_end_date": "-2h",
    }


def test_a_dry_run_books_nothing(run: Run, service: Any) -> None:
    service.post(f"{URL}/series", **says({**WHOLE, "id": None}))
    code, out, err = run("series", "create", "practical", *WORDS, *HOST, "--dry-run", "-f", "json")
    assert (code, json.loads(out)["id"]) == (0, None)
    assert json.loads(out)["occurrences"][1]["opening"] == UNFIT["opening"]
    assert "Nothing was booked" in err
    assert sent(service, "POST")[0].qs == {"dry_run": ["true"]}


def test_what_is_booked_in_the_background_is_said(run: Run, service: Any) -> None:
    service.post(f"{URL}/series", **says({**SERIES, "status": "CREATING", "occurrences": []}, status_code=202))
    _, _, err = run("series", "create", "practical", *WORDS, *HOST)
    assert "It is being booked" in err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((*WORDS,), "Nothing is reserved"),
        ((*WORDS[2:], *HOST), "--rule"),
        ((*WORDS, *HOST, "--until", "17:00"), "not allowed with"),
        ((*WORDS, "--reservation", "rocket"), "rocket"),
        ((*WORDS, *HOST, "--fit", "some"), "--fit"),
    ],
)
def test_what_cannot_be_is_not_sent(run: Run, service: Any, words: tuple[str, ...], why: str) -> None:
    code, _, err = run("series", "create", "practical", *words)
    assert code != 0
    assert why in err
    assert not sent(service, "POST")


def test_a_refusal_is_told(run: Run, service: Any) -> None:
    answer = refusal("not_enough_resources", "the occurrence of 2026-12-02 09:00 does not fit")
    service.post(f"{URL}/series", **{**answer, "headers": NEW})
    code, _, err = run("series", "create", "practical", *WORDS, *HOST)
    assert code == 5
    assert "2026-12-02 09:00 does not fit" in err


def test_series_are_listed_and_found_by_name(run: Run, service: Any) -> None:
    service.get(f"{URL}/series", **says([SERIES]))
    service.get(f"{URL}/series/{ID}", **says(WHOLE))
    _, out, _ = run("series", "list", "--status", "active", "-f", "json")
    assert json.loads(out) == [{key: SERIES[key] for key in ("id", "name", "status", "rule", "start", "time_zone")}]
    assert sent(service, "GET")[0].qs["status"] == ["active"]
    _, out, _ = run("series", "show", "practical", "-f", "json")
    assert json.loads(out)["occurrences"][0]["lease_id"] == BOOKED["lease_id"]
    code, _, err = run("series", "show", "nothing")
    assert code == 3
    assert "There is no series nothing" in err


def test_the_following_are_changed(run: Run, service: Any) -> None:
    other = {**WHOLE, "id": "6d3f0a52-3c1e-4a1b-9c07-5f2c6f0c7a12", "previous_id": ID}
    service.get(f"{URL}/series/{ID}", **says(WHOLE))
    service.put(f"{URL}/series/{ID}", **says(other))
    words = ("--from", "2026-12-02T09:00:00", "--until", "12:00", "--changed", "--name", "short")
    code, _, err = run("series", "change", ID, *words)
    assert code == 0, err
    assert f"Occurrences before stay in series {ID}" in err
    assert sent(service, "PUT")[0].json() == {
        "from": "2026-12-02T09:00:00",
        "until_local": "12:00",
        "changed": True,
        "name": "short",
    }
    code, _, err = run("series", "change", ID, "--from", "2026-12-02T09:00:00")
    assert code == 1
    assert "Nothing is to change" in err


def test_series_are_deleted_with_what_runs_by_choice(run: Run, service: Any) -> None:
    service.get(f"{URL}/series/{ID}", **says(WHOLE))
    service.delete(f"{URL}/series/{ID}", status_code=204, headers=NEW)
    code, out, _ = run("series", "delete", ID, "--running")
    assert (code, out) == (0, f"Deleted series: {ID}\n")
    assert sent(service, "DELETE")[0].qs == {"running": ["true"]}


def test_what_a_change_is_given_is_shown_in_whatever_zone(run: Run, service: Any) -> None:
    moved = {**BOOKED, "start_date": "2026-12-01T15:00:00Z", "changed": True}
    service.get(f"{URL}/series/{ID}", **says({**SERIES, "occurrences": [moved, UNFIT]}))
    _, out, err = run("series", "show", ID, "--timezone", "UTC", "-f", "value", "-c", "occurrences")
    head, first, second = out.splitlines()
    assert head.split() == ["recurrence_id", "start_date"], err
    assert first.startswith("2026-12-01T09:00:00 2026-12-01 15:00+00:00 booked (changed) 1111")
    assert second.startswith("2026-12-02T09:00:00 2026-12-02 08:00+00:00 unfit")


@pytest.mark.parametrize(
    ("given", "sent_as"),
    [
        ("2026-12-02T09:00:00", "2026-12-02T09:00:00"),
        ("2026-12-02 9:00", "2026-12-02T09:00"),
        ("2026-12-02T08:00Z", "2026-12-02T09:00:00"),
        ("tomorrow 9:00", "2026-11-24T09:00:00"),
        ("friday 18:00", "2026-11-27T18:00:00"),
    ],
)
def test_starts_are_written_as_other_times_are(run: Run, service: Any, given: str, sent_as: str) -> None:
    service.post(f"{URL}/series", **says(WHOLE, status_code=201))
    words = ("--rule", "FREQ=DAILY;COUNT=2", "--duration", "2 hours", "--start", given, "--also", given)
    code, _, err = run("series", "create", "practical", *words, "--physical-reservation", "min=1", *HOST)
    assert code == 0, err
    body = sent(service, "POST")[0].json()
    assert (body["start"], body["rdates"], body["duration"]) == (sent_as, [sent_as], "PT2H")
    assert [each["resource_type"] for each in body["reservations"]] == ["physical:host", "physical:host"]
    service.get(f"{URL}/series/{ID}", **says(WHOLE))
    service.put(f"{URL}/series/{ID}", **says(WHOLE))
    # Of a change they are those of the series, wherever its user is.
    assert run("series", "change", ID, "--from", given, "--name", "x", "--timezone", "Asia/Tokyo")[0] == 0
    assert sent(service, "PUT")[0].json() == {"from": sent_as, "name": "x"}


def test_a_start_that_is_none_is_refused_before_anything_is_sent(run: Run, service: Any) -> None:
    words = (*WORDS[:2], "--start", "soon", *WORDS[4:], *HOST)
    code, _, err = run("series", "create", "practical", *words)
    assert (code, err.startswith("--start: 'soon' is no time"), sent(service, "POST")) == (2, True, [])


def test_a_refusal_names_the_option(run: Run, service: Any) -> None:
    answer = refusal("invalid_value", "it ends before it begins", 400, pointer="/until_local")
    service.post(f"{URL}/series", **{**answer, "headers": NEW})
    _, _, err = run("series", "create", "practical", *WORDS[:4], "--until", "01:00", *HOST)
    assert err == "--until: it ends before it begins\n"


@pytest.mark.parametrize("word", ["as-many", "as_many"])
def test_both_spellings_of_what_fits_are_understood(run: Run, service: Any, word: str) -> None:
    service.post(f"{URL}/series", **says(WHOLE, status_code=201))
    assert run("series", "create", "practical", *WORDS, *HOST, "--fit", word)[0] == 0
    assert sent(service, "POST")[0].json()["fit"] == "as_many"
    assert "{all,as-many}" in run("series", "create", "--help")[1]
