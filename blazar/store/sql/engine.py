# SPDX-License-Identifier: Apache-2.0
"""Connections: one way to read and one way to write, on each of the databases.

A read is one consistent snapshot over all its statements; a write is short and sees the newest rows.

========== ================================= ==========================================
database   a read                            a write
========== ================================= ==========================================
SQLite     ``BEGIN``, write-ahead log        ``BEGIN IMMEDIATE``: one writer at a time
PostgreSQL REPEATABLE READ, read only        READ COMMITTED
MariaDB    REPEATABLE READ                   READ COMMITTED
========== ================================= ==========================================

A read of one statement is a snapshot by itself: it has no transaction around it, which costs two trips.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, InterfaceError, NoSuchModuleError, OperationalError, SQLAlchemyError

from blazar.model.base.errors import InvalidInput
from blazar.store.sql.lost_connections import replace_lost_connections
from blazar.store.sql.silent_server import limit_answers

WRITES = "blazar_writes"
"""Execution option of a connection for writes."""

SINGLE = "blazar_single"
"""Execution option of a connection for a read of one statement."""

LOCK_SECONDS = 20
STATEMENT_SECONDS = 60
CONNECT_SECONDS = 10
ANSWER_SECONDS = STATEMENT_SECONDS + 5
"""After the limit of a statement, which a server that works keeps itself, nothing is to be expected of it."""
CHECKPOINT_MILLISECONDS = 500
_SQLITE_WAITS = "busy_timeout=30000"


def make_engine(
    url: str, *, pool_size: int = 20, recycle: int = 1800, overflow: int = 20, pool_timeout: float = 30
) -> Engine:
    """Return an engine for a SQLAlchemy URL of SQLite, PostgreSQL (psycopg) or MariaDB/MySQL (pymysql).

    ``pool_size`` connections are kept open, and each is replaced when it is ``recycle`` seconds old (-1: never);
    ``overflow`` further ones may be open for a while, and one is waited for at most ``pool_timeout`` seconds. URLs for
    the older drivers (psycopg2, MySQLdb) work as well. No connection is opened yet. InvalidInput if the URL is
    invalid, or of another database, or of one in memory, which the threads of a process cannot share.
    """
    try:
        parsed = _with_our_driver(_parse_url(url))
        backend = parsed.get_backend_name()
        pool = {"pool_size": pool_size, "max_overflow": overflow, "pool_timeout": pool_timeout, "pool_recycle": recycle}
        # Errors go to the log, and secrets of users are among the parameters of statements.
        engine = sa.create_engine(parsed, hide_parameters=True, **pool, **_CONNECT[backend]())
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
        raise InvalidInput(
            f"the database URL cannot be used: {error}; write postgresql+psycopg://USER:PASSWORD@HOST/DATABASE"
        ) from error
    except ValueError as error:
        raise InvalidInput(f"the parameters of the database URL cannot be used: {error}") from error
    if backend == "sqlite":
        event.listen(engine, "connect", _sqlite_pragmas)
    else:
        replace_lost_connections(engine)
    if backend == "postgresql":
        limit_answers(engine, ANSWER_SECONDS)
    if backend in ("mysql", "mariadb"):
        _check_for_pymysql(engine, parsed)
        event.listen(engine, "do_connect", _share_tls_context(engine))
    if backend in _BEGIN:
        event.listen(engine, "begin", _BEGIN[backend])
    return engine


def explain_failure(error: SQLAlchemyError) -> str:
    """Return one sentence on a database that cannot be used: what its driver says first, and where to look."""
    said = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
    sentence = f"the database cannot be used: {said}"
    if not isinstance(error, OperationalError | InterfaceError):
        return sentence
    return f"{sentence}; check that it runs, and host, user, password and name in its URL, [database] connection"


def _check_for_pymysql(engine: Engine, url: URL) -> None:
    """Raise InvalidInput for a URL that the driver of MariaDB and MySQL refuses with an error of programmers."""
    if not url.database:
        raise InvalidInput("the database URL names no database; write mysql+pymysql://USER:PASSWORD@HOST/DATABASE")
    known = inspect.signature(engine.dialect.loaded_dbapi.connections.Connection).parameters
    _, options = engine.dialect.create_connect_args(url)
    for name in options:
        if name not in known:
            raise InvalidInput(f"the database URL has the parameter {name}, which PyMySQL does not have; remove it")


def _parse_url(url: str) -> URL:
    try:
        return make_url(url)
    except ValueError as error:
        # Raised for a port that is not a number, with a message that does not say so.
        raise InvalidInput("the database URL cannot be used: host:port is not valid") from error


def _with_our_driver(url: URL) -> URL:
    backend, _, driver = url.drivername.partition("+")
    if backend not in _DRIVERS:
        raise InvalidInput(f"database {backend!r} is not supported; use sqlite, postgresql or mysql")
    ours, older = _DRIVERS[backend]
    if driver not in ("", ours, older):
        raise InvalidInput(f"the database driver {driver!r} is not supported; use {backend}+{ours}://…")
    if backend == "sqlite" and url.database in (None, "", ":memory:"):
        raise InvalidInput("a SQLite database needs a file; write sqlite:////path/to/blazar.sqlite")
    return url.set(drivername=f"{backend}+{ours}")


def _sqlite() -> dict[str, Any]:
    return {"connect_args": {"timeout": 30, "check_same_thread": False}}


def _postgresql() -> dict[str, Any]:
    limits = f"-c statement_timeout={STATEMENT_SECONDS}s -c lock_timeout={LOCK_SECONDS}s"
    # Times that are read as strings must have the same format everywhere.
    manners = "-c timezone=UTC -c datestyle=ISO"
    return {
        "connect_args": {
            "connect_timeout": CONNECT_SECONDS,
            # The limit of a statement is the server's. This one holds where the machine is no longer there.
            "tcp_user_timeout": 1000 * STATEMENT_SECONDS,
            "keepalives_idle": STATEMENT_SECONDS // 2,
            "keepalives_interval": STATEMENT_SECONDS // 6,
            "keepalives_count": 3,
            "options": f"{limits} {manners}",
        },
        "isolation_level": "READ COMMITTED",
        "pool_reset_on_return": None,
    }


def _mysql() -> dict[str, Any]:
    return {
        "connect_args": {
            "connect_timeout": CONNECT_SECONDS,
            "read_timeout": STATEMENT_SECONDS,
            "write_timeout": STATEMENT_SECONDS,
            "charset": "utf8mb4",
            "init_command": f"SET SESSION innodb_lock_wait_timeout={LOCK_SECONDS}, sql_mode='TRADITIONAL'",
        },
        "isolation_level": "READ COMMITTED",
        "pool_reset_on_return": None,
    }


def _sqlite_pragmas(connection: Any, _: object) -> None:
    # Transactions begin where our code begins them (below), not where the driver guesses.
    connection.isolation_level = None
    for pragma in (_SQLITE_WAITS, "journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")
    # What is deleted is written over. In the write-ahead log it stays until a checkpoint.
    connection.execute("PRAGMA secure_delete=ON")


def empty_write_ahead_log(connection: Any) -> bool:
    """Empty the write-ahead log of SQLite, of a connection without a transaction; return False if a reader needs it."""
    cursor = connection.cursor()
    # Writers wait as long as this waits for readers.
    cursor.execute(f"PRAGMA busy_timeout={CHECKPOINT_MILLISECONDS}")
    try:
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        busy, _, _ = cursor.fetchone()
    finally:
        cursor.execute(f"PRAGMA {_SQLITE_WAITS}")
    return not busy


def make_read_engine(engine: Engine) -> Engine:
    """Return the engine for reads; that of PostgreSQL sets the mode without a statement of its own."""
    if engine.dialect.name != "postgresql":
        return engine
    return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def make_single_read_engine(engine: Engine) -> Engine:
    """Return the engine for reads of one statement, without a transaction where that saves a trip to the database."""
    if engine.dialect.name == "postgresql":
        return engine.execution_options(isolation_level="AUTOCOMMIT")
    return engine.execution_options(**{SINGLE: True})


def _share_tls_context(engine: Engine) -> Callable[..., Any]:
    """Return a function that connects to MariaDB and MySQL with one TLS context for all connections.

    The driver creates one for each, and reads the certificates of all authorities for it, even if it checks none; that
    takes longer than the rest. If the URL names files, they are read each time: they may have been renewed.
    """
    driver = engine.dialect.loaded_dbapi
    contexts: dict[object, Any] = {}

    class Connection(driver.connections.Connection):  # type: ignore[misc, name-defined]
        def _create_ssl_ctx(self, options: Any) -> Any:
            named = {f"ssl_{name}": options[name] for name in _FILES if options.get(name)} if options else {}
            if named or not isinstance(options, dict):
                return self._read_ssl_ctx(options, named)
            key = tuple(sorted(options.items()))
            if key not in contexts:
                contexts[key] = super()._create_ssl_ctx(options)
            return contexts[key]

        def _read_ssl_ctx(self, options: Any, named: dict[str, str]) -> Any:
            try:
                return super()._create_ssl_ctx(options)
            except OSError as error:
                # The error of OpenSSL does not say which file it is about.
                files = ", ".join(f"{name}={path}" for name, path in named.items())
                raise driver.OperationalError(f"{files} cannot be read: {error.strerror or error}") from error

    def connect_sharing(dialect: object, record: object, args: Any, options: Any) -> Any:
        return Connection(*args, **options)

    return connect_sharing


_FILES = ("ca", "capath", "cert", "key")
"""Names of files with certificates and keys, among the options for TLS."""


def _sqlite_begin(connection: Connection) -> None:
    options = connection.get_execution_options()
    if not options.get(SINGLE):
        connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get(WRITES) else "BEGIN")


def _mysql_begin(connection: Connection) -> None:
    options = connection.get_execution_options()
    if not options.get(WRITES) and not options.get(SINGLE):
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")


# ``transactions`` can tell deadlocks from other errors for these drivers only.
_DRIVERS = {
    "sqlite": ("pysqlite", None),
    "postgresql": ("psycopg", "psycopg2"),
    "mysql": ("pymysql", "mysqldb"),
    "mariadb": ("pymysql", "mysqldb"),
}
_CONNECT = {"sqlite": _sqlite, "postgresql": _postgresql, "mysql": _mysql, "mariadb": _mysql}
_BEGIN = {"sqlite": _sqlite_begin, "mysql": _mysql_begin, "mariadb": _mysql_begin}
