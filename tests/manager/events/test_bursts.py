# SPDX-License-Identifier: Apache-2.0
"""Many starts at one instant."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta

import pytest

from blazar.clouds.ports.compute import Flavor
from blazar.manager.events.fairness import FairTurns
from blazar.model.base.errors import NotFound
from blazar.model.leases.states import LeaseStatus
from blazar.store.sql.engine import WRITES
from blazar.store.sql.tables import leases as lease_table
from tests.fencing.stage import until
from tests.statements import counted
from tests.world import NOON, World, a_host, instances, stacks

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def start(world: World, *, between=lambda: None) -> list[bool]:
    """Look at all that is due, as a running engine would that reads it at once."""
    worker = world.manager.engine.worker
    due = world.store.events.due(world.clock.now(), 99)
    worker.read_ahead.read(due)
    between()
    return [worker.process(event.lease_id, event.event_id) for event in due if event.is_start]


@pytest.fixture
def world(engine):
    return World(engine, hosts=6)


def test_each_start_of_a_burst_costs_few_statements(world):
    leases = [world.lease(start=HOUR) for _ in range(5)]
    world.clock.to(NOON + HOUR)
    with counted(world.engine) as statements:
        assert start(world) == [True] * 5
    assert {world.now(lease).status for lease in leases} == {LeaseStatus.ACTIVE}
    # One looks at what is due, six read for all of them, and each is written twice.
    assert statements.count == 7 + 6 * len(leases)


def test_what_comes_next_is_read_with_a_burst_and_not_again(world):
    leases = [world.lease(start=HOUR) for _ in range(5)]
    world.clock.to(NOON + HOUR)
    worker = world.manager.engine.worker
    due = world.store.events.due(world.clock.now(), 99)
    with counted(world.engine) as statements:
        worker.read_ahead.read(due[:2], due)
        for event in due:
            worker.read_ahead.read([event], due)
            assert worker.process(event.lease_id, event.event_id)
    assert {world.now(lease).status for lease in leases} == {LeaseStatus.ACTIVE}
    assert statements.count == 6 + 6 * len(leases)


def test_what_was_read_long_ago_is_read_again(world, monkeypatch):
    leases = [world.lease(start=HOUR) for _ in range(3)]
    world.clock.to(NOON + HOUR)
    worker = world.manager.engine.worker
    due = world.store.events.due(world.clock.now(), 99)
    monkeypatch.setattr("blazar.manager.events.read_ahead.FRESH_SECONDS", 0)
    worker.read_ahead.read(due[:2], due)
    world.change(leases[0], end=NOON + 3 * HOUR)
    worker.read_ahead.read(due, ())
    assert [worker.process(event.lease_id, event.event_id) for event in due] == [True] * 3
    assert {world.now(lease).status for lease in leases} == {LeaseStatus.ACTIVE}


def test_what_changes_after_a_burst_was_read_is_not_overwritten(world):
    first, second, third = (world.lease(start=HOUR, hours=1) for _ in range(3))
    world.clock.to(NOON + HOUR)

    def between():
        world.change(first, end=NOON + 3 * HOUR)
        world.manager.leases.delete(second.id)

    assert sorted(start(world, between=between)) == [False, False, True]
    assert start(world) == [True]
    assert world.now(first).window.end == NOON + 3 * HOUR
    assert {world.now(lease).status for lease in (first, third)} == {LeaseStatus.ACTIVE}
    with pytest.raises(NotFound):
        world.manager.leases.one(second.id)


def test_who_has_not_left_is_waited_for_in_a_burst_too(world):
    late = world.lease(a_host(needs='["==", "$hypervisor_hostname", "node-1"]'), hours=1)
    world.run()
    next_one = world.lease(a_host(needs='["==", "$hypervisor_hostname", "node-1"]'), start=HOUR)
    others = [world.lease(start=HOUR), world.lease(instances(2), start=HOUR)]
    world.clock.to(NOON + HOUR)
    start(world)
    assert world.now(next_one).status is LeaseStatus.PENDING
    assert late.id in world.now(next_one).events[0].reason
    assert {world.now(lease).status for lease in others} == {LeaseStatus.ACTIVE}
    world.run_to(NOON + HOUR + timedelta(seconds=1))
    assert world.now(next_one).status is LeaseStatus.ACTIVE


@pytest.mark.slow
def test_a_lease_whose_cloud_is_ready_does_not_wait_for_all_others_of_a_burst_to_begin(engine):
    world = World(engine, hosts=6)
    world.simulated.operators.offer_flavor(Flavor("id-small", "small", 1, 512, 0, public=True))
    leases = [world.lease(stacks("small"), start=HOUR) for _ in range(12)]
    world.clock.to(NOON + HOUR)
    turns, seen = FairTurns(1), []
    # One thread, which gets an event of few that are read at a time; each takes a second.
    for _ in range(26):
        turns.offer(event for event in world.store.events.due(world.clock.now(), 4) if event.is_start)
        if (event := turns.take()) is not None:
            world.manager.engine.worker.process(event.lease_id, event.event_id)
            turns.done(event)
        world.clock.by(seconds=1)
        seen.append(Counter(world.now(lease).status for lease in leases))
    # The first is ready at the first look, two seconds after it was begun, and then one after the other.
    assert seen[2] == {LeaseStatus.ACTIVE: 1, LeaseStatus.STARTING: 1, LeaseStatus.PENDING: 10}
    assert max(each[LeaseStatus.STARTING] for each in seen) == 2
    assert seen[-1] == {LeaseStatus.ACTIVE: 12}


def note_status(world: World, lease_id: str, status: str) -> None:
    """Write a status into the row of a lease, as a program of another version may."""
    with world.engine.execution_options(**{WRITES: True}).begin() as connection:
        connection.execute(lease_table.update().where(lease_table.c.id == lease_id).values(status=status))


@pytest.mark.slow
def test_a_lease_that_cannot_be_read_keeps_no_other_of_its_burst_waiting_and_starts_when_it_is_mended(world):
    good = [world.lease(start=HOUR, project=f"project-{number}") for number in range(4)]
    unreadable = world.lease(start=HOUR, project="other")
    note_status(world, unreadable.id, "SUSPENDED")
    world.clock.to(NOON + HOUR)
    engine = world.manager.engine
    engine.start()
    try:
        until(lambda: {world.now(lease).status for lease in good} == {LeaseStatus.ACTIVE})
        note_status(world, unreadable.id, "PENDING")
        until(lambda: world.now(unreadable).status is LeaseStatus.ACTIVE)
    finally:
        engine.stop()


@pytest.mark.parametrize("most", [1, 2])
def test_a_burst_for_which_too_few_threads_can_be_started_is_worked_on_by_those_that_run(
    world, monkeypatch, caplog, most
):
    started = threading.Thread.start

    def start_few(thread: threading.Thread) -> None:
        lane, _, number = thread.name.partition("_")
        if lane in {"start", "end"} and int(number) >= most:
            raise RuntimeError("can't start new thread")
        started(thread)

    monkeypatch.setattr(threading.Thread, "start", start_few)
    ending = [world.lease(instances(1, affinity=None), hours=1, project=f"project-{number}") for number in range(3)]
    # Also the warning before the end, so that no end waits for it: the clock stands still afterwards.
    world.run_to(NOON + HOUR - MINUTE)
    leases = [world.lease(start=MINUTE, project=f"project-{number}") for number in range(5)]
    world.clock.to(NOON + HOUR)
    engine = world.manager.engine
    engine.start()
    try:
        until(lambda: {world.now(lease).status for lease in leases} == {LeaseStatus.ACTIVE})
        until(lambda: {world.now(lease).status for lease in ending} == {LeaseStatus.TERMINATED})
    finally:
        engine.stop()
    assert "internal" not in caplog.text
    assert "failed" not in caplog.text
