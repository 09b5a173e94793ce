# SPDX-License-Identifier: Apache-2.0
"""Which revision the tables have, and which they need: all that most processes ask, and without Alembic."""

from __future__ import annotations

import glob
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from blazar.store.foreign import check_ours

FOLDER = Path(__file__).parent / "migrations"

_VERSIONS = sa.table("alembic_version", sa.column("version_num", sa.String))


def current(engine: Engine) -> str | None:
    """Return the revision of the database; None for a database without one. ForeignTables."""
    if _VERSIONS.name not in check_ours(engine):
        return None
    with engine.connect() as connection:
        return connection.execute(sa.select(_VERSIONS.c.version_num)).scalar_one_or_none()


def wrong(found: str | None, *, program: str = "blazar-db-manage --config-file …") -> str | None:
    """Return what is wrong with the revision of a database, and what to do; None for that of this version."""
    newest = head()
    if found == newest:
        return None
    if is_newer(found):
        return (
            f"the database is from a newer version of Blazar: its tables are at revision {found}, and this version "
            f"knows up to {newest}. Install that version again; or go back with the command of that version, "
            f"'{program} downgrade {newest}', before this one is started"
        )
    return (
        f"the tables of the database are at revision {found or 'none'}, and this version needs {newest}; run: "
        f"{program} upgrade head"
    )


def is_newer(found: str | None) -> bool:
    """Tell whether a revision is none of this version: those of earlier ones are all here."""
    return found is not None and not any((FOLDER / "versions").glob(f"{glob.escape(found)}_*.py"))


def head() -> str:
    """Return the newest revision: files of migrations begin with it, and are in one line."""
    return max(path.name.partition("_")[0] for path in (FOLDER / "versions").glob("*_*.py"))
