# SPDX-License-Identifier: Apache-2.0
"""``blazar-db-manage hook-secrets``: what the receiver of a resource is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from blazar.clouds.outgoing import signing
from blazar.cmd.db_manage import main
from blazar.model.resources.resource import HOST
from tests.world import World

NEW, OLD = "n" * 40, "o" * 40


@pytest.fixture
def world(sqlite) -> World:
    return World(sqlite, hosts=0)


def printed(world: World, folder: Path, resource: str, *lines: str) -> int:
    file = folder / "blazar.conf"
    file.write_text("\n".join(["[database]", f"connection = {world.engine.url}", "[generic]", *lines]), "utf-8")
    return main(["--config-file", str(file), "hook-secrets", resource])


@pytest.mark.parametrize("by", ["name", "external_id"])
def test_it_prints_the_secrets_of_a_resource_and_the_newest_first(world, tmp_path, capsys, by):
    thing = world.register_thing()
    world.register_thing("microscope-2")
    assert printed(world, tmp_path, getattr(thing, by), f"master_secrets = {NEW},{OLD}") == 0
    said = capsys.readouterr().out.split()
    assert said == [signing.secret_text(signing.derive_secret(each, thing.external_id)) for each in (NEW, OLD)]


def test_an_id_names_one_thing_also_if_another_is_called_so(world, tmp_path, capsys):
    thing = world.register_thing()
    world.register_thing(thing.external_id)
    assert printed(world, tmp_path, thing.external_id, f"master_secrets = {NEW}") == 0
    assert capsys.readouterr().out.split() == [signing.secret_text(signing.derive_secret(NEW, thing.external_id))]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "[generic] master_secrets is not set"),
        ("master_secrets = short", "number 1 has 5 characters"),
        (f"master_secrets = {NEW}", "no generic resource, device, host or volume pool microscope-1 is registered"),
    ],
)
def test_it_says_what_is_missing(world, tmp_path, capsys, line, words):
    assert printed(world, tmp_path, "microscope-1", line) == 1
    assert words in capsys.readouterr().err


def test_a_host_that_a_hook_switches_has_one(sqlite, tmp_path, capsys):
    world = World(sqlite, hosts=1)
    (host,) = world.store.resources.of_kind(HOST)
    assert printed(world, tmp_path, host.name, f"master_secrets = {NEW}") == 0
    assert capsys.readouterr().out.split() == [signing.secret_text(signing.derive_secret(NEW, host.external_id))]
