# SPDX-License-Identifier: Apache-2.0
"""Reads what is promised over a range of time: all that a search for openings needs of one kind, in one statement."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.calendar.timeline import OutsideUses, Timeline, TimelineTerms, Use, epoch, sort_uses
from blazar.model.base.clock import later, to_second
from blazar.model.base.window import Window
from blazar.model.maintenance.windows import MaintenanceBlock
from blazar.model.resources.resource import ResourceKind
from blazar.store.calendar.occupancy import late_use_conditions, parse_amounts
from blazar.store.sql.clock import epoch_seconds
from blazar.store.sql.rows import AnyRow
from blazar.store.sql.tables import allocations, maintenance_resources, maintenance_windows

_NOTHING = sa.null()


def read_timeline(
    connection: Connection,
    kind: ResourceKind,
    window: Window,
    *,
    without_amounts: bool,
    now: datetime,
    besides: Collection[str],
    cleaning: timedelta,
) -> Timeline:
    """Return what is promised from the start of a window, or from now on if that is later, to its end.

    Without the leases ``besides``. The occupancy of each window in it is the one that ``read_occupancy`` returns.
    """
    second_now = to_second(now)
    begin = max(window.start, second_now)
    query = _select_promised(connection.dialect.name, without_amounts, late=window.start <= now, besides=bool(besides))
    values: dict[str, object] = {"kind": str(kind), "now": now, "begin": begin, "end": later(window.end, cleaning)}
    if besides:
        values["besides"] = sorted(besides)
    rows = connection.execute(query, values).all()
    uses, outside = _parse_whole(rows, epoch(begin)) if without_amounts else _parse_uses(rows, epoch(begin))
    return Timeline(
        sort_uses(uses), TimelineTerms(epoch(second_now), int(cleaning.total_seconds()), without_amounts), outside
    )


# These loops dominate the cost of a search on a large calendar.
def _parse_whole(rows: Iterable[AnyRow], first: int) -> tuple[Mapping[int, list[Use]], OutsideUses]:
    """Return the uses of whole resources that end after the ``first`` second, and those outside the range."""
    uses: dict[int, list[Use]] = defaultdict(list)
    late: dict[int, list[Use]] = defaultdict(list)
    last_ends: dict[int, int] = {}
    first_starts: dict[int, int] = {}
    for resource_id, start, end in rows:
        if start is None:
            last_ends[resource_id] = end
        elif end is None:
            first_starts[resource_id] = start
        elif end > first:
            uses[resource_id].append((start, end, 1, None))
        else:
            late[resource_id].append((start, end, 1, None))
    return uses, OutsideUses(late, last_ends, first_starts)


def _parse_uses(rows: Iterable[AnyRow], first: int) -> tuple[Mapping[int, list[Use]], OutsideUses]:
    """Return the same of uses with their amounts."""
    uses: dict[int, list[Use]] = defaultdict(list)
    late: dict[int, list[Use]] = defaultdict(list)
    last_ends: dict[int, int] = {}
    first_starts: dict[int, int] = {}
    for resource_id, start, end, count, text in rows:
        if start is None:
            last_ends[resource_id] = end
        elif end is None:
            first_starts[resource_id] = start
        else:
            use = start, end, count, None if text is None else parse_amounts(text)
            (uses if end > first else late)[resource_id].append(use)
    return uses, OutsideUses(late, last_ends, first_starts)


@cache
def _select_promised(dialect: str, without_amounts: bool, *, late: bool, besides: bool) -> sa.CompoundSelect[Any]:
    """Return the statement for what is promised in a range and for the uses nearest to it.

    Rows of uses in the range, and of late users, have a start and an end; of the nearest use before the range only the
    end is known, of the one after it only the start. Late users' ends are past. Cached: building it costs more than
    executing it.
    """
    a = allocations.c
    instant = a.starts_at.type
    now, begin, end = (sa.bindparam(name, type_=instant) for name in ("now", "begin", "end"))
    of_kind = [a.kind == sa.bindparam("kind", type_=a.kind.type)]
    if besides:
        of_kind.append(a.lease_id.not_in(sa.bindparam("besides", expanding=True, type_=a.lease_id.type)))
    sizes = () if without_amounts else (a.count, sa.cast(a.per_instance, sa.Text()))
    nothing = () if without_amounts else (sa.cast(_NOTHING, sa.Integer()), sa.cast(_NOTHING, sa.Text()))
    no_instant = sa.cast(_NOTHING, sa.BigInteger())
    used = sa.select(a.resource_id, epoch_seconds(dialect, a.starts_at), epoch_seconds(dialect, a.blocks_until), *sizes)
    parts = [used.where(*of_kind, a.blocks_until > begin, a.starts_at < end)]
    if late:
        parts.append(used.where(*of_kind, *late_use_conditions(now, begin)))
    # For shared use only whole uses count, as in ``occupancy``.
    whole = [] if without_amounts else [a.per_instance.is_(None)]
    last_end = epoch_seconds(dialect, sa.func.max(a.blocks_until))
    first_start = epoch_seconds(dialect, sa.func.min(a.starts_at))
    parts += (
        sa.select(a.resource_id, no_instant, last_end, *nothing)
        .where(*of_kind, *whole, a.blocks_until > now, a.blocks_until <= begin)
        .group_by(a.resource_id),
        sa.select(a.resource_id, first_start, no_instant, *nothing)
        .where(*of_kind, *whole, a.blocks_until > end, a.starts_at >= end)
        .group_by(a.resource_id),
        _select_closed(dialect, without_amounts, begin, end, besides=besides),
    )
    return sa.union_all(*parts)


def _select_closed(
    dialect: str,
    without_amounts: bool,
    begin: sa.ColumnElement[datetime],
    end: sa.ColumnElement[datetime],
    *,
    besides: bool,
) -> sa.Select[Any]:
    """Return the times of resources in maintenance, in the columns of uses: nobody gets them.

    Time in which the lease itself has the resource already stays its own.
    """
    m = maintenance_resources.c
    where = [m.kind == sa.bindparam("kind", type_=m.kind.type), m.blocks_until > begin, m.starts_at < end]
    sizes: tuple[Any, ...] = () if without_amounts else (sa.literal_column("1"), sa.cast(_NOTHING, sa.Text()))
    if not besides:
        return sa.select(
            m.resource_id, epoch_seconds(dialect, m.starts_at), epoch_seconds(dialect, m.blocks_until), *sizes
        ).where(*where)
    own = allocations.alias("own")
    mine = sa.and_(
        own.c.resource_id == m.resource_id,
        own.c.lease_id.in_(sa.bindparam("besides", expanding=True, type_=own.c.lease_id.type)),
        own.c.released_at.is_(None),
    )
    # Comparisons with NULL are unknown, and leave the time as it is.
    starts = sa.case(
        (sa.and_(own.c.starts_at <= m.starts_at, own.c.blocks_until > m.starts_at), own.c.blocks_until),
        else_=m.starts_at,
    )
    ends = sa.case(
        (sa.and_(own.c.starts_at < m.blocks_until, own.c.blocks_until >= m.blocks_until), own.c.starts_at),
        else_=m.blocks_until,
    )
    return (
        sa.select(m.resource_id, epoch_seconds(dialect, starts), epoch_seconds(dialect, ends), *sizes)
        .select_from(maintenance_resources.outerjoin(own, mine))
        .where(*where, starts < ends)
    )


def read_blocks(connection: Connection, kind: ResourceKind, window: Window) -> Mapping[int, Sequence[MaintenanceBlock]]:
    """Return the maintenance windows of resources of a kind that overlap a window, by resource; one statement."""
    r = maintenance_resources.c
    query = (
        sa.select(r.resource_id, r.starts_at, r.blocks_until, r.maintenance_id, maintenance_windows.c.reason)
        .join(maintenance_windows, maintenance_windows.c.id == r.maintenance_id)
        .where(
            r.kind == str(kind), r.blocks_until > window.start, r.starts_at < window.end, r.starts_at < r.blocks_until
        )
        .order_by(r.resource_id, r.starts_at, r.maintenance_id)
    )
    found: dict[int, list[MaintenanceBlock]] = defaultdict(list)
    for id_, start, end, maintenance_id, reason in connection.execute(query):
        found[id_].append(MaintenanceBlock(id_, Window(start, end), maintenance_id, reason))
    return found
