# SPDX-License-Identifier: Apache-2.0
"""What is never logged: passwords, passcodes, receipts, tokens, cookies."""

from __future__ import annotations

import logging

from keystonemiddleware.auth_token import AuthProtocol
from werkzeug.test import Client

from blazar.api.http.identity import KeystoneIdentity
from blazar.api.http.middleware import ExchangeLog, behind_keystone
from blazar.api.web.keystone import Keystone
from blazar.api.web.sessions import Sessions
from blazar.api.web.signing_in import SessionSettings
from blazar.cmd import config
from tests.api.conftest import app_of
from tests.api.http.test_keystone import token
from tests.api.web.conftest import KEY, Browser
from tests.api.web.keystone import CREDENTIAL, PASSCODE


def all_of_it(browser: Browser) -> list[str]:
    """Sign in by all ways, well and badly; return what must be told to nobody."""
    browser.sign_in(password="wrong-secret")
    receipt = browser.sign_in("bohr").json["receipt"]
    browser.open("POST", "/ui/session", {"method": "totp", "receipt": receipt, "passcode": "314159"})
    browser.open("POST", "/ui/session", {"method": "totp", "receipt": receipt, "passcode": PASSCODE})
    given = dict(zip(("id", "secret"), CREDENTIAL, strict=True))
    browser.open("POST", "/ui/session", {"method": "application_credential", **given})
    browser.sign_in()
    cookie = browser.cookie()
    assert cookie is not None
    browser.open("GET", "/v1/leases")
    browser.open("PUT", "/ui/session/project", {"project": "physics"})
    switched = browser.cookie()
    assert switched is not None
    csrf = browser.csrf
    browser.open("DELETE", "/ui/session")
    return ["wrong-secret", "radium", "kopenhagen", receipt, "receipt-of-bohr", PASSCODE, "314159", "ac-secret"] + [
        cookie,
        switched,
        "gAAAA-token",
        csrf,
    ]


def test_nothing_secret_is_logged_even_when_everything_is(app, keystone, caplog):
    caplog.set_level(logging.DEBUG)
    secrets = all_of_it(Browser(ExchangeLog(app())))
    assert "PATH_INFO" in caplog.text
    assert "/ui/session" in caplog.text
    assert "Making authentication request" in caplog.text
    for secret in secrets:
        assert secret not in caplog.text, secret


def test_keystone_gets_the_address_of_the_user_and_no_cookie(browser, keystone):
    browser.client.set_cookie("of-another-service", "its-secret", domain="cloud.example")
    asked = {"method": "password", "user": "curie", "domain": "Default", "password": "radium"}
    headers = {"Sec-Fetch-Site": "same-origin"}
    base = {"base_url": browser.origin, "environ_overrides": {"REMOTE_ADDR": "192.0.2.9"}}
    assert browser.client.post("/ui/session", json=asked, headers=headers, **base).status_code == 200
    assert all("for=192.0.2.9" in sent["Forwarded"] for sent in keystone.headers)
    assert all("Cookie" not in sent for sent in keystone.headers)


def test_the_whole_service_lets_a_signed_in_page_book(world, keystone, tmp_path, monkeypatch, time):
    """With Keystone's own middleware behind the sessions."""
    tokens = {}

    def fetch(self: object, given: str, **_: object) -> dict:
        user, project = keystone.user_of(given)
        tokens[given] = user
        return token("member", "reader", project={"id": project, "name": project, "domain": {"id": "d", "name": "D"}})

    monkeypatch.setattr(AuthProtocol, "fetch_token", fetch)
    file = tmp_path / "blazar.conf"
    login = ["[keystone_authtoken]", "auth_type = v3password", f"auth_url = {keystone.url}/v3", "username = blazar"]
    file.write_text("\n".join([*login, "password = x", "user_domain_id = default"]), encoding="utf-8")
    conf = config.load(["--config-file", str(file)], program="blazar-test")
    settings = SessionSettings(keys=(KEY,))

    def pages(guarded):
        return Sessions(guarded, Keystone(keystone.url), settings, time.clocks)

    browser = Browser(behind_keystone(app_of(world.manager, KeystoneIdentity(), auth_uri=None), conf, pages))
    assert browser.open("GET", "/v1/leases").status_code == 401
    assert browser.sign_in().status_code == 200
    reservation = {"resource_type": "physical:host", "min": 1, "max": 1}
    reservation |= {"hypervisor_properties": "", "resource_properties": ""}
    dates = {"start_date": "2031-05-01 10:00", "end_date": "2031-05-01 12:00"}
    lease = {"name": "work", **dates, "reservations": [reservation], "events": []}
    assert browser.open("POST", "/v1/leases", lease, {"X-CSRF-Token": None}).status_code == 403
    made = browser.open("POST", "/v1/leases", lease)
    assert (made.status_code, made.json["lease"]["project_id"]) == (201, "art")
    assert made.headers["Vary"].endswith("Cookie")
    browser.open("PUT", "/ui/session/project", {"project": "physics"})
    assert browser.open("GET", "/v1/leases").json["leases"] == []
    assert Client(browser.client.application).get("/v1/leases").status_code == 401
    browser.open("DELETE", "/ui/session")
    assert browser.open("GET", "/v1/leases").status_code == 401
