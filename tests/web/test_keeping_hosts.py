# SPDX-License-Identifier: Apache-2.0
"""The lock on the hosts of a lease: asked for with a new one, switched on its page, and for a series."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.web.conftest import ALICE, serious
from tests.web.service import asked
from tests.web.test_kinds import leased, of_name, page_of_lease

KEEP = "Keep the hosts that are chosen, even if others need them"


def test_an_owner_locks_the_hosts_and_unlocks_them(shared, page_of):
    lease = leased(shared, ALICE, "lockable", start_date="2031-03-01T09:00:00Z", end_date="2031-03-02T09:00:00Z")
    page = page_of(page_of_lease(shared, lease), ALICE)
    lock = page.get_by_role("region", name="Its hosts")
    expect(lock.get_by_role("heading", name="Its hosts may change")).to_be_visible()
    assert serious(page) == []
    lock.get_by_role("button", name="Keep these hosts").click()
    expect(lock.get_by_role("heading", name="Its hosts are locked")).to_be_visible()
    assert of_name(shared, "lockable")["keep_hosts"] is True
    page.get_by_text("What was done to it, and by whom").click()
    expect(page.get_by_text("Keeps its hosts: no → yes")).to_be_visible()
    lock.get_by_role("button", name="Unlock them").click()
    expect(lock.get_by_role("heading", name="Its hosts may change")).to_be_visible()
    assert of_name(shared, "lockable")["keep_hosts"] is False


def test_what_has_begun_has_its_hosts_and_no_lock(shared, page_of):
    page = page_of(shared, ALICE)
    page.get_by_role("button", name=re.compile("^Book now until")).click()
    dialog = page.get_by_role("dialog", name="Book")
    dialog.get_by_label("Name", exact=True).fill("begun-already")
    dialog.get_by_text("More", exact=True).click()
    expect(dialog.get_by_label(KEEP)).to_have_count(0)
    dialog.get_by_role("button", name="Book", exact=True).click()
    expect(page.get_by_role("heading", name="begun-already")).to_be_visible()
    expect(page.get_by_role("region", name="Its hosts")).to_have_count(0)


def test_a_new_series_locks_the_hosts_and_a_change_unlocks_them(shared, page_of):
    page = page_of(shared, ALICE)
    page.get_by_role("button", name=re.compile("^Book now until")).click()
    dialog = page.get_by_role("dialog", name="Book")
    dialog.get_by_label("Name", exact=True).fill("locked-series")
    dialog.get_by_text("More", exact=True).click()
    dialog.get_by_label("Repeat").select_option("week")
    dialog.get_by_label(KEEP).check()
    dialog.get_by_role("button", name="Book the series").click()
    expect(page.get_by_role("heading", name="locked-series")).to_be_visible()
    (series,) = [one for one in asked(shared, ALICE, "GET", "v1/series")["series"] if one["name"] == "locked-series"]
    assert series["keep_hosts"] is True
    page.get_by_role("button", name="Change all").click()
    change = page.get_by_role("dialog")
    change.get_by_label(KEEP).uncheck()
    change.get_by_role("button", name="Change", exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    (series,) = [one for one in asked(shared, ALICE, "GET", "v1/series")["series"] if one["name"] == "locked-series"]
    assert series["keep_hosts"] is False
