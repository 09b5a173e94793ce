# SPDX-License-Identifier: Apache-2.0
"""The store of reports: the uses of a period with all that tells them apart, and what was given back of it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import cache, lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.amounts import Amounts
from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import Window
from blazar.model.leases.states import EventStatus, EventType, ReservationStatus
from blazar.model.reports.sums import ResourceUse, UsageFacts
from blazar.model.resources.resource import HOST
from blazar.model.use.resource_hours import VCPU, measure_amounts
from blazar.store.calendar.uses import select_parts
from blazar.store.reports import facts
from blazar.store.sql.clock import epoch_seconds
from blazar.store.sql.rows import AnyRow
from blazar.store.sql.tables import (
    allocations,
    events,
    leases,
    reservations,
    resource_capabilities,
    resource_properties,
    resources,
)
from blazar.store.sql.transactions import Transactions


@dataclass(frozen=True, slots=True)
class UsageView:
    """What leases had in a window, as one transaction sees it, and what else is known. Valid while that is open."""

    uses: Iterator[ResourceUse]
    facts: UsageFacts


class ReportStore:
    """Reads what reports are made of."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    @contextmanager
    def view_usage(self, window: Window, *, now: datetime, project_id: str | None = None) -> Iterator[UsageView]:
        """Open what leases had in a window, of one project or of all; six statements."""
        with self._transactions.reading() as connection:
            returned = tuple(read_returned(connection, window, project_id=project_id))
            known = replace(facts.read_facts(connection, window, now=now, project_id=project_id), returned=returned)
            yield UsageView(read_uses(connection, window, now=now, project_id=project_id), known)

    def list_uses_of_lease(self, lease_id: str, *, now: datetime) -> tuple[ResourceUse, ...]:
        """Return what a lease has and had until now, also one that is over; one statement."""
        a = allocations.c
        start = sa.case((a.added_at > a.starts_at, a.added_at), else_=a.starts_at)
        left = sa.case((a.released_at.is_not(None), a.released_at), else_=sa.literal(now, a.starts_at.type))
        with self._transactions.reading() as connection:
            query = _select(connection.dialect.name, start, left).where(a.lease_id == lease_id)
            return tuple(_parse_use(row) for row in connection.execute(query.order_by(a.id)))

    def list_host_properties(self, names: Collection[str]) -> Mapping[int, Mapping[str, str]]:
        """Return the values of properties of hosts, by resource and name; one statement."""
        c, p = resource_capabilities.c, resource_properties.c
        query = (
            sa.select(c.resource_id, p.name, c.value)
            .join(resource_properties, p.id == c.property_id)
            .where(p.kind == str(HOST), p.name.in_(sorted(names)))
        )
        found: dict[int, dict[str, str]] = defaultdict(dict)
        with self._transactions.reading() as connection:
            for resource_id, name, value in connection.execute(query):
                found[resource_id][name] = value
        return found


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
        # What was given back before it began never was used.
        if (found := _parse_use(row)).left > found.start:
            yield found


def read_returned(connection: Connection, window: Window, *, project_id: str | None = None) -> Iterator[ResourceUse]:
    """Yield what was promised in a window and given back before, of one project or of all; in one statement."""
    a = allocations.c
    # What was given back before it began keeps its dates.
    given_back = sa.case((a.released_at < a.starts_at, a.starts_at), else_=a.ends_at)
    query = _select(connection.dialect.name, given_back, a.returned_until)
    query = query.where(a.returned_until > window.start, given_back < window.end)
    if project_id is not None:
        query = query.where(leases.c.project_id == project_id)
    for row in connection.execute(query):
        yield _parse_use(row)


@cache
def _select_uses(dialect: str, *, of_project: bool) -> sa.CompoundSelect[Any]:
    """Return the statement for the uses in a window."""
    a = allocations.c
    begin, end, now = (sa.bindparam(name, type_=a.starts_at.type) for name in ("begin", "end", "now"))
    start = sa.case((a.added_at > a.starts_at, a.added_at), else_=a.starts_at)
    left = sa.case((a.released_at.is_not(None), a.released_at), (a.ends_at < now, now), else_=a.ends_at)
    query = _select(dialect, start, left)
    if of_project:
        query = query.where(leases.c.project_id == sa.bindparam("project", type_=leases.c.project_id.type))
    of_kind = a.kind.in_(sa.bindparam("kinds", expanding=True))
    return sa.union_all(*select_parts(query, [of_kind], begin, end, now))


def _select(dialect: str, start: sa.ColumnElement[Any], left: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """Return a query of allocations with all that uses tell, in the order of ``_parse_use``."""
    a, r = allocations.c, reservations.c
    # Reservations that an earlier version handed over do not know when: they are told by the start of their lease.
    unknown = sa.and_(events.c.status == str(EventStatus.DONE), r.status != str(ReservationStatus.PENDING))
    handed_over = sa.case((r.handed_over_at.is_not(None), r.handed_over_at), (unknown, events.c.updated_at))
    started = sa.and_(events.c.lease_id == a.lease_id, events.c.event_type == str(EventType.START))
    return sa.select(
        leases.c.id,
        leases.c.project_id,
        leases.c.user_id,
        leases.c.kind,
        reservations.c.resource_type,
        a.resource_id,
        a.kind,
        resources.c.region,
        epoch_seconds(dialect, start),
        epoch_seconds(dialect, a.ends_at),
        epoch_seconds(dialect, left),
        epoch_seconds(dialect, handed_over),
        a.count,
        # As text: few sizes are different, and each is parsed once.
        sa.cast(a.per_instance, sa.Text()),
    ).select_from(
        allocations.join(leases, leases.c.id == a.lease_id)
        .join(reservations, reservations.c.id == a.reservation_id)
        .join(resources, resources.c.id == a.resource_id)
        .outerjoin(events, started)
    )


def _parse_use(row: AnyRow) -> ResourceUse:
    *use, count, per_instance = row
    return ResourceUse(*(*use, *_count_units(use[6], count, per_instance)))


@lru_cache(maxsize=1024)
def _count_units(kind: str, count: int, per_instance: str | None) -> tuple[int, int | None]:
    """Return how much of a resource a use has, by the first measure of its kind, and of servers their VCPUs."""
    amounts = None if per_instance is None else Amounts.of(json.loads(per_instance))
    measured = measure_amounts(kind, count, amounts)
    return next(iter(measured.values())), measured.get(VCPU)
