# SPDX-License-Identifier: Apache-2.0
"""``blazar-status upgrade check``: what it finds, and its exit code."""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import threading
from datetime import timedelta

import pytest

from blazar.cmd.status import main
from blazarconformance.databases import new_sqlite
from tests.certificates import make_certificate
from tests.cmd.stub import PASSWORD
from tests.cmd.test_api import LOGIN, login_at
from tests.conftest import RABBITMQ, missing
from tests.world import NOON, World

WAYS = ("Web hooks", "Mail")


@pytest.fixture
def check(file, capsys):
    """Run the check; return the exit code and what is said of each check that is not a success.

    What users are not notified by, which is none, is left out.
    """

    def run(*lines: str) -> tuple[int, dict[str, str]]:
        code = main(["--config-file", file(*lines), "upgrade", "check"])
        title, *rows = capsys.readouterr().out.splitlines()
        assert title == "Upgrade check results:"
        found = {row[2:14].strip(): row[15:].partition(" ") for row in rows}
        said = {name: f"{verdict}: {text.strip()}" for name, (verdict, _, text) in found.items() if text.strip()}
        return code, {name: text for name, text in said.items() if name not in WAYS or not text.startswith("Success")}

    return run


def test_when_all_is_well_it_says_so(check, working, capsys, file):
    assert check(*working()) == (0, {})
    main(["--config-file", file(*working()), "upgrade", "check"])
    names = [row.split()[0] for row in capsys.readouterr().out.splitlines()[1:]]
    assert names == [
        *("Options", "Log", "Plugins", "Policy", "Database", "Keystone", "Projects", "Nova", "Freepool", "Placement"),
        *("Neutron", "Cinder", "Glance", "Heat", "Web", "Mail"),
    ]


def test_it_says_what_users_are_not_notified_by(working, capsys, file):
    def said(*lines: str) -> list[str]:
        main(["--config-file", file(*working(), *lines), "upgrade", "check"])
        rows = capsys.readouterr().out.splitlines()
        return [row[2:] for row in rows if row[2:14].strip() in WAYS]

    hooks, mail = said()
    assert re.search(r"Success .*\[webhooks\] master_secrets is not set", hooks)
    assert re.search(r"Success .*\[mail\] smtp_url is not set", mail)
    configured = said("[webhooks]", f"master_secrets = {'m' * 40}", "[mail]", "smtp_url = smtp://mail.example")
    assert [row.split()[-1] for row in configured] == ["Success", "Success"]


def test_what_nothing_reads_is_a_warning(check, working):
    code, found = check(*working(), "[manager]", "unread = 1")
    assert code == 1
    told = "[manager] unread is not used; correct its name, or take the line out if nothing depends on it"
    assert found == {"Options": f"Warning: {told}"}


def test_an_unknown_plugin_is_a_failure(check, working):
    code, found = check(*working(), "plugins = dummy.vm.plugin")
    assert (code, list(found)) == (2, ["Plugins"])
    assert "dummy.vm.plugin" in found["Plugins"]


@pytest.mark.parametrize("text", ["just a text", '{"blazar:leases:get":\t"@"'], ids=["text", "half a file in JSON"])
def test_a_policy_file_that_is_none_is_a_failure(check, working, tmp_path, text):
    (tmp_path / "policy.yaml").write_text(text, encoding="utf-8")
    code, found = check(*working())
    assert (code, list(found)) == (2, ["Policy file"])
    assert "is invalid" in found["Policy file"]


@pytest.mark.parametrize("name", ["policy.yaml", "policy.json"])
def test_a_policy_file_in_json_that_a_service_reads_is_a_warning(check, working, tmp_path, name):
    (tmp_path / name).write_text('{"blazar:leases:get": "@"}', encoding="utf-8")
    code, found = check(*working(), "[oslo_policy]", f"policy_file = {name}")
    assert code == 1
    assert found["Policy file"].startswith(f"Warning: {tmp_path / name} is JSON, which is read as YAML; convert it")
    assert "Policy rules" in found


