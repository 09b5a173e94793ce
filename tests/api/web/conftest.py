# SPDX-License-Identifier: Apache-2.0
"""A browser before the sign-in, and a small Keystone behind it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.fernet import Fernet
from werkzeug.test import Client, TestResponse

from blazar.api.web.keystone import Keystone
from blazar.api.web.sessions import Sessions
from blazar.api.web.signing_in import Clocks, SessionSettings
from tests.api.web.keystone import PASSWORDS, FakeKeystone

ORIGIN = "https://cloud.example"
SAME = {"Sec-Fetch-Site": "same-origin"}
KEY = Fernet.generate_key().decode()


@dataclass
class Time:
    """Clocks that the test moves."""

    now: datetime = datetime(2030, 1, 1, tzinfo=UTC)
    seconds: float = 1000.0

    def move(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.seconds += seconds

    @property
    def clocks(self) -> Clocks:
        return Clocks(lambda: self.now, lambda: self.seconds)


class Browser:
    """A client that keeps cookies and sends what pages send."""

    def __init__(self, app: Any, origin: str = ORIGIN) -> None:
        self.client = Client(app)
        self.origin = origin
        self.csrf = ""

    def open(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> TestResponse:
        """Send a request as a page of ours does; headers of None are left out."""
        given = {**SAME, "X-CSRF-Token": self.csrf, **(headers or {})}
        more: dict[str, Any] = {"json": body} if body is not None else {}
        kept = {name: value for name, value in given.items() if value is not None}
        return self.client.open(path, method=method, base_url=self.origin, headers=kept, **more)

    def sign_in(self, user: str = "curie", headers: dict[str, str] | None = None, **more: str) -> TestResponse:
        asked = {"method": "password", "user": user, "domain": "Default", "password": PASSWORDS.get(user, "x"), **more}
        answer = self.open("POST", "/ui/session", asked, headers)
        self.csrf = (answer.json or {}).get("csrf_token", self.csrf)
        return answer

    def cookie(self, name: str = "__Host-blazar") -> str | None:
        found = self.client.get_cookie(name, self.origin.partition("://")[2].partition(":")[0])
        return None if found is None else found.value


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def keystone() -> Iterator[FakeKeystone]:
    """The Keystone that users sign in at."""
    fake = FakeKeystone()
    yield fake
    fake.close()


@pytest.fixture
def app(keystone, time) -> Callable[..., Sessions]:
    """Make the sessions in front of an application that tells what reaches it."""

    def behind(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        token = environ.get("HTTP_X_AUTH_TOKEN")
        base = f"{environ['wsgi.url_scheme']}://{environ['HTTP_HOST']}{environ['SCRIPT_NAME']}"
        seen = {
            "base": base,
            "token": token,
            "who": token and keystone.user_of(token),
            "cookie": environ.get("HTTP_COOKIE"),
        }
        start_response("200 OK", [("Content-Type", "application/json"), ("Vary", "X-Auth-Token")])
        return [json.dumps(seen).encode()]

    def make(**settings: Any) -> Sessions:
        url = settings.pop("url", keystone.url)
        return Sessions(behind, Keystone(url, timeout=2), SessionSettings(**{"keys": (KEY,), **settings}), time.clocks)

    return make


@pytest.fixture
def browser(app) -> Browser:
    return Browser(app())


@pytest.fixture
def signed_in(browser) -> Browser:
    """A browser of curie's in project art, which is the first by name."""
    assert browser.sign_in().status_code == 200
    return browser
