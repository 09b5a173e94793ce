# SPDX-License-Identifier: Apache-2.0
"""The examples of the client's page are run as they stand there, one after the other."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from blazarclient import sdk
from blazarclient.library import Reservations

from tests.api.conftest import app_of
from tests.client.serving import serving

README = (Path(__file__).parents[2] / "client" / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


@pytest.fixture
def cloud(world, tmp_path, monkeypatch):
    """A cloud called ``mine`` in clouds.yaml; what is due has happened whenever somebody asks."""
    app = app_of(world.manager)

    def prompt(environ, start_response):
        world.clock.by(seconds=1)
        world.run()
        return app(environ, start_response)

    with serving(prompt) as way:
        path = tmp_path / "clouds.yaml"
        login = f'{{endpoint: "{way.url}", token: "curie:physics"}}'
        path.write_text(f"clouds: {{mine: {{auth_type: admin_token, auth: {login}}}}}", encoding="utf-8")
        monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(path))
        yield way


@pytest.mark.slow
def test_the_examples_run(cloud, capsys):
    names: dict[str, object] = {}
    for example in EXAMPLES:
        exec(compile(example, "README.md", "exec"), names)
    told = capsys.readouterr().out
    assert "'reservation': " in told
    assert "Not enough hosts available: at least 99 requested" in told
    assert "once PENDING" in told
    assert len(EXAMPLES) > 7


def named(section: str) -> set[str]:
    """Return what the table of a section names as code."""
    rows = re.findall(r"^\| .*$", README.split(section)[1].split("\n## ")[0], re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([a-z_]+)`", row)}


def test_every_method_of_the_library_is_on_the_page():
    library = Reservations(None)
    parts = {name: part for name, part in vars(library).items() if name != "transport"}
    methods = {name for part in parts.values() for name in public(type(part))}
    assert methods | set(parts) | public(Reservations) <= named("## Library")


def test_every_method_of_the_sdk_is_on_the_page():
    assert {name for name in vars(sdk.Proxy) if not name.startswith("_")} - {"api_version", "library"} == named(
        "## openstacksdk"
    )


def public(kind: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}
