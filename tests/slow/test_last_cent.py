# SPDX-License-Identifier: Apache-2.0
"""Sixteen requests to two managers race for the last cent of a budget: one gets it, also if answers are lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from blazar.enforcement.spend import SpendFilter
from blazar.model.base.errors import BlazarError, UsageDenied
from blazar.model.billing.charges import NANO
from tests.api.conftest import app_of, client_of, token
from tests.manager.billing.ledger import HOUR, expected, publish
from tests.world import NOON, PROJECT, World, a_host

pytestmark = pytest.mark.slow

RACERS = 16
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
