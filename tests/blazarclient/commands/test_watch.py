# SPDX-License-Identifier: Apache-2.0
"""``lease watch`` and ``why``."""

from __future__ import annotations

from typing import Any

import pytest
import requests

from tests.blazarclient.commands.conftest import ID, LEASE, NEW, SPOKEN, URL, Run, says
from tests.blazarclient.commands.test_listing import FULL

UNCHANGED = {"status_code": 304, "headers": NEW}


def seen(*statuses: str, **more: Any) -> list[dict[str, Any]]:
    """Return answers with a lease in one status after the other."""
    told = [{**LEASE, "status": status, "revision": number, **more} for number, status in enumerate(statuses)]
    return [says("lease", lease, headers={"ETag": f'"{lease["revision"]}.1.m"'}) for lease in told]


def watch(run: Run, *words: str) -> tuple[int, list[str], str]:
    code, out, err = run("lease", "watch", ID, "--every", "0", *words)
    return code, [line.split(", ")[0].rpartition("  ")[2] for line in out.splitlines()], err


def test_a_line_is_written_for_each_change_until_it_is_over(run: Run, service: Any) -> None:
    first, *rest = seen("PENDING", "ACTIVE", "TERMINATED")
    service.get(f"{URL}/leases/{ID}", [first, first, UNCHANGED, *rest])
    code, lines, err = watch(run)
    assert (code, lines, err) == (0, ["PENDING", "ACTIVE", "TERMINATED"], "")


@pytest.mark.parametrize(
    ("statuses", "words", "code"),
    [
        (("PENDING", "ERROR"), (), 1),
        (("PENDING", "ACTIVE"), ("--until", "active"), 0),
        (("PENDING", "TERMINATED"), ("--until", "active"), 1),
    ],
)
def test_the_exit_code_is_the_outcome(
    run: Run, service: Any, statuses: tuple[str, ...], words: tuple[str, ...], code: int
) -> None:
    first, *rest = seen(*statuses)
    service.get(f"{URL}/leases/{ID}", [first, first, *rest])
    assert watch(run, *words)[:2] == (code, list(statuses))


def test_of_a_lease_in_line_its_place_is_told_whenever_it_changes(run: Run, service: Any) -> None:
    waiting = {**LEASE, "status": "CREATING", "revision": 1}
    timed_out = {**LEASE, "status": "ERROR", "revision": 2}
    tag, last_tag = {"ETag": '"1.1.m"'}, {"ETag": '"2.1.m"'}
    old = [says("lease", waiting, headers=tag)] * 4 + [says("lease", timed_out, headers=last_tag)]
    service.get(f"{URL}/leases/{ID}", old)
    ends = {"queued_at": "2026-11-23T10:00:00Z", "until": "2026-11-23T12:00:00Z"}
    new = [{**waiting, "status": "WAITING", "wait": {**ends, "position": place}} for place in (2, 2, 2, 1)]
    new += [{**timed_out, "status": "TIMED_OUT", "wait": {**ends, "reason": "too few are free"}}]
    told = [says("lease", {**lease, "kind": "scheduled"}, headers=NEW) for lease in new]
    service.get(f"{URL}/leases/{ID}", told, request_headers={"OpenStack-API-Version": SPOKEN})
    code, out, err = run("lease", "watch", ID, "--every", "0")
    assert (code, err) == (1, "")
    assert [line.partition("  ")[2] for line in out.splitlines()] == [
        "WAITING, number 2 in line, until 2026-11-23 13:00+01:00",
        "WAITING, number 1 in line, until 2026-11-23 13:00+01:00",
        "TIMED_OUT, in vain, until 2026-11-23 13:00+01:00: too few are free",
    ]


def test_a_lease_that_is_deleted_is_over(run: Run, service: Any) -> None:
    service.get(f"{URL}/leases/{ID}", **says("lease", {**LEASE, "deleted_at": "2026-11-23T12:00:00Z"}))
    assert watch(run)[:2] == (0, ["deleted"])


def test_it_goes_on_when_the_service_is_back(run: Run, service: Any) -> None:
    first, last = seen("PENDING", "TERMINATED")
    lost = {"exc": requests.exceptions.ConnectionError("reset")}
    service.get(f"{URL}/leases/{ID}", [first, first, lost, lost, lost, first, last])
    code, lines, err = watch(run)
    assert (code, lines) == (0, ["PENDING", "TERMINATED"])
    assert err.endswith("; still watching.\n")
    assert err.count("still watching") == 1, "an outage is told once"


