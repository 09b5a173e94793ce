# SPDX-License-Identifier: Apache-2.0
"""Writes of allocations, in the transaction of the caller."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace as replace_fields
from datetime import datetime, timedelta
from itertools import chain, repeat

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.amounts import Amounts
from blazar.model.base.clock import later, to_second
from blazar.model.base.values import dataclass, field
from blazar.model.base.window import Window
from blazar.model.billing.following import Following
from blazar.model.billing.tags import Layers, PriceTag, TaggedShare, share_tags
from blazar.model.calendar.allocations import Allocation
from blazar.model.journal.entries import ResourceMove
from blazar.model.leases.lease import Lease
from blazar.model.use.resource_hours import measure_amounts
from blazar.store.billing.facts import layer_row, parse_layers
from blazar.store.booking import history
from blazar.store.calendar.changes import note_changes, note_changes_of
from blazar.store.calendar.generations import LONG_AGO
from blazar.store.sql.prepared import insert_rows
from blazar.store.sql.rows import ALLOCATION_COLUMNS, allocation_of, chunks
from blazar.store.sql.tables import allocations

_TAG = (
    allocations.update()
    .where(allocations.c.id == sa.bindparam("row_id"))
    .values({name: sa.bindparam(f"new_{name}", type_=allocations.c[name].type) for name in ("skus", "booked_at")})
)
_UNPRICED: Layers = {}


Pricing = Callable[[Sequence[Allocation]], Sequence[PriceTag]]
"""Returns by which prices each of the allocations of a lease is charged that are booked now."""


def insert(
    connection: Connection,
    new: Iterable[Allocation],
    cleaning: timedelta,
    *,
    added_at: datetime | None = None,
    tags: Iterable[Layers] = (),
) -> None:
    """Insert allocations; ``added_at`` is when they are added to a lease that may have begun.

    ``tags`` are the layers of each, in their order; by default they have no prices.
    """
    rows = [
        {
            "kind": str(a.kind),
            "resource_id": a.resource_id,
            "lease_id": a.lease_id,
            "reservation_id": a.reservation_id,
            "starts_at": a.window.start,
            "ends_at": a.window.end,
            "blocks_until": later(a.window.end, cleaning),
            "count": a.count,
            "per_instance": None if a.per_instance is None else dict(a.per_instance.items),
            "added_at": added_at,
            **layer_row(layers),
        }
        for a, layers in zip(new, chain(tags, repeat(_UNPRICED)), strict=False)
    ]
    if rows:
        insert_rows(connection, allocations, rows)


def insert_priced(
    connection: Connection, new: Iterable[Sequence[Allocation]], cleaning: timedelta, pricing: Pricing | None
) -> None:
    """Insert the allocations of new leases, in one statement, with the prices by which each is charged."""
    every = list(new)
    tags = () if pricing is None else chain.from_iterable(map(pricing, every))
    insert(connection, chain.from_iterable(every), cleaning, tags=({tag: {}} for tag in tags))


def replace(
    connection: Connection,
    lease: Lease,
    wanted: Sequence[Allocation],
    *,
    cleaning: timedelta,
    at: datetime,
    returns: bool = False,
    pricing: Pricing | None = None,
    origin: str | None = None,
    undone_since: datetime | None = None,
) -> tuple[ResourceMove, ...]:
    """Replace the live allocations of a lease with those that are wanted; return which resources it gave up and got.

    ``returns``: what it has less is given back by its owner, and remembered as that. Only what differs is changed. A
    reservation that continues with more or less of a resource keeps its row: no user leaves, and nothing is cleaned.
    What takes the place of something else, or is split off ``origin``, is charged by the prices of that.
    ``undone_since``: a change that was begun then is undone; what the lease has had more since costs nothing.
    """
    held, new = _read_rows(connection, lease.id), Counter(wanted)
    same, moved, resized, gone = _match_all(held, new)
    come = list(new.elements())
    layers = _read_layers(connection, origin) if pricing and origin and come else {}
    booked = [(layers.get(allocation.resource_id, {}), allocation) for allocation in come]
    tagged = _tag_again((*same, *moved, *resized), gone, booked, wanted, pricing, at)
    other = {row.key for row, _ in resized} | tagged.rows.keys()
    less = _find_less(gone, new) if returns else frozenset()
    for keys, is_returned in (({row.key for row in gone} - less, False), (less, True)):
        for part in chunks(sorted(keys)):
            release(connection, allocations.c.id.in_(part), at=at, cleaning=cleaning, returns=is_returned)
    _change_rows(connection, (*moved, *resized), cleaning, returns=returns, at=at)
    _write_tags(connection, tagged.rows)
    if undone_since is None:
        _keep_past(connection, [row for row in held if row.key in other and row.since < to_second(at)], at)
    else:
        _drop_prices(connection, [row.key for row in gone if row.added_at and row.added_at >= undone_since])
    _keep_returned(connection, [row for row in gone if row.key not in less and row.returned_until], at)
    insert(connection, come, cleaning, added_at=at, tags=tagged.come)
    return history.moves_between(*map(history.pair_with_reservations, ([row.allocation for row in gone], come)))


def _read_rows(connection: Connection, lease_id: str) -> list[_Row]:
    """Return what a lease has, in one statement."""
    a = allocations.c
    own = (a.id, a.added_at, a.returned_until, a.skus, a.booked_at)
    query = sa.select(*own, *ALLOCATION_COLUMNS).where(a.lease_id == lease_id, a.released_at.is_(None))
    return [
        _Row(key, added_at, until, found, parse_layers(skus, booked_at, _measure(found)))
        for key, added_at, until, skus, booked_at, *columns in connection.execute(query)
        for found in (allocation_of(columns),)
    ]


def _read_layers(connection: Connection, lease_id: str) -> Mapping[int, Layers]:
    """Return by which prices what a lease has is charged, by resource, in one statement."""
    return {row.allocation.resource_id: row.layers for row in _read_rows(connection, lease_id)}


@dataclass(frozen=True, slots=True)
class _Tagged:
    """The layers of rows that have others from now on, by key, and those of what comes."""

    rows: Mapping[int, Layers] = field(default_factory=dict)
    come: Sequence[Layers] = ()


def _tag_again(
    kept: Sequence[tuple[_Row, Allocation]],
    gone: Iterable[_Row],
    come: Sequence[tuple[Layers, Allocation]],
    wanted: Sequence[Allocation],
    pricing: Pricing | None,
    at: datetime,
) -> _Tagged:
    """Return by which prices what a lease has is charged from now on; what it has more by those of now.

    What comes has the layers of the lease that it is split off; none if nothing is.
    """
    if pricing is None:
        return _Tagged()
    tags = dict(zip(wanted, pricing(wanted), strict=True))
    left: dict[str, list[Layers]] = defaultdict(list)
    for row in gone:
        left[row.allocation.reservation_id].append(row.layers)
    shares: dict[str, list[tuple[int, TaggedShare]]] = defaultdict(list)
    pairs = [*((row.layers, allocation) for row, allocation in kept), *come]
    for number, (before, allocation) in enumerate(pairs):
        new = replace_fields(tags[allocation], booked_at=to_second(at))
        shares[allocation.reservation_id].append((number, TaggedShare(_measure(allocation), new, before)))
    found: dict[int, Layers] = {}
    for id_, mine in shares.items():
        numbers = [number for number, _ in mine]
        found |= zip(numbers, share_tags([share for _, share in mine], left[id_]), strict=True)
    changed = {row.key: found[number] for number, (row, _) in enumerate(kept) if found[number] != row.layers}
    return _Tagged(changed, [found[number] for number in range(len(kept), len(pairs))])


def _write_tags(connection: Connection, tagged: Mapping[int, Layers]) -> None:
    """Write by which prices rows are charged, in one statement."""
    rows = [
        {"row_id": key, **{f"new_{name}": value for name, value in layer_row(layers).items()}}
        for key, layers in sorted(tagged.items())
    ]
    if rows:
        connection.execute(_TAG, rows)


def _drop_prices(connection: Connection, keys: Sequence[int]) -> None:
    """Have what a change has added cost nothing, as it is undone; what was until then is on record since it began."""
    for part in chunks(sorted(keys)):
        connection.execute(allocations.update().where(allocations.c.id.in_(part)).values(skus=sa.null()))


def _measure(allocation: Allocation) -> Mapping[str, int]:
    amounts = measure_amounts(allocation.kind, allocation.count, allocation.per_instance)
    return {measure: amount for measure, amount in amounts.items() if amount}


def note_booked_at(connection: Connection, lease_id: str, booked_at: datetime) -> None:
    """Write when all was booked that a lease has, which goes to one that was booked at another time."""
    a = allocations.c
    of_lease = (a.lease_id == lease_id, a.booked_at.is_(None), a.released_at.is_(None))
    connection.execute(allocations.update().where(*of_lease).values(booked_at=booked_at))


def note_resources_booked_at(connection: Connection, following: Following, noted_at: datetime) -> None:
    """Write when some resources of a reservation count as booked, to tell them from others that were booked then."""
    a, booked_at = allocations.c, following.booked_at
    known: tuple[sa.ColumnElement[bool], ...] = (a.booked_at.is_(None),)
    if booked_at is not None:
        known = (a.booked_at >= booked_at, a.booked_at < later(booked_at, timedelta(seconds=1)))
    for part in chunks(sorted(following.resources)):
        of_these = (a.reservation_id == following.reservation_id, a.resource_id.in_(part), a.released_at.is_(None))
        connection.execute(allocations.update().where(*of_these, *known).values(booked_at=noted_at))


def _find_less(gone: Iterable[_Row], new: Counter[Allocation]) -> frozenset[int]:
    """Return the rows that a lease gives up and gets nothing else for: where one takes another's place, none is."""
    come = Counter(allocation.reservation_id for allocation in new.elements())
    found = set()
    for row in gone:
        if come[row.allocation.reservation_id] > 0:
            come[row.allocation.reservation_id] -= 1
        else:
            found.add(row.key)
    return frozenset(found)


