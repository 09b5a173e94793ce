# SPDX-License-Identifier: Apache-2.0
"""``journal list`` and ``journal follow``."""

from __future__ import annotations

from typing import Any

import pytest

from tests.blazarclient.commands.conftest import NEW, URL, Run, says, sent


def entry(position: int, verb: str, **more: Any) -> dict[str, Any]:
    return {
        "id": str(position),
        "position": position,
        "at": "2026-11-23T10:00:00Z",
        "by": {"kind": "operator", "user_id": "root", "project_id": "admin"},
        "verb": verb,
        "changes": [],
        "resources": [],
        "reason": None,
        "object": {"type": "resource", "id": "host/7", "name": "node-7", "revision": None},
        "project_id": None,
        "request_id": "req-1",
        "global_request_id": None,
        **more,
    }


DENIED = {
    "status_code": 403,
    "json": {"errors": [{"status": 403, "detail": "no more for you", "code": "x"}]},
    "headers": NEW,
}


def test_a_line_is_written_for_each_entry_and_the_next_look_goes_on_after_the_last(run: Run, service: Any) -> None:
    fan = {"field": "disabled_reason", "reservation_id": None, "before": None, "after": "fan"}
    first = says("history", [entry(8, "disabled", changes=[fan]), entry(9, "enabled")], headers=NEW)
    service.get(f"{URL}/history", [first, says("history", [], headers=NEW), DENIED])
    code, out, err = run("journal", "follow", "--after", "7", "--every", "0.1", "--type", "resource")
    lines = out.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["8", "9"]
    assert lines[0].endswith("resource node-7 disabled by root: disabled_reason: fan")
    assert lines[1].endswith("resource node-7 enabled by root")
    assert (code, "no more for you" in err) == (4, True)
    looks = [request.qs for request in sent(service, "GET") if request.path.endswith("/history")]
    assert [look["after"] for look in looks] == [["7"], ["9"], ["9"]]
    assert {look["object_type"][0] for look in looks} == {"resource"}


def test_without_a_position_it_begins_with_what_is_done_from_now_on(run: Run, service: Any) -> None:
    service.get(f"{URL}/history", [says("history", [entry(41, "enabled")], headers=NEW), DENIED])
    assert run("journal", "follow", "--every", "0.1")[:2] == (4, "")
    newest, after = [request.qs for request in sent(service, "GET") if request.path.endswith("/history")]
    assert (newest["sort_dir"], newest["limit"], after["after"]) == (["desc"], ["1"], ["41"])


@pytest.mark.parametrize("words", [("--after", "x"), ("--after", "-1"), ("--limit", "many")])
def test_what_is_no_number_is_refused_before_anything_is_asked(run: Run, service: Any, words: tuple[str, ...]) -> None:
    assert run("journal", "list", *words)[0] == 2
    assert not [request for request in sent(service, "GET") if request.path.endswith("/history")]


def test_a_period_may_lie_before_now_and_what_is_no_time_is_told_what_is(run: Run, service: Any) -> None:
    service.get(f"{URL}/history", [says("history", [], headers=NEW)])
    assert run("journal", "list", "--from", "-2d", "--to", "-1h")[0] == 0
    (asked,) = [request.qs for request in sent(service, "GET") if request.path.endswith("/history")]
    assert asked["from"] < asked["to"]
    code, _, err = run("journal", "list", "--from", "yesterday")
    assert (code, "--from: 'yesterday' is no time; write it as -2d, 2026-12-01 09:00, " in err) == (2, True)
