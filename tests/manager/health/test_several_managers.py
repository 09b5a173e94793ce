# SPDX-License-Identifier: Apache-2.0
"""Managers that heal at the same time."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from blazar.model.base.errors import CloudUnavailable
from blazar.model.leases.states import LeaseStatus
from blazar.model.resources.resource import HOST
from tests.manager.health.steps import HOUR, flags, look, told
from tests.statements import counted
from tests.world import NOON, World, a_host


def test_two_managers_see_the_same_and_the_world_hears_of_it_once(world):
    lease = world.lease(a_host(3), start=HOUR)
    second = world.another_manager()
    world.simulated.operators.host_down("node-2")
    for _ in range(3):
        world.manager.monitor.run_once()
        second.monitor.run_once()
    assert told(world) == ["lease.degraded"]
    world.simulated.operators.host_up("node-2")
    for _ in range(3):
        second.monitor.run_once()
        world.manager.monitor.run_once()
    assert told(world) == ["lease.degraded", "lease.healed"]
    revision = world.now(lease).revision
    world.manager.monitor.heal()
    second.monitor.heal()
    assert world.now(lease).revision == revision


@pytest.mark.slow
def test_managers_that_heal_at_the_same_time_book_nothing_twice_and_tell_of_it_once(engine):
    world = World(engine, hosts=9)
    others = [world.another_manager() for _ in range(3)]
    leases = [world.lease(start=HOUR) for _ in range(4)]
    full = world.lease(a_host(5), start=HOUR)
    before = {name for lease in leases for name in world.hosts_of(lease)}
    lost = sorted(before)[:2]
    for name in lost:
        world.simulated.operators.host_down(name)
    for name in sorted(world.hosts_of(full))[:2]:
        world.simulated.operators.host_down(name)
    world.manager.leases.delete(leases.pop().id)
    look(world, 1)
    begin = threading.Barrier(4)

    def heal(manager):
        begin.wait()
        for _ in range(3):
            manager.monitor.run_once()

    threads = [threading.Thread(target=heal, args=(manager,)) for manager in (world.manager, *others)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    while world.manager.monitor.heal():
        pass
    promised = [a.resource_id for a in world.store.calendar.load_live(HOST)]
    assert len(promised) == len(set(promised))
    # Four hosts are down, and one was free: of five that are well and taken nobody lost any.
    missing = [lease for lease in (*leases, full) if flags(world, lease)[0]]
    assert sum(world.manager.resources.one(HOST, str(n)).failure is not None for n in range(1, 10)) == 4
    assert told(world) == ["lease.degraded"] * len(missing)
    assert all(flags(world, lease) == (True, False, True) for lease in missing)


def test_a_lease_that_somebody_works_on_is_left_to_them_and_looked_at_again(world):
    lease = world.lease()
    (host,) = world.hosts_of(lease)
    world.simulated.operators.host_down(host)
    world.faults.fail_before("add_host", CloudUnavailable("lost"), times=3)
    world.run()
    assert world.now(lease).status is LeaseStatus.STARTING
    look(world, 1)
    world.manager.monitor.hint(host)
    look(world, 1)
    assert world.manager.monitor.heal() == 1
    world.run_to(NOON + timedelta(minutes=1))
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert world.hosts_of(lease) != {host}
    assert world.manager.monitor.heal() == 0


def test_a_pass_costs_one_statement_where_there_is_nothing_to_heal_and_some_for_each_lease(a_world):
    world = a_world(hosts=9)
    leases = [world.lease(start=HOUR) for _ in range(3)]
    with counted(world.engine) as none:
        world.manager.monitor.heal()
    assert none.count == 1
    hosts = [next(iter(world.hosts_of(lease))) for lease in leases]
    for host in hosts:
        world.simulated.operators.host_down(host)
    world.manager.monitor.run_once()
    with counted(world.engine) as found:
        world.manager.monitor.run_once()
    assert found.count <= 12 + 25 * len(leases)
    assert all(not world.hosts_of(lease) & set(hosts) for lease in leases)
