# SPDX-License-Identifier: Apache-2.0
"""Who had resources before, of those that have them no more."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import Connection

from blazar.model.lease import LeaseStatus
from blazar.store.rows import chunks
from blazar.store.tables import allocations, leases


def last_reservations(
    connection: Connection, projects: Mapping[int, Collection[str]], now: datetime
) -> Mapping[tuple[int, str], str]:
    """Return the last finished reservation of projects on resources that they have no more at present.

    By calendar id and project. A project that never had a resource is left out. Two statements for each few thousand
    projects.
    """
    asked = {(resource_id, project) for resource_id, them in projects.items() for project in them}
    over = sa.or_(leases.c.deleted_at.is_not(None), leases.c.status == str(LeaseStatus.TERMINATED))
    is_current = sa.and_(allocations.c.released_at.is_(None), allocations.c.starts_at <= now)
    query = (
        sa.select(
            allocations.c.resource_id,
            leases.c.project_id,
            sa.func.max(sa.case((over, allocations.c.id))),
        )
        .join(leases, leases.c.id == allocations.c.lease_id)
        .where(allocations.c.resource_id.in_(sorted(projects)))
        .group_by(allocations.c.resource_id, leases.c.project_id)
        .having(sa.func.sum(sa.case((is_current, 1), else_=0)) == 0)
    )
    found: dict[int, tuple[int, str]] = {}
    names: dict[int, str] = {}
    for part in chunks(sorted({project for _, project in asked})):
        for resource_id, project, last in connection.execute(query.where(leases.c.project_id.in_(part))):
            if last is not None and (resource_id, project) in asked:
                found[last] = (resource_id, project)
    for ids in chunks(sorted(found)):
        of_each = sa.select(allocations.c.id, allocations.c.reservation_id).where(allocations.c.id.in_(ids))
        for id_, reservation_id in connection.execute(of_each):
            names[id_] = reservation_id
    return {found[id_]: reservation_id for id_, reservation_id in names.items()}
