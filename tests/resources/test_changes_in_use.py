# SPDX-License-Identifier: Apache-2.0
"""Changes of leases in use whose requirements name properties that operators have set, for every kind that has them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from blazar.model.base.errors import BlazarError
from blazar.model.leases.requests import ReservationRequest
from blazar.model.resources.resource import NETWORK
from tests.world import NOON, World, a_host, a_network, instances, segment_request, things, units

HOUR = timedelta(hours=1)
FORTY, OVER_THIRTY, OVER_FIFTY = ('["==", "$lens", "40"]', '[">", "$lens", "30"]', '[">", "$lens", "50"]')
ASKED: dict[str, Callable[[str], ReservationRequest]] = {
    "host": lambda needs: a_host(needs=needs),
    "instances": lambda needs: instances(needs=needs),
    "network": lambda needs: a_network(needs=needs),
    "things": lambda needs: things(resource_properties=needs),
    "units": lambda needs: units(resource_properties=needs),
}


@pytest.fixture
def world(sqlite) -> World:
    world = World(sqlite, hosts=0)
    world.register("node-1", lens="40")
    world.manager.resources.register(NETWORK, segment_request(101, capabilities={"lens": "40"}))
    world.register_thing("microscope-1", capacity=4, capabilities={"lens": "40"})
    return world


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", ASKED)
def test_a_lease_in_use_is_extended_and_may_ask_for_all_that_its_resources_have(world, kind):
    lease = world.lease(ASKED[kind](FORTY))
    world.run()
    extended = world.change(lease, end=NOON + 5 * HOUR)
    assert extended.window.end == NOON + 5 * HOUR
    world.resize(lease, resource_properties=OVER_THIRTY)
    with pytest.raises(BlazarError, match="no longer match"):
        world.resize(lease, resource_properties=OVER_FIFTY)
    assert world.now(lease).reservations[0].parameters.values["resource_properties"] == OVER_THIRTY


def test_units_of_a_thing_that_was_chosen_by_a_property_can_be_added(world):
    lease = world.lease(units(1, resource_properties=FORTY))
    world.run()
    world.resize(lease, amount=3)
    world.run()
    assert world.now(lease).reservations[0].parameters.values["amount"] == 3
