# SPDX-License-Identifier: Apache-2.0
"""Who may use a session: our own pages, and no page of another site, port or scheme."""

from __future__ import annotations

import pytest
from werkzeug.test import Client

from blazar.api.web.origin import client_address, origin_of
from tests.api.web.conftest import ORIGIN, Browser
from tests.api.web.test_sessions import code

READ = ("GET", "/v1/leases")
CHANGE = ("POST", "/v1/leases")
NO_SITE = {"Sec-Fetch-Site": None}


@pytest.mark.sample(8)
@pytest.mark.parametrize("site", ["cross-site", "same-site", "none", "", "Same-Origin", "same-origin, same-origin"])
@pytest.mark.parametrize(("method", "path"), [READ, CHANGE, ("GET", "/ui/session"), ("DELETE", "/ui/session")])
def test_a_request_that_no_page_of_ours_made_cannot_use_the_session(signed_in, method, path, site):
    answer = signed_in.open(method, path, headers={"Sec-Fetch-Site": site, "Origin": ORIGIN})
    assert code(answer) == (403, "session.not_same_origin")
    assert signed_in.open("GET", "/v1/leases").json["who"] == ["curie", "art"]


FOREIGN = ["null", "https://evil.example", "https://cloud.example:8443", "http://cloud.example", "https://cloud", ""]


@pytest.mark.sample(10)
@pytest.mark.parametrize("origin", FOREIGN)
@pytest.mark.parametrize(("method", "path"), [READ, CHANGE, ("PUT", "/ui/session/project")])
def test_without_fetch_headers_the_origin_decides(signed_in, method, path, origin):
    answer = signed_in.open(method, path, headers={**NO_SITE, "Origin": origin})
    assert code(answer) == (403, "session.not_same_origin")


def test_without_fetch_headers_our_own_origin_is_enough(signed_in):
    assert signed_in.open(*CHANGE, headers={**NO_SITE, "Origin": ORIGIN}).status_code == 200
    assert signed_in.open(*CHANGE, headers={**NO_SITE, "Origin": f"{ORIGIN}:443"}).status_code == 200


def test_a_change_with_neither_is_refused_and_a_read_is_not(signed_in):
    assert code(signed_in.open(*CHANGE, headers=NO_SITE)) == (403, "session.not_same_origin")
    assert signed_in.open(*READ, headers=NO_SITE).status_code == 200


@pytest.mark.sample(11)
@pytest.mark.parametrize("given", [None, "", "x", "\xe9"])
@pytest.mark.parametrize(
    ("method", "path"),
    [CHANGE, ("PUT", "/v1/leases/1"), ("DELETE", "/v1/leases/1"), ("DELETE", "/ui/session"), ("PATCH", "/v1/x")],
)
def test_a_change_needs_the_token_that_only_our_pages_know(signed_in, keystone, method, path, given):
    held = dict(keystone.tokens)
    assert code(signed_in.open(method, path, headers={"X-CSRF-Token": given})) == (403, "session.csrf")
    assert keystone.tokens == held


def test_the_token_of_another_session_does_not_help(app, signed_in):
    other = Browser(signed_in.client.application)
    other.sign_in("noether")
    assert code(signed_in.open(*CHANGE, headers={"X-CSRF-Token": other.csrf})) == (403, "session.csrf")


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {**NO_SITE, "Origin": "https://evil.example"},
        NO_SITE,
    ],
)
def test_another_site_cannot_sign_anybody_in(browser, keystone, headers):
    assert code(browser.sign_in(headers=headers)) == (403, "session.not_same_origin")
    assert keystone.asked == []


@pytest.mark.parametrize("origin", ["http://cloud.example", "http://192.0.2.7:1234"])
def test_without_https_nobody_signs_in(app, keystone, origin):
    assert code(Browser(app(), origin).sign_in()) == (403, "session.https")
    assert keystone.asked == []


