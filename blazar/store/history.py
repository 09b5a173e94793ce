# SPDX-License-Identifier: Apache-2.0
"""Histories of leases: an entry is written in the transaction of the change that it tells of, and never changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.context import current
from blazar.model.demand import Allocation
from blazar.model.history import (
    MOST_RESOURCES,
    FieldChange,
    HistoryPage,
    NamedMove,
    PastEntry,
    ResourceMove,
    Verb,
    entry,
)
from blazar.model.lease import EventType, Lease, LeaseStatus
from blazar.model.paging import Page, Position, unknown_marker
from blazar.model.requests import Actor
from blazar.store.rows import chunks
from blazar.store.tables import lease_history, resources
from blazar.store.transactions import Transactions

Written = tuple[Lease | None, Lease, Sequence[ResourceMove]]
"""A lease before and after a write, as it was saved, and the resources that changed hands."""

_INSERT = lease_history.insert()


def write(
    connection: Connection,
    written: Iterable[Written],
    *,
    at: datetime,
    sure: bool = False,
    others: Mapping[str, str] | None = None,
) -> None:
    """Insert what a transaction has done to leases, in one statement; none if there is nothing to tell.

    ``sure``: it does what the operation in the scope says. ``others`` are, by lease, the ones that it was done with.
    """
    here = current()
    rows: list[dict[str, Any]] = []
    for before, after, moves in written:
        other = None if others is None else others.get(after.id)
        told = entry(before, after, at=at, by=here.actor, moves=moves, operation=here.operation, sure=sure, other=other)
        if told is None:
            continue
        by = told.by
        rows.append(
            {
                "lease_id": told.lease_id,
                "revision": after.revision,
                "at": told.at,
                "verb": str(told.verb),
                "user_id": None if by is None else by.user_id,
                "project_id": None if by is None else by.project_id,
                "operator": by is not None and by.operator,
                "changes": [[c.field, c.before, c.after, c.reservation_id] for c in told.changes],
                "moves": [[m.reservation_id, m.gone, m.come, m.gone_count, m.come_count] for m in told.moves],
                "reason": told.reason,
            }
        )
    if rows:
        connection.execute(_INSERT, rows)


def came(allocations: Collection[Allocation]) -> tuple[ResourceMove, ...]:
    """Return what reservations get that had nothing."""
    return moved((), [(each.reservation_id, each.resource_id) for each in allocations])


def made(new: Iterable[Lease], granted: Iterable[Allocation]) -> list[Written]:
    """Return the entries of new leases, with the resources that each gets."""
    of_lease: dict[str, list[Allocation]] = {}
    for each in granted:
        of_lease.setdefault(each.lease_id, []).append(each)
    return [(None, lease, came(of_lease.get(lease.id, ()))) for lease in new]


def changed(
    before: Lease, after: Lease, moves: Sequence[ResourceMove], allocations: Collection[Allocation]
) -> list[Written]:
    """Return the entry of a lease that is changed, and then has these allocations; ``moves`` are those of this write.

    A change that is made in steps is told when it is done, as a whole. One that is undone leaves nothing to tell.
    """
    if after.status is LeaseStatus.UPDATING:
        return []
    event = before.event(EventType.UPDATE) if before.status is LeaseStatus.UPDATING else None
    kept = None if event is None or event.saved_state is None else event.saved_state.allocations
    if kept is not None:
        moves = moved(
            [(each.reservation_id, each.resource_id) for each in kept],
            [(each.reservation_id, each.resource_id) for each in allocations],
        )
    return [(before, after, moves)]


def moved(gone: Iterable[tuple[str, int]], come: Iterable[tuple[str, int]]) -> tuple[ResourceMove, ...]:
    """Return the moves of reservations that gave up and got resources, each a reservation and a calendar id."""
    lost, got = set(gone), set(come)
    ids = sorted({reservation_id for reservation_id, _ in lost ^ got})
    moves = []
    for reservation_id in ids:
        left = sorted(resource for owner, resource in lost - got if owner == reservation_id)
        new = sorted(resource for owner, resource in got - lost if owner == reservation_id)
        moves.append(
            ResourceMove(reservation_id, tuple(left[:MOST_RESOURCES]), tuple(new[:MOST_RESOURCES]), len(left), len(new))
        )
    return tuple(moves)


class HistoryStore:
    """Reads histories of leases."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def page(self, lease_id: str, page: Page) -> HistoryPage:
        """Return a page of the history of a lease, in three statements at most. InvalidInput for an unknown marker."""
        h = lease_history.c
        where = [h.lease_id == lease_id]
        with self._transactions.reading() as connection:
            if page.after is not None:
                after = _place(page.after)
                where.append(h.revision < after if page.descending else h.revision > after)
            order = h.revision.desc() if page.descending else h.revision
            query = sa.select(lease_history).where(*where).order_by(order).limit(page.limit + 1)
            rows = connection.execute(query).mappings().all()
            labels = _labels(connection, rows[: page.limit])
            total = sa.select(sa.func.count()).where(h.lease_id == lease_id)
            count = connection.execute(total).scalar_one() if page.with_count else None
        shown = tuple(_past(row, labels) for row in rows[: page.limit])
        following = Position(None, shown[-1].id) if len(rows) > page.limit else None
        return HistoryPage(shown, following, count)


def _place(after: Position | str) -> int:
    text = after if isinstance(after, str) else after.id
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise unknown_marker()
    return int(text)


def _labels(connection: Connection, rows: Sequence[Any]) -> dict[int, str]:
    """Return the public ids of the resources that entries name, in one statement for each few thousand."""
    ids = sorted({id_ for row in rows for _, gone, come, *_ in row["moves"] for id_ in (*gone, *come)})
    found: dict[int, str] = {}
    for part in chunks(ids):
        for id_, label in connection.execute(
            sa.select(resources.c.id, resources.c.label).where(resources.c.id.in_(part))
        ):
            found[id_] = label
    return found


def _past(row: Any, labels: dict[int, str]) -> PastEntry:
    by = None if row["user_id"] is None else Actor(row["user_id"], row["project_id"], bool(row["operator"]))
    return PastEntry(
        str(row["revision"]),
        row["at"],
        Verb(row["verb"]),
        by,
        tuple(FieldChange(*each) for each in row["changes"]),
        tuple(
            NamedMove(
                reservation_id,
                tuple(labels[id_] for id_ in gone if id_ in labels),
                tuple(labels[id_] for id_ in come if id_ in labels),
                gone_count,
                come_count,
            )
            for reservation_id, gone, come, gone_count, come_count in row["moves"]
        ),
        row["reason"],
    )
