# SPDX-License-Identifier: Apache-2.0
"""The API behind Keystone: whom it believes, whom it answers, and what it keeps to itself."""

from __future__ import annotations

import re

import pytest
from keystonemiddleware.auth_token import AuthProtocol, InvalidToken
from werkzeug.test import Client, TestResponse

from blazar.api.http.identity import KeystoneIdentity, Unauthenticated
from blazar.api.http.middleware import ExchangeLog, behind_keystone
from blazar.cmd import config
from blazar.context import current
from tests.api.conftest import app_of
from tests.api.leases.test_rest_v1 import LEASE
from tests.cmd.stub import StubCloud
from tests.observed import FailingManager, ObservedManager

PHYSICS = {"id": "physics", "name": "Physics", "domain": {"id": "default", "name": "Default"}}
ART = {**PHYSICS, "id": "art"}


def token(*roles: str, project: dict | None = PHYSICS, user: str = "curie", **more: object) -> dict:
    """Return what Keystone tells of a token."""
    scope = {"project": project} if project else {}
    return {
        "token": {
            "methods": ["password"],
            "user": {"id": user, "name": user, "domain": {"id": "default", "name": "Default"}},
            "roles": [{"id": role, "name": role} for role in roles],
            "issued_at": "2020-01-01T00:00:00.000000Z",
            "expires_at": "2099-01-01T00:00:00.000000Z",
            "audit_ids": ["audit"],
            **scope,
            **more,
        }
    }


TOKENS = {
    "t-member": token("member", "reader"),
    "t-reader": token("reader"),
    "t-other": token("member", "reader", project=ART, user="frida"),
    "t-admin": token("admin", "member", "reader", project={**PHYSICS, "id": "ops"}, user="root"),
    "t-service": token("service", project={**PHYSICS, "id": "service"}, user="nova"),
    "t-none": token(),
    "t-mixed-case": token("Member", "Reader"),
    "t-unscoped": token(project=None),
    "t-system": token("admin", "member", "reader", project=None, system={"all": True}),
    "t-domain": token("admin", project=None, domain={"id": "default", "name": "Default"}),
    "t-expired": token("member", "reader", expires_at="2020-01-02T00:00:00.000000Z"),
}


@pytest.fixture
def keystone(monkeypatch) -> dict[str, dict]:
    """The tokens that Keystone knows."""
    known = dict(TOKENS)

    def fetch(self: object, given: str, **_: object) -> dict:
        if given not in known:
            raise InvalidToken("unknown")
        return known[given]

    monkeypatch.setattr(AuthProtocol, "fetch_token", fetch)
    return known


@pytest.fixture
def a_cloud(world, tmp_path):
    """Make an HTTP client of the API as a cloud serves it, with further lines of configuration."""

    def make(*lines: str, url: str = "http://127.0.0.1:9/v3", wrap=lambda app: app, manager=world.manager) -> Client:
        file = tmp_path / "blazar.conf"
        login = ["auth_type = v3password", f"auth_url = {url}", "username = blazar", "password = geheim"]
        more = [
            "user_domain_id = default",
            "www_authenticate_uri = https://keystone.example",
            "http_request_max_retries = 0",
        ]
        file.write_text("\n".join(["[keystone_authtoken]", *login, *more, *lines]), encoding="utf-8")
        conf = config.load(["--config-file", str(file)], program="blazar-test")
        app = app_of(manager, KeystoneIdentity(), auth_uri=None)
        return Client(wrap(behind_keystone(app, conf)))

    return make


@pytest.fixture
def http(a_cloud, keystone) -> Client:
    return a_cloud()


def of(name: str) -> dict[str, str]:
    return {"X-Auth-Token": name}


def test_a_bare_options_is_401_as_load_balancers_expect(http):
    assert http.options("/").status_code == 401


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("path", "status"), [("/", 300), ("/versions", 300), ("/v1", 200), ("/v1/", 200), ("/openapi.json", 200)]
)
@pytest.mark.parametrize("headers", [{}, of("t-unknown")], ids=["none", "bad"])
def test_versions_need_no_token(http, path, status, headers):
    assert http.get(path, headers=headers).status_code == status


