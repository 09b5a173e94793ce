# SPDX-License-Identifier: Apache-2.0
"""Databases for tests, at once, and one after the other on a server."""

from __future__ import annotations

from sqlalchemy.engine import Engine

from blazar.store.sql.engine import WRITES
from blazar.store.sql.tables import metadata
from blazarconformance.databases import contents, fill, new_sqlite, sqlite_engine

__all__ = ["contents", "empty", "fill", "new_sqlite", "sqlite_engine"]


def empty(engine: Engine) -> None:
    """Empty all tables of a database, and have a server number their rows from 1 again."""
    numbered = {
        table.name: column.name
        for table in metadata.sorted_tables
        for column in table.primary_key
        if column.autoincrement is True
    }
    statements = [f"DELETE FROM {table.name}" for table in reversed(metadata.sorted_tables)]
    with engine.execution_options(**{WRITES: True}).begin() as connection:
        if connection.dialect.name == "postgresql":
            statements += [f"SELECT setval('{name}_{column}_seq', 1, false)" for name, column in numbered.items()]
            connection.exec_driver_sql("; ".join(statements))
            return
        for statement in statements:
            connection.exec_driver_sql(statement)
        if connection.dialect.name == "sqlite":
            return
        # To number a table from 1 takes MariaDB longer than most tests; most tests number nothing in most tables.
        begun = (
            "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND auto_increment > 1"
        )
        for name in sorted(numbered.keys() & set(connection.exec_driver_sql(begun).scalars())):
            connection.exec_driver_sql(f"ALTER TABLE {name} AUTO_INCREMENT = 1")
