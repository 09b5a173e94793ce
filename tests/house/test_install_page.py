# SPDX-License-Identifier: Apache-2.0
"""What docs/install.md has people type."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from blazar.cmd import config

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
SHELL = "\n".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL))
FILES = [
    *re.findall(r"<<END\n(\[DEFAULT\].*?)\nEND", PAGE, re.DOTALL),
    *re.findall(r"```ini\n(.*?)```", PAGE, re.DOTALL),
]


@pytest.mark.parametrize("text", FILES, ids=lambda text: text.splitlines()[0])
def test_every_option_on_the_page_is_read(tmp_path, monkeypatch, text):
    names = set(re.findall(r"\$([A-Z_]+)", text))
    values = {"DB_URL": "sqlite:////tmp/x", "PORT": "4321"}
    for name in names:
        text = text.replace(f"${name}", values.get(name, "x"))
    file = tmp_path / "blazar.conf"
    file.write_text(text, encoding="utf-8")
    conf = config.load(["--config-file", str(file)], program="blazar-test")
    assert config.leftovers(conf) == []


@pytest.mark.parametrize(
    "words",
    [
        "/usr/bin/python3 -m venv /opt/blazar",
        'openstack user set --domain Default --password "$BLAZAR_PASSWORD" blazar',
        "openstack role add --user blazar --user-domain Default --domain Default --inherited member",
        "openstack subnet set --no-allocation-pool --allocation-pool",
        "/opt/blazar/bin/blazar-manager --config-file /etc/blazar/blazar.conf",
        "/opt/blazar/bin/blazar-api --config-file /etc/blazar/blazar.conf",
    ],
)
def test_what_an_installation_needs_is_typed(words):
    assert words in SHELL


def test_the_port_stands_in_one_place():
    assert PAGE.count("1234") == 1


def test_the_api_is_asked_only_after_the_units_are_up():
    # Units of type notify are up when they answer.
    assert SHELL.index("systemctl enable --now blazar-manager blazar-api") < SHELL.index('curl -i "$API/v1"')


def test_what_a_memcached_holds_is_encrypted():
    (file,) = (text for text in FILES if "memcached_servers" in text)
    assert "memcache_security_strategy = ENCRYPT" in file
    assert "memcache_secret_key = " in file


def test_the_manager_is_not_started_by_what_kills_it_with_its_work_half_done():
    assert not [line for line in SHELL.splitlines() if re.match(r"(runuser|su) .*blazar-(manager|api)", line)]


THEIRS = (
    "Failed to find some config files",
    "status=203/EXEC",
    "Permission denied",
    "/opt/blazar/bin/…",
    "internal endpoint for compute service in … region not found",
    "ACCESS_REFUSED",
    "NOT_ALLOWED - vhost … not found",
    "Connection failed: … (retrying …)",
    "PRECONDITION_FAILED - inequivalent arg …",
    "No valid host",
    "Could not load 'reservation_host_unset'",
    "Failed to retrieve allocations for resource provider",
    "Internal Server Error",
)
"""Messages of systemd, the message bus, Nova, and libraries of ours."""


def texts(tree: ast.AST) -> Iterator[str]:
    """Yield the texts of a module; what is put into them is "…"."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def is_said(message: str, said: set[str]) -> bool:
    """Return whether a text has the message, or all parts of the message are texts of their own."""
    parts = [part.strip(" :,") for part in message.split("…")]
    if all(any(part in text for text in said) for part in parts):
        return True
    pieces = (text.split("…") for text in said if len(text.replace("…", "")) > 10)
    return any(all(piece in message for piece in each) for each in pieces)


@pytest.mark.slow
def test_what_the_table_of_troubles_quotes_is_said_by_our_programs():
    files = [file.read_text(encoding="utf-8") for file in (ROOT / "blazar").rglob("*.py")]
    said = {text for file in files for text in texts(ast.parse(file)) if len(text) < 500}
    table = PAGE.partition("## Troubleshooting")[2]
    firsts = re.findall(r"^\| (.*?) \| ", table, re.MULTILINE)
    quoted = {message for first in firsts for message in first.split("`")[1::2] if " " in message} - set(THEIRS)
    assert len(quoted) > 20
    assert {message for message in quoted if not is_said(message, said)} == set()


@pytest.mark.parametrize("status", ["401", "503"])
def test_who_is_told_a_status_only_finds_it_among_the_troubles(status):
    assert re.search(rf"^\| {status} ", PAGE.partition("## Troubleshooting")[2], re.MULTILINE)


def test_the_order_of_an_upgrade_is_told_in_one_place():
    steps = PAGE.partition("## Upgrading")[2].partition("\n## ")[0]
    assert "blazar-db-manage" in steps
    others = [file for file in (ROOT / "docs").glob("*.md") if file.name != "install.md"]
    assert not [file.name for file in others if re.search(r"^#+ Upgrading", file.read_text(encoding="utf-8"), re.M)]
