# SPDX-License-Identifier: Apache-2.0
"""Reminders: asked for with a new lease, shown in its timeline, changed, and refused beside the line that is wrong."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.web.conftest import ALICE, serious
from tests.web.test_kinds import leased, of_name, page_of_lease, shown

ADD = "Add a reminder"


def asked_of(lease: dict[str, object]) -> list[tuple[str, str, str]]:
    reminders = lease["reminders"]
    assert isinstance(reminders, list)
    return [(one["at"], one["from"], one["text"]) for one in reminders]


def test_who_books_says_what_to_be_told_and_when_and_reads_it_on_the_page_of_the_lease(shared, page_of):
    page = page_of(shared, ALICE)
    page.get_by_role("button", name=re.compile("^Book now until")).click()
    dialog = page.get_by_role("dialog", name="Book")
    dialog.get_by_label("Name", exact=True).fill("with-reminders")
    dialog.get_by_text("More", exact=True).click()
    dialog.get_by_role("button", name=ADD).click()
    dialog.get_by_label("Reminder 1: what to tell").fill("copy the results")
    dialog.get_by_role("button", name=ADD).click()
    dialog.get_by_label("Reminder 2: before or after").select_option("after its start")
    dialog.get_by_label("Reminder 2: how many").fill("1")
    dialog.get_by_label("Reminder 2: unit").select_option("minutes")
    dialog.get_by_label("Reminder 2: what to tell").fill("look at the logs")
    # Begun, and left empty: it is not sent.
    dialog.get_by_role("button", name=ADD).click()
    assert serious(page) == []
    dialog.get_by_role("button", name="Book", exact=True).click()
    timeline = page.get_by_role("region", name="What has happened and what will")
    expect(timeline.get_by_text("copy the results")).to_be_visible()
    expect(timeline.get_by_text("look at the logs")).to_be_visible()
    wanted = [("-PT2H", "end", "copy the results"), ("+PT1M", "start", "look at the logs")]
    assert asked_of(of_name(shared, "with-reminders")) == wanted
    assert serious(page) == []


def test_who_changes_a_lease_changes_them_and_reads_what_is_wrong_beside_it(shared, page_of, complaints):
    complaints.expected.add("400")
    dated = {"at": "2031-01-01T09:00:00Z", "text": "call"}
    lease = leased(
        shared, ALICE, "told", end_date="2031-06-01T09:00:00Z", reminders=[{"at": "-P1D", "text": "save"}, dated]
    )
    page = page_of(page_of_lease(shared, lease, do="change"), ALICE)
    dialog = page.get_by_role("dialog", name="Change told")
    expect(dialog.get_by_label("Reminder 1: what to tell")).to_have_value("save")
    dialog.get_by_label("Reminder 1: what to tell").fill("save it all")
    dialog.get_by_role("button", name="Remove reminder 2").click()
    dialog.get_by_role("button", name=ADD).click()
    dialog.get_by_label("Reminder 2: before or after").select_option("before its start")
    dialog.get_by_label("Reminder 2: what to tell").fill("too late")
    dialog.get_by_role("button", name="Change", exact=True).click()
    expect(dialog.get_by_text(re.compile("give a time to come, or leave it out"))).to_be_visible()
    assert serious(page) == []
    dialog.get_by_role("button", name="Remove reminder 2").click()
    dialog.get_by_role("button", name="Change", exact=True).click()
    expect(dialog).not_to_be_visible()
    assert asked_of(shown(shared, lease["id"])) == [("-P1D", "end", "save it all")]
    page.get_by_text("What was done to it, and by whom").click()
    expect(page.get_by_text(re.compile("Reminders: .*P1D before the end: save"))).to_be_visible()
