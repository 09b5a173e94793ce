# SPDX-License-Identifier: Apache-2.0
"""What tells that the calendar has changed.

A resource has a generation, which each booking raises: what was planned on an older one is not written, which makes
bookings atomic. The calendar as a whole has sums that another change never leaves the same. Each change of a lease
raises its revision, and each change of a resource the version of its kind. What a plan says of those that wait changes
nothing. The last allocation tells a new lease from one that was deleted meanwhile, whatever the clocks of managers say.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.errors import StaleCalendar
from blazar.model.leases.states import LeaseStatus
from blazar.store.sql.rows import chunks
from blazar.store.sql.tables import UTC_TIME, allocations, inventory_versions, leases, resources

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
"""The ``blocks_until`` of what was given up before it began, a use or maintenance: it never blocks anything."""

# Statements of every booking, built once: building one costs as much as executing it.
_GENERATIONS = sa.select(resources.c.id, resources.c.generation).where(
    resources.c.id.in_(sa.bindparam("ids", expanding=True))
)
_RAISE = (
    resources.update()
    .where(
        resources.c.live == 1,
        sa.tuple_(resources.c.id, resources.c.generation).in_(sa.bindparam("expected", expanding=True)),
    )
    .values(generation=resources.c.generation + 1)
)

_COUNTED = (leases.c.status != str(LeaseStatus.WAITING), leases.c.deleted_at.is_(None))

LEASES = sa.select(sa.func.count()).where(*_COUNTED).select_from(leases).scalar_subquery()
REVISIONS = sa.select(sa.func.sum(leases.c.revision)).where(*_COUNTED).scalar_subquery()
LAST_DELETION = sa.select(sa.func.max(leases.c.deleted_at, type_=UTC_TIME)).scalar_subquery()
LAST_ALLOCATION = sa.select(sa.func.max(allocations.c.id)).scalar_subquery()
INVENTORIES = sa.select(sa.func.sum(inventory_versions.c.version)).scalar_subquery()


def read_generations(connection: Connection, ids: Collection[int]) -> Mapping[int, int]:
    """Return the generations of resources."""
    found: dict[int, int] = {}
    for part in chunks(sorted(ids)):
        found.update((id_, generation) for id_, generation in connection.execute(_GENERATIONS, {"ids": part}))
    return found


def raise_generations(connection: Connection, expected: Mapping[int, int]) -> None:
    """Raise the generations of resources that are still as expected; StaleCalendar if one is not."""
    for chunk in chunks(sorted(expected.items())):
        raised = connection.execute(_RAISE, {"expected": chunk})
        if raised.rowcount != len(chunk):
            raise StaleCalendar("a resource was booked by another request in the meantime")
