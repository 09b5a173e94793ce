# SPDX-License-Identifier: Apache-2.0
"""The client and leases without reservations, of a second, of 15 years."""

from __future__ import annotations

import pytest
from blazarclient.shell import main

from tests.api.conftest import app_of
from tests.api.every_shape import SHAPES, Scene
from tests.client.serving import serving

COMMANDS = (
    ("lease", "list"),
    ("lease", "list", "--long"),
    ("lease", "list", "-f", "json"),
    ("lease", "show", "{id}"),
    ("lease", "history", "{id}"),
    ("calendar", "--from", "2030-08-31T00:00:00Z"),
    ("lease", "update", "{id}", "--name", "renamed"),
    ("lease", "extend", "{id}", "--if-free-until", "+2d"),
    ("lease", "delete", "{id}"),
)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [each for each in SHAPES if len(each.reservations) < 9], ids=lambda each: each.name)
def test_each_command_takes_such_a_lease(a_world, shape, capsys):
    scene = Scene(a_world(hosts=6), shape)
    lease = scene.in_state("pending")
    with serving(app_of(scene.world.manager)) as way:
        account = ["--os-auth-type", "admin_token", "--os-token", "curie:physics", "--os-endpoint", way.url]
        codes = {words: main([*account, *(each.format(id=lease["id"]) for each in words)]) for words in COMMANDS}
    assert {words: code for words, code in codes.items() if code} == {}, capsys.readouterr().err
