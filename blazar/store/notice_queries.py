"""Notices: written with the change that they tell of, sent afterwards, each until it has been told once."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.usage import Notice
from blazar.store.tables import notices


def insert(connection: Connection, new: Collection[Notice]) -> None:
    """Insert notices, to be told in this order."""
    rows = [
        {name: getattr(notice, name) for name in Notice.__dataclass_fields__} | {"told": list(notice.told)}
        for notice in new
    ]
    if rows:
        connection.execute(notices.insert(), rows)


def due(connection: Connection, now: datetime, limit: int) -> tuple[Notice, ...]:
    """Return at most ``limit`` notices that are due, of each lease only the one whose turn it is."""
    rows = connection.execute(
        sa.select(
            notices.c.id,
            notices.c.lease_id,
            notices.c.content,
            notices.c.created_at,
            notices.c.due_at,
            notices.c.attempts,
            notices.c.told,
            notices.c.reason,
        )
        .where(notices.c.due_at <= now, _first_of_its_lease())
        .order_by(notices.c.due_at, notices.c.number)
        .limit(limit)
    )
    return tuple(
        Notice(id_, lease_id, content, created, due_at, attempts, tuple(told), reason)
        for id_, lease_id, content, created, due_at, attempts, told, reason in rows
    )


def next_due(connection: Connection) -> datetime | None:
    """Return when the next notice is due, which may be in the past."""
    query = sa.select(sa.func.min(notices.c.due_at)).where(notices.c.due_at.is_not(None), _first_of_its_lease())
    return connection.execute(query).scalar()


def claim(connection: Connection, notice: Notice, *, until: datetime) -> bool:
    """Keep a notice from others until then; tell whether it was still there to be had."""
    return _change(connection, notice, due_at=until)


def finish(connection: Connection, notice: Notice, *, told: Collection[str], reason: str | None, at: datetime) -> None:
    """Record that a notice needs no more work: it is told, or (with a reason) given up."""
    kept: dict[str, Any] = {} if reason else {"content": None}
    _change(connection, notice, due_at=None, told=list(told), reason=reason, finished_at=at, **kept)


def postpone(connection: Connection, notice: Notice, *, told: Collection[str], reason: str, until: datetime) -> None:
    """Record a try that failed, and when the next one is."""
    _change(connection, notice, due_at=until, told=list(told), reason=reason, attempts=notice.attempts + 1)


def _change(connection: Connection, notice: Notice, **values: Any) -> bool:
    """Change a notice if nobody else has taken it since it was read or claimed."""
    where = (notices.c.id == notice.id, notices.c.due_at == notice.due_at)
    return bool(connection.execute(notices.update().where(*where).values(**values)).rowcount)


def _first_of_its_lease() -> sa.ColumnElement[bool]:
    earlier = notices.alias("earlier")
    return ~sa.exists().where(
        earlier.c.lease_id == notices.c.lease_id,
        earlier.c.due_at.is_not(None),
        earlier.c.number < notices.c.number,
    )
