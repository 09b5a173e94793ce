# SPDX-License-Identifier: Apache-2.0
"""The store of hosts that are switched: whose turn each is, and what has become of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.calendar.power import HostOutlook
from blazar.model.base.values import dataclass
from blazar.model.power.states import HostPower, PowerReason
from blazar.model.resources.resource import Resource
from blazar.store.power.rows import PowerMove, power_of, read_outlooks, read_resources, read_rows, state_row, write_log
from blazar.store.resources.catalog import CatalogCache
from blazar.store.sql.tables import host_power, power_log
from blazar.store.sql.transactions import Transactions, atomic
from blazar.store.work.claims import HOST_POWER

_P = host_power.c
_NEXT_DUE = HOST_POWER.select_next_due()


@dataclass(frozen=True, slots=True)
class DueHost:
    """A host with which somebody goes on, or whose claim has expired."""

    resource_id: int
    due_at: datetime


@dataclass(frozen=True, slots=True)
class SwitchView:
    """A host that is switched, its power, and its use."""

    resource: Resource
    host: HostPower
    outlook: HostOutlook


class SwitchStore:
    """Reads and writes the power of hosts that are on their way, each under a claim of its own."""

    def __init__(self, transactions: Transactions, catalogs: CatalogCache) -> None:
        self._transactions = transactions
        self._catalogs = catalogs

    def due(self, now: datetime, limit: int) -> tuple[DueHost, ...]:
        """Return hosts that are due, the longest waiting first; one statement."""
        query = sa.select(_P.resource_id, _P.due_at).where(_P.due_at <= now).order_by(_P.due_at, _P.resource_id)
        return tuple(DueHost(id_, due_at) for id_, due_at in self._transactions.select(query.limit(limit)))

    def next_due(self) -> datetime | None:
        """Return when there is something to do next."""
        found: datetime | None = self._transactions.scalar(_NEXT_DUE)
        return found

    @atomic
    def claim(self, connection: Connection, due: DueHost, token: str, *, until: datetime) -> bool:
        """Claim a host that is due; return whether no other manager was faster."""
        return HOST_POWER.claim(connection, due.resource_id, token, _P.due_at == due.due_at, until=until)

    def read_view(self, resource_id: int, now: datetime) -> SwitchView | None:
        """Return a host with its power and its use; None if it is registered no more."""
        with self._transactions.reading() as connection:
            found = read_resources(connection, self._catalogs)
            resource = next((one for one in found if one.id == resource_id), None)
            if resource is None:
                return None
            host = power_of(read_rows(connection, (resource_id,)).get(resource_id), resource)
            outlooks = read_outlooks(connection, now, resource_id)
        return SwitchView(resource, host, outlooks.get(resource_id, HostOutlook()))

    @atomic
    def note_attempt(self, connection: Connection, token: str, host: HostPower) -> None:
        """Write under a claim what is about to be done to a host; ClaimLost."""
        noted = {"attempts": host.attempts, "tried_at": host.tried_at}
        HOST_POWER.write_claimed(connection, host.resource_id, token, **noted)

    @atomic
    def release(
        self, connection: Connection, token: str, states: Sequence[HostPower], *, due_at: datetime | None
    ) -> None:
        """End the claim on a host, with the states that it has passed, the one that was read first; ClaimLost."""
        before, after = states[0], states[-1]
        values = state_row(after, False, due_at)
        if after.kept_until == before.kept_until:
            # An operator may have said something else meanwhile.
            values.pop("kept_until")
        HOST_POWER.release(connection, before.resource_id, token, **{**values, "due_at": due_at})
        moves = [PowerMove(one, other) for one, other in pairwise(states) if one.state is not other.state]
        write_log(connection, moves, rehearsed=False)

    @atomic
    def postpone(self, connection: Connection, due: DueHost, token: str, *, due_at: datetime | None) -> None:
        """End the claim on a host of which nothing has changed; ClaimLost."""
        HOST_POWER.release(connection, due.resource_id, token, due_at=due_at)

    def count_failed_wakes(self, resource_id: int, since: datetime) -> int:
        """Return how often a host did not wake since an instant; one statement."""
        log = power_log.c
        failed = (log.resource_id == resource_id, log.at > since, log.reason == str(PowerReason.TIMED_OUT))
        query = sa.select(sa.func.count()).select_from(power_log).where(*failed, log.rehearsed.is_(False))
        return int(self._transactions.scalar(query) or 0)
