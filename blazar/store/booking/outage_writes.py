# SPDX-License-Identifier: Apache-2.0
"""Records from when until when a resource of a reservation cannot be used, in the transaction that says so of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.leases.lease import Lease
from blazar.model.leases.reservation import Reservation
from blazar.store.sql.tables import outages

_BEGIN = outages.insert()
_END = (
    outages.update()
    .where(
        outages.c.reservation_id == sa.bindparam("of", type_=outages.c.reservation_id.type),
        outages.c.resource_id == sa.bindparam("which", type_=outages.c.resource_id.type),
        outages.c.until.is_(None),
    )
    .values(until=sa.bindparam("at", type_=outages.c.until.type))
)


def begin_outages(connection: Connection, lease_id: str, new: Iterable[Reservation], at: datetime) -> None:
    """Record what new reservations lack from the first; no statement if that is nothing."""
    if lacking := [(r.id, resource_id) for r in new for resource_id in sorted(r.lost_ids)]:
        _begin(connection, lease_id, lacking, at)


def note_outages(connection: Connection, before: Lease, after: Lease, at: datetime) -> None:
    """Record what the reservations of a lease lack since a write, or lack no more; no statement if that is the same.

    Those that come from another lease, or go there, lack what they did.
    """
    known = {r.id: r.lost_ids for r in before.reservations}
    stays = [r for r in after.reservations if r.id in known]
    come = [(r.id, resource_id) for r in stays for resource_id in sorted(r.lost_ids - known[r.id])]
    gone = [{"of": r.id, "which": which, "at": at} for r in stays for which in sorted(known[r.id] - r.lost_ids)]
    if gone:
        connection.execute(_END, gone)
    if come:
        _begin(connection, after.id, come, at)


def move_outages(connection: Connection, reservation_ids: Collection[str], lease_id: str) -> None:
    """Record that reservations are another lease's, with all that they lacked."""
    of_them = outages.c.reservation_id.in_(reservation_ids)
    connection.execute(outages.update().where(of_them).values(lease_id=lease_id))


def _begin(connection: Connection, lease_id: str, pairs: Collection[tuple[str, int]], at: datetime) -> None:
    rows = [
        {"lease_id": lease_id, "reservation_id": reservation_id, "resource_id": resource_id, "since": at}
        for reservation_id, resource_id in pairs
    ]
    connection.execute(_BEGIN, rows)
