# SPDX-License-Identifier: Apache-2.0
"""The store of outbox messages: written with the change that they report, sent later, each until it is delivered."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.use.resource_hours import OutboxMessage
from blazar.store.sql.rows import chunks
from blazar.store.sql.tables import outbox
from blazar.store.sql.transactions import Transactions
from blazar.store.work.claims import MESSAGES

_COLUMNS = (
    outbox.c.id,
    outbox.c.lease_id,
    outbox.c.content,
    outbox.c.created_at,
    outbox.c.due_at,
    outbox.c.attempts,
    outbox.c.delivered_to,
    outbox.c.reason,
)


def _first_of_its_lease() -> sa.ColumnElement[bool]:
    earlier = outbox.alias("earlier")
    return ~sa.exists().where(
        earlier.c.lease_id == outbox.c.lease_id, earlier.c.due_at.is_not(None), earlier.c.number < outbox.c.number
    )


# Both are asked in every round of every manager: to put them into words takes longer than to answer them.
_DUE = (
    sa.select(*_COLUMNS)
    .where(outbox.c.due_at <= sa.bindparam("now", type_=outbox.c.due_at.type), _first_of_its_lease())
    .order_by(outbox.c.due_at, outbox.c.number)
    .limit(sa.bindparam("most", type_=sa.Integer()))
)
_NEXT_DUE = MESSAGES.select_next_due(_first_of_its_lease())


class OutboxStore:
    """Reads, claims and finishes outbox messages."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def due(self, now: datetime, limit: int) -> tuple[OutboxMessage, ...]:
        """Return at most ``limit`` outbox messages that are due, for each lease only the next one."""
        return tuple(_message_of(tuple(row)) for row in self._transactions.select(_DUE, {"now": now, "most": limit}))

    def load_outstanding(self, lease_id: str) -> tuple[OutboxMessage, ...]:
        """Return the messages about a lease that are not finished, in their order."""
        of_lease = (outbox.c.lease_id == lease_id, outbox.c.due_at.is_not(None))
        query = sa.select(*_COLUMNS).where(*of_lease).order_by(outbox.c.number)
        return tuple(_message_of(tuple(row)) for row in self._transactions.select(query))

    def load_next_messages(self, lease_ids: Collection[str]) -> dict[str, OutboxMessage]:
        """Return the first message about each of these leases that is not finished, by lease.

        One statement for each few thousand.
        """
        found: dict[str, OutboxMessage] = {}
        with self._transactions.reading() as connection:
            for part in chunks(sorted(lease_ids)):
                of_them = (outbox.c.lease_id.in_(part), outbox.c.due_at.is_not(None))
                for row in connection.execute(sa.select(*_COLUMNS).where(*of_them).order_by(outbox.c.number)):
                    message = _message_of(tuple(row))
                    found.setdefault(message.lease_id, message)
        return found

    def next_due(self) -> datetime | None:
        """Return when the next message is due, which may be in the past; None if there is none."""
        found: datetime | None = self._transactions.scalar(_NEXT_DUE)
        return found

    def settle(self, held: OutboxMessage, *, at: datetime) -> None:
        """Write the result of a message held by its request, if it has not been written yet."""
        as_held = (outbox.c.id == held.id, outbox.c.due_at == held.due_at)
        change = outbox.update().where(*as_held).values(**_outcome_row(held, at))
        self._transactions.write(lambda connection: connection.execute(change))

    def claim(self, message: OutboxMessage, token: str, *, until: datetime) -> bool:
        """Claim a message until then; return whether no other process was faster.

        A message has no reason while its delivery is in progress: that distinguishes it from one that waits for a
        retry.
        """
        as_seen = outbox.c.due_at == message.due_at
        return self._transactions.write(
            lambda c: MESSAGES.claim(c, message.id, token, as_seen, until=until, reason=None)
        )

    def finish(
        self, message: OutboxMessage, token: str, *, delivered_to: Collection[str], reason: str | None, at: datetime
    ) -> None:
        """Record that a claimed message is finished: delivered, or (with a reason) given up. ClaimLost."""
        kept: dict[str, Any] = {} if reason else {"content": None}
        self._release(message, token, None, delivered_to=list(delivered_to), reason=reason, finished_at=at, **kept)

    def postpone(
        self, message: OutboxMessage, token: str, *, delivered_to: Collection[str], reason: str, until: datetime
    ) -> None:
        """Record that a claimed message could not be delivered, and when to retry. ClaimLost."""
        attempts = message.attempts + 1
        self._release(message, token, until, delivered_to=list(delivered_to), reason=reason, attempts=attempts)

    def _release(self, message: OutboxMessage, token: str, due_at: datetime | None, **values: Any) -> None:
        self._transactions.write(lambda c: MESSAGES.release(c, message.id, token, due_at=due_at, **values))


def write_messages(connection: Connection, changed: Collection[OutboxMessage], *, at: datetime) -> None:
    """Insert messages, to be delivered in this order, and update those that are stored."""
    for message in changed:
        if message.stored:
            connection.execute(outbox.update().where(outbox.c.id == message.id).values(**_outcome_row(message, at)))
    rows = [_message_row(message) for message in changed if not message.stored]
    if rows:
        connection.execute(outbox.insert(), rows)


def _message_row(message: OutboxMessage) -> dict[str, Any]:
    return {
        "id": message.id,
        "lease_id": message.lease_id,
        "content": message.content,
        "created_at": message.created_at,
        "due_at": message.due_at,
        "attempts": message.attempts,
        "delivered_to": list(message.delivered_to),
        "reason": message.reason,
    }


def _outcome_row(message: OutboxMessage, at: datetime) -> dict[str, Any]:
    values: dict[str, Any] = {
        "delivered_to": list(message.delivered_to),
        "reason": message.reason,
        "attempts": message.attempts,
    }
    if not message.finished:
        return values | {"due_at": message.due_at}
    return values | {"due_at": None, "finished_at": at} | ({} if message.reason else {"content": None})


def _message_of(row: Sequence[Any]) -> OutboxMessage:
    id_, lease_id, content, created, due_at, attempts, delivered_to, reason = row
    return OutboxMessage(id_, lease_id, content, created, due_at, attempts, tuple(delivered_to), reason, stored=True)
