# SPDX-License-Identifier: Apache-2.0
"""URLs that people write, databases that are gone, and values that none can keep."""

from __future__ import annotations

import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace

import pytest
from sqlalchemy import event, make_url
from sqlalchemy.exc import DBAPIError

from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import Conflict, InvalidInput, StoreUnavailable
from blazar.model.calendar.allocations import AllocationPlan
from blazar.store.sql.engine import make_engine
from blazar.store.sql.migrate import upgrade
from blazar.store.store import Store
from tests.conftest import fresh_database
from tests.proxy import Proxy
from tests.store.builders import HOST, NOON, a_host, a_lease, book, booked, hours


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
    assert make_engine(url).driver == driver


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
        make_engine(url)
    assert "secret" not in refusal.value.message


def test_a_database_without_tables_is_a_503_and_the_log_says_why(database_url, caplog):
    engine = make_engine(database_url)
    with pytest.raises(StoreUnavailable):
        Store(engine).leases.of_project(None)
    assert "leases" in caplog.text
    assert caplog.text.count("\n") == 1
    engine.dispose()


def test_what_is_inserted_twice_is_a_conflict(engine):
    store, lease = Store(engine), a_lease(hours(0, 1))
    book(store, lease, AllocationPlan())
    with pytest.raises(Conflict):
        book(store, lease, AllocationPlan())
    assert store.leases.one(lease.id) == lease


def test_a_value_that_does_not_fit_is_the_callers_mistake(engine):
    if engine.dialect.name == "sqlite":
        pytest.skip("SQLite keeps texts of any length")
    store = Store(engine)
    with pytest.raises(InvalidInput):
        book(store, replace(a_lease(hours(0, 1)), name="x" * 256), AllocationPlan())
    assert store.leases.of_project(None) == ()


def test_a_connection_that_the_server_closed_is_replaced(engine, monkeypatch):
    store, lease = Store(engine), a_lease(hours(0, 1))
    book(store, lease, AllocationPlan())
    monkeypatch.setattr("blazar.store.sql.lost_connections.IDLE_SECONDS", 0)
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
        engine = make_engine(url.set(host="127.0.0.1", port=proxy.port).render_as_string(False))
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
def cut_at_return(far):
    """A store whose connections are cut when they are returned, after each commit, until that list is empty."""
    engine, proxy, _ = far
    upgrade(engine)
    cuts = []
    event.listen(engine, "reset", lambda *_: cuts and (cuts.pop(), proxy.break_latest()), insert=True)
    engine.dispose()
    return Store(engine), cuts


def book_one(store):
    lease = a_lease(hours(0, 1))
    book(store, lease, AllocationPlan())
    return lease


def test_connections_that_are_cut_after_a_commit_are_logged_in_one_sentence_and_replaced(cut_at_return, caplog):
    store, cuts = cut_at_return
    caplog.set_level("WARNING")
    leases = []
    for _ in range(3):
        cuts.append(1)
        leases.append(book_one(store))
        # PostgreSQL's driver has nothing to roll back, and so the next one meets it.
        with suppress(StoreUnavailable):
            store.leases.of_project(None)
    assert {lease.id for lease in store.leases.of_project(None)} == {lease.id for lease in leases}
    assert not [record for record in caplog.records if record.exc_info]
    assert not cuts
    assert len(caplog.records) == 1
    assert caplog.records[0].levelname == ("WARNING" if "was cut" in caplog.text else "ERROR")


@pytest.mark.slow
def test_a_server_that_takes_what_it_is_sent_and_never_answers_is_given_up(far, monkeypatch):
    known, proxy, _ = far
    upgrade(known)
    limit = "STATEMENT_SECONDS" if known.dialect.name == "mysql" else "ANSWER_SECONDS"
    monkeypatch.setattr(f"blazar.store.sql.engine.{limit}", 1)
    engine = make_engine(known.url.render_as_string(hide_password=False))
    store = Store(engine)
    try:
        for ask in (lambda: store.leases.of_project(None), lambda: book_one(store)):
            ask()
            proxy.freeze()
            begin = time.monotonic()
            with pytest.raises(StoreUnavailable):
                ask()
            assert time.monotonic() - begin < 5
            # What it was sent meanwhile it is sent now, and nobody listens.
            proxy.thaw()
            ask()
        assert len(store.leases.of_project(None)) == 2
    finally:
        engine.dispose()


NAP = {"postgresql": "SELECT pg_sleep(1)", "mysql": "SELECT sleep(1)"}


@pytest.mark.slow
def test_idle_connections_to_a_silent_server_are_given_up_sooner_than_a_statement(far, monkeypatch):
    monkeypatch.setattr("blazar.store.sql.engine.CONNECT_SECONDS", 2)
    # PyMySQL waits so long for a new connection, too.
    monkeypatch.setattr("blazar.store.sql.engine.STATEMENT_SECONDS", 6)
    monkeypatch.setattr("blazar.store.sql.lost_connections.PING_SECONDS", 0.5)
    monkeypatch.setattr("blazar.store.sql.lost_connections.IDLE_SECONDS", 0)
    known, proxy, _ = far
    engine = make_engine(known.url.render_as_string(hide_password=False))
    try:
        assert read_from(engine, 5) == 0
        proxy.freeze()
        begin = time.monotonic()
        for _ in range(2):
            with pytest.raises(DBAPIError):
                read_from(engine, 1)
        assert time.monotonic() - begin < 18
        proxy.thaw()
        assert read_from(engine, 5) == 0
        # A statement has the usual time again.
        with engine.connect() as connection:
            assert connection.exec_driver_sql(NAP[engine.dialect.name]).scalar_one() is not None
    finally:
        engine.dispose()