def test_a_policy_file_in_json_that_no_service_reads_is_a_warning(check, working, tmp_path):
    (tmp_path / "policy.json").write_text('{"blazar:leases:get": "!"}', encoding="utf-8")
    code, found = check(*working())
    assert code == 1
    assert found["Policy file"].startswith(f"Warning: {tmp_path / 'policy.json'} is not read, so none of its rules")
    (tmp_path / "policy.yaml").write_text("{}", encoding="utf-8")
    assert check(*working()) == (0, {})


@pytest.mark.parametrize("text", ["", "{}", "{ }\n", "# nothing\n", "---\n", "null\n"], ids=repr)
def test_a_policy_file_without_rules_is_well(check, working, tmp_path, text):
    (tmp_path / "policy.yaml").write_text(text, encoding="utf-8")
    assert check(*working()) == (0, {})


def test_it_says_which_newer_rules_a_policy_file_leaves_at_their_default(capsys, file, working, tmp_path):
    text = '"blazar:leases:post": "role:booker"\n"blazar:series:post": "role:teacher"\n'
    (tmp_path / "policy.yaml").write_text(text, encoding="utf-8")
    assert main(["--config-file", file(*working()), "upgrade", "check"]) == 0
    said = [row[24:] for row in capsys.readouterr().out.splitlines() if row.startswith("  Policy rules Success")]
    assert "not set, as blazar:leases:put and blazar:leases:post: blazar:leases:split" in said
    assert "not set, as blazar:leases:post, members of the project: blazar:transfers:accept" in said
    assert any(row.startswith("not set, for operators only: ") and "blazar:leases:best_effort" in row for row in said)
    assert not any("blazar:series:post" in row for row in said)
    assert len({name for row in said for name in row.rpartition(": ")[2].split(", ")}) == sum(
        len(row.rpartition(": ")[2].split(", ")) for row in said
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('"blazar:lease:post": "role:booker"', "blazar:lease:post is no rule of this service, so it limits nobody"),
        ('"blazar:leases:post": "rule:boker"', "blazar:leases:post refers to the rule boker, which does not exist"),
        ('"blazar:leases:post": ""', "blazar:leases:post is empty, so it allows everybody"),
        ('"blazar:leases:post":', "blazar:leases:post is empty, so it allows everybody"),
    ],
)
def test_a_rule_that_does_nothing_is_a_warning(capsys, file, working, tmp_path, text, words):
    (tmp_path / "policy.yaml").write_text(f"{text}\n", encoding="utf-8")
    assert main(["--config-file", file(*working()), "upgrade", "check"]) == 1
    (said,) = [row for row in capsys.readouterr().out.splitlines() if row.startswith("  Policy rules Warning")]
    assert words in said


@pytest.mark.parametrize(
    "text", ["role:admin or", "(role:admin", "nonsense", "role:admin or nonsense", "! or role admin", "rule: admin"]
)
def test_a_rule_that_cannot_be_understood_is_a_failure(capsys, check, working, tmp_path, text):
    (tmp_path / "policy.yaml").write_text(f'"blazar:leases:post": "{text}"\n', encoding="utf-8")
    code, found = check(*working())
    assert (code, found["Policy file"]) == (
        2,
        f"Failure: blazar:leases:post cannot be understood: {text!r}; what cannot be read of it allows nobody",
    )


@pytest.mark.parametrize("text", ["!", "@", "not role:reader", "! or role:admin", "role:a! or user_id:!b", "[]"])
def test_a_rule_that_is_understood_is_none(check, working, tmp_path, text):
    (tmp_path / "policy.yaml").write_text(f'"blazar:leases:post": "{text}"\n'.replace('"[]"', '["role:x"]'))
    code, found = check(*working())
    assert (code, found.get("Policy file")) == (0, None)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "[database] connection is not set"),
        ("oracle://h/x", "not supported"),
        ("sqlite:////no/such/folder/x", "the database cannot be used"),
        ("sqlite:///{}/empty.sqlite", "at revision none, and this version needs"),
    ],
)
def test_a_database_that_cannot_serve_is_a_failure(check, working, tmp_path, url, words):
    code, found = check(*working(database=url.format(tmp_path)))
    assert (code, list(found)) == (2, ["Database"])
    assert words in found["Database"]


