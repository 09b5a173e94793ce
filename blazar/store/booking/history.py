# SPDX-License-Identifier: Apache-2.0
"""Histories of leases: an entry is written in the transaction of the change that it tells of, and never changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.context import current
from blazar.model.base.paging import Page, Position, unknown_marker
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.history import (
    ENTRIES,
    MOST_RESOURCES,
    OTHER_LEASE,
    FieldChange,
    HistoryEntry,
    HistoryPage,
    NamedMove,
    PastEntry,
    ResourceMove,
    Verb,
    make_entry,
)
from blazar.model.leases.lease import Lease, SavedAllocation
from blazar.model.leases.requests import Actor
from blazar.model.leases.states import EventType, LeaseStatus
from blazar.store.calendar import project_use
from blazar.store.sql.rows import chunks
from blazar.store.sql.tables import lease_history, leases, reservations, resources
from blazar.store.sql.transactions import HISTORY_ENTRIES, KEPT_ENTRIES, Transactions, atomic

Written = tuple[Lease | None, Lease, Sequence[ResourceMove]]
"""A lease before and after a write, as it was saved, and the resources that changed hands."""

_INSERT = lease_history.insert()

FIRST_ENTRIES = 20
"""The first entries of a lease's history, which are always kept."""
PORTION = 10
"""More entries than are kept, after which those that are too many are left out."""


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
        told = make_entry(
            before, after, at=at, by=here.actor, moves=moves, operation=here.operation, sure=sure, other=other
        )
        if told is not None:
            rows.append(entry_row(told, after.revision))
    if rows:
        connection.execute(_INSERT, rows)
        _thin_out_histories(connection, rows)


def entry_row(told: HistoryEntry, revision: int) -> dict[str, Any]:
    """Return the columns of an entry, which belongs to a revision of its lease."""
    by = told.by
    return {
        "lease_id": told.lease_id,
        "revision": revision,
        "at": told.at,
        "verb": str(told.verb),
        "user_id": None if by is None else by.user_id,
        "project_id": None if by is None else by.project_id,
        "operator": by is not None and by.operator,
        "changes": [[c.field, c.before, c.after, c.reservation_id] for c in told.changes],
        "moves": [[m.reservation_id, m.gone, m.come, m.gone_count, m.come_count] for m in told.moves],
        "reason": told.reason,
    }


