# SPDX-License-Identifier: Apache-2.0
"""What was asked for of late, and the order of resources that follows from it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from functools import partial

import sqlalchemy as sa

from blazar.model.base.values import dataclass
from blazar.model.resources.resource import ResourceKind
from blazar.store.resources.catalog import CatalogCache
from blazar.store.sql.clock import epoch_seconds
from blazar.store.sql.tables import leases, reservations
from blazar.store.sql.transactions import Transactions

MOST_RESERVATIONS = 5000
"""Reservations that are read: the newest. More of them tell little more of what is sought."""


@dataclass(frozen=True, slots=True)
class AskedParameters:
    """What reservations asked for in the same words; ``parameters`` are JSON."""

    resource_type: str
    region: str
    parameters: str


class SoughtStore:
    """Reads what was asked for, and orders resources by it."""

    def __init__(self, transactions: Transactions, catalogs: CatalogCache) -> None:
        self._transactions = transactions
        self._catalogs = catalogs

    def read_asked(self, since: datetime) -> Mapping[AskedParameters, int]:
        """Return what the newest reservations since an instant asked for, and for how many seconds; one statement."""
        seconds = partial(epoch_seconds, self._transactions.engine.dialect.name)
        length = seconds(leases.c.ends_at) - seconds(leases.c.starts_at)
        r = reservations.c
        query = (
            sa.select(r.resource_type, r.region, sa.cast(r.parameters, sa.Text()), length)
            .join(leases, leases.c.id == r.lease_id)
            .where(leases.c.created_at > since)
            .order_by(leases.c.created_at.desc())
            .limit(MOST_RESERVATIONS)
        )
        found: dict[AskedParameters, int] = defaultdict(int)
        for *asked, lasts in self._transactions.select(query):
            found[AskedParameters(*asked)] += max(0, int(lasts))
        return found

    def rank(self, kind: ResourceKind, tiers: Mapping[int, int]) -> None:
        """Have the resources of a kind ordered by these tiers, by calendar id, in this process; no statement."""
        self._catalogs.rank(kind, tiers)
