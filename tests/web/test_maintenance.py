# SPDX-License-Identifier: Apache-2.0
"""Maintenance windows: operators see what one would do before they open it; owners read what it means for them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import ADMIN, ALICE, query_of, serious
from tests.web.service import asked
from tests.web.test_kinds import hosts_of, leased, page_of_lease, whole

START = (datetime.now(UTC) + timedelta(days=3)).replace(minute=0, second=0, microsecond=0)
END = START + timedelta(hours=4)


def hosts(pages: str) -> list[dict[str, object]]:
    return list(asked(pages, ADMIN, "GET", "v1/resources/host")["resources"])


def windows(pages: str) -> list[dict[str, object]]:
    """Return the windows that are not over."""
    open_ones = "in:PLANNED,STARTING,ACTIVE,ENDING"
    found = asked(pages, ADMIN, "GET", f"v1/maintenances?status={open_ones}")["maintenances"]
    return [dict(asked(pages, ADMIN, "GET", f"v1/maintenances/{one['id']}")["maintenance"]) for one in found]


def opened(pages: str, name: str, ids: list[object], start: str = whole(START), end: str = whole(END)) -> str:
    """Open a window; return the address of its page."""
    body = {"name": name, "start_date": start, "end_date": end, "hosts": ids}
    made = asked(pages, ADMIN, "POST", "v1/maintenances", body)["maintenance"]
    return f"{pages}maintenance?id={made['id']}"


def on(pages: str, lease: dict[str, object]) -> list[str]:
    """Return the ids of the hosts of a lease, as operators see them."""
    shown = asked(pages, ADMIN, "GET", f"v1/leases/{lease['id']}")["lease"]
    return [one["resource"]["id"] for one in shown["reservations"][0]["allocations"]]


def planning(page_of, pages: str, ids: list[str], **options: object) -> Page:
    query = f"do=plan&hosts={','.join(ids)}&start={whole(START)}&end={whole(END)}"
    return page_of(f"{pages}maintenance?{query}", ADMIN, timezone_id="UTC", **options)


def test_what_a_window_would_do_is_seen_before_it_is_opened(shared, page_of):
    lease = leased(shared, ALICE, "gan-training", start_date=whole(START), end_date=whole(END))
    (host,) = on(shared, lease)
    page = planning(page_of, shared, [host])
    impact = page.get_by_role("region", name="What it would do")
    expect(impact.get_by_role("status")).to_have_text(
        "1 host. 1 lease is affected: 1 gets other hosts at the same time."
    )
    expect(impact.get_by_role("row", name=re.compile("gan-training"))).to_contain_text("→")
    assert serious(page) == []
    assert windows(shared) == []
    said = re.compile("^The maintenance books the hosts out: .* leases get what is shown above, .* cancel it.$")
    expect(page.get_by_role("button", name="Book the maintenance")).to_have_accessible_description(said)
    page.get_by_role("button", name="Book the maintenance").click()
    # Without a name nothing is sent.
    expect(page.get_by_label("Name", exact=True)).to_have_attribute("aria-invalid", "true")
    page.get_by_label("Name", exact=True).fill("firmware")
    page.get_by_label("Reason").fill("new firmware of the power supplies")
    page.get_by_role("button", name="Book the maintenance").click()
    expect(page.get_by_role("heading", name="firmware", exact=True)).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("gan-training"))).to_be_visible()
    assert serious(page) == []
    page.get_by_role("link", name="Maintenance").click()
    row = page.get_by_role("row", name=re.compile("firmware"))
    expect(row).to_contain_text("planned")
    expect(row).to_contain_text("new firmware of the power supplies")
    assert serious(page) == []
    row.get_by_role("link").click()
    expect(page.get_by_role("row", name=re.compile("gan-training"))).to_contain_text("Moved.")
    assert on(shared, lease) != [host]


def test_a_window_is_not_opened_if_leases_have_changed_since_its_impact_was_shown(shared, page_of, complaints):
    complaints.expected.add("status of 409")
    count = hosts_of(shared)
    page = planning(page_of, shared, [str(one["id"]) for one in hosts(shared)])
    status = page.get_by_role("region", name="What it would do").get_by_role("status")
    expect(status).to_have_text(f"{count} hosts. No lease is affected.")
    leased(shared, ALICE, "meanwhile", start_date=whole(START), end_date=whole(END))
    page.get_by_label("Name", exact=True).fill("all of it")
    page.get_by_role("button", name="Book the maintenance").click()
    expect(page.get_by_role("alert")).to_contain_text("Leases have changed meanwhile")
    expect(status).to_have_text(f"{count} hosts. 1 lease is affected: 1 needs another time.")
    assert windows(shared) == []
    page.get_by_role("button", name="Book the maintenance").click()
    expect(page.get_by_role("row", name=re.compile("meanwhile"))).to_contain_text("needs another time")


def test_hosts_are_chosen_by_a_property_or_found_by_name(shared, page_of):
    name = str(hosts(shared)[0]["name"])
    page = planning(page_of, shared, [])
    expect(page.get_by_text("Choose hosts to see which leases are affected.")).to_be_visible()
    page.get_by_label("Search").fill(name)
    page.get_by_role("checkbox", name=name, exact=True).check()
    status = page.get_by_role("region", name="What it would do").get_by_role("status")
    expect(status).to_have_text("1 host. No lease is affected.")
    page.get_by_role("button", name="by a property").click()
    page.get_by_label("Add a property").select_option("vcpus")
    expect(status).to_have_text(re.compile(r"^\d+ hosts?\. No lease is affected\.$"))
    page.get_by_label("Until", exact=True).fill(f"{START - timedelta(hours=1):%Y-%m-%dT%H:%M}")
    expect(page.get_by_text("It ends before it starts.")).to_be_visible()
    expect(page.get_by_role("button", name="Book the maintenance")).to_be_disabled()


def test_a_window_is_changed_with_its_impact_shown_and_cancelled(shared, page_of):
    lease = leased(shared, ALICE, "later", start_date=whole(END), end_date=whole(END + timedelta(hours=2)))
    page = page_of(opened(shared, "disks", on(shared, lease)), ADMIN, timezone_id="UTC")
    expect(page.get_by_text("No lease is affected.")).to_be_visible()
    page.get_by_role("button", name="Change").click()
    dialog = page.get_by_role("dialog", name="Change disks")
    dialog.get_by_label("Until", exact=True).fill(f"{END + timedelta(hours=1):%Y-%m-%dT%H:%M}")
    expect(dialog.get_by_role("status")).to_have_text("1 lease is affected: 1 gets other hosts at the same time.")
    assert serious(page) == []
    dialog.get_by_role("button", name="Change").click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("row", name=re.compile("later"))).to_be_visible()
    assert windows(shared)[0]["end_date"] == whole(END + timedelta(hours=1))
    page.get_by_role("button", name="Cancel the maintenance").click()
    dialog = page.get_by_role("dialog", name="Cancel the maintenance: disks")
    expect(dialog).to_contain_text("1 host can be reserved again")
    assert serious(page) == []
    dialog.get_by_role("button", name="Cancel the maintenance").click()
    expect(page.locator(".lease-title .state-word")).to_have_text("cancelled")
    expect(page.get_by_role("button", name="Change")).to_have_count(0)


def test_the_owner_of_a_lease_of_years_reads_of_a_window_on_its_hosts(shared, page_of):
    lease = leased(shared, ALICE, "for years", end_date="2041-01-01T00:00:00Z")
    opened(shared, "firmware", on(shared, lease))
    page = page_of(page_of_lease(shared, lease), ALICE)
    expect(page.locator(".conditions")).to_contain_text("in maintenance")


def test_a_window_that_has_begun_is_ended_and_its_owners_read_of_it(shared, page_of):
    lease = leased(shared, ALICE, "running")
    address = opened(shared, "at once", on(shared, lease), start="now")
    owner = page_of(page_of_lease(shared, lease), ALICE, timezone_id="UTC")
    expect(
        owner.get_by_text(re.compile(r"is in maintenance until .* what runs there may be interrupted"))
    ).to_be_visible()
    assert serious(owner) == []
    page = page_of(address, ADMIN, timezone_id="UTC")
    state = page.locator(".lease-title .state-word")
    expect(state).to_have_text("in maintenance", timeout=60_000)
    expect(page.get_by_role("row", name=re.compile("running"))).to_contain_text("has started")
    page.get_by_role("button", name="End now").click()
    dialog = page.get_by_role("dialog", name="End the maintenance: at once")
    assert serious(page) == []
    dialog.get_by_role("button", name="End the maintenance").click()
    expect(state).to_have_text("over", timeout=60_000)
    page.get_by_role("link", name="Maintenance").click()
    expect(page.get_by_role("heading", name="No maintenance is planned")).to_be_visible()
    page.get_by_role("button", name="past ones, too").click()
    expect(page.get_by_role("row", name=re.compile("at once"))).to_contain_text("over")
    assert query_of(page) == {"past": ["1"]}


def test_hosts_lead_to_the_plan_and_the_calendar_shows_windows(small, page_of):
    host = hosts(small)[0]
    name = str(host["name"])
    page = page_of(f"{small}hosts", ADMIN)
    page.get_by_role("button", name=f"More for {name}", exact=True).click()
    page.get_by_role("button", name="Plan maintenance").click()
    expect(page.get_by_role("checkbox", name=name, exact=True)).to_be_checked()
    opened(small, "fans", [host["id"]])
    page.goto(f"{small}calendar")
    expect(page.get_by_role("gridcell", name=re.compile("^Maintenance, "))).to_have_count(1)


def test_users_have_no_pages_of_maintenance(shared, page_of):
    page = page_of(shared, ALICE)
    expect(page.get_by_role("link", name="Series")).to_be_visible()
    expect(page.get_by_role("link", name="Maintenance")).to_have_count(0)


@pytest.mark.parametrize("look", ["dark", "phone"])
def test_pages_of_maintenance_are_accessible(shared, page_of, look):
    options = {"color_scheme": "dark"} if look == "dark" else {"viewport": {"width": 390, "height": 844}}
    lease = leased(shared, ALICE, "gan-training", start_date=whole(START), end_date=whole(END))
    page = planning(page_of, shared, on(shared, lease), **options)
    expect(page.get_by_role("row", name=re.compile("gan-training"))).to_be_visible()
    assert serious(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    page.goto(opened(shared, "fans", on(shared, lease)))
    expect(page.get_by_role("row", name=re.compile("gan-training"))).to_be_visible()
    assert serious(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
