# SPDX-License-Identifier: Apache-2.0
"""What was promised is not dearer, and not cheaper, in parts."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.model.surgery import MergeRequest, SplitRequest, Terms
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


def test_a_host_that_is_added_to_a_lease_that_was_extended_has_one_lead(world):
    publish(world, lead=LEAD)
    lease = world.lease(start=30 * HOUR, hours=10)
    act(world, world.change, lease, end=NOON + 50 * HOUR)
    assert expected(world) == 20
    # Less than a day before the start, more than that before the extension begins.
    world.run_to(NOON + 10 * HOUR)
    act(world, world.resize, lease, min=2, max=2)
    assert expected(world) == 20 + 20 * 2
    world.clock.by(seconds=5)
    # A part of it that begins after all that was booked first.
    act(world, world.manager.surgery.split, lease.id, SplitRequest(at=NOON + 42 * HOUR), Terms(CURIE))
    assert expected(world) == 60
    close(world, NOON + 60 * HOUR)
    assert charged(world) == {"usage used": 60}


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


def publish_at(world: World, per_hour: str) -> None:
    """Publish a list with another price of hosts, that holds for what is booked from now on."""
    world.clock.by(minutes=1)
    publish(world, world.clock.now(), prices=[{"sku": "host", "measure": "host", "per_hour": per_hour}])
    world.clock.by(minutes=1)


def merge(world: World, first, second) -> None:
    act(world, world.manager.surgery.merge, first.id, MergeRequest(second.id), Terms(CURIE))


def test_a_lease_of_two_that_is_cut_and_made_one_again_costs_what_was_promised(world):
    publish(world)
    one = world.lease(a_host(1), start=NOON + HOUR, hours=10)
    publish_at(world, "3.00")
    other = world.lease(a_host(2), start=NOON + HOUR, hours=8)
    publish_at(world, "9.00")
    act(world, world.change, other, end=NOON + 11 * HOUR)
    whole = expected(world)
    assert whole == 10 + 2 * 8 * 3 + 2 * 2 * 9
    merge(world, one, other)
    publish_at(world, "20.00")
    parts = act(world, world.manager.surgery.split, one.id, SplitRequest(at=NOON + 6 * HOUR), Terms(CURIE))
    assert expected(world) == whole
    merge(world, one, parts.leases[1].lease)
    assert expected(world) == whole
    close(world, NOON + 50 * HOUR)
    assert charged(world) == {"usage used": whole}


@pytest.mark.parametrize("grown", [(), (0,), (1,), (0, 1), (1, 0)])
def test_leases_that_follow_each_other_cost_as_one_what_each_did(a_world, grown):
    number = 1 if grown else 2
    world = a_world(hosts=2)
    publish(world)
    leases = [world.lease(a_host(number), start=NOON + HOUR, hours=4)]
    publish_at(world, "3.00")
    leases.append(world.lease(a_host(number), start=NOON + 5 * HOUR, hours=4))
    for price, which in zip(("5.00", "7.00"), grown, strict=False):
        publish_at(world, price)
        act(world, world.resize, leases[which], min=2, max=2)
    if len(grown) == 1:
        publish_at(world, "9.00")
        act(world, world.resize, leases[1 - grown[0]], min=2, max=2)
    whole = expected(world)
    merge(world, *map(world.now, leases))
    assert expected(world) == whole
    close(world, NOON + 50 * HOUR)
    assert charged(world) == {"usage used": whole}
