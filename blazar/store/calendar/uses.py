# SPDX-License-Identifier: Apache-2.0
"""Reads the uses of resources over a range of time: past, present and promised ones; and live allocations."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from functools import cache, lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.calendar.blocks import Use
from blazar.calendar.kept import KeptCalendar, KeptResource
from blazar.calendar.timeline import epoch
from blazar.model.base.amounts import Amounts
from blazar.model.base.values import dataclass, field
from blazar.model.base.window import Window
from blazar.model.calendar.allocations import Allocation
from blazar.model.calendar.views import BlockLease
from blazar.model.maintenance.windows import MaintenanceBlock
from blazar.model.resources.resource import ResourceKind
from blazar.store.calendar.kept_rows import read_own
from blazar.store.calendar.occupancy import instant_of, late_use_conditions
from blazar.store.calendar.timelines import read_blocks
from blazar.store.resources.catalog import ResourceCatalog
from blazar.store.sql.among import select_among
from blazar.store.sql.clock import epoch_seconds
from blazar.store.sql.rows import ALLOCATION_COLUMNS, CHUNK, AnyRow, allocation_of, chunks
from blazar.store.sql.tables import allocations, leases


def read_live_allocations(
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


class LeasesRead(Enum):
    """The leases that are read with the uses; of other uses only the time and the amounts are read."""

    NONE = "none"
    OF_PROJECT = "of one project"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Uses:
    """Uses by resource, and the leases that were read with them, by id."""

    by_resource: Mapping[int, Sequence[Use]]
    leases: Mapping[str, BlockLease] = field(default_factory=dict)


class UsesView:
    """The calendar of a kind over time, as seen by one transaction. Valid only while that is open."""

    def __init__(
        self,
        connection: Connection,
        catalog: ResourceCatalog,
        kind: ResourceKind,
        kept: KeptCalendar | None = None,
    ) -> None:
        self.catalog = catalog
        self.kept = kept
        """What is promised from now on, if it was asked for and is kept."""
        self._connection = connection
        self._dialect = connection.dialect.name
        self._kind = kind

    def read_uses(
        self,
        window: Window,
        *,
        as_of: datetime,
        leases_read: LeasesRead,
        project_id: str = "",
        resource_ids: Collection[int] | None = None,
    ) -> Uses:
        """Return the uses in a window, of all resources or at least of these; one statement, two if leases are over.

        A user who should have left and has not uses the resource until ``as_of``.
        """
        every = resource_ids is None or len(resource_ids) >= min(len(self.catalog.resources), CHUNK)
        more = {} if every or resource_ids is None else {"ids": sorted(resource_ids)}
        query = _select_uses(self._dialect, leases_read, narrowed=not every)
        rows = self._execute(query, window, as_of, project_id, **more)
        if leases_read is LeasesRead.NONE:
            return _parse_uses(((*row, *_NO_LEASE) for row in rows), {})
        return _parse_uses(rows, self._read_over(rows) if leases_read is LeasesRead.ALL else {})

    def list_kept_without(self, lease_id: str, *, as_of: datetime) -> Mapping[int, KeptResource] | None:
        """Return what is kept, by resource, without what a lease has; None if nothing is; one statement."""
        if self.kept is None:
            return None
        own = read_own(self._connection, self._kind, [lease_id], epoch(as_of))
        return self.kept.without(own).resources if own else self.kept.resources

    def find_occupied(self, project_id: str, window: Window, *, as_of: datetime) -> frozenset[int]:
        """Return the resources of which a project has a part in a window; one statement."""
        used: set[int] = set()
        query = _select_uses(self._dialect, LeasesRead.OF_PROJECT, narrowed=False, without_others=True)
        rows = self._execute(query, window, as_of, project_id)
        for resource_id, uses in _parse_uses(rows, {}).by_resource.items():
            if any(use.start < window.end and use.end > window.start for use in uses):
                used.add(resource_id)
        return frozenset(used)

    def read_closed(self, window: Window) -> Mapping[int, Sequence[MaintenanceBlock]]:
        """Return the maintenance windows of resources that overlap a window, by resource; one statement."""
        return read_blocks(self._connection, self._kind, window)

    def read_live(
        self, narrowed: Mapping[str, Collection[object]], *, ending_after: datetime | None = None
    ) -> tuple[Allocation, ...]:
        """Return live allocations, as ``read_live_allocations``."""
        return read_live_allocations(self._connection, self._kind, narrowed, ending_after=ending_after)

    def _read_over(self, rows: Iterable[AnyRow]) -> Mapping[str, BlockLease]:
        """Return those leases of uses that are over, by id: only current ones are read with the uses."""
        over = {row[_LEASE_ID] for row in rows if row[_PROJECT_ID] is None}
        found: dict[str, BlockLease] = {}
        for part in chunks(sorted(over)):
            theirs: Sequence[AnyRow] = select_among(self._connection, _BLOCK_LEASE, leases.c.id, part).all()
            for row in theirs:
                found[row[0]] = BlockLease(row[0], row[1], row[2], row[3], row[4])
        return found

    def _execute(
        self, query: sa.CompoundSelect[Any], window: Window, as_of: datetime, project_id: str, **more: object
    ) -> Sequence[AnyRow]:
        values = {
            "kind": str(self._kind),
            "begin": window.start,
            "end": window.end,
            "now": as_of,
            "project": project_id,
            **more,
        }
        return self._connection.execute(query, values).all()


@cache
def _select_uses(
    dialect: str, leases_read: LeasesRead, *, narrowed: bool, without_others: bool = False
) -> sa.CompoundSelect[Any]:
    """Return the statement for the uses in a range. ``without_others``: without the uses of others.

    Cached: building it costs as much as executing it for a page.
    """
    a = allocations.c
    instant = a.starts_at.type
    begin, end, now = (sa.bindparam(name, type_=instant) for name in ("begin", "end", "now"))
    added = sa.case((a.added_at > a.starts_at, a.added_at), else_=a.starts_at)
    # Who has left was there until then, who has not is there at least until now.
    left = sa.case((a.released_at.is_not(None), a.released_at), (a.ends_at < now, now), else_=a.ends_at)
    # Drivers take their time for each column of each row: so no more than these, and numbers rather than dates.
    columns: tuple[Any, ...] = (
        a.resource_id,
        epoch_seconds(dialect, added),
        epoch_seconds(dialect, left),
        epoch_seconds(dialect, a.blocks_until),
        a.count,
        # As text: few sizes are different, and each is parsed once.
        sa.cast(a.per_instance, sa.Text()),
    )
    theirs = _CURRENT if leases_read is LeasesRead.ALL and not narrowed and dialect == "postgresql" else leases
    query = _select_with_leases(columns, leases_read, theirs, without_others=without_others)
    of_kind = [a.kind == sa.bindparam("kind", type_=a.kind.type)]
    if narrowed:
        of_kind.append(a.resource_id.in_(sa.bindparam("ids", expanding=True)))
    return sa.union_all(*select_parts(query, of_kind, begin, end, now))


def select_parts(
    query: sa.Select[Any],
    of_kind: Sequence[sa.ColumnElement[bool]],
    begin: sa.ColumnElement[datetime],
    end: sa.ColumnElement[datetime],
    now: sa.ColumnElement[datetime],
) -> tuple[sa.Select[Any], ...]:
    """Return a query of uses as those of the three parts that a range has: together each use, once.

    Each part has an index of its own: uses with their cleaning; late users; what was given back before, which blocks
    nothing any more.
    """
    a, of_kind = allocations.c, [*of_kind, allocations.c.starts_at < end]
    promised = query.where(*of_kind, a.blocks_until > begin)
    late = query.where(*of_kind, *late_use_conditions(now, begin), begin < now)
    past = query.where(*of_kind, a.released_at > begin, a.released_at > a.starts_at, a.blocks_until <= begin)
    return promised, late, past


_LEASE_ID, _PROJECT_ID = 6, 7
"""The columns of a row of a use that say which its lease is, and whose; the owner of a lease that is over is NULL."""
_BLOCK_LEASE = sa.select(leases.c.id, leases.c.name, leases.c.project_id, leases.c.user_id, leases.c.status)


_CURRENT = (
    sa.select(leases.c.id, leases.c.project_id, leases.c.name, leases.c.user_id, leases.c.status, leases.c.is_over)
    .where(leases.c.is_over == 0)
    .cte("current_leases")
    .prefix_with("MATERIALIZED", dialect="postgresql")
)
"""The current leases, read at once: of a record of a million ended ones PostgreSQL would look for each by itself."""


def _select_with_leases(
    columns: Sequence[Any], leases_read: LeasesRead, theirs: sa.FromClause, *, without_others: bool
) -> sa.Select[Any]:
    """Return a query of columns of allocations, with those of the leases, ``theirs``, that are read with them.

    All leases are current ones: if others were asked for, too, databases would rather read all that there ever were.
    """
    if leases_read is LeasesRead.NONE:
        return sa.select(*columns)
    a = allocations.c
    of_project = leases_read is LeasesRead.OF_PROJECT
    mine = theirs.c.project_id == sa.bindparam("project", type_=leases.c.project_id.type)
    joined = allocations.join(
        theirs,
        sa.and_(theirs.c.id == a.lease_id, mine if of_project else theirs.c.is_over == 0),
        isouter=not without_others,
    )
    owner = theirs.c.project_id, theirs.c.name, theirs.c.user_id, theirs.c.status
    nothing: sa.ColumnElement[Any] = sa.cast(sa.null(), sa.Text())
    which = (theirs.c.id, *owner, a.reservation_id) if of_project else (a.lease_id, *owner, nothing)
    return sa.select(*columns, *which).select_from(joined)


def _parse_uses(rows: Iterable[Sequence[Any]], over: Mapping[str, BlockLease]) -> Uses:
    """Return the uses of rows with their leases, as far as these were read; other uses are those of others."""
    found: dict[int, list[Use]] = defaultdict(list)
    known = dict(over)
    for row in rows:
        resource_id, start, end, clean_at, count, per_instance, lease_id, project_id, name, user_id, status, own = row
        if lease_id is None:
            own = None
        else:
            lease = known.get(lease_id)
            if lease is None:
                lease = known[lease_id] = BlockLease(lease_id, name, project_id, user_id, status)
            project_id = lease.project_id
        ended = instant_of(end)
        cleaned = ended if clean_at <= end else instant_of(clean_at)
        amounts = None if per_instance is None else _parse_total(per_instance, count)
        use = Use(resource_id, instant_of(start), ended, cleaned, amounts, lease_id, own, project_id)
        found[resource_id].append(use)
    return Uses(dict(found), known)


_NO_LEASE = (None,) * 6


@lru_cache(maxsize=1024)
def _parse_total(per_instance: str, count: int) -> Amounts:
    return Amounts.of(json.loads(per_instance)).times(count)
