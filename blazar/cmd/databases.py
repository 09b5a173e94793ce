# SPDX-License-Identifier: Apache-2.0
"""Inspect a database that the process itself does not use."""

from __future__ import annotations

import logging

from sqlalchemy.exc import SQLAlchemyError

from blazar.model.errors import BlazarError
from blazar.store.engine import connect
from blazar.store.foreign import ForeignTables, check_ours

__all__ = ["ForeignTables", "foreign"]

LOG = logging.getLogger(__name__)


def foreign(url: str) -> ForeignTables | None:
    """Return the error for a database of the existing Blazar; None for any other or an unreachable database."""
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
