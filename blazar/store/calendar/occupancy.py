# SPDX-License-Identifier: Apache-2.0
"""Reads what is promised in a window; rows are parsed when a search inspects their resource.

Instants that many rows have are computed by the database, as seconds since the epoch: to parse many dates costs more.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache, lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.calendar import timeline
from blazar.calendar.occupancy import Lazy, Occupancy, Room, Use
from blazar.model.base.amounts import Amounts
from blazar.model.base.clock import later, to_second
from blazar.model.base.window import Window
from blazar.model.resources.resource import ResourceKind
from blazar.store.sql.rows import AnyRow
from blazar.store.sql.tables import allocations, maintenance_resources

_SECOND = timedelta(seconds=1)
_WHOLE_COLUMNS = (
    allocations.c.resource_id,
    # The start or end of a use after or before the window.
    sa.cast(sa.null(), sa.Text()).label("starts"),
    sa.cast(sa.null(), sa.Text()).label("ends"),
)
_USE_COLUMNS = (
    allocations.c.resource_id,
    # Select as strings and parse lazily: most rows are never inspected.
    sa.cast(allocations.c.starts_at, sa.Text()).label("starts_at"),
    sa.cast(allocations.c.blocks_until, sa.Text()).label("blocks_until"),
    allocations.c.count,
    sa.cast(allocations.c.per_instance, sa.Text()).label("per_instance"),
)


def read_occupancy(
    connection: Connection,
    kind: ResourceKind,
    window: Window,
    *,
    without_amounts: bool,
    now: datetime,
    besides: str | None,
    cleaning: timedelta,
) -> Occupancy:
    """Return what is promised in a window, in one statement.

    A window that has begun counts from now on, and one that has ended counts for the present second: resources for the
    past are assigned now. If the window begins now, a resource whose last user should have left but has not is taken.
    The cleaning time is kept free after every use: after others' (it is part of ``blocks_until``) and after this one,
    before the next user.
    """
    begin = max(window.start, to_second(now))
    span = Window(begin, max(window.end, begin + _SECOND))
    query = _select_promised(without_amounts, begun=window.start <= now, besides=besides is not None)
    values = {"kind": str(kind), "now": now, "begin": begin, "end": later(span.end, cleaning), "besides": besides}
    rows = connection.execute(query, values).all()
    ends: dict[int, str] = {}
    starts: dict[int, str] = {}
    begin_of_room, end_of_room = _naive(window.start), _naive(later(window.end, cleaning))
    room = Room(begin_of_room, end_of_room, _LazyInstants(ends), _LazyInstants(starts))
    taken: set[int] = set()
    if without_amounts:
        for resource_id, start, end in rows:
            if end is not None:
                ends[resource_id] = end
            elif start is not None:
                starts[resource_id] = start
            else:
                taken.add(resource_id)
        return Occupancy.of_uses(taken, {}, room)
    shared: dict[int, list[AnyRow]] = defaultdict(list)
    # This loop dominates the cost of a search on a large calendar: so it parses nothing.
    for row in rows:
        if row[-1] is not None:
            shared[row[0]].append(row)
            continue
        resource_id, start, end, count, _ = row
        if count:
            taken.add(resource_id)
        elif end is not None:
            ends[resource_id] = end
        else:
            starts[resource_id] = start
    return Occupancy.of_uses(taken, _LazyUses(dict(shared), span, cleaning), room)


@cache
def _select_promised(without_amounts: bool, *, begun: bool, besides: bool) -> sa.CompoundSelect[Any]:
    """Return the statement for what is promised in a window and for the uses nearest to it.

    Cached: building it costs more than executing it.
    """
    instant = allocations.c.starts_at.type
    now, begin, end = (sa.bindparam(name, type_=instant) for name in ("now", "begin", "end"))
    of_kind = [allocations.c.kind == sa.bindparam("kind", type_=allocations.c.kind.type)]
    if besides:
        of_kind.append(allocations.c.lease_id != sa.bindparam("besides", type_=allocations.c.lease_id.type))
    columns: tuple[Any, ...] = _WHOLE_COLUMNS if without_amounts else _USE_COLUMNS
    promised = sa.select(*columns).where(*of_kind, allocations.c.blocks_until > begin, allocations.c.starts_at < end)
    late = sa.select(*columns).where(*of_kind, *late_use_conditions(now, begin))
    before = _select_nearest(without_amounts, before=True).where(
        *of_kind, allocations.c.blocks_until > now, allocations.c.blocks_until <= begin
    )
    after = _select_nearest(without_amounts, before=False).where(
        *of_kind, allocations.c.blocks_until > end, allocations.c.starts_at >= end
    )
    closed = _select_closed(without_amounts, begin, end, besides=besides)
    return sa.union_all(promised.distinct() if without_amounts else promised, late if begun else before, after, closed)


def _select_closed(
    without_amounts: bool, begin: sa.ColumnElement[datetime], end: sa.ColumnElement[datetime], *, besides: bool
) -> sa.Select[Any]:
    """Return the resources in maintenance in a window, in the columns of the uses inside it: nobody gets them.

    What the lease itself has of the resource stays its own, for as long as it has it already.
    """
    m = maintenance_resources.c
    nothing = sa.cast(sa.null(), sa.Text())
    columns: tuple[Any, ...] = (nothing, nothing)
    if not without_amounts:
        instants = (sa.cast(m.starts_at, sa.Text()), sa.cast(m.blocks_until, sa.Text()))
        columns = (*instants, sa.literal_column("1"), nothing)
    query = sa.select(m.resource_id, *columns).where(
        m.kind == sa.bindparam("kind", type_=m.kind.type), m.blocks_until > begin, m.starts_at < end
    )
    if not besides:
        return query
    own = allocations.alias("own")
    return query.where(
        ~sa.exists().where(
            own.c.resource_id == m.resource_id,
            own.c.lease_id == sa.bindparam("besides", type_=own.c.lease_id.type),
            own.c.released_at.is_(None),
            sa.or_(own.c.starts_at <= m.starts_at, own.c.starts_at <= begin),
            sa.or_(own.c.blocks_until >= m.blocks_until, own.c.blocks_until >= end),
        )
    )


def late_use_conditions(
    now: sa.ColumnElement[datetime], begin: sa.ColumnElement[datetime]
) -> Sequence[sa.ColumnElement[bool]]:
    """Return the conditions for uses that should have ended, and clean by ``begin`` if they had, but have not.

    These are few, with an index of their own. SQLite would rather take the index of what ends by then, all of the past:
    an expression has none.
    """
    a = allocations.c
    clean_at = sa.func.coalesce(a.blocks_until, a.ends_at)
    return (a.released_at.is_(None), a.ends_at <= now, clean_at <= begin)


def _select_nearest(without_amounts: bool, *, before: bool) -> sa.Select[Any]:
    """Return the nearest use of each resource on one side of a window, in the columns of the uses inside it.

    For shared use only whole uses count: beside shared ones there may be capacity, and resources that are shared at one
    time should be shared at others.
    """
    by_resource = allocations.c.resource_id
    instant = sa.func.max(allocations.c.blocks_until) if before else sa.func.min(allocations.c.starts_at)
    # As strings, too: few of them are inspected.
    nothing, text = sa.cast(sa.null(), sa.Text()), sa.cast(instant, sa.Text())
    columns = (nothing, text) if before else (text, nothing)
    if without_amounts:
        return sa.select(by_resource, *columns).group_by(by_resource)
    whole = sa.select(by_resource, *columns, sa.literal_column("0"), nothing)
    return whole.where(allocations.c.per_instance.is_(None)).group_by(by_resource)


class _LazyInstants(Lazy[str, datetime]):
    """Instants by resource, parsed when they are read."""

    def __getitem__(self, resource_id: int) -> datetime:
        return datetime.fromisoformat(self._raw[resource_id])


class _LazyUses(Lazy[Sequence[AnyRow], Sequence[Use[datetime]]]):
    """The uses that conflict with a use of a span, by resource, each for that time; parsed when they are read."""

    def __init__(self, rows: Mapping[int, Sequence[AnyRow]], span: Window, cleaning: timedelta) -> None:
        super().__init__(rows)
        self._begin, self._end = _naive(span.start), _naive(span.end)
        self._cleaning = cleaning

    def __getitem__(self, resource_id: int) -> Sequence[Use[datetime]]:
        uses: list[Use[datetime]] = []
        instant = datetime.fromisoformat
        for _, starts_at, blocks_until, count, per_instance in self._raw[resource_id]:
            start, end = instant(starts_at) - self._cleaning, instant(blocks_until)
            if end <= self._begin:
                # A late user, who should have left, blocks from now on.
                end = self._end
            if start >= end:
                # A use released in the second in which it began has no length, only the cleaning after it.
                start = end - _SECOND
            uses.append((start, end, count, parse_amounts(per_instance)))
        return uses


def _naive(instant: datetime) -> datetime:
    """Return an instant as the database stores it: in UTC, without a zone."""
    return instant.replace(tzinfo=None)


@lru_cache(maxsize=1024)
def parse_amounts(text: str) -> Amounts:
    """Return the amounts per instance as the database stores them."""
    return Amounts.of(json.loads(text))


instant_of = lru_cache(maxsize=65_536)(timeline.from_epoch)
"""Returns seconds since the epoch as an instant. The same recur: most leases begin and end at full minutes."""
