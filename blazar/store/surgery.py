# SPDX-License-Identifier: Apache-2.0
"""Writes of operations on several leases at once: all of it in one transaction, or nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from sqlalchemy.engine import Connection

from blazar.model.demand import Allocation
from blazar.model.lease import Lease
from blazar.model.requests import IdempotencyKey
from blazar.model.usage import OutboxMessage, ProjectUse
from blazar.store import allocation_writes, idempotency, lease_writes, outbox, use_queries
from blazar.store.transactions import Transactions
from blazar.store.use_queries import stale_if_first


@dataclass(frozen=True, slots=True)
class Operated:
    """A lease before and after an operation, and the allocations that it has then."""

    before: Lease
    after: Lease
    allocations: tuple[Allocation, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """What an operation writes.

    ``generations`` are those of resources that get other users; ``uses`` as for a booking, one a project; ``key``
    records the first of the ``changed`` leases.
    """

    changed: Sequence[Operated]
    generations: Mapping[int, int] = field(default_factory=dict)
    uses: Collection[ProjectUse] = ()
    messages: Collection[OutboxMessage] = ()
    key: IdempotencyKey | None = None


class SurgeryStore:
    """Writes operations."""

    def __init__(self, transactions: Transactions, *, cleaning_time: timedelta) -> None:
        self._transactions = transactions
        self._cleaning_time = cleaning_time

    def write(self, operation: Operation, *, at: datetime) -> tuple[Lease, ...]:
        """Write an operation, and return the leases as saved. StaleLease, StaleCalendar, KeyTaken."""

        def work(connection: Connection) -> tuple[Lease, ...]:
            if operation.key is not None:
                idempotency.insert(connection, operation.key, operation.changed[0].before.id, at)
            for use in operation.uses:
                use_queries.raise_version(connection, use)
            allocation_writes.raise_generations(connection, operation.generations)
            saved: dict[str, Lease] = {}
            # In the order of ids, so that two operations on the same leases never wait for each other.
            for each in sorted(operation.changed, key=lambda operated: operated.before.id):
                after = replace(each.after, revision=each.before.revision + 1)
                lease_writes.save(connection, each.before, after, after.revision)
                saved[after.id] = after
            for each in operation.changed:
                allocation_writes.replace(
                    connection, saved[each.before.id], each.allocations, cleaning=self._cleaning_time, at=at
                )
            outbox.write(connection, operation.messages, at=at)
            return tuple(saved[each.before.id] for each in operation.changed)

        with stale_if_first(next((use for use in operation.uses if not use.version), None)):
            return self._transactions.write(work)
