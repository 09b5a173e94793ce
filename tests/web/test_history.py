# SPDX-License-Identifier: Apache-2.0
"""The history of a lease: who did what, with values before and after, as far as the reader may know."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.web.conftest import ADMIN, ALICE, query_of, serious
from tests.web.service import asked
from tests.web.test_kinds import leased, page_of_lease, whole

START = datetime.now(UTC) + timedelta(days=3)
LATER = {"start_date": whole(START), "end_date": whole(START + timedelta(days=1))}
SUMMARY = "What was done to it, and by whom"


def renamed(pages: str, who: str, lease: dict[str, object], name: str) -> None:
    asked(pages, who, "PUT", f"v1/leases/{lease['id']}", {"name": name})


def entries(page: Page) -> Locator:
    return page.get_by_role("list", name="What was done to it").get_by_role("listitem")


def test_a_history_is_read_when_it_is_opened_and_shows_values_before_and_after(shared, page_of):
    lease = leased(shared, ALICE, "training", **LATER)
    renamed(shared, ALICE, lease, "evaluation")
    renamed(shared, ADMIN, lease, "seminar")
    page = page_of(shared, ALICE)
    asked_for: list[str] = []
    page.on("request", lambda request: asked_for.append(request.url) if "/history" in request.url else None)
    page.goto(page_of_lease(shared, lease))
    expect(page.get_by_role("heading", name="seminar", exact=True)).to_be_visible()
    page.wait_for_load_state("networkidle")
    assert asked_for == []
    page.get_by_text(SUMMARY).click()
    expect(entries(page)).to_have_count(3)
    assert len(asked_for) == 1
    # The latest first; who works in another project is an operator, no more.
    expect(entries(page).nth(0)).to_contain_text("Changed by an operator")
    expect(entries(page).nth(0)).to_contain_text("Name: evaluation → seminar")
    expect(entries(page).nth(1)).to_contain_text("Changed by you")
    expect(entries(page).nth(2)).to_contain_text("Created by you")
    expect(entries(page).nth(2)).to_contain_text(re.compile("Got h-"))
    expect(page.locator("details.history")).not_to_contain_text("admin")
    assert serious(page) == []
    assert query_of(page)["history"] == ["1"]


def test_operators_read_who_it_was_and_names_of_hosts(shared, page_of):
    lease = leased(shared, ALICE, "training", **LATER)
    renamed(shared, ADMIN, lease, "seminar")
    page = page_of(page_of_lease(shared, lease, history="1"), ADMIN)
    expect(entries(page).nth(0)).to_contain_text("Changed by you")
    expect(entries(page).nth(1)).to_contain_text("Created by alice")
    expect(entries(page).nth(1)).to_contain_text(re.compile("Got node-"))


def test_operators_read_the_name_also_of_a_host_that_was_given_up(shared, page_of):
    lease = leased(shared, ALICE, "training", **LATER)
    (reservation,) = lease["reservations"]
    (host,) = (one["resource"]["id"] for one in reservation["allocations"])
    path = f"v1/leases/{lease['id']}/reservations/{reservation['id']}/swap"
    asked(shared, ALICE, "POST", path, {"host": host})
    page = page_of(page_of_lease(shared, lease, history="1"), ADMIN)
    expect(entries(page).nth(0)).to_contain_text(re.compile(r"Gave up node-\d+; got node-\d+"))


def test_a_change_appears_in_an_open_history_and_earlier_ones_are_read_on_demand(shared, page_of):
    lease = leased(shared, ALICE, "name 0", **LATER)
    for number in range(1, 25):
        renamed(shared, ALICE, lease, f"name {number}")
    page = page_of(page_of_lease(shared, lease, history="1"), ALICE)
    expect(entries(page)).to_have_count(20)
    page.get_by_role("button", name="Show earlier ones").click()
    expect(entries(page)).to_have_count(25)
    expect(entries(page).last).to_contain_text("Created by you")
    expect(page.get_by_role("button", name="Show earlier ones")).to_have_count(0)
    page.get_by_role("button", name="Change", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("the last name")
    dialog.get_by_role("button", name=re.compile("^(Save|Change)")).click()
    expect(entries(page)).to_have_count(26)
    expect(entries(page).first).to_contain_text("Name: name 24 → the last name")


def test_a_deleted_lease_keeps_its_history(shared, page_of):
    lease = leased(shared, ALICE, "training", **LATER)
    asked(shared, ALICE, "DELETE", f"v1/leases/{lease['id']}")
    page = page_of(page_of_lease(shared, lease, history="1"), ALICE)
    expect(page.get_by_text("Deleted by you")).to_be_visible()


@pytest.mark.parametrize("look", ["dark", "phone"])
def test_a_history_is_accessible(shared, page_of, look):
    options = {"color_scheme": "dark"} if look == "dark" else {"viewport": {"width": 390, "height": 844}}
    lease = leased(shared, ALICE, "n" * 80, **LATER)
    renamed(shared, ALICE, lease, "m" * 80)
    page = page_of(page_of_lease(shared, lease, history="1"), ALICE, **options)
    expect(entries(page)).to_have_count(2)
    assert serious(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
