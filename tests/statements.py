# SPDX-License-Identifier: Apache-2.0
"""Counting SQL statements."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlalchemy import event
from sqlalchemy.engine import Engine

_FRAME = ("BEGIN", "COMMIT", "ROLLBACK", "SET ", "PRAGMA", "SAVEPOINT")


@dataclass(slots=True)
class Statements:
    """What was executed, without the frames of transactions."""

    texts: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.texts)


@contextmanager
def counted(engine: Engine) -> Iterator[Statements]:
    """Count the statements that an engine executes in the block."""
    found = Statements()

    def note(connection, cursor, statement, parameters, context, many):
        if not statement.lstrip().upper().startswith(_FRAME):
            found.texts.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(engine, "before_cursor_execute", note)