def test_the_health_check_needs_no_token(a_cloud, keystone, world):
    http = a_cloud(manager=FailingManager(world.manager, {"resources.properties": ZeroDivisionError()}))
    assert http.get("/healthcheck").status_code == 200
    assert http.head("/healthcheck").status_code in (200, 204)
    assert http.get("/healthcheck/more").status_code == 401


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "headers", [{}, of(""), of("t-unknown"), of("t-expired"), {"Authorization": "Basic Og=="}], ids=str
)
def test_without_a_valid_token_the_answer_is_401_and_names_keystone(http, headers):
    answer = http.get("/v1/leases", headers=headers)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == 'Keystone uri="https://keystone.example"'
    assert answer.json["error"]["code"] == 401
    assert re.fullmatch(r"req-[0-9a-f-]{36}", answer.headers["X-Openstack-Request-Id"])


@pytest.mark.sample(3)
@pytest.mark.parametrize("path", ["/v1/leases", "/v1/os-hosts", "/v1/nothing", "/v2/leases", "/v1/leases/x"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "OPTIONS"])
def test_every_other_path_is_401_without_a_token(http, method, path):
    assert http.open(path, method=method).status_code == 401


CLAIMS = {
    "X-Identity-Status": "Confirmed",
    "X-User-Id": "root",
    "X-Project-Id": "art",
    "X-Roles": "admin",
    "X-Is-Admin-Project": "True",
    "Openstack-System-Scope": "all",
}


@pytest.mark.parametrize("status", ["Confirmed", "Unknown", "confirmed"])
def test_identity_headers_of_a_client_are_ignored(http, status):
    assert http.get("/v1/leases", headers={**CLAIMS, "X-Identity-Status": status}).status_code == 401


def test_identity_headers_beside_a_token_are_ignored(http):
    assert http.get("/v1/os-hosts", headers={**CLAIMS, **of("t-member")}).status_code == 403
    lease = http.post("/v1/leases", json=LEASE, headers={**CLAIMS, **of("t-member")}).json["lease"]
    assert (lease["user_id"], lease["project_id"]) == ("curie", "physics")


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["t-unscoped", "t-none", "t-service", "t-system", "t-domain"])
def test_a_token_without_project_or_known_role_is_refused(http, name):
    for path in ("/v1/leases", "/v1/os-hosts"):
        answer = http.get(path, headers=of(name))
        assert answer.status_code == 403
        assert "Policy doesn't allow" in answer.json["error_message"]
    assert http.post("/v1/leases", json=LEASE, headers=of(name)).status_code == 403


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("name", "shown", "renamed", "deleted"),
    [
        ("t-member", 200, 200, 204),
        ("t-mixed-case", 200, 200, 204),
        ("t-reader", 200, 403, 403),
        ("t-other", 403, 403, 403),
        ("t-none", 403, 403, 403),
        ("t-service", 403, 403, 403),
        ("t-admin", 200, 200, 204),
    ],
)
def test_permissions_depend_on_the_project_of_the_lease(http, name, shown, renamed, deleted):
    lease = http.post("/v1/leases", json=LEASE, headers=of("t-member")).json["lease"]
    url = f"/v1/leases/{lease['id']}"
    assert http.get(url, headers=of(name)).status_code == shown
    assert http.put(url, json={"name": "renamed"}, headers=of(name)).status_code == renamed
    assert http.delete(url, headers=of(name)).status_code == deleted


def test_a_project_lists_its_own_leases_and_operators_all(http):
    ids = [
        http.post("/v1/leases", json=LEASE, headers=of(name)).json["lease"]["id"] for name in ("t-member", "t-other")
    ]

    def listed(name: str) -> list[str]:
        return sorted(lease["id"] for lease in http.get("/v1/leases", headers=of(name)).json["leases"])

    assert listed("t-reader") == ids[:1]
    assert listed("t-other") == ids[1:]
    assert listed("t-admin") == sorted(ids)


