# SPDX-License-Identifier: Apache-2.0
"""Claims: who holds one knows when it ends, and what is done after that is done by nobody."""

from __future__ import annotations

import threading
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest

from blazar.context import check_change, current, scope
from blazar.manager.common.busy_leases import MOST, MOST_OF_PROJECT, WaitingPlaces
from blazar.manager.common.claims import Claims
from blazar.manager.leases import lifecycle
from blazar.manager.leases.lifecycle import SavedStateMissing, load_allocations_before
from blazar.model.base.errors import (
    BlazarError,
    ClaimLost,
    CloudRefused,
    CloudUnavailable,
    Conflict,
    InvalidInput,
    StoreUnavailable,
    WrongState,
)
from blazar.model.base.moments import NOW
from blazar.model.leases.lease import SavedState
from blazar.model.leases.requests import LeaseChange, ReservationChange
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus
from blazar.store.store import Store
from blazar.store.work.claims import ClaimStore
from blazar.store.work.events import DueEvent
from tests.manager.events.test_crashes import nothing_is_left
from tests.observed import ObservedStore, before, failing
from tests.openstack import eventually
from tests.world import NOON, World, a_host, instances

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
TTL = timedelta(seconds=30)


class Book(ClaimStore):
    """Keeps the tokens that are valid, and can be out of reach."""

    def __init__(self) -> None:
        self.valid: set[str] = set()
        self.asked: list[frozenset[str]] = []
        self.away = False

    def renew_claims(self, tokens, *, now, until):
        if self.away:
            raise StoreUnavailable("away")
        self.asked.append(frozenset(tokens))
        return frozenset(tokens) & self.valid


@pytest.fixture
def book() -> Book:
    return Book()


@pytest.fixture
def claims(book, world) -> Claims:
    return Claims(SimpleNamespace(claims=book), world.clock, TTL)


def test_a_claim_ends_for_its_holder_when_it_ends_for_others_unless_it_is_renewed(claims, book, world):
    claim = claims.new()
    book.valid.add(claim.token)
    with claims.held(claim):
        world.clock.by(seconds=20)
        assert claim.remaining() == 10
        claims.beat()
        assert claim.remaining() == 30
        world.clock.by(seconds=31)
        assert claim.remaining() < 0


def test_the_time_counts_from_the_moment_before_it_is_written(claims, world):
    claim = claims.new()
    world.clock.by(seconds=25)
    until = claims.begin(claim)
    assert (until - world.clock.now(), claim.remaining()) == (TTL, 30)


def test_what_is_not_valid_any_more_is_not_renewed_and_may_do_nothing(claims, book):
    lost, kept = claims.new(), claims.new()
    book.valid.add(kept.token)
    with claims.held(kept), claims.held(lost):
        claims.beat()
        assert lost.remaining() < 0 < kept.remaining()
        with pytest.raises(ClaimLost):
            check_change()


def test_only_what_is_held_is_renewed_also_after_an_exception(claims, book):
    first, second = claims.new(), claims.new()
    book.valid |= {first.token, second.token}
    with claims.held(second):
        with suppress(ZeroDivisionError), claims.held(first):
            raise ZeroDivisionError
        claims.beat()
    claims.beat()
    assert book.asked == [{second.token}]


def test_a_database_that_is_away_renews_nothing(claims, book, world):
    claim = claims.new()
    book.away = True
    with claims.held(claim):
        world.clock.by(seconds=20)
        with pytest.raises(StoreUnavailable):
            claims.beat()
        assert claim.remaining() == 10


def test_a_renewal_whose_answer_comes_after_the_end_is_none(claims, book, world):
    claim = claims.new()
    book.valid.add(claim.token)
    renew = book.renew_claims

    def slow(tokens, *, now, until):
        world.clock.by(seconds=31)
        return renew(tokens, now=now, until=until)

    book.renew_claims = slow
    with claims.held(claim):
        claims.beat()
        # Somebody else may have read it as ended before the renewal was written.
        assert claim.remaining() < 0
        claims.beat()
        assert claim.remaining() < 0
    assert len(book.asked) == 1


