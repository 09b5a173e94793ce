# SPDX-License-Identifier: Apache-2.0
"""The ``blazar`` command: options, exit codes, what is written where."""

from __future__ import annotations

import inspect
import json
import logging
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from blazarclient import __main__, command, exception, sessions, shell
from keystoneauth1 import fixture

URL = "http://127.0.0.1:1234"
LEASE = {
    "id": "11111111-2222-4333-8444-000000000001",
    "name": "alpha",
    "start_date": "2027-02-01T09:00:00.000000",
    "end_date": "2027-02-02T09:00:00.000000",
    "degraded": False,
    "trust_id": None,
    "reservations": [{"id": "r1", "resource_type": "physical:host", "min": 1}],
    "events": [],
}
CLIENT = Path(shell.__file__).parents[1]


@pytest.fixture
def api(requests_mock):
    requests_mock.get(f"{URL}/v1/info", status_code=404, json={}, headers={"Content-Type": "application/json"})
    requests_mock.get(f"{URL}/v1/leases", json={"leases": [LEASE]})
    requests_mock.get(f"{URL}/v1/leases/{LEASE['id']}", json={"lease": LEASE})
    requests_mock.post(f"{URL}/v1/leases", json={"lease": LEASE}, status_code=201)
    requests_mock.delete(f"{URL}/v1/leases/{LEASE['id']}", status_code=204)
    return requests_mock


@pytest.fixture
def run(capsys, monkeypatch):
    """Run ``blazar`` and return its exit code, stdout and stderr."""
    for name in [name for name in os.environ if name.startswith("OS_")]:
        monkeypatch.delenv(name)
    before = logging.getLogger().level

    def run(*arguments, endpoint=URL):
        try:
            code = shell.main(["--os-endpoint", endpoint, *arguments] if endpoint else list(arguments))
        except SystemExit as left:
            code = left.code
        return code, *capsys.readouterr()

    yield run
    logging.getLogger().setLevel(before)


@pytest.mark.parametrize("words", [("lease-list",), ("lease", "list")])
def test_commands_have_two_spellings(run, api, words):
    code, out, err = run(*words, "-f", "value", "-c", "name")
    assert (code, out, err) == (0, "alpha\n", "")


def test_options_of_the_cloud_may_come_after_the_command(run, api):
    assert run("lease-list", "--os-endpoint", URL, "-f", "value", "-c", "name", endpoint=None)[:2] == (0, "alpha\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("lease-list", "--bogus"), "unrecognized arguments: --bogus"),
        (("lease-show", "alpha", "beta"), "unrecognized arguments: beta"),
        (("lease-show",), "required: <lease>"),
        (("lease",), "did you mean lease confirm, lease create, lease delete"),
        (("lease-lst",), "did you mean lease list"),
        (("nix",), "nix is no command of blazar"),
        (("host-property-set", "gpu"), "one of the arguments --private --public is required"),
    ],
)
def test_a_command_that_is_written_wrongly_does_nothing(run, api, arguments, sentence):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert sentence in err
    assert not api.called


@pytest.mark.parametrize("words", [("help", "lease-create"), ("lease-create", "--help"), ("lease", "create", "-h")])
def test_each_command_has_help_of_its_own(run, words):
    code, out, _ = run(*words, endpoint=None)
    assert code == 0
    assert "--physical-reservation" in out
    assert "Book a lease" in out


def test_help_of_a_command_is_in_sentences(run):
    words = " ".join(run("help", "lease", "watch", endpoint=None)[1].split())
    assert "Write a line each time a lease changes, until it is over. The exit code is 0 when" in words


@pytest.mark.parametrize("words", [("help",), ("--help",)])
def test_help_lists_each_command_once(run, words):
    code, out, _ = run(*words, endpoint=None)
    assert code == 0
    listed = [
        line[2:].partition("  ")[0] for line in out.partition("\ncommands:\n")[2].splitlines() if line[:2] == "  "
    ]
    assert listed == sorted(shell.COMMANDS)


