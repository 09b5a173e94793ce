# SPDX-License-Identifier: Apache-2.0
"""What a start replaces, and what it does without."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.manager.common.settings import Settings
from blazar.model.base.errors import NotEnoughResources
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus, ReservationStatus
from blazar.model.resources.resource import FLOATING_IP, HOST
from tests.manager.health.steps import HOUR, ON_NODE_1, flags, look, taken, told
from tests.world import NOON, a_host, address_request, addresses, instances


def test_the_start_takes_a_last_look(a_world):
    world = a_world(hosts=2, settings=Settings(healing_interval=timedelta(minutes=1), claim_ttl=timedelta(seconds=30)))
    lease = world.lease(start=HOUR)
    (host,) = world.hosts_of(lease)
    world.simulated.operators.host_down(host)
    look(world)
    assert world.hosts_of(lease) == {host}
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert world.hosts_of(lease) != {host}
    assert world.pool(lease.reservations[0].id) == world.hosts_of(lease)


def test_a_lease_starts_with_what_is_down_and_has_it_when_it_is_back(world):
    lease = world.lease(a_host(3), start=HOUR)
    world.simulated.operators.host_down("node-2")
    look(world)
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert world.pool(lease.reservations[0].id) == {"node-1", "node-2", "node-3"}
    assert flags(world, lease) == (True, False, True)
    world.simulated.operators.host_up("node-2")
    look(world)
    assert flags(world, lease) == (False, False, False)


def test_what_cannot_be_handed_over_is_exchanged_at_the_start(world):
    lease = world.lease(start=HOUR)
    (host,) = world.hosts_of(lease)
    world.simulated.operators.host_vanishes(host)
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    (other,) = world.hosts_of(lease)
    assert other != host
    assert world.pool(lease.reservations[0].id) == {other}
    start = world.now(lease).event(EventType.START)
    assert start.status is EventStatus.DONE
    assert host in start.reason
    assert flags(world, lease) == (False, False, False)
    assert not next(h for h in world.manager.resources.all(HOST) if h.name == host).reservable


@pytest.mark.parametrize("room", [a_host(3), instances(3, vcpus=15, affinity=False)], ids=["hosts", "instances"])
def test_a_start_does_without_what_nothing_can_take_the_place_of_and_brings_it_in_later(world, room):
    lease = world.lease(room, start=HOUR)
    reservation = lease.reservations[0].id
    gone = world.simulated.operators.host_vanishes("node-2")
    world.run_to(NOON + HOUR)
    now = world.now(lease)
    assert (now.status, now.reservations[0].status) == (LeaseStatus.ACTIVE, ReservationStatus.ACTIVE)
    assert world.pool(reservation) == {"node-1", "node-3"}
    assert flags(world, lease) == (True, False, True)
    assert "node-2" in now.event(EventType.START).reason
    assert told(world) == ["lease.degraded"]

    world.simulated.operators.host_returns(gone)
    look(world)
    assert flags(world, lease)[0], "it is in no pool yet"
    assert world.manager.resources.refresh(HOST, "2").reservable
    world.manager.monitor.heal()
    assert world.pool(reservation) == {"node-1", "node-2", "node-3"}
    assert flags(world, lease) == (False, False, False)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert told(world) == ["lease.degraded", "lease.healed"]
    world.run_to(NOON + 3 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert world.pool() == {"node-1", "node-2", "node-3"}


def test_a_reservation_of_which_nothing_is_left_cannot_start_and_the_others_do(world):
    lease = world.lease(a_host(1, needs=ON_NODE_1), a_host(1), start=HOUR)
    world.simulated.operators.host_vanishes("node-1")
    world.run_to(NOON + HOUR)
    now = world.now(lease)
    assert now.status is LeaseStatus.ERROR
    assert [r.status for r in now.reservations] == [ReservationStatus.ERROR, ReservationStatus.ACTIVE]
    assert "node-1" in now.event(EventType.START).reason


def test_a_lease_that_holds_a_vanished_host_ends(world):
    lease = world.lease(a_host(3))
    world.run()
    assert world.now(lease).status is LeaseStatus.ACTIVE
    world.simulated.operators.host_vanishes("node-2")
    world.run_to(NOON + 2 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert world.pool() == {"node-1", "node-3"}


@pytest.fixture
def lined(world):
    """A world with three addresses."""
    for number in (10, 11, 12):
        world.manager.resources.register(FLOATING_IP, address_request("public", f"203.0.113.{number}"))
    return world


def test_an_address_that_somebody_has_is_exchanged_at_the_start(lined):
    lease = lined.lease(addresses(2), start=HOUR)
    (lost, *_) = sorted(int(name.split()[0].rpartition(".")[2]) for name in lined.hosts_of(lease))
    taken(lined, lost)
    lined.run_to(NOON + HOUR)
    now = lined.now(lease)
    assert now.status is LeaseStatus.ACTIVE
    assert f"203.0.113.{lost}" in now.event(EventType.START).reason
    assert len(lined.hosts_of(lease)) == 2
    assert not any(name.startswith(f"203.0.113.{lost} ") for name in lined.hosts_of(lease))
    assert flags(lined, lease) == (False, False, False)


def test_a_required_address_has_no_substitute_and_is_brought_in_when_it_is_free(lined):
    lease = lined.lease(addresses(2, required=[10, 11]), start=HOUR, hours=9)
    theirs = taken(lined, 10)
    lined.run_to(NOON + HOUR)
    assert lined.now(lease).status is LeaseStatus.ACTIVE
    assert flags(lined, lease) == (True, False, True)
    assert len(lined.hosts_of(lease)) == 2
    lined.simulated.network.delete_floating_ip(theirs)
    look(lined, 2)
    assert flags(lined, lease) == (False, False, False)
    mine = {f.address for f in lined.simulated.network.floating_ips(tag=f"reservation:{lease.reservations[0].id}")}
    assert mine == {"203.0.113.10", "203.0.113.11"}
    assert told(lined) == ["lease.degraded", "lease.healed"]


def test_an_address_that_came_into_an_allocation_pool_is_exchanged_before_the_start(lined):
    lease = lined.lease(addresses(2), start=HOUR)
    (lost, *_) = sorted(lined.hosts_of(lease))
    address = lost.split()[0]
    lined.simulated.operators.change_subnet("public", pools=[[address, address]])
    look(lined, 2)
    (failed,) = [a for a in lined.manager.resources.all(FLOATING_IP) if not a.reservable]
    assert (failed.name, "allocation pool" in failed.failure) == (lost, True)
    assert len(lined.hosts_of(lease)) == 2
    assert lost not in lined.hosts_of(lease)
    assert flags(lined, lease) == (False, False, False)
    with pytest.raises(NotEnoughResources):
        lined.lease(addresses(1), start=HOUR)
    lined.simulated.operators.change_subnet("public", pools=[])
    look(lined, 2)
    lined.lease(addresses(1), start=HOUR)


def test_required_addresses_in_a_pool_are_missing_until_they_are_out_of_it(lined):
    lease = lined.lease(addresses(2, required=[10, 11]), start=HOUR)
    lined.simulated.operators.change_subnet("public", pools=[["203.0.113.10", "203.0.113.10"]])
    look(lined, 2)
    assert flags(lined, lease) == (True, False, True)
    lined.simulated.operators.change_subnet("public", pools=[])
    look(lined, 2)
    assert flags(lined, lease) == (False, False, False)
    assert told(lined) == ["lease.degraded", "lease.healed"]


def test_addresses_in_use_by_their_reservation_are_where_they_belong(lined):
    lease = lined.lease(addresses(3))
    lined.run()
    look(lined, 3)
    assert all(a.reservable for a in lined.manager.resources.all(FLOATING_IP))
    assert flags(lined, lease) == (False, False, False)
