# SPDX-License-Identifier: Apache-2.0
"""Series: what recurs is booked from Find a time, shown with each of it, and deleted."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.web.conftest import ADMIN, ALICE, serious
from tests.web.service import asked
from tests.web.test_kinds import BOB, hosts_of, leased, whole

FIRST = (datetime.now(UTC) + timedelta(days=3)).replace(hour=9, minute=0, second=0, microsecond=0)
LAST = FIRST + timedelta(hours=3)
WEEK = timedelta(days=7)


def booking(page: Page, pages: str, name: str, count: int = 2) -> Locator:
    """Open the dialog for three hours that recur each week, four times; return it."""
    page.goto(f"{pages}?min={count}&start={whole(FIRST)}&end={whole(LAST)}&book=1")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill(name)
    dialog.get_by_text("More", exact=True).click()
    dialog.get_by_label("Repeat").select_option("week")
    dialog.get_by_label("Until the day", exact=True).fill(f"{FIRST + 3 * WEEK:%Y-%m-%d}")
    return dialog


def series_of(pages: str) -> dict[str, object]:
    (one,) = asked(pages, ALICE, "GET", "v1/series")["series"]
    return dict(asked(pages, ALICE, "GET", f"v1/series/{one['id']}")["series"])


def made(pages: str, name: str, **more: object) -> dict[str, object]:
    """Make a series of four hosts-weeks; return it."""
    body = {
        "name": name,
        "rule": "FREQ=WEEKLY;COUNT=4",
        "start": f"{FIRST:%Y-%m-%dT%H:%M}",
        "until_local": "12:00",
        "reservations": [{"resource_type": "physical:host", "min": 2, "max": 2}],
        **more,
    }
    return dict(asked(pages, ALICE, "POST", "v1/series", body)["series"])


def test_what_recurs_each_week_is_booked_at_once(shared, page_of):
    page = page_of(shared, ALICE, timezone_id="UTC")
    dialog = booking(page, shared, "practical physics")
    expect(dialog.get_by_role("status")).to_have_text("All 4 fit.")
    assert serious(page) == []
    until = dialog.get_by_label("Until the day", exact=True)
    last = until.input_value()
    field = dialog.locator(".field").filter(has=page.get_by_label("Until the day", exact=True))
    said = field.get_by_text(f"{FIRST:%A}", exact=True)
    expect(said).to_be_visible()
    until.fill("some day")
    expect(dialog.get_by_text("Write the date as in")).to_be_visible()
    expect(said).to_have_count(0)
    until.fill(last)
    expect(said).to_be_visible()
    expect(dialog.get_by_role("status")).to_have_text("All 4 fit.")
    dialog.get_by_role("button", name="Book the series").click()
    expect(page.get_by_role("heading", name="practical physics", exact=True)).to_be_visible()
    day = f"{FIRST:%A}"
    expect(page.locator(".lease-title")).to_contain_text(f"Each {day}, until")
    expect(page.locator(".lease-title")).to_contain_text("09:00 until 12:00")
    expect(page.locator("tbody tr")).to_have_count(4)
    expect(page.locator("tbody tr").first).to_contain_text("booked")
    # They are booked: whether they would fit is no question any more.
    expect(page.get_by_text("All 4 fit.")).to_have_count(0)
    assert serious(page) == []
    series = series_of(shared)
    assert [one["start_date"] for one in series["occurrences"]] == [  # type: ignore[attr-defined]
        whole(FIRST + number * WEEK) for number in range(4)
    ]
    page.get_by_role("rowheader").first.get_by_role("link").click()
    expect(page.get_by_role("heading", name="practical physics")).to_be_visible()
    page.get_by_role("link", name="a series").click()
    page.get_by_role("link", name="Series").click()
    expect(page.get_by_role("row", name=re.compile("practical physics"))).to_contain_text(f"Each {day}")
    assert serious(page) == []


def test_what_does_not_fit_is_said_before_and_only_the_rest_is_booked(shared, page_of, complaints):
    complaints.expected.add("status of 409")
    hosts = hosts_of(shared)
    second = FIRST + WEEK
    leased(shared, BOB, "theirs", hosts, start_date=whole(second), end_date=whole(second + timedelta(hours=1)))
    page = page_of(shared, ALICE, timezone_id="UTC")
    dialog = booking(page, shared, "practical physics")
    expect(dialog.get_by_role("status")).to_have_text("3 of 4 fit.")
    dialog.get_by_text("Which do not").click()
    expect(dialog.get_by_text("It would fit from")).to_be_visible()
    assert serious(page) == []
    dialog.get_by_role("button", name="Book the series").click()
    expect(dialog.get_by_role("alert")).to_be_visible()
    assert asked(shared, ALICE, "GET", "v1/series")["series"] == []
    dialog.get_by_label("Book those that fit").check()
    dialog.get_by_role("button", name="Book the series").click()
    expect(page.get_by_text("3 of 4 fit.")).to_be_visible()
    expect(page.locator("tbody tr").nth(1)).to_contain_text("does not fit")
    assert serious(page) == []


def test_a_series_is_deleted_after_it_was_said_what_goes(shared, page_of):
    series = made(shared, "no course")
    page = page_of(f"{shared}series?id={series['id']}", ALICE)
    page.get_by_role("button", name="Delete the series").click()
    dialog = page.get_by_role("dialog", name="Delete the series: no course")
    expect(dialog).to_contain_text("4 are booked.")
    assert serious(page) == []
    dialog.get_by_role("button", name="Delete", exact=True).click()
    expect(dialog).to_have_count(0)
    expect(page.locator(".lease-title .state-word")).to_have_text("deleted", timeout=60_000)
    expect(page.locator("tbody tr").first).to_contain_text("cancelled")
    assert asked(shared, ALICE, "GET", "v1/leases")["leases"] == []


def test_series_of_others_are_not_there(shared, page_of, complaints):
    complaints.expected.add("status of 404")
    series = made(shared, "private")
    page = page_of(f"{shared}series?id={series['id']}", BOB)
    expect(page.get_by_role("heading", name="There is no such series")).to_be_visible()
    page.get_by_role("link", name="Series").first.click()
    expect(page.get_by_role("heading", name="There are no series")).to_be_visible()


@pytest.mark.parametrize("look", ["dark", "phone"])
def test_pages_of_series_are_accessible(shared, page_of, look):
    options = {"color_scheme": "dark"} if look == "dark" else {"viewport": {"width": 390, "height": 844}}
    series = made(shared, "practical physics")
    page = page_of(f"{shared}series?id={series['id']}", ADMIN, **options)
    expect(page.locator("tbody tr")).to_have_count(4)
    assert serious(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    dialog = booking(page, shared, "more")
    expect(dialog.get_by_role("status")).to_have_text("All 4 fit.")
    assert serious(page) == []


def starts(pages: str, series_id: object) -> list[str]:
    found = asked(pages, ALICE, "GET", f"v1/series/{series_id}")["series"]
    return [f"{one['start_date']} {one['end_date'][11:16]}" for one in found["occurrences"] if one["state"] == "booked"]


def test_the_following_are_changed_once_it_was_read_what_comes_of_it(shared, page_of):
    series = made(shared, "lab")
    page = page_of(f"{shared}series?id={series['id']}", ALICE, timezone_id="UTC")
    page.get_by_role("row").nth(3).get_by_role("button", name="Change from here on").click()
    dialog = page.get_by_role("dialog", name=re.compile("^Change lab from .* on$"))
    expect(dialog).to_contain_text("Those before stay as they are")
    dialog.get_by_label("Until", exact=True).fill("13:30")
    expect(dialog.get_by_role("status")).to_have_text("Of 2 leases to come: 2 get other times.")
    assert serious(page) == []
    assert [one[-5:] for one in starts(shared, series["id"])] == ["12:00"] * 4
    dialog.get_by_role("button", name="Change", exact=True).click()
    expect(page.get_by_text("It goes on from an earlier series.")).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(2)
    expect(page.locator(".lease-title")).to_contain_text("09:00 until 13:30")
    assert serious(page) == []
    assert [one[-5:] for one in starts(shared, series["id"])] == ["12:00"] * 2
    page.get_by_role("link", name="an earlier series").click()
    expect(page.locator("tbody tr")).to_have_count(2)


def test_all_of_a_series_is_changed_and_what_does_not_fit_is_given_up_only_if_that_is_said(shared, page_of, complaints):
    complaints.expected.add("status of 409")
    series = made(shared, "lab")
    second = FIRST + WEEK
    hosts = hosts_of(shared)
    leased(shared, BOB, "theirs", hosts - 2, start_date=whole(second), end_date=whole(second + timedelta(hours=5)))
    page = page_of(f"{shared}series?id={series['id']}", ALICE, timezone_id="UTC")
    page.get_by_role("button", name="Change all").click()
    dialog = page.get_by_role("dialog", name="Change all of lab")
    dialog.get_by_label("How many hosts").fill("3")
    expect(dialog.get_by_role("status")).to_contain_text("1 does not fit")
    dialog.get_by_text("Which do not fit").click()
    expect(dialog.get_by_role("row")).to_have_count(2)
    assert serious(page) == []
    dialog.get_by_role("button", name="Change", exact=True).click()
    expect(dialog.get_by_role("alert")).to_be_visible()
    assert len(starts(shared, series["id"])) == 4
    dialog.get_by_label("Give up those that do not fit").check()
    dialog.get_by_role("button", name="Change", exact=True).click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_text("3 of 4 fit.")).to_be_visible()
    assert len(starts(shared, series["id"])) == 3


def test_one_of_a_series_is_changed_by_itself_and_stays_so(shared, page_of):
    series = made(shared, "lab")
    page = page_of(f"{shared}series?id={series['id']}", ALICE, timezone_id="UTC")
    page.get_by_role("link", name="Change this one").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("End", exact=True).fill(f"{LAST + timedelta(hours=1):%Y-%m-%dT%H:%M}")
    dialog.get_by_role("button", name=re.compile("^(Save|Change)")).click()
    expect(dialog).to_have_count(0)
    page.get_by_role("link", name="a series").click()
    expect(page.locator("tbody tr").first).to_contain_text("changed by itself")
    page.get_by_role("button", name="Change all").click()
    dialog = page.get_by_role("dialog", name="Change all of lab")
    dialog.get_by_label("Name", exact=True).fill("practice")
    expect(dialog.get_by_label("Change also those that were changed by themselves")).not_to_be_checked()
    dialog.get_by_role("button", name="Change", exact=True).click()
    expect(page.get_by_role("heading", name="practice", exact=True)).to_be_visible()
    assert starts(shared, series["id"])[0][-5:] == "13:00"
