# SPDX-License-Identifier: Apache-2.0
"""What reservations in use have made in the cloud."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa

from blazar.model.lease import LeaseStatus, ReservationStatus
from blazar.model.lease_json import gone_of
from blazar.model.made import made_of
from blazar.store.tables import leases, reservations
from blazar.store.transactions import Transactions


@dataclass(frozen=True, slots=True)
class Made:
    """The ids of what a reservation in use has made, and those that were seen to be gone."""

    lease_id: str
    reservation_id: str
    resource_type: str
    region: str
    ids: tuple[str, ...]
    gone: frozenset[str]


class MadeStore:
    """Reads what reservations have made."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def in_use(self, resource_types: Collection[str]) -> tuple[Made, ...]:
        """Return what reservations in use of active leases have made, by the order of their ids; one statement."""
        query = (
            sa.select(
                reservations.c.lease_id,
                reservations.c.id,
                reservations.c.resource_type,
                reservations.c.region,
                reservations.c.artefacts,
            )
            .join(leases, leases.c.id == reservations.c.lease_id)
            .where(
                leases.c.deleted_at.is_(None),
                leases.c.status == str(LeaseStatus.ACTIVE),
                reservations.c.status == str(ReservationStatus.ACTIVE),
                reservations.c.resource_type.in_(sorted(resource_types)),
            )
            .order_by(reservations.c.id)
        )
        with self._transactions.reading() as connection:
            rows = connection.execute(query).all()
        return tuple(
            Made(lease_id, id_, kind, region, ids, frozenset(each.id for each in gone_of(stored)))
            for lease_id, id_, kind, region, stored in rows
            if (ids := made_of(kind, stored))
        )
