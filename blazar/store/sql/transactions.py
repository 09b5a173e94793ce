# SPDX-License-Identifier: Apache-2.0
"""Transactions: one for a read, one for a write, which is retried after a deadlock or the like."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from sqlalchemy import Executable, event
from sqlalchemy.engine import Connection, Engine, Row
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import QueuePool

from blazar.context import may_change
from blazar.model.base.errors import BlazarError, Conflict, InvalidInput, StoreUnavailable
from blazar.model.base.log_lines import Trouble
from blazar.observe import metrics
from blazar.observe.spans import record_write
from blazar.store.sql import state_log
from blazar.store.sql.engine import WRITES, empty_write_ahead_log, make_read_engine, make_single_read_engine
from blazar.store.sql.prepared import keep_long_statements, send_before, writes_together

LOG = logging.getLogger(__name__)
T = TypeVar("T")
P = ParamSpec("P")

ATTEMPTS, CLASHES = 8, 4
PATIENCE_SECONDS = 30
"""No attempt begins later than this: each may have waited long for a lock."""

FIRST_PAUSE, LONGEST_PAUSE = 0.01, 0.5
"""Maximum seconds before the second attempt, and before any attempt."""

JOURNAL_WRITTEN = "blazar_journal_written"
"""Key of the info of a connection: its transaction has written to the journal."""

PLACE_SECONDS = 0.5
"""Seconds to wait for a pooled connection before a temporary one is opened."""

SQLSTATES_OF_BAD_LUCK = frozenset({"40001", "40P01", "55P03"})
"""PostgreSQL: serialization failure, deadlock, lock not available."""
MYSQL_ERRORS_OF_BAD_LUCK = frozenset({1205, 1213, 1020})
"""MariaDB: lock wait timeout, deadlock, record has changed."""

FULL = frozenset({3, 28, 1021, 1114})
"""MariaDB: no space left on device, disk full, table full."""

PAUSE_OF_FULL = 10.0
"""Seconds between two attempts of one work while a disk is full."""


class Clash(Conflict):
    """A row to be inserted exists already. The caller decides what that means."""


class Transactions:
    """Runs reads and writes on an engine.

    Raises StoreUnavailable if the database does not work, InvalidInput if it cannot store a value.
    """

    def __init__(self, engine: Engine, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.engine = engine
        self._together: Callable[[Connection], AbstractContextManager[Any]] = nullcontext
        if engine.dialect.name == "postgresql":
            self._together = writes_together
            keep_long_statements()
            if not event.contains(engine, "before_cursor_execute", send_before):
                event.listen(engine, "before_cursor_execute", send_before)
        self.journal_listeners: list[Callable[[], None]] = []
        """What is called after each commit of a transaction that has written to the journal."""
        self._reading = make_read_engine(engine)
        self._single = make_single_read_engine(engine)
        self._writing = engine.execution_options(**{WRITES: True})
        # A connection beyond those of the pool is closed after one use, and costs the database a process: so a burst of
        # short transactions uses the pool only. A thread that waits behind long ones still gets an extra connection.
        kept = engine.pool.size() if isinstance(engine.pool, QueuePool) else 1
        self._places = threading.BoundedSemaphore(kept)
        # SQLite has one writer at a time, and a waiting writer sleeps longer and longer. A lock between the threads of
        # a process is cheaper, and takes no connections from readers.
        self._unreadable = Trouble(LOG, "The database can be read", clock=clock)
        self._unwritable = Trouble(LOG, "The database can be written", clock=clock)
        self._turn: AbstractContextManager[Any] = threading.Lock() if engine.dialect.name == "sqlite" else nullcontext()

    @property
    def connections(self) -> tuple[int, int]:
        """How many connections are at work, and how many are kept open besides."""
        pool = self.engine.pool
        return (pool.checkedout(), pool.checkedin()) if isinstance(pool, QueuePool) else (0, 0)

    @contextmanager
    def reading(self, *, single: bool = False) -> Iterator[Connection]:
        """Open one consistent snapshot of the database; a ``single`` statement has no transaction around it."""
        begin, outcome = time.monotonic(), "ok"
        mine = self._places.acquire(timeout=PLACE_SECONDS)
        try:
            with (self._single if single else self._reading).connect() as connection:
                yield connection
                if connection.dialect.name == "postgresql" and not single:
                    # After a rollback psycopg forgets what statements the server has prepared.
                    connection.commit()
        except (SQLAlchemyError, PoolTimeout) as error:
            outcome = "failed"
            raise self._translate_error(error, self._unreadable) from error
        finally:
            if mine:
                self._places.release()
            _count_transaction("read", outcome, begin)
        if self._unreadable.lasts:
            self._unreadable.log_recovery()

    def select(self, query: Executable, values: Mapping[str, object] | None = None) -> Sequence[Row[*tuple[Any, ...]]]:
        """Return the rows of one query, with these values as its parameters."""
        with self.reading(single=True) as connection:
            return connection.execute(query, values).all()

    def scalars(self, query: Executable) -> Sequence[Any]:
        """Return the first column of the rows of one query."""
        return [row[0] for row in self.select(query)]

    def scalar(self, query: Executable) -> Any:
        """Return the first column of the first row of one query; None if there is none."""
        return next(iter(self.scalars(query)), None)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` in a write transaction; any exception rolls everything back.

        It is retried after a deadlock or the like, so it must have no effect outside the database. Clash if a row that
        it inserts exists already, also if it was inserted concurrently.
        """
        until = time.monotonic() + PATIENCE_SECONDS
        attempt = 0
        while True:
            try:
                begin = time.monotonic()
                with self._turn, self._wait_for_connection(), self._writing.begin() as connection:
                    # What an earlier attempt has noted did not happen.
                    connection.info.pop(state_log.STATES_NOTED, None)
                    connection.info.pop(JOURNAL_WRITTEN, None)
                    with self._together(connection):
                        found = work(connection)
                    changes = state_log.noted_changes(connection)
                    journal_written = connection.info.pop(JOURNAL_WRITTEN, False)
                    # The commit may take effect although its answer is lost.
                    may_change()
                record_write(begin, time.monotonic())
                _count_transaction("write", "ok", begin)
                if changes:
                    state_log.log_changes(changes)
                if journal_written:
                    for listen in self.journal_listeners:
                        listen()
                if self._unwritable.lasts:
                    self._unwritable.log_recovery()
                return found
            except (SQLAlchemyError, PoolTimeout) as error:
                attempt += 1
                is_last = not _is_worth_retrying(error) or attempt == ATTEMPTS or time.monotonic() >= until
                _count_transaction("write", "failed" if is_last else "retried", begin)
                if is_last:
                    raise self._translate_error(error, self._unwritable) from error
            # Full jitter: transactions that conflicted once should not conflict again.
            time.sleep(random.uniform(0, min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (attempt - 1))))

    def write_beside_others(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` as ``write`` does, and a few times more after a Clash: then it finds what others wrote."""
        for _ in range(CLASHES):
            with suppress(Clash):
                return self.write(work)
        return self.write(work)

    def overwrite_deleted(self) -> bool:
        """Write over what was deleted or replaced in the files of SQLite; return whether it is gone from all of them.

        It is not while somebody reads an earlier state. Other databases clean up by themselves.
        """
        if self.engine.dialect.name != "sqlite":
            return True
        try:
            with self._turn, self._wait_for_connection(), closing(self.engine.raw_connection()) as connection:
                return empty_write_ahead_log(connection)
        except self.engine.dialect.loaded_dbapi.Error as error:
            raise self._translate_error(error, self._unwritable) from error

    @contextmanager
    def _wait_for_connection(self) -> Iterator[None]:
        """Wait for one of the pooled connections, for a limited time."""
        mine = self._places.acquire(timeout=PLACE_SECONDS)
        try:
            yield
        finally:
            if mine:
                self._places.release()

    def _translate_error(self, error: Exception, trouble: Trouble) -> BlazarError:
        # The statement and its parameters are logged at debug level only: they may contain what users wrote.
        LOG.debug("Database error", exc_info=error)
        if isinstance(error, IntegrityError):
            return Clash("the same was written concurrently; please try again")
        if isinstance(error, DataError):
            return InvalidInput("a value is too long or too large for the database, or has a character it cannot keep")
        cause = error.orig if isinstance(error, DBAPIError) else error
        verb = "read" if trouble is self._unreadable else "written"
        # The first line has the reason (no such table, connection refused); further ones quote the statement.
        reason = str(cause).partition("\n")[0]
        trouble.log_failure(f"The database cannot be {verb}: {type(cause).__name__}: {reason}")
        unavailable = StoreUnavailable("the database is not available; please try again")
        if _is_full(cause):
            unavailable.pause = PAUSE_OF_FULL
        return unavailable


def _count_transaction(kind: str, outcome: str, begin: float) -> None:
    metrics.DB_TRANSACTIONS.add(kind, outcome)
    metrics.DB_TRANSACTION_DURATION.note(time.monotonic() - begin, kind)


class _Writer(Protocol):
    """A store: it has transactions."""

    @property
    def _transactions(self) -> Transactions: ...


StoreT = TypeVar("StoreT", bound=_Writer)


def atomic(method: Callable[Concatenate[StoreT, Connection, P], T]) -> Callable[Concatenate[StoreT, P], T]:
    """Run a method of a store in a write transaction, as ``Transactions.write`` does: it may run more than once.

    The method gets the connection; callers do not give one.
    """

    @wraps(method)
    def write(store: StoreT, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return store._transactions.write(lambda connection: method(store, connection, *args, **kwargs))

    return write


def _is_worth_retrying(error: BaseException) -> bool:
    if not isinstance(error, DBAPIError) or isinstance(error, IntegrityError):
        return False
    origin = error.orig
    if getattr(origin, "sqlstate", None) in SQLSTATES_OF_BAD_LUCK:
        return True
    code = origin.args[0] if origin is not None and origin.args else None
    return code in MYSQL_ERRORS_OF_BAD_LUCK or "database is locked" in str(origin)


def _is_full(cause: BaseException | None) -> bool:
    """Tell whether a disk of the database has no room: that takes longer than a restart."""
    code = cause.args[0] if cause is not None and cause.args else None
    return getattr(cause, "sqlstate", None) == "53100" or code in FULL or "disk is full" in str(cause)
