# SPDX-License-Identifier: Apache-2.0
"""Budgets under race and kill.

Sixteen requests to two managers race for the last cent: one gets it, also if answers are lost. Managers that book are
killed until nothing is left: each share that was reached is told once.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa

from blazar.enforcement.spend import SpendFilter
from blazar.model.base.errors import BlazarError, UsageDenied
from blazar.model.billing.charges import NANO
from blazar.store.sql.engine import make_engine
from blazar.store.sql.tables import journal, leases
from tests.api.conftest import app_of, client_of, token
from tests.manager.billing.ledger import HOUR, expected, publish, rows
from tests.world import NOON, PROJECT, World, a_host

pytestmark = pytest.mark.slow

RACERS = 16
SHARES = (10, 25, 50, 75, 90, 100)
MOST = 40
"""What killed managers may spend, in leases of one each."""
HEADERS = {"OpenStack-API-Version": "reservation 1.1", **token("curie", PROJECT)}


def two_managers(engine) -> tuple[World, World]:
    """Return two managers of one database and cloud; a project may spend 10.00, and a lease takes all but a cent."""
    here = World(engine, hosts=RACERS, filters=[SpendFilter(10 * NANO)])
    publish(here, prices=[{"sku": "host", "measure": "host", "per_hour": "0.01"}])
    there = World(engine, filters=[SpendFilter(10 * NANO)], register=False, cloud=here.simulated, clock=here.clock)
    here.lease(a_host(9), start=100 * HOUR, hours=111)
    assert expected(here) == 9.99
    return here, there


def race(run: Callable[[int], Any]) -> list[Any]:
    """Return what each racer got, a result or an error; all begin together."""
    together = threading.Barrier(RACERS)

    def racer(number: int) -> Any:
        together.wait(30)
        try:
            return run(number)
        except BlazarError as error:
            return error

    with ThreadPoolExecutor(RACERS) as threads:
        return list(threads.map(racer, range(RACERS)))


def test_of_sixteen_that_want_the_last_cent_one_gets_it(engine):
    managers = two_managers(engine)
    # Each at a time of its own: only the budget has them in common.
    found = race(lambda number: managers[number % 2].lease(start=NOON + (number + 1) * HOUR, hours=1))
    denied = [one for one in found if isinstance(one, UsageDenied)]
    # Who lost each of its attempts may try again; none of these may have been booked.
    granted = [one for one in found if not isinstance(one, BlazarError)]
    assert (len(granted), expected(managers[0])) == (1, 10)
    assert denied
    assert all("0.00 are left" in one.message for one in denied)


def test_who_asks_again_after_a_lost_answer_has_it_once(engine):
    managers = two_managers(engine)
    clients = [client_of(app_of(world.manager)) for world in managers]

    def ask(number: int) -> int:
        """Ask twice with one key, the second time another manager, as if the first answer was lost."""
        start = NOON + (number + 1) * HOUR
        dates = {"start_date": f"{start:%Y-%m-%d %H:%M}", "end_date": f"{start + HOUR:%Y-%m-%d %H:%M}"}
        body = {"name": f"l-{number}", **dates}
        body["reservations"] = [{"resource_type": "physical:host", "min": 1, "max": 1}]
        headers = {**HEADERS, "Idempotency-Key": f"key-{number}"}
        clients[number % 2].post("/v1/leases", json=body, headers=headers)
        return clients[(number + 1) % 2].post("/v1/leases", json=body, headers=headers).status_code

    statuses = race(ask)
    leases = managers[0].manager.leases.all(PROJECT)
    assert len(leases) == 2
    assert expected(managers[0]) == 10
    assert sum(status in (200, 201) for status in statuses) <= 1
    assert set(statuses) <= {200, 201, 403, 409, 503}


def spend_until_killed(url: str, seed: int) -> None:
    """Be a manager that books one lease after the other, and kills itself before one of its statements or commits.

    It ends by itself once the budget is used up.
    """
    engine, dice = make_engine(url), random.Random(seed)
    world = World(engine, hosts=1, register=False, filters=[SpendFilter(MOST * NANO)], shares=SHARES)
    left = dice.randint(1, 150)

    def die_in_time(*_: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sa.event.listen(engine, "before_cursor_execute", die_in_time)
    sa.event.listen(engine, "commit", die_in_time)
    while True:
        with engine.connect() as connection:
            booked = connection.execute(sa.select(sa.func.count()).select_from(leases)).scalar_one()
        try:
            world.lease(start=NOON + (2 * booked + 1) * HOUR, hours=1)
        except UsageDenied:
            return


def test_each_share_of_a_budget_is_told_once_however_many_managers_are_killed(sqlite):
    url = sqlite.url.render_as_string(hide_password=False)
    world = World(sqlite, hosts=1, shares=SHARES)
    publish(world)
    context, killed, process = multiprocessing.get_context("fork"), 0, None
    while process is None or process.exitcode != 0:
        # What the new process has of our connections must not end them.
        sqlite.dispose()
        process = context.Process(target=spend_until_killed, args=(url, killed))
        process.start()
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL)
        killed += process.exitcode != 0
    assert expected(world) == MOST
    told = [row for row in rows(world, journal) if (row["object_type"], row["verb"]) == ("budget", "reached")]
    shares = [after for row in told for name, _, after, _ in row["changes"] if name == "share"]
    assert sorted(map(int, shares)) == list(SHARES)
    assert killed >= 5, "so that it was tried"
