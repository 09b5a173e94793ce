# SPDX-License-Identifier: Apache-2.0
"""Hypervisors as candidates: those that can be registered as hosts, and those that are."""

from __future__ import annotations

import pytest

from blazar.model.base.errors import CloudUnavailable
from tests.api.conftest import app_of, client_of
from tests.observed import FailingManager
from tests.world import World, instances

VERSION = {"OpenStack-API-Version": "reservation 1.1"}


@pytest.fixture
def world(sqlite):
    world = World(sqlite, hosts=4, register=False)
    for number in (1, 2):
        world.register(f"node-{number}")
    world.simulated.operators.host_down("node-4")
    return world


def test_hypervisors_are_listed_with_their_state_servers_and_hosts(http, world):
    lease = world.lease(instances(2))
    world.run()
    for _ in range(2):
        world.simulated.users.boot_reserved(lease.reservations[0].id, project_id="physics")
    answer = http.get("/v1/resources/host/candidates", headers=VERSION)
    assert answer.headers["Cache-Control"] == "no-store"
    found = {each["name"]: each for each in answer.json["candidates"]}
    assert [found[name]["resource_id"] for name in sorted(found)] == ["1", "2", None, None]
    assert [found[name]["state"] for name in sorted(found)] == ["up", "up", "up", "down"]
    assert sum(each["servers"] for each in found.values()) == 2
    assert {each["servers"] for each in found.values() if each["name"] not in world.hosts_of(lease)} == {0}


def test_those_that_can_be_registered_are_found(http):
    def names(value):
        answer = http.get(f"/v1/resources/host/candidates?registered={value}", headers=VERSION)
        return [each["name"] for each in answer.json["candidates"]]

    assert names("false") == ["node-3", "node-4"]
    assert names("true") == ["node-1", "node-2"]
    assert http.get("/v1/resources/host/candidates?registered=maybe", headers=VERSION).status_code == 400
    assert http.get("/v1/resources/host/candidates?limit=1", headers=VERSION).status_code == 400


def test_without_an_answer_of_the_cloud_the_list_is_503(world):
    manager = FailingManager(world.manager, {"resources.candidates": CloudUnavailable("Nova does not answer")})
    answer = client_of(app_of(manager)).get("/v1/resources/host/candidates", headers=VERSION)
    assert answer.status_code == 503
    assert answer.json["errors"][0]["code"] == "reservation.cloud_unavailable"
