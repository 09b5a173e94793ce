# SPDX-License-Identifier: Apache-2.0
"""A manager stands still at calls to the cloud of everything it does, while others take over and go on.

Of all points every second one is taken; ``BLAZAR_FENCE_EVERY=1`` takes all.
``tests/fencing/`` tells the stories. ``tests/manager/events/test_fencing.py`` has the points that once went wrong.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest

from blazar.model.base.clock import SystemClock
from blazar.model.base.moments import NOW
from blazar.model.leases.states import EventStatus, LeaseStatus
from tests.fencing.stage import HASTY, OFFERED, Template, Turn, staged, template, until
from tests.fencing.stories import HOOKED, ROOMS, STORIES
from tests.fencing.telling import calls_of, walk

pytestmark = pytest.mark.slow

EVERY = int(os.environ.get("BLAZAR_FENCE_EVERY", "2"))

TURNS = [(name, turn) for name, story in STORIES.items() for turn in story.turns]
ALONE = ("addresses", "volumes", *HOOKED)
"""Types that share their resources with no other type."""
SPARSE = ("flavors", "servers", "stacks", "volumes", "best effort")
"""Types for whose stories fewer points do: they go the way of instances, or make many calls of one kind."""
CROSSING = [
    (name, turn) for name, turn in TURNS if turn is not Turn.TAKEN_OVER and not name.startswith((*ALONE, "servers"))
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Template]:
    made = template(tmp_path_factory.mktemp("stage"))
    yield made
    made.engine.dispose()


@pytest.mark.share(3)
@pytest.mark.parametrize(("name", "turn"), TURNS, ids=str)
def test_a_manager_that_stood_still_touches_no_other_lease_and_leaves_nothing_behind(made, name, turn):
    told, wrong = walk(STORIES[name], made, turn, every=EVERY * (3 if name.startswith(SPARSE) else 1))
    assert not wrong, f"{len(wrong)} of {told} points:\n" + "\n".join(wrong)


@pytest.mark.share(3)
@pytest.mark.parametrize(("name", "turn"), CROSSING, ids=str)
def test_nor_where_the_next_lease_on_the_host_is_of_another_type(made, name, turn):
    told, wrong = walk(STORIES[name], made, turn, cross=True, every=5 * EVERY)
    assert not wrong, f"{len(wrong)} of {told} points:\n" + "\n".join(wrong)


@pytest.mark.share(3)
@pytest.mark.parametrize(("name", "turn"), TURNS, ids=str)
def test_nor_does_a_manager_that_lost_the_database_while_the_cloud_answers(made, name, turn):
    told, wrong = walk(STORIES[name], made, turn, away=True, every=5 * EVERY)
    assert not wrong, f"{len(wrong)} of {told} points:\n" + "\n".join(wrong)


@pytest.mark.share(3)
@pytest.mark.parametrize("kind", ROOMS)
@pytest.mark.parametrize(("event", "status"), [("start", LeaseStatus.ACTIVE), ("end", LeaseStatus.TERMINATED)])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_manager_that_is_asked_to_end_during_a_slow_call_finishes_alone(a_world, kind, event, status, number):
    world = a_world(settings=HASTY, clock=SystemClock())
    world.register_addresses(10, 11)
    world.register_segments(101)
    world.register_pools(1)
    world.simulated.operators.offer_flavor(OFFERED[0])
    for name in ("microscope-1", "microscope-2", "microscope-3"):
        world.register_thing(name)
    for name in ("edge-1", "edge-2", "edge-3"):
        world.register_device(name)
    # One of these takes a single call, and those of one reservation are made side by side.
    rooms = [ROOMS[kind]()] * (3 if kind in HOOKED else 1)
    lease = world.lease(*rooms, end=world.clock.now().replace(second=0, microsecond=0) + timedelta(hours=1))
    if event == "end":
        # Some are complete at a second look only.
        until(lambda: world.run() or world.now(lease).status is LeaseStatus.ACTIVE)
        world.change(lease, end=NOW)
    other = world.another_manager()
    calls: list[str] = []
    at_it, go_on = threading.Event(), threading.Event()

    def slow(name: str, phase: str) -> None:
        # Others than those who work on events only look.
        if phase == "before" and threading.current_thread().name.startswith(("start", "end")):
            calls.append(name)
            if len(calls) == number:
                at_it.set()
                assert go_on.wait(20)

    world.faults.on_call = slow
    world.manager.start()
    stopping = threading.Thread(target=world.manager.stop)
    try:
        assert at_it.wait(20)
        stopping.start()
        other.start()
        # Longer than a claim lasts that nobody renews.
        time.sleep(1.6)
        assert len(calls) == number, f"another manager works on the same event: {calls[number:]}"
        go_on.set()
        until(lambda: world.now(lease).status is status)
    finally:
        go_on.set()
        stopping.join(20)
        other.stop()
    assert all(e.status is not EventStatus.IN_PROGRESS for e in world.now(lease).events)


def test_there_are_more_than_a_thousand_such_points(made):
    mine = [(name, turn) for name, turn in TURNS if not name.startswith(SPARSE)]
    assert sum(2 * len(calls_of(STORIES[name], staged(made), turn)) for name, turn in mine) >= 1000
