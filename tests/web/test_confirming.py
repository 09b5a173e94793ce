# SPDX-License-Identifier: Apache-2.0
"""A lease that is to be confirmed, on its page."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from playwright.sync_api import expect

from tests.web.conftest import ALICE, serious
from tests.web.test_kinds import leased, of_name, page_of_lease


def test_an_owner_confirms_a_lease_and_reads_that_somebody_has(shared, page_of):
    dates = {"start_date": "2031-03-03T09:00:00Z", "end_date": "2031-03-04T09:00:00Z"}
    lease = leased(shared, ALICE, "to-confirm", **dates, confirm_within="PT15M")
    page = page_of(page_of_lease(shared, lease), ALICE)
    expect(page.get_by_text("It is not confirmed yet, and deleted")).to_be_visible()
    assert serious(page) == []
    page.get_by_role("button", name="Confirm", exact=True).click()
    expect(page.get_by_text("It is not confirmed yet")).to_have_count(0)
    assert of_name(shared, "to-confirm")["confirm_by"] is None
    page.get_by_text("What was done to it, and by whom").click()
    expect(page.get_by_text("Confirmed", exact=True)).to_be_visible()


def test_a_lease_is_held_from_the_dialog_that_books_until_it_is_confirmed(shared, page_of):
    page = page_of(f"{shared}?min=1&start=2031-04-07T09:00:00Z&end=2031-04-08T09:00:00Z", ALICE)
    page.get_by_role("button", name=re.compile("^Book ")).first.click()
    dialog = page.get_by_role("dialog", name="Book")
    dialog.get_by_label("Name").fill("held")
    dialog.get_by_text("More", exact=True).click()
    dialog.get_by_label("Hold it").check()
    minutes = dialog.get_by_label("Minutes to confirm it")
    expect(minutes).to_have_value("10")
    minutes.fill("16")
    expect(dialog.get_by_text("A whole number from 1 to 15.")).to_be_visible()
    minutes.fill("4")
    assert serious(page) == []
    dialog.get_by_role("button", name="Book", exact=True).click()
    expect(page.get_by_text("It is not confirmed yet, and deleted")).to_be_visible()
    lease = of_name(shared, "held")
    held = datetime.fromisoformat(lease["confirm_by"]) - datetime.fromisoformat(lease["created_at"])
    assert abs(held - timedelta(minutes=4)) <= timedelta(seconds=1)
