# SPDX-License-Identifier: Apache-2.0
"""Find a time: from a question to a booked lease."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

import pytest
from playwright.sync_api import Page, Request, Route, expect

from tests.web.conftest import ADMIN, ALICE, drawn, query_of, serious
from tests.web.service import asked, booked, leases_of

BOB = "bob:chemistry:member"


def test_a_newcomer_books_by_mouse_alone(shared, page_of):
    page = page_of(shared.removesuffix("ui/"))
    page.get_by_role("button", name="alice").click()
    expect(page.get_by_text("hosts match")).to_be_visible()
    page.get_by_role("button", name=re.compile("^Book now until")).click()
    # A name is proposed, so that nothing has to be typed.
    dialog = page.get_by_role("dialog", name="Book")
    dialog.get_by_role("button", name="Book", exact=True).click()
    expect(page.get_by_role("heading", name="1 host on ")).to_be_visible()
    expect(page.get_by_text(re.compile("openstack server create .*--hint reservation="))).to_be_visible()
    expect(page.locator(".lease-title .state-word")).to_have_text("active", timeout=60_000)
    assert [lease["name"].startswith("1 host on ") for lease in leases_of(shared, ALICE)] == [True]


FOCUSED = "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent"


def press_tab_until(page: Page, label: str) -> None:
    """Go on with Tab to the control whose label begins so."""
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate(FOCUSED).strip().startswith(label):
            return
    raise AssertionError(f"Tab does not lead to {label}")


def test_a_newcomer_books_by_keyboard_alone(shared, page_of):
    page = page_of(shared.removesuffix("ui/"))
    expect(page.get_by_role("heading", name="Who are you?")).to_be_visible()
    press_tab_until(page, "alice")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name=re.compile("^Book now until"))).to_be_visible()
    press_tab_until(page, "Book now")
    page.keyboard.press("Enter")
    # What is proposed is marked: typing replaces it.
    expect(page.get_by_role("dialog", name="Book").get_by_label("Name")).to_be_focused()
    page.keyboard.type("by keyboard")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="by keyboard", exact=True)).to_be_visible()
    expect(page.locator(".lease-title .state-word")).to_have_text("active", timeout=60_000)
    # The new page has the focus: the next keys work there.
    press_tab_until(page, "Extend")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Extend by keyboard")
    expect(dialog.get_by_text("This fits: 1 day longer.")).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("button", name="Extend", exact=True)).to_be_focused()
    assert [lease["name"] for lease in leases_of(shared, ALICE)] == ["by keyboard"]


def test_the_question_is_in_the_address(demo, page_of):
    page = page_of(demo, ALICE)
    page.get_by_label("How many", exact=True).fill("2")
    page.get_by_label("Add a property").select_option("gpu")
    page.get_by_label("gpu: value").select_option("H100")
    page.get_by_label("For how long: how many").fill("3")
    expect(page.get_by_role("heading", name="Openings for 3 days")).to_be_visible()
    question = {"min": ["2"], "req": ['["==","$gpu","H100"]'], "for": ["P3D"]}
    page.wait_for_url(lambda _: query_of(page) == question)
    page.reload()
    expect(page.get_by_label("How many", exact=True)).to_have_value("2")
    expect(page.get_by_label("gpu: value")).to_have_value("H100")
    expect(page.get_by_role("heading", name="Openings for 3 days")).to_be_visible()


def test_more_is_asked_for_with_a_button(demo, page_of):
    page = page_of(f"{demo}?min=2", ALICE)
    page.get_by_role("button", name="or more", exact=True).click()
    expect(page.get_by_label("At most", exact=True)).to_have_value("3")
    page.wait_for_url(lambda _: query_of(page)["max"] == ["3"])
    page.get_by_role("button", name="Exactly 2", exact=True).click()
    expect(page.get_by_role("button", name="or more", exact=True)).to_be_visible()


def test_what_has_nothing_registered_comes_last_and_cannot_be_chosen(shared, page_of):
    page = page_of(shared, ALICE)
    nothing = page.get_by_label("Of what", exact=True).locator("optgroup")
    expect(nothing).to_have_attribute("label", "Nothing registered here")
    expect(nothing.locator("option").first).to_be_disabled()
    assert nothing.evaluate("group => group === group.parentElement.lastElementChild")
    assert nothing.evaluate("group => [...group.children].every((option) => option.disabled)")


def test_a_window_of_full_hours_is_drawn_on_the_strip(shared, page_of):
    page = page_of(f"{shared}?for=P1D&within=P7D", ALICE, timezone_id="UTC")
    strip = page.get_by_role("img", name=re.compile("^Free hosts from"))
    strip.scroll_into_view_if_needed()
    box = strip.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.4, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, middle, steps=5)
    expect(strip.locator(".strip-drawn")).to_be_visible()
    page.mouse.up()
    page.wait_for_url(lambda _: {"start", "end"} <= query_of(page).keys())
    ends = [datetime.fromisoformat(query_of(page)[name][0]) for name in ("start", "end")]
    assert all((end.minute, end.second) == (0, 0) for end in ends)
    assert ends[0] < ends[1]


def hosts_of(pages: str) -> int:
    return int(asked(pages, ALICE, "GET", "v1/capacity")["capacity"]["series"][0]["total"][0])


def test_what_does_not_fit_says_why_and_what_would(shared, page_of):
    hosts = hosts_of(shared)
    booked(shared, BOB, "theirs", start="now", end="+P60D")
    page = page_of(f"{shared}?min={hosts}&for=P3D&within=P7D", ALICE)
    expect(page.get_by_role("heading", name="Nothing fits in this time")).to_be_visible()
    steps = page.locator(".funnel li")
    expect(steps.first).to_contain_text(f"{hosts}hosts for your project")
    expect(steps.last).to_contain_text("without 1 that is booked")
    expect(
        page.get_by_text(re.compile("1 of the .* is taken .*: giving other leases other hosts does not help"))
    ).to_be_visible()
    assert serious(page) == []
    page.get_by_role("button", name=re.compile(f"instead of {hosts}, now")).click()
    expect(page.get_by_role("button", name=re.compile("^Book now until"))).to_be_visible()
    page.wait_for_url(lambda _: query_of(page)["min"] == [str(hosts - 1)])


def test_what_is_free_only_later_says_why_not_now(shared, page_of):
    hosts = hosts_of(shared)
    booked(shared, BOB, "theirs", start="now", end="2031-03-03T08:00:00Z")
    window = "from=2031-03-02T08:00:00Z&to=2031-03-12T08:00:00Z"
    page = page_of(f"{shared}?min={hosts}&for=P3D&{window}", ALICE, timezone_id="UTC")
    expect(page.get_by_role("button", name=re.compile("^Book Mon 3 Mar 2031 08:00 until"))).to_be_visible()
    page.get_by_text("Why not at once?").click()
    expect(page.locator(".funnel li").last).to_contain_text(
        "booked for a part of that time; enough are free again from Mon 3 Mar 2031 08:00"
    )


def test_a_window_from_the_calendar_opens_the_dialog(demo, page_of):
    window = "start=2031-03-03T08:00:00Z&end=2031-03-04T08:00:00Z"
    page = page_of(f"{demo}?min=2&{window}&book=1", ALICE, timezone_id="UTC")
    dialog = page.get_by_role("dialog", name="Book")
    expect(dialog).to_contain_text("Mon 3 Mar 2031 08:00 – Tue 4 Mar 2031 08:00")
    dialog.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("heading", name="This time is free")).to_be_visible()
    page.wait_for_url(lambda _: "book" not in query_of(page))


def last_sunday(year: int, month: int) -> date:
    """Return the last Sunday of a month of 31 days: when clocks are set in Europe."""
    last = date(year, month, 31)
    return last - timedelta(days=last.isoweekday() % 7)


def test_times_on_days_when_clocks_change_are_said(demo, page_of):
    year = datetime.now(UTC).year + 1
    forward, back = last_sunday(year, 3), last_sunday(year, 10)
    page = page_of(f"{demo}?start={forward}T00:00:00Z&end={forward}T08:00:00Z", ALICE)
    page.get_by_label("Start", exact=True).fill(f"{forward}T02:30")
    expect(page.get_by_text("Clocks are set forward then: 02:30 does not exist in Berlin")).to_be_visible()
    page.get_by_label("Start", exact=True).press("Tab")
    expect(page.get_by_label("Start", exact=True)).to_have_value(f"{forward.day} Mar {year} 03:30")
    page.goto(f"{demo}?start={back}T00:30:00Z&end={back}T08:00:00Z")
    which = page.get_by_role("group", name="Clocks are set back then: which of the two?")
    expect(which.get_by_role("button", name="UTC+02:00")).to_have_attribute("aria-pressed", "true")
    which.get_by_role("button", name="UTC+01:00").click()
    expect(page.get_by_label("Start", exact=True)).to_have_value(f"{back.day} Oct {year} 02:30")
    page.wait_for_url(lambda _: query_of(page)["start"] == [f"{back}T01:30:00Z"])


def test_hosts_and_addresses_are_asked_for_together(demo, page_of):
    page = page_of(demo, ALICE)
    page.get_by_role("button", name="Together with something else").click()
    network = page.get_by_label("Of which network")
    expect(page.get_by_role("heading", name="Which network?")).to_be_visible()
    network.select_option(index=1)
    expect(page.get_by_text("You get 1 host and 1 floating IP").first).to_be_visible()


def test_a_refusal_stands_beside_its_field_and_what_was_typed_stays(demo, page_of, complaints):
    # The browser reports every refused request; here they are expected.
    complaints.expected.add("status of 400")
    page = page_of(f"{demo}?type=flavor:instance&amount=2", ALICE)
    field = page.get_by_label("Id of the flavor")
    field.fill("no-such-flavor")
    expect(page.locator(".want .field-error")).to_contain_text("no-such-flavor")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_value("no-such-flavor")


def test_a_lease_without_a_name_is_not_sent(demo, page_of):
    page = page_of(demo, ALICE)
    page.get_by_role("button", name=re.compile("^Book now until")).click()
    dialog = page.get_by_role("dialog", name="Book")
    dialog.get_by_label("Name").fill("")
    sent: list[Request] = []
    page.on("request", lambda request: request.url.endswith("/v1/leases") and sent.append(request))
    dialog.get_by_role("button", name="Book", exact=True).click()
    expect(dialog.get_by_text("Give the lease a name.")).to_be_visible()
    assert serious(page) == []
    assert sent == []


def test_a_lost_answer_never_books_twice(shared, page_of, complaints):
    complaints.expected |= {"ERR_FAILED", "status of 409"}
    page = page_of(shared, ALICE)
    lost: list[str] = []

    def lose_the_first(route: Route) -> None:
        if route.request.method != "POST" or lost:
            route.continue_()
            return
        lost.append(route.request.headers["idempotency-key"])
        assert route.fetch().status == 201
        route.abort()

    page.route("**/v1/leases", lose_the_first)
    page.get_by_role("button", name=re.compile("^Book now until")).click()
    dialog = page.get_by_role("dialog", name="Book")
    dialog.get_by_label("Name").fill("only once")
    dialog.get_by_role("button", name="Book", exact=True).click()
    expect(page.get_by_role("heading", name="only once")).to_be_visible()
    assert len(lost) == 1
    assert len(leases_of(shared, ALICE)) == 1


@pytest.mark.parametrize("look", [pytest.param("light", marks=pytest.mark.nightly), "dark", "phone"])
def test_the_dialog_is_accessible(demo, page_of, look):
    options = {"color_scheme": "dark"} if look == "dark" else {}
    if look == "phone":
        options = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
    # Of so many hosts one is free on any day of the demo's week.
    page = page_of(f"{demo}?min=1&max=4&for=P3D", ALICE, **options)
    page.get_by_role("button", name=re.compile("^Book now until")).click()
    expect(page.get_by_role("dialog", name="Book")).to_be_visible()
    assert serious(page) == []


def test_of_a_later_start_only_is_said_what_was_found_out(small, page_of):
    page = page_of(f"{small}?min=1&max=40", ALICE)
    rows = page.locator(".opening-item")
    expect(rows.nth(1)).to_be_visible()
    expect(rows.first).to_contain_text(re.compile(r"You get \d+ hosts · free for longer than was searched"))
    for row in rows.all()[1:]:
        expect(row).to_contain_text("You get at least 1 host")
        expect(row).not_to_contain_text(re.compile("free for longer|can go on"))
    # A screen reader hears of all that are listed.
    listed = page.locator(".opening-item").count()
    assert listed > 1
    expect(page.locator("[aria-live=polite].visually-hidden")).to_have_text(
        re.compile(f"^{listed} openings, the first")
    )


def test_servers_are_asked_for_with_all_that_they_may_have(small, page_of):
    page = page_of(f"{small}?type=virtual:instance&amount=1", ALICE)
    page.get_by_text("More about it").click()
    page.get_by_label("Ephemeral disk of each").fill("3")
    page.get_by_role("button", name=re.compile("^Book now until")).click()
    dialog = page.get_by_role("dialog", name="Book")
    expect(dialog).to_contain_text("1 server of 2 vCPU, 4 GiB, 3 GiB of ephemeral disk")
    dialog.get_by_role("button", name="Book", exact=True).click()
    page.get_by_role("link", name="Book again").click()
    expect(page.get_by_label("Ephemeral disk of each")).to_have_value("3")
    (lease,) = leases_of(small, ALICE)
    assert lease["reservations"][0]["ephemeral_gb"] == 3
    assert serious(page) == []


def test_what_is_booked_is_no_longer_free(shared, page_of):
    free = asked(
        shared,
        ALICE,
        "POST",
        "v1/availability",
        {"reservations": [{"resource_type": "physical:host", "min": 1}], "duration": "PT1H"},
    )
    assert len(free["availability"]["openings"]) == 1
    page = page_of(shared, ALICE)
    count = page.locator(".count").first
    expect(count).to_contain_text("free now")
    before = count.inner_text()
    page.get_by_role("button", name=re.compile("^Book now until")).click()
    page.get_by_role("dialog", name="Book").get_by_label("Name").fill("taken")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="taken")).to_be_visible()
    page.get_by_role("link", name="Find a time").click()
    expect(count).not_to_have_text(before)


def test_what_a_type_describes_is_booked_and_changed_by_forms_of_its_schema(small, page_of, complaints):
    complaints.expected.add("400 (BAD REQUEST)")
    for number in (1, 2):
        scope = {"name": f"scope-{number}", "class": "microscope", "hook_url": "https://lab.example/hook"}
        asked(small, ADMIN, "POST", "v1/resources/generic", scope)
    segment = {"network_type": "vlan", "physical_network": "physnet1", "segment_id": 100}
    asked(small, ADMIN, "POST", "v1/resources/network", segment)
    page = page_of(small + "?type=generic", ALICE)
    expect(page.get_by_role("heading", name="Still needed: Class")).to_be_visible()
    # A class that is known needs no typing.
    page.get_by_role("button", name="microscope", exact=True).click()
    expect(page.get_by_label("Class", exact=True)).to_have_value("microscope")
    # Whole ones are counted, or units of one.
    expect(page.get_by_label("Whole resources, at least")).to_have_value("1")
    expect(page.get_by_label("Units of a shared one")).to_have_count(0)
    page.get_by_label("What of it").select_option("units of a shared one")
    expect(page.get_by_label("Whole resources, at least")).to_have_count(0)
    expect(page.get_by_label("Units of a shared one")).to_have_value("1")
    page.get_by_label("What of it").select_option("whole resources")
    page.get_by_text("More about it").click()
    page.get_by_label("Whole resources, at most").fill("0")
    # The service's own sentence is beside its field.
    expect(page.get_by_label("Whole resources, at most")).to_have_attribute("aria-invalid", "true")
    assert serious(page) == []
    page.get_by_label("Whole resources, at most").fill("1")
    page.get_by_role("button", name="Together with something else").click()
    page.get_by_label("Of what").nth(1).select_option("network")
    page.get_by_label("Name of the network").fill("lab")
    page.get_by_role("button", name=re.compile("^Book now until")).click()
    page.get_by_role("dialog", name="Book").get_by_role("button", name="Book", exact=True).click()
    expect(page.get_by_role("heading", name="1 microscope", exact=True)).to_be_visible()
    expect(page.get_by_role("heading", name="Network lab", exact=True)).to_be_visible()
    expect(page.locator(".lease-title .state-word")).to_have_text("active", timeout=60_000)
    # What its hook has answered is shown as lines, not as JSON.
    expect(page.locator(".reservation-fields").get_by_text(re.compile("address: "))).to_be_visible()
    page.get_by_role("button", name="Change", exact=True).click()
    dialog = page.get_by_role("dialog", name=re.compile("^Change"))
    expect(dialog.get_by_label("Units of a shared one")).to_have_count(0)
    dialog.get_by_label("Whole resources, at most").fill("2")
    expect(dialog.get_by_text("This fits.")).to_be_visible()
    assert serious(page) == []
    dialog.get_by_role("button", name="Change", exact=True).click()
    expect(page.get_by_role("heading", name="1 to 2 × microscope", exact=True)).to_be_visible()
    [lease] = leases_of(small, ALICE)
    assert [(one["resource_type"], one.get("max")) for one in lease["reservations"]] == [
        ("generic", 2),
        ("network", None),
    ]
    # The calendar has rows of any kind; those of one kind are shown at a time.
    page.goto(small + "calendar?type=generic")
    expect(drawn(page).get_by_text("scope-1", exact=True)).to_be_visible()
    page.get_by_label("Show").select_option("network segments")
    expect(drawn(page).get_by_text("scope-1", exact=True)).to_have_count(0)
    expect(drawn(page).get_by_role("gridcell", name=re.compile("^1 microscope and network lab"))).to_be_visible()


def test_what_was_found_can_be_read_while_the_next_answer_is_awaited(shared, page_of):
    page = page_of(shared, ALICE)
    results = page.get_by_role("region", name="What fits")
    expect(results).to_have_attribute("aria-busy", "false")
    held: list[Route] = []
    page.route("**/v1/availability", lambda route: held.append(route))
    page.get_by_label("How many", exact=True).fill("2")
    expect(results).to_have_attribute("aria-busy", "true")
    # Axe waits for what still fades.
    assert serious(page) == []
    expect(results).to_have_attribute("aria-busy", "true")
    for one in held:
        one.continue_()
    page.unroute("**/v1/availability")
    expect(results).to_have_attribute("aria-busy", "false")


def test_the_first_opening_is_booked_on_a_phone_without_scrolling(demo, page_of):
    page = page_of(demo, ALICE, viewport={"width": 390, "height": 844}, has_touch=True)
    first = page.get_by_role("button", name=re.compile("^Book now until"))
    expect(first).to_be_visible()
    box, below = first.bounding_box(), page.get_by_role("navigation", name="Pages").bounding_box()
    assert box is not None
    assert below is not None
    assert box["y"] + box["height"] <= below["y"]


def test_more_than_takes_new_leases_now_can_be_waited_for_and_it_is_said_until_when(demo, page_of):
    page = page_of(demo + "?min=56", ALICE)
    hint = page.get_by_text("hosts take new leases now: 3 are out of use and 2 are broken")
    expect(hint).to_contain_text(re.compile(r"Out of use: 1 until .*, 1 until .*, 1 without a date\."))
    expect(page.get_by_role("button", name="Wait in line…")).to_be_visible()
    page.goto(demo + "?min=70")
    expect(page.get_by_text("There are only 59 hosts of what you ask for, so no waiting helps.")).to_be_visible()
    expect(page.get_by_text("take away a property")).to_have_count(0)
    expect(page.get_by_role("button", name="Wait in line…")).to_have_count(0)
