# SPDX-License-Identifier: Apache-2.0
"""The power and the use of hosts as rows: conversion to values and back, and the log of what has changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.calendar.power import HostOutlook
from blazar.model.base.values import dataclass, replace
from blazar.model.power.addresses import PowerAdapter, PowerAddress
from blazar.model.power.classes import POWERED, find_group
from blazar.model.power.hosts import PoweredHost, keep_on
from blazar.model.power.settings import PowerPolicy
from blazar.model.power.states import HostPower, PowerReason, PowerState
from blazar.model.resources.resource import Resource
from blazar.store.resources.catalog import CatalogCache
from blazar.store.sql.rows import AnyRow, chunks
from blazar.store.sql.tables import allocations, host_power, maintenance_resources, power_log, resources

_P = host_power.c

_ROWS = sa.select(
    _P.resource_id,
    _P.policy,
    _P.state,
    _P.reason,
    _P.since,
    _P.rehearsed,
    _P.adapter,
    _P.target,
    _P.kept_until,
    _P.attempts,
    _P.tried_at,
)

_KNOWN = sa.select(_P.resource_id).where(_P.resource_id.in_(sa.bindparam("ids", expanding=True)))


RECENT = timedelta(hours=1)
"""How long it is of interest when a host was used last."""


@dataclass(frozen=True, slots=True)
class PowerMove:
    """A move of a host, from what was read."""

    before: HostPower
    after: HostPower


def read_resources(connection: Connection, catalogs: CatalogCache) -> list[Resource]:
    """Return all registered resources that may sleep; a statement for each of their kinds while none changes."""
    return [resource for kind in POWERED for resource in catalogs.read(connection, kind).resources]


def read_hosts(
    connection: Connection,
    resources: Iterable[Resource],
    now: datetime,
    class_by: Sequence[str] = (),
    *,
    rehearsed: bool,
) -> tuple[HostPower, ...]:
    """Return the power of registered hosts; two statements.

    In a dry run all hosts are taken to have a switch, and those are left out that in truth are not on.
    """
    m = maintenance_resources.c
    rows = read_live_rows(connection)
    closing = sa.select(m.resource_id).where(m.kind.in_(POWERED), m.starts_at <= now, m.blocks_until > now)
    closed = set(connection.execute(closing).scalars())
    found = []
    for host in resources:
        row = rows.get(host.id)
        if rehearsed and row is not None and not row.rehearsed and row.state != str(PowerState.ON):
            continue
        power = power_of(row, host, rehearsed=rehearsed)
        usable = host.reservable and host.id not in closed
        found.append(PoweredHost(host, replace(power, usable=usable, group=find_group(host, class_by))))
    return tuple(one.power for one in (found if rehearsed else keep_on(found)))


def read_live_rows(connection: Connection, *where: sa.ColumnElement[bool]) -> Mapping[int, AnyRow]:
    """Return what is stored of the power of registered hosts, by calendar id; one statement."""
    query = _ROWS.join(resources).where(resources.c.live.is_not(None), *where)
    return {row.resource_id: row for row in connection.execute(query)}


def power_of(row: AnyRow | None, host: Resource, *, rehearsed: bool = False) -> HostPower:
    """Return the power of a host, of which a row may be stored."""
    address = None if row is None or row.adapter is None else PowerAddress(PowerAdapter(row.adapter), row.target)
    sleeps = not host.evacuable and (rehearsed or address is not None)
    if row is None:
        return HostPower(host.id, PowerState.ON, host.created_at, sleeps=sleeps)
    found = HostPower(
        host.id,
        PowerState.ON,
        host.created_at,
        sleeps=sleeps and row.policy == str(PowerPolicy.AUTO),
        kept_until=row.kept_until,
        address=address,
        policy=PowerPolicy(row.policy),
        attempts=row.attempts,
        tried_at=row.tried_at,
    )
    if row.rehearsed is not rehearsed:
        return found
    return replace(found, state=PowerState(row.state), since=row.since, reason=PowerReason(row.reason))


def write_moves(
    connection: Connection, moves: Sequence[PowerMove], *, rehearsed: bool, due_at: datetime | None = None
) -> None:
    """Write moves of hosts, each with its entry of the log; at ``due_at`` somebody goes on with them."""
    if not moves:
        return
    rows = {move.before.resource_id: state_row(move.after, rehearsed, due_at) for move in moves}
    known = set(connection.execute(_KNOWN, {"ids": list(rows)}).scalars())
    if new := [{"resource_id": id_, **row} for id_, row in rows.items() if id_ not in known]:
        connection.execute(host_power.insert(), new)
    if old := [{"id_": id_, **row} for id_, row in rows.items() if id_ in known]:
        connection.execute(host_power.update().where(_P.resource_id == sa.bindparam("id_")), old)
    write_log(connection, moves, rehearsed=rehearsed)


def write_wakes(
    connection: Connection, asleep: Iterable[HostPower], reason: PowerReason, at: datetime
) -> tuple[HostPower, ...]:
    """Have hosts woken that sleep; return them as they are then. Somebody goes on with them at once."""
    moves = [PowerMove(host, host.move(PowerState.WAKING, reason, at)) for host in asleep]
    write_moves(connection, moves, rehearsed=False, due_at=at)
    return tuple(move.after for move in moves)


def write_log(connection: Connection, moves: Sequence[PowerMove], *, rehearsed: bool) -> None:
    """Write the entries of the log for moves."""
    if moves:
        connection.execute(power_log.insert(), [_log_row(move, rehearsed) for move in moves])


def state_row(after: HostPower, rehearsed: bool, due_at: datetime | None) -> dict[str, object]:
    """Return what is stored of the state of a host."""
    row = {"state": str(after.state), "reason": str(after.reason), "since": after.since, "rehearsed": rehearsed}
    if rehearsed:
        # What a dry run would leave alone says nothing of the host.
        return row
    more = {"attempts": after.attempts, "tried_at": after.tried_at}
    return {**row, **more, "kept_until": after.kept_until, "due_at": due_at}


def write_values(connection: Connection, resource_id: int, at: datetime, **values: object) -> None:
    """Write what operators say of the power of a host, of which nothing may be stored yet."""
    mine = host_power.update().where(_P.resource_id == resource_id).values(**values)
    if not connection.execute(mine).rowcount:
        connection.execute(host_power.insert().values(resource_id=resource_id, since=at, **values))


def read_rows(connection: Connection, ids: Collection[int], *, locked: bool = False) -> Mapping[int, AnyRow]:
    """Return what is stored of the power of some hosts, by calendar id, and lock it if it is to be changed."""
    found: dict[int, AnyRow] = {}
    for part in chunks(sorted(ids)):
        query = _ROWS.where(_P.resource_id.in_(part)).order_by(_P.resource_id)
        rows = connection.execute(query.with_for_update() if locked else query)
        found |= {row.resource_id: row for row in rows}
    return found


def _log_row(move: PowerMove, rehearsed: bool) -> dict[str, object]:
    lasted = move.after.since - move.before.since
    return {
        "resource_id": move.before.resource_id,
        "at": move.after.since,
        "before": str(move.before.state),
        "seconds": int(lasted.total_seconds()),
        "after": str(move.after.state),
        "reason": str(move.after.reason),
        "rehearsed": rehearsed,
    }


def read_outlooks(connection: Connection, now: datetime, *ids: int) -> Mapping[int, HostOutlook]:
    """Return the use of hosts, of all or of these, that are used, were used a short time ago, or are promised.

    Two statements.
    """
    a = allocations.c
    begun = sa.and_(a.starts_at <= now, sa.or_(a.released_at.is_(None), a.blocks_until > now))
    query = (
        sa.select(
            a.resource_id,
            sa.func.max(sa.case((begun, 1), else_=0)),
            sa.func.max(sa.case((a.blocks_until <= now, a.blocks_until)), type_=a.blocks_until.type),
            sa.func.min(sa.case((a.starts_at > now, a.starts_at)), type_=a.starts_at.type),
        )
        .where(a.kind.in_(POWERED), *([a.resource_id.in_(ids)] if ids else []))
        .group_by(a.resource_id)
    )
    live = connection.execute(query.where(a.released_at.is_(None))).all()
    past = connection.execute(query.where(a.released_at.is_not(None), a.blocks_until > now - RECENT)).all()
    found: dict[int, HostOutlook] = {}
    for id_, used, ended, start in [*live, *past]:
        known = found.get(id_, HostOutlook())
        idle_since = max((at for at in (known.idle_since, ended) if at is not None), default=None)
        found[id_] = HostOutlook(known.in_use or bool(used), idle_since, known.next_start or start)
    return found
