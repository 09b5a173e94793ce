# SPDX-License-Identifier: Apache-2.0
"""A change that grows one reservation and shrinks another of a lease never hands out more than a host has."""

from __future__ import annotations

import pytest

from blazar.clouds.ports.compute import Flavor
from blazar.manager.leases.ordering import put_givers_first, sort_by_waits
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import CloudRefused
from blazar.model.base.window import Window
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.requests import LeaseChange, ReservationChange
from blazar.model.resources.resource import DEVICE, FLOATING_IP, GENERIC, HOST, NETWORK, VOLUME
from tests.world import NOON, World, flavored, instances

SLOTS = 8


class Watched:
    """The slots that reservations have on the only host, after each call to the cloud."""

    def __init__(self, world: World) -> None:
        self.seen: list[int] = []
        self._world = world
        world.faults.on_call = self._look

    def _look(self, name: str, phase: str) -> None:
        self._world.faults.on_call = None
        with self._world.simulated.inspect() as state:
            self.seen.append(sum(sum(totals.values()) for totals in state.inventories.values()))
        self._world.faults.on_call = self._look


def of_type(kind: str, amount: int):
    return instances(amount, vcpus=4) if kind == "virtual:instance" else flavored(amount, "quarter")


@pytest.fixture
def world(a_world) -> World:
    world = a_world(hosts=1)
    with world.simulated.inspect() as state:
        (host,) = state.hosts.values()
        assert host.vcpus == 4 * SLOTS
    world.simulated.operators.offer_flavor(Flavor("quarter", "quarter", 4, 2048, 10, public=True))
    return world


def resize(world: World, lease, *amounts: int):
    pairs = zip(lease.reservations, amounts, strict=True)
    changes = tuple(ReservationChange(id=each.id, parameters={"amount": amount}) for each, amount in pairs)
    return world.manager.leases.update(lease.id, LeaseChange(reservations=changes))


@pytest.mark.sample(4)
@pytest.mark.parametrize("first", ["virtual:instance", "flavor:instance"])
@pytest.mark.parametrize("amounts", [(3, 5), (7, 1), (1, 7)], ids=str)
def test_at_no_moment_do_they_have_more_than_the_host(world, first, amounts):
    lease = world.lease(of_type(first, 4), of_type("virtual:instance", 4))
    world.run()
    watched = Watched(world)
    resize(world, lease, *amounts)
    assert watched.seen
    assert max(watched.seen) <= SLOTS
    assert watched.seen[-1] == SLOTS


@pytest.mark.parametrize("amounts", [(3, 5), (5, 3)], ids=str)
def test_nor_while_it_is_undone(world, amounts):
    lease = world.lease(instances(4, vcpus=4), instances(4, vcpus=4))
    world.run()
    watched = Watched(world)
    world.faults.fail_after("set_inventory", CloudRefused("no"), times=1)
    with pytest.raises(CloudRefused):
        resize(world, lease, *amounts)
    world.run()
    assert max(watched.seen) <= SLOTS
    assert watched.seen[-1] == SLOTS


KINDS = [HOST, FLOATING_IP, NETWORK, DEVICE, GENERIC, VOLUME]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_who_gives_comes_before_who_takes_whatever_the_kind(kind):
    window = Window(NOON, NOON.replace(hour=20))

    def has(reservation: str, resource: int, count: int = 1) -> Allocation:
        unit = Amounts.of({"GB": 2}) if kind in (VOLUME, GENERIC) else None
        return Allocation(kind, resource, "lease", reservation, window, count, unit)

    before = [has("a", 1), has("b", 2), has("b", 3), has("c", 4), has("d", 5)]
    after = [has("a", 1), has("a", 2), has("b", 3), has("c", 5), has("d", 5)]
    waits = {id_: frozenset[str]() for id_ in "abcd"}
    assert sort_by_waits(put_givers_first(waits, before, after)) == ("b", "c", "a", "d")
    # What it refers to starts first all the same.
    assert sort_by_waits(put_givers_first({**waits, "b": frozenset("a")}, before, after))[-1] != "a"
