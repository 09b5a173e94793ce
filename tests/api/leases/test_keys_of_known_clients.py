# SPDX-License-Identifier: Apache-2.0
"""What known clients send at 1.0 has its effect: no key of theirs is dropped that ``docs/different.md`` does not name.

The keys are those of python-blazarclient 4.6.0, of blazar-dashboard, of Tempest's tests, and of Chameleon's and
Nectar's clients. Each has a value other than its default, so that it is seen where it is kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from blazar.clouds.ports.compute import Flavor
from blazar.model.resources.resource import HOST
from tests.api.conftest import app_of, client_of, token
from tests.world import TYPES, World

OPERATOR = token("root", "demo", "admin")
ON_NODE = '["==", "$hypervisor_hostname", "node-1"]'
RACK = '["==", "$rack", "r7"]'

RESERVATIONS: Mapping[str, Mapping[str, Any]] = {
    "physical:host": {
        "min": 1,
        "max": 2,
        "hypervisor_properties": ON_NODE,
        "resource_properties": RACK,
        "before_end": "snapshot",
        "on_start": "default",
    },
    "virtual:instance": {
        "vcpus": 2,
        "memory_mb": 1024,
        "disk_gb": 5,
        "amount": 2,
        "affinity": "True",
        "resource_properties": ON_NODE,
        # Nectar's.
        "ephemeral_gb": 3,
        "extra_specs": {"hw:cpu_policy": "shared"},
    },
    "flavor:instance": {"flavor_id": 42, "amount": 2, "affinity": "None", "resource_properties": ""},
    "virtual:floatingip": {"amount": 2, "network_id": "public", "required_floatingips": ["203.0.113.100"]},
    "network": {
        "network_name": "lab",
        "network_description": "OFController=h:6633",
        "network_properties": '["==", "$physical_network", "physnet1"]',
        "resource_properties": '["==", "$segment_id", "100"]',
        "before_end": "email",
    },
    "device": {
        "min": 1,
        "max": 2,
        "resource_properties": '["==", "$model", "pi"]',
        "before_end": "email",
        "on_start": "",
    },
}
"""All keys of a reservation that a client sends, by type. Clients know no other types."""

FLAVOR = {"id": "42", "name": "c1.small", "vcpus": 1, "ram": 512, "disk": 1}
"""What the answer has of the flavor that is asked for, in ``resource_properties``."""

HOST_OF_A_CLIENT = {
    "resource_type": "physical:host",
    "min": 1,
    "max": 1,
    "hypervisor_properties": "",
    "resource_properties": "",
}

KEPT: Mapping[tuple[str, str], Any] = {
    ("flavor:instance", "flavor_id"): FLAVOR,
    ("flavor:instance", "resource_properties"): FLAVOR,
    ("virtual:instance", "affinity"): True,
    ("flavor:instance", "affinity"): None,
    ("network", "before_end"): "notification",
    ("device", "before_end"): "notification",
}
"""What is kept of a value where it is written otherwise."""

SAID: Mapping[tuple[str, str], str] = {
    ("physical:host", "on_start"): "`on_start`",
    ("device", "on_start"): "`on_start`",
}
"""What has no effect, and the words of the page that say so."""


@pytest.fixture
def world(sqlite) -> World:
    world = World(sqlite)
    world.register_addresses(100, 101)
    world.register_segments(100)
    world.register_device("edge-1", capabilities={"model": "pi"})
    world.register_device("edge-2", capabilities={"model": "pi"})
    world.simulated.operators.offer_flavor(Flavor("42", "c1.small", 1, 512, 1, public=True))
    return world


class Client:
    """A client of 1.0."""

    def __init__(self, world: World) -> None:
        self._http = client_of(app_of(world.manager))

    def send(self, method: str, path: str, body: object, who: Mapping[str, str] = OPERATOR) -> Any:
        return self._http.open(path, method=method, json=body, headers=dict(who))


@pytest.fixture
def client(world) -> Client:
    made = Client(world)
    for host in world.manager.resources.all(HOST):
        assert made.send("PUT", f"/v1/os-hosts/{host.external_id}", {"rack": "r7"}).status_code == 200
    return made


def lease(*reservations: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    dates = {"start_date": "2030-04-01 13:00", "end_date": "2030-04-01 15:00"}
    return {"name": "x", **dates, "events": [], "before_end_date": None, "reservations": list(reservations), **more}


def test_the_types_are_those_that_there_are():
    assert RESERVATIONS.keys() < {make.resource_type for make in TYPES if hasattr(make, "resource_type")} | {
        "virtual:floatingip",
        "network",
        "device",
    }


@pytest.mark.sample(3)
@pytest.mark.parametrize("resource_type", RESERVATIONS)
def test_each_key_of_a_reservation_is_kept_or_said_to_be_without_effect(world, client, resource_type):
    sent = RESERVATIONS[resource_type]
    made = client.send("POST", "/v1/leases", lease({"resource_type": resource_type, **sent}), token())
    assert made.status_code == 201, made.text
    (kept,) = world.manager.leases.one(made.json["lease"]["id"]).reservations
    shown = {**made.json["lease"]["reservations"][0], **kept.parameters.values}
    if resource_type == "flavor:instance":
        flavor = json.loads(shown["resource_properties"])
        shown |= dict.fromkeys(("flavor_id", "resource_properties"), {key: flavor.get(key) for key in FLAVOR})
    dropped = {
        (resource_type, key)
        for key, value in sent.items()
        if shown.get(key, "nothing") != KEPT.get((resource_type, key), value)
    }
    assert dropped == {each for each in SAID if each[0] == resource_type}


def test_the_page_says_what_has_no_effect():
    page = (Path(__file__).parents[3] / "docs" / "different.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    for words in SAID.values():
        assert any(row.startswith(f"| {words}") for row in rows), words


def test_a_choice_of_hosts_that_a_flavor_cannot_have_is_refused(client):
    sent = {"resource_type": "flavor:instance", **RESERVATIONS["flavor:instance"], "resource_properties": ON_NODE}
    assert client.send("POST", "/v1/leases", lease(sent), token()).status_code == 400


@pytest.mark.parametrize("resource_type", ["physical:host", "device"])
def test_what_would_be_run_at_the_start_is_refused(client, resource_type):
    sent = {**RESERVATIONS[resource_type], "on_start": "orchestration:0b1c2d3e-1111-4222-8333-444455556666"}
    refused = client.send("POST", "/v1/leases", lease({"resource_type": resource_type, **sent}), token())
    assert refused.status_code == 400
    assert "on_start" in refused.json["error_message"]
    assert "virtual:stack" in refused.json["error_message"]


def test_each_key_of_a_lease_has_its_effect(world, client):
    events = [{"event_type": "notification", "event_date": "2030-04-01 14:00"}]
    body = lease(
        {"resource_type": "physical:host", "min": 1, "max": 1, "hypervisor_properties": "", "resource_properties": ""}
    )
    body |= {"events": events, "before_end_date": "2030-04-01 14:30"}
    made = client.send("POST", "/v1/leases", body, token()).json["lease"]
    assert (made["name"], made["start_date"][:16], made["end_date"][:16]) == (
        "x",
        "2030-04-01T13:00",
        "2030-04-01T15:00",
    )
    times = {event["event_type"]: event["time"][:16] for event in made["events"]}
    assert (times["notification"], times["before_end_lease"]) == ("2030-04-01T14:00", "2030-04-01T14:30")
    changes = {
        "name": "y",
        "start_date": "2030-04-01 12:30",
        "end_date": "2030-04-01 16:00",
        "before_end_date": "2030-04-01 15:30",
    }
    after = client.send("PUT", f"/v1/leases/{made['id']}", changes, token()).json["lease"]
    times = {event["event_type"]: event["time"][:16].replace("T", " ") for event in after["events"]}
    assert after["name"] == "y"
    assert {times[each] for each in ("start_lease", "end_lease", "before_end_lease")} == {*changes.values()} - {"y"}


CHANGES: Mapping[str, Mapping[str, Any]] = {
    "physical:host": {"min": 1, "max": 1, "hypervisor_properties": "", "resource_properties": "", "before_end": "none"},
    "virtual:instance": {
        "vcpus": 1,
        "memory_mb": 512,
        "disk_gb": 4,
        "amount": 1,
        "affinity": "False",
        "resource_properties": "",
    },
    "virtual:floatingip": {"amount": 1, "required_floatingips": [], "network_id": "public"},
    "network": {
        "network_name": "other",
        "network_description": "",
        "resource_properties": "",
        "network_properties": "",
    },
    "device": {"min": 1, "max": 1, "resource_properties": "", "before_end": "none"},
}
"""All keys of a reservation that a client sends with a change."""


@pytest.mark.sample(2)
@pytest.mark.parametrize("resource_type", CHANGES)
def test_each_key_of_a_change_of_a_reservation_has_its_effect(world, client, resource_type):
    sent = {"resource_type": resource_type, **RESERVATIONS[resource_type]}
    made = client.send("POST", "/v1/leases", lease(sent), token()).json["lease"]
    change = {"reservations": [{"id": made["reservations"][0]["id"], **CHANGES[resource_type]}]}
    changed = client.send("PUT", f"/v1/leases/{made['id']}", change, token())
    assert changed.status_code == 200, changed.text
    (kept,) = world.manager.leases.one(made["id"]).reservations
    wanted = {**CHANGES[resource_type], **({"affinity": False} if "affinity" in CHANGES[resource_type] else {})}
    assert {key: kept.parameters.values[key] for key in wanted} == wanted


REGISTRATIONS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "a host": ("/v1/os-hosts", {"name": "node-4", "gpu": "True", "disabled": True, "authorized_projects": ["p"]}),
    "an address": ("/v1/floatingips", {"floating_network_id": "public", "floating_ip_address": "203.0.113.102"}),
    "a network": (
        "/v1/networks",
        {"network_type": "vlan", "physical_network": "physnet1", "segment_id": "101", "usage_type": "storage"},
    ),
    "a device": (
        "/v1/devices",
        {
            "name": "edge-3",
            "device_type": "container",
            "device_driver": "none",
            "uid": "u-3",
            "machine_name": "raspberrypi",
            "model": "pi",
            "authorized_projects": "p",
        },
    ),
}
"""All keys that register a resource, and capabilities with those that clients always set."""


@pytest.mark.parametrize("what", REGISTRATIONS)
def test_each_key_of_a_registration_is_shown(sqlite, what):
    world = World(sqlite, hosts=4, register=False)
    path, sent = REGISTRATIONS[what]
    made = Client(world).send("POST", path, sent)
    assert made.status_code == 201, made.text
    ((_, shown),) = made.json.items()
    shown = {**shown, "name": shown.get("name", shown.get("hypervisor_hostname"))}
    texts = {key: ",".join(value) if isinstance(value, list) else str(value) for key, value in shown.items()}
    wanted = {key: ",".join(value) if isinstance(value, list) else str(value) for key, value in sent.items()}
    assert {key: texts.get(key) for key in wanted} == wanted
    if what != "an address":
        changed = Client(world).send("PUT", f"{path}/{shown['id']}", {"rack": "r9", "cpu": 4})
        ((_, shown),) = changed.json.items()
        assert (shown["rack"], shown["cpu"]) == ("r9", "4")
