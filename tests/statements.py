# SPDX-License-Identifier: Apache-2.0
"""Counting SQL statements, and the steps that SQLite makes for them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlalchemy import event
from sqlalchemy.engine import Engine

_PART = re.compile(r"^w\d+ AS \(\n(.*?)\n\)", re.DOTALL | re.MULTILINE)
_FRAME = ("BEGIN", "COMMIT", "ROLLBACK", "SET ", "PRAGMA", "SAVEPOINT")


@dataclass(slots=True)
class Statements:
    """What was executed, without the frames of transactions; ``trips`` have what was sent, some of it together."""

    texts: list[str] = field(default_factory=list)
    trips: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.texts)


def split(statement: str) -> list[str]:
    """Return the writes that are sent together in a statement, as databases get them that take one at a time."""
    return _PART.findall(statement.removeprefix("WITH ")) or [statement]


@contextmanager
def counted(engine: Engine) -> Iterator[Statements]:
    """Count the statements that an engine executes in the block."""
    found = Statements()

    def note(connection, cursor, statement, parameters, context, many):
        if not statement.lstrip().upper().startswith(_FRAME):
            found.trips.append(statement)
            found.texts.extend(split(statement))

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(engine, "before_cursor_execute", note)


@dataclass(slots=True)
class Steps:
    """How many instructions of its virtual machine SQLite has executed."""

    count: int = 0


@contextmanager
def steps(engine: Engine) -> Iterator[Steps]:
    """Count the steps of all statements that an engine on SQLite executes in the block."""
    found = Steps()

    def step() -> int:
        found.count += 1
        return 0

    def note(connection, cursor, statement, parameters, context, many):
        cursor.connection.set_progress_handler(step, 1)

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(engine, "before_cursor_execute", note)
        engine.dispose()
