# SPDX-License-Identifier: Apache-2.0
"""Histories of leases: what a booking writes to the journal, and the entries of one lease."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.context import current
from blazar.model.base.paging import Page, Position, unknown_marker
from blazar.model.base.values import dataclass
from blazar.model.calendar.allocations import Allocation
from blazar.model.journal.entries import (
    MOST_RESOURCES,
    HistoryPage,
    JournalEntry,
    ObjectType,
    ResourceMove,
    Verb,
)
from blazar.model.journal.lease_entries import make_entry, tell_giver, tell_move, tell_takers
from blazar.model.leases.lease import Lease, SavedAllocation
from blazar.model.leases.states import EventType, LeaseStatus
from blazar.store.booking.commit import LeaseWrite
from blazar.store.calendar import project_use
from blazar.store.journal.journal import read_labels, read_projects
from blazar.store.journal.numbering import count_entries
from blazar.store.journal.rows import insert_rows, make_rows, parse_past
from blazar.store.sql.rows import chunks
from blazar.store.sql.tables import journal, leases
from blazar.store.sql.transactions import Transactions, atomic

Written = tuple[Lease | None, Lease, Sequence[ResourceMove]]
"""A lease before and after a write, as it was saved, and the resources that changed hands."""

_NOTHING: Mapping[str, Any] = MappingProxyType({})

_OF_LEASES = journal.c.object_type == str(ObjectType.LEASE)


def write(
    connection: Connection,
    written: Iterable[Written],
    *,
    at: datetime,
    sure: bool = False,
    others: Mapping[str, str] = _NOTHING,
    by_id: Mapping[str, LeaseWrite] = _NOTHING,
) -> None:
    """Insert what a transaction has done to leases, in one statement; none if there is nothing to tell."""
    told = list_entries(written, at=at, sure=sure, others=others, by_id=by_id)
    insert_rows(connection, make_rows(told))


def list_entries(
    written: Iterable[Written],
    *,
    at: datetime,
    sure: bool = False,
    others: Mapping[str, str] = _NOTHING,
    by_id: Mapping[str, LeaseWrite] = _NOTHING,
) -> Sequence[JournalEntry]:
    """Return what the present request has to tell of leases.

    ``sure``: it does what the operation in the scope says. ``others`` are, by lease, the ones that it was done with.
    ``by_id`` are the writes: what owners are told, and which leases the service has moved by itself.
    """
    here = current()
    entries: list[JournalEntry] = []
    for before, after, moves in written:
        mine = by_id.get(after.id)
        if mine is not None and mine.makes_room is not None:
            entries += tell_move(before, after, moves, mine.makes_room, at=at)
            continue
        told = make_entry(
            before,
            after,
            at=at,
            by=here.actor,
            moves=moves,
            operation=here.operation,
            sure=sure,
            other=others.get(after.id),
            why=here.why,
            announces=None if mine is None else mine.announces,
        )
        if told is not None:
            entries.append(told)
            if before is not None and before.project_id != after.project_id:
                entries.append(tell_giver(told, before))
            if before is not None:
                entries.extend(tell_takers(told, before, after))
    return entries


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


@dataclass(frozen=True, slots=True)
class PastMoves:
    """How often the service has moved a lease to other resources, and when last."""

    number: int
    last: datetime


class HistoryStore:
    """Reads histories of leases."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def page(self, lease_id: str, page: Page) -> HistoryPage:
        """Return a page of the history of a lease, in four statements at most. InvalidInput for an unknown marker.

        Entries are numbered one after the other, those that were left out included: revisions would tell more.
        """
        h = journal.c
        with self._transactions.reading() as connection:
            numbers = _number_entries(connection, lease_id)
            wanted = sorted(numbers, reverse=page.descending)
            if page.after is not None:
                after = _parse_entry_number(page.after)
                wanted = [number for number in wanted if (number < after if page.descending else number > after)]
            found = wanted[: page.limit]
            by_seq = {numbers[number]: number for number in found}
            query = sa.select(journal).where(h.seq.in_(by_seq))
            rows = {by_seq[row["seq"]]: row for row in connection.execute(query).mappings()}
            ordered = [(number, rows[number]) for number in found]
            labels = read_labels(connection, list(rows.values()))
            projects = read_projects(connection, list(rows.values()))
        shown = tuple(parse_past(str(number), row, labels) for number, row in ordered)
        following = Position(None, shown[-1].id) if len(wanted) > page.limit else None
        return HistoryPage(shown, following, len(numbers) if page.with_count else None, projects)

    def count_moves(self, lease_ids: Collection[str]) -> Mapping[str, PastMoves]:
        """Return how often leases were moved, of those that were, in one statement for each few thousand."""
        h = journal.c
        found: dict[str, PastMoves] = {}
        with self._transactions.reading() as connection:
            for part in chunks(sorted(lease_ids)):
                query = sa.select(h.object_id, sa.func.count(), sa.func.max(h.at)).where(
                    _OF_LEASES, h.object_id.in_(part), h.verb == str(Verb.MOVED)
                )
                for id_, number, last in connection.execute(query.group_by(h.object_id)):
                    found[id_] = PastMoves(number, last)
        return found

    def find_crowded_projects(self, keep: int, *, now: datetime) -> tuple[str, ...]:
        """Return the projects whose past leases have more entries than that together, in one statement."""
        query = (
            sa.select(leases.c.project_id)
            .select_from(journal.join(leases, leases.c.id == journal.c.object_id))
            .where(_OF_LEASES, _is_past(now))
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
            .select_from(journal.join(leases, leases.c.id == journal.c.object_id))
            .where(_OF_LEASES, leases.c.project_id == project_id, _is_past(now))
            .group_by(leases.c.id, leases.c.deleted_at, leases.c.ends_at)
            .subquery()
        )
        from_the_last = sa.func.sum(numbered.c.entries).over(order_by=(numbered.c.over_at.desc(), numbered.c.id.desc()))
        counted = sa.select(numbered.c.id, numbered.c.over_at, from_the_last.label("total")).subquery()
        many = sa.select(counted.c.id).where(counted.c.total > keep)
        first = many.order_by(counted.c.over_at, counted.c.id).limit(limit)

        ids = list(connection.execute(first).scalars())
        if ids:
            connection.execute(journal.delete().where(_OF_LEASES, journal.c.object_id.in_(ids)))
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
    """Return the entries of a lease by their numbers, in the order of its revisions."""
    h = journal.c
    left_out = sa.case((h.verb == str(Verb.LEFT_OUT), h.changes), else_=sa.null())
    query = sa.select(h.seq, h.verb, left_out.label("changes"))
    query = query.where(_OF_LEASES, h.object_id == lease_id, h.revision.is_not(None))
    found, number = {}, 0
    for row in connection.execute(query.order_by(h.revision, h.seq)):
        number += count_entries(row.verb, row.changes)
        found[number] = row.seq
    return found
