# SPDX-License-Identifier: Apache-2.0
"""What operators read about the configuration is what the processes read."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from keystonemiddleware.auth_token import AuthProtocol
from oslo_config import cfg

from blazar.cmd import config

ROOT = Path(__file__).parents[2]


def run(program: str, *arguments: str) -> str:
    command = [sys.executable, "-W", "ignore", Path(sys.executable).with_name(program), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def sample(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("sample") / "blazar.conf"
    run("oslo-config-generator", "--config-file", "etc/blazar/blazar-config-generator.conf", "--output-file", str(path))
    return path


@pytest.mark.slow
def test_the_sample_shows_every_option_of_ours_and_the_sections_of_the_libraries(sample):
    section, shown = "", set()
    for line in sample.read_text(encoding="utf-8").splitlines():
        if match := re.fullmatch(r"\[(.+)\]", line):
            section = match[1]
        elif match := re.match(r"#(\w+) =", line):
            shown.add((section, match[1]))
    ours = {(group, option.name) for group, options in config.list_opts() for option in options}
    assert {(group, name.replace("-", "_")) for group, name in ours} <= shown
    assert {
        ("DEFAULT", "debug"),
        ("DEFAULT", "transport_url"),
        ("keystone", "auth_type"),
        ("keystone_authtoken", "www_authenticate_uri"),
        ("oslo_messaging_notifications", "driver"),
        ("oslo_messaging_rabbit", "ssl"),
        ("oslo_middleware", "enable_proxy_headers_parsing"),
        ("oslo_policy", "policy_file"),
    } <= shown


def test_the_sample_tells_nothing_of_the_machine_that_wrote_it(sample):
    text = sample.read_text(encoding="utf-8")
    assert str(ROOT) not in text
    assert str(Path.home()) not in text


def test_the_sample_is_a_configuration_that_is_read_as_it_stands(sample):
    assert config.leftovers(config.load(["--config-file", str(sample)], program="blazar-api")) == []


def test_the_generator_and_the_processes_know_the_same_libraries():
    text = (ROOT / "etc/blazar/blazar-config-generator.conf").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^namespace = (.+)$", text, re.M)) == config.NAMESPACES


def test_every_option_and_choice_of_ours_says_what_it_is():
    silent = [
        f"[{group}] {option.name}"
        for group, options in config.GROUPS.items()
        for option in options
        if not option.help or None in (getattr(option.type, "choices", None) or {}).values()
    ]
    assert silent == []


def test_the_api_can_keep_tokens_in_memcached_as_existing_files_ask_for():
    conf = config.load([], program="blazar-api", files=[])
    servers = {"memcached_servers": "127.0.0.1:9", "auth_type": "none", "oslo_config_config": conf}
    AuthProtocol(lambda environ, start: [], servers)._token_cache.initialize({})


@pytest.mark.slow
def test_the_policy_sample_shows_every_rule(tmp_path):
    path = tmp_path / "policy.yaml"
    settings = "etc/blazar/blazar-policy-generator.conf"
    run("oslopolicy-sample-generator", "--config-file", settings, "--output-file", str(path))
    shown = re.findall(r'^#"([^"]+)":', path.read_text(encoding="utf-8"), re.M)
    assert {"admin", "blazar:leases:post", "blazar:oshosts:update_resource_properties"} <= set(shown)


@pytest.mark.slow
def test_the_configuration_page_is_up_to_date():
    done = subprocess.run([sys.executable, "tools/configuration_page.py"], cwd=ROOT, capture_output=True, text=True)
    page = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    assert done.stdout == page, "run: make sample-config"


def test_the_page_names_every_option():
    page = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    for group, options in config.GROUPS.items():
        for option in options:
            assert isinstance(option, cfg.Opt)
            assert f"`{option.name}`" in page or f"`[{group}] {option.name}`" in page


DEFAULTS = re.compile(r"^\| option(?: of `\[(\w+)\]`)?[^|]*\| default \|")


def defaults(page: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the section, the option and its default of each row of the tables of options on a page."""
    section = None
    for line in page.read_text(encoding="utf-8").splitlines():
        if (head := DEFAULTS.match(line)) is not None:
            section = head[1] or ""
        elif section is not None and line.startswith("| `"):
            names, values = (cell.strip() for cell in line.split("|")[1:3])
            group = section
            found = re.findall(r"`(?:\[([\w:]+)\] )?(\w+)`", names)
            # A default of several words of a list belongs to one option.
            each = values.split(", ") if len(found) > 1 else [values]
            for (of, name), value in zip(found, each, strict=True):
                group = of or group
                yield group, name, value
        elif not line.startswith("|"):
            section = None


def written(default: object) -> set[str]:
    """Return how a table may write a default."""
    if default is None or default == "" or default == []:
        return {"", "empty"}
    if isinstance(default, list):
        return {f"`{','.join(default)}`", ", ".join(f"`{each}`" for each in default)}
    text = str(default).lower() if isinstance(default, bool) else str(default)
    return {text, f"`{text}`"}


def test_every_default_in_a_table_of_options_is_the_one_that_is_read():
    ours = {(group, option.name): option.default for group, options in config.GROUPS.items() for option in options}
    rows = [row for page in sorted((ROOT / "docs").rglob("*.md")) for row in defaults(page)]
    assert {
        ("manager", "plugins"),
        ("physical:host", "notification_topics"),
        ("enforcement", "leases_per_project"),
    } <= {(section, name) for section, name, _ in rows}
    # Those of libraries, and what is said in words.
    rows = [row for row in rows if row[0] not in ("oslo_policy", "api_paste") and row[2] != "CPU policies and topology"]
    wrong = [row for row in rows if re.sub(r" \(was \w+\)", "", row[2]) not in written(ours[row[0], row[1]])]
    assert wrong == []


def test_the_resource_types_that_are_installed_are_those_on_by_default_and_their_number_is_told():
    installed = {one.name for one in entry_points(group="blazar.resource.plugins")}
    (plugins,) = (option.default for option in config.GROUPS["manager"] if option.name == "plugins")
    assert sorted(plugins) == sorted(installed)
    row = "| `[manager] plugins` by default | `dummy.vm.plugin` | the ten resource types |"
    assert row in (ROOT / "docs" / "different.md").read_text(encoding="utf-8")
    assert len(installed) == 10, "docs/different.md tells their number"
