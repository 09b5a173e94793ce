# SPDX-License-Identifier: Apache-2.0
"""A browser, and services whose pages it opens. Every test fails if the browser complains of anything."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect, sync_playwright

from tests.forked import Standalone
from tests.web.service import PATIENCE, emptied

ROOT = Path(__file__).parents[2]
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
ALICE = "alice:physics:member"
ADMIN = "admin:demo:admin"
# How long a test waits for the browser, in seconds: a busy machine may take that long.
PATIENCE_IN_BROWSER = 30
# How many hosts a crowded service has.
CROWD = 1000


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent and "page_of" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.web)


def needed(what: str, name: str) -> str:
    """Return the path of a program; skip without it, but fail in CI."""
    path = shutil.which(name)
    if path is None:
        sentence = f"{what} is not installed ({name}), so the pages cannot be tested in a browser"
        if os.environ.get("CI") == "true":
            pytest.fail(sentence)
        pytest.skip(sentence)
    return path


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return bool(response.status == 200)
    except OSError:
        return False


class Process(Protocol):
    """A server, as far as a test has to do with it."""

    def poll(self) -> int | None:
        """Return the exit code; None while it runs."""

    def send_signal(self, number: int, /) -> None:
        """Send it a signal."""

    def wait(self, patience: float, /) -> int:
        """Return the exit code once it has ended."""


def until_over(process: Process, url: str, log: Path, patience: float = PATIENCE) -> Iterator[str]:
    """Yield the address of a server once it answers; end it when the tests are over."""
    try:
        until = time.monotonic() + patience
        while not answers(url):
            assert process.poll() is None, log.read_text(encoding="utf-8")
            assert time.monotonic() < until, log.read_text(encoding="utf-8")
            time.sleep(0.05)
        yield url
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)


def standalone(folder: Path, *options: str, patience: float = PATIENCE) -> Iterator[str]:
    port, log = free_port(), folder / "log"
    process = Standalone(["--port", str(port), "--data", str(folder / "data"), *options], log)
    yield from until_over(process, f"http://127.0.0.1:{port}/ui/", log, patience)


@pytest.fixture(scope="session")
def made_demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a service that `make demo` has made, and that was stopped: making it takes long."""
    folder = tmp_path_factory.mktemp("made-demo")
    for _ in standalone(folder, "--demo", patience=2 * PATIENCE):
        pass
    return folder


@pytest.fixture(scope="module")
def demo(made_demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the pages of a service as `make demo` starts it, which lasts as long as its module."""
    folder = tmp_path_factory.mktemp("demo")
    shutil.copytree(made_demo / "data", folder / "data")
    yield from standalone(folder, "--demo")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the pages of a service as `make run` starts it, which lasts as long as its module."""
    yield from standalone(tmp_path_factory.mktemp("running"))


@pytest.fixture
def shared(running: str) -> Iterator[str]:
    """The address of the pages of a service without leases: that of the module, as a start takes long."""
    yield running
    emptied(running, ADMIN)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[str]:
    """The address of the pages of a new service as `make run` starts it, for one test."""
    yield from standalone(tmp_path)


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[str]:
    """The address of the pages of a new service without hosts."""
    yield from standalone(tmp_path, "--no-hosts")


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the pages before a made-up service of 1 000 hosts and 20 000 leases."""
    port = free_port()
    node = needed("Node", "node")
    log = tmp_path_factory.mktemp("mock") / "log"
    sizes = {"PORT": str(port), "HOSTS": str(CROWD), "LEASES": "20000"}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [node, "web/dev/mock.mjs"], cwd=ROOT, stdout=out, stderr=out, env={**os.environ, **sizes}
        )
    yield from until_over(process, f"http://127.0.0.1:{port}/ui/", log)


def launched() -> Iterator[Browser]:
    """Run Chromium; there can be one at a time in a process."""
    path = needed("Chromium", "chromium")
    expect.set_options(timeout=PATIENCE_IN_BROWSER * 1000)
    with sync_playwright() as playwright:
        # As root there is no sandbox; the pages are our own. For other sites there is a name of this machine.
        arguments = ["--no-sandbox", "--host-resolver-rules=MAP evil.test 127.0.0.1"]
        chromium = playwright.chromium.launch(executable_path=path, args=arguments)
        yield chromium
        chromium.close()


class Complaints(list[str]):
    """What the browser complained of. It reports some only after a test has seen what it looks for: all count."""

    def __init__(self) -> None:
        super().__init__()
        self.expected: set[str] = set()

    @property
    def unexpected(self) -> list[str]:
        """Those that have none of the expected texts in them."""
        return [one for one in self if not any(text in one for text in self.expected)]


@pytest.fixture
def complaints() -> Iterator[Complaints]:
    """What the browser complained of until its windows are closed; a test adds to `expected` what it provokes."""
    found = Complaints()
    yield found
    assert found.unexpected == []


Open = Callable[..., Page]

WATCH = """
document.addEventListener("securitypolicyviolation", (event) => console.error("policy: " + event.violatedDirective));
"""


def sign_in(page: Page, who: str) -> None:
    """Have a window be that of somebody from the next page on.

    One that gets a clock of its own is opened blank: a page that is open then would have that of 1970 for a moment.
    """
    page.add_init_script(f"sessionStorage.setItem('blazar.identity', '{who}')")


@pytest.fixture
def page_of(browser: Browser, complaints: Complaints) -> Iterator[Open]:
    """Return a function that opens an address in a new window, as somebody, with options of the context."""
    contexts: list[BrowserContext] = []

    def opened(address: str, who: str | None = None, **options: Any) -> Page:
        options = {"viewport": {"width": 1440, "height": 900}, "timezone_id": "Europe/Berlin", **options}
        context = browser.new_context(**options)
        context.set_default_timeout(PATIENCE_IN_BROWSER * 1000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("console", lambda message: message.type == "error" and complaints.append(f"console: {message.text}"))
        page.add_init_script(WATCH)
        if who:
            sign_in(page, who)
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()


def query_of(page: Page) -> dict[str, list[str]]:
    """Return what the address of a page asks for."""
    return parse_qs(urlsplit(page.url).query)


def drawn(page: Page) -> Locator:
    """Return the calendar's grid, once all lines in sight are drawn."""
    grid = page.get_by_role("treegrid")
    expect(grid).to_have_attribute("aria-busy", "false")
    return grid


# A colour on its way to another one has too little contrast. What never ends is not waited for.
STILL = """
() => Promise.allSettled(document.getAnimations()
  .filter((one) => one.effect.getComputedTiming().endTime !== Infinity).map((one) => one.finished))
"""


def serious(page: Page, *rules: str) -> list[str]:
    """Return what axe finds, of any impact, and where; only by these rules, if any is named."""
    if not AXE.exists():
        sentence = "axe-core is not installed; `make web` installs it"
        if os.environ.get("CI") == "true":
            pytest.fail(sentence)
        pytest.skip(sentence)
    # The policy of the pages forbids a script element of ours; the driver may evaluate.
    page.evaluate(STILL)
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    # What is not looked at is not gathered: that is most of axe's time.
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    result = page.evaluate("(options) => axe.run(options)", options)
    return [f"{found['id']}: {found['nodes'][0]['html'][:160]}" for found in result["violations"]]
