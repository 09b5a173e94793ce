# SPDX-License-Identifier: Apache-2.0
"""Waiting lists of long: on each database, with managers that plan at the same time, and through random lives."""

from __future__ import annotations

import random
import threading
from contextlib import suppress
from datetime import timedelta

import pytest

from blazar.model.base.errors import Conflict, InvalidInput, NotFound
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import LeaseStatus
from tests.promises import check_promises
from tests.world import NOON, World, a_host, instances

HOUR, MINUTE, DAY = timedelta(hours=1), timedelta(minutes=1), timedelta(days=1)
GRANTED = (LeaseStatus.PENDING, LeaseStatus.ACTIVE)


def waits(world: World, *reservations, project: str, wait=DAY, **more) -> Lease:
    lease = world.lease(*reservations, project=project, wait=wait, **more)
    world.clock.to(world.clock.now() + timedelta(seconds=1))
    return lease


def test_it_is_the_same_on_every_database(engine):
    world = World(engine)
    world.waits = True
    full = world.lease(a_host(3), project="biology")
    first = waits(world, a_host(2), project="physics")
    second = waits(world, instances(2, vcpus=1), project="chemistry")
    late = waits(world, a_host(3), project="geology", wait=HOUR)
    world.run()
    assert [world.now(each).wait.position for each in (first, second, late)] == [1, 2, 3]
    assert world.now(first).wait.estimate == NOON + 2 * HOUR
    world.run_to(NOON + HOUR + MINUTE)
    assert world.now(late).status is LeaseStatus.TIMED_OUT
    world.manager.leases.delete(full.id)
    world.run()
    assert [world.now(each).status for each in (first, second)] == [LeaseStatus.ACTIVE] * 2
    assert world.store.waiting_list.count_waiting("physics") == (0, 0)


@pytest.mark.slow
def test_managers_that_plan_at_the_same_time_grant_nothing_twice(engine):
    world = World(engine, patience=timedelta(seconds=5))
    full = world.lease(a_host(3), project="biology")
    leases = [waits(world, a_host(), project=f"p{number % 3}") for number in range(9)]
    managers = [world.manager, *(world.another_manager() for _ in range(3))]
    world.manager.leases.delete(full.id)
    granted: list[int] = []
    together = threading.Barrier(len(managers))

    def plan(manager) -> None:
        together.wait()
        for _ in range(3):
            granted.append(manager.waiting_list.run_once())

    threads = [threading.Thread(target=plan, args=(manager,)) for manager in managers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(granted) == 3
    states = [world.now(lease).status for lease in leases]
    assert (sum(state in GRANTED for state in states), states.count(LeaseStatus.WAITING)) == (3, 6)
    check_promises(world.store, since=world.clock.now())
    # The oldest of each project, which have all used nothing.
    assert all(state in GRANTED for state in states[:3])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_through_random_lives_nothing_is_promised_twice_and_nobody_is_forgotten(sqlite, seed):
    dice = random.Random(seed)
    world = World(sqlite)
    world.waits = True
    known: list[Lease] = []
    for _ in range(25):
        match dice.choice(("wait", "wait", "book", "delete", "shorten", "pass")):
            case "wait":
                ask = a_host(dice.randint(1, 3)) if dice.random() < 0.7 else instances(2, vcpus=1)
                hours, wait = dice.choice((1, 2, 5)), dice.choice((HOUR, 6 * HOUR, DAY))
                known.append(waits(world, ask, project=f"p{dice.randint(1, 3)}", hours=hours, wait=wait))
            case "book":
                start = dice.choice((timedelta(0), HOUR, 3 * HOUR))
                with suppress(Conflict):
                    known.append(world.lease(a_host(dice.randint(1, 2)), start=start, hours=2, project="direct"))
            case "delete" if known:
                with suppress(NotFound):
                    world.manager.leases.delete(dice.choice(known).id)
            case "shorten" if known:
                with suppress(Conflict, InvalidInput, NotFound):
                    world.change(dice.choice(known), end=world.clock.now().replace(second=0) + 30 * MINUTE)
            case _:
                world.run_to(world.clock.now() + dice.choice((MINUTE, 20 * MINUTE, HOUR)))
        world.run()
        check_promises(world.store, since=world.clock.now())
        for lease in known:
            now = world.now(lease)
            holds = bool(world.store.calendar.of_lease(lease.id))
            assert holds == (now.deleted_at is None and now.status in GRANTED), now.status
    world.run_to(world.clock.now() + 2 * DAY)
    left = {world.now(lease).status for lease in known if world.now(lease).deleted_at is None}
    assert left <= {LeaseStatus.TERMINATED, LeaseStatus.TIMED_OUT}
