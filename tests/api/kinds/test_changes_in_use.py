# SPDX-License-Identifier: Apache-2.0
"""Changes of what is in use that are refused: where the request has what is wrong."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.clouds.ports.compute import Flavor
from tests.api.conftest import app_of
from tests.api.leases.test_references import ask
from tests.world import NOON, World, a_host, a_network, addresses, flavored, instances, servers, things, units, volumes

FLAVOR = Flavor("small", "small", 1, 512, 1, public=True)


@pytest.fixture
def world(sqlite) -> World:
    world = World(sqlite)
    world.register_addresses(10, 11)
    world.register_segments(101)
    world.register_pools(1)
    world.register_thing("microscope-1", capacity=4)
    world.register_thing("microscope-2")
    world.simulated.operators.offer_flavor(FLAVOR)
    return world


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("reservation", "field", "value"),
    [
        (a_host(2), "max", 0),
        (a_host(), "resource_properties", '["==", "$vcpus", "1"]'),
        (instances(), "vcpus", 4),
        (instances(), "affinity", "perhaps"),
        (instances(), "resource_properties", '["==", "$vcpus", "1"]'),
        (flavored(), "flavor_id", []),
        (flavored(), "vcpus", 7),
        (servers(), "networks", "none"),
        (servers(), "image", "no image!"),
        (a_network(), "network_name", "other"),
        (volumes(), "size", 1),
        (volumes(), "amount", 0),
        (units(2), "class", "telescope"),
        (things(2), "max", 1),
        (addresses(), "amount", 0),
    ],
    ids=lambda value: getattr(value, "resource_type", None),
)
def test_a_refusal_points_at_the_field_of_the_reservation(world, reservation, field, value):
    lease = world.lease(reservation)
    world.run_to(NOON + timedelta(minutes=1))
    mine = world.now(lease).reservations[0]
    values = {field: value} if field != "max" else {"min": value, "max": value}
    http = app_of(world.manager).test_client()
    answer = ask(http, "PUT", f"/v1/leases/{lease.id}", "1.1", {"reservations": [{"id": mine.id, **values}]})
    assert 400 <= answer.status_code < 500, answer.text
    assert f"/reservations/0/{field}" in {fault.get("pointer") for fault in answer.json["errors"]}, answer.text