def test_a_message_bus_that_lets_us_in_is_a_success(check, working):
    try:
        socket.create_connection(("127.0.0.1", 5672), timeout=5).close()
    except OSError as error:
        missing("rabbitmq", error)
    assert check(*working(bus=RABBITMQ)) == (0, {})


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("bus", "words"),
    [
        (RABBITMQ.replace("guest:guest", "guest:wrong"), "check user, password and virtual host in [DEFAULT]"),
        (RABBITMQ + "no-such-vhost", "not found; check user, password and virtual host in [DEFAULT]"),
        ("rabbit://guest:guest@127.0.0.1:9/", "refused"),
        ("smoke://signals/", "smoke"),
    ],
)
def test_a_message_bus_that_does_not_is_a_failure(check, working, bus, words):
    code, found = check(*working(bus=bus))
    assert (code, list(found)) == (2, ["Message bus"])
    assert words in found["Message bus"]
    assert "wrong" not in found["Message bus"]


@pytest.fixture
def bus_over_tls(tmp_path):
    """RabbitMQ behind a server that speaks TLS: its port, and the file that vouches for it."""
    certificate, key = make_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def forward(source: socket.socket, to: socket.socket) -> None:
            with contextlib.suppress(OSError):
                while data := source.recv(65536):
                    to.sendall(data)

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    outside, _ = listening.accept()
                    with contextlib.suppress(ssl.SSLError):
                        inside = socket.create_connection(("127.0.0.1", 5672))
                        wire = context.wrap_socket(outside, server_side=True)
                        for ends in ((wire, inside), (inside, wire)):
                            threading.Thread(target=forward, args=ends, daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1], certificate


@pytest.mark.slow
def test_a_message_bus_is_asked_over_tls_as_its_driver_does(check, working, bus_over_tls):
    port, certificate = bus_over_tls
    url = RABBITMQ.replace("5672", str(port))
    tls = ["[oslo_messaging_rabbit]", "ssl = true"]
    assert check(*working(bus=url), *tls, f"ssl_ca_file = {certificate}") == (0, {})
    code, found = check(*working(bus=url), *tls, "ssl_ca_file = /etc/ssl/certs/ca-certificates.crt")
    assert (code, list(found)) == (2, ["Message bus"])
    assert "CERTIFICATE_VERIFY_FAILED" in found["Message bus"]
    code, found = check(*working(bus=url), *tls, "ssl_ca_file = /no/such.pem")
    assert found == {
        "Message bus": "Failure: [oslo_messaging_rabbit] ssl_ca_file /no/such.pem cannot be read: "
        "No such file or directory"
    }


def test_a_wrong_password_is_a_failure_and_nothing_more_is_asked(check, working, stub):
    code, found = check(*working(password="wrong-horse"))
    assert (code, list(found)) == (2, ["Keystone"])
    assert "does not accept the service user" in found["Keystone"]
    assert stub.asked == ["POST /v3/auth/tokens"]


def test_the_login_of_the_api_is_tried_too_where_there_is_one(check, working, stub):
    assert check(*working(), *login_at(stub, PASSWORD)) == (0, {})
    code, found = check(*working(), *login_at(stub, "wrong-horse"))
    assert (code, list(found)) == (2, ["Tokens"])
    assert "Keystone does not accept the user of [keystone_authtoken]: wrong user, password" in found["Tokens"]
    assert "wrong-horse" not in found["Tokens"]
    code, found = check(*working(), *LOGIN)
    assert (code, list(found)) == (2, ["Tokens"])
    assert "cannot be reached with the login of [keystone_authtoken]" in found["Tokens"]


def test_a_login_that_cannot_be_is_a_failure(check, working):
    code, found = check(*working(), "[keystone]", "auth_type = nonsense")
    assert (code, list(found)) == (2, ["Keystone"])


