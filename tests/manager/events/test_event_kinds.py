# SPDX-License-Identifier: Apache-2.0
"""An event type is a row: what the rows say is read from there everywhere, for each type that there is."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from blazar.manager.leases import lifecycle
from blazar.manager.leases.timetable import new_timetable
from blazar.manager.surgery.parts import divide_by_units
from blazar.model.base.errors import CloudRefused, Contention
from blazar.model.base.window import Window
from blazar.model.leases.lease import Event, Lease
from blazar.model.leases.requests import LeaseRequest
from blazar.model.leases.states import EVENT_KINDS, EventKind, EventStatus, EventType, LeaseStatus
from tests.world import NOON, World, a_host

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
EACH_TYPE = pytest.mark.parametrize("kind", EVENT_KINDS.values(), ids=EVENT_KINDS)


def in_use(kind: EventKind, lease: Lease) -> tuple[Lease, Event]:
    """Return a lease in use, and an event of it that nobody has worked on yet."""
    event = lifecycle.new_event(kind.type, NOON, NOON, due_at=NOON, known=lease.event(kind.type))
    return lifecycle.with_event(lease, event), event


def claimed(kind: EventKind, lease: Lease) -> Lease:
    """Return a lease while a manager works on an event of it; whatever its status, it is the claim that counts."""
    before, event = in_use(kind, lease)
    taken = replace(event, status=EventStatus.IN_PROGRESS, claimed_by="another", claimed_at=NOON, due_at=NOON + HOUR)
    return lifecycle.with_event(before, taken)


@pytest.fixture
def lease() -> Lease:
    window = Window(NOON - HOUR, NOON + SECOND)
    start, *others = new_timetable(window, None, NOON - HOUR)
    events = (lifecycle.finish(start, NOON - HOUR), *others)
    return lifecycle.arm(Lease("l", "n", "u", "p", window, LeaseStatus.ACTIVE, NOON - HOUR, events=events), now=NOON)


def test_each_type_has_a_row_and_one_of_what_a_manager_does(world: World):
    # That nobody works on: the write that finds an immediate lease late, or one not confirmed, gives it up.
    without = {EventType.IMMEDIATE_BY, EventType.CONFIRM_BY}
    assert {*map(EventType, EVENT_KINDS)} == set(EventType) == {*world.manager.engine.worker.handlers} | without


@EACH_TYPE
def test_the_end_waits_for_the_claim_on_any_event_but_for_no_look(kind, lease):
    if kind.type is EventType.END:
        return
    at, at_work = NOON + SECOND, claimed(kind, lease)
    waits = lifecycle.Defer(at + SECOND, f"{kind.type} is being worked on")
    decision = lifecycle.decide(at_work, at_work.event(EventType.END), at, recheck_interval=SECOND)
    assert decision == (lifecycle.Run() if kind.is_check else waits)


@EACH_TYPE
def test_a_change_waits_for_the_claim_on_any_event_but_for_no_look(kind, world: World):
    lease = world.lease(a_host())
    world.run()
    before = world.now(lease)
    world.store.leases.save(before, claimed(kind, before), at=NOON)
    end = before.window.end + HOUR
    if kind.is_check:
        assert world.change(lease, end=end).window.end == end
    else:
        with pytest.raises(Contention, match=f"^lease {lease.id} is being worked on at the moment; please retry$"):
            world.change(lease, end=end)


@EACH_TYPE
def test_a_claim_changes_the_lease_unless_its_holder_only_looks(kind, lease):
    before, event = in_use(kind, replace(lease, updated_at=NOON - HOUR))
    begins = {EventType.START: LeaseStatus.PENDING, EventType.CREATE: LeaseStatus.CREATING}
    before = replace(before, status=begins.get(kind.type, before.status))
    after = lifecycle.claim(before, event, token="t", now=NOON, until=NOON + HOUR)
    assert after.status is (kind.status or before.status)
    assert after.updated_at == (before.updated_at if kind.is_check else NOON)


@EACH_TYPE
def test_a_split_copies_the_timetable_and_looks(kind, lease):
    before, event = in_use(kind, lease)
    ids = map(str, itertools.count())
    parts = divide_by_units(before, (), (), {}, name="second", new_id=lambda: next(ids), now=NOON)
    copied = [each for each in parts.second.events if each.event_type == event.event_type]
    assert len(copied) == (not kind.hidden or kind.is_check)


def _works(world: World) -> None:
    world.lease(a_host())
    world.run()


def _fails(world: World) -> None:
    world.lease(a_host())
    world.faults.fail_before("add_host", CloudRefused("no"), times=99)
    world.run()


def _has_nothing_to_do(world: World) -> None:
    world.manager.leases.create(LeaseRequest("empty", "curie", "physics", NOON + HOUR, NOON + 2 * HOUR))
    world.run_to(NOON + HOUR)


def _comes_too_late(world: World) -> None:
    world.lease(a_host(), start=HOUR)
    world.clock.to(NOON + 9 * HOUR)
    world.run()


@pytest.mark.parametrize(
    ("start", "status"),
    [
        (_works, LeaseStatus.ACTIVE),
        (_fails, LeaseStatus.ERROR),
        (_has_nothing_to_do, LeaseStatus.ACTIVE),
        (_comes_too_late, LeaseStatus.ERROR),
    ],
)
def test_what_follows_a_start_follows_each(start: Callable[[World], None], status, world: World):
    """Whichever type says in its row that it does."""
    found = []

    def follow(lease: Lease, now: datetime) -> Lease:
        found.append((lease.status, now))
        return lease

    worker = world.manager.engine.worker
    worker.handlers = {type_: replace(handler, after_start=follow) for type_, handler in worker.handlers.items()}
    start(world)
    assert found == [(status, world.clock.now())] * len(worker.handlers)
