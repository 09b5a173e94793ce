# SPDX-License-Identifier: Apache-2.0
"""Threads of one manager book beside each other: nobody waits for the write of another one, but for want of else."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta

import pytest

from blazar.manager.common.settings import Settings
from blazar.model.base.errors import NotEnoughResources, StaleCalendar, UsageDenied
from blazar.model.leases.limits import Bounds
from blazar.model.leases.states import LeaseStatus
from blazar.store.booking.bookings import BookingStore
from tests.fencing.stage import until
from tests.manager.regions.world import TwoRegions
from tests.promises import check_promises
from tests.world import NOON, World, a_host, instances

HOUR = timedelta(hours=1)
DAY = NOON + 24 * HOUR
PATIENCE = 30


class Gate:
    """Holds back the commits of new leases until it is opened, and counts those that have come to it."""

    def __init__(self, monkeypatch, *, fails=0) -> None:
        self.come, self._failures = 0, fails
        self._opened = threading.Event()
        self._lock = threading.Lock()
        commit = BookingStore.commit

        def hold(store, wanted, **more):
            if wanted.new and not self._opened.is_set():
                with self._lock:
                    self.come += 1
                    fails = self.come <= self._failures
                assert self._opened.wait(PATIENCE)
                if fails:
                    raise StaleCalendar("a resource was booked by another request in the meantime")
            return commit(store, wanted, **more)

        monkeypatch.setattr(BookingStore, "commit", hold)

    def open(self) -> None:
        self._opened.set()

    def wait_for(self, count: int) -> None:
        until(lambda: self.come == count)


@pytest.fixture
def world(engine) -> World:
    return World(engine)


@contextmanager
def threads(gate: Gate):
    """Run the block, and end its threads whatever happens."""
    with ThreadPoolExecutor(8) as pool:
        try:
            yield pool
        finally:
            gate.open()


def book(world: World, *wanted):
    """Book a host, or something else, for always the same time."""
    return world.lease(*(wanted or (a_host(),)), start=DAY, end=DAY + 2 * HOUR)


def is_waiting(future: Future) -> bool:
    """Tell whether a booking is still waiting after others have had the time to come to the gate."""
    with pytest.raises(TimeoutError):
        future.result(timeout=0.3)
    return True


def held(world: World, *leases) -> list[int]:
    ids = [lease.id for lease in leases]
    return [a.resource_id for mine in world.store.bookings.load_allocations(ids).values() for a in mine]


def test_leases_of_whole_hosts_are_written_at_the_same_time(world, monkeypatch):
    gate = Gate(monkeypatch)
    with threads(gate) as pool:
        made = [pool.submit(book, world) for _ in range(3)]
        gate.wait_for(3)
        gate.open()
        leases = [future.result(PATIENCE) for future in made]
    assert len(set(held(world, *leases))) == 3
    check_promises(world.store, since=NOON)


def test_who_finds_nothing_else_waits_for_the_writes_and_is_refused_what_they_took(world, monkeypatch):
    gate = Gate(monkeypatch)
    with threads(gate) as pool:
        made = [pool.submit(book, world) for _ in range(3)]
        gate.wait_for(3)
        last = pool.submit(book, world)
        assert is_waiting(last)
        gate.open()
        assert len({future.result(PATIENCE).id for future in made}) == 3
        with pytest.raises(NotEnoughResources, match="0 of them free"):
            last.result(PATIENCE)


def test_who_finds_nothing_else_gets_what_a_write_that_failed_leaves(world, monkeypatch):
    gate = Gate(monkeypatch, fails=1)
    with threads(gate) as pool:
        made = [pool.submit(book, world, a_host(1, 1)) for _ in range(3)]
        gate.wait_for(3)
        last = pool.submit(book, world)
        assert is_waiting(last)
        gate.open()
        outcomes = [future.exception(PATIENCE) for future in (*made, last)]
    refused = [error for error in outcomes if error is not None]
    # Which of the two gets the third host, the one that has lost it or the one that has waited, chance decides.
    assert [type(error) for error in refused] == [NotEnoughResources]
    check_promises(world.store, since=NOON)


@pytest.mark.parametrize("others", [instances(1), a_host(2, 2)], ids=["a part of a host", "more than is left"])
def test_what_cannot_be_placed_beside_a_write_waits_for_it(world, monkeypatch, others):
    gate = Gate(monkeypatch)
    with threads(gate) as pool:
        first = [pool.submit(book, world) for _ in range(2)]
        gate.wait_for(2)
        second = pool.submit(book, world, others)
        assert is_waiting(second)
        assert gate.come == 2
        gate.open()
        assert all(future.result(PATIENCE) for future in first)
        if others.resource_type == "physical:host":
            assert isinstance(second.exception(PATIENCE), NotEnoughResources)
        else:
            assert second.result(PATIENCE)
    check_promises(world.store, since=NOON)


def test_who_may_get_more_once_others_are_written_for_another_time_waits_for_it(world, monkeypatch):
    gate = Gate(monkeypatch)
    with threads(gate) as pool:
        first = pool.submit(book, world)
        gate.wait_for(1)
        later = pool.submit(world.lease, a_host(1, 3), start=DAY + 24 * HOUR)
        assert is_waiting(later)
        gate.open()
        assert first.result(PATIENCE)
        assert len(held(world, later.result(PATIENCE))) == 3
    check_promises(world.store, since=NOON)


def test_where_somebody_waits_who_may_have_only_what_is_being_written_waits_for_that(engine, monkeypatch):
    world = World(engine, settings=Settings(booking_attempts=2))
    world.lease(a_host(3))
    waits = world.lease(a_host(3), wait=12 * HOUR)
    assert waits.status is LeaseStatus.WAITING
    gate = Gate(monkeypatch)
    with threads(gate) as pool:
        first = pool.submit(book, world)
        gate.wait_for(1)
        second = pool.submit(book, world)
        assert is_waiting(second)
        gate.open()
        assert len(set(held(world, first.result(PATIENCE), second.result(PATIENCE)))) == 2
    check_promises(world.store, since=NOON)


def test_a_region_that_has_enough_is_not_passed_over_for_what_is_being_written_for_another_time(engine, monkeypatch):
    world = TwoRegions(engine)
    gate = Gate(monkeypatch)
    with threads(gate) as pool:
        first = pool.submit(book, world)
        gate.wait_for(1)
        both = pool.submit(world.lease, a_host(2), start=DAY + 24 * HOUR)
        assert is_waiting(both)
        gate.open()
        assert first.result(PATIENCE)
        assert world.regions_of(both.result(PATIENCE)) == ["R1", "R1"]


def test_a_change_waits_for_what_is_being_written_and_new_leases_for_it(world, monkeypatch):
    lease = world.lease(a_host(), start=DAY, end=DAY + HOUR)
    gate = Gate(monkeypatch)
    with threads(gate) as pool:
        first = pool.submit(book, world)
        gate.wait_for(1)
        change = pool.submit(world.change, lease, end=DAY + 2 * HOUR)
        assert is_waiting(change)
        second = pool.submit(book, world)
        assert is_waiting(second)
        assert gate.come == 1
        gate.open()
        assert change.result(PATIENCE).window.end == DAY + 2 * HOUR
        assert first.result(PATIENCE)
        assert second.result(PATIENCE)
    check_promises(world.store, since=NOON)


def test_leases_of_a_bounded_project_are_written_one_after_the_other(engine, monkeypatch):
    world = World(engine, settings=Settings(bounds=Bounds(leases=1)))
    gate = Gate(monkeypatch)
    with threads(gate) as pool:
        first = pool.submit(book, world)
        gate.wait_for(1)
        second = pool.submit(book, world)
        assert is_waiting(second)
        assert gate.come == 1
        gate.open()
        outcomes = [first.exception(PATIENCE), second.exception(PATIENCE)]
    assert outcomes[0] is None
    assert isinstance(outcomes[1], UsageDenied)


def test_many_threads_get_all_hosts_and_none_twice(engine):
    world = World(engine, hosts=12)

    def attempt(_: int) -> bool:
        try:
            return bool(book(world))
        except NotEnoughResources:
            return False

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(16))) == 12
    check_promises(world.store, since=NOON)
