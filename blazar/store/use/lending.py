# SPDX-License-Identifier: Apache-2.0
"""The store of lending: which hosts of leases are lent to preemptible servers, and were."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.window import Window
from blazar.model.leases.states import LeaseStatus, ReservationStatus
from blazar.model.use.lending import LentHost
from blazar.store.sql.clock import epoch_seconds
from blazar.store.sql.rows import chunks
from blazar.store.sql.tables import leases, lent_hosts, reservations
from blazar.store.sql.transactions import Transactions, atomic
from blazar.store.use.preemption import TURN
from blazar.store.work.claims import TURNS

_L = lent_hosts.c


class LendingStore:
    """Reads and writes which hosts are lent; under the claim of the turn of preemption."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def read(self) -> tuple[LentHost, ...]:
        """Return the hosts that are lent, or being taken back; one statement."""
        query = sa.select(_L.reservation_id, _L.resource_id, _L.since, _L.ends_at).where(_L.ended_at.is_(None))
        return tuple(LentHost(*row) for row in self._transactions.select(query))

    def list_lenders(self, reservation_ids: Collection[str]) -> frozenset[str]:
        """Return the leases in use that want hosts lent, and those of these reservations; one statement."""
        r = reservations.c
        # Index: leases (status, queued_at). Parameters are small, and few leases are in use at a time.
        asked = sa.cast(r.parameters, sa.Text).like('%"lend_beyond"%')
        in_use = sa.and_(
            leases.c.status.in_([str(LeaseStatus.ACTIVE), str(LeaseStatus.UPDATING)]),
            leases.c.deleted_at.is_(None),
            r.status == str(ReservationStatus.ACTIVE),
        )
        query = sa.select(r.lease_id).join(leases, leases.c.id == r.lease_id)
        query = query.where(in_use, sa.or_(asked, r.id.in_(sorted(reservation_ids))))
        return frozenset(id_ for (id_,) in self._transactions.select(query))

    def sum_seconds(self, window: Window, *, now: datetime, project_id: str | None = None) -> int:
        """Return for how many seconds hosts were lent in a window, by one project or by all; one statement.

        Those of leases that were purged are of no project any more.
        """
        seconds = partial(epoch_seconds, self._transactions.engine.dialect.name)
        kind = _L.since.type
        first, last = (sa.literal(instant, kind) for instant in (window.start, min(window.end, now)))
        ended = sa.func.coalesce(_L.ended_at, last)
        begin = sa.case((_L.since > first, _L.since), else_=first)
        end = sa.case((ended < last, ended), else_=last)
        query = sa.select(sa.func.sum(seconds(end) - seconds(begin))).where(_L.since < last, ended > first)
        if project_id is not None:
            query = query.join(reservations, reservations.c.id == _L.reservation_id)
            query = query.join(leases, leases.c.id == reservations.c.lease_id).where(leases.c.project_id == project_id)
        return int(self._transactions.scalar(query) or 0)

    @atomic
    def write(self, connection: Connection, token: str, lent: Sequence[LentHost]) -> None:
        """Write that hosts are lent from now on, or are taken back; ClaimLost."""
        if not lent:
            return
        TURNS.write_claimed(connection, TURN, token)
        self._close(connection, lent, ended_at=None, replaced=True)
        connection.execute(
            lent_hosts.insert(),
            [
                {
                    "reservation_id": host.reservation_id,
                    "resource_id": host.resource_id,
                    "since": host.since,
                    "ends_at": host.ends_at,
                }
                for host in lent
            ],
        )

    @atomic
    def end(self, connection: Connection, token: str, lent: Sequence[LentHost], *, at: datetime) -> None:
        """Write that hosts are lent no longer; ClaimLost. No statement without any."""
        if lent:
            TURNS.write_claimed(connection, TURN, token)
            self._close(connection, lent, ended_at=at)

    def _close(
        self, connection: Connection, lent: Sequence[LentHost], *, ended_at: datetime | None, replaced: bool = False
    ) -> None:
        pairs = [(host.reservation_id, host.resource_id) for host in lent]
        for part in chunks(pairs):
            same = sa.or_(*(sa.and_(_L.reservation_id == id_, _L.resource_id == number) for id_, number in part))
            where = sa.and_(_L.ended_at.is_(None), same)
            change = lent_hosts.delete() if replaced else lent_hosts.update().values(ended_at=ended_at)
            connection.execute(change.where(where))
