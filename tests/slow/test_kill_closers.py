# SPDX-License-Identifier: Apache-2.0
"""Managers that charge leases are killed again and again: nothing is charged twice, and nothing is missing."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
from collections import defaultdict
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa

from blazar.model.leases.states import ReservationStatus
from blazar.store.sql.engine import make_engine
from blazar.store.sql.migrate import upgrade
from blazar.store.sql.tables import accounts, charges, events, planned
from blazarconformance.clock import ManualClock
from tests.conftest import fresh_database
from tests.manager.billing.ledger import publish
from tests.store.builders import HOST, NOON, a_host, booked, hours
from tests.world import World

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

LEASES, MANAGERS = 120, 2
LATER = NOON + timedelta(days=100)


def a_world(url: str) -> World:
    """Return the world of a manager, after all that was booked."""
    return World(make_engine(url), hosts=1, register=False, clock=ManualClock(LATER))


def close_until_killed(url: str, seed: int) -> None:
    """Be a manager that charges what is due, and kills itself before one of its statements or commits."""
    world, dice = a_world(url), random.Random(seed)
    left, world.manager.closing.batch = dice.randint(1, 60), 5

    def die_in_time(*_: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sa.event.listen(world.engine, "before_cursor_execute", die_in_time)
    sa.event.listen(world.engine, "commit", die_in_time)
    while world.manager.closing.run_once():
        pass


def book(url: str) -> dict[str, tuple[datetime, datetime]]:
    """Book leases on a host that have been handed over and are over; return when each was."""
    world = World(make_engine(url), hosts=1, register=False)
    publish(world, fee="5.00")
    host, dice, made = a_host(world.store), random.Random(5), {}
    # The catalog says that there are prices.
    assert world.store.resources.catalog(HOST).resources
    for number in range(LEASES):
        # Some of them over the end of a month.
        start = number * 18
        lease = booked(world.store, hours(start, start + dice.randint(1, 17)), host)
        (reservation,) = lease.reservations
        active = replace(lease, reservations=(replace(reservation, status=ReservationStatus.ACTIVE),))
        world.store.leases.save(lease, active, at=lease.window.start)
        made[lease.id] = (lease.window.start, lease.window.end)
    with world.engine.begin() as connection:
        # Nothing but accounts is worked on.
        connection.execute(events.update().values(due_at=None))
    world.engine.dispose()
    return made


def check(engine: sa.Engine, made: dict[str, tuple[datetime, datetime]]) -> None:
    """Compare what was charged with what there was: each second once, and one fee for each lease."""
    seconds: dict[str, int] = defaultdict(int)
    fees: dict[str, int] = defaultdict(int)
    with engine.connect() as connection:
        lines = connection.execute(sa.select(charges)).mappings().all()
        assert connection.execute(sa.select(planned)).all() == []
    for line in lines:
        if line["category"] == "fee":
            fees[line["lease_id"]] += line["nano"]
        else:
            assert line["starts_at"] >= made[line["lease_id"]][0]
            assert line["ends_at"] <= made[line["lease_id"]][1]
            seconds[line["lease_id"]] += line["resource_seconds"]
    assert seconds == {lease_id: (end - start) // timedelta(seconds=1) for lease_id, (start, end) in made.items()}
    assert fees == dict.fromkeys(made, 5 * 10**9)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "mariadb"])
def test_each_second_is_charged_once_however_many_managers_are_killed(kind, tmp_path):
    for url in fresh_database(kind, tmp_path):
        engine = make_engine(url)
        upgrade(engine)
        made = book(url)
        killed, seed, context = 0, 0, multiprocessing.get_context("fork")
        while True:
            engine.dispose()
            batch = [context.Process(target=close_until_killed, args=(url, seed + n)) for n in range(MANAGERS)]
            seed += MANAGERS
            for process in batch:
                process.start()
            for process in batch:
                process.join()
            killed += sum(process.exitcode == -signal.SIGKILL for process in batch)
            with engine.begin() as connection:
                open_ones = accounts.c.due_at.is_not(None)
                if not connection.execute(sa.select(sa.func.count()).select_from(accounts).where(open_ones)).scalar():
                    break
                # The claims of the dead have expired.
                connection.execute(accounts.update().where(open_ones, accounts.c.due_at > LATER).values(due_at=LATER))
        check(engine, made)
        assert killed >= 5, "so that it was tried"
        engine.dispose()
