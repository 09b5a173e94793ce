# SPDX-License-Identifier: Apache-2.0
"""Promised starts: a lease that waits is booked at one, which only becomes earlier."""

from __future__ import annotations

import random
import threading
from contextlib import suppress
from datetime import timedelta
from unittest.mock import patch

import pytest

from blazar.clouds.simulated import of_size
from blazar.enforcement import Question
from blazar.manager.changing.updates import Updates
from blazar.manager.common.settings import Settings
from blazar.model.base.clock import END_OF_TIME
from blazar.model.base.errors import CloudUnavailable, Conflict, InvalidInput, NotFound, OthersWait, UsageDenied
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus
from blazar.model.resources.resource import HOST
from blazar.observe import metrics
from blazar.observe.families import REGISTRY
from tests.manager.enforcement.recording import RecordingFilter
from tests.observed import Killed
from tests.promises import check_promises
from tests.world import NOON, World, a_host, instances

HOUR, MINUTE, DAY = timedelta(hours=1), timedelta(minutes=1), timedelta(days=1)
PROMISING = Settings(claim_ttl=timedelta(seconds=30), healing_interval=timedelta(0))


def a_world(engine, *, settings=PROMISING, **more) -> World:
    """Return a world all of whose three hosts are in use for two hours."""
    world = World(engine, settings=settings, **more)
    world.waits = True
    world.full = world.lease(a_host(3), project="biology")
    world.run()
    return world


@pytest.fixture
def world(sqlite) -> World:
    return a_world(sqlite)


def waits(world: World, *reservations, project="physics", wait=DAY, **more) -> Lease:
    """Have a lease wait; the next one comes a second later."""
    lease = world.lease(*reservations, project=project, wait=wait, **more)
    assert lease.status is LeaseStatus.WAITING
    world.clock.to(world.clock.now() + timedelta(seconds=1))
    return lease


def promised(world: World, *reservations, **more) -> Lease:
    lease = waits(world, *reservations, **more)
    world.run()
    found = world.now(lease)
    assert found.is_promised
    return found