def test_hosts_are_for_operators(http):
    statuses = {name: http.get("/v1/os-hosts", headers=of(name)).status_code for name in TOKENS}
    assert {name for name, status in statuses.items() if status == 200} == {"t-admin"}


def test_a_service_token_beside_a_valid_token_changes_nothing(http):
    for given in ("t-service", "t-admin", "t-unknown"):
        headers = {**of("t-member"), "X-Service-Token": given}
        assert http.get("/v1/os-hosts", headers=headers).status_code == 403
        assert http.get("/v1/leases", headers=headers).status_code == 200


def test_a_given_request_id_is_passed_on_and_the_answer_has_ours(a_cloud, keystone, world):
    seen = []

    def note(name, call, *arguments, **more):
        if name == "leases.revisions":
            seen.append(current().request_id)
        return call(*arguments, **more)

    http = a_cloud(manager=ObservedManager(world.manager, note))
    given = "req-11111111-2222-3333-4444-555555555555"
    answer = http.get("/v1/leases", headers={**of("t-member"), "X-OpenStack-Request-ID": given})
    assert seen == [given]
    assert answer.headers["X-Openstack-Request-Id"] not in ("", given)
    http.get("/v1/leases", headers={**of("t-member"), "X-OpenStack-Request-ID": "no id\tof ours"})
    assert seen[1].startswith("req-")


HORIZON = "https://horizon.example"


@pytest.fixture
def shared(a_cloud, keystone) -> Client:
    """An API that web pages of one origin may use."""
    return a_cloud("[cors]", f"allowed_origin = {HORIZON}")


def permissions(answer: TestResponse) -> list[str]:
    return [name for name, _ in answer.headers if name.startswith("Access-Control-")]


def preflight(client: Client, origin: str, *headers: str) -> TestResponse:
    asked = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    if headers:
        asked["Access-Control-Request-Headers"] = ",".join(headers)
    return client.options("/v1/leases", headers=asked)


def test_a_page_of_an_allowed_origin_may_send_a_token_and_read_the_answer(shared):
    asked = preflight(shared, HORIZON, "X-Auth-Token", "Content-Type", "OpenStack-API-Version")
    assert asked.status_code == 200
    assert asked.headers["Access-Control-Allow-Origin"] == HORIZON
    assert "X-Auth-Token" in asked.headers["Access-Control-Allow-Headers"]
    answer = shared.get("/v1/leases", headers={**of("t-member"), "Origin": HORIZON})
    assert answer.status_code == 200
    assert answer.headers["Access-Control-Allow-Origin"] == HORIZON
    assert "X-OpenStack-Request-ID" in answer.headers["Access-Control-Expose-Headers"]
    assert "Origin" in answer.headers["Vary"]


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "https://horizon.example.evil", "http://horizon.example"]
)
def test_a_page_of_another_origin_gets_no_cors_headers(shared, origin):
    for answer in (
        preflight(shared, origin, "X-Auth-Token"),
        shared.get("/v1/leases", headers={**of("t-member"), "Origin": origin}),
    ):
        assert permissions(answer) == []


def test_without_allowed_origins_no_page_gets_cors_headers(http):
    assert permissions(preflight(http, HORIZON)) == []


PROXIED = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "cloud.example", "X-Forwarded-Prefix": "/reservation"}


def link(client: Client) -> str:
    return client.get("/", headers=PROXIED).json["versions"][0]["links"][0]["href"]


def test_headers_of_a_proxy_count_only_if_an_operator_enables_them(a_cloud, keystone):
    assert link(a_cloud()) == "http://localhost/v1"
    trusting = a_cloud("[oslo_middleware]", "enable_proxy_headers_parsing = true")
    assert link(trusting) == "https://cloud.example/reservation/v1"


