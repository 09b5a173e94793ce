# SPDX-License-Identifier: Apache-2.0
"""Who asks and where the service is, by options, variables and clouds.yaml."""

from __future__ import annotations

import argparse
import json

import pytest
import requests_mock
from blazarclient import exception
from blazarclient.authentication import adapter
from blazarclient.cloud_options import add_options, versioned
from keystoneauth1 import fixture

KEYSTONE = "https://keystone.example/v3"
SERVICE = "https://blazar.example/v1"
LOGIN = {"OS_AUTH_URL": KEYSTONE, "OS_USERNAME": "alice", "OS_PASSWORD": "secret", "OS_PROJECT_NAME": "physics"}


def made(*arguments, **environment):
    """Return the adapter of options and variables."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add_options(parser, arguments)
    return adapter(parser.parse_args(arguments), environment)


@pytest.fixture
def cloud(monkeypatch):
    """Keystone with a service in two regions; yields the bodies that log in, as they came."""
    token = fixture.V3Token(project_id="p1")
    service = token.add_service("reservation")
    for region in ("north", "south"):
        service.add_standard_endpoints(
            region=region, public=f"{SERVICE}?{region}", internal=f"{SERVICE}?{region}-internal"
        )
    with requests_mock.Mocker() as mock:
        mock.get(KEYSTONE, json={"version": fixture.V3Discovery(KEYSTONE)})
        mock.post(f"{KEYSTONE}/auth/tokens", json=token, headers={"X-Subject-Token": "t0"})
        mock.get(f"{SERVICE}/leases", json={"leases": []})
        yield mock


def identity(mock):
    (sent,) = [json.loads(request.text)["auth"] for request in mock.request_history if request.method == "POST"]
    return sent


def test_an_openrc_file_is_enough(cloud):
    made(**LOGIN, OS_USER_DOMAIN_NAME="Default", OS_PROJECT_DOMAIN_NAME="Default").get_token()
    sent = identity(cloud)
    assert sent["identity"]["password"]["user"] == {
        "name": "alice",
        "password": "secret",
        "domain": {"name": "Default"},
    }
    assert sent["scope"] == {"project": {"name": "physics", "domain": {"name": "Default"}}}


def test_without_a_domain_it_is_the_usual_one(cloud):
    made(**LOGIN).get_token()
    sent = identity(cloud)
    assert sent["identity"]["password"]["user"]["domain"] == {"id": "default"}
    assert sent["scope"]["project"]["domain"] == {"id": "default"}


def test_an_option_goes_before_a_variable(cloud):
    made("--os-username", "bob", "--os-project-id", "p9", **LOGIN).get_token()
    sent = identity(cloud)
    assert sent["identity"]["password"]["user"]["name"] == "bob"
    assert sent["scope"]["project"] == {"id": "p9"}


def test_an_application_credential_is_used_if_there_is_one(cloud):
    credential = {"OS_APPLICATION_CREDENTIAL_ID": "c1", "OS_APPLICATION_CREDENTIAL_SECRET": "s1"}
    made(OS_AUTH_URL=KEYSTONE, **credential).get_token()
    assert identity(cloud)["identity"]["application_credential"] == {"id": "c1", "secret": "s1"}


@pytest.mark.parametrize("spelling", ["--os-application-credential-", "--os-application_credential_"])
def test_an_application_credential_may_be_named_by_options(cloud, spelling):
    made(f"{spelling}id", "c1", f"{spelling}secret", "s1", OS_AUTH_URL=KEYSTONE).get_token()
    assert identity(cloud)["identity"]["application_credential"] == {"id": "c1", "secret": "s1"}


def test_a_token_on_the_command_line_goes_before_a_password_in_the_environment(cloud):
    made("--os-token", "t1", **LOGIN).get_token()
    assert identity(cloud)["identity"]["token"] == {"id": "t1"}


def test_a_system_scope_on_the_command_line_takes_the_place_of_the_project(cloud):
    made("--os-system-scope", "all", **LOGIN).get_token()
    assert identity(cloud)["scope"] == {"system": {"all": True}}


def test_a_project_on_the_command_line_takes_the_place_of_a_system_scope(cloud):
    made("--os-project-id", "p9", **{**LOGIN, "OS_SYSTEM_SCOPE": "all"}).get_token()
    assert identity(cloud)["scope"]["project"] == {"id": "p9"}


def test_region_and_interface_choose_the_endpoint(cloud):
    found = made("--os-region-name", "south", "--os-interface", "internal", **LOGIN)
    assert found.get_endpoint() == f"{SERVICE}?south-internal"


@pytest.mark.parametrize(
    "variables", [{"OS_INTERFACE": "internal"}, {"OS_ENDPOINT_TYPE": "internalURL"}, {"OS_ENDPOINT_TYPE": "internal"}]
)
def test_old_and_new_variables_choose_the_interface(cloud, variables):
    assert made(**LOGIN, **variables, OS_REGION_NAME="north").get_endpoint() == f"{SERVICE}?north-internal"


@pytest.mark.parametrize(
    "options", [{"OS_ENDPOINT_OVERRIDE": "https://other.example"}, {"OS_ENDPOINT_OVERRIDE": "https://other.example/v1"}]
)
def test_a_url_of_the_service_goes_before_the_catalog(cloud, options):
    cloud.get("https://other.example/v1/leases", json={"leases": []})
    assert made(**LOGIN, **options).get("/leases").status_code == 200


def test_deprecated_options_choose_the_type_of_the_service(cloud):
    assert made("--service-type", "booking", **LOGIN).service_type == "booking"
    assert made(BLAZAR_SERVICE_TYPE="booking", **LOGIN).service_type == "booking"
    assert made(**LOGIN).service_type == "reservation"


@pytest.mark.parametrize("url", ["http://127.0.0.1:1234", "http://127.0.0.1:1234/", "http://127.0.0.1:1234/v1"])
@pytest.mark.parametrize("kind", [(), ("--os-auth-type", "none")])
def test_a_service_without_keystone_needs_its_url_alone(url, kind):
    found = made(*kind, "--os-endpoint", url)
    assert found.endpoint_override == "http://127.0.0.1:1234/v1"


def test_a_ready_token_is_sent_to_the_url(requests_mock):
    requests_mock.get("http://127.0.0.1:1234/v1/leases", json={"leases": []})
    made("--os-endpoint", "http://127.0.0.1:1234", "--os-token", "t7").get("/leases")
    assert requests_mock.last_request.headers["X-Auth-Token"] == "t7"


def test_connections_are_made_as_options_say():
    session = made("--insecure", "--timeout", "7", **LOGIN).session
    assert (session.verify, session.timeout) == (False, 7.0)
    assert made("--os-cacert", "ca.pem", **LOGIN).session.verify == "ca.pem"
    assert made(**LOGIN, OS_CACERT="ca.pem", OS_CERT="c", OS_KEY="k").session.cert == ("c", "k")


def test_a_kind_of_login_brings_options_of_its_own(cloud):
    made("--os-auth-type", "v3totp", "--os-passcode", "123456", **{**LOGIN, "OS_PASSWORD": ""}).get_token()
    assert identity(cloud)["identity"]["totp"]["user"]["passcode"] == "123456"


@pytest.mark.parametrize(
    ("arguments", "environment", "sentence"),
    [
        ((), {}, "Nobody is logged in: name a cloud of clouds.yaml with --os-cloud"),
        (("--os-auth-type", "password"), {}, "name the user with --os-username"),
        ((), {"OS_AUTH_URL": KEYSTONE}, "name the user with --os-username"),
        ((), {**LOGIN, "OS_PASSWORD": ""}, "there is no password; set OS_PASSWORD"),
        (("--os-auth-type", "password"), {**LOGIN, "OS_AUTH_URL": ""}, "needs --os-auth-url"),
        (("--os-auth-type", "nix"), {}, "There is no kind of login nix"),
        (("--os-auth-type", "none"), {}, "give it with --os-endpoint"),
        ((), {"OS_AUTH_URL": KEYSTONE, "OS_APPLICATION_CREDENTIAL_ID": "c"}, "provide an auth secret"),
    ],
)
def test_who_is_not_logged_in_is_told_in_a_sentence(arguments, environment, sentence, tmp_path):
    here = {"OS_CLIENT_CONFIG_FILE": str(tmp_path / "none.yaml")}
    with pytest.raises(exception.NotAuthorized) as told:
        made(*arguments, **here, **environment)
    assert sentence in str(told.value)


def test_a_url_that_is_none_is_told(cloud):
    with pytest.raises(exception.CommandError, match="write it as https://host:1234/v1"):
        made("--os-endpoint-override", "blazar.example/v1", **LOGIN)


def test_a_version_that_there_is_not_is_told():
    with pytest.raises(exception.CommandError, match="this client speaks 1"):
        made("--os-reservation-api-version", "2", **LOGIN)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://h:1234", "http://h:1234/v1"),
        ("http://h/reservation/", "http://h/reservation/v1"),
        ("http://h/v1/", "http://h/v1"),
        ("http://h/v1.0", "http://h/v1.0"),
        ("http://h/v1/p1", "http://h/v1/p1"),
        ("name", "name"),
    ],
)
def test_urls_get_the_version_they_lack(url, expected):
    assert versioned(url) == expected


CLOUDS = f"""
clouds:
  campus:
    auth: {{auth_url: "{KEYSTONE}", username: carol, password: pw, project_name: chemistry,
            user_domain_id: default, project_domain_id: default}}
    regions: [south, north]
    interface: internal
  site:
    auth_type: none
    auth: {{endpoint: "http://127.0.0.1:1234"}}
