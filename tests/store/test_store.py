# SPDX-License-Identifier: Apache-2.0
"""What the store promises: all or nothing, on one picture, and history."""

from __future__ import annotations

import threading
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import StatementError

from blazar.manager.events.evacuation import add_evacuation
from blazar.model.base.errors import Conflict, NotEnoughResources, StaleCalendar, StaleLease, StoreUnavailable
from blazar.model.base.reasons import Cause, ReasonCode
from blazar.model.calendar.allocations import AllocationPlan
from blazar.model.leases.states import LeaseStatus
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.requirements import parse_requirement
from blazar.model.resources.resource import HOST
from blazar.store.sql.engine import make_engine
from blazar.store.sql.tables import UTC_TIME
from blazar.store.store import Store
from tests.statements import counted
from tests.store.builders import book
from tests.world import NOON, World, a_host

HOST = HOST


@pytest.fixture
def world(engine) -> World:
    return World(engine)


def again(world: World, lease, **changes):
    """A second lease like one that is stored, to be booked by hand."""
    reservations = tuple(replace(r, id=str(uuid.uuid4())) for r in lease.reservations)
    events = tuple(replace(e, id=str(uuid.uuid4())) for e in lease.events)
    return replace(lease, id=str(uuid.uuid4()), reservations=reservations, events=events, **changes)


def test_a_booking_holds_only_against_the_generations_it_was_decided_on(world):
    lease = world.lease()
    (held,) = world.store.calendar.of_lease(lease.id)
    with world.store.calendar.view_window(HOST, lease.window, without_amounts=True, now=NOON, besides=None) as view:
        seen = view.generations([held.resource_id])
    second, third = again(world, lease), again(world, lease)

    def book_again(one):
        mine = replace(held, lease_id=one.id, reservation_id=one.reservations[0].id)
        return book(world.store, one, AllocationPlan((mine,), seen))

    book_again(second)
    with pytest.raises(StaleCalendar):
        book_again(third)
    assert {stored.id for stored in world.store.leases.of_project(None)} == {lease.id, second.id}
    assert len(world.store.calendar.load_live(HOST)) == 2


def test_a_time_is_stored_without_its_zone_to_the_microsecond(engine):
    at = datetime(2030, 4, 1, 12, 0, 0, 7, tzinfo=UTC)
    with engine.connect() as connection:
        for _ in range(2):
            kept = sa.cast(sa.literal(at, UTC_TIME), sa.String(40))
            assert connection.execute(sa.select(kept)).scalar_one() == "2030-04-01 12:00:00.000007"
            assert connection.execute(sa.select(sa.literal(None, UTC_TIME))).scalar_one() is None


def test_a_time_of_another_zone_is_stored_in_utc_and_one_without_a_zone_refused(engine):
    there = datetime(2030, 4, 1, 3, tzinfo=timezone(timedelta(hours=2)))
    with engine.connect() as connection:
        kept = sa.cast(sa.literal(there, UTC_TIME), sa.String(40))
        assert connection.execute(sa.select(kept)).scalar_one().startswith("2030-04-01 01:00:00")
        with pytest.raises(StatementError, match="has no zone"):
            connection.execute(sa.select(sa.literal(there.replace(tzinfo=None), UTC_TIME)))


