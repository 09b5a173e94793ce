# SPDX-License-Identifier: Apache-2.0
"""blazar-api and the WSGI module with configurations that work, and with some that cannot."""

from __future__ import annotations

import socket

import pytest
from werkzeug.test import Client

from blazar.cmd import api
from blazar.cmd.config import ConfigurationError
from blazar.model.base.errors import InvalidInput
from tests.cmd.conftest import Program
from tests.cmd.stub import PASSWORD
from tests.conftest import RABBITMQ

LOGIN = [
    "[keystone_authtoken]",
    "auth_type = v3password",
    "auth_url = http://127.0.0.1:9/v3",
    "username = blazar",
    "user_domain_id = default",
]
BUS = ["[DEFAULT]", "transport_url = fake://"]


pytestmark = pytest.mark.timeout(30)


@pytest.fixture
def taken():
    """A port of this machine on which somebody else listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], "has no credentials for Keystone; set auth_type"),
        (["[keystone_authtoken]", "auth_type = nonsense"], "plugin nonsense could not be found"),
        (["[keystone_authtoken]", "auth_type = v3password"], "auth_url"),
    ],
    ids=["nothing", "unknown", "incomplete"],
)
def test_a_login_that_cannot_be_is_refused(load, lines, words):
    with pytest.raises(ConfigurationError, match=r"\[keystone_authtoken\]") as refused:
        api.build(load(*BUS, *lines))
    assert words in refused.value.message


def login_at(stub, password: str) -> list[str]:
    return [
        "[keystone_authtoken]",
        "auth_type = v3password",
        f"auth_url = {stub.url}/v3",
        "username = blazar",
        "user_domain_id = default",
        "project_name = service",
        "project_domain_id = default",
        f"password = {password}",
    ]


def test_a_wrong_password_is_said_at_the_start_and_not_that_it_is_wrong_later(load, stub):
    with pytest.raises(ConfigurationError, match="does not accept the user of .keystone_authtoken.") as refused:
        api.build(load(*BUS, *login_at(stub, "wrong-horse")))
    assert "wrong-horse" not in refused.value.message


@pytest.mark.slow
def test_a_keystone_that_lets_us_in_or_is_away_is_no_reason_not_to_serve(load, stub, caplog):
    api.build(load(*BUS, *login_at(stub, PASSWORD)))
    assert "Keystone" not in caplog.text
    stub.statuses["/v3"] = 503
    api.build(load(*BUS, *login_at(stub, PASSWORD)))
    assert "Keystone cannot be reached yet to validate tokens" in caplog.text


@pytest.mark.sample(3)
@pytest.mark.parametrize("text", ["just a text", "[1, 2]", "a: [", '"blazar:leases:get": 5'])
def test_a_policy_file_that_is_none_is_refused_at_once(load, tmp_path, text):
    rules = tmp_path / "rules.yaml"
    rules.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"policy_file .*rules.yaml is invalid") as refused:
        api.build(load(*BUS, "[oslo_policy]", f"policy_file = {rules}", *LOGIN))
    assert "\n" not in refused.value.message
    assert "object" not in refused.value.message


@pytest.mark.slow
def test_the_database_of_the_existing_blazar_is_refused_with_what_to_do(start, their_database):
    program = start("api", *BUS, *LOGIN, "[database]", f"connection = {their_database}")
    assert program.ended() == 1
    assert program.last_words.startswith("blazar-api: the database is that of the existing Blazar")
    assert "give this program an empty database" in program.last_words


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "url", ["sqlite:////no/such/folder/db", "nonsense", "postgresql+psycopg://blazar:secret@127.0.0.1:1/x"]
)
def test_an_api_needs_no_database(load, url):
    assert api.build(load(*BUS, *LOGIN, "[database]", f"connection = {url}"))


def test_an_api_does_not_wait_for_a_database_that_does_not_answer(load, monkeypatch):
    monkeypatch.setattr(api, "PATIENCE", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql+psycopg://x@127.0.0.1:{silent.getsockname()[1]}/x"
        assert api.build(load(*BUS, *LOGIN, "[database]", f"connection = {url}"))


def test_an_unknown_message_bus_is_refused(load):
    with pytest.raises(InvalidInput, match="transport_url"):
        api.build(load("[DEFAULT]", "transport_url = pigeon://", *LOGIN))


@pytest.mark.slow
def test_a_message_bus_that_does_not_let_us_in_is_said_at_the_start_and_no_reason_to_end(start):
    bus = RABBITMQ.replace("guest:guest", "guest:se-cret")
    program = start("api", "[DEFAULT]", f"transport_url = {bus}", "host = 127.0.0.1", "port = 0", *LOGIN)
    told = program.says("Message bus cannot be used: AccessRefused")
    assert "check user, password and virtual host in [DEFAULT] transport_url" in told
    assert program.stop() == 0
    assert "se-cret" not in program.said
    assert program.said.count("Message bus cannot be used") == 1


@pytest.mark.slow
def test_a_port_that_is_taken_is_told_in_one_sentence(start, taken):
    program = start("api", *BUS, "host = 127.0.0.1", f"port = {taken}", "unread = 1", *LOGIN)
    assert program.ended() == 1
    assert program.last_words.startswith(f"blazar-api: [DEFAULT] host 127.0.0.1 and port {taken} cannot be listened on")
    assert "Option [DEFAULT] unread is set in the configuration and not used" in program.said
    assert "Traceback" not in program.said


@pytest.mark.slow
def test_a_wrong_value_is_told_in_one_sentence(start):
    program = start("api", "[api]", "threads = 0")
    assert program.ended() == 1
    (sentence,) = program.said.splitlines()
    assert sentence.startswith("blazar-api: [api] threads cannot be '0'")


def test_it_serves_until_it_is_told_to_stop(start):
    program = start("api", *BUS, "host = 127.0.0.1", "port = 0", *LOGIN)
    program.says("blazar-api is listening on 127.0.0.1")
    assert program.stop() == 0
    assert "Traceback" not in program.said


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("lines", "served"),
    [
        ((), {"/v2/leases", "/v2/os-hosts"}),
        (("[api]", "api_v2_controllers = leases"), {"/v2/leases"}),
        (("[api]", "api_v2_controllers ="), set()),
    ],
    ids=["by default", "leases", "none"],
)
def test_an_operator_chooses_the_parts_of_version_2(load, lines, served):
    http = Client(api.build(load(*BUS, *LOGIN, *lines)))
    paths = http.get("/openapi.json").json["paths"]
    assert {path for path in ("/v2/leases", "/v2/os-hosts") if path in paths} == served
    assert ("v2.0" in {version["id"] for version in http.get("/").json["versions"]}) == bool(served)


def test_an_operator_may_serve_version_2_only(load):
    http = Client(api.build(load(*BUS, "enable_v1_api = false", *LOGIN)))
    assert [version["id"] for version in http.get("/").json["versions"]] == ["v2.0"]
    assert http.get("/v1").status_code == 404


@pytest.mark.parametrize("logged", [True, False])
def test_requests_and_answers_are_logged_if_the_file_says_so(load, caplog, logged):
    caplog.set_level("DEBUG")
    http = Client(api.build(load(*BUS, f"log_exchange = {logged}", *LOGIN)))
    caplog.clear()
    http.get("/v1/leases", headers={"X-Color": "mauve", "X-Auth-Token": "hush"})
    assert ("mauve" in caplog.text) is logged
    assert "hush" not in caplog.text


def test_an_operator_cannot_serve_no_version_at_all(load):
    with pytest.raises(ConfigurationError, match="no API would be served"):
        api.build(load(*BUS, "enable_v1_api = false", *LOGIN, "[api]", "api_v2_controllers ="))


ASK = """
from werkzeug.test import Client
from blazar.wsgi.api import application
answer = Client(application).options("/")
print(answer.status, file=__import__("sys").stderr)
"""


@pytest.mark.slow
def test_the_wsgi_module_reads_the_folder_that_is_named_and_no_arguments_of_its_host(tmp_path):
    (tmp_path / "blazar.conf").write_text("\n".join([*BUS, *LOGIN]), encoding="utf-8")
    program = Program("-c", ASK, "--workers", "4", OS_BLAZAR_CONFIG_DIR=str(tmp_path))
    assert program.ended() == 0
    assert program.last_words == "401 UNAUTHORIZED"


@pytest.mark.slow
def test_the_wsgi_module_names_the_file_that_it_misses(tmp_path):
    program = Program("-c", "import blazar.wsgi.api", OS_BLAZAR_CONFIG_DIR=str(tmp_path))
    assert program.ended() == 1
    assert str(tmp_path / "blazar.conf") in program.last_words
