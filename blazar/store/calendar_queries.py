"""Allocations: what is promised in a window, who has not left, and the generations that make a booking atomic."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.calendar.occupancy import Occupancy, Use
from blazar.model.amounts import Amounts
from blazar.model.clock import to_second
from blazar.model.demand import Allocation
from blazar.model.errors import StaleCalendar
from blazar.model.lease import Lease
from blazar.model.resource import ResourceKind
from blazar.model.window import Window
from blazar.store.rows import ALLOCATION_COLUMNS, allocation_of, chunks
from blazar.store.tables import allocations, resources

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
"""Where an allocation that was given up before it began blocks until: it never stood in anybody's way."""


_SECOND = timedelta(seconds=1)
_USE_COLUMNS = (
    allocations.c.resource_id,
    # Of thousands of rows few are looked into: as texts, which cost least and are read later.
    sa.cast(allocations.c.starts_at, sa.Text()).label("starts_at"),
    sa.cast(allocations.c.blocks_until, sa.Text()).label("blocks_until"),
    allocations.c.units,
    sa.cast(allocations.c.unit, sa.Text()).label("unit"),
)


def occupancy(
    connection: Connection,
    kind: ResourceKind,
    window: Window,
    *,
    whole_only: bool,
    now: datetime,
    besides: str | None,
    cleaning: timedelta,
) -> Occupancy:
    """Return what is promised in a window, in one statement.

    A window that has begun counts from now on. A resource whose last user was to leave but has not is taken as long
    as the window begins now. The cleaning time is kept free after every use: after others' (it is part of
    ``blocks_until``) and after this one, before the next user.
    """
    begin = max(window.start, to_second(now))
    mine = () if besides is None else (allocations.c.lease_id != besides,)
    columns: tuple[Any, ...] = (allocations.c.resource_id,) if whole_only else _USE_COLUMNS
    promised = sa.select(*columns).where(
        allocations.c.kind == str(kind),
        allocations.c.blocks_until > begin,
        allocations.c.starts_at < window.end + cleaning,
        *mine,
    )
    query: Any = promised.distinct() if whole_only else promised
    if window.start <= now:
        late = sa.select(*columns).where(
            allocations.c.kind == str(kind),
            allocations.c.released_at.is_(None),
            allocations.c.ends_at <= now,
            allocations.c.blocks_until <= begin,
            *mine,
        )
        query = sa.union_all(query, late)
    rows = connection.execute(query).all()
    if whole_only:
        return Occupancy.of_busy(row[0] for row in rows)
    span = Window(begin, max(window.end, begin + timedelta(seconds=1)))
    return Occupancy.of_rows(rows, _reader(span, cleaning))


def generations(connection: Connection, ids: Collection[int]) -> Mapping[int, int]:
    """Return the generations of resources."""
    query = sa.select(resources.c.id, resources.c.generation)
    found: dict[int, int] = {}
    for part in chunks(sorted(ids)):
        found.update((id_, generation) for id_, generation in connection.execute(query.where(resources.c.id.in_(part))))
    return found


def raise_generations(connection: Connection, expected: Mapping[int, int]) -> None:
    """Raise the generations of resources where they are still as expected; StaleCalendar if one is not."""
    for chunk in chunks(sorted(expected.items())):
        raised = connection.execute(
            resources.update()
            .where(resources.c.live == 1, sa.tuple_(resources.c.id, resources.c.generation).in_(chunk))
            .values(generation=resources.c.generation + 1)
        )
        if raised.rowcount != len(chunk):
            raise StaleCalendar("a resource was booked by somebody else in the meantime")


