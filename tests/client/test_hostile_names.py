# SPDX-License-Identifier: Apache-2.0
"""Names are of anybody who may book; the terminals that show them are of operators. No command writes a control
character that came from the service, in whatever format, into whatever it writes, whether it succeeds or not."""

from __future__ import annotations

import io
import json
import re
import subprocess
import unicodedata
from types import SimpleNamespace

import pytest
import yaml
from blazarclient import shell
from blazarclient.commands import base, change, create
from blazarclient.commands.booking import Progress
from blazarclient.library import history, transport
from blazarclient.text_columns import HarmlessStream, harmless

from tests.api.conftest import app_of
from tests.blazarclient.commands.conftest import Time
from tests.client.serving import serving
from tests.world import NOON

EVIL = 'evil\x1b]0;title\x07\x1b[2J\x9b31m\u202egnp\u2066\u2028\r\b\x7f$(touch pwned)`id`"\\'
PLAIN = re.compile(r"\d{4}-\d\d-\d\d.*|[0-9a-f-]{36}|[A-Z_]+|[a-z]+:[a-z]+|https?://.*|/v1.*|[a-z_]+\.[a-z_]+|\d+")
"""Texts that programs read: dates, ids, states, types, links, codes. Nobody else chooses them."""

OPERATOR = "root:physics:admin"
GIVEN = {
    "other": "00000000-0000-4000-8000-000000000000",
    "kind": "host",
    "fields": "name=x",
    "resource_type": "host",
    "property_name": "gpu",
    "network_id": "net",
    "floating_ip_address": "203.0.113.7",
    "--host": "1",
    "--by": "1h",
    "--later": "1h",
    "--end": "+P1D",
    "--rule": "FREQ=DAILY;COUNT=2",
    "--start": "2030-05-01T08:00",
    "--duration": "PT1H",
    "--extra": "gpu",
    "--lease-id": "x",
    "--network-type": "vlan",
    "--segment": "7",
    "--private": None,
}
MORE = {
    "lease create": ["x", "--physical-reservation", "min=1"],
    "lease watch": ["--until", "PENDING"],
    "find": ["--host", "min=1", "--duration", "1h"],
    "capacity": ["--from", "now", "--to", "+1d"],
    "complete": [],
    "help": [],
}


def spoiled(value, how):
    """Return an answer whose texts are hostile: of those that people choose, or of all."""
    match value:
        case dict():
            return {key: spoiled(each, how) for key, each in value.items()}
        case list():
            return [spoiled(each, how) for each in value]
        case str() if how == "all" or not PLAIN.fullmatch(value):
            return value + EVIL
        case _:
            return value


class Spoiling:
    """Passes requests on, and spoils what is answered."""

    def __init__(self, app):
        self.app = app
        self.how = "names"

    def __call__(self, environ, start_response):
        environ.pop("HTTP_ACCEPT_ENCODING", None)
        begun = []
        body = b"".join(self.app(environ, lambda *given: begun.append(given)))
        ((status, headers, *_),) = begun
        if self.how == "refusals":
            status = "409 CONFLICT"
            error = {"status": 409, "code": "reservation.invalid_state", "title": EVIL, "detail": EVIL, "pointer": EVIL}
            body = json.dumps({"errors": [error], "error_message": EVIL}).encode()
        elif body and dict(headers).get("Content-Type") == "application/json":
            body = json.dumps(spoiled(json.loads(body), self.how)).encode()
        headers = [(name, text) for name, text in headers if name not in ("Content-Length", "ETag")]
        start_response(status, [*headers, ("Content-Length", str(len(body)))])
        return [body]


def control_characters(text):
    return [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in "\n\t"]


@pytest.fixture
def spoiling(world):
    world.lease(hours=48, name="training")
    spoiling = Spoiling(app_of(world.manager))
    with serving(spoiling) as way:
        spoiling.url = way.url
        yield spoiling


@pytest.fixture
def run(spoiling, capsys, monkeypatch):
    monkeypatch.setattr(base, "clock", lambda: NOON)
    for module in (change, create):
        monkeypatch.setattr(module, "time", Time())
    monkeypatch.setattr(transport, "PAUSES", (0.0,))

    def stop(seconds: float) -> None:
        raise KeyboardInterrupt

    # What would go on without an end is stopped at its first pause, as by Ctrl-C.
    monkeypatch.setattr(history, "time", SimpleNamespace(sleep=stop))
    login = ("--os-auth-type", "admin_token", "--os-token", OPERATOR, "--os-endpoint", spoiling.url)

    def run(*arguments):
        try:
            code = shell.main([*login, *arguments])
        except SystemExit as left:
            code = left.code
        except KeyboardInterrupt:
            code = 130
        return code, *capsys.readouterr()

    return run


