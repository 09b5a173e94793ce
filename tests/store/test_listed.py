# SPDX-License-Identifier: Apache-2.0
"""Lists without pages are bounded, whatever has ended."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from blazar.model.base.errors import CloudRefused, CloudUnavailable
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import LeaseStatus
from blazar.store.sql.engine import WRITES
from blazar.store.sql.tables import leases
from blazar.store.store import Store, StoreLimits
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
    store = Store(engine, limits=StoreLimits(ended_leases=MOST)).leases

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


@pytest.mark.slow
def test_what_has_failed_is_listed_until_its_end_is_done_and_is_over_then(engine):
    world = World(engine)
    store = Store(engine, limits=StoreLimits(ended_leases=MOST)).leases
    failed = []
    for number in range(MOST + 2):
        lease = world.lease(start=HOUR, hours=1, name=f"fails {number}")
        world.faults.fail_before("add_host", CloudRefused("no such host"))
        world.run_to(lease.window.start)
        assert world.now(lease).status is LeaseStatus.ERROR
        # Before its end it is listed beside those that are over.
        assert lease.id in {each.id for each in store.of_project(None)}
        world.run_to(lease.window.end)
        assert world.now(lease).status is LeaseStatus.TERMINATED
        failed.append(lease.id)
    # One has a part that the cloud does not give back: its end is still to be worked on, however long that takes.
    late = world.lease(a_host(), a_host(), start=HOUR, hours=1, name="late")
    world.faults.fail_before("add_host", CloudRefused("no such host"))
    world.run_to(late.window.start)
    assert world.now(late).status is LeaseStatus.ERROR
    world.faults.fail_before("remove_host", CloudUnavailable("no answer"), times=1000)
    world.run_to(late.window.end + HOUR)
    with world.engine.connect() as connection:
        beyond = sa.select(leases.c.id).where(leases.c.ends_at <= world.clock.now())
        over = beyond.where(leases.c.status == str(LeaseStatus.TERMINATED))
        assert set(connection.execute(beyond).scalars()) - set(connection.execute(over).scalars()) == {late.id}
    assert {each.id for each in store.of_project(None)} == {*failed[-MOST:], late.id}