def insert(
    connection: Connection,
    kinds: Mapping[int, str],
    new: Iterable[Allocation],
    cleaning: timedelta,
    *,
    added_at: datetime | None = None,
) -> None:
    """Insert allocations; ``added_at`` is when they come to a lease that may have begun."""
    rows = [
        {
            "kind": kinds[a.resource_id],
            "resource_id": a.resource_id,
            "lease_id": a.lease_id,
            "reservation_id": a.reservation_id,
            "starts_at": a.window.start,
            "ends_at": a.window.end,
            "blocks_until": a.window.end + cleaning,
            "units": a.units,
            "unit": None if a.unit is None else dict(a.unit.items),
            "added_at": added_at,
        }
        for a in new
    ]
    if rows:
        connection.execute(allocations.insert(), rows)


def replace(
    connection: Connection,
    lease: Lease,
    wanted: Collection[Allocation],
    kinds: Mapping[int, str],
    *,
    cleaning: timedelta,
    at: datetime,
) -> None:
    """Make the live allocations of a lease those that are wanted, touching only what differs.

    A reservation that goes on with more or less of a resource keeps its row: nobody leaves, and nothing is cleaned.
    """
    rows = connection.execute(
        sa.select(allocations.c.id, allocations.c.kind, allocations.c.added_at, *ALLOCATION_COLUMNS).where(
            allocations.c.lease_id == lease.id, allocations.c.released_at.is_(None)
        )
    ).all()
    left: dict[object, list[Allocation]] = defaultdict(list)
    for allocation in wanted:
        left[_what(allocation)].append(allocation)
    changed: dict[tuple[Window, int, Amounts | None], list[int]] = defaultdict(list)
    gone: list[int] = []
    others: list[tuple[int, _Past]] = []
    for key, kind, added_at, *columns in rows:
        held = allocation_of(columns)
        kept = left[_what(held)].pop() if left[_what(held)] else None
        if kept is None:
            others.append((key, _Past(kind, added_at, held)))
        elif kept.window != held.window:
            changed[kept.window, kept.units, kept.unit].append(key)
    resized = {_where(a): a for new in left.values() for a in new}
    past: list[_Past] = []
    begun: list[int] = []
    for key, had in others:
        kept = resized.pop(_where(had.allocation), None)
        if kept is None:
            gone.append(key)
        else:
            left[_what(kept)].remove(kept)
            changed[kept.window, kept.units, kept.unit].append(key)
            if had.since < to_second(at):
                past.append(had)
                begun.append(key)
    for part in chunks(gone):
        release(connection, allocations.c.id.in_(part), at=at, cleaning=cleaning)
    # All allocations of a lease have its window, so that these are as many statements as there are sizes.
    for (window, units, unit), keys in changed.items():
        for part in chunks(keys):
            connection.execute(
                allocations.update()
                .where(allocations.c.id.in_(part))
                .values(
                    starts_at=window.start,
                    ends_at=window.end,
                    blocks_until=window.end + cleaning,
                    units=units,
                    unit=None if unit is None else dict(unit.items),
                )
            )
    for part in chunks(begun):
        connection.execute(allocations.update().where(allocations.c.id.in_(part)).values(added_at=at))
    _keep_past(connection, past, at)
    insert(connection, kinds, (a for new in left.values() for a in new), cleaning, added_at=at)


@dataclass(frozen=True, slots=True)
class _Past:
    """What a lease had of a resource, which it goes on with in another size."""

    kind: str
    added_at: datetime | None
    allocation: Allocation

    @property
    def since(self) -> datetime:
        """Return since when it had that."""
        start = self.allocation.window.start
        return start if self.added_at is None else max(start, to_second(self.added_at))


def _keep_past(connection: Connection, past: Collection[_Past], at: datetime) -> None:
    """Keep what a lease had until now: for the record, in nobody's way."""
    rows = [
        {
            "kind": each.kind,
            "resource_id": each.allocation.resource_id,
            "lease_id": each.allocation.lease_id,
            "reservation_id": each.allocation.reservation_id,
            "starts_at": each.allocation.window.start,
            "ends_at": min(each.allocation.window.end, to_second(at)),
            "blocks_until": LONG_AGO,
            "units": each.allocation.units,
            "unit": None if each.allocation.unit is None else dict(each.allocation.unit.items),
            "added_at": each.added_at,
            "released_at": at,
        }
        for each in past
    ]
    if rows:
        connection.execute(allocations.insert(), rows)