@pytest.mark.parametrize("origin", ["http://127.0.0.1:1234", "http://localhost:1234"])
def test_on_the_own_machine_http_is_enough(app, origin):
    browser = Browser(app(), origin)
    answer = browser.sign_in()
    assert answer.headers["Set-Cookie"].startswith("blazar-loopback=")
    assert "Secure" not in answer.headers["Set-Cookie"]
    assert browser.open(*READ).json["who"] == ["curie", "art"]


def test_behind_a_proxy_that_ends_tls_the_public_url_is_the_truth(app):
    """The service sees http and the name of its own machine."""
    browser = Browser(app(public_url="https://Cloud.Example/reservation/"), "http://backend:1234")
    by_origin = {**NO_SITE, "Origin": "https://cloud.example"}
    answer = browser.sign_in(headers=by_origin)
    assert answer.headers["Set-Cookie"].startswith("__Host-blazar=")
    assert browser.open(*CHANGE, headers=by_origin).json["who"] == ["curie", "art"]
    assert browser.open(*CHANGE, headers=by_origin).json["base"] == "https://cloud.example/reservation"
    refused = browser.open(*CHANGE, headers={**NO_SITE, "Origin": "http://backend:1234"})
    assert code(refused) == (403, "session.not_same_origin")


def test_it_works_below_a_prefix(app):
    browser = Browser(app())
    below = {"environ_overrides": {"SCRIPT_NAME": "/reservation"}, "base_url": ORIGIN}
    headers = {"Sec-Fetch-Site": "same-origin"}
    body = {"method": "password", "user": "curie", "domain": "Default", "password": "radium"}
    assert browser.client.post("/ui/session", json=body, headers=headers, **below).status_code == 200
    assert browser.client.get("/v1/leases", headers=headers, **below).json["who"] == ["curie", "art"]


def test_cookies_of_other_services_of_the_host_do_not_matter(signed_in):
    value = signed_in.cookie()
    given = f'csrftoken="a b; session[x]={{1}}; __Host-blazar={value}; sessionid=\xe9'
    client = Client(signed_in.client.application, use_cookies=False)
    answer = client.get("/v1/leases", base_url=ORIGIN, headers={"Cookie": given, "Sec-Fetch-Site": "same-origin"})
    assert answer.json["who"] == ["curie", "art"]


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://Cloud.Example/x", "https://cloud.example"),
        ("https://cloud.example:443", "https://cloud.example"),
        ("http://cloud.example:80/", "http://cloud.example"),
        ("http://[::1]:1234", "http://[::1]:1234"),
        ("https://cloud.example:99999", ""),
        ("ftp://cloud.example", ""),
        ("null", ""),
        ("https://", ""),
        ("", ""),
    ],
)
def test_origins_are_written_as_browsers_write_them(url, origin):
    assert origin_of(url) == origin


@pytest.mark.parametrize(
    ("environ", "proxies", "address"),
    [
        ({"REMOTE_ADDR": "192.0.2.1"}, 0, "192.0.2.1"),
        ({"REMOTE_ADDR": "192.0.2.1", "HTTP_X_FORWARDED_FOR": "198.51.100.9"}, 0, "192.0.2.1"),
        ({"REMOTE_ADDR": "x", "HTTP_X_FORWARDED_FOR": "10.6.6.6, 198.51.100.9"}, 1, "198.51.100.9"),
        ({"REMOTE_ADDR": "x", "HTTP_X_FORWARDED_FOR": "10.6.6.6, 198.51.100.9, 192.0.2.8"}, 2, "198.51.100.9"),
        ({"REMOTE_ADDR": "x", "HTTP_X_FORWARDED_FOR": "198.51.100.9"}, 3, "198.51.100.9"),
        ({"HTTP_FORWARDED": 'for=10.6.6.6, for="[2001:db8::1]:4711";proto=https'}, 1, "2001:db8::1"),
        ({"REMOTE_ADDR": "x", "HTTP_X_FORWARDED_FOR": "a\r\nb"}, 1, "unknown"),
        ({"REMOTE_ADDR": "192.0.2.1"}, 1, "192.0.2.1"),
        ({}, 1, "unknown"),
    ],
)
def test_the_address_of_a_client_is_what_our_own_proxy_has_seen(environ, proxies, address):
    assert client_address(environ, proxies) == address
