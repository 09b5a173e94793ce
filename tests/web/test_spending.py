# SPDX-License-Identifier: Apache-2.0
"""The pages of money: prices are published and read, budgets seen, statements read, saved and corrected."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import ADMIN, ALICE, query_of, serious, standalone
from tests.web.service import PATIENCE, asked, booked, leases_of, published
from tests.web.test_prices import PRICES

MIDDLE = "one.getBoundingClientRect().left + 9, one.getBoundingClientRect().top + 9"
"""A point of an element, in JavaScript."""


def charged(pages: str, who: str, count: int = 1) -> list[dict[str, Any]]:
    """Return the charges of a project once there are so many."""
    until = time.monotonic() + PATIENCE
    while len(found := asked(pages, who, "GET", "v1/charges")["charges"]) < count:
        assert time.monotonic() < until, found
        time.sleep(0.5)
    return list(found)


def ahead(days: int) -> str:
    """Return an instant so many days from now."""
    return f"{datetime.now(UTC) + timedelta(days=days):%Y-%m-%dT%H:%M:00Z}"


def navigation_of(page: Page) -> list[str]:
    """Return the names in the navigation."""
    expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
    return [text.strip() for text in page.locator("nav.navigation > ul a").all_inner_texts()]


def test_without_a_price_list_only_operators_find_where_prices_are_published(small, page_of):
    page = page_of(small, ALICE)
    assert {"Spending", "Prices"}.isdisjoint(navigation_of(page))
    page.goto(f"{small}spending")
    expect(page.get_by_role("heading", name="Nothing has a price")).to_be_visible()
    operator = page_of(f"{small}prices", ADMIN)
    expect(operator.get_by_role("heading", name="Nothing has a price")).to_be_visible()
    assert "Spending" not in navigation_of(operator)
    assert serious(operator) == []


def test_an_operator_publishes_by_the_form_after_it_was_said_what_changes(small, page_of, complaints):
    complaints.expected.add("400")
    page = page_of(f"{small}prices", ADMIN)
    page.get_by_role("button", name="Publish prices").click()
    dialog = page.get_by_role("dialog", name="New prices")
    dialog.get_by_label("EUR by the hour").fill("one")
    dialog.get_by_role("button", name="See what changes").click()
    expect(dialog.locator(".field-error")).to_contain_text(
        "EUR by the hour is 'one', which is invalid; give an amount, such as"
    )
    dialog.get_by_label("EUR by the hour").fill("0.80")
    expect(dialog.locator(".field-error")).to_have_count(0)
    dialog.get_by_label("Fee for each lease").fill("5.00")
    dialog.get_by_role("button", name="See what changes").click()
    changes = dialog.get_by_role("status", name="What changes")
    expect(changes).to_contain_text("It would be price list 1")
    expect(changes.get_by_role("row", name=re.compile("^Fee none 5.00"))).to_be_visible()
    assert serious(page) == []
    assert asked(small, ADMIN, "GET", "v1/price-lists")["price_lists"] == []
    # What was said is of another list once something is changed.
    dialog.get_by_label("Fee for each lease").fill("4.00")
    expect(dialog.get_by_role("button", name="Publish", exact=True)).to_have_count(0)
    dialog.get_by_role("button", name="See what changes").click()
    dialog.get_by_role("button", name="Publish", exact=True).click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("heading", name="Price list 1")).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("^a host 0.80 EUR host"))).to_be_visible()
    (head,) = asked(small, ADMIN, "GET", "v1/price-lists")["price_lists"]
    content = asked(small, ADMIN, "GET", f"v1/price-lists/{head['version']}")["price_list"]["content"]
    assert (content["fee"], content["prices"][0]["per_hour"]) == ("4.00", "0.80")


def test_a_price_that_is_more_special_is_moved_before_the_others(small, page_of, complaints):
    complaints.expected.add("400")
    page = page_of(f"{small}prices?do=publish", ADMIN)
    dialog = page.get_by_role("dialog", name="New prices")
    dialog.get_by_role("button", name="Another price").click()
    dialog.get_by_label("EUR by the hour").nth(1).fill("-3")
    dialog.get_by_label("Name in bills").nth(1).fill("host-large")
    dialog.get_by_role("button", name="Move price 2 up").press("Enter")
    expect(dialog.get_by_role("button", name="Move price 1 up")).to_be_focused()
    expect(dialog.get_by_label("Name in bills").first).to_have_value("host-large")
    dialog.get_by_role("button", name="See what changes").click()
    wrong = dialog.locator(".field-error")
    expect(wrong).to_contain_text("EUR by the hour is '-3', which is invalid; give an amount, such as")
    # The actions do not cover it.
    assert wrong.evaluate(f"(one) => one.contains(document.elementFromPoint({MIDDLE}))")
    dialog.get_by_label("EUR by the hour").first.fill("3")
    dialog.get_by_role("button", name="See what changes").click()
    changes = dialog.get_by_role("status", name="What changes")
    expect(changes.get_by_role("heading", name="What changes")).to_be_in_viewport()
    # As the special one has no condition yet, nothing is left for the other.
    expect(changes).to_contain_text("No resource has the price of host now")
    dialog.get_by_role("button", name="Publish", exact=True).click()
    expect(
        page.get_by_role("row", name=re.compile("^a host 3.00 EUR host-large|^a host 3 EUR host-large"))
    ).to_be_visible()
    assert serious(page) == []


@pytest.fixture
def metered(tmp_path: Path) -> Iterator[str]:
    """The address of the pages of a service that records what its hosts draw."""
    path = tmp_path / "options.conf"
    path.write_text("[energy]\nenabled = true\n")
    yield from standalone(tmp_path, "--config-file", str(path))


def test_energy_gets_a_price_by_the_form_and_a_lease_says_about_what_it_costs(metered, page_of):
    for host in asked(metered, ADMIN, "GET", "v1/resources/host")["resources"]:
        sheet = {"power_idle_w": "200", "power_max_w": "400"}
        asked(metered, ADMIN, "PUT", f"v1/resources/host/{host['id']}", {"properties": sheet})
    published(metered, ADMIN, {**PRICES, "fee": "0.00", "pue": "1.5"})
    page = page_of(f"{metered}prices?do=publish", ADMIN)
    dialog = page.get_by_role("dialog", name="New prices")
    dialog.get_by_role("button", name="Another price").click()
    power = dialog.get_by_role("group", name="Price 2")
    power.get_by_label("For", exact=True).select_option("a kWh that hosts draw")
    power.get_by_label("EUR by the kWh").fill("0.30")
    power.get_by_label("Name in bills").fill("power")
    assert serious(page) == []
    dialog.get_by_role("button", name="See what changes").click()
    dialog.get_by_role("button", name="Publish", exact=True).click()
    expect(dialog).to_have_count(0)
    content = asked(metered, ADMIN, "GET", "v1/price-lists/2")["price_list"]["content"]
    assert content["prices"][1] == {"sku": "power", "measure": "kwh", "per_kwh": "0.30"}
    # It holds from the next minute on; this one holds at once.
    published(metered, ADMIN, {**content, "valid_from": PRICES["valid_from"]})
    page.goto(f"{metered}prices")
    expect(page.get_by_role("row", name="a kWh that hosts draw 0.30 EUR / kWh power")).to_be_visible()
    expect(page.get_by_text("what hosts draw × 1.5, for what the site adds")).to_be_visible()
    assert serious(page) == []
    member = page_of(f"{metered}?for=PT2H", ALICE)
    member.get_by_role("button", name=re.compile("^Book now until")).first.click()
    booking = member.get_by_role("dialog")
    expect(booking.locator(".summary")).to_contain_text(re.compile(r"Costs about 1\.\d\d EUR"))
    booking.get_by_text("How the price comes about").click()
    expect(booking.get_by_text(re.compile(r"^power, about 0\.\d+ kWh × 0\.30 EUR × 1\.5 = "))).to_be_visible()
    assert serious(member) == []


def test_an_operator_publishes_a_document_and_a_wrong_one_says_where(small, page_of, complaints):
    complaints.expected.add("400")
    page = page_of(f"{small}prices?do=publish", ADMIN)
    dialog = page.get_by_role("dialog", name="New prices")
    dialog.get_by_role("button", name="Document").click()
    text = dialog.get_by_label("Price list")
    text.fill("{")
    dialog.get_by_role("button", name="See what changes").click()
    expect(dialog.locator(".field-error")).to_contain_text("This is not JSON")
    text.fill(json.dumps({**PRICES, "early_return": "2"}))
    dialog.get_by_role("button", name="See what changes").click()
    expect(dialog.get_by_role("alert")).to_contain_text("a share from")
    text.fill(json.dumps({**PRICES, "early_return": "0.5"}))
    dialog.get_by_role("button", name="See what changes").click()
    dialog.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_text("50 % of the rest is charged")).to_be_visible()
    member = page_of(f"{small}spending", ALICE)
    member.get_by_role("link", name="Prices").click()
    expect(member.get_by_role("row", name=re.compile("^a host 0.80 EUR host"))).to_be_visible()
    expect(member.get_by_role("button", name="New prices")).to_have_count(0)


def test_a_member_reads_what_was_charged_and_an_operator_corrects_it(small, page_of, complaints):
    complaints.expected.add("400")
    published(small, ADMIN, PRICES)
    lease = booked(small, ALICE, "training", start=ahead(1), end=ahead(3))
    asked(small, ALICE, "DELETE", f"v1/leases/{lease['id']}")
    # Prices that charge for a cancellation.
    published(small, ADMIN, {**PRICES, "cancellation": [{"share": "0.5"}]})
    soon = f"{datetime.now(UTC) + timedelta(minutes=10):%Y-%m-%dT%H:%M:00Z}"
    lease = booked(small, ALICE, "course", start=soon, end=ahead(3))
    asked(small, ALICE, "DELETE", f"v1/leases/{lease['id']}")
    charges = [one for one in charged(small, ALICE) if one["category"] == "cancellation"]
    wrong = min(charges, key=lambda one: one["from"])
    month = wrong["month"]
    page = page_of(f"{small}spending?month={month}", ALICE)
    expect(page.get_by_role("table", name=re.compile("^Totals of"))).to_contain_text("Cancelled")
    (told,) = [one for one in asked(small, ALICE, "GET", "v1/statements")["statements"] if one["month"] == month]
    expect(page.locator(".spending-sum")).to_have_text(f"{told['amount']} EUR")
    expect(page.get_by_role("button", name=re.compile("^Correct"))).to_have_count(0)
    assert serious(page) == []
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as CSV").click()
    rows = list(csv.DictReader(io.StringIO(saved.value.path().read_text(encoding="utf-8"), newline="")))
    assert str(wrong["id"]) in {row["id"] for row in rows}
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as FOCUS").click()
    assert "BilledCost" in saved.value.path().read_text(encoding="utf-8").splitlines()[0]

    operator = page_of(f"{small}spending?month={month}", ADMIN)
    operator.get_by_role("link", name="physics").click()
    assert query_of(operator)["project"] == ["physics"]
    operator.get_by_role("button", name=f"Correct charge {wrong['id']}").click()
    dialog = operator.get_by_role("dialog", name=f"Correct charge {wrong['id']}")
    dialog.get_by_label("Amount in EUR").fill("a lot")
    dialog.get_by_label("Reason").fill("the hosts were slow")
    assert serious(operator) == []
    dialog.get_by_role("button", name="Correct it").click()
    expect(dialog.locator(".field-error")).to_contain_text("give an amount")
    dialog.get_by_label("Amount in EUR").fill("-9999")
    expect(dialog.get_by_text("This gives back more than was charged.")).to_be_visible()
    dialog.get_by_label("Amount in EUR").fill("-1.25")
    expect(dialog.get_by_text("This gives back more than was charged.")).to_have_count(0)
    dialog.get_by_role("button", name="Correct it").click()
    expect(dialog).to_have_count(0)
    # The sum follows at once.
    (told,) = [one for one in asked(small, ALICE, "GET", "v1/statements")["statements"] if one["month"] == month]
    expect(operator.locator(".spending-sum")).to_have_text(f"{told['amount']} EUR")
    # It is of the month in which it is made, which is looked at first.
    page.goto(f"{small}spending")
    expect(page.get_by_text(f"of charge {wrong['id']}: the hosts were slow")).to_be_visible()
    assert leases_of(small, ALICE) == []


@pytest.fixture
def budgeted(tmp_path: Path) -> Iterator[str]:
    """The address of the pages of a service where a project may spend 100 a month."""
    path = tmp_path / "limits.conf"
    path.write_text("[enforcement]\nenabled_filters = SpendFilter\nmax_spend = 100\n")
    yield from standalone(tmp_path, "--config-file", str(path))


def test_what_a_budget_grants_of_a_change_is_a_click(budgeted, page_of, complaints):
    complaints.expected.add("status of 403")
    published(budgeted, ADMIN, PRICES)
    now = datetime.now(UTC)
    first = datetime(now.year + now.month // 12, now.month % 12 + 1, 1, 8)
    booked(
        budgeted, ALICE, "course", start=f"{first:%Y-%m-%d %H:%M}", end=f"{first + timedelta(days=2):%Y-%m-%d %H:%M}"
    )
    page = page_of(f"{budgeted}leases", ALICE)
    page.get_by_role("link", name="course").click()
    page.get_by_role("button", name="Change", exact=True).click()
    dialog = page.get_by_role("dialog", name="Change course")
    dialog.get_by_label("At most", exact=True).fill("4")
    dialog.get_by_label("How many hosts, from … to …").fill("4")
    # 4 × 48 h × 0.80 EUR and the fee are too much for a month of 100 EUR.
    expect(dialog.get_by_text("Would be refused: the project would have to pay ")).to_be_visible()
    dialog.get_by_role("button", name="2 hosts (81.80 EUR in all)").click()
    expect(dialog.get_by_text("This fits.")).to_be_visible()
    expect(dialog.get_by_label("At most", exact=True)).to_have_value("2")
    assert serious(page) == []
    dialog.get_by_role("button", name="Change", exact=True).click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("region", name="What it costs")).to_contain_text("81.80 EUR in all")


def test_a_month_to_come_says_what_is_booked_against_its_budget(budgeted, page_of, complaints):
    complaints.expected.add("status of 403")
    published(budgeted, ADMIN, PRICES)
    now = datetime.now(UTC)
    first = datetime(now.year + now.month // 12, now.month % 12 + 1, 1, 8)
    booked(budgeted, ALICE, "course", start=f"{first:%Y-%m-%d %H:%M}", end=f"{first:%Y-%m-%d} 18:00")
    page = page_of(f"{budgeted}spending", ALICE)
    budget = page.get_by_role("region", name="Budget", exact=True)
    expect(budget).to_contain_text("100 EUR left of 100 EUR")
    page.get_by_label("Month").select_option(label=f"{first:%B %Y}")
    expect(budget).to_contain_text("87 EUR left of 100 EUR")
    expect(budget).to_contain_text("13 EUR booked")
    operator = page_of(f"{budgeted}spending?month={first:%Y-%m}", ADMIN)
    row = operator.get_by_role("region", name="Budgets by project").get_by_role("row", name=re.compile("^physics"))
    expect(row).to_contain_text(f"{first:%B %Y}")
    expect(row).to_contain_text("87 EUR")
    assert serious(page) == []
    # A change that fits may cost too much.
    page.goto(f"{budgeted}leases")
    page.get_by_role("link", name="course").click()
    page.get_by_role("button", name="Extend", exact=True).click()
    dialog = page.get_by_role("dialog", name="Extend course")
    dialog.get_by_role("button", name="+ 2 h").click()
    expect(dialog.get_by_text("This fits: 2 h longer.")).to_be_visible()
    expect(dialog.get_by_text("1.60 EUR more.")).to_be_visible()
    dialog.get_by_role("button", name="+ 1 week").click()
    expect(dialog.get_by_text("Would be refused: the project would have to pay 134.40 EUR more")).to_be_visible()
    expect(dialog.get_by_text("This fits")).to_have_count(0)
    # How long it may be is a click.
    dialog.get_by_role("button", name=re.compile("^Until ")).click()
    expect(dialog.get_by_text("This fits: ")).to_be_visible()
    expect(dialog.get_by_text("87.00 EUR more.")).to_be_visible()
    assert serious(page) == []
    # What would be too much is refused in the page's words and zone, whatever that is.
    far = page_of(
        f"{budgeted}?start={first:%Y-%m-%dT09:00:00Z}&end={first:%Y-%m}-20T09:00:00Z", ALICE, timezone_id="Asia/Tokyo"
    )
    refused = far.locator(".opening .refusal")
    expect(refused).to_contain_text(
        f"EUR for {first:%B %Y}, and of the 100.00 that the project has for a month 87.00 are left"
    )
    expect(refused).not_to_contain_text("max_spend")


def test_an_operator_sees_the_month_and_the_budgets_by_project(demo, page_of):
    page = page_of(f"{demo}spending", ADMIN)
    told = asked(demo, ADMIN, "GET", "v1/statements?all_projects=true")["statements"]
    # A month to come has statements, too, once something of it is paid: a fee, or a cancellation.
    month = max(one["month"] for one in told if one["month"] <= f"{datetime.now(UTC):%Y-%m}")
    table = page.get_by_role("table", name=re.compile("^Statements of"))
    expect(table.locator("tbody tr")).to_have_count(sum(one["month"] == month for one in told))
    expect(page.get_by_role("region", name="Budgets by project").locator("tbody tr")).not_to_have_count(0)
    # On the first day of a month not every project has one.
    table.get_by_role("link", name=next(one["project_id"] for one in told if one["month"] == month)).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Budget", exact=True)).to_be_visible()
    expect(page.get_by_role("region", name="Charges")).to_be_visible()
    page.get_by_role("link", name="All projects").click()
    expect(table).to_be_visible()


def test_the_budget_says_what_the_service_says_also_beside_the_usage(demo, page_of):
    budgets = asked(demo, ALICE, "GET", "v1/budgets")["budgets"]
    (hosts,) = [one for one in budgets if one["measure"] == "host"]
    page = page_of(f"{demo}usage", ALICE)
    card = page.get_by_role("region", name="Budget", exact=True)
    shown = card.get_by_role("listitem").filter(has_text="Host hours").locator("strong").inner_text()
    assert float(shown.split(" ")[0].replace(",", "")) == pytest.approx(float(hosts["left"]), abs=1)


@pytest.mark.parametrize("look", ["dark", "phone"])
@pytest.mark.parametrize(("who", "path"), [(ADMIN, "spending"), (ALICE, "spending"), (ADMIN, "prices")])
def test_everybody_can_read_it(demo, page_of, look, who, path):
    options: dict[str, Any] = {"color_scheme": "dark"} if look == "dark" else {}
    if look == "phone":
        options = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
    page = page_of(demo + path, who, **options)
    expect(page.locator("table").first).to_be_visible()
    expect(page.locator(".skeleton")).to_have_count(0)
    assert serious(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