def _change_rows(
    connection: Connection,
    matched: Sequence[tuple[_Row, Allocation]],
    cleaning: timedelta,
    *,
    returns: bool,
    at: datetime,
) -> None:
    """Give rows the window and the size of what they are kept for.

    One statement for each size and window: usually one, or three while a lease is changed; and one that notes it.
    """
    note_changes(connection, [kept for _, kept in matched], at)
    changed: dict[tuple[Window, int, Amounts | None], list[int]] = defaultdict(list)
    for row, kept in matched:
        changed[kept.window, kept.count, kept.per_instance].append(row.key)
    for (window, count, per_instance), keys in changed.items():
        for part in chunks(keys):
            connection.execute(
                allocations.update()
                .where(allocations.c.id.in_(part))
                # In this order: MariaDB takes the values of before from the left.
                .ordered_values(
                    (allocations.c.returned_until, _returned_until(window, returns=returns)),
                    (allocations.c.starts_at, window.start),
                    (allocations.c.ends_at, window.end),
                    (allocations.c.blocks_until, later(window.end, cleaning)),
                    (allocations.c.count, count),
                    (allocations.c.per_instance, None if per_instance is None else dict(per_instance.items)),
                )
            )


def _returned_until(window: Window, *, returns: bool) -> sa.ColumnElement[datetime | None]:
    """Return until when a use with a new window was promised; None if not for longer, or if its start is another."""
    a = allocations.c
    before = sa.case((a.returned_until > a.ends_at, a.returned_until), else_=a.ends_at) if returns else a.returned_until
    return sa.case((sa.and_(a.starts_at == window.start, before > window.end), before), else_=sa.null())