def _thin_out_histories(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Leave out the middle of histories that have become long; most leases have had too few revisions for that.

    What one write leaves out is a few entries, so that most writes leave out none. One statement, three if some are.
    """
    kept = int(connection.get_execution_options().get(KEPT_ENTRIES, HISTORY_ENTRIES))
    most = FIRST_ENTRIES + 1 + kept
    long = [row["lease_id"] for row in rows if row["revision"] >= most]
    if not long:
        return
    h = lease_history.c
    query = sa.select(h.lease_id, h.revision, h.verb, h.at, h.changes).where(h.lease_id.in_(long))
    found: dict[str, list[Any]] = {}
    for row in connection.execute(query.order_by(h.lease_id, h.revision)):
        found.setdefault(row.lease_id, []).append(row)
    gone = {id_: every[FIRST_ENTRIES:-kept] for id_, every in found.items() if len(every) >= most + PORTION}
    if not gone:
        return
    between = [
        sa.and_(h.lease_id == id_, h.revision.between(some[0].revision, some[-1].revision))
        for id_, some in gone.items()
    ]
    connection.execute(lease_history.delete().where(sa.or_(*between)))
    connection.execute(_INSERT, [_sum_up_entries(some) for some in gone.values()])


def _sum_up_entries(gone: Sequence[Any]) -> dict[str, Any]:
    """Return the entry in the place of others; one that stood for more of them counts as these."""
    last, count = gone[-1], sum(_count_entries(row.verb, row.changes) for row in gone)
    return {
        "lease_id": last.lease_id,
        "revision": last.revision,
        "at": last.at,
        "verb": str(Verb.LEFT_OUT),
        "user_id": None,
        "project_id": None,
        "operator": False,
        "changes": [[ENTRIES, None, str(count), None]],
        "moves": [],
        "reason": None,
    }


def _count_entries(verb: str, changes: Sequence[Sequence[Any]]) -> int:
    return int(changes[0][2]) if verb == str(Verb.LEFT_OUT) else 1


def list_new_moves(allocations: Collection[Allocation]) -> tuple[ResourceMove, ...]:
    """Return what reservations get that had nothing."""
    return moves_between((), pair_with_reservations(allocations))


def pair_with_reservations(allocations: Iterable[Allocation | SavedAllocation]) -> list[tuple[str, int]]:
    """Return allocations as reservations and resources, by calendar id."""
    return [(allocation.reservation_id, allocation.resource_id) for allocation in allocations]


def entry_of_change(
    before: Lease | None, after: Lease, moves: Sequence[ResourceMove], allocations: Collection[Allocation]
) -> list[Written]:
    """Return the entry of a lease that is changed, and then has these allocations; ``moves`` are those of this write.

    A change that is made in steps is told when it is done, as a whole. One that is undone leaves nothing to tell.
    """
    if after.status is LeaseStatus.UPDATING:
        return []
    event = None
    if before is not None and before.status is LeaseStatus.UPDATING:
        event = before.event(EventType.UPDATE)
    kept = None if event is None or event.saved_state is None else event.saved_state.allocations
    if kept is not None:
        moves = moves_between(pair_with_reservations(kept), pair_with_reservations(allocations))
    return [(before, after, moves)]


def moves_between(gone: Iterable[tuple[str, int]], come: Iterable[tuple[str, int]]) -> tuple[ResourceMove, ...]:
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
        """Return a page of the history of a lease, in four statements at most. InvalidInput for an unknown marker.

        Entries are numbered one after the other, those that were left out included: revisions would tell more.
        """
        h = lease_history.c
        with self._transactions.reading() as connection:
            numbers = _number_entries(connection, lease_id)
            wanted = sorted(numbers, reverse=page.descending)
            if page.after is not None:
                after = _parse_entry_number(page.after)
                wanted = [number for number in wanted if (number < after if page.descending else number > after)]
            found = wanted[: page.limit]
            by_revision = {numbers[number]: number for number in found}
            query = sa.select(lease_history).where(h.lease_id == lease_id, h.revision.in_(by_revision))
            rows = {by_revision[row["revision"]]: row for row in connection.execute(query).mappings()}
            ordered = [(number, rows[number]) for number in found]
            labels = _read_labels(connection, list(rows.values()))
            projects = _read_projects(connection, list(rows.values()))
        shown = tuple(_parse_past(str(number), row, labels) for number, row in ordered)
        following = Position(None, shown[-1].id) if len(wanted) > page.limit else None
        return HistoryPage(shown, following, len(numbers) if page.with_count else None, projects)

    def find_crowded_projects(self, keep: int, *, now: datetime) -> tuple[str, ...]:
        """Return the projects whose past leases have more entries than that together, in one statement."""
        query = (
            sa.select(leases.c.project_id)
            .select_from(lease_history.join(leases, leases.c.id == lease_history.c.lease_id))
            .where(_is_past(now))
            .group_by(leases.c.project_id)
            .having(sa.func.count() > keep)
            .order_by(leases.c.project_id)
        )
        return tuple(self._transactions.scalars(query))

    @atomic
    def forget_entries(self, connection: Connection, project_id: str, keep: int, limit: int, *, now: datetime) -> int:
        """Forget histories of past leases of a project beyond so many entries; return of how many leases.

        The leases that were deleted, or else ended, first lose all that they have. At most ``limit`` leases; which, one
        statement says, so that managers that do so at once forget no more than one would.
        """
        over_at = sa.func.coalesce(leases.c.deleted_at, leases.c.ends_at)
        numbered = (
            sa.select(leases.c.id, over_at.label("over_at"), sa.func.count().label("entries"))
            .select_from(lease_history.join(leases, leases.c.id == lease_history.c.lease_id))
            .where(leases.c.project_id == project_id, _is_past(now))
            .group_by(leases.c.id, leases.c.deleted_at, leases.c.ends_at)
            .subquery()
        )
        from_the_last = sa.func.sum(numbered.c.entries).over(order_by=(numbered.c.over_at.desc(), numbered.c.id.desc()))
        counted = sa.select(numbered.c.id, numbered.c.over_at, from_the_last.label("total")).subquery()
        many = sa.select(counted.c.id).where(counted.c.total > keep)
        first = many.order_by(counted.c.over_at, counted.c.id).limit(limit)

        ids = list(connection.execute(first).scalars())
        if ids:
            connection.execute(lease_history.delete().where(lease_history.c.lease_id.in_(ids)))
        return len(ids)


def _is_past(now: datetime) -> sa.ColumnElement[bool]:
    """Select the leases whose number no limit of their project bounds: all but those to come, in use, and waiting."""
    return sa.and_(sa.not_(project_use.select_counted(now)), leases.c.status != str(LeaseStatus.WAITING))


def _parse_entry_number(after: Position | str) -> int:
    text = after if isinstance(after, str) else after.id
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise unknown_marker()
    return int(text)


def _number_entries(connection: Connection, lease_id: str) -> dict[int, int]:
    """Return the revisions of the entries of a lease by their numbers."""
    h = lease_history.c
    left_out = sa.case((h.verb == str(Verb.LEFT_OUT), h.changes), else_=sa.null())
    query = sa.select(h.revision, h.verb, left_out.label("changes")).where(h.lease_id == lease_id)
    found, number = {}, 0
    for row in connection.execute(query.order_by(h.revision)):
        number += _count_entries(row.verb, row.changes)
        found[number] = row.revision
    return found


def _read_projects(connection: Connection, rows: Sequence[Any]) -> dict[str, str]:
    """Return whose the leases and reservations are now that entries name, in one statement."""
    named = {change[2] for row in rows for change in row["changes"] if change[0] == OTHER_LEASE}
    parts = {change[3] for row in rows for change in row["changes"] if change[3]}
    parts |= {move[0] for row in rows for move in row["moves"]}
    if not named and not parts:
        return {}
    whose = sa.select(leases.c.id, leases.c.project_id).where(leases.c.id.in_(sorted(named)))
    of_parts = (
        sa.select(reservations.c.id, leases.c.project_id).join(leases).where(reservations.c.id.in_(sorted(parts)))
    )
    return {row[0]: row[1] for row in connection.execute(sa.union_all(whose, of_parts))}


def _read_labels(connection: Connection, rows: Sequence[Any]) -> dict[int, str]:
    """Return the public ids of the resources that entries name, in one statement for each few thousand."""
    ids = sorted({id_ for row in rows for _, gone, come, *_ in row["moves"] for id_ in (*gone, *come)})
    found: dict[int, str] = {}
    for part in chunks(ids):
        for id_, label in connection.execute(
            sa.select(resources.c.id, resources.c.label).where(resources.c.id.in_(part))
        ):
            found[id_] = label
    return found


def _parse_past(number: str, row: Any, labels: dict[int, str]) -> PastEntry:
    by = None if row["user_id"] is None else Actor(row["user_id"], row["project_id"], bool(row["operator"]))
    return PastEntry(
        number,
        row["at"],
        Verb(row["verb"]),
        by,
        tuple(FieldChange(*change) for change in row["changes"]),
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
