# SPDX-License-Identifier: Apache-2.0
"""Databases for tests, at once, and one after the other on a server."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from blazar.store.sql.engine import WRITES
from blazar.store.sql.tables import metadata
from blazarconformance.databases import contents, fill, new_sqlite, sqlite_engine

__all__ = ["contents", "empty", "fill", "new_sqlite", "sqlite_engine"]


def empty(engine: Engine) -> None:
    """Empty all tables of a database, and let the numbering of their rows begin at 1 again."""
    with engine.execution_options(**{WRITES: True}).begin() as connection:
        for table in reversed(metadata.sorted_tables):
            connection.execute(table.delete())
        for table in metadata.sorted_tables:
            for column in table.primary_key:
                if column.autoincrement is True:
                    _renumber(connection, table.name, column.name)


def _renumber(connection: sa.Connection, table: str, column: str) -> None:
    match connection.dialect.name:
        case "postgresql":
            connection.exec_driver_sql(f"SELECT setval('{table}_{column}_seq', 1, false)")
        case "mysql" | "mariadb":
            connection.exec_driver_sql(f"ALTER TABLE {table} AUTO_INCREMENT = 1")
