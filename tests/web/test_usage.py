# SPDX-License-Identifier: Apache-2.0
"""The page of usage: the figures are those of the service, for members of their project, for operators of all."""

from __future__ import annotations

import csv
import io
import re
import time
import urllib.error
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import ADMIN, ALICE, query_of, serious
from tests.web.service import PATIENCE, asked, booked

HOUR = 3600
LAST_MONTH = "usage?period=last-month"


def report_of(pages: str, who: str, query: str) -> list[dict[str, Any]]:
    """Return the rows of a report of last month, which is that of the browser's zone."""
    first = datetime.now(ZoneInfo("Europe/Berlin")).replace(day=1)
    before = (first.year, first.month - 1) if first.month > 1 else (first.year - 1, 12)
    period = f"from={before[0]}-{before[1]:02}-01&to={first.year}-{first.month:02}-01"
    return list(asked(pages, who, "GET", f"v1/reports/usage?{period}&{query}")["report"]["rows"])


def cells_of(page: Page, title: str) -> dict[str, list[str]]:
    """Return the rows of a table by their heads."""
    table = page.get_by_role("table", name=title)
    expect(table).to_be_visible()
    rows = [row.locator("th, td").all_inner_texts() for row in table.locator("tbody tr, tfoot tr").all()]
    return {cells[0].strip(): cells[1:] for cells in rows}


def hours_of(text: str) -> float:
    return float(text.replace(",", "").replace("< ", ""))


def test_an_operator_sees_what_each_project_had_as_the_service_tells_it(demo, page_of):
    page = page_of(demo + LAST_MONTH, ADMIN)
    told = {
        row["project_id"]: row["reserved"] / HOUR
        for row in report_of(demo, ADMIN, "group_by=project,resource_type")
        if row["resource_type"] == "physical:host"
    }
    assert len(told) > 2
    shown = cells_of(page, "Figures by project")
    total = shown.pop("Sum")
    assert shown.keys() == told.keys()
    for project, cells in shown.items():
        assert hours_of(cells[0]) == pytest.approx(told[project], abs=0.51), project
    assert hours_of(total[0]) == pytest.approx(sum(told.values()), abs=0.51)
    weeks = cells_of(page, "Figures by week")
    assert weeks.pop("Sum")[0] == total[0]
    assert sum(hours_of(cells[0]) for cells in weeks.values()) == pytest.approx(sum(told.values()), abs=3)
    # Every part of the month is there, also one in which there was nothing.
    assert len(weeks) in (4, 5, 6)
    expect(page.locator(".usage-chart rect[class=chart-reserved], .usage-chart rect.chart-used")).not_to_have_count(0)
    expect(page.get_by_role("img", name=re.compile("host hours reserved"))).to_be_visible()


def test_a_member_sees_the_own_project_and_others_in_it_are_not_named(demo, page_of):
    page = page_of(demo + LAST_MONTH, ALICE)
    expect(page.get_by_text("The project physics: what was reserved")).to_be_visible()
    rows = report_of(demo, ALICE, "group_by=resource_type")
    (hosts,) = [row["reserved"] / HOUR for row in rows if row["resource_type"] == "physical:host"]
    shown = cells_of(page, "Figures by user")
    assert hours_of(shown["Sum"][0]) == pytest.approx(hosts, abs=0.51)
    assert shown.keys() <= {"alice (you)", "others in the project", "Sum"}
    options = page.get_by_role("combobox", name="By", exact=True).locator("option").all_inner_texts()
    assert "project" not in options


def test_what_is_chosen_is_in_the_address_and_survives_a_reload(demo, page_of):
    page = page_of(demo + LAST_MONTH, ADMIN)
    page.get_by_role("group", name="Bars by").get_by_role("button", name="Day").click()
    page.wait_for_url(re.compile("step=day"))
    assert len(cells_of(page, "Figures by day")) in (29, 30, 31, 32)
    page.get_by_role("combobox", name="By", exact=True).select_option("kind of lease")
    page.wait_for_url(re.compile("by=lease_kind"))
    expect(page.get_by_role("heading", name="By kind of lease")).to_be_visible()
    page.get_by_role("button", name="Quarter").click()
    page.wait_for_url(re.compile("period=quarter"))
    page.get_by_role("group", name="Bars by").get_by_role("button", name="Month").click()
    expect(page.get_by_role("table", name="Figures by month")).to_be_visible()
    page.get_by_role("button", name="Other days").click()
    page.get_by_label("until the end of").fill("2020-01-05")
    page.get_by_label("from", exact=True).fill("2020-01-01")
    expect(page.get_by_role("heading", name="Nothing was reserved in 1 Jan – 5 Jan 2020")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="Nothing was reserved in 1 Jan – 5 Jan 2020")).to_be_visible()
    found = query_of(page)
    assert (found["from"], found["to"], found["step"]) == (["2020-01-01"], ["2020-01-05"], ["month"])
    page.get_by_label("from", exact=True).fill("2015-01-01")
    expect(page.get_by_role("heading", name="This is too long")).to_be_visible()


