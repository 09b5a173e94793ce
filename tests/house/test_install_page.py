# SPDX-License-Identifier: Apache-2.0
"""What docs/install.md has people type."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from blazar.cmd import config

PAGE = (Path(__file__).parents[2] / "docs" / "install.md").read_text(encoding="utf-8")
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
