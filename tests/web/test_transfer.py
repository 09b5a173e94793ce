# SPDX-License-Identifier: Apache-2.0
"""Leases that are given away: offered and withdrawn by who has one, accepted and declined by who is to get it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from urllib.error import HTTPError

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.web.conftest import ALICE, serious
from tests.web.service import asked
from tests.web.test_kinds import BOB, hosts_of, leased, page_of_lease, shown, whole

DAVE = "dave:physics:member"
START = (datetime.now(UTC) + timedelta(days=3)).replace(minute=0, second=0, microsecond=0)
LATER = {"start_date": whole(START), "end_date": whole(START + timedelta(days=2))}


def giving(page: Page) -> Locator:
    """Open the dialog from the menu of the page of a lease; return it."""
    page.get_by_role("button", name="More for training").click()
    page.get_by_role("button", name="Give it to somebody else").click()
    return page.get_by_role("dialog", name="Give training away")


def offered(pages: str, lease: dict[str, object], **offer: str) -> None:
    asked(pages, ALICE, "POST", f"v1/leases/{lease['id']}/transfer", {"project_id": "chemistry", **offer})


def offers(page: Page) -> Locator:
    return page.get_by_role("region", name="Offered leases")


def test_a_lease_goes_to_another_project_that_accepts_it(shared, page_of, complaints):
    complaints.expected.add("status of 404")
    lease = leased(shared, ALICE, "training", 2, **LATER)
    page = page_of(page_of_lease(shared, lease), ALICE)
    dialog = giving(page)
    expect(dialog).to_contain_text("until then you can withdraw the offer")
    dialog.get_by_label("Project", exact=True).fill("chemistry")
    dialog.get_by_label("Message").fill("for your course")
    expect(dialog.get_by_role("status")).to_contain_text("It can go to any member of chemistry. The offer stands until")
    expect(dialog.get_by_role("status")).to_contain_text("Nobody has checked that there is a project chemistry")
    assert serious(page) == []
    assert shown(shared, lease["id"])["transfer"] is None
    dialog.get_by_role("button", name="Offer it").click()
    expect(dialog).to_have_count(0)
    bar = page.get_by_role("region", name="Offered to somebody else")
    expect(bar).to_contain_text("It is offered to any member of chemistry until tomorrow")
    expect(bar).to_contain_text("“for your course”")
    assert serious(page) == []
    listed = page_of(shared + "leases", ALICE).get_by_role("row", name=re.compile("training"))
    expect(listed).to_contain_text("offered to any member of chemistry")
    theirs = page_of(shared + "leases", BOB)
    row = offers(theirs).get_by_role("row", name=re.compile("training"))
    expect(row).to_contain_text("2 hosts")
    expect(row).to_contain_text("by alice of physics, until tomorrow")
    expect(row).to_contain_text("“for your course”")
    assert serious(theirs) == []
    row.get_by_role("button", name="Accept").click()
    dialog = theirs.get_by_role("dialog", name="Accept training")
    expect(dialog).to_contain_text("It counts for your project from then on")
    expect(dialog.get_by_role("status")).to_contain_text("You get 2 hosts")
    assert serious(theirs) == []
    assert shown(shared, lease["id"])["project_id"] == "physics"
    dialog.get_by_role("button", name="Accept", exact=True).click()
    expect(theirs.get_by_role("heading", name="training", exact=True)).to_be_visible()
    assert shown(shared, lease["id"], BOB)["project_id"] == "chemistry"
    theirs.get_by_text("What was done to it, and by whom").click()
    history = theirs.get_by_role("list", name="What was done to it")
    expect(history).to_contain_text("Project: another project → chemistry")
    expect(history).not_to_contain_text("alice")
    # The page of who had it, open all the time, offers nothing more of it; nor does a new one.
    expect(page.get_by_role("heading", name="There is no such lease any more")).to_be_visible()
    expect(page.get_by_role("button", name="Extend")).to_have_count(0)
    expect(page.get_by_role("main")).not_to_contain_text("lease_id")
    page.reload()
    expect(page.get_by_role("heading", name="There is no such lease")).to_be_visible()


def test_the_link_of_an_offered_lease_leads_who_may_take_it_to_the_offer(shared, page_of, complaints):
    complaints.expected.add("status of 404")
    lease = leased(shared, ALICE, "training", 2, **LATER)
    offered(shared, lease, message="for your course")
    page = page_of(page_of_lease(shared, lease), BOB)
    offer = page.get_by_role("region", name="Offered to you")
    expect(offer.get_by_role("heading", name="training", exact=True)).to_be_visible()
    expect(offer).to_contain_text("This lease is offered to chemistry.")
    expect(offer).to_contain_text("“for your course”")
    assert serious(page) == []
    offer.get_by_role("link", name="Decline").click()
    expect(page.get_by_role("dialog", name="Decline training")).to_be_visible()
    # In a window of its own: a dialog that goes takes its step out of the history, which ends a visit that begins.
    page = page_of(page_of_lease(shared, lease), BOB)
    page.get_by_role("region", name="Offered to you").get_by_role("link", name="Accept").click()
    dialog = page.get_by_role("dialog", name="Accept training")
    expect(dialog.get_by_role("status")).to_contain_text("You get 2 hosts")
    dialog.get_by_role("button", name="Accept", exact=True).click()
    expect(page.get_by_role("heading", name="training", exact=True)).to_be_visible()
    # To all others it is no lease.
    page = page_of(page_of_lease(shared, lease), "eve:geology:member")
    expect(page.get_by_role("heading", name="There is no such lease", exact=True)).to_be_visible()


def test_an_offer_is_withdrawn(shared, page_of, complaints):
    complaints.expected.add("status of 404")
    lease = leased(shared, ALICE, "training", **LATER)
    offered(shared, lease)
    page = page_of(page_of_lease(shared, lease), ALICE)
    bar = page.get_by_role("region", name="Offered to somebody else")
    bar.get_by_role("button", name="Withdraw the offer").click()
    expect(bar).to_have_count(0)
    assert shown(shared, lease["id"])["transfer"] is None
    theirs = page_of(f"{shared}leases?offer={lease['id']}", BOB)
    expect(theirs.get_by_role("dialog")).to_contain_text("The offer does not stand any more")


def test_an_offer_that_nobody_accepts_in_time_leaves_the_lease_with_its_owner(shared, page_of):
    lease = leased(shared, ALICE, "training", **LATER)
    offered(shared, lease)

    def a_day_later(route: Route) -> None:
        answer = route.fetch()
        body = answer.json()
        body["lease"]["transfer"]["expires_at"] = whole(datetime.now(UTC) - timedelta(minutes=5))
        route.fulfill(response=answer, json=body)

    page = page_of(shared, ALICE)
    page.route(re.compile(f"/v1/leases/{lease['id']}$"), a_day_later)
    page.goto(page_of_lease(shared, lease))
    bar = page.get_by_role("region", name="Offered to somebody else")
    expect(bar).to_contain_text("Nobody has accepted it, so it stays yours.")
    expect(bar.get_by_role("button")).to_have_count(0)
    assert serious(page) == []


def test_an_offer_that_is_declined_leaves_the_lease_with_its_owner(shared, page_of):
    lease = leased(shared, ALICE, "training", **LATER)
    offered(shared, lease)
    page = page_of(shared + "leases", BOB)
    offers(page).get_by_role("button", name="Decline: training").click()
    dialog = page.get_by_role("dialog", name="Decline training")
    expect(dialog).to_contain_text("the lease stays with who has offered it")
    assert serious(page) == []
    dialog.get_by_role("button", name="Decline", exact=True).click()
    expect(dialog).to_have_count(0)
    expect(offers(page)).to_have_count(0)
    now = shown(shared, lease["id"])
    assert (now["project_id"], now["transfer"]) == ("physics", None)


def test_a_lease_goes_to_another_user_of_the_project(shared, page_of):
    lease = leased(shared, ALICE, "training", **LATER)
    page = page_of(page_of_lease(shared, lease), ALICE)
    dialog = giving(page)
    dialog.get_by_role("button", name="another user of this project").click()
    expect(dialog.get_by_label("Project", exact=True)).to_have_count(0)
    expect(dialog.get_by_role("button", name="Offer it")).to_be_disabled()
    dialog.get_by_label("User").fill("dave")
    expect(dialog.get_by_role("status")).to_contain_text("It can go to the user dave.")
    dialog.get_by_role("button", name="Offer it").click()
    expect(dialog).to_have_count(0)
    # Another member of the project sees the lease, and not the offer.
    carol = page_of(shared + "leases?whose=project", "carol:physics:member")
    expect(carol.get_by_role("row", name=re.compile("training"))).to_be_visible()
    expect(offers(carol)).to_have_count(0)
    theirs = page_of(f"{shared}leases?offer={lease['id']}", DAVE)
    dialog = theirs.get_by_role("dialog", name="Accept training")
    expect(dialog).to_contain_text("You become its user")
    dialog.get_by_role("button", name="Accept", exact=True).click()
    expect(theirs.get_by_role("heading", name="training", exact=True)).to_be_visible()
    now = shown(shared, lease["id"])
    assert (now["project_id"], now["user_id"]) == ("physics", "dave")


def test_what_cannot_go_is_said_before_it_is_offered(shared, page_of, complaints):
    complaints.expected.add("status of 409")
    hosts = {"resource_type": "physical:host", "min": 1, "max": 1}
    weekly = {"rule": "FREQ=WEEKLY;COUNT=2", "start": f"{START:%Y-%m-%dT%H:%M}", "duration": "PT2H"}
    series = asked(shared, ALICE, "POST", "v1/series", {"name": "training", "reservations": [hosts], **weekly})
    lease = {"id": series["series"]["occurrences"][0]["lease_id"]}
    page = page_of(page_of_lease(shared, lease, do="give"), ALICE)
    dialog = page.get_by_role("dialog", name="away")
    dialog.get_by_label("Project", exact=True).fill("chemistry")
    expect(dialog.get_by_role("alert")).to_contain_text("series")
    expect(dialog.get_by_role("button", name="Offer it")).to_be_disabled()
    assert serious(page) == []


def test_a_lease_that_has_changed_is_accepted_only_after_it_was_seen(shared, page_of, complaints):
    complaints.expected.add("status of 412")
    lease = leased(shared, ALICE, "training", **LATER)
    offered(shared, lease)
    page = page_of(f"{shared}leases?offer={lease['id']}", BOB)
    dialog = page.get_by_role("dialog", name="Accept training")
    expect(dialog.get_by_role("status")).to_contain_text("You get 1 host")
    longer = {"end_date": whole(START + timedelta(days=3))}
    asked(shared, ALICE, "PUT", f"v1/leases/{lease['id']}", longer)
    dialog.get_by_role("button", name="Accept", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("The lease has changed meanwhile")
    expect(dialog).to_contain_text("(3 days)")
    with pytest.raises(HTTPError):
        shown(shared, lease["id"], BOB)
    dialog.get_by_role("button", name="Accept", exact=True).click()
    expect(page.get_by_role("heading", name="training", exact=True)).to_be_visible()


def test_what_the_limits_of_the_taker_refuse_is_said_and_the_offer_stands(shared, page_of, complaints):
    complaints.expected.add("status of 409")
    lease = leased(shared, ALICE, "training", hosts_of(shared), **LATER)
    offered(shared, lease)
    page = page_of(shared + "leases", BOB)
    fault = {"status": 409, "code": "reservation.quota", "title": "", "detail": "5 hosts at most; it has 6."}
    page.route(re.compile("/accept"), lambda route: route.fulfill(status=409, json={"errors": [fault]}))
    offers(page).get_by_role("button", name="Accept: training").click()
    dialog = page.get_by_role("dialog", name="Accept training")
    expect(dialog.get_by_role("alert")).to_have_text("5 hosts at most; it has 6.")
    expect(dialog.get_by_role("button", name="Accept", exact=True)).to_be_disabled()
    dialog.get_by_role("button", name="Cancel").click()
    expect(offers(page)).to_be_visible()


@pytest.mark.parametrize("look", ["dark", "phone"])
def test_giving_and_taking_are_accessible(shared, page_of, look):
    options = {"color_scheme": "dark"} if look == "dark" else {"viewport": {"width": 390, "height": 844}}
    lease = leased(shared, ALICE, "training", 2, **LATER)
    page = page_of(page_of_lease(shared, lease), ALICE, **options)
    dialog = giving(page)
    expect(dialog).to_be_visible()
    assert serious(page) == []
    offered(shared, lease, user_id="bob", message="m" * 255)
    page.goto(page_of_lease(shared, lease))
    expect(page.get_by_role("region", name="Offered to somebody else")).to_be_visible()
    assert serious(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    theirs = page_of(shared + "leases", BOB, **options)
    expect(offers(theirs)).to_be_visible()
    assert serious(theirs) == []
    assert theirs.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    for what in ("Accept", "Decline"):
        offers(theirs).get_by_role("button", name=f"{what}: training").click()
        dialog = theirs.get_by_role("dialog", name=f"{what} training")
        expect(dialog).to_be_visible()
        assert serious(theirs) == []
        dialog.get_by_role("button", name="Cancel").click()
