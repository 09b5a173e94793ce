# SPDX-License-Identifier: Apache-2.0
"""A session in a real browser, and what pages of other origins can do with it: nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
from keystonemiddleware.auth_token import AuthProtocol
from playwright.sync_api import Browser, BrowserContext, expect

from blazar.api.http.identity import KeystoneIdentity
from blazar.api.http.middleware import behind_keystone
from blazar.api.web.keystone import Keystone
from blazar.api.web.pages import Pages, read_built
from blazar.api.web.sessions import Sessions
from blazar.api.web.signing_in import SessionSettings
from blazar.cmd import config
from tests.api.conftest import app_of
from tests.api.http.test_keystone import token
from tests.api.web.conftest import KEY, Time
from tests.api.web.keystone import FakeKeystone
from tests.web.attacker import framed, other_program, post_a_form, read_by, served

pytestmark = pytest.mark.web

LEASE = {
    "name": "work",
    "start_date": "2031-05-01 10:00",
    "end_date": "2031-05-01 12:00",
    "events": [],
    "reservations": [
        {"resource_type": "physical:host", "min": 1, "max": 1, "hypervisor_properties": "", "resource_properties": ""}
    ],
}
CALL = """async ([method, path, body, headers]) => {
    const json = body === null ? {} : {"Content-Type": "application/json"};
    const answer = await fetch(path, {method, headers: {...json, ...headers},
                                      body: body === null ? undefined : JSON.stringify(body)});
    const text = await answer.text();
    return [answer.status, text ? JSON.parse(text) : null];
}"""


@dataclass
class Service:
    """The whole service behind a small Keystone, and what its requests said of where they came from."""

    url: str
    world: Any
    keystone: FakeKeystone
    sent: list[tuple[str, str, str | None, bool]] = field(default_factory=list)

    @property
    def leases(self) -> int:
        return len(self.world.manager.leases.all(None))


@pytest.fixture
def service(world, tmp_path, monkeypatch) -> Iterator[Service]:
    keystone = FakeKeystone()

    def fetch(self: object, given: str, **_: object) -> dict:
        _, project = keystone.user_of(given) or ("", "none")
        return token("member", "reader", project={"id": project, "name": project, "domain": {"id": "d", "name": "D"}})

    monkeypatch.setattr(AuthProtocol, "fetch_token", fetch)
    file = tmp_path / "blazar.conf"
    login = ["[keystone_authtoken]", "auth_type = v3password", f"auth_url = {keystone.url}/v3", "username = blazar"]
    file.write_text("\n".join([*login, "password = x", "user_domain_id = default"]), encoding="utf-8")
    conf = config.load(["--config-file", str(file)], program="blazar-test")
    built = read_built()
    assert built is not None

    def pages(guarded: Any) -> Any:
        settings = SessionSettings(keys=(KEY,))
        return Pages(Sessions(guarded, Keystone(keystone.url), settings, Time().clocks), built)

    inside = behind_keystone(app_of(world.manager, KeystoneIdentity(), auth_uri=None), conf, pages)
    found = Service("", world, keystone)

    def noted(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        method, site = environ["REQUEST_METHOD"], environ.get("HTTP_SEC_FETCH_SITE")
        found.sent.append((method, environ["PATH_INFO"], site, "blazar-loopback" in environ.get("HTTP_COOKIE", "")))
        return inside(environ, start_response)

    server, found.url = served(noted)
    yield found
    server.shutdown()
    keystone.close()


@pytest.fixture
def other_port() -> Iterator[str]:
    with other_program() as url:
        yield url


@pytest.fixture
def window(browser: Browser) -> Iterator[BrowserContext]:
    """The pages of one user, who has no cookies yet."""
    context = browser.new_context()
    yield context
    context.close()


def signed_in(window: BrowserContext, service: Service) -> tuple[Any, dict[str, str]]:
    """Sign in from a page of ours; return the page and the headers of its changes."""
    page = window.new_page()
    # Nothing that the page asks for by itself is still on its way when a test looks at what was sent.
    page.goto(f"{service.url}/ui/", wait_until="networkidle")
    asked = {"method": "password", "user": "curie", "domain": "Default", "password": "radium"}
    status, session = page.evaluate(CALL, ["POST", "/ui/session", asked, {}])
    assert status == 200
    return page, {"X-CSRF-Token": session["csrf_token"], "X-Blazar-Project": session["project"]["id"]}


def test_our_own_page_books_and_no_script_sees_the_cookie(window, service):
    page, headers = signed_in(window, service)
    assert page.evaluate("document.cookie") == ""
    (cookie,) = window.cookies()
    assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"]) == ("blazar-loopback", True, "Strict")
    assert page.evaluate(CALL, ["POST", "/v1/leases", LEASE, {}])[0] == 403
    assert page.evaluate(CALL, ["POST", "/v1/leases", LEASE, headers])[0] == 201
    assert service.leases == 1
    page.reload()
    status, session = page.evaluate(CALL, ["GET", "/ui/session", None, {}])
    assert (status, session["user"]["name"]) == (200, "curie")
    assert page.evaluate(CALL, ["DELETE", "/ui/session", None, headers])[1] == {"revoked": True}
    assert page.evaluate(CALL, ["GET", "/v1/leases", None, {}])[0] == 401


@pytest.mark.parametrize("name", ["127.0.0.1", "evil.test"])
def test_a_page_of_another_origin_can_neither_act_nor_read(window, service, other_port, name):
    signed_in(window, service)
    service.sent.clear()
    attacker = window.new_page()
    attacker.goto(f"http://{name}:{urlsplit(other_port).port}/")
    assert read_by(attacker, service.url) == set()

    def sent() -> list[tuple[str, str, str | None, bool]]:
        return [one for one in service.sent if one[1] != "/favicon.ico"]

    before = len(sent())
    post_a_form(attacker, service.url)
    made = sent()
    assert len(made) > before
    sites = {site for _, _, site, _ in made}
    assert sites == {"same-site" if name == "127.0.0.1" else "cross-site"}
    # On another port of this host the cookie does come along: what protects it are the checks.
    assert any(has_cookie for *_, has_cookie in made) == (name == "127.0.0.1")
    assert service.leases == 0


@pytest.mark.parametrize("path", ["/ui/", "/ui/calendar", "/ui/session"])
def test_our_pages_cannot_be_framed(window, service, other_port, path):
    signed_in(window, service)
    attacker = window.new_page()
    attacker.goto(other_port)
    assert framed(attacker, f"{service.url}{path}").startswith("chrome-error://")


def test_the_page_runs_no_code_that_somebody_writes_into_it(window, service):
    page, _ = signed_in(window, service)
    attempts = """() => [
        () => { document.body.innerHTML = "<img src=x onerror=window.hit=1>"; },
        () => { const s = document.createElement("script"); s.text = "window.hit = 1"; document.body.append(s); },
        () => { setTimeout("window.hit = 1", 0); },
        () => { document.body.setAttribute("onclick", "window.hit = 1"); document.body.click(); },
    ].map(attempt => { try { attempt(); } catch (error) { return error.name; } return "silent"; })"""
    assert "silent" not in page.evaluate(attempts)[:3]
    assert page.evaluate("window.hit") is None


def test_a_user_signs_in_switches_the_project_and_signs_out_by_the_pages(window, service):
    page = window.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"{service.url}/ui/")
    page.get_by_label("User").fill("curie")
    page.get_by_label("Domain").fill("Default")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("Keystone does not accept this").wait_for()
    page.get_by_label("Password").fill("radium")
    page.keyboard.press("Enter")
    account = page.get_by_role("button", name="curie")
    account.wait_for()
    expect(account).to_contain_text("Art")
    page.reload()
    account.click()
    page.get_by_role("button", name="Physics").click()
    page.get_by_role("button", name="Physics curie").wait_for()
    page.get_by_role("button", name="Physics curie").click()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Password").wait_for()
    assert service.keystone.tokens == {}
    assert window.cookies() == []
    assert complaints == []


def test_who_signs_in_again_by_the_pages_finds_what_was_typed(window, service):
    signed_in(window, service)
    page = window.new_page()
    # A request that is still under way would open the dialog before the name is typed, which nobody could do behind it.
    page.goto(f"{service.url}/ui/leases", wait_until="networkidle")
    page.get_by_role("button", name="curie").wait_for()
    window.clear_cookies()
    page.get_by_label("Name", exact=True).fill("typed")
    again = page.get_by_role("dialog", name="Sign in again")
    again.get_by_role("button", name="Use an application credential").wait_for()
    expect(again.get_by_label("Password")).to_be_focused()
    page.keyboard.type("radium")
    page.keyboard.press("Enter")
    expect(again).to_have_count(0)
    expect(page.get_by_label("Name", exact=True)).to_have_value("typed")
    assert len(window.cookies()) == 1


def test_a_user_with_a_second_factor_is_asked_for_it_by_the_pages(window, service):
    page = window.new_page()
    page.goto(f"{service.url}/ui/")
    page.get_by_label("User").fill("bohr")
    page.get_by_label("Password").fill("kopenhagen")
    page.keyboard.press("Enter")
    page.get_by_label("Passcode").fill("271828")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="bohr").wait_for()
