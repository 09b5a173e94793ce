# SPDX-License-Identifier: Apache-2.0
"""A look at a database that the process itself has no use for."""

from __future__ import annotations

import logging

from sqlalchemy.exc import SQLAlchemyError

from blazar.model.errors import BlazarError
from blazar.store.engine import connect
from blazar.store.foreign import ForeignTables, check_ours

__all__ = ["ForeignTables", "foreign"]

LOG = logging.getLogger(__name__)


def foreign(url: str) -> ForeignTables | None:
    """Return the error if a database is the existing Blazar's; None if it is not, or can not be looked at."""
    try:
        engine = connect(url, pool_size=1)
        try:
            check_ours(engine)
        finally:
            engine.dispose()
    except ForeignTables as error:
        return error
    except (BlazarError, SQLAlchemyError) as error:
        LOG.debug("The database can not be looked at from here: %s", type(error).__name__)
    return None
