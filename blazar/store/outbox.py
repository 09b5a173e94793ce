# SPDX-License-Identifier: Apache-2.0
"""The store of outbox messages: written with the change that they report, sent later, each until it is delivered."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.usage import OutboxMessage
from blazar.store.rows import chunks
from blazar.store.tables import outbox
from blazar.store.transactions import Transactions

_COLUMNS = (
    outbox.c.id,
    outbox.c.lease_id,
    outbox.c.content,
    outbox.c.created_at,
    outbox.c.due_at,
    outbox.c.attempts,
    outbox.c.told,
    outbox.c.reason,
)


def _first_of_its_lease() -> sa.ColumnElement[bool]:
    earlier = outbox.alias("earlier")
    return ~sa.exists().where(
        earlier.c.lease_id == outbox.c.lease_id,
        earlier.c.due_at.is_not(None),
        earlier.c.number < outbox.c.number,
    )


# Both are asked in every round of every manager: to put them into words takes longer than to answer them.
_DUE = (
    sa.select(*_COLUMNS)
    .where(outbox.c.due_at <= sa.bindparam("now", type_=outbox.c.due_at.type), _first_of_its_lease())
    .order_by(outbox.c.due_at, outbox.c.number)
    .limit(sa.bindparam("most", type_=sa.Integer()))
)
_NEXT_DUE = sa.select(sa.func.min(outbox.c.due_at)).where(outbox.c.due_at.is_not(None), _first_of_its_lease())


class OutboxStore:
    """Reads, claims and finishes outbox messages."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def due(self, now: datetime, limit: int) -> tuple[OutboxMessage, ...]:
        """Return at most ``limit`` outbox messages that are due, for each lease only the next one."""
        with self._transactions.reading() as connection:
            return tuple(_message_of(tuple(row)) for row in connection.execute(_DUE, {"now": now, "most": limit}))

    def outstanding(self, lease_id: str) -> tuple[OutboxMessage, ...]:
        """Return the messages about a lease that are not finished, in their order."""
        of_lease = (outbox.c.lease_id == lease_id, outbox.c.due_at.is_not(None))
        query = sa.select(*_COLUMNS).where(*of_lease).order_by(outbox.c.number)
        with self._transactions.reading() as connection:
            return tuple(_message_of(tuple(row)) for row in connection.execute(query))

    def outstanding_of(self, lease_ids: Collection[str]) -> dict[str, OutboxMessage]:
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
        with self._transactions.reading() as connection:
            return connection.execute(_NEXT_DUE).scalar()

    def settle(self, held: OutboxMessage, *, at: datetime) -> None:
        """Write the result of a message held by its request, if it has not been written yet."""
        self._change(held, **_values(held, at))

    def claim(self, message: OutboxMessage, *, until: datetime) -> OutboxMessage | None:
        """Claim a message until then, and return it; None if it was claimed by another process.

        A message has no reason while its delivery is in progress: that distinguishes it from one that waits for a
        retry.
        """
        claimed = self._change(message, due_at=until, reason=None)
        return replace(message, due_at=until) if claimed else None

    def finish(
        self, message: OutboxMessage, *, delivered_to: Collection[str], reason: str | None, at: datetime
    ) -> None:
        """Record that a claimed message is finished: delivered, or (with a reason) given up."""
        kept: dict[str, Any] = {} if reason else {"content": None}
        self._change(message, due_at=None, told=list(delivered_to), reason=reason, finished_at=at, **kept)

    def postpone(self, message: OutboxMessage, *, delivered_to: Collection[str], reason: str, until: datetime) -> None:
        """Record that a claimed message could not be delivered, and when to retry."""
        attempts = message.attempts + 1
        self._change(message, due_at=until, told=list(delivered_to), reason=reason, attempts=attempts)

    def _change(self, message: OutboxMessage, **values: Any) -> bool:
        """Change a message if it was not changed since it was read or claimed; return whether it was not."""
        where = (outbox.c.id == message.id, outbox.c.due_at == message.due_at)
        change = outbox.update().where(*where).values(**values)
        return bool(self._transactions.write(lambda connection: connection.execute(change).rowcount))


def write(connection: Connection, changed: Collection[OutboxMessage], *, at: datetime) -> None:
    """Insert messages, to be delivered in this order, and update those that are stored."""
    for message in changed:
        if message.stored:
            connection.execute(outbox.update().where(outbox.c.id == message.id).values(**_values(message, at)))
    rows = [_row(message) for message in changed if not message.stored]
    if rows:
        connection.execute(outbox.insert(), rows)


def _row(message: OutboxMessage) -> dict[str, Any]:
    return {
        "id": message.id,
        "lease_id": message.lease_id,
        "content": message.content,
        "created_at": message.created_at,
        "due_at": message.due_at,
        "attempts": message.attempts,
        "told": list(message.delivered_to),
        "reason": message.reason,
    }


def _values(message: OutboxMessage, at: datetime) -> dict[str, Any]:
    values: dict[str, Any] = {
        "told": list(message.delivered_to),
        "reason": message.reason,
        "attempts": message.attempts,
    }
    if not message.finished:
        return values | {"due_at": message.due_at}
    return values | {"due_at": None, "finished_at": at} | ({} if message.reason else {"content": None})


def _message_of(row: Sequence[Any]) -> OutboxMessage:
    id_, lease_id, content, created, due_at, attempts, delivered_to, reason = row
    return OutboxMessage(id_, lease_id, content, created, due_at, attempts, tuple(delivered_to), reason, stored=True)
