# SPDX-License-Identifier: Apache-2.0
"""Leases that are over for long, which operators delete for good: with all that belongs to them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.journal.entries import ObjectType
from blazar.model.leases.states import LeaseStatus
from blazar.store.sql.tables import accounts, allocations, events, journal, leases, metadata
from blazar.store.sql.tables import outbox as outbox_table

PARTS = (
    (journal, journal.c.object_id),
    *(
        (table, column)
        for table in reversed(metadata.sorted_tables)
        for column in table.columns
        if any(key.column is leases.c.id for key in column.foreign_keys)
    ),
)
"""The tables whose rows belong to leases, with the column of the lease id, in an order in which they can be deleted."""


def count_rows(connection: Connection, before: datetime) -> Mapping[str, int]:
    """Return the number of leases deleted or ended before then, and of their rows by table."""
    past = sa.select(leases.c.id).where(_is_purgeable(before))
    total = sa.select(sa.func.count()).select_from(leases).where(_is_purgeable(before))
    counts = {
        str(table.name): connection.execute(_count_parts(table, column, past)).scalar_one() for table, column in PARTS
    }
    return {"leases": connection.execute(total).scalar_one(), **counts}


def delete_rows(connection: Connection, before: datetime, limit: int) -> Mapping[str, int]:
    """Delete at most ``limit`` of these leases with all their rows for good; return the number of rows by table."""
    # Locked, so that a concurrent deletion of one of them finds all of it or nothing.
    first = sa.select(leases.c.id).where(_is_purgeable(before)).order_by(leases.c.id).limit(limit).with_for_update()

    ids = list(connection.execute(first).scalars())
    if not ids:
        return {}
    deleted = {
        str(table.name): connection.execute(table.delete().where(*_select_parts(table, column, ids))).rowcount
        for table, column in PARTS
    }
    return {"leases": connection.execute(leases.delete().where(leases.c.id.in_(ids))).rowcount, **deleted}


def _select_parts(table: sa.Table, column: sa.Column[Any], ids: Any) -> list[sa.ColumnElement[bool]]:
    """Select the rows of a table that belong to leases; in the journal there are also those of other objects."""
    belongs = column.in_(ids)
    return [journal.c.object_type == str(ObjectType.LEASE), belongs] if table is journal else [belongs]


def _count_parts(table: sa.Table, column: sa.Column[Any], ids: Any) -> sa.Select[int]:
    return sa.select(sa.func.count()).select_from(table).where(*_select_parts(table, column, ids))


def _is_purgeable(before: datetime) -> sa.ColumnElement[bool]:
    """Select leases deleted, or else ended, before then, with no open event, message, allocation or account.

    One that waited in vain has ended when it gave up, one for which no room was made with its window.
    """
    over = sa.or_(
        sa.and_(leases.c.status == str(LeaseStatus.TERMINATED), leases.c.ends_at < before),
        sa.and_(
            leases.c.status == str(LeaseStatus.TIMED_OUT),
            sa.func.coalesce(leases.c.wait_until, leases.c.ends_at) < before,
        ),
    )
    ended = sa.and_(leases.c.deleted_at.is_(None), over)
    undelivered = sa.exists().where(outbox_table.c.lease_id == leases.c.id, outbox_table.c.due_at.is_not(None))
    undone = sa.exists().where(events.c.lease_id == leases.c.id, events.c.due_at.is_not(None))
    held = sa.exists().where(allocations.c.lease_id == leases.c.id, allocations.c.released_at.is_(None))
    uncharged = sa.exists().where(accounts.c.lease_id == leases.c.id, accounts.c.due_at.is_not(None))
    return sa.and_(sa.or_(leases.c.deleted_at < before, ended), ~undelivered, ~undone, ~held, ~uncharged)
