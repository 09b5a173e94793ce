# SPDX-License-Identifier: Apache-2.0
"""Room that is made for a lease: it is said first whether it can be, and then how far it has come."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.web.conftest import ADMIN, ALICE, serious
from tests.web.service import asked
from tests.web.test_kinds import hosts_of, leased, of_name, state


def with_hosts(pages: str, *, evacuable: int, others: int) -> None:
    """Register hypervisors of the cloud: some that can be emptied, some as ever."""
    found = asked(pages, ADMIN, "GET", "v1/resources/host/candidates?registered=false")["candidates"]
    for number, one in enumerate(found[: evacuable + others]):
        more = {"evacuable": True} if number < evacuable else {}
        asked(pages, ADMIN, "POST", "v1/resources/host", {"name": one["name"], **more})


def test_operators_have_room_made_where_nothing_is_free(empty, page_of):
    with_hosts(empty, evacuable=2, others=1)
    leased(empty, ALICE, "theirs", 1)
    page = page_of(empty + "?min=2", ADMIN)
    offer = page.get_by_role("region", name="Make room")
    expect(offer).to_be_visible()
    assert serious(page) == []
    offer.get_by_role("button", name="Make room").click()
    dialog = page.get_by_role("dialog", name="Make room")
    expect(dialog.get_by_role("status")).to_contain_text("oom can be made")
    assert serious(page) == []
    dialog.get_by_label("Name", exact=True).fill("urgent")
    dialog.get_by_role("button", name="Make room").click()
    expect(page.get_by_role("heading", name="urgent", exact=True)).to_be_visible()
    expect(state(page)).to_have_text("active", timeout=60_000)
    assert of_name(empty, "urgent", ADMIN)["kind"] == "best_effort"


def test_why_room_cannot_be_made_is_said(shared, page_of, complaints):
    complaints.expected.add("status of 409")
    leased(shared, ALICE, "theirs", hosts_of(shared))
    page = page_of(shared + "?min=2", ADMIN)
    page.get_by_role("region", name="Make room").get_by_role("button").click()
    dialog = page.get_by_role("dialog", name="Make room")
    expect(dialog.get_by_role("status")).to_have_text("Room cannot be made.")
    expect(dialog.get_by_role("alert")).to_be_visible()
    expect(dialog.get_by_role("button", name="Make room")).to_be_disabled()
    assert serious(page) == []


def test_members_have_no_room_made_by_default(shared, page_of):
    leased(shared, ALICE, "theirs", hosts_of(shared))
    page = page_of(shared + "?min=2", ALICE)
    expect(page.get_by_role("region", name="Wait in line")).to_be_visible()
    expect(page.get_by_role("region", name="Make room")).to_have_count(0)
