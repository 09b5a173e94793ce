# SPDX-License-Identifier: Apache-2.0
"""``lease update``: times of the existing client as ever, and those of the user's zone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.blazarclient.commands.conftest import ID, LEASE, SPOKEN, URL, Run, refusal, says, sent

RESERVATION = "33333333-2222-4333-8444-000000000003"


def changes(service: Any) -> list[dict[str, Any]]:
    return [request.json() for request in sent(service, "PUT")]


@pytest.mark.parametrize(
    ("words", "change"),
    [
        (("--end-date", "2026-11-27 09:00"), {"end_date": "2026-11-27 09:00"}),
        (("--start-date", "now"), {"start_date": "now"}),
        (("--prolong-for", "2h"), {"end_date": "2026-11-26 12:16"}),
        (("--name", "exam"), {"name": "exam"}),
    ],
)
def test_what_the_existing_client_knows_is_asked_for_as_it_does(
    run: Run, service: Any, words: tuple[str, ...], change: dict[str, Any]
) -> None:
    code, out, err = run("lease", "update", ID, *words)
    assert (code, out, err) == (0, f"Updated lease: {ID}\n", "")
    assert changes(service) == [change]
    assert "OpenStack-API-Version" not in sent(service, "PUT")[0].headers


@pytest.mark.parametrize(
    ("words", "change"),
    [
        (("--end", "2026-11-27 09:00"), {"end_date": "2026-11-27T08:00:00Z"}),
        (("--end", "tomorrow 9:00"), {"end_date": "2026-11-24T08:00:00Z"}),
        (("--end", "9:00", "--timezone", "UTC"), {"end_date": "2026-11-24T09:00:00Z"}),
        # From the start, as when it is booked.
        (("--end", "+4d"), {"end_date": "2026-11-27T10:15:42Z"}),
        (
            ("--start", "2026-11-24 09:00", "--end", "+4d"),
            {"start_date": "2026-11-24T08:00:00Z", "end_date": "2026-11-28T08:00:00Z"},
        ),
        (("--start", "+1h"), {"start_date": "2026-11-23T11:15:42Z"}),
        (("--end-date", "2026-11-27T09:00"), {"end_date": "2026-11-27T09:00:00Z"}),
        (("--end-date", "2026-11-27T09:00+01:00"), {"end_date": "2026-11-27T08:00:00Z"}),
        (("--end-date", "friday 18:00"), {"end_date": "2026-11-27T18:00:00Z"}),
        (("--end-date", "+4d"), {"end_date": "2026-11-27T10:15:42Z"}),
        (
            ("--start", "2026-11-24 09:00", "--prolong-for", "90s"),
            {"start_date": "2026-11-24T08:00:00Z", "end_date": "2026-11-26T10:17:12Z"},
        ),
        (
            ("--end", "2026-11-27 09:00", "--defer-by", "1h"),
            {"start_date": "2026-11-23T11:15:42Z", "end_date": "2026-11-27T08:00:00Z"},
        ),
        (("--before-end", "2h"), {"before_end_date": "2026-11-26T08:15:42Z"}),
        (
            ("--end", "2026-11-27 09:00", "--before-end", "2h"),
            {"end_date": "2026-11-27T08:00:00Z", "before_end_date": "2026-11-27T06:00:00Z"},
        ),
        (("--before-end-date", "2026-11-26 09:00"), {"before_end_date": "2026-11-26T09:00:00Z"}),
        (("--before-end", "default"), {"before_end_date": None}),
        (("--end", "+4d", "--name", "exam"), {"end_date": "2026-11-27T10:15:42Z", "name": "exam"}),
        (
            ("--end", "+4d", "--reservation", f"id={RESERVATION},max=3,resource_properties="),
            {
                "end_date": "2026-11-27T10:15:42Z",
                "reservations": [{"id": RESERVATION, "max": 3, "resource_properties": []}],
            },
        ),
    ],
)
def test_times_are_of_the_zone_of_the_user_but_for_options_of_the_existing_client(
    run: Run, service: Any, words: tuple[str, ...], change: dict[str, Any]
) -> None:
    code, out, err = run("lease", "update", "training", *words)
    assert (code, out, err) == (0, "Updated lease: training\n", "")
    assert changes(service) == [change]
    [request] = sent(service, "PUT")
    assert request.headers["OpenStack-API-Version"] == SPOKEN
    assert request.headers["If-Match"] == '"3.1.m"'


def test_where_nothing_was_changed_that_is_said(run: Run, service: Any) -> None:
    assert run("lease", "update", ID) == (
        0,
        f"Nothing was changed of lease {ID}: no option says what to change; --help lists them\n",
        "",
    )
    assert not changes(service)
    # The service leaves the revision as it was.
    service.put(f"{URL}/leases/{ID}", **says("lease", LEASE))
    told = run("lease", "update", "training", "--end", "2026-11-26 11:15:42")
    assert told == (0, "Nothing was changed of lease training: it is so already\n", "")
    assert len(changes(service)) == 1


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("--end", "soon"), 2, "--end: 'soon' is no time; write it as "),
        (("--start", "25:00"), 2, "--start: '25:00' is no time"),
        (("--before-end", "soon"), 2, "--before-end: 'soon' is no time"),
        (("--end-date", "2026-13-01 09:00"), 1, "--end-date: '2026-13-01 09:00' is no time: month must be"),
        (("--end", "+1d", "--prolong-for", "1h"), 1, "--end and --prolong-for are both given; give one of them"),
        (("--start", "now", "--start-date", "now"), 1, "--start and --start-date are both given; give one of them"),
        (("--end", "+1d", "--timezone", "Mars/Olympus"), 2, "There is no time zone 'Mars/Olympus'"),
    ],
)
def test_a_time_that_is_none_is_refused_by_the_name_of_its_option(
    run: Run, service: Any, words: tuple[str, ...], code: int, sentence: str
) -> None:
    left, _, err = run("lease", "update", "training", *words)
    assert (left, err.startswith(sentence)) == (code, True), err
    assert not changes(service)


def test_a_lease_that_has_changed_since_it_was_read_is_left_alone(run: Run, service: Any) -> None:
    service.put(f"http://127.0.0.1:1234/v1/leases/{ID}", **refusal("precondition_failed", "It has changed.", 412))
    assert run("lease", "update", "training", "--end", "+4d")[::2] == (6, "It has changed.\n")


def test_an_old_service_is_asked_in_whole_minutes(run: Run, old_service: Any) -> None:
    code, out, err = run("lease", "update", "training", "--start", "12:00", "--end", "+4d", "--name", "exam")
    assert (code, out, err) == (0, "Updated lease: training\n", "")
    done = [request for request in sent(old_service, "PUT") if "OpenStack-API-Version" not in request.headers]
    assert [request.json() for request in done] == [
        {"name": "exam", "start_date": "2026-11-23 11:00", "end_date": "2026-11-27 11:00"}
    ]


def test_the_warning_of_an_old_service_cannot_be_changed(run: Run, old_service: Any) -> None:
    code, _, err = run("lease", "update", "training", "--before-end", "2h")
    assert code == 1
    assert err.startswith("The warning cannot be changed: ")
