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
from functools import cache

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.errors import StaleCalendar
from blazar.model.leases.states import LeaseStatus
from blazar.store.sql.prepared import MOST_TOGETHER, ExpectedRows, update
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
    if not expected:
        # No condition would be met by all resources.
        return
    if len(expected) <= MOST_TOGETHER:
        values: dict[str, int] = {}
        for number, (id_, generation) in enumerate(sorted(expected.items())):
            values |= {f"id_{number}": id_, f"known_{number}": generation}
        update(connection, _raise_few(len(expected)), values, ExpectedRows(len(expected), _tell_stale))
        return
    for chunk in chunks(sorted(expected.items())):
        raised = connection.execute(_RAISE, {"expected": chunk})
        if raised.rowcount != len(chunk):
            raise _tell_stale()


@cache
def _raise_few(count: int) -> sa.Update:
    """Return the statement that raises a few generations, which is compiled once."""
    are_as_expected = [
        sa.and_(resources.c.id == sa.bindparam(f"id_{n}"), resources.c.generation == sa.bindparam(f"known_{n}"))
        for n in range(count)
    ]
    return (
        resources.update()
        .where(resources.c.live == 1, sa.or_(*are_as_expected))
        .values(generation=resources.c.generation + 1)
    )


def _tell_stale() -> StaleCalendar:
    return StaleCalendar("a resource was booked by another request in the meantime")