def test_nothing_is_changed_in_the_cloud_when_the_claim_ends_before_the_longest_call(claims, world):
    claim = claims.new()
    with claims.held(claim):
        assert check_change() == 15
        world.clock.by(seconds=15)
        assert check_change() == 15
        world.clock.by(seconds=0.1)
        with pytest.raises(ClaimLost):
            check_change()


def test_nothing_is_changed_in_the_cloud_after_the_time_of_a_request():
    with scope(limit=timedelta(0)), pytest.raises(CloudUnavailable):
        check_change()
    assert check_change() is None


class Bad(Exception):
    """What nobody expects of a database."""


def test_the_heartbeat_survives_anything(world):
    beats = []

    class Broken(Book):
        def renew_claims(self, tokens, *, now, until):
            beats.append(1)
            if len(beats) == 3:
                claims.begin_stop()
            raise Bad

    claims = Claims(SimpleNamespace(claims=Broken()), world.clock, timedelta(milliseconds=4))
    with claims.held(claims.new()):
        claims.start()
        eventually(lambda: len(beats) == 3, patience=20)
        claims.stop()
    assert len(beats) == 3


# What a manager does that has stood still


def held_up(world: World, call: str, phase: str, meanwhile) -> None:
    """Let the manager stand still at its next call of this name, for longer than its claim lasts."""

    def hook(name, when):
        if (name, when) == (call, phase):
            world.faults.on_call = None
            world.clock.by(seconds=1.5 * world.settings.claim_ttl.total_seconds())
            meanwhile()

    world.faults.on_call = hook


@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_change_that_was_undone_by_another_manager_is_not_undone_once_more(world, phase):
    lease = world.lease(a_host(1, 1))
    world.run()
    host = world.pool(lease.reservations[0].id)
    (name,) = host
    server = world.simulated.users.boot_server("work", project_id="physics", user_id="curie", host=name)
    other = world.another_manager()
    held_up(world, "add_host", phase, lambda: other.engine.run_due())
    with pytest.raises((ClaimLost, WrongState)):
        world.resize(lease, min=2, max=2)
    world.run_to(world.clock.now() + MINUTE)
    after = world.now(lease)
    assert after.status is LeaseStatus.ACTIVE
    assert world.pool(lease.reservations[0].id) == host
    assert [s.id for s in world.simulated.operators.list_servers()] == [server.id]
    assert len(world.pool()) == 2


@pytest.mark.parametrize("phase", ["before", "after"])
def test_who_comes_too_late_with_a_change_disturbs_no_later_one_with_the_same_event(world, phase):
    lease = world.lease(a_host(1, 1))
    world.run()
    other = world.another_manager()

    def meanwhile():
        other.engine.run_due()
        change = ReservationChange(lease.reservations[0].id, parameters={"min": 3, "max": 3})
        other.leases.update(lease.id, LeaseChange(reservations=(change,)))

    held_up(world, "add_host", phase, meanwhile)
    with pytest.raises((ClaimLost, WrongState)):
        world.resize(lease, min=2, max=2)
    world.run_to(world.clock.now() + MINUTE)
    after = world.now(lease)
    assert (after.status, after.event(EventType.UPDATE).status) == (LeaseStatus.ACTIVE, EventStatus.DONE)
    assert after.reservations[0].parameters.values["max"] == 3
    assert len(world.pool(lease.reservations[0].id)) == 3


class StandsStill(ObservedStore):
    """The store as a manager sees it that stands still whenever it has read a lease."""

    def __init__(self, store: Store, meanwhile) -> None:
        def read(name, operation, *args, **more):
            found = operation(*args, **more)
            if name == "leases.one":
                meanwhile()
            return found

        super().__init__(store, read)


def looks_at_the_start(world, lease, stand_still):
    other = world.another_manager(store=StandsStill(world.store, stand_still))
    other.engine.worker.process(lease.id, lease.event(EventType.START).id)


def has_read_ahead(world, lease, stand_still):
    event = lease.event(EventType.START)
    found = world.store.leases.load_starts([lease.id], now=world.clock.now())
    store = ObservedStore(world.store, lambda name, operation, *args, **more: operation(*args, **more))
    store.leases.load_starts = lambda *args, **more: found
    worker = world.another_manager(store=store).engine.worker
    due = [DueEvent(id_, event.id, "start_lease", NOON, "physics", False) for id_ in (lease.id, "another")]
    worker.read_ahead.read(due)
    stand_still()
    worker.process(lease.id, event.id)


