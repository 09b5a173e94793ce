"""Events: what is due, and whose claims live."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.store.tables import events


@dataclass(frozen=True, slots=True)
class DueEvent:
    """An event that somebody should look at."""

    lease_id: str
    event_id: str
    event_type: str
    due_at: datetime


def due(connection: Connection, now: datetime, limit: int) -> tuple[DueEvent, ...]:
    """Return at most ``limit`` events that are due, the longest waiting first."""
    rows = connection.execute(
        sa.select(events.c.lease_id, events.c.id, events.c.event_type, events.c.due_at)
        .where(events.c.due_at <= now)
        .order_by(events.c.due_at)
        .limit(limit)
    )
    return tuple(DueEvent(*row) for row in rows)


def next_due(connection: Connection) -> datetime | None:
    """Return when the next event is due, which may be in the past."""
    return connection.execute(
        sa.select(events.c.due_at).where(events.c.due_at.is_not(None)).order_by(events.c.due_at).limit(1)
    ).scalar()


def extend_claims(connection: Connection, owner: str, *, until: datetime) -> None:
    """Renew every claim of an owner."""
    connection.execute(
        events.update().where(events.c.claimed_by == owner, events.c.due_at.is_not(None)).values(due_at=until)
    )


def drop_claims_of_others(connection: Connection, owner: str, *, at: datetime) -> None:
    """Make every event due that somebody else has a claim on."""
    connection.execute(
        events.update()
        .where(events.c.claimed_by.is_not(None), events.c.claimed_by != owner, events.c.due_at > at)
        .values(due_at=at)
    )