def release(connection: Connection, which: sa.ColumnElement[bool], *, at: datetime, cleaning: timedelta) -> None:
    """Give up allocations: a use that had begun ends now, one that had not never was."""
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
    rows = connection.execute(
        sa.select(*ALLOCATION_COLUMNS)
        .where(allocations.c.lease_id == lease_id, allocations.c.released_at.is_(None))
        .order_by(allocations.c.id)
    )
    return tuple(allocation_of(row) for row in rows)


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


def earlier_users(connection: Connection, lease_id: str, before: datetime) -> tuple[str, ...]:
    """Return the leases that should have left a resource of this lease by then, have not, and take up its room."""
    theirs = allocations.alias("theirs")
    late = connection.execute(
        sa.select(theirs.c.lease_id, theirs.c.resource_id, theirs.c.unit, allocations.c.unit)
        .join(allocations, allocations.c.resource_id == theirs.c.resource_id)
        .where(
            allocations.c.lease_id == lease_id,
            allocations.c.released_at.is_(None),
            theirs.c.lease_id != lease_id,
            theirs.c.released_at.is_(None),
            theirs.c.ends_at <= before,
        )
    ).all()
    shared = {resource_id for _, resource_id, unit, mine in late if unit is not None and mine is not None}
    full = _full(connection, shared, before) if shared else frozenset()
    blocking = (who for who, resource_id, unit, mine in late if unit is None or mine is None or resource_id in full)
    return tuple(dict.fromkeys(blocking))


def _full(connection: Connection, ids: Collection[int], at: datetime) -> frozenset[int]:
    """Return the resources of which more is taken at an instant, by those who are late as well, than they have."""
    rows = connection.execute(
        sa.select(resources.c.capacity, *ALLOCATION_COLUMNS)
        .join(resources, resources.c.id == allocations.c.resource_id)
        .where(
            allocations.c.resource_id.in_(sorted(ids)),
            allocations.c.released_at.is_(None),
            allocations.c.starts_at <= at,
        )
    ).all()
    taken: dict[int, Amounts] = defaultdict(Amounts)
    capacities: dict[int, Amounts] = {}
    for capacity, *columns in rows:
        allocation = allocation_of(columns)
        capacities[allocation.resource_id] = Amounts.of(capacity)
        taken[allocation.resource_id] += allocation.amounts or Amounts()
    return frozenset(id_ for id_, sum_ in taken.items() if any(n > capacities[id_].get(name) for name, n in sum_))


def _where(allocation: Allocation) -> tuple[int, str]:
    """Return of which resource something is promised to which reservation."""
    return allocation.resource_id, allocation.reservation_id


def _what(allocation: Allocation) -> object:
    """Return what is promised to whom, whenever that is."""
    return allocation.resource_id, allocation.reservation_id, allocation.units, allocation.unit


def _reader(span: Window, cleaning: timedelta) -> Callable[[Iterable[Any]], list[Use]]:
    """Return what makes uses of rows: of what stands in the way of a use of this span, each for the time it does."""
    begin, end_of_span = span.start.replace(tzinfo=None), span.end.replace(tzinfo=None)
    instant = datetime.fromisoformat

    def read(rows: Iterable[Any]) -> list[Use]:
        uses: list[Use] = []
        for resource_id, starts_at, blocks_until, count, unit in rows:
            start, end = instant(starts_at) - cleaning, instant(blocks_until)
            if end <= begin:
                # A late user, who should have left, is in the way from now on.
                end = end_of_span
            if start >= end:
                # A use that was given up in the second it began has no length of its own, only the cleaning after it.
                start = end - _SECOND
            uses.append((resource_id, start, end, count, _unit(unit)))
        return uses

    return read


@lru_cache(maxsize=1024)
def _unit(text: str) -> Amounts:
    return Amounts.of(json.loads(text))
