# SPDX-License-Identifier: Apache-2.0
"""The web pages in front of the API as ``[ui]`` has them."""

from __future__ import annotations

import base64
import re

import pytest
from werkzeug.test import Client

from blazar.api.http.middleware import behind_keystone
from blazar.api.web.signing_in import SessionSettings
from blazar.cmd import api, pages
from blazar.cmd.config import ConfigurationError
from tests.cmd.test_api import BUS, LOGIN

KEY = base64.urlsafe_b64encode(b"a key for tests of just 32 bytes").decode()


def guarded(environ, start_response):
    return []


def test_without_pages_the_application_is_served_alone(load):
    assert pages.without_keystone(guarded, load("[ui]", "enabled = false")) is None


def test_without_a_key_nobody_signs_in_and_the_log_says_how_to_make_one(load, caplog):
    caplog.set_level("INFO")
    assert pages.before_keystone(guarded, load(*LOGIN)) is guarded
    assert "[ui] session_keys is not set; make one by: openssl" in caplog.text
    assert pages.before_keystone(guarded, load(*LOGIN, "[ui]", "enabled = false", f"session_keys = {KEY}")) is guarded


@pytest.mark.parametrize("key", ["short", "x" * 44, f"{KEY},nonsense"])
def test_a_key_that_is_none_is_refused(load, key):
    conf = load(*LOGIN)
    behind_keystone(guarded, conf)
    with pytest.raises(ConfigurationError, match=r"\[ui\] session_keys .* 32 bytes") as refused:
        pages.sessions(guarded, conf, SessionSettings(keys=tuple(key.split(","))))
    assert key not in refused.value.message


def test_with_a_key_the_api_serves_the_pages_and_asks_who_one_is(load):
    http = Client(api.build(load(*BUS, *LOGIN, "[ui]", f"session_keys = {KEY}", "domains = Default, Guests")))
    assert http.get("/", headers={"Accept": "text/html"}).headers["Location"].endswith("/ui/")
    page = http.get("/ui/calendar")
    assert (page.status_code, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    for link in re.findall(r'(?:href|src)="(/ui/[^"]+)"', page.text):
        assert http.get(link).status_code == 200, link
    session = http.get("/ui/session")
    assert (session.status_code, session.json["domains"]) == (401, ["Default", "Guests"])
    assert http.get("/v1/leases").status_code == 401
    assert http.get("/").status_code == 300


def test_without_a_key_the_api_serves_no_pages(load):
    http = Client(api.build(load(*BUS, *LOGIN)))
    assert http.get("/", headers={"Accept": "text/html"}).status_code == 300
    assert http.get("/ui/").status_code == 401
    assert http.get("/ui/session").status_code == 401
    assert "errors" not in http.get("/ui/session").json


def test_a_key_that_is_none_stops_the_start(load):
    with pytest.raises(ConfigurationError, match=r"\[ui\] session_keys"):
        api.build(load(*BUS, *LOGIN, "[ui]", "session_keys = short"))


def test_standalone_mode_serves_the_pages_by_default(load):
    served = pages.without_keystone(guarded, load())
    assert served is not None
    assert Client(served).get("/ui/").status_code == 200
    assert Client(served).get("/ui/session").json == {"mode": "standalone"}


def test_a_public_url_that_is_none_is_refused(load):
    with pytest.raises(ConfigurationError, match=r"\[ui\] public_url"):
        api.build(load(*BUS, *LOGIN, "[ui]", "public_url = https://"))


def test_a_method_that_does_not_exist_is_refused(load):
    with pytest.raises(ConfigurationError, match=r"\[ui\] sign_in_methods"):
        load("[ui]", "sign_in_methods = password,pigeon")


def test_users_sign_in_by_the_methods_of_the_file(load):
    http = Client(api.build(load(*BUS, *LOGIN, "[ui]", f"session_keys = {KEY}", "sign_in_methods = token")))
    assert http.get("/ui/session").json["methods"] == ["token"]
    refused = http.post("/ui/session", json={"method": "password", "user": "x", "password": "y", "domain": "z"})
    assert refused.status_code in (400, 403), refused.text
