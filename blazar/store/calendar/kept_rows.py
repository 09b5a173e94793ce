# SPDX-License-Identifier: Apache-2.0
"""Reads what is kept of the calendar: the uses of resources that are not over, with the generations of these."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.calendar.kept import KeptCalendar, KeptResource, OwnUse, Span
from blazar.calendar.timeline import Use, from_epoch
from blazar.model.resources.resource import ResourceKind
from blazar.store.calendar.occupancy import parse_amounts
from blazar.store.sql.clock import epoch_seconds
from blazar.store.sql.rows import AnyRow, chunks
from blazar.store.sql.tables import allocations, maintenance_resources, resources

LONGEST_CLEANING = timedelta(days=2)
"""What was released earlier blocks nothing any more, whatever the cleaning time was then."""

_IS_GENERATION = 2
"""What the last column says of a row with a generation, in the place of a start."""

UNKNOWN = -1
"""The generation of a resource that is not registered: nothing is booked on it."""


def read_all(connection: Connection, kind: ResourceKind, since: int) -> KeptCalendar:
    """Return the calendar of a kind with all uses that were not over at an instant; three statements."""
    a = allocations.c
    query, at = _select_uses(connection.dialect.name), from_epoch(since)
    of_kind = a.kind == str(kind)
    # Each part has an index of its own.
    rows = connection.execute(
        sa.union_all(
            query.where(of_kind, a.blocks_until > at),
            query.where(of_kind, a.released_at.is_(None), sa.func.coalesce(a.blocks_until, a.ends_at) <= at),
        )
    )
    held, left = _parse_rows(rows)
    generations = read_live_generations(connection, kind)
    found = _build(generations.keys() | held.keys() | left.keys(), generations, held, left)
    return KeptCalendar(found, read_closed(connection, kind, since))


def read_resources(
    connection: Connection, kind: ResourceKind, resource_ids: Collection[int], since: int
) -> Mapping[int, KeptResource]:
    """Return these resources with their uses that were not over at an instant; one statement for a few thousand."""
    found: dict[int, KeptResource] = {}
    query, at = _select_again(connection.dialect.name), from_epoch(since)
    for part in chunks(sorted(resource_ids)):
        values = {"kind": str(kind), "ids": part, "at": at, "released": at - LONGEST_CLEANING}
        rows = connection.execute(query, values).all()
        generations = {row[0]: row[1] for row in rows if row[-1] == _IS_GENERATION}
        held, left = _parse_rows(row for row in rows if row[-1] != _IS_GENERATION)
        found |= _build(part, generations, held, left)
    return found


def read_live_generations(connection: Connection, kind: ResourceKind) -> Mapping[int, int]:
    """Return the generations of the registered resources of a kind; one statement."""
    r = resources.c
    query = sa.select(r.id, r.generation).where(r.kind == str(kind), r.live == 1)
    return {row[0]: row[1] for row in connection.execute(query)}


def read_closed(connection: Connection, kind: ResourceKind, since: int) -> Mapping[int, tuple[Span, ...]]:
    """Return when resources of a kind are in maintenance, by resource, but for what was over then; one statement."""
    m, dialect = maintenance_resources.c, connection.dialect.name
    query = (
        sa.select(m.resource_id, epoch_seconds(dialect, m.starts_at), epoch_seconds(dialect, m.blocks_until))
        .where(m.kind == str(kind), m.blocks_until > from_epoch(since))
        .order_by(m.resource_id, m.starts_at)
    )
    found: dict[int, tuple[Span, ...]] = defaultdict(tuple)
    for id_, start, end in connection.execute(query):
        found[id_] += ((start, end),)
    return dict(found)


def read_own(connection: Connection, kind: ResourceKind, lease_ids: Collection[str], since: int) -> tuple[OwnUse, ...]:
    """Return what leases have of a kind, or have left and is not over; one statement."""
    a = allocations.c
    query = _select_uses(connection.dialect.name).where(
        a.lease_id.in_(sorted(lease_ids)),
        a.kind == str(kind),
        sa.or_(a.released_at.is_(None), a.blocks_until > from_epoch(since)),
    )
    held, left = _parse_rows(connection.execute(query))
    return tuple(
        OwnUse(id_, use, is_left)
        for found, is_left in ((held, False), (left, True))
        for id_, uses in found.items()
        for use in uses
    )


@cache
def _select_uses(dialect: str) -> sa.Select[Any]:
    """Return the query for uses, as numbers and as few of them as will do: they are very many."""
    a = allocations.c
    return sa.select(
        a.resource_id,
        epoch_seconds(dialect, a.starts_at),
        epoch_seconds(dialect, a.blocks_until),
        a.count,
        sa.cast(a.per_instance, sa.Text()),
        sa.case((a.released_at.is_(None), 0), else_=1),
    )


@cache
def _select_again(dialect: str) -> sa.CompoundSelect[Any]:
    """Return the query for the uses of some resources, and their generations."""
    a, query, r = allocations.c, _select_uses(dialect), resources.c
    instant = a.starts_at.type
    of_these = (
        a.resource_id.in_(sa.bindparam("ids", expanding=True)),
        a.kind == sa.bindparam("kind", type_=a.kind.type),
    )
    return sa.union_all(
        query.where(*of_these, a.released_at.is_(None)),
        query.where(
            *of_these,
            a.released_at > sa.bindparam("released", type_=instant),
            a.blocks_until > sa.bindparam("at", type_=instant),
        ),
        sa.select(
            r.id,
            sa.cast(r.generation, sa.BigInteger()),
            sa.cast(sa.null(), sa.BigInteger()),
            sa.literal_column("0"),
            sa.cast(sa.null(), sa.Text()),
            sa.literal_column(str(_IS_GENERATION)),
        ).where(r.id.in_(sa.bindparam("ids", expanding=True)), r.live == 1),
    )


_Found = Mapping[int, list[Use]]


def _parse_rows(rows: Iterable[AnyRow]) -> tuple[_Found, _Found]:
    """Return the uses that are held, and those that have left, by resource."""
    held: dict[int, list[Use]] = defaultdict(list)
    left: dict[int, list[Use]] = defaultdict(list)
    # Leases begin and end at the same few instants: each is one object.
    known: dict[int, int] = {}
    for id_, start, end, count, text, is_left in rows:
        use = known.setdefault(start, start), known.setdefault(end, end), count, text and parse_amounts(text)
        (left if is_left else held)[id_].append(use)
    return held, left


def _build(ids: Iterable[int], generations: Mapping[int, int], held: _Found, left: _Found) -> dict[int, KeptResource]:
    return {
        id_: KeptResource.of_uses(generations.get(id_, UNKNOWN), held.get(id_, ()), left.get(id_, ())) for id_ in ids
    }
