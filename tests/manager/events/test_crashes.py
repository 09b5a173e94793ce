# SPDX-License-Identifier: Apache-2.0
"""Managers that die, managers that meet, and bugs: nothing gets stuck, nothing is done twice, nobody else is harmed."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from datetime import timedelta

import pytest

from blazar.context import current
from blazar.manager.common.settings import Settings
from blazar.model.base.errors import CloudRefused, NotFound
from blazar.model.leases.requests import LeaseRequest
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus, ReservationStatus
from blazar.resources.hosts.type import PhysicalHost
from blazar.resources.instances.virtual import VirtualInstance
from tests.observed import Killed
from tests.statements import counted
from tests.world import NOON, PROJECT, World, a_host, instances

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
ALL = {"node-1", "node-2", "node-3"}


def killed_at(step: int, phase: str) -> Callable[[str, str], None]:
    """Die in the so-manieth call to the cloud, before it has an effect or before its answer comes."""
    left = [step]

    def kill(name: str, when: str) -> None:
        if when == phase:
            left[0] -= 1
        if left[0] <= 0:
            raise Killed

    return kill


def dies(world: World, act: Callable[[], object], step: int, phase: str) -> bool:
    """Let the manager die in the so-manieth call of what it does, and another take over; tell whether it came to it."""
    world.faults.on_call = killed_at(step, phase)
    try:
        act()
    except Killed:
        return True
    finally:
        world.faults.on_call = None
        world.manager = world.another_manager()
    return False


def a_mixed_lease(world: World):
    return world.lease(a_host(), instances(2, affinity=False, vcpus=1), instances(1, affinity=True), start=HOUR)


def nothing_is_left(world: World) -> None:
    with world.simulated.inspect() as state:
        assert (state.flavors, state.groups, state.classes) == ({}, {}, [])
        assert all(not totals for totals in state.inventories.values())
        assert {a.name for a in state.aggregates.values()} == {"freepool", "az-1", "az-2"}
        assert [a.metadata for a in state.aggregates.values() if a.name == "freepool"] == [{}]
        zones = [host for a in state.aggregates.values() if a.zone for host in a.hosts]
    assert sorted(zones) == sorted(ALL)
    assert world.pool() == ALL
    assert world.simulated.operators.list_servers() == ()


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_manager_killed_at_any_step_of_a_start_another_finishes_it(world, phase):
    for step in itertools.count(1):
        lease = a_mixed_lease(world)
        died = dies(world, lambda due=lease.window.start: world.run_to(due), step, phase)
        world.run_to(world.clock.now() + MINUTE)
        started = world.now(lease)
        assert (started.status, started.event(EventType.START).status) == (LeaseStatus.ACTIVE, EventStatus.DONE), step
        host, apart, together = started.reservations
        assert len(world.pool(host.id)) == 1
        assert (len(world.pool(apart.id)), len(world.pool(together.id))) == (2, 1)
        for reservation in (apart, together):
            assert world.simulated.users.boot_reserved(reservation.id, project_id=PROJECT).host in world.pool(
                reservation.id
            )
        world.run_to(lease.window.end + MINUTE)
        nothing_is_left(world)
        if not died:
            break
    assert step > 10


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_manager_killed_at_any_step_of_an_end_another_finishes_it(world, phase):
    for step in itertools.count(1):
        lease = a_mixed_lease(world)
        world.run_to(lease.window.start)
        world.simulated.users.boot_reserved(world.now(lease).reservations[1].id, project_id=PROJECT)
        died = dies(world, lambda due=lease.window.end: world.run_to(due), step, phase)
        world.run_to(world.clock.now() + MINUTE)
        ended = world.now(lease)
        assert (ended.status, ended.event(EventType.END).status) == (LeaseStatus.TERMINATED, EventStatus.DONE), step
        nothing_is_left(world)
        if not died:
            break
    assert step > 10


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_manager_killed_at_any_step_of_a_deletion_another_finishes_it(world, phase):
    for step in itertools.count(1):
        lease = a_mixed_lease(world)
        world.run_to(lease.window.start)
        died = dies(world, lambda it=lease.id: world.manager.leases.delete(it), step, phase)
        world.run_to(world.clock.now() + MINUTE)
        with pytest.raises(NotFound):
            world.manager.leases.one(lease.id)
        nothing_is_left(world)
        if not died:
            break
    assert step > 10


def test_two_managers_never_work_on_one_event(world):
    other = world.another_manager()
    looks = []

    def meanwhile(name, phase):
        looks.append(other.engine.run_due())

    lease = world.lease(a_host(2))
    world.faults.on_call = meanwhile
    world.run()
    assert looks
    assert not any(looks)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert world.notifier.types.count("lease.event.start_lease") == 1


def until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)


def test_a_bug_in_one_event_is_told_at_that_event_and_at_no_other(world):
    leases = [world.lease(start=HOUR) for _ in range(3)]
    world.clock.to(NOON + HOUR)
    world.faults.fail_before("add_host", RuntimeError("bug"))
    world.manager.start()
    try:
        until(lambda: all(world.now(lease).status is not LeaseStatus.PENDING for lease in leases))
        until(lambda: sum(world.now(lease).status is LeaseStatus.ACTIVE for lease in leases) == 2)
        until(lambda: sum(world.now(lease).event(EventType.START).attempts for lease in leases) == 1)
    finally:
        world.manager.stop()
    told = {world.now(lease).status: world.now(lease).event(EventType.START) for lease in leases}
    assert told[LeaseStatus.STARTING].reason == "internal error: RuntimeError"
    assert (told[LeaseStatus.ACTIVE].status, told[LeaseStatus.ACTIVE].reason) == (EventStatus.DONE, None)
    world.run_to(NOON + HOUR + MINUTE)
    assert {world.now(lease).status for lease in leases} == {LeaseStatus.ACTIVE}


@pytest.mark.parametrize("hosts_come", ["first", "last"])
def test_a_bug_in_one_reservation_keeps_no_other_of_the_lease_from_its_turn(a_world, hosts_come):
    bugs = {"start"}

    class Buggy(VirtualInstance):
        def start(self, *arguments):
            return 1 / 0 if "start" in bugs else super().start(*arguments)

        def end(self, *arguments):
            return 1 / 0 if "end" in bugs else super().end(*arguments)

    world = a_world(types=(PhysicalHost, Buggy))
    rooms = [a_host(), instances()] if hosts_come == "first" else [instances(), a_host()]
    lease = world.lease(*rooms, start=HOUR)

    def statuses() -> dict[str, ReservationStatus]:
        return {r.resource_type: r.status for r in world.now(lease).reservations}

    world.run_to(NOON + HOUR)
    assert statuses() == {"physical:host": "active", "virtual:instance": "pending"}
    assert world.now(lease).event(EventType.START).reason == "internal error: ZeroDivisionError"
    bugs.clear()
    world.run_to(NOON + HOUR + MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    bugs.add("end")
    world.run_to(NOON + 3 * HOUR)
    assert statuses() == {"physical:host": "deleted", "virtual:instance": "active"}
    assert world.pool() == ALL
    bugs.clear()
    world.run_to(NOON + 4 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    nothing_is_left(world)


def test_no_number_of_slow_ends_keeps_a_start_waiting(a_world):
    world = a_world(settings=Settings(enders=2, starters=1, claim_ttl=MINUTE))
    ending = [world.lease(), world.lease()]
    world.run()
    # On another host: who needs the very host that is being left waits for it, and should.
    (free,) = ALL - world.hosts_of(ending[0]) - world.hosts_of(ending[1])
    starting = world.lease(a_host(needs=f'["==", "$hypervisor_hostname", "{free}"]'), start=2 * HOUR)
    world.run_to(NOON + HOUR)
    gate, waiting = threading.Event(), threading.Semaphore(0)

    def hold_up(name, phase):
        if phase == "before" and threading.current_thread().name.startswith("end"):
            waiting.release()
            assert gate.wait(20)

    world.faults.on_call = hold_up
    world.clock.to(NOON + 2 * HOUR)
    world.manager.start()
    try:
        assert all(waiting.acquire(timeout=20) for _ in ending)
        until(lambda: world.now(starting).status is LeaseStatus.ACTIVE)
        assert {world.now(lease).status for lease in ending} == {LeaseStatus.TERMINATING}
        gate.set()
        until(lambda: {world.now(lease).status for lease in ending} == {LeaseStatus.TERMINATED})
    finally:
        gate.set()
        world.manager.stop()


def test_no_number_of_starts_of_one_project_keeps_that_of_another_waiting(a_world):
    world = a_world(hosts=6, settings=Settings(starters=4, claim_ttl=MINUTE))
    crowd = [world.lease(start=HOUR) for _ in range(5)]
    other = world.lease(start=HOUR, project="chemistry")
    gate = threading.Event()

    def hold_up(name, phase):
        if phase == "before" and current().request_id not in (None, f"req-{other.event(EventType.START).id}"):
            assert gate.wait(20)

    world.faults.on_call = hold_up
    world.clock.to(NOON + HOUR)
    world.manager.start()
    try:
        until(lambda: world.now(other).status is LeaseStatus.ACTIVE)
        # Theirs may come first or last; as long as they are held up, some are begun and some wait.
        until(lambda: {world.now(each).status for each in crowd} == {LeaseStatus.STARTING, LeaseStatus.PENDING})
        gate.set()
        until(lambda: {world.now(lease).status for lease in crowd} == {LeaseStatus.ACTIVE})
    finally:
        gate.set()
        world.manager.stop()


def test_a_lease_without_reservations_starts_in_one_write(a_world):
    world = a_world(hosts=0)
    lease = world.manager.leases.create(LeaseRequest("empty", "curie", "physics", NOON + HOUR, NOON + 2 * HOUR))
    world.clock.to(NOON + HOUR)
    with counted(world.engine) as statements:
        event = next(event for event in world.store.events.due(NOON + HOUR, 9) if event.is_start)
        world.manager.engine.worker.process(event.lease_id, event.event_id)
    assert event.empty
    assert statements.count == 6
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert world.now(lease).event(EventType.START).status is EventStatus.DONE
    assert world.notifier.types[-1] == "lease.event.start_lease"


def test_a_deletion_is_tried_again_until_nothing_is_left(world):
    lease = world.lease(a_host(2), instances())
    world.run()
    world.faults.fail_before("remove_host", CloudRefused("not now"), times=5)
    world.manager.leases.delete(lease.id)
    assert world.manager.leases.one(lease.id).status is LeaseStatus.DELETING
    world.run_to(NOON + 30 * MINUTE)
    with pytest.raises(NotFound):
        world.manager.leases.one(lease.id)
    assert {e.status for e in world.now(lease).events} <= {EventStatus.DONE, EventStatus.UNDONE}
    nothing_is_left(world)


def test_a_lease_can_be_deleted_while_its_end_keeps_failing(world):
    lease = world.lease()
    world.run()
    world.faults.fail_before("remove_host", CloudRefused("not now"), times=50)
    world.run_to(NOON + 2 * HOUR + MINUTE)
    assert world.now(lease).status is LeaseStatus.TERMINATING
    world.faults.clear()
    world.manager.leases.delete(lease.id)
    world.run()
    with pytest.raises(NotFound):
        world.manager.leases.one(lease.id)
    nothing_is_left(world)
