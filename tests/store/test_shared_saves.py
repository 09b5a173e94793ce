# SPDX-License-Identifier: Apache-2.0
"""Saves that several threads want at once are written together, and each has the outcome that it would have alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from blazar.context import scope
from blazar.model.base.errors import BlazarError, StaleLease, StoreUnavailable
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import LeaseStatus
from blazar.store.booking import shared_saves
from blazar.store.sql.engine import WRITES
from blazar.store.sql.tables import events, journal, leases
from blazar.store.store import Store
from tests.fencing.stage import until
from tests.statements import counted
from tests.store.builders import NOON, a_host, booked, hours


@pytest.fixture
def store(engine: Engine) -> Store:
    return Store(engine)


@pytest.fixture
def made(store: Store) -> list[Lease]:
    return [booked(store, hours(1, 2), a_host(store, number)) for number in range(1, 7)]


def begun(lease: Lease, **more: Any) -> Lease:
    """Return a lease with its start begun, as a claim does."""
    first, *others = lease.events
    claimed = replace(first, claimed_by=f"of {lease.id}", due_at=NOON, **more)
    return replace(lease, status=LeaseStatus.STARTING, events=(claimed, *others))


def save(store: Store, lease: Lease) -> Lease | BlazarError:
    """Save a lease as the thread of its event does; return it, or what is wrong."""
    with scope(request_id=f"req-{lease.id}"):
        try:
            return store.leases.save(lease, begun(lease), at=NOON)
        except BlazarError as error:
            return error


Saved = list[Future[Lease | BlazarError]]


@contextmanager
def first_held_up(
    store: Store,
    wanted: list[Lease],
    monkeypatch: pytest.MonkeyPatch,
    fail: Callable[[], None] = lambda: None,
    held: threading.Event | None = None,
) -> Iterator[Saved]:
    """Hold the write of the first lease up until the block is left, or ``held`` is set; all others come meanwhile."""
    write, held, begins = store.transactions.write, held or threading.Event(), threading.Event()

    def slowly(work: Callable[[sa.Connection], Any]) -> Any:
        if not begins.is_set():
            begins.set()
            assert held.wait(30)
        else:
            fail()
        return write(work)

    monkeypatch.setattr(store.transactions, "write", slowly)
    with ThreadPoolExecutor(len(wanted)) as threads:
        saved = [threads.submit(save, store, wanted[0])]
        assert begins.wait(30)
        saved += [threads.submit(save, store, lease) for lease in wanted[1:]]
        try:
            yield saved
        finally:
            held.set()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody gives up on a test that is slow."""
    monkeypatch.setattr(shared_saves, "PATIENCE_SECONDS", 30.0)


def all_wait(store: Store, number: int) -> None:
    until(lambda: len(store.bookings._shared_saves._waiting) == number)


def check_saved(store: Store, lease: Lease, found: Lease | BlazarError) -> None:
    """Check that a save was made, with its history, which names its own request."""
    assert isinstance(found, Lease), found
    assert store.leases.one(lease.id) == found
    assert (found.status, found.revision) == (LeaseStatus.STARTING, lease.revision + 1)
    assert found.events[0].claimed_by == f"of {lease.id}"


def test_saves_that_come_during_one_are_written_together(store, made, engine, monkeypatch, patient):
    with counted(engine) as alone:
        save(store, made[0])
    with counted(engine) as statements, first_held_up(store, made[1:], monkeypatch) as saved:
        all_wait(store, len(made) - 2)
    for lease, one in zip(made[1:], saved, strict=True):
        check_saved(store, lease, one.result())
    # As many as one write has, twice, and a look at which leases are as they were read.
    assert statements.count == 2 * alone.count + 1


def test_each_is_told_of_with_its_own_request(store, made, engine, monkeypatch, patient):
    with first_held_up(store, made, monkeypatch):
        all_wait(store, len(made) - 1)
    with store.transactions.reading() as connection:
        query = sa.select(journal.c.object_id, journal.c.global_request_id, journal.c.request_id)
        rows = connection.execute(query.where(journal.c.revision == 1)).all()
    told = {row[0]: row[1] or row[2] for row in rows}
    assert told == {lease.id: f"req-{lease.id}" for lease in made if lease.id in told}


def test_one_that_has_changed_keeps_no_other_from_being_saved(store, made, engine, monkeypatch, patient):
    stale = made[3]
    with first_held_up(store, made, monkeypatch) as saved:
        all_wait(store, len(made) - 1)
        with engine.execution_options(**{WRITES: True}).begin() as connection:
            connection.execute(leases.update().where(leases.c.id == stale.id).values(revision=5))
    for lease, one in zip(made, saved, strict=True):
        if lease is stale:
            assert isinstance(one.result(), StaleLease)
        else:
            check_saved(store, lease, one.result())


def test_two_of_one_lease_are_not_both_saved(store, made, monkeypatch, patient):
    with first_held_up(store, [made[0], made[1], made[1]], monkeypatch) as saved:
        all_wait(store, 2)
    outcomes = [one.result() for one in saved[1:]]
    assert sorted(isinstance(each, StaleLease) for each in outcomes) == [False, True]


def test_one_that_somebody_has_locked_keeps_no_other_waiting(store, made, engine, monkeypatch, patient):
    if engine.dialect.name == "sqlite":
        pytest.skip("SQLite locks all or nothing")
    with engine.execution_options(**{WRITES: True}).connect() as connection, connection.begin() as locks:
        connection.execute(sa.select(leases.c.id).where(leases.c.id == made[2].id).with_for_update())
        held = threading.Event()
        with first_held_up(store, made, monkeypatch, held=held) as saved:
            all_wait(store, len(made) - 1)
            held.set()
            others = [one for lease, one in zip(made, saved, strict=True) if lease is not made[2]]
            assert all(isinstance(one.result(15), Lease) for one in others)
            assert not saved[2].done()
            locks.rollback()
    check_saved(store, made[2], saved[2].result())


def test_without_a_database_each_is_told_so(store, made, monkeypatch, patient):
    def fail() -> None:
        raise StoreUnavailable("the database is not available; please try again")

    with first_held_up(store, made, monkeypatch, fail) as saved:
        all_wait(store, len(made) - 1)
    assert isinstance(saved[0].result(), Lease)
    assert all(isinstance(one.result(), StoreUnavailable) for one in saved[1:])


def test_who_waits_too_long_writes_for_itself(store, made, monkeypatch):
    monkeypatch.setattr(shared_saves, "PATIENCE_SECONDS", 0.01)
    with first_held_up(store, made[:3], monkeypatch) as saved:
        for lease, one in zip(made[1:3], saved[1:], strict=True):
            check_saved(store, lease, one.result(30))
        assert not saved[0].done()
    check_saved(store, made[0], saved[0].result())
    # And after that they are shared as before.
    monkeypatch.setattr(shared_saves, "PATIENCE_SECONDS", 30.0)
    with first_held_up(store, made[3:], monkeypatch) as saved:
        all_wait(store, 2)
    assert all(isinstance(one.result(), Lease) for one in saved)


def test_a_claim_that_was_renewed_meanwhile_ends_when_the_save_says(store, made, engine):
    first = save(store, made[0])
    assert isinstance(first, Lease)
    with engine.execution_options(**{WRITES: True}).begin() as connection:
        connection.execute(events.update().where(events.c.id == first.events[0].id).values(due_at=hours(5, 6).start))
    again = store.leases.save(first, begun(first, attempts=3), at=NOON)
    assert store.leases.one(first.id).events[0].due_at == again.events[0].due_at == NOON