@pytest.mark.parametrize("far", ["mariadb"], indirect=True)
def test_the_log_says_when_connections_are_not_cut_any_more(cut_at_return, caplog, monkeypatch):
    store, cuts = cut_at_return
    monkeypatch.setattr("blazar.model.base.log_lines.CALM", 0)
    caplog.set_level("INFO", "blazar.store")
    cuts.append(1)
    book_one(store)
    book_one(store)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert "Connections to the database stay open again" in caplog.text


@pytest.mark.parametrize("far", ["postgresql"], indirect=True)
def test_a_connection_that_is_cut_among_statements_sent_together_is_replaced_in_one_sentence(far, caplog):
    engine, _, made = far
    caplog.set_level("WARNING")
    with engine.connect() as connection:
        # So psycopg leaves it where it is cut while several rows are inserted.
        driver = connection.connection.driver_connection
        driver.execute("SELECT 1")
        driver.pgconn.enter_pipeline_mode()
        driver.pgconn.send_query_params(b"SELECT 1", [])
    assert [(record.levelname, record.exc_info) for record in caplog.records] == [("WARNING", None)]
    assert "was cut, and is replaced" in caplog.text
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT 1").scalar_one() == 1
    assert len(made) == 2


def test_an_error_at_the_return_of_a_connection_that_is_not_cut_is_logged_with_its_traceback(far, caplog, monkeypatch):
    engine, _, _ = far

    def fail(connection):
        raise engine.dialect.loaded_dbapi.ProgrammingError(1064, "a bug")

    with engine.connect():
        monkeypatch.setattr(engine.dialect, "do_rollback", fail)
    assert "a bug" in caplog.text
    assert [record.levelname for record in caplog.records if record.exc_info] == ["ERROR"]


def test_a_transaction_that_nobody_ended_is_rolled_back_when_its_connection_is_returned(far):
    engine, _, made = far
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE kept (number INTEGER)")
    raw = engine.raw_connection()
    raw.cursor().execute("INSERT INTO kept VALUES (1)")
    raw.close()
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM kept").scalar_one() == 0
    assert len(made) == 1


@pytest.fixture
def narrow(database_url):
    """An engine that keeps two connections, and the list of what was connected."""
    first = make_engine(database_url)
    upgrade(first)
    first.dispose()
    engine, made = make_engine(database_url, pool_size=2), []
    event.listen(engine, "connect", lambda *connection: made.append(connection))
    yield engine, made
    engine.dispose()


@pytest.mark.slow
def test_a_burst_of_short_transactions_opens_no_connections_beyond_those_that_are_kept(narrow, monkeypatch):
    # On a busy machine even a short transaction may take longer than others wait for its connection.
    monkeypatch.setattr("blazar.store.sql.transactions.PLACE_SECONDS", 30)
    engine, made = narrow
    store = Store(engine)
    together = threading.Barrier(16)

    def read_and_write(number):
        together.wait()
        for _ in range(5):
            lease = a_lease(hours(0, 1))
            book(store, lease, AllocationPlan())
            assert store.leases.one(lease.id) == lease

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(read_and_write, range(16)))
    assert len(store.leases.of_project(None)) == 80
    assert len(made) <= 2


def test_beside_long_transactions_there_is_a_connection_all_the_same(narrow, monkeypatch):
    monkeypatch.setattr("blazar.store.sql.transactions.PLACE_SECONDS", 0.01)
    engine, made = narrow
    store, lease = Store(engine), a_lease(hours(0, 1))
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(
                store.calendar.view_window(HOST, hours(0, 3), without_amounts=False, now=NOON, besides=None)
            )
        book(store, lease, AllocationPlan())
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


@pytest.mark.slow
def test_a_database_that_writes_times_in_another_way_is_read_all_the_same(postgresql_url):
    first = make_engine(postgresql_url)
    upgrade(first)
    with first.connect() as connection:
        name = connection.engine.url.database
        connection.exec_driver_sql(f"ALTER DATABASE {name} SET datestyle TO 'German, DMY'")
        connection.exec_driver_sql(f"ALTER DATABASE {name} SET timezone TO 'Asia/Tokyo'")
        connection.commit()
    first.dispose()
    engine = make_engine(postgresql_url)
    store = Store(engine)
    host, half = a_host(store), Amounts.of({"VCPU": 8})
    for window in (hours(0, 2), hours(2, 4)):
        booked(store, window, host, per_instance=half)
    with store.calendar.view_window(HOST, hours(0, 3), without_amounts=False, now=NOON, besides=None) as view:
        assert view.snapshot.occupancy.peaks == {host.id: half}
    engine.dispose()