@dataclass(frozen=True, slots=True)
class _Row:
    """A row with what a lease has of a resource."""

    key: int
    added_at: datetime | None
    returned_until: datetime | None
    allocation: Allocation
    layers: Layers = field(default_factory=dict)

    @property
    def since(self) -> datetime:
        """Return the start of that use."""
        start = self.allocation.window.start
        return start if self.added_at is None else max(start, to_second(self.added_at))


_Matched = list[tuple[_Row, Allocation]]
"""Rows, with what each is kept for."""


def _match_all(rows: Iterable[_Row], new: Counter[Allocation]) -> tuple[_Matched, _Matched, _Matched, list[_Row]]:
    """Return rows that stay the same, get another window, get another size, and go; ``new`` is left with what comes."""
    # In this order, so that each row changes least.
    same, others = _match_rows(rows, new, lambda allocation: allocation)
    moved, others = _match_rows(others, new, lambda allocation: allocation.assignment)
    resized, gone = _match_rows(others, new, _key_of)
    return same, moved, resized, gone


def _match_rows(
    rows: Iterable[_Row], new: Counter[Allocation], by: Callable[[Allocation], object]
) -> tuple[_Matched, list[_Row]]:
    """Return rows with their new allocations, which are removed from ``new``, and the rows without a match."""
    left: dict[object, list[Allocation]] = defaultdict(list)
    for allocation in new.elements():
        left[by(allocation)].append(allocation)
    found: _Matched = []
    others: list[_Row] = []
    for row in rows:
        if candidates := left[by(row.allocation)]:
            found.append((row, candidates.pop()))
            new[found[-1][1]] -= 1
        else:
            others.append(row)
    return found, others


