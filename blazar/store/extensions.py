# SPDX-License-Identifier: Apache-2.0
"""The store of leases that are prolonged by themselves."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from blazar.model.lease import LeaseStatus
from blazar.store.tables import leases
from blazar.store.transactions import Transactions

_LIVE = (
    leases.c.extend_until > leases.c.ends_at,
    leases.c.status == str(LeaseStatus.ACTIVE),
    leases.c.deleted_at.is_(None),
)


class ExtensionStore:
    """Reads which leases may be prolonged."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def ending_by(self, instant: datetime, *, now: datetime) -> tuple[str, ...]:
        """Return the ids of active leases that end by an instant and may be prolonged, the first to end first."""
        query = sa.select(leases.c.id).where(*_LIVE, leases.c.ends_at <= instant, leases.c.ends_at > now)
        with self._transactions.reading() as connection:
            return tuple(connection.execute(query.order_by(leases.c.ends_at, leases.c.id)).scalars())

    def next_end(self, *, after: datetime) -> datetime | None:
        """Return the first end, after an instant, of an active lease that may be prolonged; one statement."""
        query = sa.select(sa.func.min(leases.c.ends_at, type_=leases.c.ends_at.type)).where(
            *_LIVE, leases.c.ends_at > after
        )
        with self._transactions.reading() as connection:
            return connection.execute(query).scalar()
