# SPDX-License-Identifier: Apache-2.0
"""A host that does not wake, at either attempt: its lease gets another one before it begins, if there is one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sqlalchemy as sa

from blazar.clouds.simulated.machines import PowerFault
from blazar.model.leases.lease import Lease
from blazar.model.power.states import PowerState
from blazar.store.sql.tables import journal
from tests.configured import configured_world
from tests.manager.power.nights import HOUR, MINUTE, NO_SPARE, give_switches, pass_time, spoil, states
from tests.world import World

pytestmark = pytest.mark.slow


@pytest.fixture
def start(sqlite, tmp_path) -> Callable[..., tuple[World, Lease, int]]:
    """Start a service whose hosts sleep; return it, a lease in three hours, and the number of its host."""

    def run(hosts: int) -> tuple[World, Lease, int]:
        world = configured_world(sqlite, tmp_path, *NO_SPARE, hosts=hosts)
        give_switches(world)
        world.clock.by(hours=1)
        pass_time(world, 5 * MINUTE)
        assert set(states(world)) == {PowerState.OFF}
        lease = world.lease(start=3 * HOUR)
        (name,) = world.hosts_of(lease)
        return world, lease, int(name.removeprefix("node-"))

    return run


def live_until_start(world: World, lease: Lease) -> None:
    """Let time pass until the lease begins, with health looked at each minute."""
    while world.clock.now() < lease.window.start:
        pass_time(world, MINUTE)
        world.manager.monitor.run_once()
    world.run_to(lease.window.start)


def verbs_told(world: World, lease: Lease) -> list[str]:
    told = sa.select(journal.c.verb).where(journal.c.object_id == lease.id).order_by(journal.c.seq)
    with world.engine.connect() as connection:
        return list(connection.scalars(told))


def test_a_lease_gets_another_host_that_slept_too_and_is_awake_at_its_start(start):
    world, lease, number = start(hosts=3)
    spoil(world, PowerFault.REFUSES, number)
    live_until_start(world, lease)
    (taken,) = world.hosts_of(lease)
    assert taken != f"node-{number}"
    assert states(world)[int(taken.removeprefix("node-")) - 1] is PowerState.ON
    assert (world.now(lease).status, world.now(lease).degraded) == ("ACTIVE", False)
    assert verbs_told(world, lease) == ["created", "moved", "started"]


def test_a_lease_for_which_there_is_no_other_begins_degraded_and_its_project_reads_so(start):
    world, lease, number = start(hosts=1)
    spoil(world, PowerFault.REFUSES, number)
    live_until_start(world, lease)
    assert (world.now(lease).status, world.now(lease).degraded) == ("ACTIVE", True)
    assert verbs_told(world, lease) == ["created", "degraded", "started"]
