# SPDX-License-Identifier: Apache-2.0
"""Hosts that are swapped for one whose name another region has, too."""

from __future__ import annotations

import pytest

from blazar.model.resources.resource import HOST
from blazar.model.surgery import SwapRequest
from tests.manager.regions.world import TwoRegions, hosts_in
from tests.manager.surgery.steps import OPERATOR


@pytest.mark.parametrize("region", ["R1", "R2"])
def test_a_host_is_swapped_for_that_of_its_own_region(sqlite, region):
    two = TwoRegions(sqlite)
    hosts = {each.id: each for each in two.store.resources.of_kind(HOST)}
    lease = two.lease(hosts_in(region))
    (had,) = [hosts[each.resource_id] for each in two.store.calendar.live(HOST)]
    target = "node-2" if had.name == "node-1" else "node-1"
    two.manager.surgery.swap(lease.id, SwapRequest(lease.reservations[0].id, had.name, target), OPERATOR)
    (has,) = [hosts[each.resource_id] for each in two.store.calendar.live(HOST)]
    assert (has.name, has.region) == (target, region)
