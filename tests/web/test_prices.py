# SPDX-License-Identifier: Apache-2.0
"""What a lease costs is said where it is booked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.web.conftest import ADMIN, ALICE, serious, standalone
from tests.web.service import asked, booked, leases_of, published

PRICES = {
    "currency": "EUR",
    "decimals": 2,
    "valid_from": "2020-01-01T00:00:00Z",
    "time_zone": "UTC",
    "prices": [{"sku": "host", "measure": "host", "per_hour": "0.80"}],
    "fee": "5.00",
    "cancellation": [{"share": "0"}],
}


def test_the_dialog_that_books_says_what_it_costs_and_until_when_it_is_free_to_cancel(small, page_of):
    published(small, ADMIN, PRICES)
    page = page_of(f"{small}?for=PT2H", ALICE)
    page.get_by_role("button", name=re.compile("^Book now until")).first.click()
    summary = page.get_by_role("dialog").locator(".summary")
    expect(summary).to_contain_text(re.compile(r"Costs \d+\.\d\d EUR"))
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("How the price comes about").click()
    expect(dialog.get_by_text(re.compile(r"^1 × host, .* h × 0\.80 EUR = "))).to_be_visible()
    expect(dialog.get_by_text("fee 5.00 EUR")).to_be_visible()
    assert serious(page) == []
    shown = re.search(r"Costs (\d+\.\d\d) EUR", summary.inner_text())
    dialog.get_by_role("button", name="Book", exact=True).click()
    cost = page.get_by_role("region", name="What it costs")
    expect(cost).to_be_visible()
    (lease,) = leases_of(small, ALICE)
    assert shown is not None
    assert float(lease["price"]["amount"]) <= float(shown[1])
    expect(cost).to_contain_text(f"{lease['price']['amount']} EUR in all")
    cost.get_by_text("What was charged").click()
    expect(cost.get_by_text(re.compile("^Nothing yet|^Fees$")).first).to_be_visible()
    assert serious(page) == []


def test_without_a_price_list_nothing_is_said_of_prices(small, page_of):
    page = page_of(f"{small}?for=PT2H", ALICE)
    page.get_by_role("button", name=re.compile("^Book now until")).first.click()
    expect(page.get_by_role("dialog").locator(".summary")).not_to_contain_text("Costs")


def test_who_saw_a_price_and_books_pays_that_whatever_list_is_published_meanwhile(small, page_of, complaints):
    published(small, ADMIN, PRICES)
    page = page_of(f"{small}?for=PT2H&min=2", ALICE)
    page.get_by_role("button", name=re.compile("^Book now until")).first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".summary")).to_contain_text(re.compile(r"Costs 8\.\d\d EUR"))
    published(small, ADMIN, {**PRICES, "prices": [{"sku": "host", "measure": "host", "per_hour": "1.00"}]})
    dialog.get_by_role("button", name="Book", exact=True).click()
    expect(page.get_by_role("region", name="What it costs")).to_contain_text(re.compile(r"8\.\d\d EUR"))


@pytest.fixture
def unheld(tmp_path: Path) -> Iterator[str]:
    """The address of the pages of a service where no quote holds."""
    path = tmp_path / "quotes.conf"
    path.write_text("[billing]\nquote_holds = 0\n")
    yield from standalone(tmp_path, "--config-file", str(path))


def test_a_list_that_became_dearer_meanwhile_is_not_paid_unseen(unheld, page_of, complaints):
    complaints.expected.add("status of 409")
    published(unheld, ADMIN, PRICES)
    page = page_of(f"{unheld}?for=PT2H&min=2", ALICE)
    page.get_by_role("button", name=re.compile("^Book now until")).first.click()
    dialog = page.get_by_role("dialog")
    summary = dialog.locator(".summary")
    expect(summary).to_contain_text(re.compile(r"Costs 8\.\d\d EUR"))
    published(unheld, ADMIN, {**PRICES, "prices": [{"sku": "host", "measure": "host", "per_hour": "1.00"}]})
    dialog.get_by_role("button", name="Book", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text(re.compile(r"The lease would cost 9\.\d\d EUR"))
    assert leases_of(unheld, ALICE) == []
    # What it costs now is shown, and what would cost no more is a click.
    expect(summary).to_contain_text(re.compile(r"Costs 9\.\d\d EUR"))
    fewer = dialog.get_by_role("button", name=re.compile(r"^1 host instead of 2, .*\(7\.\d\d EUR\)"))
    assert serious(page) == []
    fewer.click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_label("How many", exact=False).first).to_have_value("1")


@pytest.mark.parametrize("width", [1280, 390])
def test_what_waits_is_bounded_by_what_it_may_cost_in_the_currency_of_the_site(small, width, page_of, complaints):
    complaints.expected.add("status of 400")
    published(small, ADMIN, PRICES)
    hosts = len(asked(small, ADMIN, "GET", "v1/resources/host")["resources"])
    booked(small, "bob:chemistry:member", "all of it", end="+P7D", min=hosts, max=hosts)
    page = page_of(f"{small}?for=PT2H&min=1", ALICE)
    page.set_viewport_size({"width": width, "height": 900})
    page.get_by_role("button", name="Wait in line").click()
    dialog = page.get_by_role("dialog", name="Wait in line")
    dialog.get_by_text("More", exact=True).click()
    most = dialog.get_by_label("May cost at most (EUR)", exact=True)
    most.fill("ten")
    dialog.get_by_role("button", name="Wait in line").click()
    expect(dialog).to_contain_text("Max price is 'ten'")
    most.fill("5.50")
    assert serious(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    dialog.get_by_role("button", name="Wait in line").click()
    expect(page.locator(".lease-title")).to_contain_text("starts only if it costs at most 5.50 EUR")
    (lease,) = [one for one in leases_of(small, ALICE) if one["status"] == "WAITING"]
    assert lease["wait"]["max_price"] == "5.50"


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[str]:
    """The address of the pages of a service where a project has 20 host-hours a month."""
    path = tmp_path / "limits.conf"
    path.write_text("[enforcement]\nenabled_filters = ResourceHoursFilter\nmax_resource_hours = host:20\n")
    yield from standalone(tmp_path, "--config-file", str(path))


def test_what_a_limit_would_grant_is_a_click(limited, page_of, complaints):
    complaints.expected.add("status of 403")
    # However much of it is in the next month, one of the two has too much of it.
    page = page_of(f"{limited}?for=PT15H&min=3", ALICE)
    expect(page.locator(".budget-line").first).to_contain_text("20 h of 20 h (host hours) left in")
    page.get_by_role("button", name=re.compile("^Book ")).first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Book", exact=True).click()
    expect(dialog.get_by_text("This would do:")).to_be_visible()
    dialog.get_by_role("button", name=re.compile(r"^\d+ h \d+ min")).first.click()
    expect(dialog).to_have_count(0)
    page.get_by_role("button", name=re.compile("^Book now until")).first.click()
    page.get_by_role("dialog").get_by_role("button", name="Book", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("3 hosts")
    expect(page.get_by_role("region", name="What it costs")).to_have_count(0)


@pytest.mark.parametrize("width", [1280, 390])
def test_fixed_dates_that_a_budget_denies_are_moved_to_the_next_month_by_a_click(limited, width, page_of, complaints):
    complaints.expected.add("status of 403")
    first = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0) + timedelta(days=40)
    tenth = first.replace(day=10)

    def at(**later: int) -> str:
        return f"{tenth + timedelta(**later):%Y-%m-%dT%H:%M:%SZ}"

    booked(limited, ALICE, "first", at(days=2), at(days=2, hours=15))
    page = page_of(f"{limited}?start={at()}&end={at(hours=8)}", ALICE)
    page.set_viewport_size({"width": width, "height": 900})
    # The answer says it before anybody books, and so does the refusal.
    expect(page.get_by_role("button", name=re.compile("^All of it from "))).to_be_visible()
    page.get_by_role("button", name=re.compile("^Book ")).first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Book", exact=True).click()
    expect(dialog.get_by_text("This would do:")).to_be_visible()
    assert serious(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    dialog.get_by_role("button", name=re.compile("^All of it from ")).click()
    expect(dialog).to_have_count(0)
    page.get_by_role("button", name=re.compile("^Book ")).first.click()
    page.get_by_role("dialog").get_by_role("button", name="Book", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("host")
    # Part of it may lie in the first month, as far as there is something left.
    last = max(datetime.fromisoformat(one["start_date"]) for one in leases_of(limited, ALICE))
    assert last > tenth + timedelta(days=15)


def test_what_a_budget_grants_of_a_series_is_a_click(limited, page_of):
    first = (datetime.now(UTC).replace(day=1) + timedelta(days=40)).replace(day=3)
    page = page_of(
        f"{limited}?start={first:%Y-%m-%d}T08:00:00Z&end={first:%Y-%m-%d}T12:00:00Z", ALICE, timezone_id="UTC"
    )
    page.get_by_role("button", name=re.compile("^Book ")).first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("More", exact=True).click()
    dialog.get_by_label("Repeat").select_option("day")
    # Of 20 host-hours in a month four a day are enough for five days.
    dialog.get_by_label("Until the day", exact=True).fill(f"{first + timedelta(days=8):%Y-%m-%d}")
    expect(dialog.get_by_text("5 of 9 fit.")).to_be_visible()
    dialog.get_by_role("button", name=re.compile("^The first 5 of 9, until ")).click()
    expect(dialog.get_by_text("All 5 fit.")).to_be_visible()
    assert serious(page) == []
    dialog.get_by_role("button", name="Book the series").click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(dialog).to_have_count(0)
    assert len(leases_of(limited, ALICE)) == 5


def test_what_lasts_beyond_a_month_says_what_is_left_of_each(limited, page_of):
    page = page_of(f"{limited}?for=P40D", ALICE)
    lines = page.locator(".budget-line")
    expect(lines.nth(1)).to_be_visible()
    now = datetime.now(UTC)
    for number, line in enumerate(lines.all()):
        month = datetime(now.year + (now.month - 1 + number) // 12, (now.month - 1 + number) % 12 + 1, 1)
        expect(line).to_contain_text(f"20 h of 20 h (host hours) left in {month:%B %Y}")
    # A refusal names the month, whatever the zone of the page is.
    refused = page.locator(".opening .refusal").first
    expect(refused).to_contain_text(
        re.compile(r"the lease would take [\d.]+ host hours in [A-Z][a-z]+ \d{4}, and of the 20")
    )
    edges = page.evaluate(
        "[...document.querySelectorAll('.opening')].map((one) => parseFloat(getComputedStyle(one).paddingLeft))"
    )
    assert min(edges) > 0
    assert serious(page) == []


def test_later_starts_say_what_they_cost_too(small, page_of):
    published(small, ADMIN, PRICES)
    page = page_of(f"{small}?for=PT2H", ALICE)
    rows = page.locator(".opening")
    expect(rows.nth(1)).to_be_visible()
    for row in rows.all():
        expect(row).to_contain_text(re.compile(r"costs 6\.\d\d EUR"))


def test_what_waits_says_what_its_first_known_start_costs(small, page_of):
    published(small, ADMIN, PRICES)
    booked(small, ALICE, "all of it", min=6, max=6)
    page = page_of(f"{small}?for=P1D&min=6", ALICE)
    page.get_by_role("button", name="Wait in line…").click()
    dialog = page.get_by_role("dialog", name="Wait in line")
    expect(dialog.locator(".summary")).to_contain_text(re.compile(r"Costs 120\.20 EUR if it begins "))
    dialog.get_by_role("button", name="Wait in line").click()
    expect(page.get_by_role("region", name="What it costs")).to_contain_text(
        re.compile("Nothing while it waits|in all")
    )
    assert serious(page) == []


def test_a_change_and_an_end_say_what_they_cost(small, page_of):
    cancelled = [{"before_start": "P30D", "share": "0"}, {"share": "0.5"}]
    published(small, ADMIN, {**PRICES, "cancellation": cancelled})
    start, end = (f"{datetime.now(UTC) + timedelta(days=days):%Y-%m-%dT%H:00:00Z}" for days in (2, 3))
    lease = booked(small, ALICE, "later", start, end)
    page = page_of(f"{small}lease?id={lease['id']}", ALICE)
    cost = page.get_by_role("region", name="What it costs")
    expect(cost).to_contain_text("24.20 EUR in all")
    expect(cost).to_contain_text("12.10 EUR")
    page.get_by_role("button", name="Extend").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="+ 1 day").click()
    expect(dialog.get_by_text("Then it costs 43.40 EUR in all: 19.20 EUR more.")).to_be_visible()
    assert serious(page) == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Change").click()
    dialog.get_by_role("textbox", name="Name").fill("other")
    expect(dialog.get_by_text("Then it costs")).to_have_count(0)
    dialog.get_by_label("How many hosts, from … to …").fill("2")
    expect(dialog.get_by_text("Then it costs 43.40 EUR in all: 19.20 EUR more.")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Delete").click()
    expect(dialog.get_by_text("To cancel it costs 12.10 EUR now.")).to_be_visible()
    assert serious(page) == []
    dialog.get_by_role("button", name="Delete").click()
    expect(dialog).to_have_count(0)
    amounts = [float(one["amount"]) for one in asked(small, ALICE, "GET", "v1/charges")["charges"]]
    assert sum(amounts) == 12.10


def test_of_a_series_the_first_price_is_said(small, page_of):
    published(small, ADMIN, PRICES)
    page = page_of(f"{small}?for=PT2H", ALICE)
    page.get_by_role("button", name=re.compile("^Book now until")).first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("More", exact=True).click()
    dialog.get_by_label("Repeat").select_option(index=1)
    expect(dialog.locator(".summary")).to_contain_text("The first of them costs 6.60 EUR")


@pytest.mark.parametrize("width", [1280, 390])
def test_a_series_is_bounded_by_what_each_of_it_may_cost_and_says_so(small, page_of, complaints, width):
    complaints.expected.add("status of 400")
    published(small, ADMIN, PRICES)
    page = page_of(f"{small}?for=PT2H", ALICE)
    page.set_viewport_size({"width": width, "height": 900})
    page.get_by_role("button", name=re.compile("^Book now until")).first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("More", exact=True).click()
    most = dialog.get_by_label("Each may cost at most")
    expect(most).to_have_count(0)
    dialog.get_by_label("Repeat").select_option("week")
    most.fill("ten")
    dialog.get_by_role("button", name="Book the series").click()
    expect(dialog).to_contain_text("Max price is 'ten'")
    most.fill("9.50")
    assert serious(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    dialog.get_by_role("button", name="Book the series").click()
    expect(page.get_by_text("Each may cost at most 9.50 EUR")).to_be_visible()
    page.get_by_role("button", name="Change all").click()
    expect(dialog.get_by_label("Each may cost at most")).to_have_value("9.50")
    assert serious(page) == []
    dialog.get_by_label("Each may cost at most").fill("12")
    dialog.get_by_role("button", name="Change", exact=True).click()
    expect(page.get_by_text("Each may cost at most 12 EUR")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
