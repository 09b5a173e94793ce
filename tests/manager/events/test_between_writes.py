# SPDX-License-Identifier: Apache-2.0
"""A manager that dies, or stands still, before or after any operation on the database, while another goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta

import pytest
from sqlalchemy.engine import Engine

from blazar.enforcement import Occasion
from blazar.manager.leases import lifecycle
from blazar.model.base.errors import BlazarError
from blazar.model.leases.states import LeaseStatus
from tests.manager.booking.test_commitments import Strict
from tests.manager.events.test_crashes import nothing_is_left
from tests.observed import Killed, ObservedStore
from tests.tables import new_sqlite
from tests.world import NOON, World, a_host, instances

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
PAUSE = timedelta(seconds=45)


class Between(ObservedStore):
    """The store as one manager sees it; ``act`` is called before and after the so-manieth operation."""

    def __init__(self, store, step: int, phase: str, act) -> None:
        super().__init__(store, self._call)
        self._left = step
        self._phase = phase
        self._post_action = act
        self.reached = False

    def _call(self, name, operation, *args, **more):
        if name in ("claims.renew_claims", "calendar.view_window"):
            return operation(*args, **more)
        self._left -= 1
        mine = self._left == 0
        if mine:
            self.reached = True
            if self._phase == "before":
                self._post_action()
        result = operation(*args, **more)
        if mine and self._phase == "after":
            self._post_action()
        return result


class Credits(Strict):
    """Says who has a credit: what was granted, and has not ended."""

    @property
    def held(self):
        held = {}
        for notification in self.told:
            if notification.occasion is Occasion.ENDED:
                held.pop(notification.view.lease.id, None)
            else:
                held[notification.view.lease.id] = (notification.view.window.end, notification.view.hosts)
        return held


def pending(world):
    return world.lease(a_host(), start=HOUR, hours=3)


def active(world):
    lease = pending(world)
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    return lease


OPERATIONS = {
    "create": (lambda world: None, lambda world, lease: world.lease(a_host(), instances(), start=HOUR)),
    "prolong": (active, lambda world, lease: world.change(lease, end=NOON + 9 * HOUR)),
    "grow": (active, lambda world, lease: world.resize(lease, min=2, max=2)),
    "resize": (
        lambda world: world.lease(instances(2), start=HOUR, hours=3),
        lambda world, lease: world.resize(lease, vcpus=4, affinity=True),
    ),
    "start": (pending, lambda world, lease: (world.clock.to(NOON + HOUR), world.manager.engine.run_due())),
    "end": (active, lambda world, lease: (world.clock.to(NOON + 4 * HOUR), world.manager.engine.run_due())),
    "delete": (active, lambda world, lease: world.manager.leases.delete(lease.id)),
}
DIES, STANDS_STILL, DELETED = TURNS = ("dies", "stands still", "stands still, and the lease is deleted")
FAST = {("create", DIES, "after")}


def failing(world: World, survivor, operation: str, turn: str, between: Callable[..., Between]) -> bool:
    """Do something with a manager that fails in between, if it comes so far; tell whether it did."""
    prepare, act = OPERATIONS[operation]
    lease = prepare(world)
    store = world.store

    def happen():
        if turn == DIES:
            raise Killed
        if turn == DELETED:
            for found in store.leases.of_project(None):
                with suppress(BlazarError):
                    survivor.leases.delete(found.id)
        world.clock.by(seconds=PAUSE.total_seconds())
        survivor.engine.run_due()
        survivor.outbox.run_due()

    seen = between(store, happen)
    sound, world.manager = world.manager, world.another_manager(store=seen)
    with suppress(BlazarError, Killed):
        act(world, lease)
    world.manager = sound
    return seen.reached


@pytest.fixture
def fresh(tmp_path) -> Iterator[Callable[[int], Engine]]:
    """Make databases with tables."""
    made = []

    def make(number: int) -> Engine:
        made.append(new_sqlite(tmp_path / f"{number}.sqlite"))
        return made[-1]

    yield make
    for engine in made:
        engine.dispose()


CASES = [
    pytest.param(operation, turn, phase, marks=() if (operation, turn, phase) in FAST else pytest.mark.slow)
    for operation in OPERATIONS
    for turn in TURNS
    for phase in ("before", "after")
]


def check(world: World, survivor, books: Credits) -> None:
    for _ in range(5):
        world.clock.by(seconds=65)
        survivor.engine.run_due()
        survivor.outbox.run_due()
    leases = world.store.leases.of_project(None)
    assert {lease.status for lease in leases} <= lifecycle.STABLE
    assert books.held == {
        lease.id: (lease.window.end, sum(a.per_instance is None for a in world.store.calendar.of_lease(lease.id)))
        for lease in leases
        if lease.status is not LeaseStatus.TERMINATED
    }
    survivor.sweep.run_once()
    world.run()
    for lease in leases:
        world.run_to(lease.window.end + MINUTE)
        assert world.now(lease).status is LeaseStatus.TERMINATED
    nothing_is_left(world)
    assert books.held == {}


@pytest.mark.share(3)
@pytest.mark.parametrize(("operation", "turn", "phase"), CASES)
def test_whenever_a_manager_fails_leases_settle_books_agree_and_nothing_is_left(fresh, operation, turn, phase):
    for step in range(1, 100):
        books = Credits()
        world = World(fresh(step), filters=[books])
        survivor = world.another_manager()

        def between(store, happen, step=step):
            return Between(store, step, phase, happen)

        reached = failing(world, survivor, operation, turn, between)
        try:
            check(world, survivor, books)
        except AssertionError as error:
            raise AssertionError(f"{phase} operation {step}") from error
        if not reached:
            assert step > 3
            return
    pytest.fail("there is no end to it")
