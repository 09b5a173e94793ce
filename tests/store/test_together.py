# SPDX-License-Identifier: Apache-2.0
"""Writes that are sent together do what they do one by one: PostgreSQL gets them in one statement."""

from __future__ import annotations

import psycopg._queries
import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from blazar.model.base.errors import StaleCalendar
from blazar.model.calendar.allocations import AllocationPlan
from blazar.store.booking import lease_writes
from blazar.store.booking.commit import LeaseWrite
from blazar.store.sql.engine import make_engine
from blazar.store.sql.prepared import MOST_TOGETHER, ExpectedRows, update
from blazar.store.sql.tables import events, leases
from blazar.store.sql.transactions import Clash, Transactions
from blazar.store.store import Store
from tests.statements import counted
from tests.store.builders import NOON, a_host, a_lease, book, booked, generations, hours, promised

TRIPS = {"postgresql": 1}
"""In how many trips a database gets the writes of a booking; others: in one for each."""


@pytest.fixture
def store(engine: Engine) -> Store:
    return Store(engine)


RENAME = leases.update().where(leases.c.id == sa.bindparam("key")).values(name=sa.bindparam("new"))


def rename(connection: Connection, id_: str, name: str) -> None:
    """Send a new name of a lease, which has to be there."""
    update(connection, RENAME, {"key": id_, "new": name}, ExpectedRows(1, lambda: StaleCalendar("missed")))


def names(connection: Connection) -> set[str]:
    return set(connection.execute(sa.select(leases.c.name)).scalars())


def count(engine: Engine, table: sa.Table) -> int:
    with engine.connect() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()


def insert(connection: Connection, *made) -> None:
    lease_writes.insert(connection, [LeaseWrite(None, lease) for lease in made], at=NOON)


@pytest.mark.parametrize("size", [1, 2, MOST_TOGETHER])
def test_a_booking_is_one_trip_where_that_can_be(store: Store, engine: Engine, size: int):
    made = [a_host(store, number) for number in range(1, size + 1)]
    lease = a_lease(hours(24, 26))
    plan = AllocationPlan(promised(lease, made), generations(store, made))
    with counted(engine) as statements:
        book(store, lease, plan)
    assert statements.count == 6
    assert len(statements.trips) == TRIPS.get(engine.dialect.name, 6)
    assert generations(store, made) == {id_: known + 1 for id_, known in plan.generations.items()}


def test_the_driver_looks_through_the_text_of_a_booking_once(store: Store, monkeypatch: pytest.MonkeyPatch):
    made = [a_host(store, number) for number in range(1, 9)]
    booked(store, hours(24, 26), *made)
    looked_through = []
    # What it does not remember it asks this for.
    monkeypatch.setattr(psycopg._queries, "_query2pg_nocache", lambda query, _: looked_through.append(query))
    booked(store, hours(26, 28), *made)
    assert not looked_through


def test_what_a_server_has_prepared_stays_so_after_a_read(engine: Engine):
    if engine.dialect.name != "postgresql":
        pytest.skip("others prepare nothing")
    own = make_engine(engine.url.render_as_string(hide_password=False))
    transactions = Transactions(own)
    for _ in range(7):
        with transactions.reading() as connection:
            names(connection)
    prepared = "SELECT statement FROM pg_prepared_statements WHERE statement LIKE '%leases%'"
    assert len(transactions.select(sa.text(prepared))) == 1
    own.dispose()


@pytest.mark.parametrize("size", [1, 3, MOST_TOGETHER + 1])
def test_one_resource_that_others_have_booked_undoes_the_booking(store: Store, engine: Engine, size: int):
    made = [a_host(store, number) for number in range(1, size + 1)]
    lease, known = a_lease(hours(24, 26)), generations(store, made)
    booked(store, hours(30, 31), made[-1])
    with pytest.raises(StaleCalendar):
        book(store, lease, AllocationPlan(promised(lease, made), known))
    assert count(engine, leases) == 1
    assert generations(store, made[:-1]) == {host.id: known[host.id] for host in made[:-1]}


def test_who_reads_in_the_transaction_finds_what_was_sent(store: Store):
    lease = a_lease(hours(24, 26))

    def work(connection: Connection) -> set[str]:
        insert(connection, lease)
        return names(connection)

    assert store.transactions.write(work) == {lease.name}


def test_two_writes_of_one_row_come_in_their_order(store: Store, engine: Engine):
    lease = a_lease(hours(24, 26))

    def work(connection: Connection) -> None:
        insert(connection, lease)
        for name in ("first", "second"):
            rename(connection, lease.id, name)

    store.transactions.write(work)
    with engine.connect() as connection:
        assert names(connection) == {"second"}


@pytest.mark.parametrize("is_read", [True, False])
def test_what_finds_no_row_undoes_all_that_is_sent_with_it(store: Store, engine: Engine, is_read: bool):
    lease = a_lease(hours(24, 26))

    def work(connection: Connection) -> None:
        insert(connection, lease)
        rename(connection, "of nobody", "x")
        if is_read:
            names(connection)

    with pytest.raises(StaleCalendar):
        store.transactions.write(work)
    assert count(engine, leases) == count(engine, events) == 0


def test_what_is_there_already_is_a_clash(store: Store, engine: Engine):
    lease = a_lease(hours(24, 26))
    store.transactions.write(lambda connection: insert(connection, lease))
    with pytest.raises(Clash):
        store.transactions.write(lambda connection: insert(connection, lease))
    assert count(engine, leases) == 1


def test_what_a_failed_transaction_has_not_sent_is_found_by_nobody(store: Store, engine: Engine):
    """Its connection goes to others."""

    def work(connection: Connection) -> None:
        insert(connection, a_lease(hours(24, 26)))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.transactions.write(work)
    for _ in range(3):
        assert count(engine, leases) == 0
        with store.transactions.reading() as connection:
            assert names(connection) == set()


def test_more_rows_than_are_sent_together_come_in_their_order(store: Store, engine: Engine):
    many = [a_lease(hours(24, 26)) for _ in range(20)]

    def work(connection: Connection) -> None:
        insert(connection, *many)
        rename(connection, many[0].id, "other")

    store.transactions.write(work)
    assert count(engine, leases) == 20
    assert count(engine, events) == sum(len(lease.events) for lease in many)
    with engine.connect() as connection:
        assert "other" in names(connection)
