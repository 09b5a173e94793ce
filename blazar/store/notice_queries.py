# SPDX-License-Identifier: Apache-2.0
"""Outbox messages: written with the change that they report, sent later, each until it has been delivered once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.usage import Notice
from blazar.store.tables import notices

_COLUMNS = (
    notices.c.id,
    notices.c.lease_id,
    notices.c.content,
    notices.c.created_at,
    notices.c.due_at,
    notices.c.attempts,
    notices.c.told,
    notices.c.reason,
)


def write(connection: Connection, changed: Collection[Notice], *, at: datetime) -> None:
    """Insert messages, to be delivered in this order, and update those that are stored."""
    for notice in changed:
        if notice.stored:
            connection.execute(notices.update().where(notices.c.id == notice.id).values(**_values(notice, at)))
    names = [column.name for column in _COLUMNS]
    rows = [
        {name: getattr(notice, name) for name in names} | {"told": list(notice.told)}
        for notice in changed
        if not notice.stored
    ]
    if rows:
        connection.execute(notices.insert(), rows)


def settle(connection: Connection, held: Notice, *, at: datetime) -> None:
    """Write the result of a message held by its request, if it has not been written yet."""
    where = (notices.c.id == held.id, notices.c.due_at == held.due_at)
    connection.execute(notices.update().where(*where).values(**_values(held, at)))


def _values(notice: Notice, at: datetime) -> dict[str, Any]:
    told: dict[str, Any] = {"told": list(notice.told), "reason": notice.reason, "attempts": notice.attempts}
    if not notice.over:
        return told | {"due_at": notice.due_at}
    return told | {"due_at": None, "finished_at": at} | ({} if notice.reason else {"content": None})


def due(connection: Connection, now: datetime, limit: int) -> tuple[Notice, ...]:
    """Return at most ``limit`` messages that are due, for each lease only the next one."""
    rows = connection.execute(
        sa.select(*_COLUMNS)
        .where(notices.c.due_at <= now, _first_of_its_lease())
        .order_by(notices.c.due_at, notices.c.number)
        .limit(limit)
    )
    return tuple(_notice_of(tuple(row)) for row in rows)


def outstanding(connection: Connection, lease_id: str) -> tuple[Notice, ...]:
    """Return the messages about a lease that are not finished, in their order."""
    rows = connection.execute(
        sa.select(*_COLUMNS)
        .where(notices.c.lease_id == lease_id, notices.c.due_at.is_not(None))
        .order_by(notices.c.number)
    )
    return tuple(_notice_of(tuple(row)) for row in rows)


def next_due(connection: Connection) -> datetime | None:
    """Return when the next message is due, which may be in the past."""
    query = sa.select(sa.func.min(notices.c.due_at)).where(notices.c.due_at.is_not(None), _first_of_its_lease())
    return connection.execute(query).scalar()


def claim(connection: Connection, notice: Notice, *, until: datetime) -> bool:
    """Claim a message until then; return whether the claim succeeded.

    A message has no reason while its delivery is in progress: that distinguishes it from one that waits for a retry.
    """
    return _change(connection, notice, due_at=until, reason=None)


def finish(connection: Connection, notice: Notice, *, told: Collection[str], reason: str | None, at: datetime) -> None:
    """Record that a message is finished: delivered, or (with a reason) given up."""
    kept: dict[str, Any] = {} if reason else {"content": None}
    _change(connection, notice, due_at=None, told=list(told), reason=reason, finished_at=at, **kept)


def postpone(connection: Connection, notice: Notice, *, told: Collection[str], reason: str, until: datetime) -> None:
    """Record a failed attempt, and when to retry."""
    _change(connection, notice, due_at=until, told=list(told), reason=reason, attempts=notice.attempts + 1)


def _change(connection: Connection, notice: Notice, **values: Any) -> bool:
    """Change a message if it was not changed since it was read or claimed."""
    where = (notices.c.id == notice.id, notices.c.due_at == notice.due_at)
    return bool(connection.execute(notices.update().where(*where).values(**values)).rowcount)


def _notice_of(row: Sequence[Any]) -> Notice:
    id_, lease_id, content, created, due_at, attempts, told, reason = row
    return Notice(id_, lease_id, content, created, due_at, attempts, tuple(told), reason, stored=True)


def _first_of_its_lease() -> sa.ColumnElement[bool]:
    earlier = notices.alias("earlier")
    return ~sa.exists().where(
        earlier.c.lease_id == notices.c.lease_id,
        earlier.c.due_at.is_not(None),
        earlier.c.number < notices.c.number,
    )
