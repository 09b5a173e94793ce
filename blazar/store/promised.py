# SPDX-License-Identifier: Apache-2.0
"""What is promised of one resource, and to whom: what a change of the resource must leave."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.amounts import Amounts
from blazar.model.errors import Conflict
from blazar.model.lease import Reservation
from blazar.model.resource import Resource
from blazar.store.rows import RESERVATION_COLUMNS, reservation_of
from blazar.store.tables import allocations, reservations


def reservations_on(connection: Connection, resource_id: int) -> tuple[Reservation, ...]:
    """Return the reservations to which a resource is promised."""
    promised = sa.select(allocations.c.reservation_id).where(
        allocations.c.resource_id == resource_id, allocations.c.released_at.is_(None)
    )
    rows = connection.execute(sa.select(*RESERVATION_COLUMNS).where(reservations.c.id.in_(promised))).all()
    return tuple(reservation_of(row) for row in rows)


def check_capacity(connection: Connection, resource: Resource, at: datetime) -> None:
    """Raise Conflict if a resource has less capacity than is promised of it at any time; one statement.

    Who has the whole of it has all that there is.
    """
    a = allocations.c
    shared = (a.resource_id == resource.id, a.released_at.is_(None), a.unit.is_not(None))
    rows = connection.execute(sa.select(a.starts_at, a.ends_at, a.blocks_until, a.units, a.unit).where(*shared)).all()
    steps: list[tuple[datetime, int, Amounts]] = []
    for starts_at, ends_at, blocks_until, count, unit in rows:
        # Who should have left, and has not, has it still.
        until = max(ends_at, blocks_until, at)
        promised = Amounts.of({name: amount * count for name, amount in Amounts.of(unit).items})
        steps += [(starts_at, 1, promised), (until, -1, promised)]
    taken: Counter[str] = Counter()
    peak: Counter[str] = Counter()
    # What ends at an instant leaves before what begins then.
    for _, sign, promised in sorted(steps, key=lambda step: step[:2]):
        for name, amount in promised.items:
            taken[name] += sign * amount
            peak[name] = max(peak[name], taken[name])
    for name, amount in sorted(peak.items()):
        if amount > (resource.capacity.get(name) or 0):
            raise Conflict(
                f"{resource.name} has {amount} {name} promised at one time; give it at least that capacity, or wait "
                f"until the leases have ended",
                code="resource_in_use",
            )