def _keep_past(connection: Connection, past: Collection[_Row], at: datetime) -> None:
    """Record what a lease had until now, of what it has otherwise from then on; the record blocks nothing."""
    for part in chunks([row.key for row in past]):
        connection.execute(allocations.update().where(allocations.c.id.in_(part)).values(added_at=at))
    rows = [
        {
            **_record_of(row, at),
            "starts_at": row.allocation.window.start,
            "ends_at": min(row.allocation.window.end, to_second(at)),
            "added_at": row.added_at,
        }
        for row in past
    ]
    if rows:
        insert_rows(connection, allocations, rows)


def _keep_returned(connection: Connection, rows: Collection[_Row], at: datetime) -> None:
    """Record what a lease had given back of resources in the place of which it gets others: no use, as it is empty."""
    records = []
    for row in rows:
        end = row.allocation.window.end
        records.append({**_record_of(row, at), "starts_at": end, "ends_at": end, "returned_until": row.returned_until})
    if records:
        insert_rows(connection, allocations, records)


def _record_of(row: _Row, at: datetime) -> dict[str, object]:
    """Return the columns of a record of what a row says until now, besides its times."""
    allocation = row.allocation
    return {
        "kind": str(allocation.kind),
        "resource_id": allocation.resource_id,
        "lease_id": allocation.lease_id,
        "reservation_id": allocation.reservation_id,
        "blocks_until": LONG_AGO,
        "count": allocation.count,
        "per_instance": None if allocation.per_instance is None else dict(allocation.per_instance.items),
        "released_at": at,
        **layer_row(row.layers),
    }


def release(
    connection: Connection, which: sa.ColumnElement[bool], *, at: datetime, cleaning: timedelta, returns: bool = False
) -> None:
    """Release allocations: a use that has begun ends now, one that has not never was.

    ``returns``: their owner gives back the rest of the time.
    """
    a, second = allocations.c, to_second(at)
    begun, ahead = a.starts_at <= second, a.ends_at > second
    rest = sa.case((a.returned_until > a.ends_at, a.returned_until), (ahead, a.ends_at), else_=a.returned_until)
    note_changes_of(connection, sa.and_(which, a.released_at.is_(None)), at)
    connection.execute(
        allocations.update()
        .where(which, a.released_at.is_(None))
        # In this order: MariaDB takes the values of before from the left.
        .ordered_values(
            (a.returned_until, rest if returns else sa.case((ahead, sa.null()), else_=a.returned_until)),
            (a.released_at, at),
            (a.blocks_until, sa.case((begun, second + cleaning), else_=sa.literal(LONG_AGO, a.starts_at.type))),
            (a.ends_at, sa.case((sa.and_(begun, ahead), second), else_=a.ends_at)),
        )
    )


def release_leases(connection: Connection, lease_ids: Collection[str], *, at: datetime, cleaning: timedelta) -> None:
    """Release all that leases have."""
    for part in chunks(sorted(lease_ids)):
        release(connection, allocations.c.lease_id.in_(part), at=at, cleaning=cleaning)


def _key_of(allocation: Allocation) -> tuple[int, str]:
    """Return the resource and the reservation of an allocation."""
    return allocation.resource_id, allocation.reservation_id
