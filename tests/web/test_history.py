# SPDX-License-Identifier: Apache-2.0
"""What was done to anything, and by whom: operators see all of it, members their project, each object its own."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.web.conftest import ADMIN, ALICE, query_of, serious
from tests.web.service import asked

ONE_HOST = {"resource_type": "physical:host", "min": 1, "max": 1}


def disabled(pages: str, host: str, reason: str | None) -> None:
    body = {"disabled": None if reason is None else {"reason": reason}}
    asked(pages, ADMIN, "PUT", f"v1/resources/host/{host}", body)


def hosts(pages: str) -> list[dict[str, str]]:
    return list(asked(pages, ADMIN, "GET", "v1/resources/host?limit=5&fields=id,name")["resources"])


def tomorrow() -> dict[str, str]:
    begin = datetime.now(UTC) + timedelta(days=1)
    return {"start_date": f"{begin:%Y-%m-%dT%H:%M:00Z}", "end_date": f"{begin + timedelta(hours=2):%Y-%m-%dT%H:%M:00Z}"}


@pytest.mark.parametrize("look", [pytest.param("light", marks=pytest.mark.nightly), "dark", "phone"])
def test_an_operator_reads_who_did_what_and_filters_it(shared, page_of, look):
    host = hosts(shared)[0]
    disabled(shared, host["id"], "fan is broken")
    disabled(shared, host["id"], None)
    options: dict[str, object] = {"color_scheme": "dark"} if look == "dark" else {}
    if look == "phone":
        options = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
    page = page_of(shared + "history", ADMIN, **options)
    told = page.get_by_role("list", name="What was done").get_by_role("listitem")
    expect(told.nth(0)).to_contain_text(f"Enabled: host {host['name']} by you")
    expect(told.nth(1)).to_contain_text(f"Disabled: host {host['name']} by you")
    expect(told.nth(1)).to_contain_text("Why it is disabled: fan is broken")
    assert serious(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    if look == "phone":
        page.get_by_role("button", name="Filters").click()
    page.get_by_role("combobox", name="What", exact=True).select_option("resources")
    page.get_by_role("combobox", name="What was done", exact=True).select_option("Disabled")
    expect(told).not_to_have_count(0)
    expect(told.filter(has_text=re.compile("^(?!Disabled: )"))).to_have_count(0)
    assert query_of(page) == {"type": ["resource"], "verb": ["disabled"]}
    page.get_by_label("By the user (id)").fill("nobody")
    expect(page.get_by_text("The filters above leave nothing.")).to_be_visible()
    page.get_by_role("button", name="Show all").click()
    expect(told.nth(0)).to_contain_text("Enabled")
    told.nth(0).get_by_role("link", name=f"host {host['name']}").click()
    expect(page.get_by_role("heading", name=host["name"])).to_be_visible()
    page.get_by_text("What was done to it, and by whom").click()
    expect(page.get_by_role("list", name="What was done to it").get_by_role("listitem").nth(0)).to_contain_text(
        "Enabled"
    )
    assert serious(page) == []


def test_members_see_their_project_and_not_what_is_done_to_hosts(shared, page_of):
    disabled(shared, hosts(shared)[0]["id"], "fan")
    disabled(shared, hosts(shared)[0]["id"], None)
    body = {
        "name": "gan-training",
        **tomorrow(),
        "reservations": [ONE_HOST],
    }
    asked(shared, ALICE, "POST", "v1/leases", body)
    page = page_of(shared + "history", ALICE)
    told = page.get_by_role("list", name="What was done").get_by_role("listitem")
    expect(told.nth(0)).to_contain_text("Created: lease gan-training by you")
    expect(told.filter(has_text="host ").filter(has_text="abled")).to_have_count(0)
    # Anything, leases, series, feeds, subscriptions, charges, budgets, of which a share may be reached, and
    # preemptible servers, which get notice.
    choices = page.get_by_role("combobox", name="What", exact=True).get_by_role("option")
    expect(choices.filter(has_text="budgets")).to_have_count(1)
    expect(choices).to_have_count(8)
    expect(page.get_by_label("Project (id)")).to_have_count(0)
    host = hosts(shared)[0]["id"]
    page.goto(f"{shared}resource?kind=host&id={quote(host)}")
    expect(page.get_by_text("What was done to it, and by whom")).to_have_count(0)


def test_what_comes_meanwhile_and_earlier_ones_stand_in_one_list(shared, page_of):
    host = hosts(shared)[0]
    for number in range(35):
        disabled(shared, host["id"], f"reason {number}")
        disabled(shared, host["id"], None)
    page = page_of(f"{shared}resource?kind=host&id={quote(host['id'])}&history=1", ADMIN)
    told = page.get_by_role("list", name="What was done to it").get_by_role("listitem")
    expect(told).to_have_count(20)
    page.get_by_role("button", name="Show earlier ones").click()
    expect(told).to_have_count(40)
    page.get_by_role("button", name="Show earlier ones").click()
    expect(told.filter(has_text="reason 0").first).to_be_visible()
    disabled(shared, host["id"], "the latest")
    expect(told.nth(0)).to_contain_text("the latest")
    texts = told.all_inner_texts()
    reasons = [found[1] for text in texts if (found := re.search("is disabled: (reason \\d+|the latest)$", text, re.M))]
    assert reasons == ["the latest", *(f"reason {number}" for number in reversed(range(35)))]
    disabled(shared, host["id"], None)


def test_a_thousand_entries_are_the_most_and_the_page_says_how_to_see_others(shared, page_of):
    entry = {
        **{"at": "2030-05-01T08:00:00Z", "verb": "changed", "changes": [], "resources": [], "reason": None},
        **{"by": {"kind": "service", "user_id": None, "project_id": None}, "project_id": None, "request_id": None},
        **{"object": {"type": "resource", "id": "host/7", "name": "node-7", "revision": None}},
    }

    def answer(route) -> None:
        (limit,) = re.findall("limit=(\\d+)", route.request.url)
        last = int((re.findall("marker=(\\d+)", route.request.url) or ["300001"])[0])
        found = [{**entry, "id": str(n), "position": n} for n in range(last - 1, last - 1 - int(limit), -1)]
        route.fulfill(
            json={"history": found, "links": [{"rel": "next", "href": f"/v1/history?marker={found[-1]['id']}"}]}
        )

    page = page_of(shared + "overview", ADMIN)
    page.route("**/v1/history?*", answer)
    page.goto(shared + "history")
    told = page.get_by_role("list", name="What was done").get_by_role("listitem")
    for count in (50, 100, 200, 400, 800, 1000):
        expect(told).to_have_count(count)
        if count < 1000:
            page.get_by_role("button", name="Show earlier ones").click()
    expect(page.get_by_role("button", name="Show earlier ones")).to_have_count(0)
    expect(page.get_by_text("The latest 1000 are shown. Choose days for earlier ones.")).to_be_visible()
    assert serious(page) == []


def test_series_and_maintenance_windows_have_their_history(shared, page_of):
    window = {"name": "cables", "hosts": [hosts(shared)[0]["id"]], **tomorrow()}
    made = asked(shared, ADMIN, "POST", "v1/maintenances", window)["maintenance"]
    page = page_of(f"{shared}maintenance?id={made['id']}", ADMIN)
    page.get_by_text("What was done to it, and by whom").click()
    told = page.get_by_role("list", name="What was done to it").get_by_role("listitem")
    expect(told).to_have_count(1)
    expect(told).to_contain_text("Created by you")
    assert serious(page) == []
    asked(shared, ADMIN, "DELETE", f"v1/maintenances/{made['id']}")
    body = {
        **{
            "name": "courses",
            "start": f"{datetime.now(UTC) + timedelta(days=2):%Y-%m-%dT08:00}",
            "time_zone": "Europe/Berlin",
            "duration": "PT2H",
        },
        "rule": "FREQ=WEEKLY;COUNT=3",
        "reservations": [ONE_HOST],
    }
    series = asked(shared, ALICE, "POST", "v1/series", body)["series"]
    page.goto(f"{shared}series?id={series['id']}&history=1")
    expect(told.nth(-1)).to_contain_text("Created by alice")
    assert serious(page) == []
