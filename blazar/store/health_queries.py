# SPDX-License-Identifier: Apache-2.0
"""Which resources have failed, and which leases that concerns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.lease import LeaseStatus, ReservationStatus
from blazar.store.rows import chunks
from blazar.store.tables import allocations, leases, reservations, resources

USED = (str(LeaseStatus.STARTING), str(LeaseStatus.ACTIVE), str(LeaseStatus.UPDATING), str(LeaseStatus.ERROR))
"""States of leases that may have reservations in use, and that are not being deleted."""


def set_failed(connection: Connection, failures: Mapping[int, str], at: datetime) -> frozenset[int]:
    """Mark resources as failed, each with its reason; return those that had not failed before.

    One statement for each reason, and one more. Generations are raised, so that no booking succeeds that assumed the
    resources to be healthy.
    """
    known = _states(connection, failures)
    by_reason: dict[str, list[int]] = defaultdict(list)
    for id_, reason in failures.items():
        if id_ in known and known[id_] != reason:
            by_reason[reason].append(id_)
    for reason, ids in by_reason.items():
        for part in chunks(ids):
            connection.execute(
                resources.update()
                .where(resources.c.id.in_(part), resources.c.live == 1)
                .values(
                    failure=reason,
                    failed_since=sa.func.coalesce(
                        resources.c.failed_since, sa.literal(at, resources.c.updated_at.type)
                    ),
                    updated_at=at,
                    generation=resources.c.generation + 1,
                )
            )
    return frozenset(id_ for id_ in failures if id_ in known and known[id_] is None)


def set_recovered(connection: Connection, ids: Collection[int], at: datetime) -> frozenset[int]:
    """Mark resources as recovered; return those that had failed."""
    known = _states(connection, ids)
    changed = sorted(id_ for id_, failure in known.items() if failure is not None)
    for part in chunks(changed):
        connection.execute(
            resources.update()
            .where(resources.c.id.in_(part), resources.c.live == 1)
            .values(failure=None, failed_since=None, updated_at=at, generation=resources.c.generation + 1)
        )
    return frozenset(changed)


def failed_by(connection: Connection, kinds: Collection[str], instant: datetime) -> Mapping[int, str]:
    """Return the resources of some kinds that failed by an instant and have not recovered, with their kinds."""
    rows = connection.execute(
        sa.select(resources.c.id, resources.c.kind).where(
            resources.c.failed_since <= instant, resources.c.live == 1, resources.c.kind.in_(sorted(kinds))
        )
    )
    return {row.id: row.kind for row in rows}


def in_use(connection: Connection, kind: str, now: datetime) -> Mapping[str, frozenset[str]]:
    """Return the names of the resources of a kind that reservations in use have, by reservation; one statement."""
    found: dict[str, set[str]] = defaultdict(set)
    query = (
        sa.select(allocations.c.reservation_id, resources.c.name)
        .join(resources, resources.c.id == allocations.c.resource_id)
        .join(reservations, reservations.c.id == allocations.c.reservation_id)
        .join(leases, leases.c.id == allocations.c.lease_id)
        .where(
            allocations.c.kind == kind,
            allocations.c.released_at.is_(None),
            allocations.c.starts_at <= now,
            allocations.c.ends_at > now,
            reservations.c.status == str(ReservationStatus.ACTIVE),
            leases.c.status.in_(USED),
        )
    )
    for reservation_id, name in connection.execute(query):
        found[reservation_id].add(name)
    return {reservation_id: frozenset(names) for reservation_id, names in found.items()}


def _states(connection: Connection, ids: Collection[int]) -> Mapping[int, str | None]:
    """Return the failures of registered resources, locked against concurrent changes until the transaction ends."""
    found: dict[int, str | None] = {}
    for part in chunks(sorted(ids)):
        rows = connection.execute(
            sa.select(resources.c.id, resources.c.failure)
            .where(resources.c.id.in_(part), resources.c.live == 1)
            .order_by(resources.c.id)
            .with_for_update()
        )
        found.update((id_, failure) for id_, failure in rows)
    return found
