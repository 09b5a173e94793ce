# SPDX-License-Identifier: Apache-2.0
"""What lies together stays so when its hosts are given up, exchanged, divided, joined, or taken out of service."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blazar.model.base.errors import Conflict, NotEnoughResources
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST
from blazar.model.surgery import MergeRequest, Partner, PartRequest, SplitRequest, SwapRequest
from tests.manager.maintenance.test_maintenance import opened
from tests.manager.surgery.test_swap import HOUR, OPERATOR, swap
from tests.promises import check_promises
from tests.world import NOON, World, a_host

RACKS = {"node-1": "r1", "node-2": "r1", "node-3": "r1", "node-4": "r2", "node-5": "r2", "node-6": "r2"}


@pytest.fixture
def world(a_world) -> World:
    """Three hosts in each of two racks."""
    world = a_world(hosts=6)
    for host in world.store.resources.catalog(HOST).resources:
        world.manager.resources.change(HOST, host.external_id, ResourceChange({"rack": RACKS[host.name]}))
    return world


def together(needs: str = "", count: int = 2, how: object = "rack"):
    asked = a_host(count, needs=needs)
    return replace(asked, parameters={**asked.parameters, "together": how})


def racks(world, lease) -> list[str]:
    return sorted(RACKS[name] for name in world.hosts_of(lease))


def test_a_host_that_is_given_up_is_replaced_in_its_rack(world):
    lease = world.lease(together(), start=HOUR)
    (rack, _) = racks(world, lease)
    given = sorted(world.hosts_of(lease))[0]
    swap(world, lease, given)
    assert racks(world, lease) == [rack, rack]
    assert given not in world.hosts_of(lease)
    elsewhere = next(name for name in RACKS if RACKS[name] != rack)
    with pytest.raises(NotEnoughResources):
        swap(world, lease, sorted(world.hosts_of(lease))[0], elsewhere)


def test_two_leases_exchange_hosts_that_lie_alike_only(world):
    lease = world.lease(together(), start=HOUR)
    (mine, _) = racks(world, lease)
    near = world.lease(a_host(needs=f'["==", "$rack", "{mine}"]'), start=HOUR)
    # Nothing is left of that rack.
    far = world.lease(a_host(), start=HOUR)
    mine = sorted(world.hosts_of(lease))[0]
    for other, fits in ((far, False), (near, True)):
        (theirs,) = world.hosts_of(other)
        partner = Partner(other.id, other.reservations[0].id)
        request = SwapRequest(lease.reservations[0].id, mine, theirs, partner)
        if fits:
            world.manager.surgery.swap(lease.id, request, OPERATOR)
            assert theirs in world.hosts_of(lease)
        else:
            with pytest.raises(NotEnoughResources):
                world.manager.surgery.swap(lease.id, request, OPERATOR)
    check_promises(world.store, since=NOON)


def test_maintenance_of_a_host_leaves_what_lies_together_in_its_rack(world):
    lease = world.lease(together(), start=2 * HOUR)
    (rack, _) = racks(world, lease)
    gone = sorted(world.hosts_of(lease))[0]
    opened(world, gone)
    assert gone not in world.hosts_of(lease)
    assert racks(world, lease) == [rack, rack]
    check_promises(world.store, since=NOON)


@pytest.mark.parametrize(("second", "reservations"), [("r1", 1), ("r2", 2)])
def test_what_lies_together_becomes_one_reservation_only_if_all_of_it_does(world, second, reservations):
    lease = world.lease(together('["in", "$rack", ["r1", "r2"]]', 1), start=HOUR)
    (first,) = racks(world, lease)
    wanted = "r1" if (second == "r1") == (first == "r1") else "r2"
    taken = [name for name in RACKS if RACKS[name] != wanted and name not in world.hosts_of(lease)]
    blocks = [world.lease(a_host(needs=f'["==", "$hypervisor_hostname", "{name}"]'), start=HOUR) for name in taken]
    other = world.lease(together('["in", "$rack", ["r1", "r2"]]', 1), start=HOUR)
    assert racks(world, other) == [wanted]
    for block in blocks:
        world.manager.leases.delete(block.id)
    (merged,) = world.manager.surgery.merge(lease.id, MergeRequest(other.id), OPERATOR).leases
    assert len(merged.lease.reservations) == reservations
    assert racks(world, merged.lease) == sorted([first, wanted])
    check_promises(world.store, since=NOON)


def test_what_is_split_by_hosts_and_merged_again_lies_together(world):
    lease = world.lease(together(), start=HOUR)
    request = SplitRequest((PartRequest(lease.reservations[0].id, count=1),), None)
    first, second = (each.lease for each in world.manager.surgery.split(lease.id, request, OPERATOR).leases)
    (merged,) = world.manager.surgery.merge(first.id, MergeRequest(second.id), OPERATOR).leases
    (reservation,) = merged.lease.reservations
    assert (reservation.parameters.values["min"], reservation.parameters.values["together"]) == (
        2,
        {"property": "rack"},
    )


def test_groups_are_split_as_a_whole(world):
    lease = world.lease(together(count=4, how={"property": "rack", "size": 2}), start=HOUR)
    (reservation,), names = lease.reservations, sorted(world.hosts_of(lease))
    for part in (PartRequest(reservation.id, count=1), PartRequest(reservation.id, (names[0], names[-1]))):
        with pytest.raises(Conflict, match="in groups of 2 of one rack, and groups stay whole"):
            world.manager.surgery.split(lease.id, SplitRequest((part,), None), OPERATOR)
    whole = SplitRequest((PartRequest(reservation.id, tuple(names[:2])),), None)
    both = [each.lease for each in world.manager.surgery.split(lease.id, whole, OPERATOR).leases]
    assert [racks(world, one) for one in both] == [["r2", "r2"], ["r1", "r1"]]
