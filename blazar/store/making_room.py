# SPDX-License-Identifier: Apache-2.0
"""One lease at a time of a project has room made for it, however many of its requests come at once."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.errors import NotEnoughResources
from blazar.model.lease import EventStatus, EventType, LeaseStatus
from blazar.store import use_queries
from blazar.store.tables import events, leases

_STATUSES = (str(LeaseStatus.CREATING), str(LeaseStatus.IN_PROGRESS))
_OPEN = (str(EventStatus.UNDONE), str(EventStatus.IN_PROGRESS))


def check(connection: Connection, project_id: str) -> None:
    """Raise NotEnoughResources while room is being made for a lease of the project.

    One statement, which uses the index of a project's leases.
    """
    other = connection.execute(
        sa.select(leases.c.id)
        .join(events, events.c.lease_id == leases.c.id)
        .where(
            leases.c.project_id == project_id,
            leases.c.deleted_at.is_(None),
            leases.c.status.in_(_STATUSES),
            events.c.event_type == str(EventType.EVACUATE),
            events.c.status.in_(_OPEN),
        )
        .order_by(leases.c.id)
        .limit(1)
    ).scalar()
    if other is not None:
        raise NotEnoughResources(
            f"room is being made for lease {other} of the project; wait until it has started, or delete it"
        )


def claim(connection: Connection, project_id: str) -> None:
    """Check as ``check`` does, with nobody else in between until the transaction is over. Clash, NotEnoughResources.

    Clash if another transaction has just made the row that is locked here, for the first time.
    """
    use_queries.lock(connection, project_id)
    check(connection, project_id)
