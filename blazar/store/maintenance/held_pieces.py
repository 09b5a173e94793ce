# SPDX-License-Identifier: Apache-2.0
"""What leases have of resources from now on, for a plan that moves them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.amounts import Amounts
from blazar.model.base.values import dataclass
from blazar.model.base.window import Window
from blazar.model.resources.resource import ResourceKind
from blazar.store.calendar.occupancy import parse_amounts
from blazar.store.sql.clock import epoch_seconds
from blazar.store.sql.rows import AnyRow
from blazar.store.sql.tables import allocations, leases, reservations


@dataclass(frozen=True, slots=True)
class HeldPiece:
    """What a lease has of a resource from now on, in seconds since the epoch; ``clean_at`` is when others may have it.

    ``parameters`` are those of the reservation, as JSON. ``released``: only the cleaning is left.
    """

    resource_id: int
    lease_id: str
    reservation_id: str
    start: int
    end: int
    clean_at: int
    count: int
    per_instance: Amounts | None
    released: bool
    lease_status: str
    lease_revision: int
    name: str
    project_id: str
    user_id: str
    keep_hosts: bool
    status: str
    resource_type: str
    region: str
    parameters: str


def read_pieces(
    connection: Connection, kind: ResourceKind, now: datetime, *, around: Window | None = None
) -> tuple[HeldPiece, ...]:
    """Return all that is promised of a kind from now on, late users among it, in one statement.

    ``around`` a window: only what is promised while anything is that meets it.
    """
    query = _select_lease_pieces(connection.dialect.name, kind, now)
    if around is not None:
        query = query.where(_meets(kind, around, now))
    return tuple(map(_piece_of, connection.execute(query)))


def _meets(kind: ResourceKind, window: Window, now: datetime) -> sa.ColumnElement[bool]:
    """Select what is promised between the first start and the last end of what meets a window, and late users."""
    a, other = allocations.c, allocations.alias("other").c
    met = (other.kind == str(kind), other.starts_at < window.end, other.blocks_until > window.start)
    first = sa.select(sa.func.coalesce(sa.func.min(other.starts_at), window.start)).where(*met).scalar_subquery()
    last = sa.select(sa.func.coalesce(sa.func.max(other.blocks_until), window.end)).where(*met).scalar_subquery()
    is_late = sa.and_(a.released_at.is_(None), a.blocks_until <= now)
    return sa.or_(is_late, sa.and_(a.blocks_until > first, a.starts_at < last))


def _piece_of(row: AnyRow) -> HeldPiece:
    resource_id, lease_id, reservation_id, start, end, clean_at, count, text, released, *of_lease = row
    amounts = None if text is None else parse_amounts(text)
    span = (start, end, clean_at)
    return HeldPiece(resource_id, lease_id, reservation_id, *span, count, amounts, bool(released), *of_lease)


def _select_lease_pieces(dialect: str, kind: ResourceKind, now: datetime) -> sa.Select[Any]:
    """Return a query of pieces, in the order of their fields."""
    a = allocations.c
    return (
        sa.select(
            a.resource_id,
            a.lease_id,
            a.reservation_id,
            epoch_seconds(dialect, a.starts_at),
            epoch_seconds(dialect, a.ends_at),
            epoch_seconds(dialect, a.blocks_until),
            a.count,
            sa.cast(a.per_instance, sa.Text()),
            sa.case((a.released_at.is_not(None), 1), else_=0),
            leases.c.status,
            leases.c.revision,
            leases.c.name,
            leases.c.project_id,
            leases.c.user_id,
            leases.c.keep_hosts,
            reservations.c.status,
            reservations.c.resource_type,
            reservations.c.region,
            sa.cast(reservations.c.parameters, sa.Text()),
        )
        .join(leases, leases.c.id == a.lease_id)
        .join(reservations, reservations.c.id == a.reservation_id)
        .where(a.kind == str(kind), sa.or_(a.blocks_until > now, a.released_at.is_(None)))
        .order_by(a.id)
    )
