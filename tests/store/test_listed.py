# SPDX-License-Identifier: Apache-2.0
"""Lists without pages are bounded, whatever has ended."""

from __future__ import annotations

from datetime import timedelta

import sqlalchemy as sa

from blazar.model.lease import Lease, LeaseStatus
from blazar.store.engine import WRITES
from blazar.store.store import Store
from blazar.store.tables import leases
from tests.statements import counted
from tests.world import World, a_host

HOUR = timedelta(hours=1)
MOST = 3


def aged(world: World, *endings: int, status: LeaseStatus = LeaseStatus.TERMINATED, project: str) -> list[Lease]:
    """Make leases that are over since so many hours, or are in another status."""
    made = []
    for hours in endings:
        lease = world.lease(a_host(), start=HOUR, hours=1, project=project)
        world.manager.leases.delete(lease.id)
        world.run()
        end = world.clock.now() - hours * HOUR
        ended = {"deleted_at": None, "status": str(status), "starts_at": end - HOUR, "ends_at": end}
        with world.engine.execution_options(**{WRITES: True}).begin() as connection:
            connection.execute(sa.update(leases).where(leases.c.id == lease.id).values(**ended))
        made.append(lease)
    return made


def test_a_list_has_what_is_not_over_and_the_last_of_what_is(engine):
    world = World(engine)
    mine = aged(world, 50, 40, 30, 20, 10, project="physics")
    late = aged(world, 90, status=LeaseStatus.ERROR, project="physics")
    others = aged(world, 12, 11, project="biology")
    coming = world.lease(a_host(), start=HOUR)
    store = Store(engine, ended_leases=MOST).leases

    def listed(project: str | None) -> list[str]:
        with counted(engine) as statements:
            found = [each.id for each in store.of_project(project)]
        assert statements.count == 3
        assert [each.id for each in store.revisions(project)] == found
        return sorted(found)

    def ids(*some: Lease) -> list[str]:
        return sorted(each.id for each in some)

    assert listed("physics") == ids(*mine[-MOST:], *late, coming)
    assert listed("biology") == ids(*others)
    assert listed(None) == ids(mine[-1], *others, *late, coming)
    # However many end in one second.
    same = aged(world, *[1] * (MOST + 2), project="physics")
    assert listed("physics") == ids(*late, coming)
    assert len(same) == MOST + 2
    assert sorted(each.id for each in Store(engine).leases.of_project("physics")) == ids(*mine, *late, coming, *same)
