# SPDX-License-Identifier: Apache-2.0
"""The store of regions: which resources have, and that of resources from before there were several."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.resource import ResourceKind
from blazar.store import resource_queries
from blazar.store.tables import reservations, resources
from blazar.store.transactions import Transactions


class RegionStore:
    """Reads and writes the regions of resources and reservations."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def in_use(self) -> frozenset[str]:
        """Return the regions of the registered resources; that of resources without a region is empty."""
        with self._transactions.reading() as connection:
            return frozenset(
                connection.execute(sa.select(resources.c.region).where(resources.c.live == 1).distinct()).scalars()
            )

    def adopt(self, region: str) -> None:
        """Give a region to all resources and reservations that have none; the number of statements is constant."""

        def work(connection: Connection) -> None:
            without = sa.select(resources.c.kind).where(resources.c.region == "").distinct()
            kinds = sorted(connection.execute(without).scalars())
            for table in (resources, reservations):
                connection.execute(table.update().where(table.c.region == "").values(region=region))
            for kind in kinds:
                resource_queries.raise_version(connection, ResourceKind(kind))

        self._transactions.write(work)
