# SPDX-License-Identifier: Apache-2.0
"""URLs that people write, databases that are gone, and values that none can keep."""

from __future__ import annotations

import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest
from sqlalchemy import event, make_url
from sqlalchemy.exc import DBAPIError

from blazar.model.amounts import Amounts
from blazar.model.demand import Plan
from blazar.model.errors import Conflict, InvalidInput, StoreUnavailable
from blazar.store.engine import connect
from blazar.store.migrate import upgrade
from blazar.store.store import Store
from tests.conftest import fresh_database
from tests.proxy import Proxy
from tests.store.builders import HOST, NOON, a_host, a_lease, booked, hours


@pytest.mark.parametrize(
    ("url", "driver"),
    [
        ("postgresql://u@h/x", "psycopg"),
        ("postgresql+psycopg2://u@h/x", "psycopg"),
        ("mysql://u@h/x", "pymysql"),
        ("mysql+mysqldb://u@h/x?charset=utf8mb4", "pymysql"),
        ("mariadb+pymysql://u@h/x", "pymysql"),
    ],
)
def test_urls_of_older_drivers_serve_as_well(url, driver):
    assert connect(url).driver == driver


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("sqlite://", "needs a file"),
        ("sqlite:///:memory:", "needs a file"),
        ("oracle://u:secret@h/x", "not supported"),
        ("postgresql+asyncpg://u:secret@h/x", "use postgresql\\+psycopg"),
        ("postgresql://u:secret@h:port/x", "host:port"),
        ("u:secret@h", "cannot be used"),
        ("", "cannot be used"),
    ],
)
def test_a_url_that_cannot_serve_is_refused_with_a_sentence_and_without_its_secret(url, says):
    with pytest.raises(InvalidInput, match=says) as refusal:
        connect(url)
    assert "secret" not in refusal.value.message


def test_a_database_without_tables_is_a_503_and_the_log_says_why(database_url, caplog):
    engine = connect(database_url)
    with pytest.raises(StoreUnavailable):
        Store(engine).leases.of_project(None)
    assert "leases" in caplog.text
    assert caplog.text.count("\n") == 1
    engine.dispose()


def test_what_is_inserted_twice_is_a_conflict(engine):
    store, lease = Store(engine), a_lease(hours(0, 1))
    store.calendar.book(lease, Plan())
    with pytest.raises(Conflict):
        store.calendar.book(lease, Plan())
    assert store.leases.one(lease.id) == lease


def test_a_value_that_does_not_fit_is_the_callers_mistake(engine):
    if engine.dialect.name == "sqlite":
        pytest.skip("SQLite keeps texts of any length")
    store = Store(engine)
    with pytest.raises(InvalidInput):
        store.calendar.book(replace(a_lease(hours(0, 1)), name="x" * 256), Plan())
    assert store.leases.of_project(None) == ()


def test_a_connection_that_the_server_closed_is_replaced(engine, monkeypatch):
    store, lease = Store(engine), a_lease(hours(0, 1))
    store.calendar.book(lease, Plan())
    monkeypatch.setattr("blazar.store.engine.IDLE_SECONDS", 0)
    with engine.connect() as connection:
        connection.connection.driver_connection.close()
    assert store.leases.one(lease.id) == lease
    store.leases.save(lease, replace(lease, name="renamed"), at=NOON)


@pytest.fixture(params=["postgresql", "mariadb"])
def far(request, tmp_path):
    """An engine whose connections go through a proxy, with the proxy and the list of what was connected."""
    with contextmanager(fresh_database)(request.param, tmp_path) as text:
        url, made = make_url(text), []
        proxy = Proxy(url.host, url.port)
        engine = connect(url.set(host="127.0.0.1", port=proxy.port).render_as_string(False))
        event.listen(engine, "connect", lambda *connection: made.append(connection))
        yield engine, proxy, made
        engine.dispose()
        proxy.cut()