def test_it_works_below_a_mount(http):
    answer = http.get("/v1/leases", headers=of("t-member"), environ_overrides={"SCRIPT_NAME": "/reservation"})
    assert answer.status_code == 200


def test_while_keystone_is_unreachable_the_answer_is_503_and_not_401(a_cloud):
    http = a_cloud()
    answer = http.get("/v1/leases", headers=of("t-member"))
    assert answer.status_code == 503
    assert answer.json["error_message"].startswith("Keystone cannot validate the token")
    assert answer.headers["X-Openstack-Request-Id"]
    assert "WWW-Authenticate" not in answer.headers
    assert http.get("/v1/leases").status_code == 401
    assert http.get("/", headers=of("t-member")).status_code == 300


@pytest.mark.sample(2)
@pytest.mark.parametrize("status", [401, 500, 503])
def test_an_error_of_keystone_is_not_reported_as_an_invalid_token(a_cloud, status, caplog):
    stub = StubCloud(statuses={"/v3": status})
    try:
        assert a_cloud(url=f"{stub.url}/v3").get("/v1/leases", headers=of("t-member")).status_code == 503
    finally:
        stub.close()
    (said,) = [one for one in caplog.messages if one.startswith("Keystone cannot validate tokens: ")]
    # Whose password is another one now is told in words.
    assert ("401 to the user and the password of [keystone_authtoken]" in said) == (status == 401), said


def test_neither_tokens_nor_passwords_are_logged(a_cloud, keystone, caplog):
    caplog.set_level("DEBUG")
    keystone["t-very-secret"] = token("member", "reader")
    http = a_cloud(wrap=ExchangeLog)
    secrets = {
        "X-Auth-Token": "t-very-secret",
        "X-Service-Token": "t-other-secret",
        "X-Storage-Token": "t-third-secret",
        "X-Subject-Token": "t-fourth-secret",
        "Authorization": "Basic fifth-secret",
        "Cookie": "session=sixth-secret",
    }
    assert http.get("/v1/leases?limit=secret-7&secret-8", headers=secrets).status_code == 200
    assert "/v1/leases" in caplog.text
    assert "'QUERY_STRING': 'limit=***&***'" in caplog.text
    assert "secret" not in caplog.text
    assert "geheim" not in caplog.text


def test_a_cookie_that_an_answer_sets_is_not_logged(caplog):
    caplog.set_level("INFO")

    def app(environ, start_response):
        start_response("200 OK", [("Set-Cookie", "session=very-secret"), ("Server", "x")])
        return [b""]

    Client(ExchangeLog(app)).get("/")
    assert "('Set-Cookie', '***'), ('Server', 'x')" in caplog.text
    assert "secret" not in caplog.text


def test_a_failure_to_reach_keystone_is_logged_without_the_token_or_the_password(a_cloud, caplog):
    caplog.set_level("DEBUG")
    a_cloud().get("/v1/leases", headers=of("t-very-secret"))
    assert "127.0.0.1" in caplog.text
    assert "t-very-secret" not in caplog.text
    assert "geheim" not in caplog.text


@pytest.mark.parametrize("status", [None, "", "Invalid", "confirmed", "Confirmed, Confirmed"], ids=repr)
def test_only_a_confirmed_identity_is_accepted(status):
    headers = {"X-User-Id": "curie", "X-Project-Id": "physics", "X-Roles": "admin"}
    with pytest.raises(Unauthenticated):
        KeystoneIdentity().authenticate(headers if status is None else {**headers, "X-Identity-Status": status})


def test_the_caller_is_taken_from_the_headers_of_the_middleware():
    caller = KeystoneIdentity().authenticate(
        {
            "X-Identity-Status": "Confirmed",
            "X-User-Id": "curie",
            "X-Project-Id": "physics",
            "X-Roles": "Member, reader,,",
            "X-User-Domain-Id": "default",
        }
    )
    assert (caller.user_id, caller.project_id, caller.roles) == ("curie", "physics", ("member", "reader"))
    assert caller.credentials == {"user_domain_id": "default", "is_admin_project": True}
