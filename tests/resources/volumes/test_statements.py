# SPDX-License-Identifier: Apache-2.0
"""The end of volumes takes no more statements for many pools than for one."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy.engine import Engine

from blazar.model.leases.states import LeaseStatus
from tests.statements import counted
from tests.world import World, volumes

HOUR = timedelta(hours=1)


def statements_of_an_end(engine: Engine, world: World, amount: int) -> int:
    lease = world.lease(volumes(amount, size=10), start=world.clock.now(), hours=1)
    world.run_to(world.clock.now() + timedelta(minutes=1))
    assert len(world.store.calendar.of_lease(lease.id)) == amount
    world.clock.to(lease.window.end)
    with counted(engine) as statements:
        world.run()
    assert world.now(lease).status is LeaseStatus.TERMINATED
    return statements.count


def test_the_end_of_volumes_takes_as_many_statements_on_many_pools_as_on_one(sqlite):
    world = World(sqlite, register=False)
    world.register_pools(1, 2, 3, 4, gigabytes=10)
    counts = [statements_of_an_end(sqlite, world, amount) for amount in (1, 4)]
    assert counts[0] == counts[1]
