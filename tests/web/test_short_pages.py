# SPDX-License-Identifier: Apache-2.0
"""What the pages say is true at any number: they are walked with a service whose lists have three items a page."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect

from tests.web.conftest import ADMIN, ALICE, standalone
from tests.web.service import asked, emptied
from tests.web.test_kinds import hosts_of, leased, page_of_lease, whole

PAGE = 3
START = (datetime.now(UTC) + timedelta(days=3)).replace(minute=0, second=0, microsecond=0)
TIMES = {"start_date": whole(START), "end_date": whole(START + timedelta(days=2))}


@pytest.fixture(scope="module")
def of_short_pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("short-pages")
    settings = folder / "blazar.conf"
    lines = [f"{name} = {PAGE}" for name in ("page_size", "calendar_page_size")]
    settings.write_text("\n".join(["[api]", *lines, *(f"max_{line}" for line in lines), ""]), encoding="utf-8")
    yield from standalone(folder, "--config-file", str(settings))


@pytest.fixture
def paged(of_short_pages: str) -> Iterator[str]:
    """The pages of a service whose lists have three items a page."""
    yield of_short_pages
    emptied(of_short_pages, ADMIN)


@pytest.mark.parametrize("after", [False, True], ids=["the same dates", "one after the other"])
def test_a_lease_to_merge_with_is_found_behind_any_number_of_others(paged, page_of, after):
    for number in range(PAGE):
        body = {"start_date": whole(START + timedelta(days=10 + number)), "end_date": "+PT1H"}
        leased(paged, ALICE, f"earlier {number}", **body)
    for number in range(PAGE):
        gone = leased(paged, ALICE, f"ended {number}", **TIMES)
        asked(paged, ALICE, "DELETE", f"v1/leases/{gone['id']}")
    lease = leased(paged, ALICE, "training", **TIMES)
    page = page_of(page_of_lease(paged, lease), ALICE)
    page.get_by_role("button", name="More for training").click()
    choice = page.get_by_role("button", name="Merge it with another")
    expect(page.get_by_text("No other lease has the same dates")).to_be_visible()
    expect(choice).to_be_disabled()
    times = {"start_date": TIMES["end_date"], "end_date": "+P1D"} if after else TIMES
    others = [leased(paged, ALICE, f"evaluation {number}", **times) for number in range(PAGE + 1)]
    page.reload()
    page.get_by_role("button", name="More for training").click()
    choice.click()
    expect(page.get_by_role("dialog").get_by_label("Take over").locator("option")).to_have_count(len(others) + 1)


def test_every_host_can_be_chosen_for_maintenance(paged, page_of):
    page = page_of(f"{paged}maintenance?do=plan", ADMIN)
    expect(page.get_by_role("list", name="Hosts").get_by_role("checkbox")).to_have_count(hosts_of(paged))


def test_the_state_of_every_host_is_said(paged, page_of):
    count = hosts_of(paged)
    assert count > PAGE
    leased(paged, ALICE, "all but one", count - 1, start_date="now", end_date="+P2D")
    page = page_of(paged + "hosts", ADMIN)
    words = page.locator("main tbody .state-word")
    expect(words).to_have_count(count)
    expect(words.filter(has_text="promised")).to_have_count(count - 1)
    expect(words.filter(has_text="free")).to_have_count(1)
    # The page of one asks for that one alone.
    with page.expect_response(lambda answer: "v1/calendar" in answer.url and "resource=" in answer.url) as answered:
        page.get_by_role("row").filter(has_text="promised").last.locator("th a").click()
    assert len(answered.value.json()["calendar"]["resources"]) == 1
    expect(page.locator(".facts .state-word").first).to_have_text("promised")