def test_help_says_what_each_command_does(run):
    lines = run("help", endpoint=None)[1].splitlines()
    for name, value in shell.COMMANDS.items():
        (line,) = [line for line in lines if line.startswith(f"  {name}  ")]
        summary = inspect.getdoc(shell.Command(name, value).load()).splitlines()[0]
        assert line.removeprefix(f"  {name}").strip() == summary.rstrip(".")


def in_new_process(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run Python where nothing is imported yet, and no cloud is set."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
    env = {**clean, "PYTHONPATH": str(CLIENT)}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=env, timeout=60, **options)


@pytest.mark.slow
def test_help_imports_no_library_of_clouds():
    code = (
        "import sys; from blazarclient import shell\n"
        "try: shell.main(['--help'])\n"
        "except SystemExit: pass\n"
        "sys.stderr.write(' '.join(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    done = in_new_process("-c", code, check=True)
    assert not {"keystoneauth1", "openstack", "requests", "yaml"} & set(done.stderr.split())


@pytest.mark.slow
def test_a_list_imports_only_what_it_needs():
    code = (
        "import sys; from blazarclient import __main__\n"
        "sys.argv = ['blazar', '--os-endpoint', 'http://127.0.0.1:1', 'lease', 'list']\n"
        "__main__.main()\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = in_new_process("-c", code, check=True)
    imported = set(done.stdout.split())
    assert {"keystoneauth1", "requests"} <= imported
    assert not {"openstack", "yaml", "zoneinfo", "difflib", "rich", "cmd2"} & imported


def test_a_command_starts_without_reading_what_is_installed(run, api, monkeypatch):
    def read():
        raise AssertionError("all packages were read")

    monkeypatch.setattr("cliff.command.packages_distributions", read)
    monkeypatch.setattr("cliff.command._dists_by_mods", None)
    assert run("lease-list", "-f", "value", "-c", "name") == (0, "alpha\n", "")
    assert run("lease", "list", "--help")[0] == 0


def test_the_version_is_told(run):
    code, out, _ = run("--version", endpoint=None)
    assert (code, out.split()[0]) == (0, "blazar")


@pytest.mark.parametrize(
    ("status", "code"), [(401, 4), (403, 4), (404, 3), (409, 6), (412, 6), (429, 7), (500, 1), (503, 7), (400, 1)]
)
def test_exit_codes_tell_what_went_wrong(run, api, status, code):
    api.get(f"{URL}/v1/leases", json={"error_message": "Not so."}, status_code=status)
    assert run("lease-list") == (code, "", "ERROR: Not so.\n")


def test_not_logged_in_is_told_apart(run, api, monkeypatch, tmp_path):
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "none"))
    code, out, err = run("lease-list", endpoint=None)
    assert (code, out) == (4, "")
    assert err.startswith("Nobody is logged in")
    assert len(err.splitlines()) == 1


def test_no_connection_is_told_apart(run):
    code, out, err = run("lease-list", endpoint="http://127.0.0.1:1")
    assert (code, out, len(err.splitlines())) == (7, "", 1)


