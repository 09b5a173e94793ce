# SPDX-License-Identifier: Apache-2.0
"""Leases with their reservations and events."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import lru_cache

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.errors import NotFound, StaleLease
from blazar.model.lease import REQUEST_EVENTS, Lease, LeaseRevision, LeaseStatus, Reservation, ReservationOwner
from blazar.store.rows import (
    EVENT_COLUMNS,
    LEASE_COLUMNS,
    RESERVATION_COLUMNS,
    assembled,
    chunks,
    event_row,
    lease_row,
    reservation_of,
    reservation_row,
)
from blazar.store.tables import allocations, events, leases, reservations

_INSERT_LEASE, _INSERT_RESERVATION, _INSERT_EVENT = leases.insert(), reservations.insert(), events.insert()
_THIS = sa.bindparam("lease_id", type_=leases.c.id.type)
_ONE = sa.select(*LEASE_COLUMNS).where(leases.c.id == _THIS)
_ONE_SHOWN = _ONE.where(leases.c.deleted_at.is_(None))
_RESERVATIONS_OF_ONE = (
    sa.select(*RESERVATION_COLUMNS).where(reservations.c.lease_id == _THIS).order_by(reservations.c.position)
)
_EVENTS_OF_ONE = sa.select(*EVENT_COLUMNS).where(events.c.lease_id == _THIS).order_by(events.c.position)


def one(connection: Connection, lease_id: str, *, including_deleted: bool) -> Lease:
    """Return one lease with its reservations and events, in three statements; NotFound."""
    this = {"lease_id": lease_id}
    rows = connection.execute(_ONE if including_deleted else _ONE_SHOWN, this).all()
    if not rows:
        raise NotFound(f"Lease with {{'lease_id': '{lease_id[:80]}'}} not found")
    kept = connection.execute(_RESERVATIONS_OF_ONE, this).all()
    due = connection.execute(_EVENTS_OF_ONE, this).all()
    return assembled(rows, kept, due)[0]


def revisions(connection: Connection, project_id: str | None) -> tuple[LeaseRevision, ...]:
    """Return the ids and revisions of leases, oldest first."""
    where: list[sa.ColumnElement[bool]] = [leases.c.deleted_at.is_(None)]
    if project_id is not None:
        where.append(leases.c.project_id == project_id)
    query = sa.select(leases.c.id, leases.c.revision).where(*where).order_by(leases.c.created_at, leases.c.id)
    return tuple(LeaseRevision(id_, revision) for id_, revision in connection.execute(query))


def by_ids(connection: Connection, lease_ids: Collection[str]) -> tuple[Lease, ...]:
    """Return leases as users see them, in three statements for each few thousand."""
    parts = (
        _many(connection, [leases.c.deleted_at.is_(None), leases.c.id.in_(part)]) for part in chunks(sorted(lease_ids))
    )
    return tuple(sorted((lease for part in parts for lease in part), key=lambda lease: (lease.created_at, lease.id)))


def whole(connection: Connection, lease_ids: Collection[str]) -> tuple[Lease, ...]:
    """Return leases with all reservations and events, deleted or not, in three statements for each few thousand."""
    parts = (_many(connection, [leases.c.id.in_(part)], requests=True) for part in chunks(sorted(lease_ids)))
    return tuple(lease for part in parts for lease in part)


def all_of(connection: Connection, project_id: str | None) -> tuple[Lease, ...]:
    """Return leases as users see them (without request events), oldest first, in three statements."""
    where: list[sa.ColumnElement[bool]] = [leases.c.deleted_at.is_(None)]
    if project_id is not None:
        where.append(leases.c.project_id == project_id)
    return _many(connection, where)


def past(
    connection: Connection, project_id: str | None, since: datetime | None, until: datetime | None
) -> tuple[Lease, ...]:
    """Return leases that have ended or were deleted, at any time in the past, oldest first."""
    where: list[sa.ColumnElement[bool]] = [sa.or_(leases.c.deleted_at.is_not(None), leases.c.status == "TERMINATED")]
    if project_id is not None:
        where.append(leases.c.project_id == project_id)
    if since is not None:
        where.append(leases.c.ends_at >= since)
    if until is not None:
        where.append(leases.c.starts_at < until)
    return _many(connection, where)


def insert(connection: Connection, lease: Lease) -> None:
    """Insert a lease with its reservations and events, in three statements."""
    connection.execute(_INSERT_LEASE, [lease_row(lease)])
    kept = [reservation_row(lease.id, position, r) for position, r in enumerate(lease.reservations)]
    if kept:
        connection.execute(_INSERT_RESERVATION, kept)
    due = [event_row(lease.id, position, event) for position, event in enumerate(lease.events)]
    if due:
        connection.execute(_INSERT_EVENT, due)


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
    _save_reservations(connection, before, after)
    _save_events(connection, before, after)


def live_reservations_on(connection: Connection, resource_id: int) -> tuple[Reservation, ...]:
    """Return the reservations to which a resource is promised."""
    promised = sa.select(allocations.c.reservation_id).where(
        allocations.c.resource_id == resource_id, allocations.c.released_at.is_(None)
    )
    rows = connection.execute(sa.select(*RESERVATION_COLUMNS).where(reservations.c.id.in_(promised))).all()
    return tuple(reservation_of(row) for row in rows)


def owners(connection: Connection, reservation_ids: Collection[str]) -> Mapping[str, ReservationOwner]:
    """Return the leases of reservations; one statement for each few thousand."""
    found: dict[str, ReservationOwner] = {}
    query = sa.select(reservations.c.id, leases.c.id, leases.c.status, leases.c.deleted_at).join(
        leases, leases.c.id == reservations.c.lease_id
    )
    for part in chunks(sorted(reservation_ids)):
        for reservation_id, lease_id, status, deleted_at in connection.execute(
            query.where(reservations.c.id.in_(part))
        ):
            over = deleted_at is not None or status == str(LeaseStatus.TERMINATED)
            found[reservation_id] = ReservationOwner(lease_id, over)
    return found


def _many(
    connection: Connection, where: Sequence[sa.ColumnElement[bool]], *, requests: bool = False
) -> tuple[Lease, ...]:
    rows = connection.execute(sa.select(*LEASE_COLUMNS).where(*where).order_by(leases.c.created_at, leases.c.id)).all()
    if not rows:
        return ()
    kept = connection.execute(
        sa.select(*RESERVATION_COLUMNS)
        .join(leases, leases.c.id == reservations.c.lease_id)
        .where(*where)
        .order_by(reservations.c.position)
    ).all()
    shown = () if requests else (events.c.event_type.not_in([str(kind) for kind in REQUEST_EVENTS]),)
    due = connection.execute(
        sa.select(*EVENT_COLUMNS)
        .join(leases, leases.c.id == events.c.lease_id)
        .where(*where, *shown)
        .order_by(events.c.position)
    ).all()
    return assembled(rows, kept, due)


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
