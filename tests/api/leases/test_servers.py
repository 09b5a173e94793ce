# SPDX-License-Identifier: Apache-2.0
"""Reservations of servers over HTTP: their user data is as long as Nova allows, and is never in an answer."""

from __future__ import annotations

import base64
import json

import pytest

from blazar.clouds.ports.compute import Flavor
from tests.api.conftest import token
from tests.api.leases.test_leases import asking
from tests.world import World

LONGEST = base64.b64encode(b"hunter2" * 7000).decode()[: 65535 // 4 * 4]
SERVER = {"resource_type": "virtual:server", "flavor": "42", "image": "cirros"}
ADMIN = token("root", "demo", "admin")
OF = {
    "1.0": {"start_date": "2030-05-01 10:00", "end_date": "2030-05-01 12:00"},
    "1.1": {"start_date": "2030-05-01T10:00Z", "end_date": "+2h"},
}


@pytest.fixture
def world(sqlite) -> World:
    world = World(sqlite)
    world.simulated.operators.offer_flavor(Flavor("42", "c1.small", 8, 4096, 20, public=True))
    return world


@pytest.fixture
def http(world):
    return asking(world)


def body(version, **more):
    return {"name": "x", **OF[version], "reservations": [{**SERVER, **more}]}


def headers(version, who=None):
    return {**(who or {}), "OpenStack-API-Version": f"reservation {version}"}


@pytest.mark.parametrize("version", OF)
def test_the_longest_user_data_is_taken_and_never_shown(http, world, version):
    made = http("POST", "/v1/leases", body(version, user_data=LONGEST), headers(version))
    assert made.status_code == 201, made.json
    lease = made.json["lease"]["id"]
    (kept,) = world.manager.leases.one(lease).reservations
    assert kept.parameters.values["secret"] == {"user_data": LONGEST}
    for who in (None, ADMIN):
        for path in ("/v1/leases", f"/v1/leases/{lease}"):
            answer = http("GET", path, headers=headers(version, who))
            assert answer.status_code == 200
            assert LONGEST[:40] not in json.dumps(answer.json)
            assert "user_data" not in json.dumps(answer.json)
    change = {"reservations": [{"id": kept.id, "name": "web"}]}
    answer = http("PUT", f"/v1/leases/{lease}", change, headers(version))
    assert (answer.status_code, LONGEST[:40] in json.dumps(answer.json)) == (200, False), answer.json
    (kept,) = world.manager.leases.one(lease).reservations
    assert (kept.parameters.values["secret"], kept.parameters.values["name"]) == ({"user_data": LONGEST}, "web")


@pytest.mark.parametrize("version", OF)
@pytest.mark.parametrize("value", [LONGEST + "AAAA", "no base64!", 5])
def test_user_data_that_nova_would_refuse_is_refused(http, version, value):
    answer = http("POST", "/v1/leases", body(version, user_data=value), headers(version))
    assert (answer.status_code, "user_data" in json.dumps(answer.json)) == (400, True)
    assert LONGEST[:40] not in json.dumps(answer.json)


@pytest.mark.parametrize("version", OF)
@pytest.mark.parametrize("flavor", [42, "42"])
def test_a_flavor_may_be_a_number(http, version, flavor):
    made = http("POST", "/v1/leases", body(version, flavor=flavor), headers(version))
    assert made.status_code == 201, made.json
    (shown,) = made.json["lease"]["reservations"]
    assert (shown["flavor"], shown["vcpus"]) == ("42", 8)
