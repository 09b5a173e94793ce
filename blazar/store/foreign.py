# SPDX-License-Identifier: Apache-2.0
"""Databases of another program: detected before anything in them is changed."""

from __future__ import annotations

import logging

import sqlalchemy as sa
from sqlalchemy.engine import Engine
from sqlalchemy.exc import SQLAlchemyError

from blazar.model.errors import BlazarError
from blazar.store.engine import connect

LOG = logging.getLogger(__name__)

THEIRS = frozenset({"computehosts", "computehost_reservations", "computehost_allocations"})
"""Tables of the existing Blazar, at every revision and in every fork of it; ours never has them."""

EMPTY_ONE = "give this program an empty database of its own ([database] connection, or --database-url)"


class ForeignTables(BlazarError):
    """The database is not ours; the message says whose it is and what to do."""


def check_ours(engine: Engine) -> frozenset[str]:
    """Return the names of the tables; ForeignTables if the database is that of the existing Blazar."""
    looked = sa.inspect(engine)
    tables = frozenset(looked.get_table_names())
    if tables & THEIRS or ("leases" in tables and "start_date" in {c["name"] for c in looked.get_columns("leases")}):
        raise ForeignTables(
            "the database is that of the existing Blazar, whose tables are different and cannot be migrated yet; "
            f"nothing in it was changed: {EMPTY_ONE}, and see 'Coming from the existing Blazar' in docs/install.md"
        )
    return tables


def foreign(url: str) -> ForeignTables | None:
    """Return the error for a database of the existing Blazar; None for any other or an unreachable database.

    For a process that does not use the database itself.
    """
    try:
        engine = connect(url, pool_size=1)
        try:
            check_ours(engine)
        finally:
            engine.dispose()
    except ForeignTables as error:
        return error
    except (BlazarError, SQLAlchemyError) as error:
        LOG.debug("Database cannot be inspected from this host: %s", type(error).__name__)
    return None
