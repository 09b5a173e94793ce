# SPDX-License-Identifier: Apache-2.0
"""An address is promised once at a time."""

from __future__ import annotations

import pytest

from blazar.model.base.errors import NotEnoughResources
from blazar.model.leases.states import LeaseStatus
from tests.resources.floating_ips.steps import HOUR, KIND, MINUTE, in_cloud, promised
from tests.world import NOON, a_host, addresses


def test_an_address_is_promised_once_at_a_time_and_again_afterwards(world):
    one = world.lease(addresses(required=[10]), start=HOUR)
    with pytest.raises(NotEnoughResources, match="203.0.113.10 .* is promised to another lease"):
        world.lease(addresses(2, required=[10]), start=2 * HOUR)
    two = world.lease(addresses(required=[10]), start=3 * HOUR)
    assert promised(world, one) == promised(world, two) == {10}


def test_the_cleaning_time_is_kept_between_two_users_of_an_address(a_world):
    world = a_world(hosts=0, cleaning_time=10 * MINUTE)
    world.register_addresses(10)
    lease = world.lease(addresses(required=[10]), start=HOUR)
    with pytest.raises(NotEnoughResources):
        world.lease(addresses(required=[10]), start=3 * HOUR + 9 * MINUTE)
    world.lease(addresses(required=[10]), start=3 * HOUR + 10 * MINUTE)
    with pytest.raises(NotEnoughResources):
        world.change(lease, end=NOON + 3 * HOUR + MINUTE)


@pytest.mark.slow
def test_several_reservations_of_a_lease_never_share_an_address(world):
    lease = world.lease(addresses(4, required=[10, 11]), addresses(4, required=[12]), addresses(2), start=HOUR)
    held = [
        {a.resource_id for a in world.store.calendar.of_lease(lease.id) if a.reservation_id == r.id}
        for r in lease.reservations
    ]
    assert [len(part) for part in held] == [4, 4, 2]
    assert promised(world, lease) == set(range(10, 20))
    with pytest.raises(NotEnoughResources, match="required or in use by another reservation of the lease"):
        world.lease(addresses(required=[10]), addresses(required=[10]), start=9 * HOUR)


def test_what_one_reservation_requires_is_left_to_it_by_the_others(world):
    lease = world.lease(addresses(9), addresses(required=[10]), start=HOUR)
    names = {r.id: r.name for r in world.store.resources.of_kind(KIND)}
    (last,) = [a for a in world.store.calendar.of_lease(lease.id) if a.reservation_id == lease.reservations[1].id]
    assert names[last.resource_id] == "203.0.113.10 on network public"


def test_an_address_that_is_not_reservable_is_neither_taken_nor_required(world):
    broken = world.store.resources.of_kind(KIND)[0]
    world.store.resources.set_reservable(broken.id, False, at=world.clock.now())
    assert promised(world, world.lease(addresses(9), start=HOUR)) == set(range(11, 20))
    with pytest.raises(NotEnoughResources, match="203.0.113.10 on network public is not reservable"):
        world.lease(addresses(required=[10]), start=9 * HOUR)


def test_hosts_and_addresses_of_one_lease_come_and_go_together(a_world):
    world = a_world()
    world.register_addresses(10, 11)
    lease = world.lease(a_host(), addresses(2))
    world.run()
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert len(world.pool(lease.reservations[0].id)) == 1
    assert set(in_cloud(world)) == {10, 11}
    with pytest.raises(NotEnoughResources):
        world.lease(a_host(), addresses(1))
    assert len(world.manager.leases.all(None)) == 1
    world.run_to(NOON + 2 * HOUR)
    assert (world.now(lease).status, in_cloud(world)) == (LeaseStatus.TERMINATED, {})