def test_one_that_waits_is_booked_at_the_start_that_it_is_promised(world):
    lease = promised(world, a_host(2))
    assert (lease.status, lease.window.start) == (LeaseStatus.PENDING, NOON + 2 * HOUR)
    assert len(world.hosts_of(lease)) == 2
    assert world.notifier.types[-2:] == ["lease.create", "lease.promised"]
    world.run_to(NOON + 2 * HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert not world.now(lease).is_promised


def with_early_ends(engine, *, early: int, settings: Settings = PROMISING) -> World:
    """Return a full world of twenty hosts that has seen as many leases end, so many of them after half of their time.

    The leases that fill it last until 6 hours after noon; it is one hour after noon.
    """
    world = World(engine, settings=settings, hosts=20)
    world.waits = True
    past = [world.lease(a_host(), hours=1, project="biology") for _ in range(20)]
    world.run_to(NOON + 30 * MINUTE)
    for lease in past[:early]:
        world.manager.leases.delete(lease.id)
    world.run_to(NOON + HOUR)
    world.full = world.lease(a_host(20), hours=5, project="biology")
    world.run()
    return world


@pytest.mark.slow
def test_a_promised_start_is_probably_earlier_if_leases_of_late_have_ended_early(sqlite):
    world = with_early_ends(sqlite, early=2)
    first = promised(world, a_host(20), hours=1)
    assert first.window.start == NOON + 6 * HOUR
    assert first.wait.estimate == NOON + 5.5 * HOUR, "nine tenths of the five hours that it would wait"
    second = promised(world, a_host(2), project="chemistry")
    assert (second.window.start, second.wait.estimate) == (NOON + 7 * HOUR, NOON + 6 * HOUR + 24 * MINUTE)
    world.manager.leases.delete(first.id)
    world.run()
    second = world.now(second)
    assert (second.window.start, second.wait.estimate) == (NOON + 6 * HOUR, NOON + 5.5 * HOUR), "it has moved as well"


def test_a_lease_with_many_hosts_that_ended_early_is_one_lease(engine):
    world = a_world(engine, settings=PROMISING, hosts=30)
    large = world.lease(a_host(20), hours=1, project="biology")
    world.run()
    world.clock.to(NOON + 30 * MINUTE)
    world.manager.leases.delete(large.id)
    world.run()
    ((end, released_at),) = {
        (each.end, each.released_at)
        for each in world.store.waiting_list.load_booked_uses([HOST], NOON)
        if each.lease_id == large.id
    }
    assert (end, released_at) == (NOON + HOUR, NOON + 30 * MINUTE), "what was booked is charged in part"
    lease = promised(world, a_host(30))
    assert lease.wait.estimate == lease.window.start == NOON + 2 * HOUR


@pytest.mark.slow
def test_what_is_probable_of_a_lease_that_only_waits_is_told_as_well(sqlite):
    world = with_early_ends(sqlite, early=2, settings=Settings(claim_ttl=timedelta(seconds=30), promises=0))
    lease = waits(world, a_host(2))
    world.run()
    found = world.now(lease)
    assert found.status is LeaseStatus.WAITING
    assert found.wait.estimate == found.window.start == NOON + 5.5 * HOUR
    world.run_to(NOON + 5.75 * HOUR)
    waits(world, a_host(2), project="chemistry")
    world.run()
    assert world.now(lease).wait.estimate == NOON + 6 * HOUR, "nothing has ended early"


def test_nobody_else_gets_what_is_promised(world):
    promised(world, a_host(3))
    with pytest.raises(Conflict):
        world.lease(a_host(), project="chemistry", start=2 * HOUR)


def test_its_start_becomes_earlier_when_something_is_given_back(world):
    lease = promised(world, a_host(2), hours=3)
    assert lease.event(EventType.BEFORE_END).time == NOON + 4 * HOUR
    world.run_to(NOON + 30 * MINUTE)
    world.manager.leases.delete(world.full.id)
    world.run()
    found = world.now(lease)
    assert (found.status, found.window.start) == (LeaseStatus.ACTIVE, NOON + 30 * MINUTE)
    assert found.window.end - found.window.start == 3 * HOUR
    assert found.event(EventType.BEFORE_END).time == found.window.end - HOUR
    assert "lease.advanced" in world.notifier.types


def test_it_becomes_no_earlier_than_the_notice(sqlite):
    world = a_world(sqlite, settings=Settings(claim_ttl=timedelta(seconds=30), promise_notice=HOUR))
    lease = promised(world, a_host(2))
    world.manager.leases.delete(world.full.id)
    world.run()
    found = world.now(lease)
    assert (found.status, found.is_promised) == (LeaseStatus.PENDING, True)
    assert NOON + HOUR <= found.window.start <= NOON + HOUR + MINUTE
    world.run_to(NOON + 2 * HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE


def test_it_becomes_no_earlier_than_was_asked_for(world):
    world.lease(a_host(3), project="biology", start=6 * HOUR, hours=2)
    lease = promised(world, a_host(2), start=6 * HOUR, hours=1)
    assert lease.window.start == NOON + 8 * HOUR
    world.manager.leases.delete(world.full.id)
    world.run()
    assert world.now(lease).window.start == NOON + 8 * HOUR


def test_a_plan_moves_no_other_promise_once_another_plan_was_carried_out(engine):
    """Between two moves of a plan another manager plans, for which the second one is not to be."""
    limits = RecordingFilter()
    world = a_world(engine, filters=[limits])
    first, second = promised(world, a_host()), promised(world, a_host(), project="chemistry")
    world.run_to(NOON + 30 * MINUTE)
    world.manager.leases.delete(world.full.id)
    other, update, passes = world.another_manager(), Updates.update, []

    def denies(_: Question) -> None:
        raise UsageDenied("not now")

    def then_plan(self, *arguments):
        moved = update(self, *arguments)
        if not passes:
            passes.append(None)
            limits.says = denies
            passes.append(other.waiting_list.run_once())
            limits.says = lambda _: None
        return moved

    with patch.object(Updates, "update", then_plan):
        assert (world.manager.waiting_list.run_once(), passes) == (1, [None, 0])
    starts = {world.now(each).window.start for each in (first, second)}
    assert starts == {NOON + 30 * MINUTE, NOON + 2 * HOUR}
    world.run()
    assert world.now(second).status is LeaseStatus.ACTIVE


def test_what_one_leaves_behind_is_granted_in_the_same_turn(world):
    first = promised(world, a_host(3))
    second = waits(world, a_host(3), project="chemistry")
    world.run()
    assert world.now(second).window.start == NOON + 4 * HOUR
    world.manager.leases.delete(world.full.id)
    world.run()
    begins = [world.now(each).window.start for each in (first, second)]
    assert begins[0] < NOON + MINUTE
    assert begins[1] == begins[0] + 2 * HOUR


def test_what_its_owner_changes_is_not_moved_any_more(world):
    lease = promised(world, a_host(2))
    world.change(lease, end=lease.window.end + HOUR)
    assert not world.now(lease).is_promised
    world.manager.leases.delete(world.full.id)
    world.run()
    assert world.now(lease).window.start == NOON + 2 * HOUR


def test_another_name_leaves_it_promised(world):
    lease = promised(world, a_host(2))
    world.change(lease, name="another")
    assert world.now(lease).is_promised


def test_it_gets_no_fewer_hosts_when_it_becomes_earlier(world):
    lease = promised(world, a_host(1, 3))
    assert len(world.hosts_of(lease)) == 3
    world.change(world.full, end=NOON + 90 * MINUTE)
    one = world.lease(a_host(), project="chemistry", start=timedelta(minutes=95), hours=0.25)
    world.run()
    found = world.now(lease)
    assert len(world.hosts_of(found)) == 3
    assert found.window.start <= NOON + 2 * HOUR
    assert one.status is LeaseStatus.PENDING


def test_one_that_enforcement_denies_is_not_promised_and_is_told_why(sqlite):
    class Denies(RecordingFilter):
        def check(self, question):
            if question.wanted.lease.project_id == "physics":
                raise UsageDenied("physics may not")

    world = a_world(sqlite, filters=[Denies()])
    lease, other = waits(world, a_host(2)), waits(world, a_host(2), project="chemistry")
    world.run()
    assert (world.now(lease).status, world.now(lease).wait.reason) == (LeaseStatus.WAITING, "physics may not")
    assert world.now(other).is_promised


def test_one_that_enforcement_does_not_let_start_earlier_keeps_its_promise(sqlite):
    class Denies(RecordingFilter):
        def check(self, question):
            if question.wanted.lease.project_id == "physics" and question.wanted.window.start < NOON + 2 * HOUR:
                raise UsageDenied("not so early")

    world = a_world(sqlite, filters=[Denies()])
    lease = promised(world, a_host(2), start=MINUTE)
    world.manager.leases.delete(world.full.id)
    world.run()
    found = world.now(lease)
    assert (found.window.start, found.is_promised) == (NOON + 2 * HOUR, True)


def test_where_an_operator_wants_none_there_are_only_estimates(sqlite):
    world = a_world(sqlite, settings=Settings(claim_ttl=timedelta(seconds=30), promises=0))
    lease = waits(world, a_host(2))
    world.run()
    assert world.now(lease).status is LeaseStatus.WAITING


def test_a_project_is_promised_two_in_a_turn(world):
    leases = [waits(world, a_host(3)) for _ in range(3)]
    world.manager.waiting_list.run_once()
    assert [world.now(each).is_promised for each in leases] == [True, True, False]


def test_a_failed_host_is_replaced_and_the_promise_kept(sqlite):
    world = World(sqlite, hosts=4, state=of_size(4), settings=PROMISING)
    world.waits = True
    world.full = world.lease(a_host(4), project="biology")
    world.run()
    lease = promised(world, a_host(2))
    (lost,) = list(world.hosts_of(lease))[:1]
    (host,) = [h for h in world.store.resources.catalog(HOST).resources if h.name == lost]
    world.store.resource_health.set_failed(HOST, {host.id: "it is down"}, at=world.clock.now())
    world.manager._healing.run()
    world.run()
    found = world.now(lease)
    assert (found.window.start, found.is_promised, found.degraded) == (NOON + 2 * HOUR, True, False)
    assert lost not in world.hosts_of(found)
    assert len(world.hosts_of(found)) == 2


def test_where_nothing_can_replace_a_failed_host_the_promise_keeps_its_time(world):
    lease = promised(world, a_host(3))
    host = world.store.resources.catalog(HOST).resources[0]
    world.store.resource_health.set_failed(HOST, {host.id: "it is down"}, at=world.clock.now())
    world.manager._healing.run()
    world.run()
    found = world.now(lease)
    assert (found.window.start, found.degraded) == (NOON + 2 * HOUR, True)
    world.store.resource_health.set_recovered(HOST, [host.id], at=world.clock.now())
    world.manager._healing.run()
    assert not world.now(lease).degraded


def test_who_waits_for_what_is_in_use_for_ever_is_promised_nothing(sqlite):
    world = World(sqlite, settings=PROMISING)
    world.waits = True
    world.lease(a_host(3), project="biology", end=END_OF_TIME)
    lease = waits(world, a_host())
    world.run()
    found = world.now(lease)
    assert (found.status, found.wait.estimate) == (LeaseStatus.WAITING, None)
    assert found.wait.reason


def test_who_does_not_wait_takes_nothing_that_a_promise_has_or_could_move_to(world):
    promised(world, a_host(3))
    waiting = waits(world, a_host(3), project="chemistry")
    world.manager.leases.delete(world.full.id)
    with pytest.raises(OthersWait):
        world.lease(a_host(), project="geology")
    world.run()
    assert world.now(waiting).status is LeaseStatus.PENDING


@pytest.mark.sample(1)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", range(1, 4))
def test_a_manager_killed_between_two_writes_another_goes_on(sqlite, when, number, monkeypatch):
    world = a_world(sqlite)
    first, second = promised(world, a_host(3)), waits(world, instances(2, vcpus=1), project="chemistry")
    world.manager.leases.delete(world.full.id)
    left = [number]
    commit = world.store.bookings.commit

    def killed(*args, **more):
        left[0] -= 1
        if not left[0] and when == "before":
            raise Killed
        done = commit(*args, **more)
        if not left[0]:
            raise Killed
        return done

    monkeypatch.setattr(world.store.bookings, "commit", killed, raising=False)
    with suppress(Killed):
        world.manager.waiting_list.run_once()
    monkeypatch.undo()
    world.manager = world.another_manager()
    for _ in range(6):
        world.run_to(world.clock.now() + 30 * timedelta(seconds=1))
    check_promises(world.store, since=world.clock.now())
    assert world.now(first).status is LeaseStatus.ACTIVE
    assert world.now(first).window.start < NOON + 3 * MINUTE
    assert world.now(second).is_promised
    assert world.now(second).window.start == world.now(first).window.end


@pytest.mark.slow
def test_managers_that_plan_at_once_promise_and_move_each_once(engine):
    world = a_world(engine)
    managers = [world.manager, *(world.another_manager() for _ in range(2))]
    leases = [waits(world, a_host(2), project=f"p{n}") for n in range(4)]
    for _ in range(2):
        ready = threading.Barrier(len(managers))

        def plan(manager, ready=ready) -> None:
            ready.wait(20)
            for _ in range(3):
                manager.waiting_list.run_once()

        threads = [threading.Thread(target=plan, args=(manager,)) for manager in managers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        world.run()
        check_promises(world.store, since=world.clock.now())
        with suppress(NotFound):
            world.manager.leases.delete(world.full.id)
    states = [world.now(lease) for lease in leases]
    assert all(each.status is LeaseStatus.ACTIVE or each.is_promised for each in states)
    assert len({each.window.start for each in states}) == 4


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_through_random_lives_a_promise_is_never_later_and_never_smaller(sqlite, seed):
    dice = random.Random(seed)
    world = World(sqlite, settings=Settings(claim_ttl=timedelta(seconds=30), promise_notice=5 * MINUTE))
    world.waits = True
    known: list[Lease] = []
    said: dict[str, tuple[object, int]] = {}
    for _ in range(25):
        match dice.choice(("wait", "wait", "book", "delete", "shorten", "pass")):
            case "wait":
                ask = a_host(dice.randint(1, 2), 3) if dice.random() < 0.7 else instances(2, vcpus=1)
                hours = dice.choice((1, 2, 5))
                known.append(world.lease(ask, project=f"p{dice.randint(1, 3)}", hours=hours, wait=DAY))
            case "book":
                with suppress(Conflict):
                    known.append(world.lease(a_host(), project="p4", start=dice.choice((0, 3, 9)) * HOUR))
            case "delete" if known:
                with suppress(Conflict, NotFound):
                    world.manager.leases.delete(dice.choice(known).id)
            case "shorten" if known:
                lease = dice.choice(known)
                if not world.now(lease).is_promised:
                    with suppress(Conflict, InvalidInput, NotFound):
                        world.change(lease, end=world.clock.now().replace(second=0) + 30 * MINUTE)
            case _:
                world.run_to(world.clock.now() + dice.choice((MINUTE, 20 * MINUTE, HOUR)))
        before = {lease.id: world.now(lease) for lease in known}
        world.run()
        check_promises(world.store, since=world.clock.now())
        for lease in known:
            now = world.now(lease)
            if now.is_promised:
                count = sum(a.count for a in world.store.calendar.of_lease(lease.id))
                start, least = said.get(lease.id, (now.window.start, count))
                assert now.window.start <= start
                assert count >= least
                moved = before[lease.id].is_promised and now.window.start != before[lease.id].window.start
                assert not moved or now.window.start >= world.clock.now() + 5 * MINUTE
                said[lease.id] = (now.window.start, count)
            elif lease.id in said and now.status is LeaseStatus.ACTIVE and now.deleted_at is None:
                assert now.window.start <= said[lease.id][0]
    world.run_to(world.clock.now() + 2 * DAY)
    left = {world.now(lease).status for lease in known if world.now(lease).deleted_at is None}
    assert left <= {LeaseStatus.TERMINATED, LeaseStatus.TIMED_OUT}


class Counted:
    """How often promises were made, advanced, kept and broken since."""

    def __init__(self) -> None:
        self._before = self._read()

    def _read(self) -> dict[str, float]:
        name = metrics.PROMISES.name
        return {
            change: REGISTRY.get_sample_value(name, {"change": change}) or 0
            for change in ("made", "advanced", "kept", "broken")
        }

    @property
    def since(self) -> dict[str, float]:
        return {change: more for change, number in self._read().items() if (more := number - self._before[change])}


def test_promises_are_counted_when_they_are_made_advanced_and_kept(world):
    counted = Counted()
    lease = promised(world, a_host(3))
    assert counted.since == {"made": 1}
    world.run_to(NOON + 30 * MINUTE)
    world.manager.leases.delete(world.full.id)
    world.run()
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert counted.since == {"made": 1, "advanced": 1, "kept": 1}


def test_a_promise_is_broken_if_the_start_fails_for_good(world):
    lease = promised(world, a_host(3))
    counted = Counted()
    world.run_to(NOON + 2 * HOUR - MINUTE)
    world.faults.fail_before("add_host", CloudUnavailable("Nova does not answer"), times=10_000)
    world.run_to(NOON + 5 * HOUR, pause=5 * MINUTE)
    assert world.now(lease).event(EventType.START).status is EventStatus.ERROR
    assert counted.since == {"broken": 1}


def test_what_starts_at_once_after_its_wait_was_promised_nothing(world):
    waits(world, a_host(3))
    counted = Counted()
    world.manager.leases.delete(world.full.id)
    world.run()
    assert counted.since == {}
