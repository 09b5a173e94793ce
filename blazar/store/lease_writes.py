# SPDX-License-Identifier: Apache-2.0
"""Writes of a lease with its reservations and events, in the transaction of the caller."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.errors import StaleLease
from blazar.model.lease import Lease
from blazar.model.lease_json import cloud_ids_json
from blazar.store import state_log
from blazar.store.rows import event_row, lease_row, reservation_row
from blazar.store.tables import events, leases, reservations

_INSERT_LEASE, _INSERT_RESERVATION, _INSERT_EVENT = leases.insert(), reservations.insert(), events.insert()


def insert(connection: Connection, lease: Lease, *, besides: Collection[str] = ()) -> None:
    """Insert a lease with its reservations and events, in three statements.

    ``besides``: these reservations are there already.
    """
    connection.execute(_INSERT_LEASE, [lease_row(lease)])
    state_log.note(connection, None, lease)
    new = ((position, r) for position, r in enumerate(lease.reservations) if r.id not in besides)
    kept = [reservation_row(lease.id, position, r) for position, r in new]
    if kept:
        connection.execute(_INSERT_RESERVATION, kept)
    due = [event_row(lease.id, position, event) for position, event in enumerate(lease.events)]
    if due:
        connection.execute(_INSERT_EVENT, due)


def insert_many(connection: Connection, new: Sequence[Lease]) -> None:
    """Insert leases with their reservations and events, in three statements for all of them."""
    connection.execute(_INSERT_LEASE, [lease_row(lease) for lease in new])
    for lease in new:
        state_log.note(connection, None, lease)
    kept = [reservation_row(lease.id, position, r) for lease in new for position, r in enumerate(lease.reservations)]
    if kept:
        connection.execute(_INSERT_RESERVATION, kept)
    due = [event_row(lease.id, position, event) for lease in new for position, event in enumerate(lease.events)]
    if due:
        connection.execute(_INSERT_EVENT, due)


def save_cloud_ids(connection: Connection, prepared: Sequence[Lease]) -> None:
    """Write the cloud ids of the reservations of leases that are being created, in one statement for all of them."""
    rows = [
        {"key": each.id, "new_artefacts": cloud_ids_json(each)}
        for lease in prepared
        for each in lease.reservations
        if each.cloud_ids.values
    ]
    if rows:
        connection.execute(_change_of(reservations, ("artefacts",)), rows)


def save(connection: Connection, before: Lease, after: Lease, revision: int) -> None:
    """Write what differs, if the lease is still at the revision of ``before``; else StaleLease."""
    known = lease_row(before)
    changed = {name: value for name, value in lease_row(after).items() if value != known[name]}
    values = {f"new_{name}": value for name, value in {**changed, "revision": revision}.items()}
    written = connection.execute(
        _change_of_lease(tuple(sorted({*changed, "revision"}))),
        {"key": before.id, "known": before.revision, **values},
    )
    if not written.rowcount:
        raise StaleLease(f"lease {before.id} has changed since revision {before.revision}")
    state_log.note(connection, before, after)
    _save_reservations(connection, before, after)
    _save_events(connection, before, after)


def _save_reservations(connection: Connection, before: Lease, after: Lease) -> None:
    known = {r.id: r for r in before.reservations}
    changed = [
        reservation_row(after.id, position, r) for position, r in enumerate(after.reservations) if r != known.get(r.id)
    ]
    _update(connection, reservations, changed)


def _save_events(connection: Connection, before: Lease, after: Lease) -> None:
    known = {e.id: e for e in before.events}
    rows = [(e, event_row(after.id, position, e)) for position, e in enumerate(after.events) if e != known.get(e.id)]
    _update(connection, events, [row for e, row in rows if e.id in known])
    new = [row for e, row in rows if e.id not in known]
    if new:
        connection.execute(_INSERT_EVENT, new)


def _update(connection: Connection, table: sa.Table, rows: list[dict[str, object]]) -> None:
    if not rows:
        return
    names = tuple(name for name in rows[0] if name not in ("id", "lease_id"))
    values = [{"key": row["id"], **{f"new_{name}": row[name] for name in names}} for row in rows]
    connection.execute(_change_of(table, names), values[0] if len(values) == 1 else values)


@lru_cache(maxsize=128)
def _change_of_lease(names: tuple[str, ...]) -> sa.Update:
    return _change_of(leases, names).where(leases.c.revision == sa.bindparam("known"))


@lru_cache(maxsize=128)
def _change_of(table: sa.Table, names: tuple[str, ...]) -> sa.Update:
    """Return the update of these columns of a row; cached, as building it takes longer than sending it."""
    values = {name: sa.bindparam(f"new_{name}", type_=table.c[name].type) for name in names}
    return table.update().where(table.c.id == sa.bindparam("key")).values(values)
