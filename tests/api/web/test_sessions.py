# SPDX-License-Identifier: Apache-2.0
"""Signing in at Keystone from a page: what it gives, what it tells, how it ends."""

from __future__ import annotations

import base64
import json

import pytest
from cryptography.fernet import Fernet

from tests.api.web.conftest import KEY, ORIGIN, Browser
from tests.api.web.keystone import CREDENTIAL, PASSCODE

ART = {"id": "art", "name": "Art", "domain_id": "default"}
PHYSICS = {"id": "physics", "name": "Physics", "domain_id": "default"}


def code(answer) -> tuple[int, str]:
    return answer.status_code, answer.json["errors"][0]["code"]


def test_who_has_not_signed_in_learns_how_to(app):
    browser = Browser(app(domains=("Default", "Guests")))
    answer = browser.open("GET", "/ui/session")
    assert code(answer) == (401, "session.signed_out")
    assert answer.json["mode"] == "keystone"
    assert answer.json["methods"] == ["password", "application_credential"]
    assert answer.json["domains"] == ["Default", "Guests"]
    assert answer.headers["Cache-Control"] == "no-store"
    assert "Set-Cookie" not in answer.headers


def test_a_password_gives_a_session_in_the_first_project(browser, keystone):
    answer = browser.sign_in()
    assert answer.status_code == 200
    told = answer.json
    assert told.pop("csrf_token") == browser.csrf != ""
    assert told == {
        "mode": "keystone",
        "methods": ["password", "application_credential"],
        "domains": [],
        "user": {"id": "id-of-curie", "name": "curie", "domain_id": "default", "domain": "Default"},
        "project": ART,
        "roles": ["member", "reader"],
        "projects": [ART, PHYSICS],
        "can_switch": True,
        "expires_at": "2030-01-01T01:00:00Z",
    }
    assert browser.open("GET", "/ui/session").json == {**told, "csrf_token": browser.csrf}
    assert browser.open("GET", "/v1/leases").json["who"] == ["curie", "art"]


def test_a_session_may_begin_in_another_project(browser):
    assert browser.sign_in(project="physics").json["project"] == PHYSICS
    assert browser.sign_in(project="foreign").json["project"] == ART


def test_the_cookie_is_out_of_reach_of_scripts_and_of_other_hosts(browser):
    header = browser.sign_in().headers["Set-Cookie"]
    name, *attributes = header.split("; ")
    assert name.startswith("__Host-blazar=")
    assert set(attributes) == {"Path=/", "HttpOnly", "SameSite=Strict", "Secure"}
    assert len(header) < 1500


def test_the_cookie_tells_nothing_to_who_has_no_key_and_no_answer_has_a_token(browser, keystone):
    answer = browser.sign_in()
    inside = base64.urlsafe_b64decode(browser.cookie())
    for secret in (b"gAAAA-token", b"curie", b"art"):
        assert secret not in inside
    assert b"gAAAA-token" in Fernet(KEY).decrypt(browser.cookie())
    assert "gAAAA-token" not in answer.text + browser.open("GET", "/ui/session").text


def test_the_cookie_itself_never_reaches_the_application(signed_in):
    for path in ("/v1/leases", "/v2/leases", "/openapi.json", "/healthcheck"):
        assert signed_in.open("GET", path).json["cookie"] is None


def test_only_the_api_gets_the_token(signed_in):
    assert signed_in.open("GET", "/v1/leases").json["token"].startswith("gAAAA-token-2")
    for path in ("/v2/leases", "/openapi.json", "/v1x", "/feeds/x.ics"):
        assert signed_in.open("GET", path).json["token"] is None


def test_an_answer_to_a_cookie_varies_by_it(signed_in):
    assert signed_in.open("GET", "/v1/leases").headers["Vary"] == "X-Auth-Token, Cookie"
    assert Browser(signed_in.client.application).open("GET", "/v1/leases").headers["Vary"] == "X-Auth-Token"


def test_a_token_of_a_program_counts_more_than_a_cookie(signed_in):
    answer = signed_in.open("POST", "/v1/leases", {}, {"X-Auth-Token": "mine", "Sec-Fetch-Site": "cross-site"})
    assert answer.json == {"base": ORIGIN, "token": "mine", "who": None, "cookie": None}


@pytest.mark.parametrize(("user", "password"), [("curie", "wrong"), ("nobody", "radium")])
def test_all_refusals_have_one_sentence(browser, user, password):
    answer = browser.sign_in(user, password=password)
    assert code(answer) == (401, "session.refused")
    assert answer.json["errors"][0]["detail"] == (
        "Keystone does not accept this; check what you entered, and try again."
    )
    assert "Set-Cookie" not in answer.headers
    assert browser.open("GET", "/v1/leases").json["token"] is None


