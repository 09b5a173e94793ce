# SPDX-License-Identifier: Apache-2.0
"""Reminders: asked for with a new lease, shown in its timeline, changed, and refused beside the line that is wrong."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from playwright.sync_api import expect

from tests.web.conftest import ALICE, serious
from tests.web.service import asked
from tests.web.test_kinds import leased, of_name, page_of_lease, shown, whole
from tests.web.test_series import made

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
    group = dialog.get_by_role("group", name="Reminder 2")
    wrong = group.get_by_text(re.compile("is over"))
    expect(wrong).to_be_visible()

    def distance() -> float:
        """Return how far below the reminder the next thing is, however far the dialog is scrolled."""
        return dialog.get_by_role("button", name=ADD).bounding_box()["y"] - group.bounding_box()["y"]

    below = distance()
    with page.expect_response(lambda answer: answer.request.method == "PUT") as refused:
        dialog.get_by_role("button", name="Change", exact=True).click()
    assert refused.value.status == 400
    expect(wrong).to_be_visible()
    # What is wrong was said before it was sent: nothing below it moves.
    assert distance() == below
    assert serious(page) == []
    dialog.get_by_role("button", name="Remove reminder 2").click()
    dialog.get_by_role("button", name="Change", exact=True).click()
    expect(dialog).not_to_be_visible()
    assert asked_of(shown(shared, lease["id"])) == [("-P1D", "end", "save it all")]
    page.get_by_text("What was done to it, and by whom").click()
    expect(page.get_by_text(re.compile("Reminders: .*P1D before the end: save"))).to_be_visible()


def test_on_a_phone_what_is_refused_is_brought_into_sight_beside_its_own_line(shared, page_of, complaints):
    complaints.expected.add("400")
    lease = leased(shared, ALICE, "phone", end_date="2031-06-01T09:00:00Z")
    address = page_of_lease(shared, lease, do="change")
    page = page_of(address, ALICE, viewport={"width": 390, "height": 600})
    dialog = page.get_by_role("dialog", name="Change phone")
    for _ in range(3):
        dialog.get_by_role("button", name=ADD).click()
    # The first one is begun, and not sent: to the service the others are the first and the second.
    dialog.get_by_label("Reminder 2: what to tell").fill("same")
    dialog.get_by_label("Reminder 3: what to tell").fill("same")
    dialog.get_by_label("Name", exact=True).scroll_into_view_if_needed()
    dialog.get_by_role("button", name="Change", exact=True).click()
    said = dialog.get_by_role("group", name="Reminder 3").get_by_text(re.compile("same as one before it"))
    expect(said).to_be_in_viewport()
    expect(dialog.locator(".field-error")).to_have_count(1)
    assert serious(page) == []


def test_what_is_booked_again_reminds_again(shared, page_of):
    dated = {"at": whole(datetime.now(UTC) + timedelta(days=1)), "text": "call"}
    lease = leased(shared, ALICE, "again", end_date="+P2D", reminders=[{"at": "-PT3H", "text": "save"}, dated])
    page = page_of(page_of_lease(shared, lease), ALICE)
    page.get_by_role("link", name="Book again").click()
    page.get_by_role("button", name=re.compile("^Book now until")).click()
    dialog = page.get_by_role("dialog", name="Book")
    # What moves with the lease is there, and seen; a date of the other one is not.
    expect(dialog.get_by_label("Reminder 1: what to tell")).to_be_visible()
    expect(dialog.get_by_label("Reminder 2: what to tell")).to_have_count(0)
    dialog.get_by_label("Name", exact=True).fill("once-more")
    dialog.get_by_role("button", name="Book", exact=True).click()
    expect(page.get_by_role("heading", name="once-more")).to_be_visible()
    assert asked_of(of_name(shared, "once-more")) == [("-PT3H", "end", "save")]


def test_those_of_a_series_are_changed_with_it_and_one_that_no_lease_would_tell_is_refused(shared, page_of, complaints):
    complaints.expected.add("400")
    series = made(shared, "course", reminders=[{"at": "-PT1H", "text": "save"}])
    page = page_of(f"{shared}series?id={series['id']}", ALICE)
    page.get_by_role("button", name="Change all").click()
    dialog = page.get_by_role("dialog", name="Change all of course")
    expect(dialog.get_by_label("Reminder 1: what to tell")).to_have_value("save")
    dialog.get_by_label("Reminder 1: before or after").select_option("after its start")
    dialog.get_by_label("Reminder 1: how many").fill("9")
    expect(dialog.get_by_text(re.compile("is not before the end"))).to_be_visible()
    expect(dialog.get_by_role("button", name="Change", exact=True)).to_be_disabled()
    dialog.get_by_label("Reminder 1: how many").fill("1")
    dialog.get_by_label("Reminder 1: what to tell").fill("look")
    expect(dialog.get_by_text(re.compile("^First told"))).to_be_visible()
    assert serious(page) == []
    dialog.get_by_role("button", name="Change", exact=True).click()
    expect(dialog).not_to_be_visible()
    changed = asked(shared, ALICE, "GET", f"v1/series/{series['id']}")["series"]
    assert asked_of(changed) == [("+PT1H", "start", "look")]
