# SPDX-License-Identifier: Apache-2.0
"""Migrations, over our own connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError as MigrationError
from sqlalchemy.engine import Connection, Engine

from blazar.model.base.errors import InvalidInput
from blazar.store.sql.engine import WRITES
from blazar.store.sql.revisions import (
    EMPTY_ONE,
    FOLDER,
    ForeignTables,
    check_tables_ours,
    explain_revision,
    is_known,
    newest_revision,
    read_revision,
)
from blazar.store.sql.silent_server import answering_within
from blazar.store.sql.tables import metadata

MIGRATION_SECONDS = 6 * 3600
"""How long one statement of a migration may take: it may write each row of a table, which users do not wait for."""

__all__ = [
    "ForeignTables",
    "MigrationError",
    "UnknownTables",
    "check_revision",
    "read_revision",
    "find_differences",
    "downgrade",
    "newest_revision",
    "list_revisions",
    "new_revision",
    "stamp",
    "upgrade",
]


class UnknownTables(InvalidInput):
    """The database is from a newer version of this program, or from before its first release.

    The message says what to do.
    """


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Upgrade the database; an empty one gets all tables. ForeignTables if it has tables that we did not create."""
    tables = check_tables_ours(engine)
    # A table of revisions without one is what an interrupted first migration leaves on MariaDB.
    if (found := sorted(tables & metadata.tables.keys())) and "alembic_version" not in tables:
        raise ForeignTables(
            f"the database is not empty: it has tables that this program did not create ({', '.join(found)}); nothing "
            f"in it was changed: {EMPTY_ONE}"
        )
    check_revision(engine)
    with _connection(engine) as connection:
        command.upgrade(_config(connection), revision)


def check_revision(engine: Engine) -> None:
    """Raise UnknownTables if the database is at a revision whose migration is not here."""
    if not is_known(found := read_revision(engine)):
        raise UnknownTables(explain_revision(found) or "")


def downgrade(engine: Engine, revision: str) -> None:
    """Downgrade the database to a revision; ``base`` is the empty database."""
    check_tables_ours(engine)
    check_revision(engine)
    with _connection(engine) as connection:
        command.downgrade(_config(connection), revision)


def stamp(engine: Engine, revision: str) -> None:
    """Record the revision of the database, without a change of its tables. UnknownTables."""
    check_tables_ours(engine)
    check_revision(engine)
    with _connection(engine) as connection:
        command.stamp(_config(connection), revision)


def list_revisions() -> list[tuple[str, str]]:
    """Return all revisions with their descriptions, newest first."""
    return [(script.revision, script.doc) for script in ScriptDirectory.from_config(_config(None)).walk_revisions()]


def find_differences(engine: Engine) -> list[object]:
    """Return how the database differs from the tables of the code; empty if it does not."""
    check_tables_ours(engine)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        return list(compare_metadata(context, metadata))


def new_revision(engine: Engine, message: str) -> None:
    """Write a new migration script for the differences; its number is the next one."""
    check_tables_ours(engine)
    number = str(int(newest_revision()) + 1)
    with _connection(engine) as connection:
        command.revision(_config(connection), message=message, rev_id=number, autogenerate=True)


@contextmanager
def _connection(engine: Engine) -> Iterator[Connection]:
    with engine.execution_options(**{WRITES: True}).connect() as connection:
        if engine.dialect.name != "sqlite":
            with _patient(connection):
                yield connection
            return
        # SQLite changes a table by recreating it and dropping the old one, which would delete the rows that refer to
        # it, or fail because of them. The pragma works only outside of a transaction.
        driver: Any = connection.connection.driver_connection
        driver.execute("PRAGMA foreign_keys=OFF")
        try:
            yield connection
        finally:
            connection.rollback()
            driver.execute("PRAGMA foreign_keys=ON")


@contextmanager
def _patient(connection: Connection) -> Iterator[None]:
    """Let statements of a connection to a server take as long as those of migrations may; nobody uses it after."""
    try:
        with answering_within(connection.connection.driver_connection, MIGRATION_SECONDS):
            if connection.dialect.name == "postgresql":
                connection.exec_driver_sql(f"SET statement_timeout = '{MIGRATION_SECONDS}s'")
                connection.commit()
            yield
    finally:
        connection.rollback()
        connection.invalidate()


def _config(connection: Connection | None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(FOLDER))
    config.attributes["connection"] = connection
    return config
