# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL that takes what it is sent and never answers: its driver waits for it without a limit of its own.

The limit of a statement is the server's, and TCP notices only a machine that is gone: not a server that stands still,
nor a proxy before it whose server is gone. PyMySQL has such a limit (``read_timeout``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Dialect, Engine


def limit_answers(engine: Engine, seconds: float) -> None:
    """Give up a connection of psycopg whose server has not answered within ``seconds``: OperationalError."""

    def connect(dialect: Dialect, record: object, arguments: Any, parameters: dict[str, Any]) -> Any:
        made = _impatient(dialect.loaded_dbapi.Connection).connect(*arguments, **parameters)
        made.answer_seconds = seconds
        return made

    event.listen(engine, "do_connect", connect)


@contextmanager
def answering_within(connection: Any, seconds: float) -> Iterator[None]:
    """Have a connection of psycopg or PyMySQL wait for an answer so long only while the block runs."""
    limit = "answer_seconds" if hasattr(connection, "answer_seconds") else "_read_timeout"
    usual = getattr(connection, limit, None)
    setattr(connection, limit, seconds)
    try:
        yield
    finally:
        setattr(connection, limit, usual)


@cache
def _impatient(connection: Any) -> Any:
    """Return the class of connections that wait for an answer for ``answer_seconds`` at most; None: without a limit.

    The driver is imported only by those who use PostgreSQL.
    """
    from psycopg import OperationalError

    class Impatient(connection):  # type: ignore[misc]  # a class that is known at run time only
        answer_seconds: float | None = None

        def wait(self, gen: Generator[Any, Any, Any], *arguments: Any, **more: Any) -> Any:
            if self.answer_seconds is None:
                return super().wait(gen, *arguments, **more)
            try:
                wanted = next(gen)
            except StopIteration as over:
                # Nothing was sent, as where the driver only notes how the next transaction begins.
                return over.value
            limited = _give_up_after(self.answer_seconds, gen, wanted, self._abandon)
            return super().wait(limited, *arguments, **more)

        def _abandon(self) -> None:
            # What the server does later is of no use to anybody: its transaction ends with the connection.
            self.pgconn.finish()
            raise OperationalError(f"the server took the statement and did not answer within {self.answer_seconds:g} s")

    return Impatient


def _give_up_after(
    seconds: float, exchange: Generator[Any, Any, Any], wanted: Any, give_up: Callable[[], None]
) -> Generator[Any, Any, Any]:
    """Pass on an exchange with a server, that has begun, until it is over.

    The driver says each tenth of a second that nothing came.
    """
    end = time.monotonic() + seconds
    try:
        while True:
            ready = yield wanted
            if not ready and time.monotonic() >= end:
                give_up()
            wanted = exchange.send(ready)
    except StopIteration as over:
        return over.value