def read_from(engine, count):
    """Use so many connections at once; return how many of them were lost."""
    with ExitStack() as stack:
        connections = [stack.enter_context(engine.connect()) for _ in range(count)]
        lost = 0
        for connection in connections:
            try:
                connection.exec_driver_sql("SELECT 1")
            except DBAPIError:
                lost += 1
        return lost


def test_a_lost_connection_costs_one_new_one_and_the_others_go_on(far):
    engine, proxy, made = far
    assert read_from(engine, 5) == 0
    for number in range(1, 4):
        proxy.break_latest()
        assert read_from(engine, 5) == 1
        assert read_from(engine, 5) == 0
        assert len(made) == 5 + number


def test_after_a_restart_of_the_database_one_statement_fails_and_not_one_on_every_connection(far):
    engine, proxy, made = far
    assert read_from(engine, 5) == 0
    proxy.cut()
    proxy.mend()
    assert [read_from(engine, 1) for _ in range(4)] == [1, 0, 0, 0]
    assert read_from(engine, 5) == 0
    assert len(made) == 10


@pytest.fixture
def narrow(database_url):
    """An engine that keeps two connections, and the list of what was connected."""
    first = connect(database_url)
    upgrade(first)
    first.dispose()
    engine, made = connect(database_url, pool_size=2), []
    event.listen(engine, "connect", lambda *connection: made.append(connection))
    yield engine, made
    engine.dispose()


def test_a_burst_of_short_transactions_opens_no_connections_beyond_those_that_are_kept(narrow, monkeypatch):
    # On a busy machine even a short transaction may take longer than others wait for its connection.
    monkeypatch.setattr("blazar.store.transactions.PLACE_SECONDS", 30)
    engine, made = narrow
    store = Store(engine)
    together = threading.Barrier(16)

    def read_and_write(number):
        together.wait()
        for _ in range(5):
            lease = a_lease(hours(0, 1))
            store.calendar.book(lease, Plan())
            assert store.leases.one(lease.id) == lease

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(read_and_write, range(16)))
    assert len(store.leases.of_project(None)) == 80
    assert len(made) <= 2


def test_beside_long_transactions_there_is_a_connection_all_the_same(narrow, monkeypatch):
    monkeypatch.setattr("blazar.store.transactions.PLACE_SECONDS", 0.01)
    engine, made = narrow
    store, lease = Store(engine), a_lease(hours(0, 1))
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(store.calendar.view(HOST, hours(0, 3), whole_only=False, now=NOON, besides=None))
        store.calendar.book(lease, Plan())
        assert store.leases.one(lease.id) == lease
        assert len(made) == 3
    assert len(store.leases.of_project(None)) == 1


def test_the_certificates_of_authorities_are_not_read_for_every_connection(far, monkeypatch):
    engine, _, _ = far
    made = []
    make = ssl.create_default_context
    monkeypatch.setattr(ssl, "create_default_context", lambda **options: made.append(options) or make(**options))
    assert read_from(engine, 5) == 0
    assert len(made) <= 1


def test_a_database_that_writes_times_in_another_way_is_read_all_the_same(postgresql_url):
    first = connect(postgresql_url)
    upgrade(first)
    with first.connect() as connection:
        name = connection.engine.url.database
        connection.exec_driver_sql(f"ALTER DATABASE {name} SET datestyle TO 'German, DMY'")
        connection.exec_driver_sql(f"ALTER DATABASE {name} SET timezone TO 'Asia/Tokyo'")
        connection.commit()
    first.dispose()
    engine = connect(postgresql_url)
    store = Store(engine)
    host, half = a_host(store), Amounts.of({"VCPU": 8})
    for window in (hours(0, 2), hours(2, 4)):
        booked(store, window, host, per_instance=half)
    with store.calendar.view(HOST, hours(0, 3), whole_only=False, now=NOON, besides=None) as view:
        assert view.snapshot.occupancy.peaks == {host.id: half}
    engine.dispose()
