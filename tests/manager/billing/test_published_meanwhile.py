# SPDX-License-Identifier: Apache-2.0
"""A price list is published by one manager while another one books: what was said of the price is what is charged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from blazar.enforcement.spend import SpendFilter
from blazar.model.base.errors import Conflict, UsageDenied
from blazar.model.billing.charges import NANO
from blazar.model.leases.requests import Actor, LeaseChange, LeaseRequest, ReservationChange
from blazar.model.leases.states import LeaseStatus
from blazar.model.surgery import OfferRequest, Terms
from blazar.store.store import Store
from tests.manager.billing.ledger import CURIE, HOUR, PRICES, charged, close, expected, publish
from tests.observed import ObservedStore, before
from tests.world import NOON, World, a_host

DEAR = [{"sku": "host", "measure": "host", "per_hour": "9.00"}]


@pytest.fixture
def world(engine) -> World:
    """A service on each database, in which a host costs 1 EUR an hour."""
    world = World(engine, hosts=4)
    publish(world)
    return world


def publish_dear(world: World) -> Callable[[], object]:
    """Return what publishes a list by which a host costs 9 EUR an hour, as another manager does."""

    def run() -> None:
        world.clock.by(seconds=5)
        world.another_manager(store=Store(world.engine)).price_lists.publish(
            {**PRICES, "prices": DEAR}, Actor("olga", "operators")
        )
        world.clock.by(seconds=5)

    return run


def meanwhile(world: World, *acts: Callable[[], object]) -> Any:
    """Return a manager to which these happen, one at a time, right before it writes a booking."""
    return world.another_manager(store=ObservedStore(Store(world.engine), before("bookings.commit", *acts)))


def request(most: str | None = None) -> LeaseRequest:
    return LeaseRequest(
        name="training",
        user_id="curie",
        project_id="physics",
        start=NOON + HOUR,
        end=NOON + 11 * HOUR,
        reservations=(a_host(2),),
        max_price=most,
    )


def test_a_lease_that_is_written_after_a_list_was_published_is_charged_by_that_and_says_so(world):
    manager = meanwhile(world, publish_dear(world))
    booked = manager.leases.book(request())
    assert booked.details.price.amount == "180.00"
    close(world, NOON + 30 * HOUR)
    assert charged(world) == {"usage used": 180}


def test_a_lease_that_would_cost_too_much_by_the_new_list_is_refused(world):
    with pytest.raises(Conflict, match="the lease would cost 180.00 EUR"):
        meanwhile(world, publish_dear(world)).leases.book(request("20.00"))
    assert expected(world) == 0


def test_a_change_that_would_cost_too_much_by_the_new_list_is_refused(world):
    lease = world.manager.leases.create(request())
    manager = meanwhile(world, publish_dear(world))
    with pytest.raises(Conflict, match="the lease would cost 110.00 EUR, 90.00 more"):
        manager.leases.change(lease.id, LeaseChange(end=NOON + 16 * HOUR, max_price="30.00"))
    assert expected(world) == 20


def test_a_list_of_which_a_clock_that_is_behind_says_when_holds_for_nothing_that_was_booked_before(world):
    world.manager.leases.create(request())
    behind = world.another_manager(store=Store(world.engine))
    world.clock.by(seconds=-3600)
    published = behind.price_lists.publish({**PRICES, "prices": DEAR}, Actor("olga", "operators"))
    assert published.new.published_at == NOON + HOUR / 3600
    world.clock.by(seconds=3600)
    close(world, NOON + 30 * HOUR)
    assert charged(world) == {"usage used": 20}


def test_the_first_list_limits_what_a_manager_changes_that_has_not_heard_of_it(engine):
    world = World(engine, hosts=4)
    manager = world.another_manager(store=Store(engine))
    lease = manager.leases.create(request())
    publish(world)
    more = ReservationChange(lease.reservations[0].id, {"min": 3, "max": 3})
    with pytest.raises(Conflict, match="the lease would cost 10.00 EUR"):
        manager.leases.change(lease.id, LeaseChange(reservations=(more,), max_price="1.00"))


def test_a_list_that_begins_to_hold_between_the_quote_and_the_booking_is_the_one_that_counts(world):
    """It was known before, and so nothing has to be planned again for it."""
    publish(world, NOON + HOUR / 1800, prices=DEAR)
    delays = [5]

    def write_later(name: str, call: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        if name == "bookings.commit" and delays:
            world.clock.by(seconds=delays.pop())
            return call(replace(arguments[0], at=world.clock.now()), **more)
        return call(*arguments, **more)

    manager = world.another_manager(store=ObservedStore(Store(world.engine), write_later))
    with pytest.raises(Conflict, match="the lease would cost 180.00 EUR"):
        manager.leases.book(request("20.00"))


WHEN = pytest.mark.parametrize("at_work", [False, True], ids=["before it is begun", "while it is made in the cloud"])


def publish_then(world: World, act: Callable[[], object], *, at_work: bool) -> Any:
    """Return a manager that meets this before the first write of a change, or after that, at its work in the cloud."""
    if not at_work:
        return meanwhile(world, act)

    def run(name: str, when: str) -> None:
        world.faults.on_call = None
        act()

    def arm() -> None:
        world.faults.on_call = run

    return meanwhile(world, arm)


def grow_in_use(world: World, manager: Any, most: str) -> Any:
    """Let a lease of two hosts that is in use have a third one, and end five hours later."""
    lease = world.lease(a_host(2), start=HOUR, hours=10)
    world.run_to(NOON + 2 * HOUR)
    more = ReservationChange(lease.reservations[0].id, {"min": 3, "max": 3})
    change = LeaseChange(end=NOON + 16 * HOUR, reservations=(more,), max_price=most)
    return lease, lambda: manager.leases.change(lease.id, change)


@WHEN
def test_a_change_in_steps_that_costs_too_much_by_a_list_published_meanwhile_is_undone(world, at_work):
    manager = publish_then(world, publish_dear(world), at_work=at_work)
    lease, change = grow_in_use(world, manager, "60.00")
    with pytest.raises(Conflict, match=r"the lease would cost \d+\.\d\d EUR, .*at most 60.00 are allowed") as refused:
        change()
    assert refused.value.code == "price_exceeds_maximum"
    after = world.now(lease)
    assert (after.status, after.window) == (LeaseStatus.ACTIVE, lease.window)
    assert len(world.store.calendar.of_lease(lease.id)) == 2
    assert len(world.simulated.compute.aggregate(lease.reservations[0].id).hosts) == 2


@WHEN
def test_a_change_in_steps_that_costs_no_more_than_it_may_by_the_new_list_is_made(world, at_work):
    lease, change = grow_in_use(world, publish_then(world, publish_dear(world), at_work=at_work), "500.00")
    assert change().lease.status is LeaseStatus.ACTIVE
    assert len(world.store.calendar.of_lease(lease.id)) == 3


def take_over(world: World, act: Callable[[], object], *, at_work: bool) -> tuple[Any, Callable[[], object]]:
    """Offer a lease of two hosts in use to another project, which takes it over while this happens."""
    manager = publish_then(world, act, at_work=at_work)
    lease = world.lease(a_host(2), start=HOUR, hours=11)
    world.run_to(NOON + 2 * HOUR)
    world.manager.transfers.offer(lease.id, OfferRequest("computing"), Terms(CURIE))
    return lease, lambda: manager.transfers.accept(lease.id, Terms(Actor("turing", "computing")))


@WHEN
def test_a_lease_that_is_taken_over_while_a_list_is_published_costs_the_taker_what_that_says(world, at_work):
    _, accept = take_over(world, publish_dear(world), at_work=at_work)
    said = float(accept().leases[0].price.amount)
    assert 170 < said <= 180
    close(world, NOON + 30 * HOUR)
    assert charged(world, "computing") == {"usage used": pytest.approx(said, abs=0.005)}
    assert charged(world, "physics") == {"usage used": pytest.approx(2, abs=0.02)}


@WHEN
def test_a_lease_that_a_new_list_makes_too_dear_for_the_taker_stays_with_its_giver(engine, at_work):
    world = World(engine, hosts=4, filters=[SpendFilter(100 * NANO)])
    publish(world)
    lease, accept = take_over(world, publish_dear(world), at_work=at_work)
    with pytest.raises(UsageDenied, match="EUR"):
        accept()
    after = world.now(lease)
    assert (after.status, after.project_id, after.offer is not None) == (LeaseStatus.ACTIVE, "physics", True)
    close(world, NOON + 30 * HOUR)
    assert charged(world) == {"usage used": 22}