def test_a_user_without_projects_is_told_so_and_the_token_ends(browser, keystone):
    assert code(browser.sign_in("tesla")) == (403, "session.no_project")
    assert keystone.tokens == {}


def test_a_passcode_is_asked_for_where_keystone_asks_for_one(browser, keystone):
    first = browser.sign_in("bohr", project="physics")
    assert code(first) == (401, "session.totp")
    receipt = first.json["receipt"]
    assert "receipt-of-bohr" not in first.text
    assert code(browser.open("POST", "/ui/session", {"method": "totp", "receipt": receipt, "passcode": "000000"})) == (
        401,
        "session.refused",
    )
    second = {"method": "totp", "receipt": receipt, "passcode": PASSCODE, "project": "physics"}
    answer = browser.open("POST", "/ui/session", second)
    assert (answer.status_code, answer.json["user"]["name"], answer.json["project"]) == (200, "bohr", PHYSICS)


def test_a_receipt_that_is_none_of_ours_is_refused(signed_in):
    for receipt in ("receipt-of-bohr", signed_in.cookie()):
        asked = {"method": "totp", "receipt": receipt, "passcode": PASSCODE}
        assert code(signed_in.open("POST", "/ui/session", asked)) == (401, "session.receipt_expired")


def test_a_receipt_is_no_cookie(browser):
    browser.client.set_cookie("__Host-blazar", browser.sign_in("bohr").json["receipt"], domain="cloud.example")
    assert browser.open("GET", "/v1/leases").json["token"] is None


def test_an_application_credential_has_one_project(browser, keystone):
    given = dict(zip(("id", "secret"), CREDENTIAL, strict=True))
    answer = browser.open("POST", "/ui/session", {"method": "application_credential", **given})
    assert (answer.json["project"], answer.json["projects"], answer.json["can_switch"]) == (ART, [ART], False)
    browser.csrf = answer.json["csrf_token"]
    switching = browser.open("PUT", "/ui/session/project", {"project": "physics"})
    assert code(switching) == (409, "session.cannot_switch")
    assert browser.open("DELETE", "/ui/session").json == {"revoked": True}
    assert keystone.tokens == {}


def test_a_token_is_taken_only_if_the_operator_lets_it_be(app, browser, keystone):
    browser.sign_in()
    (token,) = [id_ for id_, (_, project, _) in keystone.tokens.items() if project is None]
    asked = {"method": "token", "token": token, "project": "physics"}
    assert code(browser.open("POST", "/ui/session", asked)) == (403, "session.method_disabled")
    other = Browser(app(methods=("token",)))
    assert other.open("POST", "/ui/session", asked).json["project"] == PHYSICS
    assert code(other.sign_in()) == (403, "session.method_disabled")


def test_a_project_is_switched_without_another_sign_in(signed_in, keystone):
    answer = signed_in.open("PUT", "/ui/session/project", {"project": "physics"})
    assert (answer.status_code, answer.json["project"]) == (200, PHYSICS)
    assert answer.json["csrf_token"] == signed_in.csrf
    assert signed_in.open("GET", "/v1/leases").json["who"] == ["curie", "physics"]
    assert [path for method, path in keystone.asked if method == "POST"] == ["/v3/auth/tokens?nocatalog"] * 3


@pytest.mark.parametrize("project", ["foreign", "closed", "x' or 1=1"])
def test_a_foreign_project_is_not_switched_to(signed_in, project):
    assert code(signed_in.open("PUT", "/ui/session/project", {"project": project})) == (403, "session.no_such_project")
    assert signed_in.open("GET", "/v1/leases").json["who"] == ["curie", "art"]


def test_a_page_of_another_project_is_told_that_another_tab_has_switched(signed_in):
    assert signed_in.open("POST", "/v1/leases", {}, {"X-Blazar-Project": "art"}).status_code == 200
    signed_in.open("PUT", "/ui/session/project", {"project": "physics"})
    answer = signed_in.open("POST", "/v1/leases", {}, {"X-Blazar-Project": "art"})
    assert code(answer) == (409, "session.other_project")
    assert "switched to the project Physics" in answer.json["errors"][0]["detail"]
    assert answer.json["project"] == PHYSICS


def test_signing_out_revokes_all_tokens_of_the_session(signed_in, keystone):
    signed_in.open("PUT", "/ui/session/project", {"project": "physics"})
    cookie = signed_in.cookie()
    answer = signed_in.open("DELETE", "/ui/session")
    assert (answer.status_code, answer.json) == (200, {"revoked": True})
    assert answer.headers["Clear-Site-Data"] == '"cache", "storage"'
    assert signed_in.cookie() is None
    assert keystone.tokens == {}
    signed_in.client.set_cookie("__Host-blazar", cookie, domain="cloud.example")
    again = signed_in.open("GET", "/ui/session")
    assert code(again) == (401, "session.signed_out")
    assert "Max-Age=0" in again.headers["Set-Cookie"]