def words_of(name, lease_id):
    """Return the arguments that a command needs, and the formats that it has."""
    parser = shell.Command(name, shell.COMMANDS[name]).load()(shell.BlazarShell(), None).get_parser(name)
    groups = [group._group_actions[0] for group in parser._mutually_exclusive_groups if group.required]
    wanted = [a for a in parser._actions if (a.required or not a.option_strings) and a.nargs not in ("?", "*")]
    words = []
    for action in dict.fromkeys([*groups, *wanted]):
        key = action.option_strings[0] if action.option_strings else action.dest
        given = GIVEN.get(key, lease_id if name.startswith(("lease", "why")) else "1")
        words += [key] if action.option_strings else []
        words += [] if given is None else [given]
    formats = next((action.choices for action in parser._actions if action.dest == "formatter"), [""])
    return [*words, *MORE.get(name, ())], sorted(formats)


@pytest.mark.slow
def test_no_command_writes_a_control_character_of_the_service(run, spoiling, world):
    (lease,) = world.manager.leases.all(None)
    showing: set[str] = set()
    for name in shell.COMMANDS:
        words, formats = words_of(name, lease.id)
        own = [each for each in formats if each in ("csv", "shell", "table", "")]
        ways = [*(("names", each) for each in own), ("all", "value" if own[0] else ""), ("refusals", own[0])]
        for how, form in ways:
            spoiling.how = how
            code, out, err = run(*name.split(), *words, *(["-f", form] if form else []))
            assert code != 2, err
            assert control_characters(out + err) == [], f"{name} -f {form}, {how}"
            showing |= {how, name} if "evil" in out else {how, f"{name} refused"} if "evil" in err else set()
            if form == "shell" and code == 0:
                check_variables(out)
    assert len(showing & shell.COMMANDS.keys()) >= 18
    assert len(showing) >= 80


def check_variables(text):
    """Check that a shell that reads variables carries out nothing."""
    done = subprocess.run(["sh", "-ec", f"cd /nowhere 2>/dev/null || :; {text}"], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), text


def test_json_and_yaml_have_the_names_as_they_are(run, spoiling, world):
    (lease,) = world.manager.leases.all(None)
    assert json.loads(run("lease", "show", lease.id, "-f", "json")[1])["name"] == f"training{EVIL}"
    assert yaml.safe_load(run("lease", "show", lease.id, "-f", "yaml")[1])["name"] == f"training{EVIL}"


def test_a_shell_gets_the_text_and_nothing_to_carry_out(run, spoiling, world, tmp_path):
    (lease,) = world.manager.leases.all(None)
    _, out, _ = run("lease", "show", lease.id, "-f", "shell", "-c", "name")
    done = subprocess.run(
        ["sh", "-c", f'{out}\nprintf %s "$name"'], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == harmless(f"training{EVIL}")
    assert not (tmp_path / "pwned").exists()


def test_a_log_has_no_control_character_either(run, spoiling, world, tmp_path):
    (lease,) = world.manager.leases.all(None)
    log = tmp_path / "log"
    _, out, err = run("--debug", "--log-file", str(log), "lease", "show", lease.id)
    assert control_characters(out + err + log.read_text()) == []


def test_a_line_of_progress_has_no_control_character_of_a_name(capsys):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    progress = Progress(terminal)
    progress.show(f"waits for {EVIL}\nnext")
    assert control_characters(terminal.getvalue().removeprefix("\r")) == []
    assert "\n" not in terminal.getvalue()


def test_a_harmless_stream_passes_on_what_belongs_to_texts():
    raw = io.StringIO()
    stream = HarmlessStream(raw)
    assert stream.write("a\tb\u00a0c\u200dd é 名\n\x1b[1m\x85") == 17
    stream.writelines(["\u202e", "x\n"])
    assert raw.getvalue() == "a\tb\u00a0c\u200dd é 名\n?[1m??x\n"
    assert stream.isatty() is False
