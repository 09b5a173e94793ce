# SPDX-License-Identifier: Apache-2.0
"""The calendar in a browser, before a full service: how long until rows are shown, and the longest task meanwhile.

``python -m bench --only pages``; needs Chromium. With ``serve PORT HOSTS LEASES`` this module is the service.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from oslo_config import cfg

from bench.ground import BEGIN, Ground, database
from blazar.cmd import config, pages, process, web

PEOPLE = {"operator": "admin:demo:admin", "member": "alice:physics:member"}
PORT = 23917
RUNS = 3
LONGEST = 120
"""Seconds in which rows are shown, on whatever machine: a night ends, whatever the pages do."""

# What is measured is noted by the page itself: the driver looks only now and then.
WATCH = """
window.tasks = [];
new PerformanceObserver((list) => { for (const one of list.getEntries()) window.tasks.push(Math.round(one.duration)); })
  .observe({ type: "longtask", buffered: true });
new MutationObserver((_, self) => {
  if (!document.querySelector(".heat, .block")) return;
  self.disconnect();
  requestAnimationFrame(() => setTimeout(() => { window.shown = Math.round(performance.now()); }));
}).observe(document, { childList: true, subtree: true });
"""
CALENDAR = """performance.getEntriesByType("resource").filter((one) => /v1\\/calendar/.test(one.name))"""


def serve(port: int, hosts: int, leases: int) -> None:
    """Serve a calendar of so many hosts and leases with its pages."""
    process.settle()
    conf = config.load([], program="bench", files=[], conf=cfg.ConfigOpts())
    with database("sqlite") as engine:
        ground = Ground(engine, hosts)
        ground.fill(leases, most=leases)
        web.server(
            pages.without_keystone(ground.app, conf), threads=16, trusts_proxy=False, host="127.0.0.1", port=port
        ).run()


@contextmanager
def served(hosts: int, leases: int) -> Iterator[tuple[str, int]]:
    """Run such a service; yield the address of its pages and the id of its process."""
    command = [sys.executable, "-m", "bench.pages", "serve", str(PORT), str(hosts), str(leases)]
    url = f"http://127.0.0.1:{PORT}/ui/"
    with subprocess.Popen(command) as program:
        try:
            while not _answers(url):
                assert program.poll() is None
                time.sleep(0.2)
            yield url, program.pid
        finally:
            program.terminate()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def measure(hosts: int = 1000, leases: int = 20_000) -> Iterator[dict[str, Any]]:
    """Measure the calendar of operators and of members, closed and with all rows; the fastest of three runs each."""
    from playwright.sync_api import sync_playwright

    with served(hosts, leases) as (url, pid), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for who, token in PEOPLE.items():
            # In the month that has the leases.
            at = f"at={BEGIN + timedelta(days=10):%Y-%m-%dT%H:%M:%SZ}"
            for view in (f"calendar?{at}", f"calendar?{at}&by=none"):
                runs = [_run(browser, url + view, token, pid) for _ in range(RUNS)]
                best = min(runs, key=lambda run: int(run["rows_ms"]))
                yield {"who": who, "view": view, "hosts": hosts, "leases": leases, **best}
        browser.close()


def _run(browser: Any, address: str, token: str, pid: int) -> dict[str, int]:
    context = browser.new_context(viewport={"width": 1440, "height": 900}, timezone_id="Europe/Berlin")
    page = context.new_page()
    page.add_init_script(f"sessionStorage.setItem('blazar.identity', '{token}')")
    page.add_init_script(WATCH)
    before = _cpu_ms(pid)
    page.goto(address)
    # The policy of the pages lets the driver evaluate, and not wait by a function.
    limit = time.monotonic() + LONGEST
    while not page.evaluate("window.shown ?? 0"):
        if time.monotonic() > limit:
            raise TimeoutError(f"no rows are shown after {LONGEST} s: {address}")
        page.wait_for_timeout(20)
    cpu = _cpu_ms(pid) - before
    read = page.evaluate(f"{CALENDAR}.reduce((sum, one) => sum + one.decodedBodySize, 0)")
    page.wait_for_timeout(1500)
    loading = max(page.evaluate("window.tasks"), default=0)
    page.evaluate("window.tasks.length = 0")
    page.mouse.move(800, 500)
    for across, down, steps in ((0, 240, 100), (240, 0, 30)):
        for _ in range(steps):
            page.mouse.wheel(across, down)
            page.wait_for_timeout(16)
    page.wait_for_timeout(300)
    figures = {
        "rows_ms": page.evaluate("window.shown"),
        "calendar_kb": read // 1000,
        "server_cpu_ms": cpu,
        "longest_loading_ms": loading,
        "longest_scrolling_ms": max(page.evaluate("window.tasks"), default=0),
    }
    context.close()
    return figures


def _cpu_ms(pid: int) -> int:
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 10


if __name__ == "__main__":
    serve(*(int(value) for value in sys.argv[2:]))
