# SPDX-License-Identifier: Apache-2.0
"""A change of a lease in use that is undone costs nothing, however long it took."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.model.base.errors import BlazarError, CloudUnavailable
from blazar.model.leases.requests import LeaseChange, ReservationChange
from blazar.model.leases.states import LeaseStatus
from tests.manager.billing.ledger import HOUR, act, charged, close, publish
from tests.world import NOON, World, a_host, instances, units


@pytest.fixture
def world(engine) -> World:
    """A service on each database with four hosts, and a thing of four units."""
    world = World(engine, hosts=4)
    world.register_thing(capacity=4)
    publish(world, prices=PRICES)
    return world


PRICES = [
    {"sku": "host", "measure": "host", "per_hour": "1.00"},
    {"sku": "vcpu", "measure": "vcpu", "per_hour": "0.10"},
    {"sku": "thing", "measure": "generic", "per_hour": "2.00"},
]
WANTED = {
    "hosts": (a_host(2), {"min": 3, "max": 3}),
    "servers": (instances(2), {"amount": 5}),
    "units": (units(1), {"amount": 3}),
}


def fail_after(world: World, span: timedelta) -> None:
    """Let the cloud not answer at the next call, and say so so much later."""

    def fail(*_: object) -> None:
        world.faults.on_call = None
        world.clock.by(seconds=span.total_seconds())
        raise CloudUnavailable("no answer")

    world.faults.on_call = fail


@pytest.mark.parametrize("what", WANTED)
def test_what_a_change_would_have_added_costs_nothing_if_it_is_undone(world, what):
    asked, more = WANTED[what]
    plain = world.lease(asked, start=HOUR, hours=10)
    world.run_to(NOON + 30 * HOUR)
    close(world, NOON + 31 * HOUR)
    cost = charged(world)
    lease = world.lease(asked, start=HOUR, hours=10)
    world.run_to(lease.window.start + HOUR)
    change = LeaseChange(
        end=lease.window.end + 5 * HOUR, reservations=(ReservationChange(lease.reservations[0].id, more),)
    )
    for minutes in (0, 40, 0.5):
        fail_after(world, timedelta(minutes=minutes))
        with pytest.raises(BlazarError):
            act(world, world.manager.leases.change, lease.id, change)
        world.run()
        after = world.now(lease)
        assert (after.status, after.window) == (LeaseStatus.ACTIVE, lease.window)
        world.clock.by(minutes=20)
    close(world, lease.window.end + 2 * HOUR)
    assert plain.id != lease.id
    assert charged(world) == {key: pytest.approx(2 * value) for key, value in cost.items()}


def test_a_change_that_is_made_after_one_that_was_undone_costs_what_it_adds(world):
    lease = world.lease(a_host(2), start=HOUR, hours=10)
    world.run_to(NOON + 2 * HOUR)
    change = LeaseChange(reservations=(ReservationChange(lease.reservations[0].id, {"min": 3, "max": 3}),))
    fail_after(world, HOUR)
    with pytest.raises(BlazarError):
        act(world, world.manager.leases.change, lease.id, change)
    world.run_to(NOON + 4 * HOUR)
    act(world, world.manager.leases.change, lease.id, change)
    close(world, NOON + 30 * HOUR)
    # Two hosts for ten hours, and one for the last seven of them.
    assert charged(world) == {"usage used": 27}


@pytest.mark.parametrize("what", WANTED)
def test_what_a_change_adds_is_charged_from_when_it_began_however_long_the_cloud_takes(world, what):
    def is_charged(seconds: int) -> dict[str, float]:
        asked, more = WANTED[what]
        lease = world.lease(asked, start=HOUR, hours=10)
        world.run_to(lease.window.start + HOUR)

        def take_long(*_: object) -> None:
            world.faults.on_call = None
            world.clock.by(seconds=seconds)

        world.faults.on_call = take_long
        change = LeaseChange(reservations=(ReservationChange(lease.reservations[0].id, more),))
        act(world, world.manager.leases.change, lease.id, change)
        assert world.faults.on_call is None
        close(world, lease.window.end + 2 * HOUR)
        return charged(world)

    at_once = is_charged(0)
    assert is_charged(15) == {key: pytest.approx(2 * value) for key, value in at_once.items()}