def test_signing_out_without_keystone_says_how_long_the_token_lives(signed_in, keystone):
    keystone.status = 503
    answer = signed_in.open("DELETE", "/ui/session")
    assert answer.json["revoked"] is False
    assert answer.json["detail"].endswith("remains valid until 2030-01-01T01:00:00Z.")
    assert signed_in.cookie() is None


def test_who_is_not_signed_in_can_sign_out(browser):
    assert browser.open("DELETE", "/ui/session").json == {"revoked": True}


def test_a_session_ends_with_its_token(signed_in, time):
    time.move(3599)
    assert signed_in.open("GET", "/v1/leases").json["who"] == ["curie", "art"]
    time.move(1)
    assert signed_in.open("GET", "/v1/leases").json["token"] is None
    answer = signed_in.open("GET", "/ui/session")
    assert code(answer) == (401, "session.signed_out")
    assert "Max-Age=0" in answer.headers["Set-Cookie"]
    assert code(signed_in.open("PUT", "/ui/session/project", {"project": "art"})) == (401, "session.signed_out")


@pytest.mark.parametrize(
    "change", [lambda value: value[:-4] + "AAA=", lambda value: "", lambda value: "\xe9", str.lower]
)
def test_a_cookie_that_was_changed_is_none(signed_in, change):
    signed_in.client.set_cookie("__Host-blazar", change(signed_in.cookie()), domain="cloud.example")
    assert signed_in.open("GET", "/v1/leases").json["token"] is None


def test_a_key_can_be_replaced_without_signing_anybody_out(app, signed_in):
    new = Fernet.generate_key().decode()
    other = Browser(app(keys=(new, KEY)))
    other.client.set_cookie("__Host-blazar", signed_in.cookie(), domain="cloud.example")
    assert other.open("GET", "/v1/leases").json["who"] == ["curie", "art"]
    other.csrf = signed_in.csrf
    other.open("PUT", "/ui/session/project", {"project": "physics"})
    assert json.loads(Fernet(new).decrypt(other.cookie()))["project"] == {**PHYSICS, "domain": None}
    third = Browser(app(keys=(new,)))
    third.client.set_cookie("__Host-blazar", signed_in.cookie(), domain="cloud.example")
    assert third.open("GET", "/v1/leases").json["token"] is None


@pytest.mark.parametrize("status", [500, 503])
def test_while_keystone_fails_the_answer_is_503_and_says_so(browser, keystone, status):
    keystone.status = status
    answer = browser.sign_in()
    assert code(answer) == (503, "session.identity_unavailable")
    assert answer.headers["Retry-After"] == "5"


def test_a_keystone_that_cannot_be_reached_is_503(app):
    assert code(Browser(app(url="http://127.0.0.1:9")).sign_in()) == (503, "session.identity_unavailable")


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"method": "password", "user": "curie", "domain": "Default"}, 400, "password"),
        ({"method": "password", "user": 5, "domain": "Default", "password": "x"}, 400, "user"),
        ({"method": "password", "user": "", "domain": "Default", "password": "x"}, 400, "user"),
        ({"method": "password", "user": "u" * 256, "domain": "Default", "password": "x"}, 400, "user"),
        ({"method": "carrier pigeon"}, 400, "carrier pigeon"),
        ({"method": "application_credential", "id": "x", "secret": "s", "user": "y"}, 400, "user"),
        ({}, 400, "method"),
        ([1], 400, "body"),
        ({"method": "password", "user": "u", "domain": "d", "password": "x" * 20_000}, 413, "16384"),
    ],
)
def test_an_invalid_body_is_refused_with_the_field_and_without_what_was_sent(browser, body, status, words):
    answer = browser.open("POST", "/ui/session", body)
    assert answer.status_code == status
    assert words in answer.json["errors"][0]["detail"]
    assert "xxx" not in answer.text


def test_a_form_cannot_sign_in(browser):
    given = {"data": {"method": "password", "user": "curie", "domain": "Default", "password": "radium"}}
    answer = browser.client.post("/ui/session", base_url=ORIGIN, headers={"Sec-Fetch-Site": "same-origin"}, **given)
    assert code(answer) == (415, "session.unsupported_media_type")


@pytest.mark.parametrize(("method", "path"), [("PUT", "/ui/session"), ("GET", "/ui/session/project")])
def test_another_method_is_405(browser, method, path):
    answer = browser.open(method, path)
    assert code(answer) == (405, "session.method_not_allowed")
    assert "Allow" in answer.headers


def test_another_url_is_404(browser):
    assert code(browser.open("GET", "/ui/session/more")) == (404, "session.not_found")
