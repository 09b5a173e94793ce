# SPDX-License-Identifier: Apache-2.0
"""My leases and the page of a lease: what they say, and what can be done there."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest
from playwright.sync_api import Page, Route, expect

from tests.web.conftest import ADMIN, ALICE, serious
from tests.web.service import asked, booked, leases_of

BOB = "bob:chemistry:member"


def lease_page(pages: str, lease: dict[str, object], **more: str) -> str:
    extra = "".join(f"&{name}={value}" for name, value in more.items())
    return f"{pages}lease?id={lease['id']}{extra}"


def later(text: object, **by: int) -> str:
    return (datetime.fromisoformat(str(text)) + timedelta(**by)).strftime("%Y-%m-%dT%H:%M:%SZ")


def show(pages: str, lease: dict[str, object], who: str = ALICE) -> dict[str, object]:
    return dict(asked(pages, who, "GET", f"v1/leases/{lease['id']}")["lease"])


def test_without_leases_the_page_says_what_to_do_first(empty, page_of):
    page = page_of(empty + "leases", ALICE)
    expect(page.get_by_role("heading", name="You have no leases")).to_be_visible()
    page.locator(".empty").get_by_role("link", name="Find a time").click()
    expect(page.get_by_role("heading", name="Find a time")).to_be_visible()


def test_the_list_says_what_was_booked_and_what_happens_at_the_end(shared, page_of):
    booked(shared, ALICE, "later", start="2031-03-03T08:00:00Z", before_end="snapshot")
    page = page_of(shared + "leases", ALICE)
    row = page.get_by_role("row", name=re.compile("later"))
    expect(row).to_contain_text("booked")
    expect(row).to_contain_text("1 host")
    expect(row).to_contain_text("images of the servers are taken, then they are deleted")
    assert serious(page) == []
    page.get_by_role("button", name="Running").click()
    expect(page.get_by_role("heading", name="None of your leases is like that")).to_be_visible()
    page.get_by_role("button", name="Show all").click()
    expect(row).to_be_visible()


def test_what_the_words_mean_is_told_of_states_too_and_moves_no_field(shared, page_of):
    booked(shared, ALICE, "later", start="2031-03-03T08:00:00Z")
    page = page_of(shared + "leases", ALICE)
    expect(page.get_by_role("row", name=re.compile("later"))).to_be_visible()
    fields = page.locator(".filters button, .filters input")
    before = [field.bounding_box() for field in fields.all()]
    assert len(before) > 8
    page.get_by_text("What these words mean").click()
    words = page.locator(".meanings")
    for said in ("also what waits in line for a start", "goes back to its place in line", "could not be started"):
        expect(words.get_by_text(re.compile(said))).to_be_visible()
    expect(words.get_by_text("Degraded", exact=True)).to_be_visible()
    assert [field.bounding_box() for field in fields.all()] == before
    page.get_by_role("row", name=re.compile("later")).get_by_role("link").first.click()
    page.get_by_role("button", name="Calendar link of all my leases").click()
    dialog = page.get_by_role("dialog", name="Calendar links")
    expect(dialog).to_contain_text("later and all others")


def test_it_is_said_what_becomes_of_hosts_in_use_if_there_are_to_be_fewer(shared, page_of):
    lease = booked(shared, ALICE, "two hosts", min=2, max=2)
    page = page_of(lease_page(shared, lease), ALICE)
    expect(page.get_by_role("button", name="End now")).to_be_visible()
    page.get_by_role("button", name="Change", exact=True).click()
    dialog = page.get_by_role("dialog", name="Change two hosts")
    least, most = dialog.get_by_label("How many hosts, from … to …"), dialog.get_by_label("At most")
    expect(least).to_have_attribute("min", "1")
    expect(dialog).to_contain_text("2 are in use. With fewer, those without servers are given up")
    most.fill("3")
    expect(dialog.get_by_text("This fits.")).to_be_visible()


def test_a_filter_that_is_refused_leaves_no_rows_of_another_one(shared, page_of, complaints):
    complaints.expected.add("status of 503")
    booked(shared, ALICE, "unlike", start="2031-03-03T08:00:00Z")
    page = page_of(shared + "leases", ALICE)
    row = page.get_by_role("row", name=re.compile("unlike"))
    expect(row).to_be_visible()
    page.route("**/v1/leases?**text=zzz**", lambda route: route.fulfill(status=503, body=""))
    page.get_by_label("Name", exact=True).fill("zzz")
    expect(page.get_by_text("The service cannot answer now")).to_be_visible()
    expect(row).to_have_count(0)
    page.unroute("**/v1/leases?**text=zzz**")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("heading", name="None of your leases is like that")).to_be_visible()


def test_degraded_leases_are_found(demo, page_of):
    lease = asked(demo, ADMIN, "GET", "v1/leases?degraded=true&limit=1")["leases"][0]
    who = f"{lease['user_id']}:{lease['project_id']}:member"
    degraded = asked(demo, who, "GET", "v1/leases?degraded=true")["leases"]
    page = page_of(demo + "leases?whose=project", who)
    # An offer to the user has a table of its own above that of the leases.
    rows = page.locator("table.leases").last.locator("tbody tr")
    expect(rows.first).to_be_visible()
    page.get_by_role("button", name="Degraded").click()
    expect(rows).to_have_count(len(degraded))
    for row in rows.all():
        expect(row).to_contain_text("degraded")


def test_a_lease_is_extended_from_the_list(shared, page_of):
    lease = booked(shared, ALICE, "longer", start="2031-03-03T08:00:00Z")
    page = page_of(shared + "leases", ALICE)
    page.get_by_role("button", name="Extend longer").click()
    dialog = page.get_by_role("dialog", name="Extend longer")
    expect(dialog.get_by_role("button", name="+ 1 day")).to_have_attribute("aria-pressed", "true")
    expect(dialog.get_by_text("This fits: 1 day longer.")).to_be_visible()
    assert serious(page) == []
    dialog.get_by_role("button", name=re.compile("^Extend until")).click()
    expect(dialog).to_have_count(0)
    assert show(shared, lease)["end_date"] == later(lease["end_date"], days=1)


def test_an_extension_stops_where_others_have_booked(shared, page_of):
    hosts = asked(shared, ALICE, "GET", "v1/capacity")["capacity"]["series"][0]["total"][0]
    lease = booked(shared, ALICE, "mine", start="2031-03-03T08:00:00Z", end="2031-03-04T08:00:00Z")
    booked(shared, BOB, "theirs", start="2031-03-04T20:00:00Z", end="2031-03-09T08:00:00Z", min=hosts, max=hosts)
    page = page_of(lease_page(shared, lease, do="extend"), ALICE, timezone_id="UTC")
    dialog = page.get_by_role("dialog", name="Extend mine")
    expect(dialog).to_contain_text("It can go on until Tue 4 Mar 2031 20:00; then what it has is booked.")
    expect(dialog).not_to_contain_text("theirs")
    dialog.get_by_label("New end", exact=True).fill("2031-03-05T08:00")
    expect(
        dialog.get_by_text("This does not fit: nothing of it is free for the whole time.", exact=True)
    ).to_be_visible()
    # An end that cannot be promises nothing else.
    dialog.get_by_label("New end", exact=True).fill("2031-03-02T08:00")
    shortened = page.get_by_role("dialog", name="Shorten mine")
    expect(shortened.get_by_text("The end has to be after the start.")).to_be_visible()
    expect(shortened.get_by_text("Others can book what becomes free")).to_have_count(0)
    expect(shortened.get_by_role("button", name="Shorten", exact=True)).to_be_disabled()
    shortened.get_by_role("button", name=re.compile("^as far as possible")).click()
    expect(dialog.get_by_text("This fits: 12 h longer.")).to_be_visible()
    dialog.get_by_role("button", name=re.compile("^Extend until")).click()
    expect(dialog).to_have_count(0)
    assert show(shared, lease)["end_date"] == "2031-03-04T20:00:00Z"


def test_a_field_that_nobody_has_typed_in_is_not_said_to_be_wrong(shared, page_of):
    lease = booked(shared, ALICE, "mine", start="2031-03-03T08:00:00Z", end="2031-03-04T08:00:00Z")
    page = page_of(shared + "leases", ALICE, timezone_id="UTC")
    # How far it can go is not known yet, so no end is proposed.
    page.route("**/v1/availability", lambda route: None)
    page.goto(lease_page(shared, lease, do="extend"))
    end = page.get_by_role("dialog", name="Extend mine").get_by_label("New end", exact=True)
    end.focus()
    end.blur()
    expect(end).to_have_value("")
    expect(end).not_to_have_attribute("aria-invalid", "true")
    end.fill("x")
    end.fill("")
    end.blur()
    expect(end).to_have_attribute("aria-invalid", "true")


def test_the_reminder_is_shown_where_new_dates_bring_it(shared, page_of):
    lease = booked(shared, ALICE, "moved", start="2031-03-03T08:00:00Z", end="2031-03-04T08:00:00Z")
    page = page_of(lease_page(shared, lease, do="change"), ALICE, timezone_id="UTC")
    dialog = page.get_by_role("dialog", name="Change moved")
    reminder = dialog.get_by_label("Remind me", exact=True)
    expect(reminder).to_have_value("4 Mar 2031 07:00")
    dialog.get_by_label("End", exact=True).fill("2031-03-06T08:00")
    expect(reminder).to_have_value("6 Mar 2031 07:00")
    dialog.get_by_role("button", name="Change", exact=True).click()
    expect(dialog).to_have_count(0)
    assert show(shared, lease)["before_end_date"] == "2031-03-06T07:00:00Z"


def test_a_refusal_takes_away_that_it_fits(shared, page_of, complaints):
    complaints.expected.add("status of 409")
    lease = booked(shared, ALICE, "refused", start="2031-03-03T08:00:00Z", end="2031-03-04T08:00:00Z")
    page = page_of(lease_page(shared, lease, do="change"), ALICE, timezone_id="UTC")
    fault = {"status": 409, "code": "reservation.others_wait", "title": "Others wait", "detail": "3 leases wait"}

    def refuse(route: Route) -> None:
        if route.request.method == "PUT":
            route.fulfill(status=409, json={"errors": [fault]})
        else:
            route.continue_()

    page.route(f"**/v1/leases/{lease['id']}", refuse)
    dialog = page.get_by_role("dialog", name="Change refused")
    dialog.get_by_label("End", exact=True).fill("2031-03-05T08:00")
    expect(dialog.get_by_text("This fits.")).to_be_visible()
    dialog.get_by_role("button", name="Change", exact=True).click()
    expect(dialog.get_by_text("3 leases wait")).to_be_visible()
    expect(dialog.get_by_text("This fits.")).to_have_count(0)


def test_what_somebody_else_has_changed_is_shown_and_what_was_typed_stays(shared, page_of, complaints):
    complaints.expected.add("status of 412")
    lease = booked(shared, ALICE, "shared", start="2031-03-03T08:00:00Z", end="2031-03-04T08:00:00Z")
    page = page_of(lease_page(shared, lease, do="change"), ALICE, timezone_id="UTC")
    dialog = page.get_by_role("dialog", name="Change shared")
    expect(dialog.get_by_label("Name", exact=True)).to_be_focused()
    dialog.get_by_label("End", exact=True).fill("2031-03-06T08:00")
    asked(shared, ALICE, "PUT", f"v1/leases/{lease['id']}", {"end_date": "2031-03-05T08:00:00Z", "name": "ours"})
    dialog.get_by_role("button", name="Change", exact=True).click()
    # The name was not touched here, so it is the new one from now on.
    dialog = page.get_by_role("dialog", name="Change ours")
    expect(dialog.get_by_role("alert")).to_contain_text("The end is now Wed 5 Mar 2031 08:00.")
    expect(dialog.get_by_label("End", exact=True)).to_have_value("6 Mar 2031 08:00")
    assert show(shared, lease)["end_date"] == "2031-03-05T08:00:00Z"
    dialog.get_by_role("button", name="Change", exact=True).click()
    expect(dialog).to_have_count(0)
    changed = show(shared, lease)
    assert (changed["end_date"], changed["name"]) == ("2031-03-06T08:00:00Z", "ours")


def test_a_running_lease_is_ended_after_it_was_said_what_goes(shared, page_of):
    lease = booked(shared, ALICE, "ended by hand")
    page = page_of(lease_page(shared, lease), ALICE)
    expect(page.locator(".lease-title .state-word")).to_have_text("active", timeout=60_000)
    host = show(shared, lease)["reservations"][0]["allocations"][0]["resource"]["id"]  # type: ignore[index]
    page.get_by_role("button", name="End now").click()
    dialog = page.get_by_role("dialog", name="End now: ended by hand")
    # By keyboard one has to go on to what cannot be undone.
    expect(dialog.get_by_role("button", name="Keep it")).to_be_focused()
    expect(dialog).to_contain_text(f"All servers on {host} are deleted.")
    assert serious(page) == []
    dialog.get_by_role("button", name="End now").click()
    state = page.locator(".lease-title .state-word")
    expect(state).to_have_text(re.compile("^(ending|ended early)$"))
    expect(page.get_by_role("button", name="Extend")).to_have_count(0)
    expect(page.locator(".conditions .banner")).to_have_count(0)
    expect(state).to_have_text("ended early", timeout=60_000)
    expect(page.locator(".lease-title")).to_contain_text("It was ended before its time was over.")
    expect(page.locator(".timeline strong")).to_have_text(["Booked", "Started", "Ended"])
    page.get_by_text("What was done to it, and by whom").click()
    history = page.get_by_role("list", name="What was done to it")
    expect(history.get_by_role("listitem").locator("strong")).to_have_text(["Ended", "Started", "Created"])
    expect(history.get_by_role("listitem").first).to_contain_text("Ended by you")
    page.goto(shared + "leases?state=past")
    expect(page.get_by_role("row", name=re.compile("ended by hand"))).to_be_visible()


def test_a_lease_that_has_not_begun_is_deleted_and_stays_in_the_history(small, page_of):
    lease = booked(small, ALICE, "not needed", start="2031-03-03T08:00:00Z")
    page = page_of(small + "leases", ALICE)
    page.get_by_role("button", name="More for not needed").click()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog", name="Delete: not needed").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="You have no leases")).to_be_visible()
    expect(page.locator("#main")).to_be_focused()
    page.get_by_role("button", name="Past").click()
    expect(page.get_by_role("row", name=re.compile("not needed"))).to_contain_text("deleted")
    assert [one["id"] for one in leases_of(small, ALICE, "past")] == [lease["id"]]


def test_the_same_is_booked_again_with_one_click(shared, page_of):
    lease = booked(shared, ALICE, "again", start="2031-03-03T08:00:00Z", end="2031-03-05T20:00:00Z")
    page = page_of(lease_page(shared, lease), ALICE)
    page.get_by_role("link", name="Book again").click()
    expect(page.get_by_role("heading", name="Openings for 60 hours")).to_be_visible()


def test_a_lease_of_others_is_not_there(shared, page_of, complaints):
    complaints.expected.add("status of 404")
    lease = booked(shared, BOB, "private", start="2031-03-03T08:00:00Z")
    page = page_of(lease_page(shared, lease), ALICE)
    expect(page.get_by_role("heading", name="There is no such lease")).to_be_visible()


def test_a_link_for_calendars_is_shown_once_and_can_be_revoked(small, page_of):
    page = page_of(small + "leases", ALICE)
    page.get_by_role("button", name="Calendar links").click()
    dialog = page.get_by_role("dialog", name="Calendar links")
    dialog.get_by_label("Name").fill("my phone")
    dialog.get_by_role("button", name="Make a link").click()
    expect(dialog.get_by_text(re.compile(r"/feeds/.*\.ics"))).to_be_visible()
    assert dialog.evaluate("(box) => box.scrollWidth <= box.clientWidth")
    assert serious(page) == []
    dialog.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Calendar links").click()
    expect(dialog.get_by_text("my phone")).to_be_visible()
    expect(dialog.get_by_text(re.compile(r"/feeds/.*\.ics"))).to_have_count(0)
    dialog.get_by_role("button", name="Revoke the link my phone").click()
    expect(dialog.get_by_text("my phone")).to_have_count(0)
    # Free and busy times may be those of some hosts only.
    dialog.get_by_label("It shows").select_option("free_busy")
    dialog.get_by_label("Add a property").select_option("availability_zone")
    dialog.get_by_role("button", name="Make a link").click()
    expect(dialog.get_by_text(re.compile(r"/feeds/.*\.ics"))).to_be_visible()


@pytest.mark.parametrize("look", [pytest.param("light", marks=pytest.mark.nightly), "dark", "phone"])
def test_the_page_of_a_lease_is_accessible_in_every_state(demo, page_of, look):
    options = {"color_scheme": "dark"} if look == "dark" else {}
    if look == "phone":
        options = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
    admin = "admin:demo:admin"
    shown = 0
    page: Page | None = None
    for state in ("status=ACTIVE", "degraded=true", "status=PENDING", "status=ERROR", "state=past"):
        for lease in asked(demo, admin, "GET", f"v1/leases?{state}&limit=1")["leases"]:
            if page is None:
                page = page_of(lease_page(demo, lease), admin, **options)
            else:
                page.goto(lease_page(demo, lease))
            expect(page.get_by_role("heading", name=str(lease["name"]))).to_be_visible()
            assert serious(page) == []
            assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
            shown += 1
    assert shown >= 4


@pytest.mark.parametrize("look", [pytest.param("light", marks=pytest.mark.nightly), "dark", "phone"])
def test_a_reservation_of_any_type_shows_what_was_asked_for_and_what_it_refers_to(small, page_of, look):
    options = {"color_scheme": "dark"} if look == "dark" else {}
    if look == "phone":
        options = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
    thing = {"name": "microscope-1", "class": "microscope", "hook_url": "https://hooks.example/m"}
    asked(small, ADMIN, "POST", "v1/resources/generic", thing)
    reservations = [{"resource_type": "generic", "class": "microscope", "min": 1}, {"resource_type": "physical:host"}]
    reservations[1] |= {"min": 1, "max": 1}
    body = {"name": "study", "start_date": "now", "end_date": "+P1D", "reservations": reservations}
    lease = dict(asked(small, ALICE, "POST", "v1/leases", body)["lease"])
    page = page_of(small + "leases", ALICE, **options)

    def with_reference(route):
        answer = route.fetch()
        shown = answer.json()
        one, other = shown["lease"]["reservations"]
        one["attached_to"] = {"reservation": other["id"]}
        route.fulfill(response=answer, json=shown)

    page.route(re.compile(f"/v1/leases/{lease['id']}(\\?|$)"), with_reference)
    page.goto(lease_page(small, lease))
    card = page.locator(f"#reservation-{lease['reservations'][0]['id']}")
    expect(card.locator("dt", has_text="Class")).to_be_visible()
    expect(card.locator("dd", has_text="microscope").first).to_be_visible()
    assert serious(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    expect(card).to_contain_text("At the end what was reserved is taken back.")
    card.get_by_role("button", name="1 host").press("Enter")
    expect(page.locator(f"#reservation-{lease['reservations'][1]['id']}")).to_be_focused()
