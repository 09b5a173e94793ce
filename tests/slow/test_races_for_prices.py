# SPDX-License-Identifier: Apache-2.0
"""Leases in use are changed in steps while a price list is published: none costs more than its member allowed."""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from blazar.model.base.errors import Conflict
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor, LeaseChange, ReservationChange
from blazar.model.leases.states import LeaseStatus
from blazar.store.sql.tables import charges, planned
from blazar.store.store import Store
from tests.manager.billing.ledger import HOUR, PRICES, publish, rows
from tests.world import World, a_host

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROUNDS = int(os.environ.get("BLAZAR_ROUNDS", "10")) // 2
LEASES = 4
OPERATOR = Actor("olga", "operators")


def cost_of(world: World, lease: Lease) -> float:
    """Return what a lease was charged, and is to be charged yet."""
    found = [row["nano"] for table in (charges, planned) for row in rows(world, table) if row["lease_id"] == lease.id]
    return sum(found) / 10**9


def grow(world: World, lease: Lease, together: threading.Barrier) -> str:
    """Let a lease have a third host, and end five hours later, if it costs at most 60; return how that ended."""
    manager = world.another_manager(store=Store(world.engine))
    more = ReservationChange(lease.reservations[0].id, {"min": 3, "max": 3})
    change = LeaseChange(end=lease.window.end + 5 * HOUR, reservations=(more,), max_price="60.00")
    together.wait(30)
    try:
        manager.leases.change(lease.id, change)
    except Conflict as error:
        return error.code
    return "made"


def publish_later(world: World, factor: int, after: float, together: threading.Barrier) -> str:
    """Publish a list by which a host costs so much an hour, a moment after the changes began."""
    manager = world.another_manager(store=Store(world.engine))
    document = {**PRICES, "prices": [{"sku": "host", "measure": "host", "per_hour": f"{factor}.00"}]}
    together.wait(30)
    time.sleep(after)
    world.clock.by(seconds=2)
    manager.price_lists.publish(document, OPERATOR)
    world.clock.by(seconds=2)
    return "published"


def check(world: World, lease: Lease, how: str) -> None:
    """A change that was made costs at most what was allowed; else the lease has what it had, on record and in Nova."""
    after = world.now(lease)
    hosts = len(world.simulated.compute.aggregate(lease.reservations[0].id).hosts)
    had = (after.status, after.window, len(world.store.calendar.of_lease(lease.id)), hosts)
    if how == "made":
        assert had == (LeaseStatus.ACTIVE, type(lease.window)(lease.window.start, lease.window.end + 5 * HOUR), 3, 3)
        assert cost_of(world, lease) <= 60
    else:
        assert had == (LeaseStatus.ACTIVE, lease.window, 2, 2)
        # Two hosts for ten hours, by the list by which they were booked.
        assert cost_of(world, lease) == pytest.approx(20)


@pytest.mark.parametrize("engine", ["postgresql", "mariadb"], indirect=True)
def test_a_change_in_steps_costs_no_more_than_allowed_whenever_a_list_is_published(engine):
    world, dice, found = World(engine, hosts=3 * LEASES), random.Random(5), Counter[str]()
    publish(world)
    took = 0.5
    for number in range(ROUNDS):
        start = world.clock.now().replace(second=0, microsecond=0) + HOUR
        leases = [world.lease(a_host(2), start=start, hours=10) for _ in range(LEASES)]
        world.run_to(start + HOUR)
        together = threading.Barrier(LEASES + 1)
        with ThreadPoolExecutor(LEASES + 1) as threads:
            begun = time.monotonic()
            publishing = threads.submit(publish_later, world, 9, dice.uniform(0, took * 0.7), together)
            ended = [threads.submit(grow, world, lease, together) for lease in leases]
            hows = [one.result(60) for one in ended]
            took = max(0.05, time.monotonic() - begun)
            assert publishing.result(60) == "published"
        for lease, how in zip(leases, hows, strict=True):
            check(world, lease, how)
            world.manager.leases.delete(lease.id)
        found.update(hows)
        # By the next list it costs what it did, from then on.
        together = threading.Barrier(1)
        publish_later(world, 1, 0, together)
        world.run_to(world.clock.now() + timedelta(days=1, hours=number))
    print(dict(found))
    assert found["made"]
    assert found["price_exceeds_maximum"]
