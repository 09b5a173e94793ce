# SPDX-License-Identifier: Apache-2.0
"""Unconfirmed leases: firm once somebody confirms them, or deleted, and never both."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from threading import Barrier, Thread

import pytest

from blazar.enforcement.budget import ResourceHoursFilter, parse_period
from blazar.manager.common.settings import Settings
from blazar.manager.service import ManagerService
from blazar.model.base.errors import Conflict, InvalidInput, NotEnoughResources, NotFound, UsageDenied, WrongState
from blazar.model.base.moments import NOW
from blazar.model.base.paging import Page
from blazar.model.journal.entries import Verb
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import EndReason, EventType, LeaseKind, LeaseStatus
from blazar.model.surgery import OfferRequest, PartRequest, SplitRequest, Terms
from blazarconformance.clock import ManualClock
from tests.manager.billing.ledger import CURIE, act, charged, expected, publish, states
from tests.manager.events.test_crashes import nothing_is_left
from tests.manager.health.steps import look
from tests.observed import Killed, ObservedStore
from tests.world import NOON, World, a_host, instances

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
BY = NOON + 10 * MINUTE


def unconfirmed(world: World, *reservations, **more) -> Lease:
    """Book a lease for an hour from now, to be confirmed in ten minutes."""
    return world.lease(*reservations, **{"start": HOUR, "confirm": 10 * MINUTE, **more})


def has_lapsed(world: World, lease: Lease) -> None:
    """It is gone, and has left nothing: on the calendar, in the cloud, or to be done."""
    gone = world.now(lease)
    assert (gone.deleted_at is not None, gone.end_reason) == (True, EndReason.UNCONFIRMED)
    assert world.store.calendar.of_lease(lease.id) == ()
    assert world.store.events.next_due() is None
    nothing_is_left(world)


def history(world: World, lease: Lease):
    """Return what was done to a lease, the first first."""
    return world.manager.leases.history(lease.id, Page(50, "at")).items


def verbs(world: World, lease: Lease) -> list[Verb]:
    """Return what was done to a lease, the first first."""
    return [entry.verb for entry in history(world, lease)]


def test_an_unconfirmed_lease_is_pending_until_it_is_confirmed_and_starts_then(world):
    lease = unconfirmed(world)
    assert (lease.status, lease.confirm_by, lease.is_unconfirmed) == (LeaseStatus.PENDING, BY, True)
    world.run_to(BY - SECOND)
    shown = act(world, world.manager.leases.confirm, lease.id).lease
    assert (shown.status, shown.confirm_by) == (LeaseStatus.PENDING, None)
    assert shown.revision > lease.revision
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert world.notifier.types.count("lease.confirmed") == 1
    assert "lease.lapsed" not in world.notifier.types


def test_a_lease_that_nobody_confirms_is_gone_at_the_second(world):
    lease = unconfirmed(world, a_host(), instances(2, affinity=False, vcpus=1))
    world.run_to(BY - SECOND)
    assert world.now(lease).status is LeaseStatus.PENDING
    world.run_to(BY)
    has_lapsed(world, lease)
    assert world.notifier.types[-2:] == ["lease.lapsed", "lease.delete"]
    world.run_to(NOON + 3 * HOUR)
    has_lapsed(world, lease)


def test_once_more_it_is_confirmed_and_nothing_changes(world):
    lease = unconfirmed(world)
    first = world.manager.leases.confirm(lease.id).lease
    world.run_to(NOON + 30 * MINUTE)
    assert world.manager.leases.confirm(lease.id).lease.revision == first.revision
    assert world.notifier.types.count("lease.confirmed") == 1


def test_in_its_last_second_and_later_it_cannot_be_confirmed(world):
    lease = unconfirmed(world)
    world.clock.to(BY)
    with pytest.raises(Conflict, match="not confirmed by 2030-04-01T12:10:00Z, and is gone; book another"):
        world.manager.leases.confirm(lease.id)
    world.run()
    with pytest.raises(NotFound):
        world.manager.leases.confirm(lease.id)


def test_a_firm_lease_has_nothing_to_confirm(world):
    lease = world.lease(start=HOUR)
    with pytest.raises(Conflict, match="the lease is firm") as refused:
        world.manager.leases.confirm(lease.id)
    assert refused.value.code == "nothing_to_confirm"


def test_its_history_says_who_confirmed_it_and_that_it_lapsed(world):
    lease, other = unconfirmed(world), unconfirmed(world)
    act(world, world.manager.leases.confirm, lease.id)
    world.run_to(BY)
    assert verbs(world, lease) == [Verb.CREATED, Verb.CONFIRMED]
    assert verbs(world, other) == [Verb.CREATED, Verb.LAPSED]
    confirmed, lapsed = history(world, lease)[-1], history(world, other)[-1]
    assert (confirmed.by, lapsed.by, lapsed.reason) == (CURIE, None, "unconfirmed")


def test_it_takes_resources_from_others_until_it_lapses(world):
    unconfirmed(world, a_host(3))
    with pytest.raises(NotEnoughResources):
        world.lease(start=HOUR)
    world.run_to(BY)
    assert world.lease(start=HOUR).status is LeaseStatus.PENDING


def test_who_waits_for_what_it_had_is_served_when_it_lapses(a_world):
    world = a_world(hosts=1)
    world.waits = True
    lease = unconfirmed(world)
    waits = world.lease(start=HOUR, wait=timedelta(days=1), latest=timedelta(0))
    assert world.now(waits).status is LeaseStatus.WAITING
    world.run_to(BY)
    has_ended = world.now(lease)
    assert has_ended.end_reason is EndReason.UNCONFIRMED
    served = world.now(waits)
    assert (served.status, served.window.start) == (LeaseStatus.PENDING, NOON + HOUR)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"start": NOW}, "starts now cannot be confirmed before its start; give a start_date"),
        ({"start": 5 * MINUTE}, "the lease starts at 2030-04-01T12:05:00Z, before which it has to be confirmed"),
        ({"confirm": 16 * MINUTE}, "more than PT15M, .* give PT15M or less"),
        ({"kind": LeaseKind.IMMEDIATE, "start": NOW}, "of the kind immediate cannot be confirmed later"),
        ({"wait": HOUR}, "that waits for its turn cannot be confirmed later"),
    ],
    ids=["now", "beyond the start", "too long", "kind", "waits"],
)
def test_what_cannot_be_confirmed_later_is_refused_with_a_sentence(world, more, sentence):
    with pytest.raises(InvalidInput, match=sentence) as refused:
        unconfirmed(world, **more)
    assert refused.value.pointer == "/confirm_within"
    assert world.manager.leases.all(None) == ()


def test_it_may_be_unconfirmed_up_to_its_start_and_never_starts_unconfirmed(world):
    lease = unconfirmed(world, start=10 * MINUTE)
    world.run_to(BY)
    has_lapsed(world, lease)


@pytest.mark.parametrize("first", [EventType.START, EventType.CONFIRM_BY])
def test_whichever_event_of_one_second_comes_first_it_does_not_start(world, first):
    lease = unconfirmed(world, start=10 * MINUTE)
    world.clock.to(BY)
    world.manager.engine.worker.process(lease.id, lease.event(first).id)
    assert world.now(lease).status is LeaseStatus.DELETING
    world.run()
    has_lapsed(world, lease)


def test_it_is_not_changed_before_it_is_confirmed(world):
    lease = unconfirmed(world, a_host(2))
    terms = Terms(CURIE)
    (reservation,) = lease.reservations
    asked = [
        lambda: world.change(lease, name="other"),
        lambda: world.change(lease, end=NOON + 5 * HOUR),
        lambda: world.resize(lease, max=3),
        lambda: world.manager.surgery.split(lease.id, SplitRequest((PartRequest(reservation.id, count=1),)), terms),
        lambda: world.manager.transfers.offer(lease.id, OfferRequest("art"), terms),
    ]
    for ask in asked:
        with pytest.raises(WrongState, match="not confirmed yet; confirm it first, by 2030-04-01T12:10:00Z") as refused:
            ask()
        assert refused.value.code == "lease_unconfirmed"
    world.manager.leases.confirm(lease.id)
    assert world.change(lease, end=NOON + 5 * HOUR).window.end == NOON + 5 * HOUR


def test_a_failed_host_of_it_is_replaced_and_it_has_to_be_confirmed(world):
    lease = unconfirmed(world)
    (name,) = world.hosts_of(lease)
    world.simulated.operators.host_down(name)
    look(world)
    assert world.hosts_of(lease) != {name}
    assert world.now(lease).confirm_by == BY
    world.run_to(BY)
    has_lapsed(world, lease)


@pytest.mark.parametrize("ends", ["lapses", "is deleted"])
def test_one_that_nobody_confirms_costs_nothing_not_even_a_fee(world, ends):
    publish(world, fee="5.00", cancellation=[{"share": "0.50"}])
    lease = unconfirmed(world)
    assert expected(world) == 2 + 5
    if ends == "is deleted":
        act(world, world.manager.leases.delete, lease.id)
        world.run()
    world.run_to(BY)
    assert world.now(lease).deleted_at is not None
    assert (charged(world), expected(world), states(world)) == ({}, 0, [])
    assert verbs(world, lease)[-1] is (Verb.DELETED if ends == "is deleted" else Verb.LAPSED)


def test_a_confirmed_one_costs_what_any_other_does(world):
    publish(world, fee="5.00", cancellation=[{"share": "0.50"}])
    lease = unconfirmed(world)
    act(world, world.manager.leases.confirm, lease.id)
    assert expected(world) == 2 + 5
    act(world, world.manager.leases.delete, lease.id)
    world.run()
    assert charged(world) == {"cancellation unused": (2 + 5) / 2}


def test_it_counts_against_budgets_until_it_lapses(engine):
    world = World(engine, filters=[ResourceHoursFilter({"host": 4}, parse_period("month"))])
    unconfirmed(world, hours=3)
    with pytest.raises(UsageDenied):
        world.lease(start=HOUR, hours=2)
    world.run_to(BY)
    assert world.lease(start=HOUR, hours=4).status is LeaseStatus.PENDING


class StandsStill(ObservedStore):
    """A store whose manager stands still for something else after it has read a lease to decide about it."""

    def __init__(self, store, meanwhile) -> None:
        left = [meanwhile]

        def around(name, call, *arguments, **more):
            found = call(*arguments, **more)
            if name == "leases.one" and left:
                left.pop()()
            return found

        super().__init__(store, around)


def manager_at(world: World, instant: datetime, store: ObservedStore | None = None) -> ManagerService:
    """Return a manager of the world with a clock of its own."""
    usual, world.clock = world.clock, ManualClock(instant)
    try:
        return world.another_manager(store=store)
    finally:
        world.clock = usual


def lapse_of(lease: Lease) -> tuple[str, str]:
    event = lease.event(EventType.CONFIRM_BY)
    assert event is not None
    return lease.id, event.id


def test_a_lapse_that_was_decided_before_a_confirmation_is_not_written(engine):
    world = World(engine)
    lease = unconfirmed(world)
    confirm = partial(manager_at(world, BY - SECOND).leases.confirm, lease.id)
    other = manager_at(world, BY, StandsStill(world.store, confirm))
    assert not other.engine.worker.process(*lapse_of(lease))
    assert other.engine.worker.process(*lapse_of(lease))
    assert (world.now(lease).status, world.now(lease).confirm_by) == (LeaseStatus.PENDING, None)
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE


def test_a_confirmation_that_was_decided_before_the_lapse_is_refused(engine):
    world = World(engine)
    lease = unconfirmed(world)
    lapse = partial(manager_at(world, BY).engine.worker.process, *lapse_of(lease))
    other = manager_at(world, BY - SECOND, StandsStill(world.store, lapse))
    with pytest.raises(Conflict, match="and is gone; book another one") as refused:
        other.leases.confirm(lease.id)
    assert refused.value.code == "lease_ended"
    world.run_to(BY)
    has_lapsed(world, lease)


def test_of_two_managers_that_confirm_and_delete_it_at_once_exactly_one_wins(engine):
    world = World(engine)
    for _ in range(5):
        lease = unconfirmed(world)
        early, late = manager_at(world, BY - SECOND), manager_at(world, BY)
        barrier, outcomes = Barrier(2), []

        def confirm(early=early, lease=lease, barrier=barrier, outcomes=outcomes) -> None:
            barrier.wait()
            try:
                early.leases.confirm(lease.id)
            except (Conflict, NotFound):
                outcomes.append("refused")
            else:
                outcomes.append("confirmed")

        def lapse(late=late, lease=lease, barrier=barrier) -> None:
            barrier.wait()
            while not late.engine.worker.process(*lapse_of(lease)):
                pass

        threads = [Thread(target=work) for work in (confirm, lapse)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # By its clock all that the other one has left is due.
        late.engine.run_due()
        after = world.now(lease)
        assert outcomes == ["confirmed" if after.status is LeaseStatus.PENDING else "refused"]
        assert after.is_unconfirmed is (after.end_reason is EndReason.UNCONFIRMED)
        if after.status is LeaseStatus.PENDING:
            late.leases.delete(lease.id)
            late.engine.run_due()
        assert world.store.calendar.of_lease(lease.id) == ()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_manager_that_is_killed_while_it_gives_a_lease_up_leaves_it_to_the_next_one(world, when):
    lease = unconfirmed(world)

    def around(name, call, *arguments, **more):
        if name != "leases.save":
            return call(*arguments, **more)
        if when == "after":
            call(*arguments, **more)
        raise Killed

    world.clock.to(BY)
    with pytest.raises(Killed):
        world.another_manager(store=ObservedStore(world.store, around)).engine.run_due()
    assert world.now(lease).status is (LeaseStatus.DELETING if when == "after" else LeaseStatus.PENDING)
    world.run()
    has_lapsed(world, lease)


def test_a_manager_that_comes_back_after_the_start_does_not_start_it(world):
    lease = unconfirmed(world)
    world.clock.to(NOON + 2 * HOUR)
    world.run()
    has_lapsed(world, lease)


def test_each_is_firm_at_once_where_the_operator_says_so(a_world):
    world = a_world(settings=Settings(confirm_within=timedelta(0)))
    with pytest.raises(InvalidInput, match="each lease is firm at once here"):
        unconfirmed(world)
