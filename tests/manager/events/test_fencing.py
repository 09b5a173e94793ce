# SPDX-License-Identifier: Apache-2.0
"""A manager that loses its claim in the middle of its work: points at which that once did harm.

All points, of every type, are in ``tests/slow/test_fencing.py``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from blazar.model.base.clock import SystemClock
from blazar.model.base.errors import StoreUnavailable
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus
from tests.fencing.stage import HASTY, SETTINGS, TTL, Template, Turn, staged, template, until
from tests.fencing.stories import STORIES
from tests.fencing.telling import calls_of, tell
from tests.observed import Killed, ObservedStore
from tests.oracle import check_at_rest
from tests.world import World, a_host, instances


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Template]:
    made = template(tmp_path_factory.mktemp("stage"))
    yield made
    made.engine.dispose()


POINTS = [
    # An undo that was done already was done again, and took everything that the lease had.
    ("hosts: grow", Turn.TAKEN_OVER, "aggregates", "before"),
    ("instances: shrink", Turn.TAKEN_OVER, "set_inventory", "before"),
    # Lists that were read before were worked through while the next lease was there.
    ("hosts: end", Turn.ENDS, "add_host", "before"),
    ("hosts: migration", Turn.ENDS, "unfinished_moves_from", "before"),
    # What was undone, or had ended, was made once more, and stayed for good.
    ("instances: create", Turn.TAKEN_OVER, "create_flavor", "before"),
    ("flavors: change before the start", Turn.DELETED, "create_flavor", "before"),
    ("addresses: start", Turn.GONE, "create_floating_ip", "before"),
    # What one has made twice is there once.
    ("stacks: start", Turn.TAKEN_OVER, "begin_stack", "before"),
    ("stacks: start", Turn.DELETED, "begin_stack", "before"),
    ("stacks: end", Turn.ENDS, "begin_stack_deletion", "before"),
    ("networks: start", Turn.GONE, "create_segment_network", "before"),
    ("networks: end", Turn.ENDS, "delete_port", "before"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "turn", "call", "phase"), POINTS)
def test_a_manager_that_stood_still_touches_no_other_lease_and_leaves_nothing_behind(made, name, turn, call, phase):
    story = STORIES[name]
    number = calls_of(story, staged(made), turn).index(call) + 1
    assert tell(story, staged(made), turn, (number, phase))


@pytest.mark.parametrize("deed", ["create", "grow"])
def test_what_a_dead_manager_was_doing_with_a_lease_is_dropped_when_that_is_deleted(a_world, deed):
    world = a_world(settings=SETTINGS)
    if deed == "grow":
        lease = world.lease()
        world.run()
    dies_at(world, "create_aggregate" if deed == "create" else "add_host")
    with pytest.raises(Killed):
        world.lease() if deed == "create" else world.resize(lease, min=2, max=2)
    world.faults.on_call = None
    (lease,) = world.manager.leases.all(None)
    # Its claim is still good, so that the deletion has to wait.
    world.another_manager().leases.delete(lease.id)
    world.run_to(world.clock.now() + 2 * TTL)
    assert world.now(lease).deleted_at is not None
    check_at_rest(world.store, world.simulated, now=world.clock.now())


def dies_at(world: World, call: str) -> None:
    """Kill the manager that makes this call: nothing comes after it."""
    calls = []

    def kill(name: str, phase: str) -> None:
        calls.append(name)
        if call in calls:
            raise Killed

    world.faults.on_call = kill


# In threads


class EnforcementCheck:
    """Holds calls of a name up for as long as it is closed, each in its thread."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.open = threading.Event()
        self.waiting = threading.Semaphore(0)
        self.by: list[str] = []

    def __call__(self, name: str, phase: str) -> None:
        if (name, phase) == (self.name, "before"):
            self.by.append(threading.current_thread().name)
            self.waiting.release()
            assert self.open.wait(20)


class Flaky(ObservedStore):
    """A store of which single calls fail once."""

    def __init__(self, store: Any) -> None:
        super().__init__(store, self._call)
        self.failures: dict[str, Callable[..., bool]] = {}

    def _call(self, name: str, operation: Callable[..., Any], *args: Any, **more: Any) -> Any:
        fails = self.failures.get(name)
        if fails is not None and fails(*args):
            del self.failures[name]
            raise StoreUnavailable("the database is changing its leader")
        return operation(*args, **more)


