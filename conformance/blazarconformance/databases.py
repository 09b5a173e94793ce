# SPDX-License-Identifier: Apache-2.0
"""Databases with tables for tests, at once: making tables and putting statements into words is slow.

A SQLite database is a copy of one that the migrations made. Engines on SQLite share what SQLAlchemy remembers of
statements, which it would compute again for every engine: half of the time of a usual test.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Engine
from sqlalchemy.util import LRUCache

from blazar.store.sql.engine import make_engine
from blazar.store.sql.migrate import upgrade

_statements: LRUCache[Any, Any] = LRUCache(1500)


def new_sqlite(path: Path) -> Engine:
    """Return an engine on a new SQLite database with tables."""
    path.write_bytes(_migrated()[0])
    return sqlite_engine(path)


def sqlite_engine(path: Path) -> Engine:
    """Return an engine on a SQLite database that is there."""
    engine = make_engine(f"sqlite:///{path}")
    event.listen(engine, "connect", _need_not_outlive_the_machine)
    # Statements are remembered by dialect. This one has no state of a connection, and nothing listens to it.
    engine.dialect = _migrated()[1].dialect
    engine.update_execution_options(compiled_cache=_statements)
    return engine


def _need_not_outlive_the_machine(connection: Any, _: object) -> None:
    # A test waits for the disk otherwise, each time that the last connection is closed.
    connection.execute("PRAGMA synchronous=OFF")


def contents(engine: Engine) -> bytes:
    """Return all of a SQLite database that nobody uses at present."""
    # The last one who leaves a database writes all of it into the one file.
    engine.dispose()
    return _file(engine).read_bytes()


def fill(engine: Engine, filled: bytes) -> bool:
    """Make a SQLite database that is as ``new_sqlite`` made it a copy of another; return whether it was."""
    if engine.dialect.name != "sqlite":
        return False
    file = _file(engine)
    if file.with_name(f"{file.name}-wal").exists() or file.read_bytes() != _migrated()[0]:
        return False
    file.write_bytes(filled)
    return True


def _file(engine: Engine) -> Path:
    return Path(str(engine.url.database))


@cache
def _migrated() -> tuple[bytes, Engine]:
    """Return a SQLite database at the newest revision, and the engine that made it, whose dialect all share."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "blazar.sqlite"
        engine = make_engine(f"sqlite:///{path}")
        upgrade(engine)
        # The last one who leaves a database writes all of it into the one file.
        engine.dispose()
        return path.read_bytes(), engine
