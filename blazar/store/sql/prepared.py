# SPDX-License-Identifier: Apache-2.0
"""Statements of every booking, which are compiled once for a database and then only get their values.

SQLAlchemy finds out at each execution what a statement is compiled to, and which of its values have to be converted;
that takes as long as the driver needs to send them. What is returned here is for ``exec_driver_sql``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Dialect

from blazar.model.base.values import dataclass

KEPT = 512
"""How many statements, and how many ways to convert a value, are remembered."""

MOST_TOGETHER = 8
"""More rows than a lease usually has are sent one by one: their statement would be another for each number of them."""

Values = tuple[Any, ...] | dict[str, Any]
"""Parameters as a driver takes them: by place, or by name."""

Conversion = Callable[[Any], Any] | None
"""What converts a value for a driver; None: nothing has to."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """The text of a statement, and its parameters in their order, each with what converts its value."""

    text: str
    parameters: tuple[tuple[str, Conversion], ...]
    by_place: bool
    own: Mapping[str, Any]
    """The values that the statement has itself."""


def prepare(connection: Connection, statement: sa.Update, given: Mapping[str, Any]) -> tuple[str, Values]:
    """Return a statement that is built once, with a value for each of its parameters."""
    prepared = _prepare(statement, connection.dialect)
    values = {**prepared.own, **given} if prepared.own else given
    pairs = [(name, values[name] if write is None else write(values[name])) for name, write in prepared.parameters]
    return prepared.text, tuple([value for _, value in pairs]) if prepared.by_place else dict(pairs)


def prepare_insert(
    connection: Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]
) -> tuple[str, Values | list[Values]]:
    """Return what inserts rows, at least one, in one statement; nobody asks for their keys.

    Columns that are null in all of them are left out, as each value costs time to send: they must have no default, and
    no JSON in which null is a value.
    """
    given = [name for name in rows[0] if rows[0][name] is not None or any(row[name] is not None for row in rows)]
    together = len(rows) <= MOST_TOGETHER
    into = _prepare_insert(table, tuple(given), len(rows) if together else 1, connection.dialect)
    sent: list[Values] = []
    for part in [rows] if together else [[row] for row in rows]:
        values = [part[n][name] if write is None else write(part[n][name]) for n, name, write in into.places]
        sent.append(tuple(values) if into.by_place else dict(zip(into.keys, values, strict=True)))
    return into.text, sent[0] if together else sent


@dataclass(frozen=True, slots=True)
class _PreparedInsert:
    """The text of an INSERT, and of each of its parameters the key, the row, the column, and the conversion."""

    text: str
    keys: tuple[str, ...]
    places: tuple[tuple[int, str, Conversion], ...]
    by_place: bool


@lru_cache(KEPT)
def _prepare_insert(table: sa.Table, names: tuple[str, ...], count: int, dialect: Dialect) -> _PreparedInsert:
    places = {f"{name}_{number}": (number, name) for number in range(count) for name in names}
    values = [
        {name: sa.bindparam(f"{name}_{number}", type_=table.c[name].type) for name in names} for number in range(count)
    ]
    found = _prepare(table.insert().inline().values(values), dialect)
    of_each = tuple([(*places[key], write) for key, write in found.parameters])
    return _PreparedInsert(found.text, tuple([key for key, _ in found.parameters]), of_each, found.by_place)


@lru_cache(KEPT)
def _prepare(statement: sa.Insert | sa.Update, dialect: Dialect) -> _Prepared:
    compiled = statement.compile(dialect=dialect)
    assert isinstance(compiled, sa.sql.compiler.SQLCompiler)
    binds = compiled.binds
    parameters = [(name, _find_conversion(binds[name].type, dialect)) for name in compiled.positiontup or binds]
    own = {name: bind.value for name, bind in binds.items() if not bind.required}
    return _Prepared(str(compiled), tuple(parameters), compiled.positiontup is not None, own)


@lru_cache(KEPT)
def _find_conversion(type_: sa.types.TypeEngine[Any], dialect: Dialect) -> Conversion:
    return type_.dialect_impl(dialect).bind_processor(dialect)
