# SPDX-License-Identifier: Apache-2.0
"""What was forgotten is in no file of SQLite, where it is nobody else's to clean up."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from blazar.model.base.errors import StoreUnavailable
from blazar.store.store import Store

SECRET = "c2VjcmV0LXdvcmQtb2YtY3VyaWU="


def files_with(engine, text: str) -> set[str]:
    file = Path(engine.url.database)
    return {each.name for each in file.parent.glob(f"{file.name}*") if text.encode() in each.read_bytes()}


def write_and_replace(store):
    """Write a secret that fits in a page, and one that does not; replace one and delete the other."""
    for size in (1, 3000):
        for forget in ("UPDATE notes SET text = NULL", "DELETE FROM notes WHERE text IS NOT NULL"):
            for statement in (f"INSERT INTO notes (text) VALUES ('{SECRET * size}')", forget):
                store.transactions.write(partial(run, statement))


def run(statement, connection):
    connection.exec_driver_sql(statement)


@pytest.fixture
def store(sqlite):
    with sqlite.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)")
    return Store(sqlite)


def test_what_was_replaced_is_in_no_file_after_it_is_erased(store, sqlite):
    write_and_replace(store)
    assert files_with(sqlite, SECRET)
    assert store.overwrite_deleted()
    assert files_with(sqlite, SECRET) == set()


def test_what_was_replaced_is_in_no_file_after_the_last_connection_is_closed(store, sqlite):
    write_and_replace(store)
    sqlite.dispose()
    assert files_with(sqlite, SECRET) == set()
    assert {file.name for file in Path(sqlite.url.database).parent.iterdir()} == {"blazar.sqlite"}


def test_somebody_who_reads_an_earlier_state_is_waited_for_a_moment_and_keeps_nobody_from_writing(
    store, sqlite, monkeypatch
):
    monkeypatch.setattr("blazar.store.sql.engine.CHECKPOINT_MILLISECONDS", 10)
    write_and_replace(store)
    with store.transactions.reading() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM notes").scalar_one() == 2
        write_and_replace(store)
        assert not store.overwrite_deleted()
        write_and_replace(store)
    assert store.overwrite_deleted()
    assert files_with(sqlite, SECRET) == set()
    with closing(sqlite.raw_connection()) as connection:
        assert connection.cursor().execute("PRAGMA busy_timeout").fetchone() == (30000,)


def test_a_database_that_cannot_be_written_is_said_as_such(store, monkeypatch, sqlite):
    def fail(connection):
        raise sqlite.dialect.loaded_dbapi.OperationalError("disk I/O error")

    monkeypatch.setattr("blazar.store.sql.transactions.empty_write_ahead_log", fail)
    with pytest.raises(StoreUnavailable):
        store.overwrite_deleted()


def test_other_databases_clean_up_by_themselves(engine):
    store = Store(engine)
    assert store.overwrite_deleted()
