# SPDX-License-Identifier: Apache-2.0
"""The store of events: which are due, and the claims on them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from blazar.store import event_queries
from blazar.store.event_queries import DueEvent
from blazar.store.transactions import Transactions

__all__ = ["DueEvent", "EventStore"]


class EventStore:
    """Reads due events, and renews claims on them."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def due(self, now: datetime, limit: int) -> tuple[DueEvent, ...]:
        """Return at most ``limit`` events that are due, the longest waiting first."""
        with self._transactions.reading() as connection:
            return event_queries.due(connection, now, limit)

    def next_due(self) -> datetime | None:
        """Return when the next event is due, which may be in the past; None if there is none."""
        with self._transactions.reading() as connection:
            return event_queries.next_due(connection)

    def renew_claims(self, tokens: Collection[str], *, now: datetime, until: datetime) -> frozenset[str]:
        """Renew the claims with these tokens that have not expired; return the tokens of those."""
        return self._transactions.write(lambda c: event_queries.renew_claims(c, tokens, now=now, until=until))

    def drop_claims(self, *, at: datetime) -> None:
        """Make every event with a claim due at ``at``."""
        self._transactions.write(lambda connection: event_queries.drop_claims(connection, at=at))
