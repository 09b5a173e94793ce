# SPDX-License-Identifier: Apache-2.0
"""The keys of requests that made leases: written with the lease, or not at all."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from blazar.model.base.errors import Conflict
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import IdempotencyKey, KeyRecord
from blazar.model.leases.states import EndReason
from blazar.store.sql.tables import idempotency_keys
from blazar.store.sql.transactions import Transactions, atomic


class KeyTaken(Conflict):
    """Another request with this key has made a lease; the caller answers with that."""


class IdempotencyStore:
    """Reads keys, and forgets old ones."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def find(self, key: IdempotencyKey) -> KeyRecord | None:
        """Return the record of a key, in one statement; None if no lease was made with it."""
        columns = (idempotency_keys.c.lease_id, idempotency_keys.c.fingerprint)
        query = sa.select(*columns).where(idempotency_keys.c.scope == key.scope)
        with self._transactions.reading() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else KeyRecord(*row)

    @atomic
    def purge(self, connection: Connection, before: datetime, limit: int) -> int:
        """Forget at most ``limit`` keys from before then; return how many."""
        old = sa.select(idempotency_keys.c.scope).where(idempotency_keys.c.created_at < before).limit(limit)

        scopes = list(connection.execute(old).scalars())
        if not scopes:
            return 0
        return connection.execute(idempotency_keys.delete().where(idempotency_keys.c.scope.in_(scopes))).rowcount


def insert(connection: Connection, key: IdempotencyKey, made_id: str, at: datetime) -> None:
    """Record the key of a lease, or a series, that is made. KeyTaken, after which that has to be rolled back."""
    row = {"scope": key.scope, "fingerprint": key.fingerprint, "lease_id": made_id, "created_at": at}
    try:
        connection.execute(idempotency_keys.insert(), [row])
    except IntegrityError as error:
        raise KeyTaken("the same request was sent concurrently") from error


def forget(connection: Connection, made_id: str) -> None:
    """Forget the key of what was refused after all, so that it can be tried again."""
    connection.execute(idempotency_keys.delete().where(idempotency_keys.c.lease_id == made_id))


def forget_key_of_undone(connection: Connection, before: Lease | None, after: Lease) -> None:
    """Forget the key of a lease that was refused, and is undone by this write, so that it can be tried again."""
    if (
        before is not None
        and before.deleted_at is None
        and after.deleted_at is not None
        and after.end_reason is EndReason.REFUSED
    ):
        forget(connection, after.id)
