# SPDX-License-Identifier: Apache-2.0
"""Writes docs/calendar.png, the picture of the README: the calendar that an operator of the demo sees.

Start ``make demo``, then run it; it needs Chromium, as ``make test-web`` does.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

PICTURE = Path(__file__).parents[1] / "docs" / "calendar.png"
SIZE = {"width": 1200, "height": 640}
OPERATOR = "admin:demo:admin"


def take_picture(address: str) -> None:
    """Write the picture of the calendar of the demo at an address, such as http://127.0.0.1:1234."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("Chromium is not installed (chromium)")
    with sync_playwright() as playwright:
        # As root there is no sandbox; the pages are our own.
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE, timezone_id="Europe/Berlin", locale="en-GB", color_scheme="light")
        page.add_init_script(f"sessionStorage.setItem('blazar.identity', '{OPERATOR}')")
        page.goto(f"{address}/ui/calendar")
        expect(page.get_by_role("treegrid")).to_have_attribute("aria-busy", "false", timeout=60_000)
        # The legend comes with the projects, which are read after the rows.
        expect(page.get_by_role("button", name="physics")).to_be_visible(timeout=60_000)
        page.screenshot(path=PICTURE, animations="disabled")
        browser.close()


if __name__ == "__main__":
    take_picture(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:1234")
