# SPDX-License-Identifier: Apache-2.0
"""Statements of every booking, which are compiled once for a database and then only get their values.

SQLAlchemy finds out at each execution what a statement is compiled to, and which of its values have to be converted;
that takes as long as the driver needs to send them.

Each statement is also a trip to the database, for which a transaction keeps its locks, and others wait. Of these writes
nothing is asked but whether they have found their rows. So PostgreSQL gets them as one statement: they wait until the
next one that is executed otherwise, or the commit, so that reads of the transaction find them; where they fail then,
it is undone as ever. All parts of one statement see the rows as they were before it, and their order is open:
so no two of them write to one table. Foreign keys are checked at its end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Dialect

from blazar.model.base.errors import BlazarError
from blazar.model.base.values import dataclass

KEPT = 512
"""How many statements, and how many ways to convert a value, are remembered."""

MOST_TOGETHER = 8
"""More rows than a lease usually has are sent one by one: their statement would be another for each number of them."""

LONGEST, MOST_VALUES = 16384, 400
"""Characters and values of a statement that psycopg remembers; a booking of a few hosts has a third of that."""

Values = tuple[Any, ...] | dict[str, Any]
"""Parameters as a driver takes them: by place, or by name."""

_WAITING = "blazar_waiting_writes"
"""Key of the info of a connection: what is to be sent, if the transaction collects it."""

_NAME = re.compile(r"%\((\w+)\)s")

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


@dataclass(frozen=True, slots=True)
class ExpectedRows:
    """How many rows a write has to find, and the error if it does not."""

    rows: int
    missed: Callable[[], BlazarError]


@dataclass(frozen=True, slots=True)
class _UnsentWrite:
    """A write that is to be sent: its table, its text, and its values by name."""

    table: str
    text: str
    values: dict[str, Any]
    expected: ExpectedRows | None = None


def update(
    connection: Connection, statement: sa.Update, given: Mapping[str, Any], expected: ExpectedRows | None = None
) -> None:
    """Execute a statement that is built once, with a value for each of its parameters: now, or with other writes.

    The error of ``expected`` if not all rows are found.
    """
    prepared = _prepare(statement, connection.dialect)
    values = {**prepared.own, **given} if prepared.own else given
    pairs = [(name, values[name] if write is None else write(values[name])) for name, write in prepared.parameters]
    waiting = connection.info.get(_WAITING)
    if waiting is not None:
        assert isinstance(statement.table, sa.Table)
        _collect(connection, waiting, _UnsentWrite(statement.table.name, prepared.text, dict(pairs), expected))
        return
    sent = tuple([value for _, value in pairs]) if prepared.by_place else dict(pairs)
    found = connection.exec_driver_sql(prepared.text, sent)
    if expected is not None and found.rowcount != expected.rows:
        raise expected.missed()


def insert_rows(connection: Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows, at least one, in one statement, now or with other writes; nobody asks for their keys.

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
    first, waiting = sent[0], connection.info.get(_WAITING)
    if waiting is not None and together and isinstance(first, dict):
        _collect(connection, waiting, _UnsentWrite(table.name, into.text, first))
    else:
        connection.exec_driver_sql(into.text, first if together else sent)


def update_rows(
    connection: Connection, table: sa.Table, names: tuple[str, ...], rows: Sequence[Mapping[str, Any]]
) -> None:
    """Give rows new values of these columns in one statement: at most ``MOST_TOGETHER`` of them, at least one.

    Each row has the ``id`` as ``key``, and a ``new_`` value of each column.
    """
    first, given = rows[0], {}
    # What all rows get is sent once.
    varied = tuple([name for name in names if any(row[f"new_{name}"] != first[f"new_{name}"] for row in rows[1:])])
    for number, row in enumerate(rows):
        given[f"key_{number}"] = row["key"]
        for name in varied:
            given[f"new_{name}_{number}"] = row[f"new_{name}"]
    for name in names:
        given[f"new_{name}"] = first[f"new_{name}"]
    update(connection, _update_each(table, names, varied, len(rows)), given)


@lru_cache(KEPT)
def _update_each(table: sa.Table, names: tuple[str, ...], varied: tuple[str, ...], count: int) -> sa.Update:
    keys = [sa.bindparam(f"key_{number}", type_=table.c.id.type) for number in range(count)]
    values: dict[str, sa.ColumnElement[Any]] = {}
    for name in names:
        type_ = table.c[name].type
        of_each = [sa.bindparam(f"new_{name}_{number}", type_=type_) for number in range(count)]
        values[name] = (
            sa.case(*[(table.c.id == key, value) for key, value in zip(keys, of_each, strict=True)])
            if name in varied
            else sa.bindparam(f"new_{name}", type_=type_)
        )
    return table.update().where(table.c.id.in_(keys)).values(values)


@contextmanager
def writes_together(connection: Connection) -> Iterator[None]:
    """Collect what is sent in a block that is all of a transaction, for PostgreSQL; send it at the end."""
    connection.info[_WAITING] = []
    try:
        yield
        _send(connection)
    finally:
        # Nobody else finds what was not sent.
        del connection.info[_WAITING]


def _collect(connection: Connection, waiting: list[_UnsentWrite], write: _UnsentWrite) -> None:
    if any(other.table == write.table for other in waiting):
        _send(connection)
    waiting.append(write)


def _send(connection: Connection) -> None:
    """Send what is collected, if anything is; the errors that were expected of it."""
    waiting: list[_UnsentWrite] | None = connection.info.get(_WAITING)
    if not waiting:
        return
    # What is sent here is executed, before which all is sent that waits.
    mine = tuple(waiting)
    waiting.clear()
    if len(mine) == 1:
        counts: Sequence[int] = [connection.exec_driver_sql(mine[0].text, mine[0].values).rowcount]
    else:
        text, names = _join(tuple([(write.text, tuple(write.values), write.expected is not None) for write in mine]))
        values = dict(zip(names, chain.from_iterable([write.values.values() for write in mine]), strict=True))
        counts = connection.exec_driver_sql(text, values).one()
    for write, count in zip(mine, counts, strict=True):
        if write.expected is not None and count != write.expected.rows:
            raise write.expected.missed()


def keep_long_statements() -> None:
    """Have psycopg remember where the values of long statements are, too: it looks through their text each time.

    It does so that many statements that are never sent again do not fill its memory; of these there are few.
    """
    from psycopg import _queries

    _queries.MAX_CACHED_STATEMENT_LENGTH, _queries.MAX_CACHED_STATEMENT_PARAMS = LONGEST, MOST_VALUES


def send_before(connection: Connection, *_: object) -> None:
    """Send what is collected before another statement is executed: a listener of SQLAlchemy."""
    if connection.info.get(_WAITING):
        _send(connection)


@lru_cache(KEPT)
def _join(writes: tuple[tuple[str, tuple[str, ...], bool], ...]) -> tuple[str, tuple[str, ...]]:
    """Return one statement that does what several do, and the names of all their values in it.

    Of each there is the text, the names of its values, and whether the statement returns how many rows it has written.
    """
    parts, counts, names = list[str](), list[str](), list[str]()
    for number, (text, given, is_counted) in enumerate(writes):
        own = _NAME.sub(rf"%(w{number}_\1)s", text)
        parts.append(f"w{number} AS (\n{own}{' RETURNING 1' if is_counted else ''}\n)")
        counts.append(f"(SELECT count(*) FROM w{number})" if is_counted else "0")
        names += [f"w{number}_{name}" for name in given]
    separator = ",\n"
    return f"WITH {separator.join(parts)}\nSELECT {', '.join(counts)}", tuple(names)


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
