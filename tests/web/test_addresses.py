# SPDX-License-Identifier: Apache-2.0
"""What is switched on in a page is in its address: one that is loaded again shows the same."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.web.conftest import ADMIN, ALICE, query_of

SWITCHES = "main button[aria-pressed]"
PLACES = ("calendar", "leases", "all-leases", "hosts", "resources", "maintenance", "overview", "usage")


def looked_at(page: Page) -> Locator:
    """Return the switches of a page, once it shows what it is about."""
    expect(page.locator("h1").first).to_be_visible()
    expect(page.locator(".skeleton")).to_have_count(0)
    return page.locator(SWITCHES)


def named(text: str) -> re.Pattern[str]:
    """Return what a switch is found by: the numbers on it are of another moment."""
    return re.compile("^" + re.sub(r"[\d,]+", r"[\\d,]+", re.escape(text)) + "$")


@pytest.mark.parametrize("place", PLACES)
def test_a_switch_stays_as_it_was_set_when_the_page_is_loaded_again(demo, page_of, place):
    page = page_of(demo + place, ADMIN)
    looked_at(page)
    names = [name for name in page.locator(SWITCHES).all_text_contents() if name]
    for name in names:
        page.goto(demo + place)
        before = looked_at(page).filter(has_text=named(name)).first
        if before.get_attribute("aria-pressed") == "true":
            continue
        before.click()
        switch = looked_at(page).filter(has_text=named(name)).first
        expect(switch).to_have_attribute("aria-pressed", "true")
        page.reload()
        expect(switch).to_have_attribute("aria-pressed", "true")
    assert names


@pytest.mark.parametrize("place", ["calendar", "all-leases", "usage"])
def test_a_choice_stays_as_it_was_made_when_the_page_is_loaded_again(demo, page_of, place):
    page = page_of(demo + place, ADMIN)
    looked_at(page)
    expect(page.locator("main select").first).to_be_visible()
    for index in range(page.locator("main select").count()):
        page.goto(demo + place)
        looked_at(page)
        choice = page.locator("main select").nth(index)
        present = choice.input_value()
        options = choice.locator("option").evaluate_all("all => all.map(one => one.value)")
        other = next((value for value in options if value != present), None)
        if other is None:
            continue
        choice.select_option(other)
        expect(choice).to_have_value(other)
        page.reload()
        looked_at(page)
        expect(choice).to_have_value(other)


def test_mine_only_in_the_calendar_leaves_only_what_one_has(demo, page_of):
    page = page_of(demo + "calendar?view=table", ALICE)
    button = page.get_by_role("button", name="Mine only")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    assert "mine" in query_of(page)
    button.click()
    expect(button).to_have_attribute("aria-pressed", "false")
    assert "mine" not in query_of(page)
