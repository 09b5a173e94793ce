# SPDX-License-Identifier: Apache-2.0
"""What projects have of shared resources at a moment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.amounts import Amounts
from blazar.model.lease import EventType, LeaseStatus, ReservationStatus, SavedAllocation
from blazar.model.lease_json import saved_state_of
from blazar.store.tables import allocations, events, leases, reservations

USED = (str(LeaseStatus.STARTING), str(LeaseStatus.ACTIVE), str(LeaseStatus.UPDATING), str(LeaseStatus.ERROR))
"""States of leases that may have reservations in use, and that are not being deleted."""


def shares(
    connection: Connection, project_id: str, resource_ids: Collection[int], *, besides: str, now: datetime
) -> Mapping[int, Mapping[str, Amounts]]:
    """Return what the reservations of a project have of resources, by calendar id and reservation; one is left out.

    One statement. Of a lease that is being changed that is what it had before: its allocations are also for what it
    may get.
    """
    found: dict[int, dict[str, Amounts]] = defaultdict(lambda: defaultdict(Amounts))
    before: dict[str, tuple[SavedAllocation, ...]] = {}
    active: dict[str, set[str]] = defaultdict(set)
    query = _query(project_id, resource_ids, now)
    for lease_id, id_, resource_id, count, per_instance, memo in connection.execute(query):
        saved = saved_state_of(memo)
        if saved is not None and saved.allocations is not None:
            before[lease_id] = saved.allocations
            active[lease_id].add(id_)
        elif id_ != besides:
            found[resource_id][id_] += Amounts.of(per_instance or {}).times(count)
    for lease_id, held in before.items():
        for each in held:
            if each.reservation_id in active[lease_id] - {besides} and each.resource_id in resource_ids:
                found[each.resource_id][each.reservation_id] += (each.per_instance or Amounts()).times(each.count)
    return found


def _query(project_id: str, resource_ids: Collection[int], now: datetime) -> sa.Select[Any]:
    change = sa.and_(
        events.c.lease_id == leases.c.id,
        events.c.event_type == str(EventType.UPDATE),
        leases.c.status == str(LeaseStatus.UPDATING),
    )
    return (
        sa.select(
            leases.c.id,
            reservations.c.id,
            allocations.c.resource_id,
            allocations.c.units,
            allocations.c.unit,
            events.c.memo,
        )
        .join(reservations, reservations.c.lease_id == leases.c.id)
        .join(allocations, allocations.c.reservation_id == reservations.c.id)
        .outerjoin(events, change)
        .where(
            leases.c.project_id == project_id,
            allocations.c.resource_id.in_(sorted(resource_ids)),
            allocations.c.released_at.is_(None),
            allocations.c.starts_at <= now,
            leases.c.status.in_(USED),
            sa.or_(
                reservations.c.status == str(ReservationStatus.ACTIVE),
                sa.and_(
                    reservations.c.status == str(ReservationStatus.PENDING),
                    leases.c.status == str(LeaseStatus.STARTING),
                ),
            ),
        )
    )