def test_of_two_bookings_at_the_same_moment_one_wins(world):
    lease = world.lease()
    (held,) = world.store.calendar.of_lease(lease.id)
    with world.store.calendar.view_window(HOST, lease.window, without_amounts=True, now=NOON, besides=None) as view:
        seen = view.generations([held.resource_id])
    outcomes = []
    gate = threading.Barrier(6)

    def race(one):
        mine = replace(held, lease_id=one.id, reservation_id=one.reservations[0].id)
        gate.wait()
        try:
            book(world.store, one, AllocationPlan((mine,), seen))
            outcomes.append("won")
        except StaleCalendar:
            outcomes.append("lost")

    threads = [threading.Thread(target=race, args=(again(world, lease),)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["lost"] * 5 + ["won"]


def test_of_leases_of_a_project_booked_at_the_same_moment_room_is_made_for_one(world):
    lease = world.lease()
    world.manager.leases.delete(lease.id)
    outcomes = []
    gate = threading.Barrier(6)

    def race(one):
        gate.wait()
        while True:
            try:
                book(world.store, one, AllocationPlan(()), evacuates=True)
                outcomes.append("won")
                return
            except NotEnoughResources:
                outcomes.append("lost")
                return
            except StaleCalendar:
                # The row of the project was made at the same moment.
                pass

    def with_room(one):
        made = add_evacuation(one, timedelta(hours=1), NOON)
        events = tuple(replace(event, id=str(uuid.uuid4())) for event in made.events)
        return replace(made, status=LeaseStatus.CREATING, events=events)

    threads = [threading.Thread(target=race, args=(with_room(again(world, lease)),)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["lost"] * 5 + ["won"]
    # Nobody else's is meant.
    theirs = with_room(again(world, lease, project_id="art"))
    assert book(world.store, theirs, AllocationPlan(()), evacuates=True).id == theirs.id


def test_a_write_holds_only_against_the_revision_it_was_decided_on(world):
    lease = world.lease()
    world.store.leases.save(lease, replace(lease, name="first"), at=NOON)
    with pytest.raises(StaleLease):
        world.store.leases.save(lease, replace(lease, name="second"), at=NOON)
    assert world.store.leases.one(lease.id).name == "first"


def test_a_lease_comes_back_as_it_was_stored(world):
    lease = world.lease(a_host(1, 2, needs='["==", "$vcpus", "16"]'), a_host(), name="ünïcode 🎉")
    assert world.store.leases.one(lease.id) == lease
    (listed,) = world.store.leases.of_project("physics")
    assert replace(listed, events=lease.events) == lease
    assert world.store.leases.of_project("art") == ()


def test_reasons_and_since_when_are_stored(world):
    lease = world.lease()
    second = timedelta(microseconds=1)
    marked = replace(
        lease,
        events=tuple(
            replace(e, reason="x", cause=Cause(ReasonCode.SAVE_FAILED, 2, frozenset({1}), NOON), trouble_since=NOON)
            for e in lease.events
        ),
        reservations=tuple(replace(r, missing_since=NOON, changed_since=NOON + second) for r in lease.reservations),
    )
    saved = world.store.leases.save(lease, marked, at=NOON)
    assert world.store.leases.one(lease.id) == saved
    assert (saved.events, saved.reservations) == (marked.events, marked.reservations)


def test_texts_compare_byte_by_byte(world):
    world.lease(project="Physics")
    assert world.store.leases.of_project("physics") == ()
    assert world.store.leases.of_project("Physics ") == ()
    assert len(world.store.leases.of_project("Physics")) == 1


def test_the_inventory_costs_one_statement_while_nothing_changes(world):
    world.store.resources.catalog(HOST)
    with counted(world.engine) as statements:
        kept = world.store.resources.catalog(HOST)
        assert world.store.resources.catalog(HOST) is kept
    assert statements.count == 2
    world.store.resources.change(kept.resources[0].id, ResourceChange({"gpu": "x"}), at=NOON)
    with_gpu = parse_requirement('["==", "$gpu", "x"]', field="f")
    assert "gpu" in world.store.resources.catalog(HOST).matching(with_gpu)[0].capabilities


def test_a_host_that_is_promised_cannot_be_withdrawn_and_one_that_is_withdrawn_not_promised(world):
    lease = world.lease(a_host(3), start=timedelta(hours=1))
    first = world.store.resources.one(HOST, "1")
    with pytest.raises(Conflict, match=f"allocated to lease {lease.id}; delete"):
        world.store.resources.withdraw(first.id, at=NOON)
    assert world.store.resources.one(HOST, "1").reservable
    world.manager.leases.delete(lease.id)
    world.store.resources.withdraw(first.id, at=NOON)
    assert len(world.hosts_of(world.lease(a_host(1, 3)))) == 2


def test_what_is_released_blocks_no_longer_than_the_cleaning_takes(world):
    lease = world.lease(start=timedelta(hours=1))
    reservation = lease.reservations[0].id
    Store(world.engine, cleaning_time=timedelta(hours=1)).leases.save(lease, lease, release=[reservation], at=NOON)
    with world.store.calendar.view_window(HOST, lease.window, without_amounts=True, now=NOON, besides=None) as view:
        assert view.snapshot.occupancy.taken == frozenset()
    assert world.store.calendar.load_live(HOST) == ()


def test_past_leases_are_kept_for_the_record(world):
    ended, deleted, live = world.lease(hours=1), world.lease(hours=1), world.lease(hours=9)
    world.run_to(NOON + timedelta(hours=1))
    world.manager.leases.delete(deleted.id)
    assert {lease.id for lease in world.store.leases.load_past()} == {ended.id, deleted.id}
    assert world.store.leases.load_past("art") == ()
    assert world.store.leases.load_past(since=NOON + timedelta(hours=2)) == ()
    assert {lease.id for lease in world.store.leases.of_project(None)} == {ended.id, live.id}
    assert world.now(deleted).status is LeaseStatus.DELETING


def test_a_database_that_is_gone_is_a_503_and_tells_no_secret():
    store = Store(make_engine("postgresql+psycopg://user:secret@127.0.0.1:1/none"))
    with pytest.raises(StoreUnavailable) as failure:
        store.leases.of_project(None)
    assert failure.value.status == 503
    assert "secret" not in failure.value.message
