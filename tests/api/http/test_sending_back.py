# SPDX-License-Identifier: Apache-2.0
"""Clients that read a lease, and send its reservations back whole with a new date, as many do."""

from __future__ import annotations

from typing import Any

import pytest

from blazar.clouds.ports.compute import Flavor
from tests.api.conftest import token
from tests.resources.stacks.test_life import address, server, template, volume
from tests.world import NOON, TYPES, World

VERSIONS = ("1.0", "1.1")
WHO = {"a member": token(), "an operator": token("root", "demo", "admin")}
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8Zc1zq7o1fJt0sQ6bM1yN2p8s6Y0kQyq8m2Yy4h9aB"
INSTANCES = {"amount": 1, "vcpus": 2, "memory_mb": 2048, "disk_gb": 10, "affinity": None, "resource_properties": ""}
STACK = template(
    {"word": {"type": "string", "hidden": True}},
    one=server(user_data={"get_param": "word"}),
    disk=volume(),
    outside=address(),
)
OF_TYPE: dict[str, dict[str, Any]] = {
    "physical:host": {"min": 1, "max": 1, "hypervisor_properties": "", "resource_properties": '[">=", "$vcpus", "1"]'},
    "virtual:instance": INSTANCES,
    "flavor:instance": {"amount": 1, "flavor_id": "42", "affinity": None},
    "virtual:floatingip": {"amount": 1, "network_id": "public"},
    "network": {"network_name": "lab", "network_properties": "", "resource_properties": ""},
    "device": {"min": 1, "max": 1, "resource_properties": ""},
    "generic": {"class": "microscope", "min": 1, "max": 1},
    "virtual:volume": {"size": 10, "amount": 1},
    "virtual:server": {"flavor": "42", "image": "cirros", "user_data": "aGVsbG8=", "public_key": PUBLIC_KEY},
    "virtual:stack": {
        "template": STACK,
        "parameters": {"word": "s3cr3t"},
        "environment": "parameter_defaults: {word: s3cr3t}",
    },
}


@pytest.fixture
def world(sqlite) -> World:
    world = World(sqlite)
    world.register_pools(1)
    world.register_addresses(100)
    world.register_segments(100)
    world.register_thing()
    world.register_device()
    for flavor in (Flavor("42", "c1.small", 1, 512, 1, public=True), Flavor("s", "small", 1, 512, 0, public=True)):
        world.simulated.operators.offer_flavor(flavor)
    return world


def test_all_types_are_here(world):
    assert OF_TYPE.keys() == {make(world.simulated.cloud, world.host_settings).resource_type for make in TYPES}


@pytest.mark.sample(1)
@pytest.mark.parametrize("time", ["pending", "active"])
@pytest.mark.parametrize("resource_type", OF_TYPE)
def test_a_reservation_that_is_sent_back_whole_is_as_it_was(http, world, resource_type, time):
    def call(method: str, path: str, version: str, who: str = "a member", **more: Any) -> Any:
        headers = {**WHO[who], "OpenStack-API-Version": f"reservation {version}"}
        answer = http.open(path, method=method, headers=headers, **more)
        assert answer.status_code in (200, 201), (version, who, answer.text)
        return answer.json["lease"]

    start = {"pending": "2030-04-01T13:00Z", "active": "2030-04-01T12:00Z"}[time]
    reservation = {"resource_type": resource_type, **OF_TYPE[resource_type]}
    asked = {"name": "x", "start_date": start, "end_date": "2030-04-01T15:00Z", "reservations": [reservation]}
    path = f"/v1/leases/{call('POST', '/v1/leases', '1.0', json=with_dates(asked))['id']}"
    world.run_to(NOON)
    world.run_to(NOON.replace(minute=1))
    hour = 15
    for version in VERSIONS:
        for who in WHO:
            hour += 1
            before = call("GET", path, version, who)
            assert [each["status"] for each in before["reservations"]] == [time]
            sent = {"reservations": before["reservations"], "end_date": f"2030-04-01T{hour}:00Z"}
            after = call("PUT", path, version, who, json=with_dates(sent) if version == "1.0" else sent)
            assert after["end_date"].startswith(f"2030-04-01T{hour}:00")
            assert without_times(after["reservations"]) == without_times(before["reservations"])
    (kept, *_) = world.manager.leases.one(path.rsplit("/", 1)[1]).reservations
    assert "s3cr3t" in str(kept.parameters.values) or resource_type != "virtual:stack"


def with_dates(body: dict[str, Any]) -> dict[str, Any]:
    """Return a request with dates as 1.0 has them."""
    dates = {key: value[:16].replace("T", " ") for key, value in body.items() if key.endswith("_date")}
    return {**body, **dates}


def without_times(reservations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in each.items() if k not in ("updated_at", "children")} for each in reservations]


@pytest.mark.sample(2)
@pytest.mark.parametrize("version", VERSIONS[1:])
@pytest.mark.parametrize(("field", "value"), [("status", "active"), ("stack_id", "x"), ("takes", {}), ("children", [])])
def test_what_the_service_sets_and_a_change_has_otherwise_is_refused(http, world, version, field, value):
    headers = {**token(), "OpenStack-API-Version": f"reservation {version}"}
    reservation = {"resource_type": "virtual:stack", **OF_TYPE["virtual:stack"]}
    asked = {"name": "x", "start_date": "2030-04-01T13:00Z", "end_date": "+PT2H", "reservations": [reservation]}
    lease = http.post("/v1/leases", json=asked, headers=headers).json["lease"]
    change = {"reservations": [{**lease["reservations"][0], field: value}], "end_date": "+PT3H"}
    refused = http.put(f"/v1/leases/{lease['id']}", json=change, headers=headers)
    assert refused.status_code == 400
    (error,) = refused.json["errors"]
    assert error["code"] == "reservation.read_only_field"
    assert error["pointer"] == f"/reservations/0/{field}"
