# SPDX-License-Identifier: Apache-2.0
"""The store of power states: what a plan is made of, the moves that follow, and whose turn the plan is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.calendar.power import HostOutlook, PowerLog
from blazar.model.base.values import dataclass, field
from blazar.model.power.classes import POWERED, HostRequest, PastWake
from blazar.model.power.learning import MOST_WAKES
from blazar.model.power.settings import DAY, MINUTE, USUAL_WAKE
from blazar.model.power.states import AsleepHosts, HostPower, PowerReason, PowerState, estimate_ready
from blazar.model.resources.resource import HOST, VOLUME, Resource
from blazar.store.calendar.generations import read_generations
from blazar.store.power.rows import (
    PowerMove,
    read_hosts,
    read_outlooks,
    read_resources,
    read_rows,
    write_moves,
    write_wakes,
)
from blazar.store.resources.catalog import CatalogCache
from blazar.store.sql.clock import epoch_seconds
from blazar.store.sql.rows import AnyRow, chunks
from blazar.store.sql.tables import allocations, host_power, leases, power_log, resources
from blazar.store.sql.transactions import Transactions, atomic
from blazar.store.work.claims import TURNS, TurnStore

HOSTS = "hosts"
"""The turn of the plan for hosts."""

KEPT_REHEARSED = timedelta(days=60)
"""How long it is kept what a dry run would have done: a plan looks a day back, who weighs it a month."""

KEPT = timedelta(days=400)
"""How long it is kept what has happened: a report of a year. A plan looks a day back, and what is remembered of wakes
that failed a month; the lead is learned of the last 200 wakes that are kept.
"""

MOST_DROPPED = 5000
"""Entries that are dropped at a time, once an hour: more than an hour adds."""

MOST_READ = 25 * MOST_WAKES
"""Wakes that are read to learn from: the last ones of as many classes as sites have."""

_UNKNOWN: Mapping[int, timedelta] = {}

_P = host_power.c

_GENERATIONS = sa.select(resources.c.id, resources.c.generation).where(
    resources.c.kind.in_(POWERED), resources.c.live.is_not(None)
)


@dataclass(frozen=True, slots=True)
class PowerView:
    """What a plan is made of, as of one instant, and the generations of hosts then."""

    hosts: tuple[HostPower, ...]
    resources: Mapping[int, Resource]
    outlooks: Mapping[int, HostOutlook]
    log: PowerLog
    generations: Mapping[int, int] = field(default_factory=dict)


class PowerStore(TurnStore):
    """Reads and writes the power of hosts. ``rehearsed`` tells the states of a dry run from real ones."""

    turn = HOSTS

    def __init__(self, transactions: Transactions, catalogs: CatalogCache) -> None:
        super().__init__(transactions)
        self._catalogs = catalogs

    def read_view(self, now: datetime, class_by: Sequence[str] = (), *, rehearsed: bool) -> PowerView:
        """Return the registered hosts with their power, their use, and what has changed; eight statements at most.

        Hosts with the same values of the properties ``class_by`` are a class.
        """
        with self._transactions.reading() as connection:
            found = read_resources(connection, self._catalogs)
            # Before their use: who books in between makes the plan stale, and is not overlooked.
            generations = {} if rehearsed else {row.id: row.generation for row in connection.execute(_GENERATIONS)}
            return PowerView(
                read_hosts(connection, found, now, class_by, rehearsed=rehearsed),
                {host.id: host for host in found},
                read_outlooks(connection, now),
                _read_log(connection, now, rehearsed=rehearsed),
                generations,
            )

    def read_requests(self, since: datetime, lead: timedelta) -> tuple[HostRequest, ...]:
        """Return the hosts of leases since an instant that began before the lead had passed; one statement."""
        a, seconds = allocations.c, partial(epoch_seconds, self._transactions.engine.dialect.name)
        ahead = seconds(a.starts_at) - seconds(leases.c.created_at)
        query = (
            sa.select(leases.c.id, a.resource_id, leases.c.created_at, sa.func.min(ahead))
            .join(allocations, a.lease_id == leases.c.id)
            .where(
                leases.c.created_at > since,
                a.kind == str(HOST),
                ahead < int(lead.total_seconds()),
            )
            .group_by(leases.c.id, a.resource_id, leases.c.created_at)
        )
        return tuple(
            HostRequest(lease_id, id_, at, timedelta(seconds=int(seconds_ahead)))
            for lease_id, id_, at, seconds_ahead in self._transactions.select(query)
        )

    def read_hosts_power(self, now: datetime, ids: Collection[int] | None = None) -> Mapping[int, HostPower]:
        """Return the power of these registered hosts, or of all, by calendar id, as it is in truth; four statements."""
        with self._transactions.reading() as connection:
            hosts = read_hosts(connection, read_resources(connection, self._catalogs), now, rehearsed=False)
        return {host.resource_id: host for host in hosts if ids is None or host.resource_id in ids}

    def read_asleep(self, now: datetime, wakes: Mapping[int, timedelta] = _UNKNOWN) -> AsleepHosts:
        """Return the hosts that are not on, with when each could be; one statement.

        ``wakes`` says by calendar id how long a wake takes, where that is known.
        """
        h = host_power.c
        query = (
            sa.select(h.resource_id, resources.c.kind, h.state, h.since)
            .join(resources)
            .where(h.state != str(PowerState.ON), h.rehearsed.is_(False))
        )
        found = self._transactions.select(query)
        ready_at = {
            id_: estimate_ready(PowerState(state), since, now, wakes.get(id_, USUAL_WAKE))
            for id_, _, state, since in found
        }
        return AsleepHosts(ready_at, pools=frozenset(id_ for id_, kind, *_ in found if kind == VOLUME))

    @atomic
    def wake_sleepers(
        self,
        connection: Connection,
        ids: Collection[int],
        reason: PowerReason,
        *,
        at: datetime,
        ramp: int | None = None,
    ) -> tuple[HostPower, ...]:
        """Have those of some hosts woken that sleep, with a ramp as many as may change in this minute; return them.

        The others change by themselves. Five statements at most.
        """
        asleep = [
            HostPower(id_, PowerState.OFF, row.since, kept_until=row.kept_until)
            for id_, row in read_rows(connection, ids, locked=True).items()
            if row.state == str(PowerState.OFF) and not row.rehearsed
        ]
        if ramp is not None and asleep:
            asleep = asleep[: max(0, ramp - _count_changes(connection, at))]
        return write_wakes(connection, asleep, reason, at)

    @atomic
    def move(self, connection: Connection, token: str, moves: Sequence[PowerMove], *, rehearsed: bool) -> None:
        """Write moves under the claim of the turn, each with its entry of the log; ClaimLost."""
        TURNS.write_claimed(connection, HOSTS, token)
        write_moves(connection, moves, rehearsed=rehearsed)

    @atomic
    def begin_moves(
        self,
        connection: Connection,
        token: str,
        moves: Sequence[PowerMove],
        generations: Mapping[int, int],
        *,
        due_at: datetime,
    ) -> Sequence[PowerMove]:
        """Write the first move of hosts that are to be switched; return those written. ClaimLost.

        Left out are hosts whose state is another than was read, and of those that are to go off the ones that were
        booked meanwhile, or that an operator has woken. A booking of the next moment is seen by the looks that follow.
        """
        TURNS.write_claimed(connection, HOSTS, token)
        ids = [move.before.resource_id for move in moves]
        rows, now = read_rows(connection, ids, locked=True), read_generations(connection, ids)
        states = {id_: PowerState.ON if row.rehearsed else PowerState(row.state) for id_, row in rows.items()}
        good = [
            move
            for move in moves
            if states.get(move.before.resource_id, PowerState.ON) is move.before.state
            and (
                move.after.state is not PowerState.GOING_OFF
                or now.get(move.before.resource_id) == generations.get(move.before.resource_id)
            )
            and not _is_woken(rows.get(move.before.resource_id), move)
        ]
        write_moves(connection, good, rehearsed=False, due_at=due_at)
        return good

    def read_wakes(self) -> tuple[PastWake, ...]:
        """Return the last wakes that succeeded, the last one at the end, enough for many classes; one statement."""
        log = power_log.c
        woke = (log.before == str(PowerState.WAKING), log.reason == str(PowerReason.DONE), log.rehearsed.is_(False))
        found = sa.select(log.resource_id, log.seconds).where(*woke)
        rows = self._transactions.select(found.order_by(log.at.desc(), log.id.desc()).limit(MOST_READ))
        return tuple(PastWake(id_, timedelta(seconds=seconds)) for id_, seconds in reversed(rows))

    def has_sleepers(self) -> bool:
        """Return whether a host is in another state than on, in truth; one statement."""
        query = sa.select(_P.resource_id).where(_P.state != str(PowerState.ON), _P.rehearsed.is_(False)).limit(1)
        return self._transactions.scalar(query) is not None

    @atomic
    def drop_old(self, connection: Connection, *, now: datetime) -> int:
        """Drop the oldest entries of the log that are not kept any longer, some at a time; return how many."""
        log = power_log.c
        rehearsed = sa.and_(log.rehearsed.is_(True), log.at < now - KEPT_REHEARSED)
        old = sa.select(log.id).where(sa.or_(rehearsed, log.at < now - KEPT)).order_by(log.at).limit(MOST_DROPPED)
        ids = list(connection.execute(old).scalars())
        for part in chunks(ids):
            connection.execute(power_log.delete().where(log.id.in_(part)))
        return len(ids)


def _count_changes(connection: Connection, now: datetime) -> int:
    """Return how many hosts were switched within the last minute."""
    log = power_log.c
    switched = log.after.in_([str(PowerState.GOING_OFF), str(PowerState.WAKING)])
    query = sa.select(sa.func.count()).where(log.at > now - MINUTE, log.rehearsed.is_(False), switched)
    return connection.execute(query).scalar_one()


def _is_woken(row: AnyRow | None, move: PowerMove) -> bool:
    """Tell whether an operator has asked for a host that is to go off since it was read."""
    kept_until = None if row is None else row.kept_until
    return move.after.state is PowerState.GOING_OFF and kept_until is not None and kept_until > move.after.since


def _read_log(connection: Connection, now: datetime, *, rehearsed: bool) -> PowerLog:
    log = power_log.c
    switched = log.after.in_([str(PowerState.GOING_OFF), str(PowerState.WAKING)])
    recent = (log.at > now - DAY, log.rehearsed.is_(rehearsed), switched)
    query = sa.select(log.resource_id, log.at, log.after).where(*recent)
    cycles: dict[int, int] = {}
    changes = 0
    for id_, at, after in connection.execute(query):
        cycles[id_] = cycles.get(id_, 0) + (after == str(PowerState.GOING_OFF))
        changes += at > now - MINUTE
    return PowerLog(cycles, changes)
