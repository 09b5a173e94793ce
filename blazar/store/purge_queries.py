# SPDX-License-Identifier: Apache-2.0
"""Purging: deletes the oldest part of the growing record of past leases."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.lease import LeaseStatus
from blazar.store.tables import allocations, events, leases, metadata, outbox

PARTS = tuple(
    (table, column)
    for table in reversed(metadata.sorted_tables)
    for column in table.columns
    if any(key.column is leases.c.id for key in column.foreign_keys)
)
"""The tables whose rows belong to leases, with the column of the lease id, in an order in which they can be deleted."""


def _is_past(before: datetime) -> sa.ColumnElement[bool]:
    """Select leases deleted, or else ended, before then, with no open event, message or allocation."""
    ended = sa.and_(
        leases.c.deleted_at.is_(None), leases.c.status == str(LeaseStatus.TERMINATED), leases.c.ends_at < before
    )
    undelivered = sa.exists().where(outbox.c.lease_id == leases.c.id, outbox.c.due_at.is_not(None))
    undone = sa.exists().where(events.c.lease_id == leases.c.id, events.c.due_at.is_not(None))
    held = sa.exists().where(allocations.c.lease_id == leases.c.id, allocations.c.released_at.is_(None))
    return sa.and_(sa.or_(leases.c.deleted_at < before, ended), ~undelivered, ~undone, ~held)


def count(connection: Connection, before: datetime) -> Mapping[str, int]:
    """Return the number of rows of each table that belong to leases from before then."""
    past = sa.select(leases.c.id).where(_is_past(before))
    counts = {
        str(table.name): connection.execute(sa.select(sa.func.count()).where(column.in_(past))).scalar_one()
        for table, column in PARTS
    }
    total = sa.select(sa.func.count()).select_from(leases).where(_is_past(before))
    return {"leases": connection.execute(total).scalar_one(), **counts}


def purge(connection: Connection, before: datetime, limit: int) -> Mapping[str, int]:
    """Delete at most ``limit`` leases from before then with all their rows; return the number of rows by table."""
    # Locked, so that a concurrent deletion of one of them finds all of it or nothing.
    chosen = sa.select(leases.c.id).where(_is_past(before)).order_by(leases.c.id).limit(limit).with_for_update()
    ids = list(connection.execute(chosen).scalars())
    if not ids:
        return {}
    deleted = {
        str(table.name): connection.execute(table.delete().where(column.in_(ids))).rowcount for table, column in PARTS
    }
    return {"leases": connection.execute(leases.delete().where(leases.c.id.in_(ids))).rowcount, **deleted}
