# SPDX-License-Identifier: Apache-2.0
"""The calendar by mouse, by keyboard and by screen reader, also with 1 000 hosts."""

from __future__ import annotations

import json
import os
import re
import time
import urllib.parse
import urllib.request
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Page, Route, expect

from tests.web.conftest import ADMIN, ALICE, CROWD, drawn, serious, sign_in
from tests.web.service import VERSION, asked

HEADERS = {"Content-Type": "application/json", "X-Auth-Token": ALICE, "OpenStack-API-Version": VERSION}


def send(address: str, method: str, path: str, body: object = None) -> dict:
    """Send a request to the service whose pages are at an address."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address.removesuffix("ui/") + path, data, HEADERS, method=method)
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def book(address: str, start: str, end: str, name: str = "mine") -> dict:
    """Book a host from now, or from a number of hours from now."""
    if start != "now":
        start = (datetime.now(UTC) + timedelta(hours=int(start))).strftime("%Y-%m-%dT%H:%M:%SZ")
    reservation = {"resource_type": "physical:host", "min": 1}
    body = {"name": name, "start_date": start, "end_date": end, "reservations": [reservation]}
    return send(address, "POST", "v1/leases", body)["lease"]


def free_line(page: Page) -> dict:
    """Return the box of the first row that has no block."""
    drawn(page)
    box = page.locator(".line:not(.line-group)").filter(has_not=page.locator(".block")).first.bounding_box()
    assert box is not None
    return box


def test_dragging_over_free_time_leads_to_booking_it(shared, page_of):
    page = page_of(shared + "calendar", ALICE)
    box = free_line(page)
    page.mouse.move(700, box["y"] + 15)
    page.mouse.down()
    page.mouse.move(760, box["y"] + 15, steps=4)
    page.mouse.move(900, box["y"] + 45, steps=4)
    expect(page.locator(".grid-preview")).to_contain_text("2 rows")
    page.mouse.up()
    dialog = page.get_by_role("dialog", name=re.compile("^Book "))
    expect(dialog).to_be_visible()
    expect(dialog.get_by_label("How many")).to_have_value("2")
    assert serious(page) == []
    dialog.get_by_role("button", name="Book 2 hosts like these").click()
    page.wait_for_url(re.compile(r"\?.*book=1"))
    assert "min=2" in page.url


def test_the_end_of_an_own_lease_is_dragged(shared, page_of):
    lease = book(shared, "2", "+P1D")
    page = page_of(shared + "calendar", ALICE)
    box = drawn(page).locator(".block-own").bounding_box()
    assert box is not None
    right = box["x"] + box["width"] - 3
    page.mouse.move(right, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(right + 80, box["y"] + 10, steps=5)
    page.mouse.up()
    dialog = page.get_by_role("dialog", name="Extend")
    expect(dialog.get_by_text("This fits: ")).to_be_visible()
    dialog.get_by_role("button", name="Extend").click()
    expect(dialog).to_have_count(0)
    after = send(shared, "GET", f"v1/leases/{lease['id']}")["lease"]
    assert after["end_date"] > lease["end_date"]


def dragged(page: Page, x: float, y: float, by: int, *, drop: bool = True) -> None:
    """Drag from a point to the right."""
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + by, y, steps=5)
    if drop:
        page.mouse.up()


def test_a_lease_and_its_start_are_dragged_before_it_begins(shared, page_of):
    lease = book(shared, "24", "+P1D")
    page = page_of(shared + "calendar", ALICE)
    box = drawn(page).locator(".block-own").bounding_box()
    assert box is not None
    middle = box["x"] + box["width"] / 2
    dragged(page, middle, box["y"] + 12, 70, drop=False)
    expect(page.locator(".grid-preview")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".grid-preview")).to_have_count(0)
    page.mouse.up()
    expect(page.get_by_role("dialog")).to_have_count(0)
    dragged(page, middle, box["y"] + 12, 70)
    dialog = page.get_by_role("dialog", name="Change mine")
    expect(dialog.get_by_text("This fits")).to_be_visible()
    with page.expect_response(re.compile(r"/v1/capacity\?"), timeout=10_000):
        dialog.get_by_role("button", name="Change").click()
    expect(dialog).to_have_count(0)
    moved = send(shared, "GET", f"v1/leases/{lease['id']}")["lease"]
    assert moved["start_date"] > lease["start_date"]
    assert length_of(moved) == length_of(lease)
    box = drawn(page).locator(".block-own").bounding_box()
    assert box is not None
    dragged(page, box["x"] + 3, box["y"] + 12, -40)
    dialog = page.get_by_role("dialog", name="Change mine")
    expect(dialog.get_by_text("This fits")).to_be_visible()
    dialog.get_by_role("button", name="Change").click()
    expect(dialog).to_have_count(0)
    longer = send(shared, "GET", f"v1/leases/{lease['id']}")["lease"]
    assert longer["end_date"] == moved["end_date"]
    assert length_of(longer) > length_of(moved)


def length_of(lease: dict) -> timedelta:
    return datetime.fromisoformat(lease["end_date"]) - datetime.fromisoformat(lease["start_date"])


def test_a_lease_in_use_says_why_it_is_not_moved_and_a_click_still_opens_it(small, page_of):
    book(small, "now", "+P2D")
    page = page_of(small + "calendar", ALICE)
    box = drawn(page).locator(".block-own").bounding_box()
    assert box is not None
    dragged(page, box["x"] + box["width"] / 2, box["y"] + 12, 60)
    expect(page.get_by_text("only its end can be moved").first).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 12)
    expect(page.get_by_role("dialog", name="mine")).to_be_visible()


def test_a_lease_is_moved_and_rows_are_marked_by_keyboard(shared, page_of):
    book(shared, "24", "+P1D")
    page = page_of(shared + "calendar?by=none", ALICE)
    drawn(page).locator(".block-own").focus()
    page.keyboard.press("m")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".grid-preview")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Change mine")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    # The lease may be on any host; below the first one are others.
    for _ in asked(shared, ADMIN, "GET", "v1/resources/host")["resources"]:
        page.keyboard.press("ArrowUp")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Shift+ArrowUp")
    expect(page.locator(".grid-preview")).to_contain_text("2 rows")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Book 2 hosts like these")
    expect(dialog.get_by_label("How many")).to_have_value("2")


def test_the_card_of_a_lease_that_was_moved_tells_its_new_dates(shared, page_of):
    lease = book(shared, "24", "+P1D")
    page = page_of(shared + "calendar?by=none", ALICE, timezone_id="UTC")
    drawn(page).locator(".block-own").focus()
    card = page.locator(".grid-card")
    before = card.inner_text()
    page.keyboard.press("m")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Change mine")
    expect(dialog.get_by_text("This fits")).to_be_visible()
    dialog.get_by_role("button", name="Change", exact=True).click()
    expect(dialog).to_have_count(0)
    # The focus is back on the block, whose card is shown again.
    expect(card).not_to_have_text(before, use_inner_text=True)
    moved = send(shared, "GET", f"v1/leases/{lease['id']}")["lease"]
    start = datetime.fromisoformat(moved["start_date"])
    expect(card).to_contain_text(f"{start:%H:%M}")


def test_n_books_with_the_focus_in_the_grid_too(shared, page_of):
    page = page_of(shared + "calendar?by=none", ALICE)
    drawn(page).locator(".line-name").first.focus()
    page.keyboard.press("ArrowRight")
    # The grid's own keys stay its own.
    page.keyboard.press("ArrowRight")
    assert "/calendar" in page.url
    page.keyboard.press("n")
    expect(page.get_by_role("heading", name="Find a time")).to_be_visible()


def test_a_gap_that_goes_on_has_no_end_that_is_made_up(shared, page_of):
    page = page_of(shared + "calendar?by=none", ALICE)
    drawn(page).locator(".line-name").first.focus()
    page.keyboard.press("End")
    card = page.locator(".grid-card")
    expect(card).to_contain_text("Free")
    expect(card).to_contain_text(re.compile(r"from \w{3} \d+ \w{3} [\d:]+ on|all the time shown"))
    expect(card).to_contain_text("at least")


def test_a_finger_moves_a_lease_and_reads_where_to(shared, page_of):
    lease = book(shared, "24", "+P1D")
    options = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    page = page_of(shared + "calendar?by=none", ALICE, **options)
    box = drawn(page).locator(".block-own").bounding_box()
    assert box is not None
    finger = page.context.new_cdp_session(page)

    def touch(kind: str, *points: dict[str, float]) -> None:
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": list(points)})

    x, y = box["x"] + box["width"] / 2, box["y"] + 12
    touch("touchStart", {"x": x, "y": y})
    # It is held for a moment: a finger that moves at once looks around.
    page.wait_for_timeout(700)
    for step in range(1, 9):
        touch("touchMove", {"x": x + 5 * step, "y": y})
    text = page.locator(".grid-preview-text").bounding_box()
    assert text is not None
    assert text["height"] < 50, "two lines at most"
    assert text["x"] >= 0
    assert text["x"] + text["width"] <= 390
    touch("touchEnd")
    dialog = page.get_by_role("dialog", name="Change mine")
    dialog.get_by_role("button", name="Change").click()
    expect(dialog).to_have_count(0)
    moved = send(shared, "GET", f"v1/leases/{lease['id']}")["lease"]
    assert moved["start_date"] > lease["start_date"]


def test_only_what_is_free_in_the_marked_time_is_shown(small, page_of):
    book(small, "now", "+P1D")
    page = page_of(small + "calendar?by=none", ALICE)
    rows = page.locator(".line:not(.line-group)")
    expect(drawn(page).locator(".block-own")).to_have_count(1)
    hosts = rows.count()
    start = page.locator(".grid-now").bounding_box()["x"] + 20
    y = free_line(page)["y"] + 15
    page.mouse.move(start, y)
    page.mouse.down()
    page.mouse.move(start + 40, y, steps=4)
    page.mouse.up()
    page.get_by_role("button", name="Show only what is free then").click()
    expect(rows).to_have_count(hosts - 1)
    page.get_by_role("button", name=re.compile("^Free ")).click()
    expect(rows).to_have_count(hosts)


def test_everything_is_reached_by_keyboard(shared, page_of):
    book(shared, "2", "+P1D", "reached")
    page = page_of(shared + "calendar?by=none", ALICE)
    grid = drawn(page)
    # One tab stop leads into the grid.
    page.get_by_role("button", name="As a table").focus()
    page.keyboard.press("Tab")
    assert grid.evaluate("one => one.contains(document.activeElement)")
    label = "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent"
    seen = set()
    page.keyboard.press("Control+Home")
    for _ in range(6):
        page.keyboard.press("ArrowRight")
        seen.add(page.evaluate(label).partition(",")[0])
        page.keyboard.press("ArrowRight")
        seen.add(page.evaluate(label).partition(",")[0])
        page.keyboard.press("Home")
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowDown")
    assert {"Free", "reached"} <= seen
    # On a gap, Enter marks, arrows move the end, Escape leaves, Enter books.
    page.keyboard.press("End")
    assert page.evaluate(label).startswith("Free")
    page.keyboard.press("Enter")
    expect(page.locator(".grid-preview")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".grid-preview")).to_have_count(0)
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name=re.compile("^Book "))).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(grid.locator(":focus")).to_have_count(1)
    page.keyboard.press("Tab")
    assert not grid.evaluate("one => one.contains(document.activeElement)")


def test_rows_and_cells_are_said_in_sentences(shared, page_of):
    book(shared, "2", "+P1D", "said")
    page = page_of(shared + "calendar?by=none", ALICE)
    grid = drawn(page)
    assert int(grid.get_attribute("aria-rowcount") or 0) == grid.get_by_role("row").count() == 6
    sentence = re.compile(r"^said, booked, \w{3} \d+ \w{3} [\d:]+ to ")
    expect(grid.locator(".block-own")).to_have_attribute("aria-label", sentence)
    page.get_by_role("button", name="As a table").click()
    expect(page.get_by_role("table")).to_contain_text("said, booked")
    assert serious(page) == []


def test_tab_leads_into_what_is_in_sight(demo, page_of):
    page = page_of(demo + "calendar?by=none", ALICE)
    grid = drawn(page)
    into = page.get_by_role("button", name="As a table")
    into.focus()
    page.keyboard.press("Tab")
    expect(grid.get_by_role("rowheader").first).to_be_focused()
    into.focus()
    grid.hover()
    page.mouse.wheel(0, 100_000)
    last = grid.get_attribute("aria-rowcount")
    expect(grid.locator(f"[aria-rowindex='{last}']")).to_have_count(1)
    expect(grid.locator("[aria-rowindex='1']")).to_have_count(0)
    into.focus()
    page.keyboard.press("Tab")
    expect(grid.locator(":focus")).to_be_in_viewport()


def test_all_rows_stay_while_they_are_read_again_page_by_page(shared, page_of):
    held: list[Route] = []
    hold = False

    def by_threes(route: Route) -> None:
        if hold and "marker=" in route.request.url:
            held.append(route)
        else:
            route.continue_(url=route.request.url.replace("limit=200", "limit=3"))

    page = page_of("about:blank")
    sign_in(page, ALICE)
    page.route("**/v1/calendar?*", by_threes)
    page.clock.install()
    page.goto(shared + "calendar?by=none")
    grid = drawn(page)
    expect(grid).to_have_attribute("aria-rowcount", "6")
    counts = """(grid) => {
        window.counts = [];
        new MutationObserver(() => window.counts.push(grid.getAttribute("aria-rowcount")))
            .observe(grid, { attributeFilter: ["aria-rowcount"] });
    }"""
    grid.evaluate(counts)
    for _ in range(6):
        book(shared, "2", "+P1D")
    hold = True
    with page.expect_request(re.compile("/v1/calendar.*marker=")):
        page.clock.fast_forward(31_000)
    expect(grid).to_have_attribute("aria-rowcount", "6")
    hold = False
    held[0].continue_()
    expect(grid.locator(".block-own")).to_have_count(6)
    assert set(page.evaluate("window.counts")) <= {"6"}


def test_leases_of_others_have_no_name_for_members_and_names_for_operators(demo, page_of):
    member = page_of(demo + "calendar", "nobody:elsewhere:member")
    expect(drawn(member).locator(".block-other")).not_to_have_count(0)
    expect(member.locator(".grid .block-own")).to_have_count(0)
    expect(member.locator(".grid .block-other .block-label")).to_have_count(0)
    operator = page_of(demo + "calendar", ADMIN)
    expect(drawn(operator).locator(".block-lease .block-label").first).to_contain_text(":")


@pytest.mark.parametrize("zoom", ["6 h", "Day", "Month", "Quarter"])
def test_each_zoom_shows_the_present(demo, page_of, zoom):
    page = page_of(demo + "calendar", ALICE)
    box = drawn(page).bounding_box()
    inner = page.locator(".grid-inner")
    week = inner.evaluate("one => getComputedStyle(one).width")
    page.get_by_role("button", name=zoom, exact=True).click()
    expect(inner).not_to_have_css("width", week)
    now = page.locator(".grid-now").bounding_box()
    assert box["x"] < now["x"] < box["x"] + box["width"]


def test_an_operator_without_hosts_is_led_to_register_some(empty, page_of):
    page = page_of(empty + "calendar", ADMIN)
    page.get_by_role("link", name="Register hosts").click()
    page.get_by_label(re.compile("^All ")).check()
    page.get_by_role("dialog").get_by_role("button", name=re.compile(r"^Register \d")).click()
    expect(page.locator("tbody tr").first).to_be_visible()


def middle_of_a_block_in_sight(page: Page) -> tuple[float, float]:
    """Return where a block is that need not be scrolled to: which one that is depends on the day."""
    grid = drawn(page).bounding_box()
    names = page.locator(".line-name").first.bounding_box()
    assert grid is not None
    assert names is not None
    left, right = names["x"] + names["width"], grid["x"] + grid["width"]
    for block in page.locator(".grid .block").all():
        box = block.bounding_box()
        if box and left < box["x"] and box["x"] + box["width"] < right:
            return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    raise AssertionError("no block is in sight")


def test_the_card_of_a_block_goes_when_the_block_is_scrolled_away(demo, page_of):
    page = page_of(demo + "calendar", ALICE)
    page.mouse.move(*middle_of_a_block_in_sight(page))
    expect(page.locator(".grid-card")).to_be_visible()
    page.mouse.wheel(0, 400)
    expect(page.locator(".grid-card")).to_have_count(0)


def test_a_host_and_a_lease_are_found_and_a_date_is_gone_to(demo, page_of):
    page = page_of(demo + "calendar", ADMIN)
    rows = page.locator(".line:not(.line-group)")
    drawn(page)
    page.get_by_label("Find").fill("a100-03")
    expect(rows).to_have_count(1)
    assert "q=a100-03" in page.url
    page.get_by_label("Find").fill("hpc-course")
    # Its next lesson may lie outside of what was seen.
    expect(page.locator(".block-label", has_text="hpc-course").first).to_be_in_viewport()
    page.get_by_label("Find").fill("")
    day = datetime.now(UTC) + timedelta(days=20)
    page.get_by_label("Go to a date").fill(day.strftime("%Y-%m-%d"))
    expect(page.locator(".tick-major", has_text=f"{day.day} {day:%b}").first).to_be_in_viewport()
    assert serious(page) == []


def test_operators_see_projects_by_colour_and_choose_one_in_the_legend(demo, page_of):
    page = page_of(demo + "calendar?zoom=month&by=none", ADMIN)
    drawn(page)
    legend = page.get_by_role("list", name="What the blocks mean")
    legend.get_by_role("button", name="climate").click()
    expect(legend.get_by_role("button", name="climate")).to_have_attribute("aria-pressed", "true")
    assert "project=climate" in page.url
    colours = page.locator(".grid .block-lease").evaluate_all(
        "(all) => [...new Set(all.map((one) => one.className.match(/colour-[0-9]+/)?.[0]))].filter(Boolean)"
    )
    assert colours
    # The colour is not the only sign.
    expect(page.locator(".grid .block-label", has_text="climate:").first).to_be_attached()
    # The rows have leases of others, too.
    dim = page.locator(".grid .block-dim")
    expect(dim.first).to_be_attached()
    assert not [label for label in dim.all_inner_texts() if label.startswith("climate:")]
    assert serious(page) == []


def test_a_filter_of_another_page_is_shown(demo, page_of):
    asked = urllib.parse.quote(json.dumps(["==", "$hypervisor_hostname", "a100-02"]))
    page = page_of(f"{demo}calendar?req={asked}", ADMIN)
    drawn(page)
    chosen = page.get_by_label("Only").evaluate("one => one.selectedOptions[0].textContent")
    assert "a100-02" in chosen


@pytest.mark.parametrize("width", [320, 390])
def test_nothing_of_the_toolbar_lies_outside_of_a_phone(demo, page_of, width):
    page = page_of(demo + "calendar", ADMIN, viewport={"width": width, "height": 800}, has_touch=True)
    drawn(page)
    page.get_by_role("button", name="Rows").click()
    outside = page.evaluate(
        """() => [...document.querySelectorAll(".calendar-tools :is(button, input, select)")]
            .map((one) => one.getBoundingClientRect()).filter((box) => box.left < 0 || box.right > innerWidth).length"""
    )
    assert outside == 0
    # Days have numbers.
    labels = page.locator(".tick-minor").all_text_contents()
    assert len(labels) > 7
    assert serious(page) == []


def test_keys_lead_to_earlier_later_and_today(demo, page_of):
    page = page_of(demo + "calendar", ALICE)
    drawn(page)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".grid-now")).not_to_be_in_viewport()
    page.keyboard.press("t")
    expect(page.locator(".grid-now")).to_be_in_viewport()
    page.keyboard.press("n")
    page.wait_for_url(re.compile(r"/ui/(\?.*)?$"))


def test_rows_of_an_open_group_stay_while_another_range_is_read(crowded, page_of):
    page = page_of(crowded + "calendar", ALICE)
    drawn(page)
    key = page.locator(".line-group[aria-expanded=false]").first.get_attribute("data-key")
    head = page.locator(f'.line-group[data-key="{key}"]')
    grid = page.get_by_role("treegrid")
    closed = int(grid.get_attribute("aria-rowcount") or 0)
    size = int(head.locator(".line-detail").inner_text().split()[0])
    head.click()
    # All its rows are read, and those in sight are drawn: before that, the first one in the document is another one.
    rows = str(closed + size)
    expect(grid).to_have_attribute("aria-rowcount", rows)
    drawn(page)
    name = page.locator(".line:not(.line-group) .line-title").first
    shown = name.inner_text()
    held: list[Route] = []
    page.route(re.compile(r"/v1/(capacity|calendar)\?(?!.*requirement)"), lambda route: held.append(route))
    with page.expect_response(lambda answer: "requirement" in answer.url):
        page.get_by_role("button", name="Quarter", exact=True).click()
    # The rows were read again, and nothing else yet.
    assert {urllib.parse.urlsplit(route.request.url).path for route in held} == {"/v1/capacity", "/v1/calendar"}
    expect(grid).to_have_attribute("aria-rowcount", rows)
    expect(head).to_have_attribute("aria-expanded", "true")
    expect(name).to_have_text(shown)
    for route in held:
        route.continue_()
    expect(grid).to_have_attribute("aria-rowcount", rows)


# What is measured is noted by the page itself: the driver looks only now and then.
WATCH = """
window.tasks = [];
new PerformanceObserver((list) => { for (const one of list.getEntries()) window.tasks.push(Math.round(one.duration)); })
  .observe({ type: "longtask", buffered: true });