def test_a_keystone_that_is_not_there_is_a_failure(check, working):
    code, found = check(*working(port=9))
    assert (code, list(found)) == (2, ["Keystone"])
    assert "cannot be reached" in found["Keystone"]


@pytest.mark.parametrize(
    ("path", "name"), [("/compute/os-aggregates", "Nova"), ("/placement/resource_providers", "Placement")]
)
def test_a_service_that_refuses_us_is_a_failure(check, working, stub, path, name):
    stub.statuses[path] = 403
    code, found = check(*working())
    assert (code, list(found)) == (2, [name])
    assert "403" in found[name]


def test_a_missing_freepool_is_a_failure(check, working, stub):
    stub.aggregates.clear()
    code, found = check(*working())
    assert (code, list(found)) == (2, ["Freepool"])
    assert "'freepool' does not exist; create it" in found["Freepool"]


def test_a_freepool_with_a_zone_is_a_failure(check, working, stub):
    stub.aggregates[0]["availability_zone"] = "az-1"
    code, found = check(*working())
    assert (code, list(found)) == (2, ["Freepool"])


def test_the_worst_finding_decides(check, working):
    code, found = check(*working(database="", port=9), "unread = 1")
    assert (code, list(found)) == (2, ["Options", "Database", "Keystone"])


@pytest.mark.parametrize("arguments", [[], ["upgrade"], ["check"], ["check", "upgrade"]], ids=str)
def test_without_a_command_it_says_how_it_is_used(capsys, arguments):
    assert main(arguments) == 255
    assert "usage: blazar-status" in capsys.readouterr().err


def test_a_configuration_that_cannot_be_read_is_255(file, capsys):
    assert main(["--config-file", "/no/such/file", "upgrade", "check"]) == 255
    assert main(["--config-file", file("[DEFAULT]", "cleaning_time = x"), "upgrade", "check"]) == 255
    first, second = capsys.readouterr().err.splitlines()
    assert "/no/such/file" in first
    assert second.startswith("blazar-status: [DEFAULT] cleaning_time cannot be 'x'")


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["upgrade", "check", "--help"]])
def test_who_asks_for_help_gets_it(arguments, capsys):
    assert main(arguments) == 0
    said = capsys.readouterr()
    assert said.out.startswith("usage: blazar-status")
    assert said.err == ""


def test_a_wrong_word_is_answered_with_the_usage(capsys):
    assert main(["upgrade"]) == 255
    assert capsys.readouterr().err.startswith("usage: blazar-status")


def test_a_database_of_a_newer_version_is_a_failure_with_the_way_back(check, working, tmp_path):
    engine = new_sqlite(tmp_path / "newer.sqlite")
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9031'")
    engine.dispose()
    code, found = check(*working(database=str(engine.url)))
    assert code == 2
    assert found["Database"].startswith("Failure: the database is from a newer version of Blazar")


def test_the_database_of_the_existing_blazar_is_a_failure(check, working, their_database):
    code, found = check(*working(database=their_database))
    assert (code, list(found)) == (2, ["Database"])
    assert found["Database"].startswith("Failure: the database is that of the existing Blazar")


def test_a_service_user_without_a_role_in_users_projects_is_a_warning_with_the_command(check, working, stub):
    del stub.projects[1:]
    code, found = check(*working())
    assert (code, list(found)) == (1, ["Projects"])
    assert found["Projects"].startswith("Warning: the service user has no role in users' projects")
    command = "openstack role add --user blazar --user-domain Default --domain Default --inherited member"
    assert command in found["Projects"]


def test_projects_with_leases_in_which_the_service_user_has_no_role_are_named(check, working, tmp_path):
    engine = new_sqlite(tmp_path / "leases.sqlite")
    world = World(engine)
    for project in ("physics", "art"):
        world.lease(start=timedelta(hours=1), project=project)
    assert world.store.leases.list_projects() == {"physics", "art"}
    code, found = check(*working(database=str(engine.url)))
    assert (code, list(found)) == (1, ["Projects"])
    assert "no role in these projects with leases: art, so" in found["Projects"]
    world.run_to(NOON + timedelta(hours=9))
    assert world.store.leases.list_projects() == frozenset()


