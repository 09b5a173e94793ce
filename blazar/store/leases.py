# SPDX-License-Identifier: Apache-2.0
"""The store of leases, with their reservations and events."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy.engine import Connection

from blazar.model.demand import Allocation
from blazar.model.lease import Lease, LeaseRevision, ReservationOwner
from blazar.model.resource import Resource
from blazar.model.usage import OutboxMessage
from blazar.store import (
    calendar_queries,
    health_queries,
    lease_queries,
    outbox,
    purge_queries,
    resource_queries,
)
from blazar.store.tables import allocations as allocation_table
from blazar.store.transactions import Transactions


@dataclass(frozen=True, slots=True)
class LeaseAtStart:
    """A lease with its allocations. ``late``: earlier users of its resources may not have left."""

    lease: Lease
    allocations: tuple[Allocation, ...]
    resources: Mapping[int, Resource]
    late: bool


class LeaseStore:
    """Reads and writes leases; ``cleaning_time`` is kept free after each use of a resource."""

    def __init__(self, transactions: Transactions, *, cleaning_time: timedelta) -> None:
        self._transactions = transactions
        self._cleaning_time = cleaning_time

    def one(self, lease_id: str, *, including_deleted: bool = False) -> Lease:
        """Return one lease; NotFound."""
        with self._transactions.reading() as connection:
            return lease_queries.one(connection, lease_id, including_deleted=including_deleted)

    def of_project(self, project_id: str | None) -> tuple[Lease, ...]:
        """Return the leases of a project (None: of all), oldest first, without their request events."""
        with self._transactions.reading() as connection:
            return lease_queries.all_of(connection, project_id)

    def revisions(self, project_id: str | None) -> tuple[LeaseRevision, ...]:
        """Return the ids and revisions of what ``of_project`` returns, in one statement."""
        with self._transactions.reading() as connection:
            return lease_queries.revisions(connection, project_id)

    def by_ids(self, lease_ids: Collection[str]) -> tuple[Lease, ...]:
        """Return leases as ``of_project`` does, by id; deleted ones are left out."""
        with self._transactions.reading() as connection:
            return lease_queries.by_ids(connection, lease_ids)

    def past(
        self, project_id: str | None = None, *, since: datetime | None = None, until: datetime | None = None
    ) -> tuple[Lease, ...]:
        """Return leases that have ended or were deleted, oldest first."""
        with self._transactions.reading() as connection:
            return lease_queries.past(connection, project_id, since, until)

    def starts(self, lease_ids: Collection[str], *, now: datetime) -> Mapping[str, LeaseAtStart]:
        """Return what the start of each of many leases needs, in the number of statements of one."""
        with self._transactions.reading() as connection:
            held = calendar_queries.of_leases(connection, lease_ids)
            ids = {allocation.resource_id for parts in held.values() for allocation in parts}
            resources = resource_queries.by_ids(connection, ids)
            late = calendar_queries.with_earlier_users(connection, lease_ids, now=now, cleaning=self._cleaning_time)
            leases = lease_queries.whole(connection, lease_ids)

        def at_start(lease: Lease) -> LeaseAtStart:
            mine = held[lease.id]
            known = {allocation.resource_id: resources[allocation.resource_id] for allocation in mine}
            return LeaseAtStart(lease, mine, known, lease.id in late)

        return {lease.id: at_start(lease) for lease in leases}

    def owners(self, reservation_ids: Collection[str]) -> Mapping[str, ReservationOwner]:
        """Return the leases of reservations, those on record too; unknown ids are left out."""
        with self._transactions.reading() as connection:
            return lease_queries.owners(connection, reservation_ids)

    def save(
        self,
        before: Lease,
        after: Lease,
        *,
        release: Collection[str] = (),
        at: datetime,
        messages: Collection[OutboxMessage] = (),
    ) -> Lease:
        """Write a changed lease, release the allocations of these reservations, and add messages. StaleLease."""

        def work(connection: Connection) -> Lease:
            saved = replace(after, revision=before.revision + 1)
            lease_queries.save(connection, before, saved, saved.revision)
            if release:
                which = allocation_table.c.reservation_id.in_(sorted(release))
                calendar_queries.release(connection, which, at=at, cleaning=self._cleaning_time)
            outbox.write(connection, messages, at=at)
            return saved

        return self._transactions.write(work)

    def to_heal(
        self, *, now: datetime, until: datetime | None, after: tuple[datetime, str] | None, limit: int
    ) -> list[tuple[datetime, str]]:
        """Return starts and ids of the next leases that have what has failed by ``until``, or are missing something.

        In this order, from the one ``after``.
        """
        with self._transactions.reading() as connection:
            return health_queries.to_heal(connection, now=now, until=until, after=after, limit=limit)

    def purgeable(self, before: datetime) -> Mapping[str, int]:
        """Return the number of leases deleted or ended before then, and of their rows by table."""
        with self._transactions.reading() as connection:
            return purge_queries.count(connection, before)

    def purge(self, before: datetime, limit: int) -> Mapping[str, int]:
        """Delete at most ``limit`` of these leases with all their rows for good; return the number of rows by table."""
        return self._transactions.write(lambda connection: purge_queries.purge(connection, before, limit))
