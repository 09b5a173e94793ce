# SPDX-License-Identifier: Apache-2.0
"""What leases have of resources from now on, for a plan that moves them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.amounts import Amounts
from blazar.model.resource import ResourceKind
from blazar.store.occupancy import amounts_of
from blazar.store.seconds import seconds
from blazar.store.tables import (
    allocations,
    leases,
    reservations,
)


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
    status: str
    resource_type: str
    region: str
    parameters: str


def held_pieces(connection: Connection, kind: ResourceKind, now: datetime) -> tuple[HeldPiece, ...]:
    """Return all that is promised of a kind from now on, late users among it, in one statement."""
    a, dialect = allocations.c, connection.dialect.name
    query = (
        sa.select(
            a.resource_id,
            a.lease_id,
            a.reservation_id,
            seconds(dialect, a.starts_at),
            seconds(dialect, a.ends_at),
            seconds(dialect, a.blocks_until),
            a.units,
            sa.cast(a.unit, sa.Text()),
            sa.case((a.released_at.is_not(None), 1), else_=0),
            leases.c.status,
            leases.c.revision,
            leases.c.name,
            leases.c.project_id,
            leases.c.user_id,
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
    return tuple(
        HeldPiece(
            resource_id,
            lease_id,
            reservation_id,
            start,
            end,
            clean_at,
            count,
            None if text is None else amounts_of(text),
            bool(released),
            *rest,
        )
        for resource_id, lease_id, reservation_id, start, end, clean_at, count, text, released, *rest in (
            connection.execute(query)
        )
    )
