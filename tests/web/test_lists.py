# SPDX-License-Identifier: Apache-2.0
"""Lists stand whatever people name, on any window: every page is walked with names that are as long as can be."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import ALICE, ROOT, serious, standalone
from tests.web.hostile import MEMBER, OPERATOR, filled

WIDTHS = (1440, 390, 320)
LOOKED_AT = WIDTHS if os.environ.get("FULL") else WIDTHS[:2]
"""Those at which axe looks: a page of the narrowest phone is that of a wider one, but for what goes beyond it."""
PAGES = {
    found["path"]: "operators: true" in found["rest"]
    for found in re.finditer(
        r'\{\s*path: "(?P<path>[^"]*)"(?P<rest>[^}]*)\}', (ROOT / "web/src/pages.ts").read_text(encoding="utf-8")
    )
}
"""Whether each page is for operators, by its path."""

VIEWS = {
    "calendar": ("calendar?type=physical:host", "calendar?view=table", "calendar?type=generic&view=table"),
    "leases": ("leases?whose=project", "leases?state=past&whose=project"),
    "resources": ("resources", "resources?kind=generic", "resources?kind=device"),
    "all-leases": ("all-leases", "all-leases?states=past"),
    "maintenance": ("maintenance", "maintenance?do=plan"),
}
"""The views of pages that have several; what shows one thing needs its id."""

ONE_EACH = ("lease", "resource")
"""Pages that say nothing without an id."""

OVERFLOWS = """
() => {
  const wide = document.documentElement;
  const found = [];
  if (wide.scrollWidth > wide.clientWidth) found.push(`the page: ${wide.scrollWidth} of ${wide.clientWidth}`);
  const seen = (one) => one.checkVisibility({ visibilityProperty: true }) && one.getClientRects().length > 0;
  for (const one of document.querySelectorAll("body *")) {
    const { overflowX } = getComputedStyle(one);
    if (!["auto", "scroll"].includes(overflowX) || one.closest(".grid, .calendar-tools") || !seen(one)) continue;
    if (one.scrollWidth > one.clientWidth + 1) found.push(`${one.className}: ${one.scrollWidth} of ${one.clientWidth}`);
  }
  for (const one of document.querySelectorAll(".right :is(button, a, input, select)")) {
    if (one.closest(".grid, .calendar-tools, .visually-hidden") || !seen(one)) continue;
    const { left, right } = one.getBoundingClientRect();
    const of = (one.getAttribute("aria-label") ?? one.textContent).slice(0, 40);
    if (left < 0 || right > wide.clientWidth) found.push(`${of} is at ${Math.round(left)} to ${Math.round(right)}`);
  }
  return found;
}
"""
"""What is wider than its place, and controls that are outside of the window."""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, str]]]:
    """The address of a service in which all names are long, and the addresses of single things."""
    for pages in standalone(tmp_path_factory.mktemp("hostile")):
        yield pages, filled(pages)


def settled(page: Page) -> None:
    """Wait until a page has read what it shows."""
    expect(page.locator("main h1, main h2").first).to_be_visible()
    expect(page.locator(".skeleton")).to_have_count(0)
    page.wait_for_load_state("networkidle")


def walked() -> Iterator[Any]:
    """Return each page as each sees it who may; one of them, for the next page the other, looks with each change."""
    for number, (path, for_operators) in enumerate(PAGES.items()):
        those = [OPERATOR] if for_operators else [OPERATOR, MEMBER]
        for who in those:
            by_night = who != those[number % len(those)]
            yield pytest.param(path, who, id=f"{path or 'find'}, {who[0]}", marks=[pytest.mark.nightly] * by_night)


@pytest.mark.parametrize(("path", "who"), [*walked()])
def test_no_page_breaks_of_long_names_on_any_window(hostile, page_of, complaints, path, who):
    assert len(PAGES) >= 11
    pages, single = hostile
    # Hosts have ids for operators only.
    shown = {name: view for name, view in single.items() if who == OPERATOR or name != "host"}
    one = [view for view in shown.values() if view.split("?")[0] == path]
    page = page_of(pages + "nothing", who)
    found: dict[str, object] = {}
    for view in VIEWS.get(path, () if path in ONE_EACH else (path,)) + tuple(one):
        page.goto(pages + view)
        settled(page)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 844 if width < 500 else 900})
            if wide := page.evaluate(OVERFLOWS):
                found[f"{view} at {width}"] = wide
            for scheme, rules in (("light", []), ("dark", ["color-contrast"])) if width in LOOKED_AT else ():
                page.emulate_media(color_scheme=scheme)
                # What else axe looks for does not depend on colours.
                if problems := serious(page, *rules):
                    found[f"{view} at {width}, {scheme}"] = problems
    assert found == {}


def test_a_phone_shows_the_first_lease_without_scrolling(demo, page_of):
    page = page_of(demo + "leases?whose=project", ALICE, viewport={"width": 390, "height": 844}, has_touch=True)
    first = page.locator("main tbody tr th").first
    expect(first).to_be_visible()
    box, below = first.bounding_box(), page.get_by_role("navigation", name="Pages").bounding_box()
    assert box is not None
    assert below is not None
    assert box["y"] + box["height"] <= below["y"]
    page.get_by_role("button", name="Filters").click()
    expect(page.get_by_role("button", name="Running")).to_be_visible()
    assert serious(page) == []