def deletes(world, lease, stand_still):
    other = world.another_manager(store=StandsStill(world.store, stand_still))
    other.leases.delete(lease.id)


@pytest.mark.parametrize("act", [looks_at_the_start, has_read_ahead, deletes])
def test_who_stands_still_after_reading_a_lease_takes_nothing_from_the_manager_at_work_on_it(world, act):
    lease = world.lease(a_host(), start=HOUR)
    claims, seen = [], []

    def stand_still():
        for _ in range(2):
            world.clock.by(seconds=20)
            world.manager.claims.beat()

    def hook(name, when):
        if name == "add_host" and not claims:
            claims.append(world.now(lease).event(EventType.START).claimed_by)
            act(world, world.now(lease), stand_still)
            seen.append(world.now(lease).event(EventType.START))
            world.manager.claims.beat()
            assert current().fence.token == claims[0]
            assert current().fence.remaining() > 0

    world.clock.to(NOON + HOUR)
    world.faults.on_call = hook
    world.run()
    assert [event.claimed_by for event in seen] == claims
    assert seen[0].due_at > seen[0].claimed_at + TTL
    world.run_to(world.clock.now() + MINUTE)
    if act is deletes:
        nothing_is_left(world)
    else:
        assert world.now(lease).status is LeaseStatus.ACTIVE


def test_an_undo_without_what_there_was_before_is_an_error_and_touches_nothing(world):
    lease = world.lease(a_host(2))
    world.run()
    lease = world.now(lease)
    token = world.manager.claims.new().token
    updating = lifecycle.begin_update(
        lease, held=(), token=token, now=world.clock.now(), until=world.clock.now() - MINUTE
    )
    updating = lifecycle.with_event(updating, replace(lifecycle.update_of(updating), saved_state=SavedState()))
    world.store.leases.save(lease, updating, at=world.clock.now())
    world.run()
    event = world.now(lease).event(EventType.UPDATE)
    assert event.status is EventStatus.IN_PROGRESS
    assert "not on record" in event.reason
    assert len(world.pool(lease.reservations[0].id)) == 2
    with pytest.raises(SavedStateMissing):
        load_allocations_before(lease, replace(event, saved_state=None), {})


def test_a_last_write_that_fails_leaves_the_event_to_the_next_manager(world):
    lease = world.lease(a_host(), start=HOUR)
    world.clock.to(NOON + HOUR)
    flaky = before("leases.save", lambda: None, failing(StoreUnavailable("fail-over")))
    world.manager = world.another_manager(store=ObservedStore(world.store, flaky))
    with suppress(BlazarError):
        world.manager.engine.run_due()
    assert world.now(lease).status is LeaseStatus.STARTING
    world.clock.by(seconds=10)
    world.manager.claims.beat()
    world.clock.by(seconds=21)
    world.run()
    assert world.now(lease).status is LeaseStatus.ACTIVE


# Changes wait for what is under way


def test_settled_leases_move_wherever_requests_and_events_lead():
    moves = lifecycle.MOVES
    for status in lifecycle.STABLE - {LeaseStatus.TERMINATED}:
        assert LeaseStatus.UPDATING in moves[status]
        assert status in moves[LeaseStatus.UPDATING]
    for status in LeaseStatus:
        if status is not LeaseStatus.DELETING:
            assert LeaseStatus.DELETING in moves[status]


def test_a_change_waits_for_the_start_that_is_under_way(a_world):
    world = a_world(patience=timedelta(seconds=20), settings=None)
    reached = []

    def hook(name, when):
        if name == "add_host" and not reached:
            reached.append(1)
            asked.start()
            assert began.wait(10)

    began = threading.Event()
    changed = []
    lease = world.lease(a_host(), start=HOUR)

    def rename():
        began.set()
        changed.append(world.change(lease, end=NOON + 5 * HOUR))

    asked = threading.Thread(target=rename)
    world.faults.on_call = hook
    world.run_to(NOON + HOUR)
    asked.join(20)
    assert changed[0].window.end == NOON + 5 * HOUR
    assert world.now(lease).status is LeaseStatus.ACTIVE