"""


@pytest.fixture
def clouds(tmp_path, monkeypatch):
    """Read clouds.yaml from a file of the test."""
    for name in ("HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    folder = tmp_path / "openstack"
    folder.mkdir()
    path = folder / "clouds.yaml"
    path.write_text(CLOUDS, encoding="utf-8")
    monkeypatch.chdir(folder)
    return path


def test_a_cloud_of_clouds_yaml_says_it_all(cloud, clouds):
    found = made("--os-cloud", "campus")
    assert found.get_endpoint() == f"{SERVICE}?south-internal"
    assert identity(cloud)["identity"]["password"]["user"]["name"] == "carol"


def test_a_cloud_is_not_mixed_with_the_login_of_an_openrc_file(cloud, clouds):
    made(OS_CLOUD="campus", **LOGIN).get_token()
    sent = identity(cloud)
    assert sent["identity"]["password"]["user"]["name"] == "carol"
    assert sent["scope"]["project"]["name"] == "chemistry"


def test_options_go_before_a_cloud(cloud, clouds):
    found = made(
        "--os-cloud", "campus", "--os-username", "dave", "--os-region-name", "north", "--os-interface", "public"
    )
    assert found.get_endpoint() == f"{SERVICE}?north"
    assert identity(cloud)["identity"]["password"]["user"]["name"] == "dave"


def test_a_cloud_without_keystone_has_the_url_of_the_service(clouds):
    assert made("--os-cloud", "site").endpoint_override == "http://127.0.0.1:1234/v1"


def test_a_cloud_that_does_not_answer_is_not_waited_for_without_end(clouds):
    assert made("--os-cloud", "site").session.timeout == 600
    assert made("--os-cloud", "site", "--timeout", "7").session.timeout == 7


def test_a_cloud_that_there_is_not_is_told(clouds):
    with pytest.raises(exception.NotAuthorized, match="Cloud nix was not found"):
        made("--os-cloud", "nix")


def test_of_several_clouds_one_is_to_be_chosen(clouds):
    with pytest.raises(exception.NotAuthorized, match="choose a cloud with --os-cloud: campus, site"):
        made(XDG_CONFIG_HOME=str(clouds.parents[1]))
