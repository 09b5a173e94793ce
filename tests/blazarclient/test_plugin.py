# SPDX-License-Identifier: Apache-2.0
"""What the ``openstack`` command finds of this client."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
from blazarclient import command, exception
from blazarclient.osc import plugin

PROJECT = tomllib.loads((Path(__file__).parents[2] / "client" / "pyproject.toml").read_text(encoding="utf-8"))
COMMANDS = PROJECT["project"]["entry-points"]["openstack.reservation.v1"]
OLD = {
    "lease": {"list", "show", "create", "set", "delete"},
    "host": {"list", "show", "create", "set", "unset", "delete"},
    "host property": {"list", "show", "set"},
    "floatingip": {"list", "show", "create", "delete"},
    "allocation": {"list", "show"},
}


def manager(url="https://blazar.example", **values):
    settings = {"region_name": "north", "interface": "internal", "session": object(), **values}
    return SimpleNamespace(get_endpoint_for_service_type=lambda *_, **__: url, **settings)


def test_each_command_of_the_existing_plugin_is_there():
    names = {name.replace("_", " ") for name in COMMANDS}
    assert {f"reservation {noun} {verb}" for noun, verbs in OLD.items() for verb in verbs} <= names


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_can_be_loaded(name):
    module, _, attribute = COMMANDS[name].partition(":")
    assert issubclass(getattr(importlib.import_module(module), attribute), command.BlazarCommand)


def test_help_of_openstack_tells_where_a_command_comes_from():
    made = importlib.import_module("blazarclient.commands.listing").ListLeases(SimpleNamespace(), None)
    assert made.get_epilog() == f"This command is provided by the {PROJECT['project']['name']} plugin."


@pytest.mark.parametrize("url", ["https://blazar.example", "https://blazar.example/v1"])
def test_the_client_goes_where_the_catalog_says(url):
    made = plugin.make_client(manager(url))
    assert made.lease.request_manager.endpoint_override == "https://blazar.example/v1"


def test_a_cloud_without_the_service_is_told_and_no_other_region_is_taken():
    sentence = "no reservation service in region north at the internal interface"
    with pytest.raises(exception.NoBlazarEndpoint, match=sentence):
        plugin.make_client(manager(None))