new MutationObserver((_, self) => {
  if (!document.querySelector(".heat")) return;
  self.disconnect();
  requestAnimationFrame(() => setTimeout(() => { window.shown = Math.round(performance.now()); }));
}).observe(document, { childList: true, subtree: true });
"""


def measured(page: Page, address: str) -> dict:
    """Return how long the calendar took to show, and the longest tasks while scrolling and zooming."""
    page.add_init_script(WATCH)
    page.goto(address + "calendar")
    expect(page.locator(".heat").first).to_be_visible()
    drawn(page)
    # The last first: rows of an open group push the groups below out of the document.
    keys = [one.get_attribute("data-key") for one in page.locator(".line-group[aria-expanded=false]").all()]
    for key in reversed(keys):
        head = page.locator(f'.line-group[data-key="{key}"]')
        head.evaluate("one => one.click()")
        expect(head).to_have_attribute("aria-expanded", "true")
    # Their rows are read one group after the other; what is scrolled is all of them.
    expect(page.get_by_role("treegrid")).to_have_attribute("aria-rowcount", str(CROWD + len(keys)))
    drawn(page)
    shown = page.evaluate("window.shown")
    page.wait_for_timeout(500)
    page.evaluate("window.tasks.length = 0")
    page.mouse.move(800, 500)
    for _ in range(100):
        page.mouse.wheel(0, 240)
        page.wait_for_timeout(16)
    for _ in range(30):
        page.mouse.wheel(240, 0)
        page.wait_for_timeout(16)
    for zoom in ("Month", "Day", "Week"):
        page.get_by_role("button", name=zoom, exact=True).click()
    page.wait_for_timeout(300)
    return {"shown_ms": shown, "longest_ms": max(page.evaluate("window.tasks"), default=0)}


def slowness() -> float:
    """Return how many times longer than alone a program takes now, because others run: 1 on a machine at rest."""
    begun, used = time.perf_counter(), time.process_time()
    while time.process_time() - used < 0.2:
        pass
    return max(1.0, (time.perf_counter() - begun) / 0.2, os.getloadavg()[0] / (os.cpu_count() or 1))


def test_a_thousand_hosts_are_shown_and_scrolled_without_waiting(crowded, page_of):
    # The best of three. Where more programs run than there are processors, each gets less than one.
    runs = []
    for _ in range(3):
        before = slowness()
        run = measured(page_of(crowded, ALICE), crowded)
        busy = max(before, slowness())
        runs.append({**run, "busy": round(busy, 2)})
        if run["shown_ms"] < 1500 and run["longest_ms"] <= 100:
            break
    print(runs)
    assert any(run["shown_ms"] < 1500 * run["busy"] for run in runs), runs
    assert any(run["longest_ms"] <= 100 * run["busy"] for run in runs), runs
