# SPDX-License-Identifier: Apache-2.0
"""The store of reports: what leases have, or had, of resources in a period, with what rows of reports tell apart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cache, lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.amounts import Amounts
from blazar.model.base.window import Window
from blazar.model.reports.usage import ResourceUse
from blazar.model.use.resource_hours import measure_amounts
from blazar.store.calendar.occupancy import epoch_seconds
from blazar.store.calendar.uses import select_parts
from blazar.store.sql.tables import allocations, leases, reservations, resources
from blazar.store.sql.transactions import Transactions


class ReportStore:
    """Reads what reports are made of."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    @contextmanager
    def view_uses(
        self, window: Window, *, now: datetime, project_id: str | None = None
    ) -> Iterator[Iterator[ResourceUse]]:
        """Open the uses that overlap a window, of one project or of all; two statements."""
        with self._transactions.reading() as connection:
            yield read_uses(connection, window, now=now, project_id=project_id)


def read_uses(
    connection: Connection, window: Window, *, now: datetime, project_id: str | None = None
) -> Iterator[ResourceUse]:
    """Yield the uses that overlap a window, of one project or of all; in two statements.

    A user who should have left and has not uses the resource until ``now``.
    """
    # The index of what is promised in a window begins with the kind.
    kinds = connection.execute(sa.select(resources.c.kind).distinct()).scalars().all()
    values = {"begin": window.start, "end": window.end, "now": now, "kinds": sorted(kinds), "project": project_id}
    query = _select_uses(connection.dialect.name, of_project=project_id is not None)
    for row in connection.execute(query, values):
        *use, count, per_instance = row
        # What was given back before it began never was used.
        if (found := ResourceUse(*(*use, _count_units(use[6], count, per_instance)))).left > found.start:
            yield found


@cache
def _select_uses(dialect: str, *, of_project: bool) -> sa.CompoundSelect[Any]:
    """Return the statement for the uses in a window."""
    a = allocations.c
    begin, end, now = (sa.bindparam(name, type_=a.starts_at.type) for name in ("begin", "end", "now"))
    left = sa.case((a.released_at.is_not(None), a.released_at), (a.ends_at < now, now), else_=a.ends_at)
    query = sa.select(
        leases.c.id,
        leases.c.project_id,
        leases.c.user_id,
        leases.c.kind,
        reservations.c.resource_type,
        a.resource_id,
        a.kind,
        resources.c.region,
        epoch_seconds(dialect, sa.case((a.added_at > a.starts_at, a.added_at), else_=a.starts_at)),
        epoch_seconds(dialect, a.ends_at),
        epoch_seconds(dialect, left),
        a.count,
        # As text: few sizes are different, and each is parsed once.
        sa.cast(a.per_instance, sa.Text()),
    ).select_from(
        allocations.join(leases, leases.c.id == a.lease_id)
        .join(reservations, reservations.c.id == a.reservation_id)
        .join(resources, resources.c.id == a.resource_id)
    )
    if of_project:
        query = query.where(leases.c.project_id == sa.bindparam("project", type_=leases.c.project_id.type))
    of_kind = a.kind.in_(sa.bindparam("kinds", expanding=True))
    return sa.union_all(*select_parts(query, [of_kind], begin, end, now))


@lru_cache(maxsize=1024)
def _count_units(kind: str, count: int, per_instance: str | None) -> int:
    """Return how much of a resource a use has, by the first measure of its kind."""
    amounts = None if per_instance is None else Amounts.of(json.loads(per_instance))
    return next(iter(measure_amounts(kind, count, amounts).values()))
