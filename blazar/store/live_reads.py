# SPDX-License-Identifier: Apache-2.0
"""Reads live allocations: those that have not been returned."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.demand import Allocation
from blazar.model.resource import ResourceKind
from blazar.store.rows import ALLOCATION_COLUMNS, allocation_of
from blazar.store.tables import allocations


def live_allocations(
    connection: Connection,
    kind: ResourceKind,
    narrowed: Mapping[str, Collection[object]],
    *,
    ending_after: datetime | None = None,
) -> tuple[Allocation, ...]:
    """Return the live allocations of a kind, earliest first, in one statement.

    ``narrowed`` has the values that columns may have (``resource_id``, ``lease_id``, ``reservation_id``), each few
    enough for one condition.
    """
    where: list[sa.ColumnElement[bool]] = [allocations.c.kind == str(kind), allocations.c.released_at.is_(None)]
    where += (allocations.c[name].in_(list(values)) for name, values in narrowed.items())
    if ending_after is not None:
        where.append(allocations.c.ends_at >= ending_after)
    rows = connection.execute(sa.select(*ALLOCATION_COLUMNS).where(*where).order_by(allocations.c.id)).all()
    return tuple(sorted((allocation_of(row) for row in rows), key=lambda a: (a.window.start, a.lease_id)))
