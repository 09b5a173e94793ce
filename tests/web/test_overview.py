# SPDX-License-Identifier: Apache-2.0
"""The overview tells what is wrong and what comes, and each of its numbers leads to exactly what it counts."""

from __future__ import annotations

import re
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import ADMIN, serious, standalone
from tests.web.service import asked, booked

MORE_THAN_A_PAGE = 53
HOSTS = 103


def later(**by: float) -> str:
    return (datetime.now(UTC) + timedelta(**by)).strftime("%Y-%m-%d %H:%M:%S.000000")


def copied(connection: sqlite3.Connection, table: str, key: object, times: int, **columns: object) -> None:
    """Copy a row of a table, with other values in some columns; a function makes one for each copy."""
    # Without what the database derives.
    names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    columns_of = ",".join(f'"{name}"' for name in names)
    (row,) = connection.execute(f"SELECT {columns_of} FROM {table} WHERE id = ?", (key,)).fetchall()
    for number in range(times):
        made = {name: value(number) if callable(value) else value for name, value in columns.items()}
        values = [made.get(name, old) for name, old in zip(names, row, strict=True)]
        connection.execute(f"INSERT INTO {table} ({columns_of}) VALUES ({','.join('?' * len(values))})", values)


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a service with more than a page of every trouble; nothing of it is its manager's to do."""
    folder = tmp_path_factory.mktemp("troubled")
    (folder / "blazar.conf").write_text("[api]\nmax_page_size = 20\npage_size = 20\n", encoding="utf-8")
    for pages in standalone(folder, "--config-file", str(folder / "blazar.conf")):
        lease = booked(pages, "alice:physics:member", "one", start="2031-03-03T08:00:00Z", end="2031-03-04T08:00:00Z")
        hosts = asked(pages, ADMIN, "GET", "v1/resources/host")["resources"]
        for host in hosts[:2]:
            asked(pages, ADMIN, "PUT", f"v1/resources/host/{host['id']}", {"disabled": {"reason": "no disks"}})
        closed(pages, hosts[2]["id"])
        with closing(sqlite3.connect(folder / "data" / "blazar.sqlite", timeout=30)) as connection, connection:
            troubles(connection, str(lease["id"]))
        yield pages


def closed(pages: str, host: str) -> None:
    """Open a maintenance window of a host that begins at once; what it does to leases is that of fixed dates."""
    begin = (datetime.now(UTC) + timedelta(seconds=10)).strftime("%Y-%m-%dT%H:%M:%SZ")
    window = {"name": "disks", "start_date": begin, "end_date": "+P2D", "hosts": [host]}
    impact = asked(pages, ADMIN, "POST", "v1/maintenances?dry_run=true", window)["impact"]["id"]
    asked(pages, ADMIN, "POST", "v1/maintenances", {**window, "impact_id": impact})


def troubles(connection: sqlite3.Connection, lease: str) -> None:
    """Write leases and hosts of every trouble, without events that a manager would work on."""
    day = {"starts_at": later(days=2), "ends_at": later(days=20)}
    gone = {"starts_at": later(days=-2), "ends_at": later(days=20)}
    kinds: dict[str, dict[str, object]] = {
        "failed": {**day, "status": "ERROR"},
        "late to start": {**gone, "status": "PENDING"},
        "late to end": {**gone, "ends_at": later(hours=-1), "status": "ACTIVE"},
        "degraded": {**gone, "status": "ACTIVE", "degraded": 1},
        "starting": {**day, "status": "PENDING"},
        "ending": {**gone, "ends_at": later(days=3), "status": "ACTIVE"},
        "released": {**gone, "status": "ACTIVE", "usage": "unused", "release_at": later(hours=9)},
    }
    for name, columns in kinds.items():
        ids = {"id": lambda _: str(uuid.uuid4()), "name": lambda number, name=name: f"{name} {number}"}
        copied(connection, "leases", lease, MORE_THAN_A_PAGE, **ids, **columns)
    (host,) = connection.execute("SELECT MAX(id) FROM resources WHERE kind = 'host'").fetchone()
    copied(
        connection,
        "resources",
        host,
        HOSTS,
        id=lambda number: 1000 + number,
        external_id=lambda number: f"9{number:03}",
        name=lambda number: f"gone-{number:03}",
        label=lambda number: f"h-gone{number:03}",
        failed_since=later(hours=-1),
        failure="it is gone",
        reservable=0,
    )
    connection.execute("UPDATE inventory_versions SET version = version + 1 WHERE kind = 'host'")


def rows_of(page: Page) -> int:
    """Show all of a list; return its number of rows."""
    rows = page.locator("main tbody tr")
    expect(rows.first).to_be_visible()
    foot = page.locator(".list-foot")
    while page.get_by_role("button", name="Show more").count():
        before = rows.count()
        page.get_by_role("button", name="Show more").click()
        expect(rows.nth(before)).to_be_visible()
    expect(foot.get_by_role("status")).to_have_text(f"{rows.count()} in all")
    return rows.count()


def test_each_number_leads_to_the_list_that_it_counts(troubled, page_of):
    page = page_of(troubled + "overview", ADMIN)
    numbers = page.locator(".attention-count a, .tile-count")
    expect(numbers).to_have_count(10)
    assert serious(page) == []
    found = {}
    for place in range(10):
        expect(numbers).to_have_count(10)
        link = numbers.nth(place)
        text = link.inner_text()
        count = int(re.findall(r"\d+", text)[0])
        link.click()
        found[f"{place} {text}"] = (count, rows_of(page))
        page.go_back()
    assert all(count == rows for count, rows in found.values()), found
    many = [count for count, _ in found.values() if count >= MORE_THAN_A_PAGE]
    # All but the hosts that are disabled and in maintenance.
    assert len(many) == 8, found


def test_what_runs_now_comes_first_and_lists_are_sorted_by_the_address(troubled, page_of):
    page = page_of(troubled + "all-leases", ADMIN)
    first = page.locator("main tbody tr").first
    expect(first).to_contain_text(re.compile("active|starting|ending"))
    page.get_by_role("combobox", name="Sort by").select_option("when it was booked")
    page.wait_for_url(re.compile("sort=created_at"))
    page.get_by_role("combobox", name="Time", exact=True).select_option("late: should have ended")
    page.wait_for_url(re.compile("when=late-end"))
    expect(first).to_contain_text("late to end")
    page.get_by_text("What these words mean").click()
    expect(page.get_by_text("at once, or not at all")).to_be_visible()
    assert serious(page) == []
    page.get_by_role("combobox", name="Time", exact=True).select_option("between two days")
    page.get_by_label("from", exact=True).fill("2031-03-01")
    expect(page.locator("main tbody tr")).to_have_count(1)
    expect(first).to_contain_text("one")


def test_how_full_the_next_month_is_can_be_seen(troubled, page_of):
    page = page_of(troubled + "overview", ADMIN)
    chart = page.locator(".chart")
    expect(chart).to_be_visible()
    page.get_by_role("button", name="The next month").click()
    page.wait_for_url(re.compile("ahead=1"))
    expect(page.get_by_role("button", name="Today")).to_be_visible()
    expect(chart).to_be_visible()
    assert serious(page) == []


def test_what_the_filters_leave_is_saved_for_spreadsheets(troubled, page_of):
    page = page_of(troubled + "all-leases?states=failed", ADMIN)
    expect(page.locator("main tbody tr").first).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as CSV").click()
    head, *rows = saved.value.path().read_text(encoding="utf-8").splitlines()
    assert head.startswith("id,name,project")
    assert len(rows) == MORE_THAN_A_PAGE
    assert all("failed" in row for row in rows)
