# SPDX-License-Identifier: Apache-2.0
"""The store of preemptions: which servers were told when they go, and whose turn it is to tell others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.journal.entries import JournalEntry
from blazar.model.leases.states import LeaseStatus
from blazar.model.use.preemption import PreemptedServer, Preemption
from blazar.store.journal.rows import write_entries
from blazar.store.sql.rows import AnyRow, chunks
from blazar.store.sql.tables import leases, preemptions
from blazar.store.sql.transactions import atomic
from blazar.store.work.claims import TURNS, TurnStore

TURN = "preemption"


class PreemptionStore(TurnStore):
    """Keeps what owners of preemptible servers were told, until the servers are gone."""

    turn = TURN

    def list_starts(self, after: datetime, until: datetime) -> tuple[str, ...]:
        """Return the ids of the leases that are to start after an instant and not after another; one statement."""
        # Index: leases (deleted_at, starts_at).
        c = leases.c
        query = sa.select(c.id).where(
            c.deleted_at.is_(None), c.starts_at > after, c.starts_at <= until, c.status == str(LeaseStatus.PENDING)
        )
        return tuple(id_ for (id_,) in self._transactions.select(query))

    def read(self) -> Mapping[str, Preemption]:
        """Return what was told of servers that are not known to be gone, by their ids; one statement."""
        return {row.server_id: _parse(row) for row in self._transactions.select(sa.select(preemptions))}

    @atomic
    def write(
        self,
        connection: Connection,
        token: str,
        told: Sequence[Preemption],
        over: Collection[str],
        entries: Sequence[JournalEntry],
    ) -> None:
        """Write what was told of servers, forget those that are ``over``, and tell their owners; ClaimLost.

        All under the claim of the turn: nobody is told the same twice.
        """
        TURNS.write_claimed(connection, TURN, token)
        for part in chunks(sorted({*over, *(preemption.server.id for preemption in told)})):
            connection.execute(preemptions.delete().where(preemptions.c.server_id.in_(part)))
        if told:
            connection.execute(preemptions.insert(), [_make_row(preemption) for preemption in told])
        write_entries(connection, entries)


def _make_row(preemption: Preemption) -> Mapping[str, object]:
    server = preemption.server
    return {
        "server_id": server.id,
        "name": server.name,
        "project_id": server.project_id,
        "user_id": server.user_id,
        "resource_id": server.resource_id,
        "saved": server.saved,
        "reservation_id": preemption.reservation_id,
        "resource_type": preemption.resource_type,
        "ends_at": preemption.ends_at,
    }


def _parse(row: AnyRow) -> Preemption:
    server = PreemptedServer(row.server_id, row.name, row.project_id, row.user_id, row.resource_id, row.saved)
    return Preemption(server, row.reservation_id, row.resource_type, row.ends_at)