def test_a_role_in_users_projects_is_only_needed_where_there_are_server_groups(check, working, stub):
    del stub.projects[1:]
    assert check(*working(), "plugins = physical.host.plugin,virtual.floatingip.plugin") == (0, {})


def test_a_keystone_that_does_not_tell_is_a_warning(check, working, stub):
    stub.statuses["/v3/auth/projects"] = 403
    code, found = check(*working())
    assert (code, list(found)) == (1, ["Projects"])


SERVICES = ("Nova", "Freepool", "Placement", "Neutron", "Cinder", "Glance", "Heat")


def in_regions(working, *names):
    return [*working(), "[cloud]", f"regions = {', '.join(names)}", "timeout = 5"]


def test_the_services_of_each_region_are_checked(check, working, stub):
    stub.regions = ("r", "s")
    code, found = check(*in_regions(working, "r", "s"))
    # Of services that are well only the name of the region is said, of the last region here.
    assert (code, found) == (0, dict.fromkeys(SERVICES, "Success: s"))


def test_a_region_that_the_catalog_does_not_have_is_a_failure_and_the_others_are_checked(check, working, capsys, file):
    assert main(["--config-file", file(*in_regions(working, "r", "s")), "upgrade", "check"]) == 2
    said = capsys.readouterr().out.splitlines()
    rows = [row.split(maxsplit=2) for row in said if row.split()[0] in SERVICES]
    assert [row[:2] for row in rows if row[2] == "r"] == [[name, "Success"] for name in SERVICES]
    lost = {name: (verdict, text) for name, verdict, text in rows if text.startswith("s: ")}
    assert {name: verdict for name, (verdict, _) in lost.items()} == {
        **{"Nova": "Failure", "Placement": "Failure"},
        **dict.fromkeys(("Neutron", "Cinder", "Glance", "Heat"), "Warning"),
    }
    assert all("no way into" in text for _, text in lost.values())


def test_a_region_with_resources_that_is_not_configured_is_a_failure(check, working, stub, tmp_path):
    world = World(new_sqlite(tmp_path / "regions.sqlite"))
    world.store.regions.adopt_region("gone")
    code, found = check(*working(database=f"sqlite:///{tmp_path / 'regions.sqlite'}"), "[cloud]", "regions = r")
    assert code == 2
    assert found["Regions"] == (
        "Failure: resources lie in gone, which [cloud] regions does not name; name it, for its leases wait"
    )


def test_a_service_that_only_some_types_need_is_a_warning_if_these_are_enabled(check, working, stub):
    stub.statuses |= {"/volume": 403, "/heat": 403}
    code, found = check(*working())
    assert (code, list(found)) == (1, ["Cinder", "Heat"])
    assert found["Heat"].endswith(
        "so reservations fail: let the service user list what it has, or mend its endpoint in the catalog; without it, "
        "leave virtual.stack.plugin out of [manager] plugins"
    )
    assert check(*working(), "plugins = physical.host.plugin") == (0, {})


def test_without_glance_there_are_no_images_of_servers(check, working, stub):
    stub.statuses["/image"] = 403
    code, found = check(*working(), "plugins = physical.host.plugin")
    assert (code, list(found)) == (1, ["Glance"])
    assert "none are made of servers: let the service user list what it has" in found["Glance"]
    assert check(*working(), "plugins = virtual.floatingip.plugin") == (0, {})


@pytest.mark.parametrize(
    ("line", "named"),
    [("placement = roomy", True), ("randomize_host_selection = true", True), ("placement = compact", False)],
)
def test_a_placement_that_keeps_hosts_awake_is_named(check, working, line, named):
    code, told = check(*working(), "[power]", "mode = on", "[physical:host]", line)
    said = line.replace("=", "is")
    sentence = f"Warning: [power] mode is on, and [physical:host] {said}, which leaves few hosts to sleep"
    assert (code, told) == ((1, {"Options": sentence}) if named else (0, {}))
