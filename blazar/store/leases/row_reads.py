# SPDX-License-Identifier: Apache-2.0
"""Reads of leases as rows of texts: the databases write instants and JSON as text, and nothing is parsed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.leases.details import EventRow, LeaseRow, LeaseRows, ReservationRow
from blazar.model.leases.states import HIDDEN_EVENTS
from blazar.store.leases.leases import read_leases
from blazar.store.sql.among import select_among
from blazar.store.sql.tables import events, leases, reservations
from blazar.store.sql.transactions import Transactions

MOST_TEXT = 4 * 1024 * 1024
"""Characters of parameters and ids in one answer: with the rest it is smaller than what a message bus takes."""


def _text(column: sa.Column[Any]) -> sa.ColumnElement[str]:
    return sa.cast(column, sa.String)


_LEASES = sa.select(
    leases.c.id,
    leases.c.revision,
    leases.c.name,
    leases.c.user_id,
    leases.c.project_id,
    _text(leases.c.starts_at),
    _text(leases.c.ends_at),
    leases.c.trust_id,
    leases.c.status,
    leases.c.degraded,
    _text(leases.c.created_at),
    _text(leases.c.updated_at),
    leases.c.queued_at.is_not(None),
).where(leases.c.deleted_at.is_(None))
_RESERVATIONS = sa.select(
    reservations.c.lease_id,
    reservations.c.id,
    reservations.c.resource_type,
    reservations.c.resource_id,
    reservations.c.status,
    reservations.c.missing_resources,
    reservations.c.resources_changed,
    _text(reservations.c.parameters),
    _text(reservations.c.cloud_ids),
    _text(reservations.c.created_at),
    _text(reservations.c.updated_at),
    reservations.c.parent_id,
).order_by(reservations.c.position)
_SHOWN_EVENTS = events.c.event_type.not_in([str(kind) for kind in HIDDEN_EVENTS])
_EVENTS = (
    sa.select(
        events.c.lease_id,
        events.c.id,
        events.c.event_type,
        _text(events.c.time),
        events.c.status,
        _text(events.c.created_at),
        _text(events.c.updated_at),
    )
    .where(_SHOWN_EVENTS)
    .order_by(events.c.position)
)


class LeaseRowStore:
    """Reads leases as rows."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def read(self, lease_ids: Sequence[str]) -> LeaseRows:
        """Return leases by id as a list shows them, in three statements; six if some of them wait."""
        if not lease_ids:
            return LeaseRows(0)
        with self._transactions.reading() as connection:
            kept = _rows(connection, _RESERVATIONS, reservations.c.lease_id, lease_ids)
            fitting = _count_fitting(lease_ids, kept)
            ids = frozenset(lease_ids[:fitting])
            found = _rows(connection, _LEASES, leases.c.id, lease_ids[:fitting])
            due = _rows(connection, _EVENTS, events.c.lease_id, lease_ids[:fitting])
            waits = [row[0] for row in found if row[-1]]
            waiting = read_leases(connection, [leases.c.id.in_(waits)]) if waits else ()
        return LeaseRows(
            fitting,
            cast(tuple[LeaseRow, ...], tuple(row[:-1] for row in found if not row[-1])),
            cast(tuple[ReservationRow, ...], tuple(_select(kept, ids - {*waits}))),
            cast(tuple[EventRow, ...], tuple(_select(due, ids - {*waits}))),
            waiting,
        )


def _rows(
    connection: Connection, query: sa.Select[Any], column: sa.Column[Any], ids: Sequence[str]
) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in select_among(connection, query, column, ids).all()]


def _select(rows: Iterable[tuple[Any, ...]], ids: frozenset[str]) -> Iterable[tuple[Any, ...]]:
    return (row for row in rows if row[0] in ids)


def _count_fitting(ids: Sequence[str], kept: Iterable[tuple[Any, ...]]) -> int:
    """Return of how many leases, from the first on, the reservations fit into one answer; 1 at least."""
    sizes: Counter[str] = Counter()
    for row in kept:
        sizes[row[0]] += len(row[7]) + len(row[8])
    total = 0
    for number, lease_id in enumerate(ids):
        total += sizes[lease_id]
        if total > MOST_TEXT:
            return max(1, number)
    return len(ids)
