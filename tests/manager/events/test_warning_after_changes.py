# SPDX-License-Identifier: Apache-2.0
"""When a lease is warned of its end after its dates have changed, in each way in which they can.

A warning keeps its distance to the end. One that the start had cut off is at the operator's distance again, an hour,
as soon as there is room for it.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.model.base.window import Window
from blazar.model.leases.lease import Lease, move_warning
from blazar.model.leases.requests import Actor
from blazar.model.leases.states import EventStatus, EventType, LeaseKind
from blazar.model.series.changes import SeriesChange
from blazar.model.surgery import MergeRequest, SplitRequest, Terms
from tests.world import NOON, PROJECT, World, a_host, a_series

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
TERMS = Terms(Actor("curie", PROJECT))


@pytest.fixture
def world(a_world) -> World:
    world = a_world(hosts=3)
    world.waits = True
    return world


def warned(world: World, lease: Lease | str) -> timedelta:
    """Return how long before its end a lease is warned of it."""
    found = world.now_of(lease if isinstance(lease, str) else lease.id)
    event = found.event(EventType.BEFORE_END)
    assert event is not None
    assert event.time is not None
    assert event.due_at is not None or event.status is not EventStatus.UNDONE
    return found.window.end - event.time


ON_NODE_1 = '["==", "$hypervisor_hostname", "node-1"]'


def to_end(world: World, lease: Lease, after: timedelta) -> Lease:
    return world.change(lease, end=world.now(lease).window.start + after)


@pytest.mark.parametrize("start", [DAY, timedelta(0)], ids=["pending", "active"])
def test_a_warning_that_was_cut_off_is_at_the_usual_distance_again(world, start):
    lease = world.lease(start=start, hours=2)
    world.run()
    assert warned(world, lease) == HOUR
    for after, distance in [(20 * MINUTE, 20 * MINUTE), (2 * HOUR, HOUR), (7 * DAY, HOUR), (HOUR, HOUR), (DAY, HOUR)]:
        to_end(world, lease, after)
        assert warned(world, lease) == distance
        world.run()


@pytest.mark.parametrize("start", [HOUR, timedelta(0)], ids=["pending", "active"])
def test_what_was_asked_for_stays_as_long_as_there_is_room(world, start):
    lease = world.lease(start=start, hours=96, before_end=NOON + start + 72 * HOUR)
    world.run()
    assert warned(world, lease) == DAY
    to_end(world, lease, 5 * DAY)
    assert warned(world, lease) == DAY
    to_end(world, lease, 3 * HOUR)
    assert warned(world, lease) == 3 * HOUR
    to_end(world, lease, 4 * DAY)
    assert warned(world, lease) == HOUR


def test_a_lease_that_was_too_short_from_the_beginning_is_warned_when_it_is_prolonged(world):
    lease = world.lease(hours=0.25)
    world.run_to(NOON + MINUTE)
    assert warned(world, lease) == 15 * MINUTE
    to_end(world, lease, 3 * HOUR)
    assert warned(world, lease) == HOUR
    world.run_to(NOON + 2 * HOUR)
    assert world.notifier.types.count("lease.event.before_end_lease") == 2


def test_asking_for_the_usual_time_in_a_short_lease_gets_it_later(world):
    lease = world.lease(start=DAY, hours=0.25)
    world.change(lease, resets_before_end=True)
    assert warned(world, lease) == 15 * MINUTE - timedelta(seconds=1)
    to_end(world, lease, 3 * HOUR)
    assert warned(world, lease) == HOUR


def test_a_lease_that_begins_earlier_has_room_for_its_warning(world):
    lease = world.lease(start=DAY, hours=0.5)
    world.change(lease, start=NOON + DAY - 2 * HOUR)
    assert warned(world, lease) == HOUR


def test_a_new_name_moves_no_warning(world):
    lease = world.lease(start=DAY, hours=0.5)
    world.change(lease, name="b")
    assert warned(world, lease) == HOUR / 2


def test_a_lease_that_is_prolonged_by_itself_is_warned_at_the_usual_time(world):
    lease = world.lease(hours=0.5, extend=NOON + DAY)
    world.run()
    world.run_to(NOON + 25 * MINUTE)
    assert world.manager.prolongation.run_once() == 1
    assert warned(world, lease) == HOUR


def test_both_parts_of_a_lease_that_is_split_are_warned(world):
    lease = world.lease(start=DAY, hours=4, before_end=NOON + DAY + HOUR)
    to_end(world, lease, 2 * HOUR)
    assert warned(world, lease) == 2 * HOUR
    parts = world.manager.surgery.split(lease.id, SplitRequest(at=NOON + DAY + 90 * MINUTE), TERMS)
    assert [warned(world, each.lease) for each in parts.leases] == [HOUR, HOUR / 2]


def test_leases_that_become_one_are_warned_at_the_usual_time(world):
    first = world.lease(a_host(needs=ON_NODE_1), start=DAY, hours=0.5)
    second = world.lease(a_host(needs=ON_NODE_1), start=DAY + HOUR / 2, hours=3)
    world.manager.surgery.merge(first.id, MergeRequest(second.id), TERMS)
    assert world.now(first).window.duration == 3.5 * HOUR
    assert warned(world, first) == HOUR


def test_each_lease_of_a_series_that_gets_longer_is_warned_at_the_usual_time(world):
    made = world.manager.series.create(a_series(length=HOUR / 2))
    ids = [each.lease_id for each in made.occurrences]
    assert {warned(world, each) for each in ids} == {HOUR / 2}
    world.manager.series.change(made.series.id, SeriesChange(length=3 * HOUR))
    assert {warned(world, each) for each in ids} == {HOUR}


def test_one_whose_turn_came_for_less_and_in_vain_waits_with_the_usual_warning(world):
    world.lease(a_host(3), start=timedelta(0), hours=2, project="biology")
    asked = world.lease(hours=4, kind=LeaseKind.RETRIES, wait=2 * DAY, at_least=HOUR / 2)
    world.run_to(NOON + 3 * HOUR)
    assert warned(world, asked) == HOUR


WARNINGS: tuple[tuple[timedelta, timedelta, timedelta, timedelta], ...] = (
    (2 * HOUR, HOUR, 4 * HOUR, HOUR),
    (2 * HOUR, 2 * HOUR, 4 * HOUR, HOUR),
    (2 * HOUR, 2 * HOUR, HOUR / 2, HOUR / 2),
    (2 * HOUR, HOUR / 4, 4 * HOUR, HOUR / 4),
    (HOUR / 2, HOUR / 2, HOUR / 4, HOUR / 4),
    (15 * 365 * DAY, HOUR, HOUR, HOUR),
    (2 * HOUR, timedelta(0), 4 * HOUR, timedelta(0)),
)


@pytest.mark.parametrize(("length", "distance", "after", "expected"), WARNINGS)
def test_a_warning_is_moved_with_the_end(length, distance, after, expected):
    before = Window(NOON, NOON + length)
    for start in (NOON - DAY, NOON, NOON + DAY):
        window = Window(start, start + after)
        assert window.end - move_warning(before.end - distance, before, window, HOUR) == expected
    assert move_warning(before.end - distance, before, before, HOUR) == before.end - distance


def test_without_a_usual_time_a_warning_keeps_the_distance_that_it_has():
    before, after = Window(NOON, NOON + HOUR), Window(NOON, NOON + DAY)
    assert move_warning(NOON, before, after, timedelta(0)) == after.end - HOUR
