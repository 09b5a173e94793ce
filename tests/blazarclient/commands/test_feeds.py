# SPDX-License-Identifier: Apache-2.0
"""``feed``: links for calendar programs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.blazarclient.commands.conftest import SPOKEN, URL, Run, refusal, says, sent

FEED = {
    "id": "c1d2e3f4-5a6b-4c7d-8e9f-0a1b2c3d4e5f",
    "kind": "user",
    "name": "my phone",
    "created_at": "2026-11-23T10:15:42Z",
    "expires_at": "2027-11-23T10:15:42Z",
}
LINK = "https://cloud.example/reservation/feeds/Yk3v0q7n.ics"


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ((), {"kind": "user", "name": "calendar"}),
        (("--name", "my phone"), {"kind": "user", "name": "my phone"}),
        (
            ("--kind", "resource", "--resource", "h-4kq2mz"),
            {"kind": "resource", "name": "calendar", "resource": "h-4kq2mz"},
        ),
        (
            ("--kind", "free-busy", "--requirement", "gpu=A100"),
            {"kind": "free_busy", "name": "calendar", "requirement": '["==", "$gpu", "A100"]'},
        ),
    ],
)
def test_a_link_is_made_and_shown_once(run: Run, service: Any, words: tuple[str, ...], asked: dict[str, Any]) -> None:
    service.post(f"{URL}/feeds", **says("feed", {**FEED, "url": LINK}, status_code=201))
    code, out, err = run("feed", "create", *words, "-f", "json")
    assert (code, json.loads(out)["url"]) == (0, LINK)
    assert "it is a secret" in err
    assert sent(service, "POST")[0].json() == asked


def test_a_column_that_is_not_there_makes_no_link_that_nobody_sees(run: Run, service: Any) -> None:
    code, out, err = run("feed", "create", "-c", "link")
    assert (code, out) == (1, "")
    assert err == "There is no column link; choose from created_at, expires_at, id, kind, name, url\n"
    assert not service.called


def test_a_requirement_that_is_none_is_not_sent(run: Run, service: Any) -> None:
    code, _, err = run("feed", "create", "--requirement", "gpu")
    assert code == 1
    assert "'gpu' is no requirement" in err
    assert not service.called


def test_links_are_listed_without_their_secrets(run: Run, service: Any) -> None:
    service.get(f"{URL}/feeds", **says("feeds", [FEED]))
    _, out, _ = run("feed", "list", "-f", "json")
    assert json.loads(out) == [FEED]


def test_each_link_that_is_revoked_is_told_of(run: Run, service: Any) -> None:
    service.delete(f"{URL}/feeds/a", status_code=204, headers={"OpenStack-API-Version": SPOKEN})
    service.delete(f"{URL}/feeds/b", **refusal("feed_not_found", "there is no such feed", status=404))
    code, out, err = run("feed", "delete", "b", "a")
    assert (code, out) == (3, "Deleted feed: a\n")
    assert err == "b: there is no such feed\n"


@pytest.mark.parametrize(("words", "seconds"), [((), 60), (("--timeout", "2"), 2), (("--timeout", "300"), 300)])
def test_an_answer_is_waited_for_as_long_as_the_user_says(
    run: Run, service: Any, words: tuple[str, ...], seconds: float
) -> None:
    service.get(f"{URL}/feeds", **says("feeds", []))
    run(*words, "feed", "list")
    assert service.last_request.timeout == seconds
