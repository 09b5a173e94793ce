# SPDX-License-Identifier: Apache-2.0
"""Signing in, and what stands around every page."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.web.conftest import ADMIN, ALICE, serious
from tests.web.service import asked

PAGES = ["", "calendar", "leases", "usage", "overview", "hosts", "all-leases"]


def test_a_newcomer_chooses_who_to_be_and_can_be_somebody_else(demo, page_of):
    page = page_of(demo)
    expect(page.get_by_role("heading", name="Who are you?")).to_be_visible()
    assert serious(page) == []
    page.get_by_role("button", name="alice").click()
    expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
    expect(page.get_by_role("link", name="Hosts")).to_have_count(0)
    page.get_by_role("button", name=re.compile("physics")).click()
    page.get_by_role("button", name="Be somebody else").click()
    page.get_by_role("button", name="admin").click()
    expect(page.get_by_role("link", name="Hosts")).to_be_visible()


def test_a_browser_that_opens_the_service_is_led_to_the_pages(demo, page_of):
    page = page_of(demo.removesuffix("ui/"))
    assert page.url == demo


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("look", [pytest.param("light", marks=pytest.mark.nightly), "dark", "phone"])
def test_axe_finds_nothing_serious_and_nothing_overflows(demo, page_of, path, look):
    options = {"color_scheme": "dark"} if look == "dark" else {}
    if look == "phone":
        options = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
    page = page_of(demo + path, ADMIN, **options)
    expect(page.locator("main h1")).to_have_count(1)
    page.wait_for_load_state("networkidle")
    expect(page.locator(".skeleton")).to_have_count(0)
    assert serious(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_on_a_phone_an_operator_reaches_every_page(demo, page_of):
    page = page_of(demo, ADMIN, viewport={"width": 390, "height": 844}, has_touch=True)
    navigation = page.get_by_role("navigation", name="Pages")
    expect(navigation.get_by_role("link")).to_have_count(4)
    assert navigation.evaluate("bar => bar.scrollWidth <= bar.clientWidth")
    navigation.get_by_role("button", name="More").click()
    more = page.get_by_role("dialog", name="More pages")
    # How many problems there are stands beside their page.
    pages = [
        "Notifications",
        "Resources",
        "Usage",
        "Spending",
        "History",
        "Overview",
        re.compile(r"Problems\d*"),
        "Hosts",
        "Maintenance",
        "Prices",
        "Managers",
        "All leases",
    ]
    expect(more.get_by_role("link")).to_have_text(pages)
    assert serious(page) == []
    more.get_by_role("link", name="Maintenance").click()
    expect(page.get_by_role("heading", name="Maintenance", exact=True)).to_be_visible()
    expect(more).to_have_count(0)


def test_a_page_whose_files_are_gone_is_loaded_again_by_a_click(demo, page_of, complaints):
    complaints.expected.add("ERR_FAILED")
    page = page_of(demo, ADMIN)
    expect(page.get_by_role("heading", name="Find a time")).to_be_visible()
    page.route(re.compile("/ui/part-"), lambda route: route.abort())
    page.get_by_role("link", name="Hosts").click()
    expect(page.get_by_role("alert")).to_contain_text("The service has been updated, or the connection was lost")
    assert serious(page) == []
    page.unroute(re.compile("/ui/part-"))
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("heading", name="Hosts", exact=True)).to_be_visible()


def test_times_are_in_the_zone_of_the_browser_or_the_one_that_is_chosen(demo, page_of):
    page = page_of(demo + "all-leases", ADMIN)
    first = page.locator("tbody tr").first.locator("time").first
    expect(first).to_be_visible()
    before = first.inner_text()
    page.get_by_title(re.compile("^Times are in Berlin")).click()
    page.get_by_role("searchbox", name="Time zone").fill("tokyo")
    page.get_by_role("button", name="Tokyo").click()
    expect(first).not_to_have_text(before)
    page.reload()
    expect(page.get_by_title(re.compile("^Times are in Tokyo"))).to_be_visible()


def test_the_theme_that_is_chosen_is_kept(demo, page_of):
    page = page_of(demo, ALICE)
    page.get_by_role("button", name="Light or dark").click()
    page.get_by_role("button", name="Dark", exact=True).click()
    page.reload()
    expect(page.locator("html")).to_have_css("color-scheme", "dark")


def test_an_unknown_page_leads_home_and_operators_pages_say_for_whom_they_are(demo, page_of):
    page = page_of(demo + "nothing-here", ALICE)
    expect(page.get_by_role("heading", name="There is no such page")).to_be_visible()
    page.goto(demo + "hosts")
    expect(page.get_by_role("heading", name="This page is for operators")).to_be_visible()


def test_a_lost_connection_is_said_and_comes_back_by_itself(demo, page_of, complaints):
    complaints.expected.add("ERR_INTERNET_DISCONNECTED")
    page = page_of(demo + "all-leases", ADMIN)
    expect(page.locator("tbody tr").first).to_be_visible()
    page.context.set_offline(True)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    bar = page.get_by_text("No connection to the service since")
    expect(bar).to_be_visible()
    expect(page.locator("tbody tr").first).to_be_visible()
    page.context.set_offline(False)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(bar).to_have_count(0)


def test_forced_colours_and_no_motion_are_respected(demo, page_of):
    page = page_of(demo + "calendar", ALICE, forced_colors="active", reduced_motion="reduce")
    block = page.locator(".block").first
    expect(block).to_be_visible()
    assert block.evaluate("one => getComputedStyle(one).borderTopWidth") != "0px"
    moving = "[...document.getAnimations()].filter((one) => one.playState === 'running').length"
    assert page.evaluate(moving) == 0


def test_a_step_back_closes_a_dialog_and_loses_nothing_that_was_typed(demo, page_of):
    page = page_of(demo + "leases", ALICE)
    page.goto(demo + "hosts")
    page.goto(demo + "leases?whose=project")
    # A lease that ends within a day has another button, which extends it at once.
    opening = page.get_by_role("button", name=re.compile("^Extend (?!until)")).first
    opening.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    page.go_back()
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("heading", name="My leases")).to_be_visible()
    assert page.url.endswith("leases?whose=project")
    # What was typed stays until one goes back once more.
    page.get_by_role("button", name="Calendar links").click()
    dialog.get_by_label("Name").fill("my phone")
    page.go_back()
    expect(page.get_by_text("What you typed is still here")).to_be_visible()
    expect(dialog.get_by_label("Name")).to_have_value("my phone")
    page.go_back()
    expect(dialog).to_have_count(0)
    # A dialog that was closed otherwise leaves no step behind.
    page.get_by_role("button", name="Calendar links").click()
    dialog.get_by_role("button", name="Close").first.click()
    expect(dialog).to_have_count(0)
    page.wait_for_timeout(200)
    page.go_back()
    expect(page.get_by_role("heading", name="This page is for operators")).to_be_visible()


def test_a_step_back_closes_a_dialog_that_the_address_names(demo, page_of):
    lease = asked(demo, ADMIN, "GET", "v1/leases?status=PENDING&limit=1")["leases"][0]
    page = page_of(demo + f"lease?id={lease['id']}", ADMIN)
    page.get_by_role("button", name="Extend", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    page.go_back()
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("heading", name=lease["name"])).to_be_visible()
    assert "do=" not in page.url


def test_who_waits_is_listed_in_the_order_of_the_line(demo, page_of):
    page = page_of(demo + "overview", ADMIN)
    places = page.locator(".tile").filter(has_text="Waiting in line").locator(".tile-detail")
    expect(places.first).to_be_visible()
    expect(places).to_have_text([re.compile(f"^{number}") for number in range(1, places.count() + 1)])


def waiting_in_vain(demo: str) -> dict[str, Any]:
    """Let a lease wait for an hour, for a host that others have for longer; return it once it is told so."""
    tomorrow = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}"
    used = (
        given["resource"]["name"]
        for lease in asked(demo, ADMIN, "GET", "v1/leases?status=ACTIVE")["leases"]
        if lease["end_date"] > tomorrow and not lease["degraded"]
        for reservation in lease["reservations"]
        if reservation["resource_type"] == "physical:host"
        for given in reservation["allocations"]
    )
    host = ["==", "$hypervisor_hostname", next(used)]
    reservation = {"resource_type": "physical:host", "min": 1, "max": 1, "hypervisor_properties": host}
    body = {"name": "in-vain", "start_date": "now", "end_date": "+PT1H", "wait": {"until": "+PT1H"}}
    lease = asked(demo, ADMIN, "POST", "v1/leases", {**body, "reservations": [reservation]})["lease"]
    deadline = time.monotonic() + 60
    while not lease["wait"]["reason"]:
        assert time.monotonic() < deadline, lease
        time.sleep(0.2)
        lease = asked(demo, ADMIN, "GET", f"v1/leases/{lease['id']}")["lease"]
    assert "UTC" in lease["wait"]["reason"]
    return lease


def test_why_no_waiting_helps_is_said_in_the_zone_of_the_page(demo, page_of):
    lease = waiting_in_vain(demo)
    page = page_of(demo + f"lease?id={lease['id']}", ADMIN)
    expect(page.locator(".missing")).to_contain_text(re.compile("no waiting helps: .* [A-Z][a-z]{2} [0-9:]+"))
    expect(page.locator(".missing")).not_to_contain_text("UTC")
    page.goto(demo + "all-leases?states=waiting")
    why = page.get_by_role("row").filter(has_text=lease["name"]).locator(".trouble")
    expect(why).to_contain_text(re.compile("[A-Z][a-z]{2} [0-9:]+"))
    expect(why).not_to_contain_text("UTC")