def test_ctrl_c_ends_it(run: Run, service: Any) -> None:
    (first,) = seen("PENDING")
    service.get(f"{URL}/leases/{ID}", [first, first, {"exc": KeyboardInterrupt}])
    assert watch(run) == (130, ["PENDING"], "Stopped.\n")


def test_what_is_wrong_is_told_in_sentences(run: Run, service: Any) -> None:
    service.get(f"{URL}/leases/{ID}", **says("lease", FULL))
    code, out, _ = run("why", "training")
    assert code == 0
    assert out.splitlines() == [
        "Lease training is ACTIVE until 2026-11-26 11:15:42+01:00, but not all of it is as it was promised:",
        "  since 2026-11-23 10:58:40+01:00: 1 of 2 hosts has failed",
        "  start_lease at 2026-11-23 11:15:42+01:00: the servers of the one before were still there",
    ]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({}, "Lease training is ACTIVE until 2026-11-26 11:15:42+01:00; nothing is known to be wrong."),
        (
            {"status": "PENDING"},
            "Lease training is PENDING and begins at 2026-11-23 11:15:42+01:00; nothing is known to be wrong.",
        ),
        (
            {"status": "TERMINATED"},
            "Lease training ended at 2026-11-26 11:15:42+01:00; nothing is known to be wrong.",
        ),
        ({"deleted_at": "2026-11-24T10:00:00Z"}, "Lease training was deleted at 2026-11-24 11:00+01:00."),
    ],
)
def test_if_nothing_is_wrong_it_says_so(run: Run, service: Any, values: dict[str, Any], sentence: str) -> None:
    service.get(f"{URL}/leases/{ID}", **says("lease", {**LEASE, **values}))
    assert run("why", "training")[:2] == (0, sentence + "\n")


def test_when_something_is_tried_again_is_told(run: Run, service: Any) -> None:
    event = {
        "event_type": "start_lease",
        "time": "2026-11-23T10:15:42Z",
        "status": "IN_PROGRESS",
        "attempts": 3,
        "next_attempt_at": "2026-11-23T10:20:00Z",
        "reason": {"code": "cloud_unavailable", "message": "Nova does not answer"},
    }
    service.get(f"{URL}/leases/{ID}", **says("lease", {**LEASE, "status": "STARTING", "events": [event]}))
    assert run("why", "training")[1].splitlines()[1] == (
        "  start_lease at 2026-11-23 11:15:42+01:00, tried 3 times: Nova does not answer; "
        "tried again at 2026-11-23 11:20+01:00"
    )


@pytest.mark.parametrize("words", [("--until", "ACTIV"), ("--every", "-1"), ("--every", "nan"), ("--every", "x")])
def test_what_would_never_end_or_keep_the_service_busy_is_refused(
    run: Run, service: Any, words: tuple[str, ...]
) -> None:
    code, out, err = run("lease", "watch", "training", *words)
    assert (code, out) == (2, "")
    assert f"argument {words[0]}: " in err
    assert not service.called


WAIT = {
    "queued_at": "2026-11-23T10:15:42Z",
    "until": "2026-11-30T10:15:42Z",
    "position": 2,
    "estimated_start": "2026-11-24T10:15:42Z",
    "reason": None,
}
UNPLANNED = {**WAIT, "position": None, "estimated_start": None}


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            {"status": "WAITING", "wait": WAIT},
            "Lease training waits for its turn until 2026-11-30 11:15:42+01:00; it is number 2 in line, and probably "
            "starts at 2026-11-24 11:15:42+01:00.",
        ),
        (
            {"status": "WAITING", "wait": {**UNPLANNED, "reason": "none is left"}},
            "Lease training waits for its turn until 2026-11-30 11:15:42+01:00: none is left.",
        ),
        (
            {"status": "TIMED_OUT", "wait": {**WAIT, "position": None, "reason": "none is left"}},
            "Lease training has waited for its turn in vain, until 2026-11-30 11:15:42+01:00: none is left.",
        ),
        (
            {"release_at": "2026-11-24T10:15:42Z", "usage": "unused"},
            "Lease training is ACTIVE until 2026-11-26 11:15:42+01:00, and is released at 2026-11-24 11:15:42+01:00 "
            "because nobody uses it; nothing is known to be wrong.",
        ),
    ],
)
def test_it_says_for_what_a_lease_waits_and_what_threatens_it(
    run: Run, service: Any, values: dict[str, Any], sentence: str
) -> None:
    service.get(f"{URL}/leases/{ID}", **says("lease", {**LEASE, **values}))
    assert run("why", "training")[:2] == (0, sentence + "\n")
