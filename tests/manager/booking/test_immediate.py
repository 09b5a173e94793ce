# SPDX-License-Identifier: Apache-2.0
"""Immediate leases: handed over within the limit, or refused, and then nothing of them is left."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest

from blazar.manager.leases import lifecycle
from blazar.model.base.errors import CloudRefused, Conflict, InvalidInput, NotEnoughResources
from blazar.model.leases.details import ImmediateVerdict
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import EndReason, EventStatus, EventType, LeaseKind, LeaseStatus
from tests.manager.events.test_crashes import dies, nothing_is_left
from tests.observed import Killed, ObservedStore
from tests.world import NOON, World, a_host, instances

HOUR = timedelta(hours=1)
LIMIT = timedelta(seconds=45)
DEAD = timedelta(minutes=2)
"""By then others have taken over, and all that is due is done."""


def now(world: World, *reservations) -> Lease:
    return world.lease(*reservations, kind=LeaseKind.IMMEDIATE)


def mixed(world: World) -> Lease:
    return now(world, a_host(), instances(2, affinity=False, vcpus=1))


def boot_on_all(world: World) -> None:
    """Let a server that belongs to nobody be in the way on each host."""
    for number in (1, 2, 3):
        world.simulated.users.boot_server("in-the-way", project_id="p", user_id="u", host=f"node-{number}")


def verdict(world: World, lease: Lease) -> ImmediateVerdict:
    return world.manager.leases.verdict(lease.id)


def is_refused(world: World, lease: Lease) -> None:
    """It is refused, and has left nothing: on the calendar, in the cloud, or to be done."""
    kept = world.now(lease)
    assert (kept.deleted_at is not None, kept.end_reason) == (True, EndReason.REFUSED)
    assert verdict(world, lease) is ImmediateVerdict.GONE
    assert world.store.calendar.of_lease(lease.id) == ()
    assert [event.due_at for event in kept.events if event.due_at] == []
    assert world.store.events.next_due() is None
    nothing_is_left(world)


def test_it_is_handed_over_at_once(world):
    lease = now(world)
    assert (lease.status, lease.kind, verdict(world, lease)) == (
        LeaseStatus.PENDING,
        LeaseKind.IMMEDIATE,
        ImmediateVerdict.WAITING,
    )
    world.run()
    assert (world.now(lease).status, verdict(world, lease)) == (LeaseStatus.ACTIVE, ImmediateVerdict.GRANTED)


def test_from_then_on_it_is_like_any_other(world):
    lease = now(world)
    world.run()
    world.run_to(NOON + LIMIT + HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    longer = world.change(lease, end=NOON + 3 * HOUR)
    assert longer.window.end == NOON + 3 * HOUR
    world.run_to(NOON + 3 * HOUR)
    ended = world.now(lease)
    assert (ended.status, ended.end_reason) == (LeaseStatus.TERMINATED, EndReason.ENDED)
    assert verdict(world, lease) is ImmediateVerdict.GRANTED


def test_if_something_is_not_free_nothing_is_booked(world):
    now(world, a_host(3))
    with pytest.raises(NotEnoughResources):
        now(world)
    assert len(world.manager.leases.all(None)) == 1


def test_a_start_that_fails_for_good_refuses_it_at_once(world):
    world.faults.fail_before("add_host", CloudRefused("no such host"))
    lease = now(world)
    world.run()
    kept = world.now(lease)
    start = kept.event(EventType.START)
    assert start is not None
    assert (start.status, "no such host" in str(start.reason)) == (EventStatus.ERROR, True)
    assert world.clock.now() == NOON
    is_refused(world, lease)


def test_one_reservation_of_several_that_fails_refuses_all(world):
    world.faults.fail_before("add_host", CloudRefused("no such host"))
    lease = mixed(world)
    world.run()
    is_refused(world, lease)


def test_what_is_not_ready_within_the_limit_is_refused(world):
    boot_on_all(world)
    lease = now(world, a_host(3))
    world.run_to(NOON + LIMIT - timedelta(seconds=1))
    assert verdict(world, lease) is ImmediateVerdict.WAITING
    world.run_to(NOON + LIMIT)
    start = world.now(lease).event(EventType.START)
    assert start is not None
    assert "belongs to no reservation" in str(start.reason)
    assert verdict(world, lease) is ImmediateVerdict.GONE
    assert world.store.calendar.of_lease(lease.id) == ()
    assert (world.store.events.next_due(), world.pool()) == (None, {"node-1", "node-2", "node-3"})


def test_it_is_refused_at_the_limit_also_while_a_manager_works_on_its_start(world):
    waits = []

    def pass_the_limit(name: str, when: str) -> None:
        if name == "add_host" and when == "before" and not waits:
            waits.append(name)
            world.clock.to(NOON + LIMIT)
            other = world.another_manager()
            other.engine.run_due()

    lease = now(world)
    world.faults.on_call = pass_the_limit
    world.run()
    world.faults.on_call = None
    assert world.now(lease).end_reason is EndReason.REFUSED
    world.run_to(NOON + DEAD)
    is_refused(world, lease)


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_manager_killed_at_any_step_of_the_start_it_is_handed_over_or_nothing_is_left(world, phase):
    for step in itertools.count(1):
        begin = world.clock.now()
        lease = mixed(world)
        died = dies(world, world.run, step, phase)
        world.run_to(begin + DEAD)
        if world.now(lease).status is LeaseStatus.ACTIVE:
            assert verdict(world, lease) is ImmediateVerdict.GRANTED, step
            world.manager.leases.delete(lease.id)
            world.run_to(world.clock.now() + DEAD)
            nothing_is_left(world)
        else:
            is_refused(world, lease)
        if not died:
            break
    assert step > 3


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("dies_in", ["create", "start", "refusal"])
def test_a_manager_killed_at_any_operation_on_the_database_leaves_it_decided(world, dies_in, after):
    for operation in itertools.count(1):
        left, begin = [operation], world.clock.now()

        def around(called, call, *arguments, left=left, **more):
            left[0] -= 1
            if not after and left[0] == 0:
                raise Killed
            result = call(*arguments, **more)
            if after and left[0] == 0:
                raise Killed
            return result

        dying = world.another_manager(store=ObservedStore(world.store, around))
        before = {each.id for each in world.manager.leases.all(None)}
        usual, died = world.manager, False
        try:
            if dies_in == "create":
                world.manager = dying
            now(world)
            if dies_in == "refusal":
                world.faults.fail_before("add_host", CloudRefused("no such host"))
            if dies_in != "create":
                dying.engine.run_due()
        except Killed:
            died = True
        world.manager = usual
        world.run_to(begin + DEAD)
        world.faults.clear()
        for lease in world.manager.leases.all(None):
            assert (lease.id in before, lease.status) == (False, LeaseStatus.ACTIVE)
            assert verdict(world, lease) is ImmediateVerdict.GRANTED
            assert dies_in != "refusal" or died
            world.manager.leases.delete(lease.id)
        world.run_to(world.clock.now() + DEAD)
        nothing_is_left(world)
        assert world.store.events.next_due() is None
        if not died:
            break
    assert operation > 3


def test_while_it_is_not_decided_it_cannot_be_changed_but_it_can_be_deleted(world):
    lease = now(world)
    with pytest.raises(Conflict) as refused:
        world.change(lease, end=NOON + 4 * HOUR)
    assert refused.value.code == "lease_busy"
    world.manager.leases.delete(lease.id)
    world.run()
    assert (world.now(lease).end_reason, verdict(world, lease)) == (EndReason.DELETED, ImmediateVerdict.GONE)
    nothing_is_left(world)


def test_a_lease_that_ended_before_it_could_start_is_refused(world):
    boot_on_all(world)
    lease = world.lease(a_host(3), kind=LeaseKind.IMMEDIATE, end=NOON + timedelta(seconds=20))
    world.run_to(NOON + DEAD)
    kept = world.now(lease)
    assert (kept.deleted_at is not None, kept.end_reason) == (True, EndReason.REFUSED)


def test_it_starts_now_and_at_no_other_time(world):
    for start in (timedelta(0), HOUR):
        with pytest.raises(InvalidInput) as refused:
            world.lease(a_host(), start=start, kind=LeaseKind.IMMEDIATE)
        assert refused.value.pointer == "/start_date"


def test_a_lease_that_is_deleted_or_that_ends_says_so(world):
    ended, deleted = world.lease(hours=1), world.lease()
    world.run()
    assert [world.now(each).end_reason for each in (ended, deleted)] == [None, None]
    world.manager.leases.delete(deleted.id)
    world.run_to(NOON + HOUR)
    assert [world.now(each).end_reason for each in (ended, deleted)] == [EndReason.ENDED, EndReason.DELETED]
    world.manager.leases.delete(ended.id)
    assert world.now(ended).end_reason is EndReason.ENDED


def test_a_refusal_waits_for_no_claim_and_is_dropped_once_the_lease_is_deleted(world):
    lease = now(world)
    full = world.now(lease)
    event = full.event(EventType.IMMEDIATE_BY)
    assert event is not None
    assert event.time == NOON + LIMIT
    late = NOON + LIMIT
    claimed = lifecycle.claim(full, full.events[0], token="t", now=late, until=late + HOUR)
    recheck = timedelta(seconds=1)
    assert lifecycle.decide(claimed, event, late, recheck_interval=recheck) == lifecycle.Run()
    gone = lifecycle.begin_deletion(claimed, now=late)
    assert lifecycle.decide(gone, event, late, recheck_interval=recheck) == lifecycle.Drop()
