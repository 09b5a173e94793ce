# SPDX-License-Identifier: Apache-2.0
"""The library behind Keystone: token, catalog, and what is told if either is missing."""

from __future__ import annotations

import pytest
import requests_mock
from blazarclient import exception
from blazarclient.library import Reservations
from blazarclient.library.transport import MICROVERSION
from keystoneauth1 import fixture, session
from keystoneauth1.identity import v3

from tests.blazarclient.library.stub import NEWEST, SPOKEN, lease

KEYSTONE = "https://keystone.example/v3"
SERVICE = "https://cloud.example/reservation"
VERSION = {"id": "v1.0", "status": "CURRENT", "min_version": "1.0", "max_version": MICROVERSION}


def token(*endpoints, project="physics"):
    made = fixture.V3Token(user_name="curie", project_id=project)
    for url, interface, region in endpoints:
        service = made.add_service("reservation", "blazar")
        service.add_endpoint(interface, url, region=region)
    return made


@pytest.fixture
def cloud():
    with requests_mock.Mocker() as cloud:
        discovery = fixture.V3Discovery(KEYSTONE)
        cloud.get(KEYSTONE, json={"version": discovery})
        yield cloud


@pytest.fixture
def logged_in(cloud):
    """Make the library of somebody with such tokens, one after the other."""

    def make(*tokens, **options):
        answers = [{"json": made, "headers": {"X-Subject-Token": f"token-{n}"}} for n, made in enumerate(tokens)]
        cloud.post(f"{KEYSTONE}/auth/tokens", answers)
        login = v3.Password(KEYSTONE, username="curie", password="radium", user_domain_id="default", project_id="p")
        return Reservations(session.Session(auth=login), sleep=lambda _: None, **options)

    return make


JSON = {"Content-Type": "application/json"}
WRONG = {"title": "Unauthorized", "message": "Wrong password"}
PUBLIC = (f"{SERVICE}/v1", "public", "one")


def test_the_catalog_says_where_the_service_is(cloud, logged_in):
    asked = cloud.get(f"{SERVICE}/v1/leases/x", json={"lease": lease()}, headers=NEWEST)
    assert logged_in(token(PUBLIC)).leases.get("x").name == "training"
    sent = asked.last_request.headers
    assert (sent["X-Auth-Token"], sent["OpenStack-API-Version"]) == ("token-0", SPOKEN)


def test_a_catalog_without_version_in_its_url_serves_too(cloud, logged_in):
    links = [{"rel": "self", "href": f"{SERVICE}/v1"}]
    cloud.get(SERVICE, json={"versions": [{**VERSION, "links": links}]}, status_code=300)
    cloud.get(f"{SERVICE}/v1/leases/x", json={"lease": lease()}, headers=NEWEST)
    assert logged_in(token((SERVICE, "public", "one"))).leases.get("x").name == "training"


def test_region_and_interface_are_chosen(cloud, logged_in):
    inside = ("https://inside.example/v1", "internal", "two")
    cloud.get("https://inside.example/v1/leases/x", json={"lease": lease()}, headers=NEWEST)
    chosen = logged_in(token(PUBLIC, inside), region_name="two", interface="internal")
    assert chosen.leases.get("x").name == "training"


def test_a_token_that_has_expired_is_renewed_and_the_request_repeated(cloud, logged_in):
    expired = {"status_code": 401, "json": {"error": {"code": 401, "message": "Expired"}}}
    asked = cloud.post(
        f"{SERVICE}/v1/leases", [expired, {"status_code": 201, "json": {"lease": lease()}, "headers": NEWEST}]
    )
    made = logged_in(token(PUBLIC), token(PUBLIC)).leases.create("training", reservations=[], end_date="+1h")
    assert made.name == "training"
    first, second = asked.request_history
    assert (first.headers["X-Auth-Token"], second.headers["X-Auth-Token"]) == ("token-0", "token-1")
    assert first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"]


def test_a_token_that_is_refused_again_is_told(cloud, logged_in):
    body = {"error": {"code": 401, "message": "The request you have made requires authentication."}}
    cloud.get(f"{SERVICE}/v1/leases/x", status_code=401, json=body)
    with pytest.raises(exception.NotAuthorized, match="^The request you have made requires authentication"):
        logged_in(token(PUBLIC)).leases.get("x")


def test_a_wrong_password_is_told(cloud, logged_in):
    reservations = logged_in(token(PUBLIC))
    cloud.post(f"{KEYSTONE}/auth/tokens", status_code=401, json={"error": {**WRONG, "code": 401}}, headers=JSON)
    with pytest.raises(exception.NotAuthorized, match="^The cloud does not let you in: Wrong password"):
        reservations.leases.get("x")


def test_a_catalog_without_the_service_is_told(logged_in):
    other = token()
    other.add_service("compute").add_standard_endpoints(public="https://nova.example")
    with pytest.raises(exception.NoBlazarEndpoint, match="^The catalog of the cloud has no reservation service for"):
        logged_in(other).leases.get("x")


def test_a_region_without_the_service_is_told(logged_in):
    with pytest.raises(exception.NoBlazarEndpoint, match="region"):
        logged_in(token(PUBLIC), region_name="nowhere").leases.get("x")


def test_a_token_without_project_is_told(logged_in):
    with pytest.raises(exception.NoBlazarEndpoint, match="no catalog.*Name a project"):
        logged_in(token(project=None)).leases.get("x")


def test_keystone_that_fails_is_told(cloud, logged_in):
    reservations = logged_in(token(PUBLIC))
    cloud.post(f"{KEYSTONE}/auth/tokens", status_code=503, text="<html>Busy</html>")
    with pytest.raises(exception.ServiceUnavailable, match="^No token, or no endpoint: HTTP 503: "):
        reservations.leases.get("x")
