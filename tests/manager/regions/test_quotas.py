# SPDX-License-Identifier: Apache-2.0
"""Quotas of the project in several regions, for reservations that name none."""

from __future__ import annotations

import pytest

from blazar.model.base.errors import Conflict
from blazar.model.resources.changes import Registration
from blazar.model.resources.resource import NETWORK
from tests.manager.regions.world import TwoRegions
from tests.people import PeopledCloud
from tests.world import a_network


@pytest.fixture
def two(sqlite) -> TwoRegions:
    world = TwoRegions(sqlite, register=False)
    for region, number in (("R1", 101), ("R1", 102), ("R2", 201), ("R2", 202)):
        given = {"network_type": "vlan", "physical_network": "physnet1", "segment_id": number}
        world.register_one(NETWORK, region, Registration(given))
    return world


def allow(cloud: PeopledCloud, networks: int) -> None:
    with cloud.change_state() as state:
        state.most_networks = networks


def test_a_network_of_any_region_is_refused_if_the_quota_of_none_lets_it_be(two):
    allow(two.simulated, 0)
    allow(two.second, 0)
    with pytest.raises(Conflict, match="quota network of Neutron"):
        two.lease(a_network())
    allow(two.second, 1)
    assert two.lease(a_network()).reservations


def test_networks_that_lie_in_one_region_together_count_together(two):
    allow(two.simulated, 1)
    allow(two.second, 1)
    with pytest.raises(Conflict, match="needs 2"):
        two.lease(a_network("one"), a_network("two"))


def test_a_network_that_names_its_region_is_looked_at_there(two):
    allow(two.simulated, 0)
    with pytest.raises(Conflict, match="quota network of Neutron"):
        two.lease(a_network(needs='["==", "$region", "R1"]'))
    assert two.lease(a_network(needs='["==", "$region", "R2"]')).reservations