def test_the_figures_are_saved_as_the_service_writes_them(demo, page_of):
    page = page_of(demo + LAST_MONTH, ADMIN)
    expect(page.get_by_role("table", name="Figures by project")).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as CSV").click()
    text = saved.value.path().read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert re.fullmatch(r"usage-\d{4}-\d\d-01-\d{4}-\d\d-\d\d\.csv", saved.value.suggested_filename)
    told = report_of(demo, ADMIN, "group_by=project,resource_type&step=week")
    assert sum(int(row["reserved_seconds"]) for row in rows) == sum(row["reserved"] for row in told)
    assert len(rows) == len(told)


@pytest.mark.parametrize("look", [pytest.param("light", marks=pytest.mark.nightly), "dark", "phone"])
@pytest.mark.parametrize("who", [ADMIN, ALICE])
def test_everybody_can_read_it(demo, page_of, look, who):
    options: dict[str, Any] = {"color_scheme": "dark"} if look == "dark" else {}
    if look == "phone":
        options = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
    page = page_of(demo + LAST_MONTH + "&step=day", who, **options)
    expect(page.locator(".figures").first).to_be_visible()
    expect(page.locator(".skeleton")).to_have_count(0)
    assert serious(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    # Letters of the chart are as large on a phone as anywhere.
    letters = page.locator(".usage-chart text").first
    assert letters.bounding_box()["height"] >= 11


def test_on_a_phone_each_figure_says_what_it_is(demo, page_of):
    page = page_of(demo + LAST_MONTH, ADMIN, viewport={"width": 320, "height": 700})
    cell = page.locator(".figures tbody td").first
    expect(cell).to_be_visible()
    assert cell.evaluate("cell => getComputedStyle(cell, '::before').content") == '"Reserved "'
    scrolls = "all => all.filter((one) => one.scrollWidth > one.clientWidth + 1).length"
    assert page.locator(".table-scroll").evaluate_all(scrolls) == 0


def test_on_a_phone_the_days_of_a_month_are_folded_to_the_last_week(demo, page_of):
    page = page_of(demo + LAST_MONTH + "&step=day", ADMIN, viewport={"width": 390, "height": 844})
    rows = page.get_by_role("table", name="Figures by day").locator("tbody tr")
    expect(rows.first).to_be_attached()
    shown = "all => all.filter((one) => one.offsetParent !== null).length"
    assert (rows.evaluate_all(shown), rows.count() > 27) == (7, True)
    assert serious(page) == []
    page.get_by_role("button", name=re.compile("^Show all")).click()
    expect(page.get_by_role("button", name=re.compile("^Show all"))).to_have_count(0)
    assert rows.evaluate_all(shown) == rows.count()
    page.set_viewport_size({"width": 1280, "height": 900})
    page.reload()
    expect(rows.first).to_be_visible()
    assert rows.evaluate_all(shown) == rows.count()


def test_who_has_reserved_nothing_is_told_so_and_what_runs_counts(shared, page_of):
    page = page_of(shared + "usage", ALICE)
    expect(page.get_by_role("heading", name=re.compile("^Nothing was reserved in"))).to_be_visible()
    assert serious(page) == []
    booked(shared, "alice:physics:member", "one")
    until = datetime.now(UTC).timestamp() + 60
    while not asked(shared, ALICE, "GET", "v1/reports/usage?step=all")["report"]["rows"]:
        assert datetime.now(UTC).timestamp() < until
        page.wait_for_timeout(500)
    page.reload()
    expect(page.get_by_text(re.compile("host hours? reserved"))).to_be_visible()
    assert cells_of(page, "Figures by user").keys() == {"alice (you)", "Sum"}


def test_what_was_not_had_and_what_is_to_come_stand_apart(demo, page_of):
    page = page_of(demo + "usage", ADMIN)
    unmet = page.get_by_role("region", name="Asked for and not had")
    expect(unmet.locator("p").first).to_be_visible()
    coming = page.get_by_role("region", name="To come: all hosts")
    expect(coming.get_by_text(re.compile("In the next 28 days \\d+ % is promised"))).to_be_visible()
    hosts = asked(demo, ADMIN, "GET", "v1/reports/forecast?days=28")["forecast"]["rows"]
    told = [row for row in hosts if row["kind"] == "host"]
    coming.get_by_text("The figures").click()
    rows = coming.get_by_role("table").locator("tbody tr")
    expect(rows).to_have_count(28)
    first = rows.first.locator("td").all_inner_texts()
    assert hours_of(first[0]) == pytest.approx(told[0]["registered"] / HOUR, abs=0.51)
    assert hours_of(first[1]) == pytest.approx(told[0]["promised"] / HOUR, abs=1.01)
    assert serious(page) == []


def test_what_is_refused_is_told_also_where_nothing_was_reserved(shared, page_of):
    with pytest.raises(urllib.error.HTTPError, match="409"):
        booked(shared, ALICE, "too many", min=1000, max=1000)
    until = time.monotonic() + 3 * PATIENCE
    while not asked(shared, ALICE, "GET", "v1/reports/demand")["report"]["rows"]:
        assert time.monotonic() < until
        time.sleep(1)
    page = page_of(shared + "usage", ALICE)
    unmet = page.get_by_role("region", name="Asked for and not had")
    expect(unmet.get_by_text(re.compile("1 request refused: .* host hours were not had"))).to_be_visible()
    expect(unmet.get_by_text("not enough was free: 1 request")).to_be_visible()
    expect(page.get_by_role("region", name="To come")).to_have_count(0)
    assert serious(page) == []