@pytest.mark.parametrize("words", [("lease", "list"), ("lease", "create", "x", "--physical-reservation", "min=1")])
def test_a_port_that_does_not_speak_tls_is_not_waited_for_as_an_answer_is(run, monkeypatch, words):
    """A service without TLS waits for the rest of what it takes for a request, and says nothing."""
    monkeypatch.setattr(sessions, "CONNECTING", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        sentence = f"No secure connection to {url}: nothing comes from there. Is it http://?\n"
        assert run(*words, endpoint=url) == (7, "", sentence)


@pytest.mark.parametrize("answer", [{"text": "<html><body>Welcome</body></html>"}, {"json": {"a": 1}}, {"json": [1]}])
def test_another_service_at_the_url_is_told(run, api, answer):
    api.get(f"{URL}/v1/leases", **answer)
    sentence = "The service answered without leases: is it the reservation service?\n"
    assert run("lease-list") == (1, "", sentence)


def test_a_name_of_several_or_none_is_told_apart(run, api):
    assert run("lease-show", "nope") == (3, "", "There is no lease nope\n")
    api.get(f"{URL}/v1/leases", json={"leases": [LEASE, {**LEASE, "id": "other"}]})
    assert run("lease-delete", "alpha")[0] == 3


def test_debug_has_the_request_and_never_the_token(run, api):
    headers = {"x-openstack-request-id": "req-42"}
    api.get(f"{URL}/v1/leases", json={"error_message": "Not so."}, status_code=409, headers=headers)
    code, _, err = run("--debug", "--os-token", "t0k3n", "lease-list")
    assert code == 6
    assert "request id: req-42" in err
    assert "Traceback" in err
    assert "t0k3n" not in err
    assert "stevedore" not in err


def test_verbose_has_no_debugging(run, api):
    assert run("-v", "lease-list", "-f", "value", "-c", "name") == (0, "alpha\n", "")


def test_json_has_real_structures(run, api):
    code, out, _ = run("lease-show", "alpha", "-f", "json")
    assert (code, json.loads(out)) == (0, LEASE)


def test_a_variable_has_json_flattened_as_it_was(run, api, monkeypatch):
    monkeypatch.setenv(command.FLAT_JSON, "1")
    shown = json.loads(run("lease-show", "alpha", "-f", "json")[1])
    assert shown["trust_id"] == ""
    assert shown["reservations"] == json.dumps(LEASE["reservations"][0], indent=4)


CREATE = ("lease-create", "alpha", "--physical-reservation", "min=1,max=1")


def test_what_was_created_is_told_above_a_table(run, api):
    code, out, err = run(*CREATE)
    assert (code, err) == (0, "")
    assert out.startswith("Created a new lease:\n+--")


def test_what_was_created_does_not_disturb_who_reads_json(run, api):
    code, out, err = run(*CREATE, "-f", "json")
    assert (code, json.loads(out)["name"], err) == (0, "alpha", "Created a new lease:\n")


def test_deleting_says_so(run, api):
    assert run("lease-delete", "alpha") == (0, "Deleted lease: alpha\n", "")


@pytest.mark.parametrize(("form", "written"), [("table", "\n"), ("csv", "\n"), ("json", "[]\n"), ("value", "")])
def test_an_empty_list_is_printed_as_it_was(run, api, form, written):
    api.get(f"{URL}/v1/leases", json={"leases": []})
    code, out, err = run("lease-list", "-f", form, "-c", "name")
    assert (code, out.replace('"name"', ""), err) == (0, written, "")


def test_a_column_that_there_is_not_is_told(run, api):
    code, out, err = run("lease-list", "-c", "nix")
    assert (code, out) == (1, "")
    assert "There is no column nix; choose from degraded, end_date" in err


def test_bash_is_told_the_words(run):
    code, out, _ = run("bash-completion", endpoint=None)
    assert code == 0
    assert {"lease-create", "host-property-list", "--physical-reservation", "--os-cloud"} <= set(out.split())


def test_zsh_has_a_script_with_all_commands(run):
    code, out, _ = run("complete", "--shell", "zsh", endpoint=None)
    assert (code, out.splitlines()[0]) == (0, "#compdef blazar")
    assert all(f"'{name}'" in out for name in shell.COMMANDS)


def test_bash_completes_both_spellings(run):
    code, out, _ = run("complete", endpoint=None)
    assert code == 0
    assert "complete -F _blazar blazar" in out
    assert "lease lease-confirm" in out
    assert "cmds_lease='confirm create delete" in out
    (options,) = {line for line in out.splitlines() if line.strip().startswith("cmds_lease_create=")}
    assert "--physical-reservation" in options


def test_an_option_of_the_command_goes_before_the_same_of_the_program(run, api, monkeypatch):
    seen = {}

    class Waits(command.BlazarCommand):
        own_options = ("--timeout",)

        def get_parser(self, prog_name):
            parser = super().get_parser(prog_name)
            parser.add_argument("--timeout")
            return parser

        def take_action(self, parsed_args):
            seen["own"], seen["program"] = parsed_args.timeout, self.app.options.timeout

    monkeypatch.setitem(sys.modules, "waits", type(sys)("waits"))
    sys.modules["waits"].Waits = Waits
    monkeypatch.setitem(shell.COMMANDS, "wait", "waits:Waits")
    assert run("--timeout", "3", "wait", "--timeout", "9")[0] == 0
    assert seen == {"own": "9", "program": 3.0}
    assert run("wait", "--timeout=9m")[0] == 0
    assert seen == {"own": "9m", "program": None}
    assert run("--os-username", "wait", "wait", "--timeout", "soon", "--os-password=wait")[0] == 0
    assert seen == {"own": "soon", "program": None}


def test_errors_have_codes_by_their_kind():
    assert command.exit_code(exception.NotEnoughResources("x")) == 5
    assert command.exit_code(exception.LimitExceeded("x")) == 5
    assert command.exit_code(exception.Timeout("x")) == 8
    assert command.exit_code(exception.Uncertain("x")) == 9


@pytest.mark.slow
def test_commands_that_are_typed_are_run_one_by_one(api):
    typed = "lease-list\nblah\n"
    done = in_new_process("-m", "blazarclient", "--os-endpoint", "http://127.0.0.1:1", input=typed)
    assert done.returncode == 2
    said = [line for line in done.stderr.splitlines() if line]
    assert len(said) == 2
    assert said[0].startswith("No connection to http://127.0.0.1:1")
    assert said[1].startswith("blah is no command of blazar")


KEYSTONE = "https://keystone.example/v3"
LOGIN = ("--os-auth-url", KEYSTONE, "--os-username", "alice", "--os-password", "s3cr3t", "--os-project-name", "physics")


@pytest.fixture
def keystone(requests_mock):
    """Keystone that lets in; its catalog has a reservation service in region north."""
    token = fixture.V3Token(project_id="p1")
    token.add_service("reservation").add_standard_endpoints(region="north", public=f"{URL}/v1")
    requests_mock.get(KEYSTONE, json={"version": fixture.V3Discovery(KEYSTONE)})
    requests_mock.post(f"{KEYSTONE}/auth/tokens", json=token, headers={"X-Subject-Token": "t0k3n"})
    return requests_mock


def test_a_service_that_is_not_in_the_catalog_is_told(run, api, keystone):
    code, out, err = run(*LOGIN, "--os-region-name", "south", "lease-list", endpoint=None)
    assert (code, out, len(err.splitlines())) == (7, "", 1)
    assert "south" in err


def test_a_wrong_password_is_told(run, api, keystone):
    message = {"error": {"code": 401, "title": "Unauthorized", "message": "Wrong."}}
    keystone.post(f"{KEYSTONE}/auth/tokens", json=message, status_code=401)
    code, out, err = run(*LOGIN, "lease-list", endpoint=None)
    assert (code, out, len(err.splitlines())) == (4, "", 1)


def test_debug_has_neither_password_nor_token(run, api, keystone):
    code, out, err = run("--debug", *LOGIN, "lease-list", "-f", "value", "-c", "name", endpoint=None)
    assert (code, out) == (0, "alpha\n")
    assert f"{URL}/v1/leases" in err
    assert "s3cr3t" not in err
    assert "t0k3n" not in err


def test_an_expired_token_is_renewed_once(run, api, keystone):
    expired = {"json": {"error_message": "Expired."}, "status_code": 401}
    api.get(f"{URL}/v1/leases", [expired, {"json": {"leases": [LEASE]}}])
    assert run(*LOGIN, "lease-list", "-f", "value", "-c", "name", endpoint=None) == (0, "alpha\n", "")


def test_ctrl_c_while_it_starts_is_no_fault(run, api, monkeypatch, capsys):
    monkeypatch.setattr(shell, "main", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    assert __main__.main() == 130
    assert capsys.readouterr().err == "Stopped.\n"
