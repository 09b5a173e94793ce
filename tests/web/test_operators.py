# SPDX-License-Identifier: Apache-2.0
"""What operators do on their pages: with leases of all projects, and with hosts."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.web.conftest import ADMIN, ALICE, serious
from tests.web.service import asked, booked, leases_of

FEED = re.compile(r"/feeds/.*\.ics")


def test_a_lease_of_another_project_is_extended_and_deleted_from_its_row(small, page_of):
    booked(small, ALICE, "theirs", start="2031-03-03T08:00:00Z", end="2031-03-04T08:00:00Z")
    page = page_of(small + "all-leases", ADMIN)
    expect(page.get_by_role("row", name=re.compile("theirs"))).to_contain_text("physics")
    page.get_by_role("button", name="Extend theirs").click()
    dialog = page.get_by_role("dialog", name="Extend theirs")
    expect(dialog.get_by_text("This fits: 1 day longer.")).to_be_visible()
    dialog.get_by_role("button", name=re.compile("^Extend until")).click()
    expect(dialog).to_have_count(0)
    assert leases_of(small, ALICE)[0]["end_date"] == "2031-03-05T08:00:00Z"
    page.get_by_role("button", name="More for theirs").click()
    assert serious(page) == []
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog", name="Delete: theirs").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="There are no leases")).to_be_visible()
    # The row that had the focus is gone: the page has it.
    expect(page.locator("#main")).to_be_focused()


def test_a_host_gets_a_link_for_calendars(small, page_of):
    host = asked(small, ADMIN, "GET", "v1/os-hosts?limit=1")["hosts"][0]
    name = host["hypervisor_hostname"]
    page = page_of(small + "hosts", ADMIN)
    page.get_by_role("button", name=f"More for {name}", exact=True).click()
    page.get_by_role("button", name="Calendar link").click()
    dialog = page.get_by_role("dialog", name=f"Calendar links of {name}", exact=True)
    dialog.get_by_role("button", name="Make a link").click()
    expect(dialog.get_by_text(FEED)).to_be_visible()
    expect(dialog.get_by_role("button", name=f"Revoke the link {name}")).to_be_visible()
    assert serious(page) == []
    assert [one["resource"] for one in asked(small, ADMIN, "GET", "v1/feeds")["feeds"]] == [host["label"]]