def test_few_requests_wait_at_a_time_and_of_one_project_fewer():
    waiting = WaitingPlaces()
    with ExitStack() as places:
        got = [places.enter_context(waiting.place(project)) for project in ("physics", "chemistry", "biology") * 4]
        assert got == [True] * MOST + [False] * (12 - MOST)
    with ExitStack() as places:
        got = [places.enter_context(waiting.place("physics")) for _ in range(5)]
        assert got == [True] * MOST_OF_PROJECT + [False] * (5 - MOST_OF_PROJECT)
        with waiting.place("chemistry") as free:
            assert free
    assert not waiting._of


def test_a_request_without_a_place_to_wait_is_refused_at_once(a_world, monkeypatch):
    world = a_world(patience=timedelta(seconds=20), settings=None)
    lease = world.lease(a_host(), start=HOUR)
    told = []

    def hook(name, when):
        if name == "add_host" and not told:
            with ExitStack() as places:
                for _ in range(MOST_OF_PROJECT):
                    places.enter_context(world.manager.leases.patience.waiting.place("physics"))
                with pytest.raises(WrongState, match="it can be changed when that has finished"):
                    world.change(lease, end=NOON + 5 * HOUR)
                world.manager.leases.delete(lease.id)
            told.append(world.now(lease).status)

    def never(seconds):
        raise AssertionError

    monkeypatch.setattr("blazar.manager.common.busy_leases.time", SimpleNamespace(sleep=never))
    world.faults.on_call = hook
    world.run_to(NOON + HOUR)
    assert told == [LeaseStatus.DELETING]


def test_a_lease_with_an_active_and_a_failed_part_grows_and_starts_once_more(world):
    lease = world.lease(a_host(), instances(), start=HOUR, hours=3)
    world.faults.fail_before("grant_flavor", CloudRefused("no"))
    world.run_to(NOON + HOUR)
    failed = world.now(lease)
    assert failed.status is LeaseStatus.ERROR
    assert {r.resource_type: r.status for r in failed.reservations} == {
        "physical:host": "active",
        "virtual:instance": "error",
    }
    host = failed.reservations[0].id
    grown = world.manager.leases.update(
        lease.id, LeaseChange(reservations=(ReservationChange(host, {"min": 2, "max": 2}),))
    )
    assert grown.status in (LeaseStatus.PENDING, LeaseStatus.ERROR)
    assert len(world.pool(host)) == 2
    changed = world.change(lease, end=NOON + 6 * HOUR)
    assert changed.status is LeaseStatus.PENDING
    world.run()
    assert world.now(lease).status is LeaseStatus.ACTIVE


# Changes before the start are events as well


def once(world: World, call: str, act) -> None:
    """Let something happen right before the next call of this name."""

    def hook(name, when):
        if (name, when) == (call, "before"):
            world.faults.on_call = None
            act()

    world.faults.on_call = hook


@pytest.mark.parametrize("call", ["create_flavor", "delete_flavor", "create_server_group", "set_aggregate_metadata"])
def test_a_lease_that_is_deleted_while_its_change_is_prepared_leaves_nothing(world, call):
    lease = world.lease(instances(2, vcpus=2), start=HOUR)
    once(world, call, lambda: world.manager.leases.delete(lease.id))
    with pytest.raises(WrongState):
        world.resize(lease, vcpus=4, affinity=True)
    world.run_to(world.clock.now() + MINUTE)
    nothing_is_left(world)


