# SPDX-License-Identifier: Apache-2.0
"""Migrations on MariaDB and MySQL that can be repeated after an interruption, and that wear no table out.

There each change of a table commits by itself. A migration that was interrupted is run once more from its begin, so
each of its steps does nothing if it has been done. InnoDB keeps columns that were dropped in the rows, until a new one
does not fit any more: so a column is dropped by a copy of the table. Give
``table_options`` to ``op.create_table`` in each migration.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from alembic.ddl.mysql import MariaDBImpl, MySQLImpl
from sqlalchemy import Column, Index, Table
from sqlalchemy.schema import Constraint, CreateIndex


class _Repeatable(MySQLImpl):
    """Looks before each step whether it has been done."""

    def create_table(self, table: Table, **more: Any) -> None:
        """Create a table with its indexes."""
        if table.name not in self._look().get_table_names():
            super().create_table(table, **more)
            return
        for index in table.indexes:
            if not self._has_index(table.name, index.name):
                self._exec(CreateIndex(index))

    def drop_table(self, table: Table, **more: Any) -> None:
        """Drop a table."""
        if table.name in self._look().get_table_names():
            super().drop_table(table, **more)

    def add_column(self, table_name: str, column: Column[Any], **more: Any) -> None:
        """Add a column."""
        if not self._has_column(table_name, column.name):
            super().add_column(table_name, column, **more)

    def drop_column(self, table_name: str, column: Column[Any], **more: Any) -> None:
        """Drop a column, and the room that it takes in each row."""
        if self._has_column(table_name, column.name):
            quote = self.dialect.identifier_preparer.quote
            self._exec(f"ALTER TABLE {quote(table_name)} DROP COLUMN {quote(column.name)}, ALGORITHM=COPY")

    def create_index(self, index: Index, **more: Any) -> None:
        """Create an index."""
        if index.table is None or not self._has_index(index.table.name, index.name):
            super().create_index(index, **more)

    def drop_index(self, index: Index, **more: Any) -> None:
        """Drop an index."""
        if index.table is None or self._has_index(index.table.name, index.name):
            super().drop_index(index, **more)

    def add_constraint(self, const: Any, **more: Any) -> None:
        """Add a constraint."""
        if not self._has_constraint(const):
            super().add_constraint(const, **more)

    def drop_constraint(self, const: Constraint, **more: Any) -> None:
        """Drop a constraint."""
        if self._has_constraint(const):
            super().drop_constraint(const, **more)

    def _look(self) -> sa.Inspector:
        """Return what is there now; an inspector remembers what it has seen."""
        return sa.inspect(self.connection)

    def _has_column(self, table: str, name: str) -> bool:
        return any(column["name"] == name for column in self._look().get_columns(table))

    def _has_index(self, table: str, name: str | None) -> bool:
        return any(index["name"] == name for index in self._look().get_indexes(table))

    def _has_constraint(self, constraint: Any) -> bool:
        look, table = self._look(), constraint.table.name
        found: list[Any] = [*look.get_unique_constraints(table), *look.get_foreign_keys(table)]
        found += look.get_check_constraints(table)
        return any(check["name"] == constraint.name for check in found)


class RepeatableMySQL(_Repeatable):
    """The steps on MySQL, or on MariaDB with a URL of ``mysql``."""

    __dialect__ = "mysql"


class RepeatableMariaDB(_Repeatable, MariaDBImpl):
    """The steps on MariaDB."""

    __dialect__ = "mariadb"


def table_options() -> dict[str, Any]:
    """Return options under which texts compare as on the other databases: byte by byte, and with trailing spaces.

    The two servers have different names for that collation.
    """
    mariadb = getattr(op.get_bind().dialect, "is_mariadb", False)
    collation = "utf8mb4_nopad_bin" if mariadb else "utf8mb4_0900_bin"
    return {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": collation}
