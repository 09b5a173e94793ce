"""Connections: one way to read and one way to write, on each of the databases.

A read is one consistent picture, however many statements it takes; a write is short and sees the newest rows.

========== ================================= ==========================================
database   a read                            a write
========== ================================= ==========================================
SQLite     ``BEGIN``, write-ahead log        ``BEGIN IMMEDIATE``: one writer at a time
PostgreSQL REPEATABLE READ, read only        READ COMMITTED
MariaDB    REPEATABLE READ                   READ COMMITTED
========== ================================= ==========================================
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from blazar.model.errors import InvalidInput

WRITES = "blazar_writes"
"""Execution option of a connection that is going to write."""

LOCK_SECONDS = 20
STATEMENT_SECONDS = 60
CONNECT_SECONDS = 10


def connect(url: str, *, pool_size: int = 20) -> Engine:
    """Return an engine for a SQLAlchemy URL of SQLite, PostgreSQL (psycopg) or MariaDB/MySQL (pymysql).

    Nothing is connected yet. InvalidInput if the URL is none, or of another database.
    """
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
        if backend not in _CONNECT:
            raise InvalidInput(f"database {backend!r} is not supported; use sqlite, postgresql or mysql")
        engine = sa.create_engine(parsed, **_CONNECT[backend](pool_size))
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
        raise InvalidInput(f"the database URL can not be used: {error}") from error
    if backend == "sqlite":
        event.listen(engine, "connect", _sqlite_pragmas)
    event.listen(engine, "begin", _BEGIN[backend])
    return engine


def _sqlite(pool_size: int) -> dict[str, Any]:
    return {"connect_args": {"timeout": 30, "check_same_thread": False}, "pool_size": pool_size, "max_overflow": 20}


def _postgresql(pool_size: int) -> dict[str, Any]:
    limits = f"-c statement_timeout={STATEMENT_SECONDS}s -c lock_timeout={LOCK_SECONDS}s -c timezone=UTC"
    return {
        "connect_args": {"connect_timeout": CONNECT_SECONDS, "options": limits},
        "pool_size": pool_size,
        "max_overflow": 20,
        "pool_pre_ping": True,
        "isolation_level": "READ COMMITTED",
    }


def _mysql(pool_size: int) -> dict[str, Any]:
    return {
        "connect_args": {
            "connect_timeout": CONNECT_SECONDS,
            "read_timeout": STATEMENT_SECONDS,
            "write_timeout": STATEMENT_SECONDS,
            "charset": "utf8mb4",
            "init_command": f"SET SESSION innodb_lock_wait_timeout={LOCK_SECONDS}, sql_mode='TRADITIONAL'",
        },
        "pool_size": pool_size,
        "max_overflow": 20,
        "pool_pre_ping": True,
        "pool_recycle": 1800,
        "isolation_level": "READ COMMITTED",
    }


def _sqlite_pragmas(connection: Any, _: object) -> None:
    # Transactions begin where we say (below), not where the driver guesses.
    connection.isolation_level = None
    for pragma in ("busy_timeout=30000", "journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _is_write(connection: Connection) -> bool:
    return bool(connection.get_execution_options().get(WRITES))


def _sqlite_begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE" if _is_write(connection) else "BEGIN")


def _postgresql_begin(connection: Connection) -> None:
    if not _is_write(connection):
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")


def _mysql_begin(connection: Connection) -> None:
    if not _is_write(connection):
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")


_CONNECT = {"sqlite": _sqlite, "postgresql": _postgresql, "mysql": _mysql, "mariadb": _mysql}
_BEGIN = {
    "sqlite": _sqlite_begin,
    "postgresql": _postgresql_begin,
    "mysql": _mysql_begin,
    "mariadb": _mysql_begin,
}
