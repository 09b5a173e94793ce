# SPDX-License-Identifier: Apache-2.0
"""The store of demand: refused requests by days, and leases that waited, by what the journal has of them."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import Window
from blazar.model.journal.entries import ObjectType
from blazar.model.leases.states import LeaseStatus
from blazar.model.reports.demand import DemandDay, DemandKey, DemandSums, LeaseMoment, RefusedDemand
from blazar.model.reports.periods import day_at
from blazar.store.sql.rows import chunks
from blazar.store.sql.tables import demand_days, demand_seen, journal, leases, reservations
from blazar.store.sql.transactions import Transactions

REMEMBERED = timedelta(hours=2)
"""How long it is known what was refused in an hour: it is written a minute later, or after an outage."""
MOST_REQUIREMENTS = 200
"""Different requirements of a project and a day that are told apart; what has another one counts as without."""

_D, _S = demand_days.c, demand_seen.c


@dataclass(frozen=True, slots=True)
class _DayKey:
    """The primary key of a day row, with the text of the requirement."""

    day: date
    project_id: str
    resource_type: str
    code: str
    requirement: str

    @property
    def requirement_key(self) -> str:
        return hashlib.sha256(self.requirement.encode()).hexdigest() if self.requirement else ""

    @property
    def columns(self) -> tuple[date, str, str, str, str]:
        return self.day, self.project_id, self.resource_type, self.code, self.requirement_key


class DemandStore:
    """Reads and writes what was asked for and not granted."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def add(self, counted: Sequence[tuple[RefusedDemand, int]], zone: ZoneInfo, *, now: datetime) -> None:
        """Add refused requests to their days: each demand with how often it was refused.

        What was refused before in the same hour, by any manager, is no other one. The number of statements is constant,
        for each few thousand.
        """

        def write_counts(connection: Connection) -> None:
            more = _list_sums(counted, _remember(connection, [refused for refused, _ in counted]), zone)
            _add_to_days(connection, more)
            connection.execute(demand_seen.delete().where(_S.hour < now - REMEMBERED))

        self._transactions.write_beside_others(write_counts)

    def read_days(self, first: date, last: date, project_id: str | None = None) -> tuple[DemandDay, ...]:
        """Return what was refused on some days, of one project or of all; one statement."""
        where = [_D.day >= first, _D.day <= last]
        if project_id is not None:
            where.append(_D.project_id == project_id)
        query = sa.select(demand_days).where(*where).order_by(_D.day)
        return tuple(_parse_day(row) for row in self._transactions.select(query))

    def read_waits(self, window: Window, project_id: str | None = None) -> tuple[LeaseMoment, ...]:
        """Return what the journal says of the leases that may have waited in a window, in order; two statements."""
        waited = [leases.c.queued_at < window.end]
        waited.append((leases.c.wait_until >= window.start) | (leases.c.status == str(LeaseStatus.WAITING)))
        if project_id is not None:
            # Of a lease that was transferred each project has its time.
            waited.append(
                leases.c.id.in_(sa.select(journal.c.object_id).where(journal.c.project_id == project_id).distinct())
            )
        types = (
            sa.select(reservations.c.lease_id, reservations.c.resource_type)
            .join(leases, leases.c.id == reservations.c.lease_id)
            .where(*waited, reservations.c.parent_id.is_(None))
            .order_by(reservations.c.lease_id, reservations.c.position)
        )
        j = journal.c
        entries = (
            sa.select(j.object_id, j.project_id, j.at, j.snapshot)
            .join(leases, sa.and_(j.object_type == str(ObjectType.LEASE), j.object_id == leases.c.id))
            .where(*waited, j.revision.is_not(None), j.at < window.end)
            .order_by(j.object_id, j.revision, j.seq)
        )
        with self._transactions.reading() as connection:
            of_lease: dict[str, dict[str, None]] = defaultdict(dict)
            for lease_id, resource_type in connection.execute(types):
                of_lease[lease_id][resource_type] = None
            rows = connection.execute(entries).all()
        return tuple(
            LeaseMoment(row.object_id, row.project_id or "", row.at, status, tuple(of_lease[row.object_id]))
            for row in rows
            if (status := (row.snapshot or {}).get("status")) is not None
        )


