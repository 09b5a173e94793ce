# SPDX-License-Identifier: Apache-2.0
"""Reminders on the command line: how they are written, what is asked for, and what is told of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.blazarclient.commands.conftest import ID, LEASE, NEW, URL, Run, refusal, says, sent

CREATE = ("lease", "create", "training", "--physical-reservation", "min=1", "--duration", "3d")
SAVE = ("--reminder", "before-end=2h,text=copy the results, and logs")
ASKED = {"at": "-PT2H", "from": "end", "text": "copy the results, and logs"}
TOLD = [
    {**ASKED, "time": "2026-11-26T08:15:42Z", "sent_at": None},
    {"at": "+P1D", "from": "start", "text": "look", "time": "2026-11-24T10:15:42Z", "sent_at": "2026-11-24T10:15:43Z"},
]


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (SAVE[1], ASKED),
        ("after-start=1d,text=look", {"at": "+P1D", "from": "start", "text": "look"}),
        ("before-start=PT30M,text=a=b", {"at": "-PT30M", "from": "start", "text": "a=b"}),
        ("at=2026-11-24 09:00,text=call", {"at": "2026-11-24T08:00:00Z", "text": "call"}),
    ],
)
def test_a_reminder_is_written_as_a_time_and_a_text(run: Run, service: Any, words: str, asked: dict[str, Any]) -> None:
    code, _, err = run(*CREATE, "--reminder", words)
    assert (code, sent(service, "POST")[0].json()["reminders"]) == (0, [asked]), err


@pytest.mark.parametrize(
    ("words", "says_so"),
    [
        ("before-end=2h", "write it as 'before-end=2h,text=copy the results'"),
        ("end=2h,text=x", "one of before-end, before-start, after-start, at"),
        ("before-end=soon,text=x", "--reminder: 'soon' is no length of time"),
        ("at=soon,text=x", "--reminder: 'soon' is no time"),
    ],
)
def test_what_cannot_be_read_is_refused_before_anything_is_sent(
    run: Run, service: Any, words: str, says_so: str
) -> None:
    code, _, err = run(*CREATE, "--reminder", words)
    assert (code != 0, says_so in " ".join(err.split()), sent(service, "POST")) == (True, True, []), err


def test_a_file_has_them_as_texts_or_as_the_service_takes_them(run: Run, service: Any, tmp_path: Any) -> None:
    file = tmp_path / "lease.yaml"
    file.write_text(
        "name: training\nduration: 3d\nreservations:\n  - {resource_type: 'physical:host', min: 1}\n"
        "reminders:\n  - before-end=2h,text=copy the results, and logs\n  - {at: +P1D, text: look}\n"
    )
    code, _, err = run("lease", "create", "-F", str(file))
    assert (code, sent(service, "POST")[0].json()["reminders"]) == (0, [ASKED, {"at": "+P1D", "text": "look"}]), err
    file.write_text("name: x\nduration: 3d\nreservations: []\nreminders: soon\n")
    code, _, err = run("lease", "create", "-F", str(file))
    assert (code != 0, "is no list" in err) == (True, True)


def test_a_refusal_names_the_option_and_which(run: Run, service: Any) -> None:
    detail = "reminders[1] would be at 2026-11-23T09:15:42Z, and it is 2026-11-23T10:15:42Z now; give a time to come"
    service.post(f"{URL}/leases", **refusal("date_in_past", detail, 400, pointer="/reminders/1/at"))
    code, _, err = run(*CREATE, *SAVE, "--reminder", "before-end=80h,text=x")
    said = "--reminder, the second: would be at 2026-11-23T09:15:42Z, and it is 2026-11-23T10:15:42Z now"
    assert (code != 0, said in " ".join(err.split())) == (True, True), err


def test_a_service_of_1_0_is_not_asked_in_vain(run: Run, service: Any) -> None:
    service.get(f"{URL}/info", **refusal("version_unsupported", "version 1.1 is not supported", 406))
    assert run(*CREATE, *SAVE)[0] != 0
    assert sent(service, "POST") == []


def test_an_update_takes_the_place_of_all_and_removes_them(run: Run, service: Any) -> None:
    assert run("lease", "update", ID, *SAVE)[0] == 0
    assert run("lease", "update", ID, "--no-reminders")[0] == 0
    assert [request.json() for request in sent(service, "PUT")] == [{"reminders": [ASKED]}, {"reminders": []}]
    assert run("lease", "update", ID, "--no-reminders", *SAVE)[0] != 0


def test_a_lease_shows_when_they_are_told_and_were(run: Run, service: Any) -> None:
    service.get(f"{URL}/leases/{ID}", **says("lease", {**LEASE, "reminders": TOLD}, headers={"ETag": '"3.1.m"'}))
    code, out, err = run("lease", "show", ID, "--long")
    assert code == 0, err
    shown = " ".join(out.split())
    assert "2026-11-26 09:15:42+01:00: copy the results, and logs" in shown
    assert "2026-11-24 11:15:42+01:00: look (told 2026-11-24 11:15:43+01:00)" in shown


def test_a_series_has_them_for_each_lease(run: Run, service: Any) -> None:
    series = {"id": ID, "name": "course", "time_zone": "Europe/Paris", "reminders": [ASKED], "occurrences": []}
    service.post(f"{URL}/series", json={"series": series}, headers=NEW, status_code=201)
    service.get(f"{URL}/series/{ID}", json={"series": series}, headers=NEW)
    service.put(f"{URL}/series/{ID}", json={"series": series}, headers=NEW)
    when = ("--rule", "FREQ=DAILY;COUNT=3", "--start", "2026-12-01T09:00", "--duration", "4h")
    code, out, err = run("series", "create", "course", *when, "--physical-reservation", "min=1", *SAVE)
    assert (code, sent(service, "POST")[0].json()["reminders"]) == (0, [ASKED]), err
    assert "-PT2H from its end: copy the results, and logs" in " ".join(out.split())
    code, _, err = run("series", "change", ID, "--no-reminders")
    assert (code, sent(service, "PUT")[0].json()["reminders"]) == (0, []), err