def test_a_start_that_falls_due_while_a_change_is_prepared_waits_and_users_can_boot(world):
    lease = world.lease(instances(2, vcpus=2), start=HOUR)
    other = world.another_manager()

    def starts():
        world.clock.to(lease.window.start)
        other.engine.run_due()
        assert world.now(lease).status is LeaseStatus.UPDATING

    # Right before the hour, so that the claim still lives.
    world.clock.to(lease.window.start - timedelta(seconds=5))
    once(world, "create_flavor", starts)
    assert world.resize(lease, vcpus=4).status is LeaseStatus.PENDING
    world.run_to(world.clock.now() + MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert world.simulated.users.boot_reserved(lease.reservations[0].id, project_id="physics").host


# Every settled state, every change


def failed(world: World, *rooms, call: str):
    world.faults.fail_before(call, CloudRefused("no"))
    lease = world.lease(*rooms, start=HOUR, hours=3)
    world.run_to(NOON + HOUR)
    return lease


STATES = {
    "pending": lambda world: world.lease(a_host(), instances(), start=HOUR, hours=3),
    "active": lambda world: world.lease(a_host(), instances(), hours=3),
    "failed hosts": lambda world: failed(world, a_host(), instances(), call="add_host"),
    "failed servers": lambda world: failed(world, a_host(), instances(), call="grant_flavor"),
    "failed": lambda world: failed(world, a_host(), call="add_host"),
}
CHANGES = {
    "a name": {"name": "other"},
    "a later end": {"end": NOON + 6 * HOUR},
    "an earlier end": {"end": NOON + 2 * HOUR},
    "a later start": {"start": NOON + 2 * HOUR, "end": NOON + 8 * HOUR},
    "a warning": {"before_end": NOON + 3 * HOUR + 30 * MINUTE},
    "an end now": {"end": NOW},
}
SIZES = {
    "nothing": {},
    "more hosts": {0: {"min": 2, "max": 2}},
    "other servers": {1: {"vcpus": 4, "affinity": True}},
    "more servers": {1: {"amount": 2}},
    "more of both": {0: {"min": 2, "max": 2}, 1: {"amount": 2}},
    "an action": {0: {"before_end": "snapshot"}},
}


@pytest.mark.share(3)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("change", ["nothing", *(pytest.param(name, marks=pytest.mark.slow) for name in CHANGES)])
@pytest.mark.parametrize("state", STATES)
def test_whatever_is_changed_in_whatever_state_a_lease_settles_and_ends(a_world, state, change, size):
    world = a_world(hosts=3)
    lease = STATES[state](world)
    world.run()
    before = world.now(lease)
    assert before.status in lifecycle.STABLE
    parts = tuple(
        ReservationChange(lease.reservations[index].id, given)
        for index, given in SIZES[size].items()
        if index < len(lease.reservations)
    )
    with suppress(InvalidInput, Conflict):
        world.manager.leases.update(lease.id, LeaseChange(reservations=parts, **CHANGES.get(change, {})))
    assert world.now(lease).status in lifecycle.STABLE
    world.run()
    world.run_to(world.now(lease).window.end + 10 * MINUTE)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    nothing_is_left(world)


def test_a_failed_lease_with_new_dates_makes_its_snapshots_though_their_time_has_gone_by(world):
    world.faults.fail_before("add_host", CloudRefused("no"))
    lease = world.lease(a_host(before_end="snapshot"), start=HOUR, hours=1.5, before_end=NOON + 70 * MINUTE)
    world.run_to(NOON + 75 * MINUTE)
    assert world.now(lease).status is LeaseStatus.ERROR
    world.change(lease, end=NOON + 95 * MINUTE)
    world.run()
    (host,) = world.pool(lease.reservations[0].id)
    server = world.simulated.users.boot_server("work", project_id="physics", user_id="curie", host=host)
    world.run_to(NOON + 3 * HOUR)
    assert [image.metadata["blazar:server"] for image in world.simulated.operators.images()] == [server.id]


def test_after_a_deletion_of_what_was_starting_its_hosts_can_be_booked_at_once(a_world):
    world = a_world(patience=timedelta(seconds=20))
    lease = world.lease(a_host(3), start=HOUR)
    reached, gate = threading.Event(), threading.Event()

    def hook(name, when):
        if (name, when) == ("add_host", "before") and not reached.is_set():
            reached.set()
            assert gate.wait(20)

    world.faults.on_call = hook
    world.clock.to(NOON + HOUR)
    world.manager.start()
    deletion = threading.Thread(target=lambda: world.manager.leases.delete(lease.id))
    try:
        assert reached.wait(20)
        deletion.start()
        while world.now(lease).status is not LeaseStatus.DELETING:
            assert deletion.is_alive()
        gate.set()
        deletion.join(20)
        assert world.lease(a_host(3), start=HOUR).status is LeaseStatus.PENDING
    finally:
        gate.set()
        world.manager.stop()