def _remember(connection: Connection, asked: Collection[RefusedDemand]) -> Mapping[str, int | None]:
    """Remember what was refused; return for how long the same was asked before in its hour, None: it was not."""
    known = {refused.fingerprint: refused for refused in asked if refused.is_known}
    before: dict[str, int | None] = dict.fromkeys(known)
    for part in chunks(sorted(known)):
        query = sa.select(_S.fingerprint, _S.seconds).where(_S.fingerprint.in_(part)).with_for_update()
        before.update({row.fingerprint: row.seconds for row in connection.execute(query)})
    new = [
        {"fingerprint": fingerprint, "hour": refused.hour, "seconds": refused.seconds}
        for fingerprint, refused in sorted(known.items())
        if before[fingerprint] is None
    ]
    if new:
        connection.execute(demand_seen.insert(), new)
    longer = [
        {"key": fingerprint, "longest": refused.seconds}
        for fingerprint, refused in sorted(known.items())
        if (seconds := before[fingerprint]) is not None and seconds < refused.seconds
    ]
    if longer:
        given = sa.bindparam("longest", type_=_S.seconds.type)
        connection.execute(
            demand_seen.update().where(_S.fingerprint == sa.bindparam("key")).values(seconds=given), longer
        )
    return before


def _list_sums(
    counted: Iterable[tuple[RefusedDemand, int]], before: Mapping[str, int | None], zone: ZoneInfo
) -> Mapping[_DayKey, DemandSums]:
    """Return what refused requests add to their days."""
    found: dict[_DayKey, DemandSums] = defaultdict(DemandSums)
    for refused, times in counted:
        day = day_at(refused.hour, zone)
        place = _DayKey(day, refused.project_id, refused.resource_type, refused.code, refused.requirement)
        sums = DemandSums(refused=times)
        if refused.is_known:
            known = before[refused.fingerprint]
            seconds = max(0, refused.seconds - (known or 0))
            amounts = refused.amounts.times(refused.units * seconds)
            distinct = int(known is None)
            sums = DemandSums(times, distinct, refused.units * seconds, dict(amounts.items))
        found[place] += sums
    return found


def _add_to_days(connection: Connection, more: Mapping[_DayKey, DemandSums]) -> None:
    """Add sums to the rows of their days; of requirements beyond the most of a project and a day to those without."""
    if not more:
        return
    projects, days = sorted({place.project_id for place in more}), {place.day for place in more}
    rows: dict[tuple[Any, ...], Any] = {}
    for part in chunks(projects):
        query = sa.select(demand_days).where(_D.day.between(min(days), max(days)), _D.project_id.in_(part))
        rows.update({tuple(row[:5]): row for row in connection.execute(query.with_for_update())})
    told_apart: dict[tuple[date, str], set[str]] = defaultdict(set)
    for day, project_id, *_, key in rows:
        told_apart[day, project_id].add(key)
    kept: dict[_DayKey, DemandSums] = defaultdict(DemandSums)
    for place, sums in more.items():
        keys = told_apart[place.day, place.project_id]
        if place.requirement_key not in keys and len(keys) >= MOST_REQUIREMENTS:
            place = replace(place, requirement="")
        keys.add(place.requirement_key)
        kept[place] += sums
    new: list[dict[str, object]] = []
    changed: list[dict[str, object]] = []
    for place, sums in sorted(kept.items(), key=lambda item: item[0].columns):
        known = rows.get(place.columns)
        if known is None:
            new.append(_row_of(place, sums))
        else:
            changed.append({f"new_{name}": v for name, v in _row_of(place, _parse_day(known).sums + sums).items()})
    if new:
        connection.execute(demand_days.insert(), new)
    if changed:
        connection.execute(_CHANGE, changed)


_KEY = ("day", "project_id", "resource_type", "code", "requirement_key")
_SUMS = ("refused", "refused_distinct", "refused_seconds", "refused_amounts")
_CHANGE = (
    demand_days.update()
    .where(*(demand_days.c[name] == sa.bindparam(f"new_{name}", type_=demand_days.c[name].type) for name in _KEY))
    .values({name: sa.bindparam(f"new_{name}", type_=demand_days.c[name].type) for name in _SUMS})
)


def _row_of(place: _DayKey, sums: DemandSums) -> dict[str, object]:
    return {
        **dict(zip(_KEY, place.columns, strict=True)),
        "requirement": place.requirement,
        "refused": sums.refused,
        "refused_distinct": sums.refused_distinct,
        "refused_seconds": sums.refused_seconds,
        "refused_amounts": dict(sums.refused_amounts),
    }


def _parse_day(row: Any) -> DemandDay:
    key = DemandKey(row.project_id, row.resource_type, row.code, row.requirement)
    sums = (row.refused, row.refused_distinct, row.refused_seconds, dict(sorted(row.refused_amounts.items())))
    return DemandDay(row.day, key, DemandSums(*sums))
