# SPDX-License-Identifier: Apache-2.0
"""The store of the power of hosts as operators see and set it. What they change is told by the journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.context import current
from blazar.model.base.paging import Page, Position, unknown_marker
from blazar.model.journal.object_entries import tell_power
from blazar.model.power.hosts import PastMove, PowerChange, PoweredHost, PowerLogPage, PowerSums
from blazar.model.power.states import PowerReason, PowerState
from blazar.model.resources.resource import HOST, Resource, ResourceKind
from blazar.store.journal.rows import write_entry
from blazar.store.power.rows import power_of, read_live_rows, read_rows, write_values, write_wakes
from blazar.store.resources import inventory
from blazar.store.resources.catalog import CatalogCache
from blazar.store.sql.clock import epoch_seconds
from blazar.store.sql.rows import AnyRow
from blazar.store.sql.tables import power_log, resources
from blazar.store.sql.transactions import Transactions, atomic

_L = power_log.c


class PowerHostStore:
    """Reads and writes the power of registered hosts and pools, and reads what has become of it."""

    def __init__(self, transactions: Transactions, catalogs: CatalogCache) -> None:
        self._transactions = transactions
        self._catalogs = catalogs

    def all(self, kind: ResourceKind = HOST) -> tuple[PoweredHost, ...]:
        """Return the registered hosts, or pools, with their power; two statements while no resource changes."""
        with self._transactions.reading() as connection:
            return self._read_all(connection, kind)

    def one(self, external_id: str, kind: ResourceKind = HOST) -> PoweredHost:
        """Return a registered host with its power; NotFound."""
        with self._transactions.reading() as connection:
            host = inventory.load_resource(connection, kind, external_id)
            rows = read_live_rows(connection, resources.c.id == host.id)
        return _parse_host(host, rows.get(host.id))

    @atomic
    def change(
        self,
        connection: Connection,
        external_id: str,
        change: PowerChange,
        kind: ResourceKind = HOST,
        *,
        at: datetime,
    ) -> PoweredHost:
        """Change where a host is switched, and its policy. NotFound; WrongState if it could not be woken then.

        The same if the switch is that of another host.
        """
        before = _lock_host(connection, external_id, kind)
        before.check_change(change, () if change.address is None else self._read_all(connection, kind))
        power = before.power
        address = None if change.removes_address else change.address or power.address
        after = replace(before, power=replace(power, address=address, policy=change.policy or power.policy))
        if after != before:
            told = {"adapter": None, "target": None} if address is None else _address_values(after)
            write_values(connection, before.host.id, at, policy=str(after.power.policy), **told)
            write_entry(connection, tell_power(before, after, at=at, by=current().actor))
        return after

    @atomic
    def wake(
        self,
        connection: Connection,
        external_id: str,
        kind: ResourceKind = HOST,
        *,
        at: datetime,
        kept_until: datetime,
    ) -> PoweredHost:
        """Have a host on until an instant: one that sleeps or did not wake is woken, one that is on stays so. NotFound.

        One that is going off is kept; who switches it off turns back where that is still possible.
        """
        before = _lock_host(connection, external_id, kind)
        after = replace(before, power=replace(before.power, kept_until=kept_until))
        write_values(connection, before.host.id, at, kept_until=kept_until)
        if before.power.can_wake:
            (power,) = write_wakes(connection, [after.power], PowerReason.OPERATOR, at)
            after = replace(after, power=power)
        write_entry(connection, tell_power(before, after, at=at, by=current().actor))
        return after

    def _read_all(self, connection: Connection, kind: ResourceKind) -> tuple[PoweredHost, ...]:
        hosts = self._catalogs.read(connection, kind).resources
        rows = read_live_rows(connection)
        return tuple(_parse_host(host, rows.get(host.id)) for host in hosts)

    def log(self, external_id: str, page: Page, kind: ResourceKind = HOST) -> PowerLogPage:
        """Return a page of the moves of a host, in four statements at most; NotFound, InvalidInput for the marker."""
        with self._transactions.reading() as connection:
            host = inventory.load_resource(connection, kind, external_id)
            query = sa.select(power_log).where(_L.resource_id == host.id)
            order = _L.id.desc() if page.descending else _L.id
            rows = connection.execute(query.where(*_follow(page)).order_by(order).limit(page.limit + 1)).all()
            count = None
            if page.with_count:
                count = connection.execute(sa.select(sa.func.count()).select_from(query.subquery())).scalar_one()
        shown = tuple(map(_parse_move, rows[: page.limit]))
        following = Position(str(shown[-1].id), str(shown[-1].id)) if len(rows) > page.limit else None
        return PowerLogPage(shown, following, count)

    def sum_log(self, since: datetime) -> Mapping[tuple[str, bool], PowerSums]:
        """Return what has happened since an instant by kind, in truth (False) and in a dry run (True); one statement.

        A sleep that began before counts from that instant on, and one that lasts does not count.
        """
        dialect = self._transactions.engine.dialect.name
        return {
            (kind, bool(rehearsed)): PowerSums(timedelta(seconds=int(slept or 0)), *map(int, numbers))
            for kind, rehearsed, slept, *numbers in self._transactions.select(_select_sums(since, dialect))
        }


def _select_sums(since: datetime, dialect: str) -> sa.Select[Any]:
    done = str(PowerReason.DONE)
    passed = epoch_seconds(dialect, _L.at) - int(since.timestamp())
    slept = sa.case((_L.seconds > passed, passed), else_=_L.seconds)
    return (
        sa.select(
            resources.c.kind,
            _L.rehearsed,
            sa.func.sum(sa.case((_L.before == str(PowerState.OFF), slept), else_=0)),
            _number(_L.after == str(PowerState.GOING_OFF)),
            _number(sa.and_(_L.before == str(PowerState.WAKING), _L.reason == done)),
            _number(_L.reason == str(PowerReason.TIMED_OUT)),
            _number(_L.reason == str(PowerReason.MISSED)),
        )
        .join(resources, resources.c.id == _L.resource_id)
        .where(_L.at > since)
        .group_by(resources.c.kind, _L.rehearsed)
    )


def _number(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
    return sa.func.sum(sa.case((condition, 1), else_=0))


def _lock_host(connection: Connection, external_id: str, kind: ResourceKind) -> PoweredHost:
    host = inventory.load_resource(connection, kind, external_id)
    return _parse_host(host, read_rows(connection, (host.id,), locked=True).get(host.id))


def _parse_host(host: Resource, row: AnyRow | None) -> PoweredHost:
    rehearsed = None if row is None or not row.rehearsed else power_of(row, host, rehearsed=True)
    return PoweredHost(host, power_of(row, host), rehearsed)


def _address_values(after: PoweredHost) -> Mapping[str, str]:
    address = after.power.address
    return {} if address is None else {"adapter": str(address.adapter), "target": address.target}


def _follow(page: Page) -> Sequence[sa.ColumnElement[bool]]:
    if page.after is None:
        return []
    text = page.after.id if isinstance(page.after, Position) else page.after
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise unknown_marker()
    return [_L.id < int(text) if page.descending else _L.id > int(text)]


def _parse_move(row: AnyRow) -> PastMove:
    return PastMove(
        row.id,
        row.at,
        PowerState(row.before),
        timedelta(seconds=row.seconds),
        PowerState(row.after),
        PowerReason(row.reason),
        row.rehearsed,
    )