@pytest.fixture
def hasty(a_world) -> World:
    """A world by the clock of the machine, in which claims last for a second."""
    return a_world(settings=HASTY, clock=SystemClock())


@pytest.mark.slow
def test_a_manager_that_is_asked_to_end_keeps_its_claims_until_its_work_is_done(hasty):
    other = hasty.another_manager()
    lease = hasty.lease(a_host(1), end=hasty.clock.now().replace(second=0, microsecond=0) + timedelta(hours=1))
    gate = hasty.faults.on_call = EnforcementCheck("add_host")
    hasty.manager.start()
    stopping = threading.Thread(target=hasty.manager.stop)
    try:
        assert gate.waiting.acquire(timeout=20)
        stopping.start()
        other.start()
        # Longer than a claim lasts without renewal.
        time.sleep(1.6)
        assert len(gate.by) == 1, "another manager works on the same event"
        gate.open.set()
        until(lambda: hasty.now(lease).status is LeaseStatus.ACTIVE)
    finally:
        gate.open.set()
        stopping.join(20)
        other.stop()
    assert hasty.now(lease).event(EventType.START).status is EventStatus.DONE
    assert len(hasty.pool(lease.reservations[0].id)) == 1


def test_a_manager_that_is_asked_to_end_while_it_hands_out_work_fails_at_nothing(hasty, caplog):
    hasty.lease(end=hasty.clock.now().replace(second=0, microsecond=0) + timedelta(hours=1))
    looked, go_on = threading.Event(), threading.Event()

    def hold_up(*_: object) -> bool:
        looked.set()
        return not go_on.wait(20)

    hasty.store = Flaky(hasty.store)
    hasty.store.failures["events.due"] = hold_up
    engine = hasty.another_manager().engine
    engine.start()
    stopping = threading.Thread(target=engine.stop)
    try:
        assert looked.wait(20)
        stopping.start()
        time.sleep(0.1)
    finally:
        go_on.set()
        stopping.join(20)
    assert "failed" not in caplog.text


def test_a_manager_that_is_asked_to_end_begins_nothing_new_while_a_look_is_under_way(hasty):
    looking, go_on = threading.Event(), threading.Event()

    def hold_up(name: str, phase: str) -> None:
        if threading.current_thread().name == "monitor":
            looking.set()
            go_on.wait(60)

    hasty.faults.on_call = hold_up
    hasty.manager.start()
    stopping = threading.Thread(target=hasty.manager.stop)
    try:
        assert looking.wait(20)
        stopping.start()
        until(lambda: "engine" not in {thread.name for thread in threading.enumerate()})
        lease = hasty.lease(end=hasty.clock.now().replace(second=0, microsecond=0) + timedelta(hours=1))
    finally:
        go_on.set()
        stopping.join(20)
    assert hasty.now(lease).status is LeaseStatus.PENDING


@pytest.mark.slow
def test_work_whose_last_write_failed_is_taken_up_again_while_other_work_goes_on(hasty):
    end = hasty.clock.now().replace(second=0, microsecond=0) + timedelta(hours=1)
    slow, failing = hasty.lease(a_host(), end=end), hasty.lease(instances(1, affinity=None), end=end)
    hasty.store = Flaky(hasty.store)
    manager = hasty.another_manager()
    hasty.store.failures["leases.save"] = lambda before, after, *_: (
        before.id == failing.id and after.status is LeaseStatus.ACTIVE
    )

    def hold_up_hosts(name: str, phase: str) -> None:
        # What is slow is the lease on whole hosts: it alone leaves its zone.
        if name == "remove_host":
            held.wait(20)

    held = threading.Event()
    hasty.faults.on_call = hold_up_hosts
    manager.start()
    try:
        until(lambda: "leases.save" not in hasty.store.failures)
        until(lambda: hasty.now(failing).status is LeaseStatus.ACTIVE)
        assert hasty.now(slow).status is LeaseStatus.STARTING
        held.set()
        until(lambda: hasty.now(slow).status is LeaseStatus.ACTIVE)
    finally:
        held.set()
        manager.stop()
