# SPDX-License-Identifier: Apache-2.0
"""What is kept of the calendar is what its tables say, whatever manager has written them, and in whatever order."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from blazar.model.base.clock import monotonic
from blazar.model.base.errors import StaleCalendar
from blazar.model.calendar.allocations import AllocationPlan
from blazar.model.resources.resource import HOST
from blazar.store.calendar import changes, kept
from blazar.store.calendar.kept import RENEWED_SECONDS
from blazar.store.sql.engine import WRITES
from blazar.store.sql.tables import allocations, calendar_changes
from blazar.store.store import Store, StoreLimits
from tests.statements import counted
from tests.store.builders import NOON, a_host, a_lease, book, booked, hours, promised, taken

HOUR = timedelta(hours=1)


@pytest.fixture
def store(engine: Engine) -> Store:
    """A manager that keeps the calendar, and has answered from it."""
    store = Store(engine)
    a_host(store, 1), a_host(store, 2)
    seen(store)
    return store


@pytest.fixture
def other(engine: Engine) -> Store:
    """Another manager on the same database."""
    return Store(engine)


def seen(store: Store, now: datetime = NOON) -> frozenset[int]:
    """Return what is taken tomorrow, after a look at whether the copy is what the tables say."""
    found = taken(store, hours(24, 48), now=now)
    reader = Store(store.transactions.engine, limits=StoreLimits(kept_uses=0))
    assert found == taken(reader, hours(24, 48), now=now)
    return found


def hosts(store: Store):
    return store.resources.catalog(HOST).resources


def give_up(store: Store, lease) -> None:
    store.leases.save(lease, lease, release=[lease.reservations[0].id], at=NOON)


def test_each_write_of_another_manager_is_seen_by_the_next_question(store: Store, other: Store):
    one, two = hosts(other)
    lease = booked(other, hours(24, 26), one)
    assert seen(store) == {one.id}
    booked(other, hours(30, 31), two)
    assert seen(store) == {one.id, two.id}
    give_up(other, lease)
    assert seen(store) == {two.id}
    third = a_host(other, 3)
    assert seen(store) == {two.id}
    booked(other, hours(24, 48), third)
    assert seen(store) == {two.id, third.id}


def test_a_question_reads_no_rows_that_it_knows(store: Store, engine: Engine):
    booked(store, hours(24, 26), hosts(store)[0])
    seen(store)
    with counted(engine) as statements:
        taken(store, hours(24, 48))
    assert statements.count == 1


@contextmanager
def late_commit(engine: Engine) -> Iterator[sa.Connection]:
    """Open a transaction that takes its numbers now, and commits them at the end of the block."""
    with engine.execution_options(**{WRITES: True}).connect() as connection, connection.begin():
        yield connection


def test_a_number_that_is_committed_late_is_not_missed(store: Store, other: Store, engine: Engine):
    if engine.dialect.name == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    one, two = hosts(store)
    first, second = booked(store, hours(24, 26), one), booked(store, hours(24, 26), two)
    assert seen(store) == {one.id, two.id}
    with late_commit(engine) as connection:
        which = allocations.c.lease_id == first.id
        changes.note_changes_of(connection, which, NOON)
        connection.execute(allocations.update().where(which).values(released_at=NOON, blocks_until=NOON))
        give_up(other, second)
        assert seen(store) == {one.id}
    assert seen(store) == frozenset()


def test_a_manager_that_was_stopped_for_an_hour_asks_for_what_was_missing_then(
    store: Store, other: Store, engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    if engine.dialect.name == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    one, two = hosts(store)
    first, second = booked(store, hours(24, 26), one), booked(store, hours(24, 26), two)
    with late_commit(engine) as connection:
        which = allocations.c.lease_id == first.id
        changes.note_changes_of(connection, which, NOON)
        connection.execute(allocations.update().where(which).values(released_at=NOON, blocks_until=NOON))
        give_up(other, second)
        assert seen(store) == {one.id}
    resumed_at = monotonic() + 3600
    monkeypatch.setattr(kept, "monotonic", lambda: resumed_at)
    assert seen(store) == frozenset()
    assert not store.kept_calendars._copies[HOST].positions.notes.gaps


def test_numbers_that_are_never_committed_are_forgotten():
    position = changes.ReadPosition(3, "c")
    assert position.advance({3: "c", 7: "g"}, 0.0) == [7]
    assert position.gaps.keys() == {4, 5, 6}
    assert position.advance({7: "g", 5: "e"}, 1.0) == [5]
    position.forget_gaps(changes.PATIENCE_SECONDS)
    assert position.gaps.keys() == {4, 6}
    position.forget_gaps(changes.PATIENCE_SECONDS + 1)
    assert not position.gaps


def test_more_gaps_than_can_be_asked_for_are_read_from_the_first_on():
    position = changes.ReadPosition(1, "a")
    position.advance({1: "a", changes.MOST_GAPS + 9: "b"}, 0.0)
    assert position.first == 2
    assert position.advance({changes.MOST_GAPS + 9: "b", 5: "e"}, 0.0) == [5]


@pytest.mark.parametrize("rows", [{}, {2: "other"}, {2: "b", 2 + changes.MOST_ROWS + 1: "far"}])
def test_what_cannot_be_followed_is_read_as_a_whole(rows: dict[int, str]):
    assert changes.ReadPosition(2, "b").advance(rows, 0.0) is None


def test_a_restored_database_is_read_again(store: Store, other: Store, engine: Engine):
    """The last lease is gone with the restored state, and its number goes to another one."""
    one, two = hosts(store)
    booked(other, hours(24, 26), one)
    assert seen(store) == {one.id}
    with late_commit(engine) as connection:
        number = connection.execute(sa.select(sa.func.max(allocations.c.id))).scalar_one()
        connection.execute(allocations.delete())
    lease = booked(other, hours(24, 26), two)
    with late_commit(engine) as connection:
        connection.execute(allocations.update().where(allocations.c.lease_id == lease.id).values(id=number))
    assert seen(store) == {two.id}


def test_a_plan_on_what_is_out_of_date_is_not_booked_and_mends_the_copy(store: Store, engine: Engine):
    """Somebody has booked whose number nobody asks for any more: that costs a race, and no double booking."""
    one, two = hosts(store)
    with store.calendar.view_window(HOST, hours(24, 48), without_amounts=True, now=NOON, besides=None) as view:
        known = view.generations([one.id])
        copy = store.kept_calendars._copies[HOST]
        position = copy.positions.rows
        booked(Store(engine), hours(24, 26), one)
        with store.transactions.reading() as connection:
            position.last, position.token = connection.execute(
                sa.select(allocations.c.id, allocations.c.lease_id).order_by(allocations.c.id.desc())
            ).first()
    assert taken(store, hours(24, 48)) == frozenset()
    lease = a_lease(hours(24, 26))
    with pytest.raises(StaleCalendar):
        book(store, lease, AllocationPlan(promised(lease, [one]), known))
    assert seen(store) == {one.id}
    assert two.id not in seen(store)


def test_a_clock_that_went_back_sees_what_was_in_the_way_then(engine: Engine):
    store = Store(engine, cleaning_time=HOUR)
    host = a_host(store, 1)
    lease = booked(store, hours(-1, 0), host)
    give_up(store, lease)
    for now, expected in ((NOON, {host.id}), (NOON + 9 * HOUR, set()), (NOON, {host.id})):
        assert taken(store, hours(0, 0.5) if now == NOON else hours(9, 10), now=now) == expected


def test_kinds_with_more_than_is_kept_are_read_for_each_question(engine: Engine):
    store = Store(engine, limits=StoreLimits(kept_uses=1))
    one, two = a_host(store, 1), a_host(store, 2)
    booked(store, hours(24, 26), one)
    assert seen(store) == {one.id}
    assert store.kept_calendars._copies[HOST].calendar is not None
    booked(store, hours(24, 26), two)
    assert seen(store) == {one.id, two.id}
    assert store.kept_calendars._copies[HOST].calendar is None


def test_a_release_that_was_missed_is_found_within_an_hour(store: Store, engine: Engine):
    """Its number is given up long before it is committed: as if it had left no note."""
    one, two = hosts(store)
    lease = booked(store, hours(24, 26), one)
    assert seen(store) == {one.id}
    with late_commit(engine) as connection:
        which = allocations.c.lease_id == lease.id
        connection.execute(allocations.update().where(which).values(released_at=NOON, blocks_until=NOON))
    store.kept_calendars.renew(NOON)
    assert taken(store, hours(24, 48)) == {one.id}
    copy = store.kept_calendars._copies[HOST]
    copy.read_at -= RENEWED_SECONDS
    store.kept_calendars.renew(NOON)
    assert seen(store) == frozenset()


def test_what_nobody_asks_for_is_not_read_again_but_dropped(store: Store):
    copy = store.kept_calendars._copies[HOST]
    seen(store)
    copy.read_at = copy.asked_at = copy.read_at - RENEWED_SECONDS
    store.kept_calendars.renew(NOON)
    assert copy.calendar is None


def test_a_copy_that_is_dropped_amid_questions_answers_all_the_same(store: Store, other: Store):
    """It is read again by one thread while another one answers from it."""
    done = threading.Event()
    first_read = store.kept_calendars._copies[HOST].read_at

    def renew() -> None:
        while not done.is_set():
            for copy in list(store.kept_calendars._copies.values()):
                copy.read_at -= 2 * RENEWED_SECONDS
            store.kept_calendars.renew(NOON)

    with ThreadPoolExecutor(1) as pool:
        renewing = pool.submit(renew)
        try:
            for number in range(20):
                host = hosts(store)[number % 2]
                lease = booked(other, hours(24, 26), host)
                assert seen(store) == {host.id}
                give_up(other, lease)
                assert seen(store) == frozenset()
        finally:
            done.set()
        renewing.result()
    assert store.kept_calendars._copies[HOST].read_at != first_read


def test_old_notes_are_forgotten_but_for_the_last(store: Store, engine: Engine):
    for host in hosts(store):
        give_up(store, booked(store, hours(24, 26), host))
    seen(store)
    assert store.kept_calendars.forget_changes(NOON + HOUR, 10) == 1
    with store.transactions.reading() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(calendar_changes)).scalar_one() == 1
    with counted(engine) as statements:
        taken(store, hours(24, 48))
    assert statements.count == 1


def plan_now(store: Store, host, window) -> AllocationPlan:
    """Return what would book a host, as of what the store keeps."""
    with store.calendar.view_window(HOST, window, without_amounts=True, now=NOON, besides=None) as view:
        return AllocationPlan((), view.generations([host.id]))


def book_now(store: Store, host, window=None) -> None:
    """Book a host as a creation does: on the calendar that is kept."""
    window = window or hours(24, 26)
    lease = a_lease(window)
    known = plan_now(store, host, window).generations
    book(store, lease, AllocationPlan(promised(lease, [host]), known))


def test_what_a_manager_books_itself_is_not_read_back(store: Store, engine: Engine):
    one, two = hosts(store)
    for begin in (24, 30):
        book_now(store, one, hours(begin, begin + 2))
    book_now(store, two)
    with counted(engine) as statements:
        assert taken(store, hours(24, 48)) == {one.id, two.id}
    assert statements.count == 1
    assert not store.kept_calendars._copies[HOST].noted
    assert seen(store) == {one.id, two.id}


@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_beside_a_booking_of_another_manager_its_own_is_read_too(store: Store, other: Store, first: str):
    one = hosts(store)[0]
    mine = [(store, hours(24, 26)), (other, hours(30, 32))]
    for who, window in mine if first == "ours" else reversed(mine):
        taken(who, hours(24, 48))
        book_now(who, one, window)
    assert taken(store, hours(30, 31)) == taken(store, hours(24, 25)) == {one.id}
    assert seen(store) == {one.id}


def test_what_it_has_booked_and_others_have_given_up_is_free(store: Store, other: Store):
    one, two = hosts(store)
    window = hours(24, 26)
    lease, known = a_lease(window), plan_now(store, one, window).generations
    give_up(other, book(store, lease, AllocationPlan(promised(lease, [one]), known)))
    book_now(store, two)
    assert seen(store) == {two.id}


def test_a_commit_that_fails_leaves_no_note(store: Store, other: Store):
    one = hosts(store)[0]
    stale = plan_now(store, one, hours(24, 26)).generations
    book_now(other, one)
    lease = a_lease(hours(30, 32))
    with pytest.raises(StaleCalendar):
        book(store, lease, AllocationPlan(promised(lease, [one]), stale))
    assert not store.kept_calendars._copies[HOST].noted
    assert seen(store) == {one.id}


def test_a_manager_among_others_asks_in_one_transaction_at_once(store: Store, other: Store, engine: Engine):
    one, two = hosts(store)
    book_now(other, one)
    assert taken(store, hours(24, 48)) == {one.id}
    book_now(other, two)
    with counted(engine) as statements:
        assert taken(store, hours(24, 48)) == {one.id, two.id}
    assert statements.count == 2
