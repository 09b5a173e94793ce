# SPDX-License-Identifier: Apache-2.0
"""The page of notifications: one's own mail, and the web hooks of the project."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.web.conftest import ALICE, serious, standalone
from tests.web.service import asked


@pytest.fixture
def telling(tmp_path: Path) -> Iterator[str]:
    """The address of the pages of a service that sends web hooks and mail; nothing accepts either."""
    options = tmp_path / "blazar.conf"
    lines = ["[webhooks]", f"master_secrets = {'m' * 40}", "[mail]", "smtp_url = smtp://127.0.0.1:9"]
    options.write_text("\n".join([*lines, ""]), encoding="utf-8")
    yield from standalone(tmp_path, "--config-file", str(options))


def test_a_web_hook_is_made_with_a_secret_that_is_shown_once_and_deleted(telling, page_of, complaints):
    complaints.expected.add("400")
    page = page_of(telling + "notifications", ALICE)
    page.get_by_role("button", name="New web hook").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("URL").fill("https://192.0.2.7/blazar")
    dialog.get_by_role("button", name="Make it").click()
    expect(dialog.get_by_text(re.compile("member_networks"))).to_be_visible()
    dialog.get_by_label("URL").fill("https://8.8.8.8/blazar")
    dialog.get_by_role("textbox", name="Events").fill("lease.started, lease.failed")
    dialog.get_by_role("button", name="Make it").click()
    expect(dialog.get_by_text(re.compile("^whsec_"))).to_be_visible()
    assert serious(page) == []
    dialog.get_by_role("button", name="I have it").click()
    row = page.get_by_role("row", name=re.compile(r"8\.8\.8\.8"))
    expect(row).to_contain_text("unconfirmed")
    expect(row).to_contain_text("lease.started, lease.failed")
    expect(page.get_by_text(re.compile("whsec_"))).to_have_count(0)
    row.get_by_role("button", name=re.compile("^Pause")).click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(row).to_contain_text("paused")
    row.get_by_role("button", name=re.compile("^Send again")).click()
    page.get_by_role("dialog").get_by_role("button", name="Send again").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert serious(page) == []
    row.get_by_role("button", name=re.compile("^Delete")).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="No program is told")).to_be_visible()


def test_what_comes_by_mail_is_chosen_event_by_event(telling, page_of, complaints):
    page = page_of(telling + "notifications", ALICE)
    switch = page.get_by_role("checkbox", name=re.compile("It ends soon"))
    expect(switch).to_be_checked()
    switch.uncheck()
    page.get_by_label("How often").select_option("daily")
    page.get_by_label("Zone of the times in mails").select_option("Asia/Tokyo")
    page.get_by_role("button", name="Save").click()
    # The button is disabled while it is saved, too.
    expect(page.locator(".note")).to_have_text("What you are told is changed")
    mine = asked(telling, ALICE, "GET", "v1/subscriptions/mine")["subscription"]
    assert "lease.before_end" not in mine["events"]
    assert "lease.failed" in mine["events"]
    assert (mine["digest"], mine["time_zone"]) == ("daily", "Asia/Tokyo")
    page.reload()
    expect(page.get_by_role("checkbox", name=re.compile("It ends soon"))).not_to_be_checked()
    expect(page.get_by_label("How often")).to_have_value("daily")
    assert serious(page) == []


def test_where_nothing_is_sent_the_page_says_so_and_asks_for_nothing_that_is_refused(shared, page_of, complaints):
    page = page_of(shared + "notifications", ALICE, viewport={"width": 390, "height": 844})
    expect(page.get_by_text("This service sends no mail")).to_be_visible()
    expect(page.get_by_text("This service sends no web hooks")).to_be_visible()
    expect(page.get_by_role("button", name="New web hook")).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert serious(page) == []
