# SPDX-License-Identifier: Apache-2.0
"""Writes of operations on several leases at once: all of it in one transaction, or nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.bounds import Bounds
from blazar.model.demand import Allocation
from blazar.model.lease import Lease
from blazar.model.requests import IdempotencyKey
from blazar.model.usage import OutboxMessage, ProjectUse
from blazar.store import allocation_writes, history, idempotency, lease_writes, maintenance_plans, outbox, use_queries
from blazar.store.rows import chunks
from blazar.store.tables import allocations, reservations
from blazar.store.transactions import Transactions

_PLACE = (
    reservations.update()
    .where(reservations.c.id == sa.bindparam("key"))
    .values(position=sa.bindparam("place", type_=reservations.c.position.type))
)


@dataclass(frozen=True, slots=True)
class Operated:
    """A lease before and after an operation, and the allocations that it has then; one that is made had none before."""

    before: Lease | None
    after: Lease
    allocations: tuple[Allocation, ...]


@dataclass(frozen=True, slots=True)
class Move:
    """A reservation goes to another lease, with all that it has or has had."""

    reservation_id: str
    lease_id: str


@dataclass(frozen=True, slots=True)
class Passing:
    """Resources that a reservation has pass to another one, in the same window: nobody leaves, and nobody comes."""

    reservation_id: str
    to_reservation_id: str
    to_lease_id: str
    resources: frozenset[int]


@dataclass(frozen=True, slots=True)
class Operation:
    """What an operation writes.

    ``generations`` are those of resources that get other users; ``uses`` as for a booking, one a project; ``key`` is
    recorded with the lease ``key_of``. ``bounds`` count if a lease is made, with the number of ``more`` reservations.
    ``plans_from`` says for leases from which others they take the plans of maintenance windows.
    """

    changed: Sequence[Operated]
    generations: Mapping[int, int] = field(default_factory=dict)
    uses: Collection[ProjectUse] = ()
    messages: Collection[OutboxMessage] = ()
    key: IdempotencyKey | None = None
    key_of: str = ""
    moves: Sequence[Move] = ()
    passing: Sequence[Passing] = ()
    bounds: Bounds | None = None
    more: int = 0
    plans_from: Mapping[str, str] = field(default_factory=dict)


class SurgeryStore:
    """Writes operations."""

    def __init__(self, transactions: Transactions, *, cleaning_time: timedelta) -> None:
        self._transactions = transactions
        self._cleaning_time = cleaning_time

    def write(self, operation: Operation, *, at: datetime) -> tuple[Lease, ...]:
        """Write an operation, and return the leases as saved. StaleLease, StaleCalendar, KeyTaken, UsageDenied."""

        def work(connection: Connection) -> tuple[Lease, ...]:
            if operation.key is not None:
                idempotency.insert(connection, operation.key, operation.key_of, at)
            for use in operation.uses:
                use_queries.raise_version(connection, use)
            allocation_writes.raise_generations(connection, operation.generations)
            saved = _save_leases(connection, operation, at)
            held = _held(connection, operation)
            _move(connection, operation)
            told: list[history.Written] = []
            for each in operation.changed:
                lease = saved[each.after.id]
                allocation_writes.replace(connection, lease, each.allocations, cleaning=self._cleaning_time, at=at)
                # What has passed from one lease to the other is not seen there: its rows have moved already.
                has = ((a.reservation_id, a.resource_id) for a in each.allocations)
                told.append((each.before, lease, history.moved(held.get(lease.id, ()), has)))
            history.write(connection, told, at=at, sure=True, others=_others(operation))
            for to, origin in operation.plans_from.items():
                maintenance_plans.take_plans(connection, to, origin, at)
            outbox.write(connection, operation.messages, at=at)
            return tuple(saved[each.after.id] for each in operation.changed)

        first = next((use for use in operation.uses if not use.version), None)
        with use_queries.stale_if_first(first):
            return self._transactions.write(work)


def _save_leases(connection: Connection, operation: Operation, at: datetime) -> dict[str, Lease]:
    moved = {each.reservation_id for each in operation.moves}
    saved: dict[str, Lease] = {}
    # In the order of ids, so that two operations on the same leases never wait for each other.
    for each in sorted(operation.changed, key=lambda operated: operated.after.id):
        if each.before is None:
            continue
        after = replace(each.after, revision=each.before.revision + 1)
        lease_writes.save(connection, each.before, after, after.revision)
        saved[after.id] = after
    for each in operation.changed:
        if each.before is not None:
            continue
        if operation.bounds is not None and operation.bounds.of_project:
            so_far = use_queries.count(connection, each.after.project_id, at)
            operation.bounds.check_project(*so_far, more=operation.more)
        lease_writes.insert(connection, each.after, besides=moved)
        saved[each.after.id] = each.after
    return saved


def _held(connection: Connection, operation: Operation) -> Mapping[str, Collection[tuple[str, int]]]:
    """Return which resources the reservations of the leases have before an operation, by lease; in one statement."""
    a = allocations.c
    ids = [each.before.id for each in operation.changed if each.before is not None]
    query = sa.select(a.lease_id, a.reservation_id, a.resource_id).where(a.lease_id.in_(ids), a.released_at.is_(None))
    found: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for lease_id, reservation_id, resource_id in connection.execute(query):
        found[lease_id].append((reservation_id, resource_id))
    return found


def _others(operation: Operation) -> Mapping[str, str]:
    """Return the other lease of each one in an operation on two."""
    ids = [each.after.id for each in operation.changed]
    return dict(zip(ids, reversed(ids), strict=True)) if len(ids) == 2 else {}


def _move(connection: Connection, operation: Operation) -> None:
    """Write whose reservations and resources are now; what was released long ago goes with its reservation."""
    for lease_id in sorted({move.lease_id for move in operation.moves}):
        ids = [move.reservation_id for move in operation.moves if move.lease_id == lease_id]
        for part in chunks(sorted(ids)):
            connection.execute(reservations.update().where(reservations.c.id.in_(part)).values(lease_id=lease_id))
            of_these = allocations.c.reservation_id.in_(part)
            connection.execute(allocations.update().where(of_these).values(lease_id=lease_id))
    for each in operation.passing:
        for resources in chunks(sorted(each.resources)):
            connection.execute(
                allocations.update()
                .where(
                    allocations.c.reservation_id == each.reservation_id,
                    allocations.c.resource_id.in_(resources),
                    allocations.c.released_at.is_(None),
                )
                .values(lease_id=each.to_lease_id, reservation_id=each.to_reservation_id)
            )
    if operation.moves or operation.passing:
        placed = [(r.id, n) for each in operation.changed for n, r in enumerate(each.after.reservations)]
        connection.execute(_PLACE, [{"key": id_, "place": number} for id_, number in placed])
