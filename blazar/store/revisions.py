# SPDX-License-Identifier: Apache-2.0
"""Which revision the tables have, and which they need: all that most processes ask, and without Alembic."""

from __future__ import annotations

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


def head() -> str:
    """Return the newest revision: files of migrations begin with it, and are in one line."""
    return max(path.name.partition("_")[0] for path in (FOLDER / "versions").glob("*_*.py"))
