# SPDX-License-Identifier: Apache-2.0
"""The store of outbox messages: written with the change that they report, sent later."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from blazar.model.usage import OutboxMessage
from blazar.store import outbox_queries
from blazar.store.transactions import Transactions


class OutboxStore:
    """Reads, claims and finishes outbox messages."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def due(self, now: datetime, limit: int) -> tuple[OutboxMessage, ...]:
        """Return at most ``limit`` outbox messages that are due, for each lease only the next one."""
        with self._transactions.reading() as connection:
            return outbox_queries.due(connection, now, limit)

    def outstanding(self, lease_id: str) -> tuple[OutboxMessage, ...]:
        """Return the messages about a lease that are not finished, in their order."""
        with self._transactions.reading() as connection:
            return outbox_queries.outstanding(connection, lease_id)

    def next_due(self) -> datetime | None:
        """Return when the next message is due, which may be in the past; None if there is none."""
        with self._transactions.reading() as connection:
            return outbox_queries.next_due(connection)

    def settle(self, held: OutboxMessage, *, at: datetime) -> None:
        """Write the result of a message held by its request, if it has not been written yet."""
        self._transactions.write(lambda c: outbox_queries.settle(c, held, at=at))

    def claim(self, message: OutboxMessage, *, until: datetime) -> OutboxMessage | None:
        """Claim a message until then, and return it; None if it was claimed by another process."""
        claimed = self._transactions.write(lambda c: outbox_queries.claim(c, message, until=until))
        return replace(message, due_at=until) if claimed else None

    def finish(
        self, message: OutboxMessage, *, delivered_to: Collection[str], reason: str | None, at: datetime
    ) -> None:
        """Record that a claimed message is finished: delivered, or (with a reason) given up."""
        self._transactions.write(
            lambda c: outbox_queries.finish(c, message, delivered_to=delivered_to, reason=reason, at=at)
        )

    def postpone(self, message: OutboxMessage, *, delivered_to: Collection[str], reason: str, until: datetime) -> None:
        """Record that a claimed message could not be delivered, and when to retry."""
        self._transactions.write(
            lambda c: outbox_queries.postpone(c, message, delivered_to=delivered_to, reason=reason, until=until)
        )
