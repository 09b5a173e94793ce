# SPDX-License-Identifier: Apache-2.0
"""Reads when hosts were registered and slept, for what they drew without a lease."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import date, datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.window import Window
from blazar.model.energy.unbooked import HostTimes, Span
from blazar.model.power.states import PowerState
from blazar.model.resources.resource import HOST
from blazar.store.sql.clock import epoch_seconds
from blazar.store.sql.tables import host_power, leases, power_log, resources, usage_days

_L, _P, _R = power_log.c, host_power.c, resources.c
_OFF = str(PowerState.OFF)


def read_host_times(connection: Connection, period: Window, days: tuple[date, date]) -> HostTimes:
    """Return when hosts were registered in a period that is over, and slept; four statements.

    ``days`` are those of the site, the first and the last, of which the period has a part.
    """
    first, last = int(period.start.timestamp()), int(period.end.timestamp())
    query = sa.select(_R.id, _R.created_at, _R.retired_at).where(
        _R.kind == str(HOST), _R.created_at < period.end, _R.live.is_not(None) | (_R.retired_at > period.start)
    )
    registered = {
        id_: (max(first, _seconds(begin)), last if end is None else min(last, _seconds(end)))
        for id_, begin, end in connection.execute(query)
    }
    asleep: dict[int, list[Span]] = defaultdict(list)
    for id_, begin, end in _list_sleeps(connection, period, last):
        asleep[id_].append((begin, end))
    return HostTimes(registered, asleep, not _has_purged(connection, *days))


def _list_sleeps(connection: Connection, period: Window, last: int) -> Iterator[tuple[int, int, int]]:
    """Yield the sleeps that overlap a period, with the host of each; two statements."""
    woke_at = epoch_seconds(connection.dialect.name, _L.at)
    over = (
        sa.select(_L.resource_id, woke_at, _L.seconds)
        .join(resources)
        .where(
            *(_R.kind == str(HOST), _L.before == _OFF, _L.rehearsed.is_(False)),
            *(_L.at > period.start, woke_at - _L.seconds < last),
        )
    )
    for id_, at, seconds in connection.execute(over):
        yield id_, int(at) - int(seconds), int(at)
    lasting = (
        sa.select(_P.resource_id, _P.since)
        .join(resources)
        .where(_R.kind == str(HOST), _P.state == _OFF, _P.rehearsed.is_(False), _P.since < period.end)
    )
    for id_, since in connection.execute(lasting):
        yield id_, _seconds(since), last


def _has_purged(connection: Connection, first: date, last: date) -> bool:
    """Return whether some days have on record what leases had of hosts that are no longer known; one statement."""
    d = usage_days.c
    known = sa.select(leases.c.id)
    query = sa.select(d.lease_id).where(d.day >= first, d.day <= last, d.kind == str(HOST), d.lease_id.not_in(known))
    return connection.execute(query.limit(1)).first() is not None


def _seconds(instant: datetime) -> int:
    return int(instant.timestamp())
