# SPDX-License-Identifier: Apache-2.0
"""Which revision the tables have, and which they need: all that most processes ask, and without Alembic.

Databases of another program are detected before anything in them is changed.
"""

from __future__ import annotations

import glob
import logging
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Engine
from sqlalchemy.exc import SQLAlchemyError

from blazar.model.base.errors import BlazarError
from blazar.store.sql.engine import make_engine

LOG = logging.getLogger(__name__)

FOLDER = Path(__file__).parent / "migrations"
FIRST = "1001"
"""The first revision that was released; those of development had smaller numbers, and nobody has them."""

NEWER = "a newer version"

_VERSIONS = sa.table("alembic_version", sa.column("version_num", sa.String))

THEIRS = frozenset({"computehosts", "computehost_reservations", "computehost_allocations"})
"""Tables of the existing Blazar, at every revision and in every fork of it; ours never has them."""

EMPTY_ONE = "give this program an empty database of its own ([database] connection, or --database-url)"


class ForeignTables(BlazarError):
    """The database is not ours; the message says whose it is and what to do."""


def check_tables_ours(engine: Engine) -> frozenset[str]:
    """Return the names of the tables; ForeignTables if the database is that of the existing Blazar."""
    looked = sa.inspect(engine)
    tables = frozenset(looked.get_table_names())
    if tables & THEIRS or ("leases" in tables and "start_date" in {c["name"] for c in looked.get_columns("leases")}):
        raise ForeignTables(
            "the database is that of the existing Blazar, whose tables are different and cannot be migrated yet; "
            f"nothing in it was changed: {EMPTY_ONE}, and see 'Coming from the existing Blazar' in docs/install.md"
        )
    return tables


def find_foreign_tables(url: str) -> ForeignTables | None:
    """Return the error for a database of the existing Blazar; None for any other or an unreachable database.

    For a process that does not use the database itself.
    """
    try:
        engine = make_engine(url, pool_size=1)
        try:
            check_tables_ours(engine)
        finally:
            engine.dispose()
    except ForeignTables as error:
        return error
    except (BlazarError, SQLAlchemyError) as error:
        LOG.debug("Database cannot be inspected from this host: %s", type(error).__name__)
    return None


def read_revision(engine: Engine) -> str | None:
    """Return the revision of the database; None for a database without one. ForeignTables."""
    if _VERSIONS.name not in check_tables_ours(engine):
        return None
    with engine.connect() as connection:
        return connection.execute(sa.select(_VERSIONS.c.version_num)).scalar_one_or_none()


def explain_revision(found: str | None, *, program: str = "blazar-db-manage --config-file …") -> str | None:
    """Return what is wrong with the revision of a database, and what to do; None for that of this version."""
    newest = newest_revision()
    if found == newest:
        return None
    if found is not None and not is_known(found):
        if describe_origin(found) == NEWER:
            return (
                f"the database is from a newer version of Blazar: its tables are at revision {found}, and this version "
                f"knows up to {newest}. Install that version again; or go back with the command of that version, "
                f"'{program} downgrade {newest}', before this one is started"
            )
        return (
            f"the database was made by a version of Blazar from before its first release: its tables are at revision "
            f"{found}, which this version cannot read; nothing in it was changed: {EMPTY_ONE}"
        )
    return (
        f"the tables of the database are at revision {found or 'none'}, and this version needs {newest}; run: "
        f"{program} upgrade head"
    )


def is_known(found: str | None) -> bool:
    """Tell whether this version has the migration to a revision: those of earlier releases are all here."""
    return found is None or any((FOLDER / "versions").glob(f"{glob.escape(found)}_*.py"))


def describe_origin(found: str) -> str:
    """Return which version a revision is from that is not known."""
    unreleased = found.isdecimal() and len(found) == len(FIRST) and found < FIRST
    return "a version before the first release" if unreleased else NEWER


def newest_revision() -> str:
    """Return the newest revision: files of migrations begin with it, and are in one line."""
    return max(path.name.partition("_")[0] for path in (FOLDER / "versions").glob("*_*.py"))
