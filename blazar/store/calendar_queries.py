# SPDX-License-Identifier: Apache-2.0
"""Allocations: what is promised in a window, late users, and the generations that make a booking atomic."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.amounts import Amounts
from blazar.model.clock import later, to_second
from blazar.model.demand import Allocation
from blazar.model.errors import StaleCalendar
from blazar.model.lease import Lease
from blazar.model.resource import ResourceKind
from blazar.model.window import Window
from blazar.store.rows import ALLOCATION_COLUMNS, allocation_of, chunks
from blazar.store.tables import allocations, resources

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
"""The ``blocks_until`` of an allocation that was released before it began: it never blocks anything."""


_SECOND = timedelta(seconds=1)
_OF_LEASE = (
    sa.select(*ALLOCATION_COLUMNS)
    .where(
        allocations.c.lease_id == sa.bindparam("lease_id", type_=allocations.c.lease_id.type),
        allocations.c.released_at.is_(None),
    )
    .order_by(allocations.c.id)
)
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
_INSERT = allocations.insert()


def generations(connection: Connection, ids: Collection[int]) -> Mapping[int, int]:
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


def insert(
    connection: Connection, new: Iterable[Allocation], cleaning: timedelta, *, added_at: datetime | None = None
) -> None:
    """Insert allocations; ``added_at`` is when they are added to a lease that may have begun."""
    rows = [
        {
            "kind": str(a.kind),
            "resource_id": a.resource_id,
            "lease_id": a.lease_id,
            "reservation_id": a.reservation_id,
            "starts_at": a.window.start,
            "ends_at": a.window.end,
            "blocks_until": later(a.window.end, cleaning),
            "units": a.count,
            "unit": None if a.per_instance is None else dict(a.per_instance.items),
            "added_at": added_at,
        }
        for a in new
    ]
    if rows:
        connection.execute(_INSERT, rows)


def replace(
    connection: Connection, lease: Lease, wanted: Collection[Allocation], *, cleaning: timedelta, at: datetime
) -> None:
    """Replace the live allocations of a lease with those that are wanted, changing only what differs.

    A reservation that continues with more or less of a resource keeps its row: no user leaves, and nothing is cleaned.
    """
    rows = connection.execute(
        sa.select(allocations.c.id, allocations.c.added_at, *ALLOCATION_COLUMNS).where(
            allocations.c.lease_id == lease.id, allocations.c.released_at.is_(None)
        )
    ).all()
    held = [_Row(key, added_at, allocation_of(columns)) for key, added_at, *columns in rows]
    new = Counter(wanted)
    # Match the same allocation first, then another window, then another size: so that each row changes least.
    _, others = _matched(held, new, lambda allocation: allocation)
    moved, others = _matched(others, new, lambda allocation: allocation.assignment)
    resized, gone = _matched(others, new, _where)
    changed: dict[tuple[Window, int, Amounts | None], list[int]] = defaultdict(list)
    for row, kept in (*moved, *resized):
        changed[kept.window, kept.count, kept.per_instance].append(row.key)
    past = [row for row, _ in resized if row.since < to_second(at)]
    begun = [row.key for row in past]
    for part in chunks([row.key for row in gone]):
        release(connection, allocations.c.id.in_(part), at=at, cleaning=cleaning)
    # One statement for each size and window: usually one, or three while a lease is changed.
    for (window, count, per_instance), keys in changed.items():
        for part in chunks(keys):
            connection.execute(
                allocations.update()
                .where(allocations.c.id.in_(part))
                .values(
                    starts_at=window.start,
                    ends_at=window.end,
                    blocks_until=later(window.end, cleaning),
                    units=count,
                    unit=None if per_instance is None else dict(per_instance.items),
                )
            )
    for part in chunks(begun):
        connection.execute(allocations.update().where(allocations.c.id.in_(part)).values(added_at=at))
    _keep_past(connection, past, at)
    insert(connection, new.elements(), cleaning, added_at=at)


@dataclass(frozen=True, slots=True)
class _Row:
    """A row with what a lease has of a resource."""

    key: int
    added_at: datetime | None
    allocation: Allocation

    @property
    def since(self) -> datetime:
        """Return the start of that use."""
        start = self.allocation.window.start
        return start if self.added_at is None else max(start, to_second(self.added_at))


def _matched(
    rows: Iterable[_Row], new: Counter[Allocation], by: Callable[[Allocation], object]
) -> tuple[list[tuple[_Row, Allocation]], list[_Row]]:
    """Return rows with their new allocations, which are removed from ``new``, and the rows without a match."""
    left: dict[object, list[Allocation]] = defaultdict(list)
    for allocation in new.elements():
        left[by(allocation)].append(allocation)
    found: list[tuple[_Row, Allocation]] = []
    others: list[_Row] = []
    for row in rows:
        if candidates := left[by(row.allocation)]:
            found.append((row, candidates.pop()))
            new[found[-1][1]] -= 1
        else:
            others.append(row)
    return found, others


def _keep_past(connection: Connection, past: Collection[_Row], at: datetime) -> None:
    """Record what a lease had until now; the record blocks nothing."""
    rows = [
        {
            "kind": str(each.allocation.kind),
            "resource_id": each.allocation.resource_id,
            "lease_id": each.allocation.lease_id,
            "reservation_id": each.allocation.reservation_id,
            "starts_at": each.allocation.window.start,
            "ends_at": min(each.allocation.window.end, to_second(at)),
            "blocks_until": LONG_AGO,
            "units": each.allocation.count,
            "unit": None if each.allocation.per_instance is None else dict(each.allocation.per_instance.items),
            "added_at": each.added_at,
            "released_at": at,
        }
        for each in past
    ]
    if rows:
        connection.execute(_INSERT, rows)


def release(connection: Connection, which: sa.ColumnElement[bool], *, at: datetime, cleaning: timedelta) -> None:
    """Release allocations: a use that has begun ends now, one that has not never was."""
    second = to_second(at)
    begun = allocations.c.starts_at <= second
    connection.execute(
        allocations.update()
        .where(which, allocations.c.released_at.is_(None))
        .values(
            released_at=at,
            blocks_until=sa.case((begun, second + cleaning), else_=sa.literal(LONG_AGO, allocations.c.starts_at.type)),
            ends_at=sa.case((sa.and_(begun, allocations.c.ends_at > second), second), else_=allocations.c.ends_at),
        )
    )


def of_lease(connection: Connection, lease_id: str) -> tuple[Allocation, ...]:
    """Return the live allocations of a lease."""
    return tuple(allocation_of(row) for row in connection.execute(_OF_LEASE, {"lease_id": lease_id}))


def of_leases(connection: Connection, lease_ids: Collection[str]) -> Mapping[str, tuple[Allocation, ...]]:
    """Return the live allocations of leases, in one statement for each few thousand."""
    found: dict[str, list[Allocation]] = {lease_id: [] for lease_id in lease_ids}
    live = sa.select(*ALLOCATION_COLUMNS).where(allocations.c.released_at.is_(None)).order_by(allocations.c.id)
    for part in chunks(sorted(lease_ids)):
        for row in connection.execute(live.where(allocations.c.lease_id.in_(part))):
            allocation = allocation_of(row)
            found[allocation.lease_id].append(allocation)
    return {lease_id: tuple(held) for lease_id, held in found.items()}


def ever_held(connection: Connection, lease_id: str) -> Mapping[str, frozenset[int]]:
    """Return the resources that were ever promised to a lease, by reservation."""
    rows = connection.execute(
        sa.select(allocations.c.reservation_id, allocations.c.resource_id)
        .where(allocations.c.lease_id == lease_id)
        .distinct()
    )
    found: dict[str, set[int]] = defaultdict(set)
    for reservation_id, resource_id in rows:
        found[reservation_id].add(resource_id)
    return {reservation_id: frozenset(ids) for reservation_id, ids in found.items()}


def holdings(connection: Connection, reservation_ids: Collection[str]) -> Mapping[str, frozenset[str]]:
    """Return the names of the resources that reservations have, by reservation."""
    found: dict[str, set[str]] = defaultdict(set)
    query = sa.select(allocations.c.reservation_id, resources.c.name).join(
        resources, resources.c.id == allocations.c.resource_id
    )
    for part in chunks(sorted(reservation_ids)):
        held = (allocations.c.reservation_id.in_(part), allocations.c.released_at.is_(None))
        for reservation_id, name in connection.execute(query.where(*held)):
            found[reservation_id].add(name)
    return {reservation_id: frozenset(names) for reservation_id, names in found.items()}


def live(
    connection: Connection,
    kind: ResourceKind,
    *,
    resource_id: int | None,
    lease_id: str | None,
    reservation_id: str | None,
    ending_after: datetime | None,
) -> tuple[Allocation, ...]:
    """Return live allocations, earliest first."""
    where: list[sa.ColumnElement[bool]] = [allocations.c.kind == str(kind), allocations.c.released_at.is_(None)]
    for column, value in (
        (allocations.c.resource_id, resource_id),
        (allocations.c.lease_id, lease_id),
        (allocations.c.reservation_id, reservation_id),
    ):
        if value is not None:
            where.append(column == value)
    if ending_after is not None:
        where.append(allocations.c.ends_at >= ending_after)
    rows = connection.execute(sa.select(*ALLOCATION_COLUMNS).where(*where)).all()
    return tuple(sorted((allocation_of(row) for row in rows), key=lambda a: (a.window.start, a.lease_id)))


@dataclass(frozen=True, slots=True)
class EarlierUser:
    """An earlier user of a resource, which another lease is to use.

    ``clean_at`` is when the cleaning after it ends; None while it has not left.
    """

    lease_id: str
    clean_at: datetime | None = None


def earlier_users(
    connection: Connection, lease_id: str, *, before: datetime, now: datetime, cleaning: timedelta
) -> tuple[EarlierUser, ...]:
    """Return the leases whose use of a resource of this lease has not finished, and leaves too little of it.

    These are leases that should have left by ``before`` and have not, and leases that have left but whose cleaning
    time, which begins when they leave, has not passed. Those that have not left come first.
    """
    query: Any = _LATE
    values: dict[str, object] = {"lease_id": lease_id, "before": before}
    if cleaning:
        query = _LATE_OR_CLEANED
        values |= {"now": now, "since": now - cleaning - _SECOND}
    found = connection.execute(query, values).all()
    shared = {
        resource_id for _, resource_id, per_instance, mine, _ in found if per_instance is not None and mine is not None
    }
    full = _full(connection, shared, before, now, cleaning) if shared else frozenset()
    users = {
        EarlierUser(who, clean_at)
        for who, resource_id, per_instance, mine, clean_at in found
        if per_instance is None or mine is None or resource_id in full
    }
    return tuple(sorted(users, key=lambda user: (user.clean_at is not None, user.clean_at or now, user.lease_id)))


def with_earlier_users(
    connection: Connection, lease_ids: Collection[str], *, now: datetime, cleaning: timedelta
) -> frozenset[str]:
    """Return those of some leases that may have to wait for earlier users: all that have to, and perhaps others."""
    found: set[str] = set()
    query: Any = sa.select(allocations.c.lease_id).distinct().where(allocations.c.released_at.is_(None), _besides)
    late = sa.and_(_theirs.c.released_at.is_(None), _theirs.c.ends_at <= now)
    for part in chunks(sorted(lease_ids)):
        mine = query.join(_theirs, allocations.c.resource_id == _theirs.c.resource_id).where(
            allocations.c.lease_id.in_(part)
        )
        found.update(connection.execute(mine.where(late)).scalars())
        if cleaning:
            values = {"now": now, "since": now - cleaning - _SECOND}
            found.update(connection.execute(mine.where(_is_cleaned(_theirs)), values).scalars())
    return frozenset(found)


def _is_cleaned(table: sa.FromClause) -> sa.ColumnElement[bool]:
    """Return the condition for released resources being cleaned; the time of release makes it use an index."""
    instant = allocations.c.released_at.type
    return sa.and_(
        table.c.released_at > sa.bindparam("since", type_=instant),
        table.c.blocks_until > sa.bindparam("now", type_=instant),
    )


_theirs = allocations.alias("theirs")
_besides = _theirs.c.lease_id != allocations.c.lease_id
_BESIDE = (
    sa.select(_theirs.c.lease_id, _theirs.c.resource_id, _theirs.c.unit, allocations.c.unit.label("mine"))
    .join(allocations, allocations.c.resource_id == _theirs.c.resource_id)
    .where(
        allocations.c.lease_id == sa.bindparam("lease_id", type_=allocations.c.lease_id.type),
        allocations.c.released_at.is_(None),
        _besides,
    )
)
_LATE = _BESIDE.add_columns(sa.type_coerce(sa.null(), allocations.c.blocks_until.type).label("clean_at")).where(
    _theirs.c.released_at.is_(None),
    _theirs.c.ends_at <= sa.bindparam("before", type_=allocations.c.ends_at.type),
)
_LATE_OR_CLEANED = sa.union_all(
    _LATE, _BESIDE.add_columns(_theirs.c.blocks_until.label("clean_at")).where(_is_cleaned(_theirs))
)


def _full(
    connection: Connection, ids: Collection[int], at: datetime, now: datetime, cleaning: timedelta
) -> frozenset[int]:
    """Return the resources of which more is taken at an instant, including late users, than they have.

    What is being cleaned now counts as taken.
    """
    taken_then = sa.and_(allocations.c.released_at.is_(None), allocations.c.starts_at <= at)
    rows = connection.execute(
        sa.select(resources.c.id, resources.c.capacity, allocations.c.units, allocations.c.unit)
        .join(resources, resources.c.id == allocations.c.resource_id)
        .where(
            allocations.c.resource_id.in_(sorted(ids)),
            sa.or_(taken_then, _is_cleaned(allocations)) if cleaning else taken_then,
        ),
        {"now": now, "since": now - cleaning - _SECOND} if cleaning else {},
    )
    taken: dict[int, Amounts] = defaultdict(Amounts)
    capacities: dict[int, Amounts] = {}
    for id_, capacity, count, per_instance in rows:
        capacities[id_] = Amounts.of(capacity)
        taken[id_] += Amounts.of(per_instance or {}).times(count)
    return frozenset(id_ for id_, sum_ in taken.items() if any(n > capacities[id_].get(name) for name, n in sum_))


def _where(allocation: Allocation) -> tuple[int, str]:
    """Return the resource and the reservation of an allocation."""
    return allocation.resource_id, allocation.reservation_id
