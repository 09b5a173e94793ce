# SPDX-License-Identifier: Apache-2.0
"""The clock that all managers of one database share: that of the database."""

from __future__ import annotations

import logging
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from blazar.model.base.clock import Clock, monotonic
from blazar.observe import metrics
from blazar.store.sql.transactions import Transactions

LOG = logging.getLogger(__name__)

NOTABLE = timedelta(seconds=2)
"""The difference between two clocks above which a warning is logged."""

SLOWEST = 1.0
"""Maximum seconds for the answer of the database: an older reading is better than an uncertain one."""

_NOW = {
    "postgresql": "SELECT clock_timestamp() AT TIME ZONE 'UTC'",
    "mysql": "SELECT UTC_TIMESTAMP(6)",
    "mariadb": "SELECT UTC_TIMESTAMP(6)",
}


class DatabaseClock:
    """A clock with the time of the database, so that managers on different machines agree on due times and claims."""

    def __init__(self, engine: Engine, local: Clock) -> None:
        self._transactions = Transactions(engine)
        self._query = _NOW.get(engine.dialect.name)
        self._local = local
        self._lock = threading.Lock()
        self._anchor: tuple[datetime, float] | None = None
        self._told = False

    def now(self) -> datetime:
        """Return the present instant, aware, in UTC."""
        with self._lock:
            anchor = self._anchor
        if anchor is None:
            return self._local.now()
        instant, read_at = anchor
        return instant + timedelta(seconds=monotonic() - read_at)

    def elapsed(self) -> float:
        """Return the elapsed seconds of this machine."""
        return self._local.elapsed()

    def offset(self) -> timedelta:
        """Return how far the clock of this machine is ahead of that of the database."""
        return self._local.now() - self.now()

    def synchronize(self) -> None:
        """Read the database's time. StoreUnavailable."""
        if self._query is None:
            return
        with self._transactions.reading() as connection:
            asked_at = monotonic()
            instant: datetime = connection.execute(sa.text(self._query)).scalar_one().replace(tzinfo=UTC)
            took = monotonic() - asked_at
        if took > SLOWEST and self._anchor is not None:
            return
        with self._lock:
            self._anchor = instant, asked_at + took / 2
        metrics.CLOCK_OFFSET.set(self.offset().total_seconds())
        self._log_difference(abs(self.offset()))

    def _log_difference(self, difference: timedelta) -> None:
        if difference > NOTABLE and not self._told:
            LOG.warning(
                "Clock of this machine differs from that of the database by %.0f s; leases start and end by the "
                "database's. Synchronize both with NTP",
                difference.total_seconds(),
            )
        self._told = difference > NOTABLE


def epoch_seconds(dialect: str, instant: sa.ColumnElement[Any]) -> sa.ColumnElement[int]:
    """Return the whole seconds since the epoch of an instant, rounded down.

    What has fractions of a second is right until 2242, as all instants at which something happened are.
    """
    match dialect:
        case "postgresql":
            # A double, which PostgreSQL computes in a third of the time that the numeric of EXTRACT takes.
            seconds = sa.func.date_part(sa.literal_column("'epoch'"), instant)
            return sa.cast(sa.func.floor(seconds), sa.BigInteger())
        case "sqlite":
            # Without the fraction, which is rounded to milliseconds otherwise, up to the next second.
            return sa.cast(sa.func.strftime("%s", sa.func.substr(instant, 1, 19)), sa.BigInteger())
    epoch: sa.ColumnElement[datetime] = sa.literal_column("'1970-01-01'")
    return sa.func.timestampdiff(sa.text("SECOND"), epoch, instant, type_=sa.BigInteger())
