"""Transactions: read in one, write in one, and again where the database says that it was bad luck."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import tenacity
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from blazar.model.errors import StoreUnavailable
from blazar.store.engine import WRITES, for_reading

LOG = logging.getLogger(__name__)
T = TypeVar("T")

ATTEMPTS = 8
SQLSTATES_OF_BAD_LUCK = frozenset({"40001", "40P01", "55P03"})
"""PostgreSQL: serialization failure, deadlock, lock not available."""
MYSQL_ERRORS_OF_BAD_LUCK = frozenset({1205, 1213, 1020})
"""MariaDB: lock wait timeout, deadlock, record has changed."""


class Transactions:
    """Runs what is to be read or written on an engine; raises StoreUnavailable where the database does not serve."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._reading = for_reading(engine)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open one consistent picture of the database."""
        try:
            with self._reading.connect() as connection:
                yield connection
        except (SQLAlchemyError, PoolTimeout) as error:
            raise _unavailable(error) from error

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` in a write transaction; whatever it raises rolls everything back.

        It is run again after a deadlock or the like, so it must have no effect outside the database.
        """
        again = tenacity.Retrying(
            retry=tenacity.retry_if_exception(_is_bad_luck),
            stop=tenacity.stop_after_attempt(ATTEMPTS),
            wait=tenacity.wait_random_exponential(multiplier=0.01, max=0.5),
            reraise=True,
        )
        try:
            result: T = again(self._once, work)
            return result
        except IntegrityError:
            # What it means is known only where the statement is.
            raise
        except (SQLAlchemyError, PoolTimeout) as error:
            raise _unavailable(error) from error

    def _once(self, work: Callable[[Connection], T]) -> T:
        with self.engine.connect().execution_options(**{WRITES: True}) as connection, connection.begin():
            return work(connection)


def _is_bad_luck(error: BaseException) -> bool:
    if not isinstance(error, DBAPIError) or isinstance(error, IntegrityError):
        return False
    origin = error.orig
    if getattr(origin, "sqlstate", None) in SQLSTATES_OF_BAD_LUCK:
        return True
    code = origin.args[0] if origin is not None and origin.args else None
    return code in MYSQL_ERRORS_OF_BAD_LUCK or "database is locked" in str(origin)


def _unavailable(error: Exception) -> StoreUnavailable:
    # The statement and its parameters go to the log at debug only: they may hold what users wrote.
    LOG.debug("The database failed", exc_info=error)
    cause = error.orig if isinstance(error, DBAPIError) else error
    LOG.error("The database failed: %s", type(cause).__name__)
    return StoreUnavailable("the database does not answer as it should; please try again")
