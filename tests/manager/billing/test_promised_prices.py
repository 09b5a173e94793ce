# SPDX-License-Identifier: Apache-2.0
"""What was promised is not dearer, and not cheaper, in parts."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.model.surgery import SplitRequest, Terms
from tests.manager.billing.ledger import CURIE, HOUR, act, charged, close, expected, publish
from tests.world import NOON, World, a_host

LEAD = [{"below": "PT24H", "factor": "2.00"}]
DEAR = [{"sku": "host", "measure": "host", "per_hour": "9.00"}]


@pytest.fixture
def world(a_world) -> World:
    return a_world(hosts=4)


def test_the_later_part_of_a_lease_costs_what_was_promised_when_the_whole_was_booked(world):
    publish(world, lead=LEAD)
    lease = world.lease(a_host(2), start=30 * HOUR, hours=10)
    # The later part begins in less than a day when it is cut off, and there is a dearer list.
    world.run_to(NOON + 20 * HOUR)
    publish(world, NOON + 10 * HOUR, lead=LEAD, prices=DEAR)
    whole = expected(world)
    act(world, world.manager.surgery.split, lease.id, SplitRequest(at=NOON + 36 * HOUR), Terms(CURIE))
    assert expected(world) == whole == 20
    close(world, NOON + 50 * HOUR)
    assert charged(world) == {"usage used": 20}


def test_what_a_lease_that_is_moved_has_left_keeps_the_lead_that_it_was_booked_with(world):
    publish(world, lead=LEAD)
    lease = world.lease(start=23 * HOUR, hours=10)
    assert expected(world) == 20
    act(world, world.change, lease, start=NOON + 25 * HOUR, end=NOON + 35 * HOUR)
    assert expected(world) == 2 * 8 + 2
    close(world, NOON + 50 * HOUR)
    assert charged(world) == {"usage used": 18}


def test_a_host_that_is_given_back_takes_the_time_with_it_by_which_it_was_rounded_up(world):
    publish(world, round_up="PT1H", cancellation=[{"share": "0.50"}])
    lease = world.lease(a_host(4), start=2 * HOUR, end=NOON + 4 * HOUR + timedelta(minutes=1))
    assert expected(world) == 12
    act(world, world.resize, lease, min=3, max=3)
    assert expected(world) == 9
    assert charged(world) == {"cancellation unused": 1.5}
    # To give the rest back costs as much as it would have at once.
    act(world, world.manager.leases.delete, lease.id)
    assert charged(world) == {"cancellation unused": 6}
