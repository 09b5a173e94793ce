# SPDX-License-Identifier: Apache-2.0
"""Outbox messages: written with the change that they report, sent later, each until it has been delivered once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.usage import OutboxMessage
from blazar.store.tables import outbox

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


def settle(connection: Connection, held: OutboxMessage, *, at: datetime) -> None:
    """Write the result of a message held by its request, if it has not been written yet."""
    where = (outbox.c.id == held.id, outbox.c.due_at == held.due_at)
    connection.execute(outbox.update().where(*where).values(**_values(held, at)))


def _values(message: OutboxMessage, at: datetime) -> dict[str, Any]:
    values: dict[str, Any] = {
        "told": list(message.delivered_to),
        "reason": message.reason,
        "attempts": message.attempts,
    }
    if not message.finished:
        return values | {"due_at": message.due_at}
    return values | {"due_at": None, "finished_at": at} | ({} if message.reason else {"content": None})


def due(connection: Connection, now: datetime, limit: int) -> tuple[OutboxMessage, ...]:
    """Return at most ``limit`` messages that are due, for each lease only the next one."""
    rows = connection.execute(
        sa.select(*_COLUMNS)
        .where(outbox.c.due_at <= now, _first_of_its_lease())
        .order_by(outbox.c.due_at, outbox.c.number)
        .limit(limit)
    )
    return tuple(_message_of(tuple(row)) for row in rows)


def outstanding(connection: Connection, lease_id: str) -> tuple[OutboxMessage, ...]:
    """Return the messages about a lease that are not finished, in their order."""
    rows = connection.execute(
        sa.select(*_COLUMNS)
        .where(outbox.c.lease_id == lease_id, outbox.c.due_at.is_not(None))
        .order_by(outbox.c.number)
    )
    return tuple(_message_of(tuple(row)) for row in rows)


def next_due(connection: Connection) -> datetime | None:
    """Return when the next message is due, which may be in the past."""
    query = sa.select(sa.func.min(outbox.c.due_at)).where(outbox.c.due_at.is_not(None), _first_of_its_lease())
    return connection.execute(query).scalar()


def claim(connection: Connection, message: OutboxMessage, *, until: datetime) -> bool:
    """Claim a message until then; return whether the claim succeeded.

    A message has no reason while its delivery is in progress: that distinguishes it from one that waits for a retry.
    """
    return _change(connection, message, due_at=until, reason=None)


def finish(
    connection: Connection, message: OutboxMessage, *, delivered_to: Collection[str], reason: str | None, at: datetime
) -> None:
    """Record that a message is finished: delivered, or (with a reason) given up."""
    kept: dict[str, Any] = {} if reason else {"content": None}
    _change(connection, message, due_at=None, told=list(delivered_to), reason=reason, finished_at=at, **kept)


def postpone(
    connection: Connection, message: OutboxMessage, *, delivered_to: Collection[str], reason: str, until: datetime
) -> None:
    """Record a failed attempt, and when to retry."""
    _change(connection, message, due_at=until, told=list(delivered_to), reason=reason, attempts=message.attempts + 1)


def _change(connection: Connection, message: OutboxMessage, **values: Any) -> bool:
    """Change a message if it was not changed since it was read or claimed."""
    where = (outbox.c.id == message.id, outbox.c.due_at == message.due_at)
    return bool(connection.execute(outbox.update().where(*where).values(**values)).rowcount)


def _message_of(row: Sequence[Any]) -> OutboxMessage:
    id_, lease_id, content, created, due_at, attempts, delivered_to, reason = row
    return OutboxMessage(id_, lease_id, content, created, due_at, attempts, tuple(delivered_to), reason, stored=True)


def _first_of_its_lease() -> sa.ColumnElement[bool]:
    earlier = outbox.alias("earlier")
    return ~sa.exists().where(
        earlier.c.lease_id == outbox.c.lease_id,
        earlier.c.due_at.is_not(None),
        earlier.c.number < outbox.c.number,
    )
