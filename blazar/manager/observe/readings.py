# SPDX-License-Identifier: Apache-2.0
"""What a manager has in memory that metrics tell: threads at work, claims, connections to the database.

It is read when metrics are asked for, while all of that goes on: nothing is locked, and a number may be one too old.
"""

from __future__ import annotations

from collections.abc import Iterator

from blazar.context import Pool
from blazar.manager.common.claims import Claims
from blazar.manager.events.engine import Engine
from blazar.manager.outbox.outbox import Outbox
from blazar.observe import metrics
from blazar.observe.exposition import Value
from blazar.observe.families import Reading
from blazar.store.store import Store


class ManagerReadings:
    """Reads what a manager is doing right now. No statement, and no lock that work could hold."""

    def __init__(self, store: Store, claims: Claims, engine: Engine, outbox: Outbox) -> None:
        self._store = store
        self._claims = claims
        self._engine = engine
        self._outbox = outbox

    def read(self, *pools: Pool) -> Iterator[Value]:
        """Yield the numbers; ``pools`` are threads besides those of events and messages."""
        yield Value(metrics.CLAIMS_HELD, (), self._claims.held_number)
        yield from _shares(metrics.DB_CONNECTIONS, (), *self._store.transactions.connections)
        for pool in (*pools, *self._engine.pools):
            yield from _shares(metrics.WORKER_THREADS, (_name_pool(pool),), *_count_threads(pool))
        yield from _shares(metrics.WORKER_THREADS, ("outbox",), *self._outbox.threads)


def _name_pool(pool: Pool) -> str:
    # Without regions the name ends with an empty one.
    return pool.name.rstrip("-")


def _count_threads(pool: Pool) -> tuple[int, int]:
    """Return how many threads of a pool are at work, and how many are not."""
    busy = min(pool.crowd.busy, pool.threads)
    return busy, pool.threads - busy


def _shares(family: Reading, labels: tuple[str, ...], busy: int, idle: int) -> Iterator[Value]:
    yield Value(family, (*labels, "busy"), busy)
    yield Value(family, (*labels, "idle"), idle)
