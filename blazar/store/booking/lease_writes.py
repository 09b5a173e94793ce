# SPDX-License-Identifier: Apache-2.0
"""Writes of a lease with its reservations and events, in the transaction of the caller."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache, partial

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.clock import to_second
from blazar.model.base.errors import StaleLease
from blazar.model.base.values import dataclass, replace
from blazar.model.leases.lease import Event, Lease
from blazar.model.leases.reminders import reminders_json
from blazar.model.leases.states import EventType, ReservationStatus
from blazar.model.leases.stored import cloud_ids_json
from blazar.model.use.policy import Usage
from blazar.store.booking.commit import Commit, LeaseWrite
from blazar.store.booking.outage_writes import begin_outages, move_outages, note_outages
from blazar.store.sql import state_log
from blazar.store.sql.prepared import MOST_TOGETHER, ExpectedRows, insert_rows, update, update_rows
from blazar.store.sql.rows import chunks, event_row, lease_row, local_text, reservation_row
from blazar.store.sql.tables import UTC_TIME, allocations, events, leases, reservations, usage_changes


def insert(connection: Connection, new: Sequence[LeaseWrite], *, at: datetime, besides: Collection[str] = ()) -> None:
    """Insert leases with their reservations and events, in three statements for all of them.

    ``besides``: these reservations are there already.
    """
    made = [write.after for write in new]
    insert_rows(connection, leases, [lease_row(lease) for lease in made])
    for lease in made:
        state_log.note_change(connection, None, lease)
    kept = [
        reservation_row(lease.id, position, r)
        for lease in made
        for position, r in enumerate(lease.reservations)
        if r.id not in besides
    ]
    if kept:
        insert_rows(connection, reservations, kept)
    for lease in made:
        begin_outages(connection, lease.id, [r for r in lease.reservations if r.id not in besides], at)
    due = [event_row(lease.id, position, event) for lease in made for position, event in enumerate(lease.events)]
    if due:
        insert_rows(connection, events, due)
    if looked_at := [lease for lease in made if lease.use is not None]:
        _insert_usage(connection, looked_at, at)


def save_cloud_ids(connection: Connection, prepared: Sequence[Lease]) -> None:
    """Write the cloud ids of the reservations of leases that are being created, in one statement for all of them."""
    rows = [
        {"key": reservation.id, "new_cloud_ids": cloud_ids_json(reservation)}
        for lease in prepared
        for reservation in lease.reservations
        if reservation.cloud_ids.values
    ]
    if rows:
        connection.execute(_update_of(reservations, ("cloud_ids",)), rows)


@dataclass(frozen=True, slots=True)
class RowUpdates:
    """New values of columns of rows, by parameters of ``_update_of``: all rows get the same ``columns``."""

    columns: tuple[str, ...] = ()
    rows: Sequence[Mapping[str, object]] = ()


@dataclass(frozen=True, slots=True)
class LeaseUpdate:
    """What differs of a lease, as rows: of itself, of its reservations, and of its events, of which some are new."""

    before: Lease
    after: Lease
    lease: RowUpdates
    reservations: RowUpdates
    events: RowUpdates
    new_events: Sequence[dict[str, object]]

    @property
    def is_complete(self) -> bool:
        """Return whether nothing else is to be written of the lease: neither usage nor what reservations lack."""
        lacks = [{r.id: r.lost_ids for r in lease.reservations} for lease in (self.before, self.after)]
        return lacks[0] == lacks[1] and _usage_of(self.before) is _usage_of(self.after)


def find_update(write: LeaseWrite, at: datetime) -> LeaseUpdate:
    """Return what a write changes of a lease."""
    before = write.before
    assert before is not None
    after = _note_starts(before, write.saved, at)
    known = lease_row(before)
    changed = {name: value for name, value in lease_row(after).items() if value != known[name]}
    values = {f"new_{name}": value for name, value in {**changed, "revision": after.revision}.items()}
    row = {"key": before.id, "known": before.revision, **values}
    events_, new = _find_events(before, after)
    return LeaseUpdate(
        before,
        after,
        RowUpdates(tuple(sorted({*changed, "revision"})), [row]),
        _find_reservations(before, after),
        events_,
        new,
    )


def write_updates(connection: Connection, updates: Sequence[LeaseUpdate]) -> None:
    """Write what differs of leases, in one statement for all of whose rows the same columns do.

    StaleLease if one is not at its revision.
    """
    _execute_updates(connection, leases, [found.lease for found in updates], updates[0].before)
    _execute_updates(connection, reservations, [found.reservations for found in updates])
    _execute_updates(connection, events, [found.events for found in updates])
    if new := [row for found in updates for row in found.new_events]:
        insert_rows(connection, events, new)


def save(connection: Connection, write: LeaseWrite, *, at: datetime) -> Lease:
    """Write what differs, and return the lease as saved. StaleLease if it is not at the revision of its ``before``."""
    found = find_update(write, at)
    before, after = found.before, found.after
    write_updates(connection, [found])
    state_log.note_change(connection, before, after)
    _save_usage(connection, before, after)
    note_outages(connection, before, after, at)
    return after


def _note_starts(before: Lease, after: Lease, at: datetime) -> Lease:
    """Return a lease whose reservations know when their start was done: now, if this write says so.

    A start that is to be done once more was none.
    """
    known = {r.id: r.status for r in before.reservations}
    new = [r.id for r in after.reservations if r.status is not known.get(r.id, r.status)]
    if not new:
        return after
    times = {ReservationStatus.ACTIVE: to_second(at), ReservationStatus.PENDING: None}
    reservations = [
        replace(r, handed_over_at=times[r.status]) if r.id in new and r.status in times else r
        for r in after.reservations
    ]
    return replace(after, reservations=tuple(reservations))


def _save_usage(connection: Connection, before: Lease, after: Lease) -> None:
    """Write what a look has found, if it is not what the one before did: for reports."""
    check = after.event(EventType.USAGE_CHECK)
    if check is None or check.updated_at is None or _usage_of(before) is (found := _usage_of(after)):
        return
    row = {"lease_id": after.id, "at": to_second(check.updated_at)}
    # Of two looks in a second the later one counts.
    connection.execute(usage_changes.delete().where(*(usage_changes.c[name] == value for name, value in row.items())))
    connection.execute(usage_changes.insert().values(**row, usage=str(found)))


def _insert_usage(connection: Connection, made: Sequence[Lease], at: datetime) -> None:
    """Write what the last look has found of leases that are split off in use: the next one may find the same."""
    rows = [
        {"lease_id": lease.id, "at": to_second(at), "usage": str(found)}
        for lease in made
        if (found := _usage_of(lease)) is not Usage.UNKNOWN
    ]
    if rows:
        connection.execute(usage_changes.insert(), rows)


def _usage_of(lease: Lease) -> Usage:
    """Return what the last look at a lease has found; UNKNOWN if nobody looks, or not any more."""
    return Usage.UNKNOWN if lease.use is None else lease.use.usage


def _find_reservations(before: Lease, after: Lease) -> RowUpdates:
    known = {r.id: (position, r) for position, r in enumerate(before.reservations)}
    changed = [
        # One that comes from another lease is written as a whole.
        (reservation_row(before.id, *known[r.id]) if r.id in known else {}, reservation_row(after.id, position, r))
        for position, r in enumerate(after.reservations)
        if known.get(r.id) != (position, r)
    ]
    return _find_updates(changed, _UNSURE_OF_RESERVATIONS)


def _find_events(before: Lease, after: Lease) -> tuple[RowUpdates, Sequence[dict[str, object]]]:
    """Return the changes of events, and the rows of new ones."""
    known = {e.id: (position, e) for position, e in enumerate(before.events)}
    rows = [(e.id, event_row(after.id, n, e)) for n, e in enumerate(after.events) if known.get(e.id) != (n, e)]
    changed = [(event_row(before.id, *known[id_]), row) for id_, row in rows if id_ in known]
    return _find_updates(changed, _UNSURE_OF_EVENTS), [row for id_, row in rows if id_ not in known]


_UNKNOWN = object()

_UNSURE_OF_EVENTS = ("due_at", "reason", "cause")
"""Columns that may be other ones than they were read: claims are renewed without a new revision of the lease, and who
undoes a change notes why before that is written."""
_UNSURE_OF_RESERVATIONS = ("status", "cloud_ids")
"""Likewise: what was made in a cloud is noted before that is written."""


def _find_updates(
    pairs: Sequence[tuple[Mapping[str, object], Mapping[str, object]]], also: Collection[str] = ()
) -> RowUpdates:
    """Return the changes of rows, given as they were and as they are, with the columns that differ in any.

    A row belongs to its lease: only ``move_reservations`` changes that.
    """
    differing = {name for was, row in pairs for name, value in row.items() if was.get(name, _UNKNOWN) != value}
    names = tuple(sorted({*differing, *also} - {"id", "lease_id"}))
    if not differing or not names:
        return RowUpdates()
    rows = [{"key": row["id"], **{f"new_{name}": row[name] for name in names}} for _, row in pairs]
    return RowUpdates(names, rows)


def _execute_updates(
    connection: Connection, table: sa.Table, updates: Iterable[RowUpdates], before: Lease | None = None
) -> None:
    """Write changes of rows, in one statement for all of the same columns.

    Those of leases are at their revisions, of which ``before`` is one, or it is StaleLease.
    """
    together: dict[tuple[str, ...], list[Mapping[str, object]]] = defaultdict(list)
    for one in updates:
        if one.rows:
            together[one.columns].extend(one.rows)
    for columns, rows in together.items():
        if before is None and 1 < len(rows) <= MOST_TOGETHER:
            update_rows(connection, table, columns, rows)
            continue
        statement = _update_of(table, columns) if before is None else _update_of_leases(columns)
        expected = None if before is None else ExpectedRows(len(rows), partial(_tell_stale, before))
        if len(rows) == 1:
            update(connection, statement, rows[0], expected)
        elif connection.execute(statement, rows).rowcount != len(rows) and expected is not None:
            raise expected.missed()


def _tell_stale(lease: Lease) -> StaleLease:
    return StaleLease(f"lease {lease.id} has changed since revision {lease.revision}")


@lru_cache(maxsize=128)
def _update_of_leases(names: tuple[str, ...]) -> sa.Update:
    return _update_of(leases, names).where(leases.c.revision == sa.bindparam("known"))


@lru_cache(maxsize=128)
def _update_of(table: sa.Table, names: tuple[str, ...]) -> sa.Update:
    """Return the update of these columns of a row; cached, as building it takes longer than sending it."""
    values = {name: sa.bindparam(f"new_{name}", type_=table.c[name].type) for name in names}
    return table.update().where(table.c.id == sa.bindparam("key")).values(values)


def save_dates(connection: Connection, redated: Sequence[LeaseWrite]) -> None:
    """Write leases of which only dates, name, reminders, state and ``keep_hosts`` differ. StaleLease.

    In as many statements for all of them.
    """
    _check_revisions(connection, redated)
    connection.execute(_NEW_DATES, [_date_values(write.after) for write in redated])
    for write in redated:
        state_log.note_change(connection, write.before, write.after)
    known = {event.id for write in redated if write.before is not None for event in write.before.events}
    every = [(write.after.id, number, event) for write in redated for number, event in enumerate(write.after.events)]
    if old := [_event_values(event) for _, _, event in every if event.id in known]:
        connection.execute(_NEW_TIME, old)
    if new := [event_row(lease_id, number, event) for lease_id, number, event in every if event.id not in known]:
        insert_rows(connection, events, new)


def _check_revisions(connection: Connection, writes: Sequence[LeaseWrite]) -> None:
    """Check that leases are as they were read; they stay so until the end of the transaction."""
    known = {write.before.id: write.before.revision for write in writes if write.before is not None}
    for part in chunks(sorted(known)):
        query = sa.select(leases.c.id, leases.c.revision).where(leases.c.id.in_(part)).with_for_update()
        found = {row[0]: row[1] for row in connection.execute(query)}
        if stale := [id_ for id_ in part if found.get(id_) != known[id_]]:
            raise StaleLease(f"lease {stale[0]} has changed since revision {known[stale[0]]}")


_NEW_DATES = (
    leases.update()
    .where(leases.c.id == sa.bindparam("key"))
    .values(
        name=sa.bindparam("new_name"),
        starts_at=sa.bindparam("begin", type_=UTC_TIME),
        ends_at=sa.bindparam("end", type_=UTC_TIME),
        status=sa.bindparam("new_status"),
        end_reason=sa.bindparam("why"),
        series_id=sa.bindparam("part_of"),
        recurrence_id=sa.bindparam("which"),
        series_changed=sa.bindparam("itself"),
        reminders=sa.bindparam("reminding", type_=leases.c.reminders.type),
        keep_hosts=sa.bindparam("keeps"),
        updated_at=sa.bindparam("at", type_=UTC_TIME),
        revision=leases.c.revision + 1,
    )
)
_NEW_TIME = (
    events.update()
    .where(events.c.id == sa.bindparam("key"))
    .values(
        time=sa.bindparam("new_time", type_=UTC_TIME),
        due_at=sa.bindparam("due", type_=UTC_TIME),
        updated_at=sa.bindparam("at", type_=UTC_TIME),
    )
)


def _date_values(lease: Lease) -> dict[str, object]:
    part = lease.series
    return {
        "key": lease.id,
        "new_name": lease.name,
        "begin": lease.window.start,
        "end": lease.window.end,
        "new_status": str(lease.status),
        "why": None if lease.end_reason is None else str(lease.end_reason),
        "part_of": None if part is None else part.series_id,
        "which": None if part is None else local_text(part.recurrence_id),
        "itself": part is not None and part.changed,
        "reminding": reminders_json(lease.reminders) if lease.reminders else None,
        "keeps": lease.keep_hosts,
        "at": lease.updated_at,
    }


def _event_values(event: Event) -> dict[str, object]:
    return {"key": event.id, "new_time": event.time, "due": event.due_at, "at": event.updated_at}


_PLACE = (
    reservations.update()
    .where(reservations.c.id == sa.bindparam("key"))
    .values(position=sa.bindparam("place", type_=reservations.c.position.type))
)


def move_reservations(connection: Connection, commit: Commit) -> None:
    """Write whose reservations and resources are now; what was released long ago goes with its reservation."""
    for lease_id in sorted({move.lease_id for move in commit.moves}):
        ids = [move.reservation_id for move in commit.moves if move.lease_id == lease_id]
        for part in chunks(sorted(ids)):
            connection.execute(reservations.update().where(reservations.c.id.in_(part)).values(lease_id=lease_id))
            of_these = allocations.c.reservation_id.in_(part)
            connection.execute(allocations.update().where(of_these).values(lease_id=lease_id))
            move_outages(connection, part, lease_id)
    for passing in commit.passing:
        for resources in chunks(sorted(passing.resources)):
            connection.execute(
                allocations.update()
                .where(
                    allocations.c.reservation_id == passing.reservation_id,
                    allocations.c.resource_id.in_(resources),
                    allocations.c.released_at.is_(None),
                )
                .values(lease_id=passing.to_lease_id, reservation_id=passing.to_reservation_id)
            )
    placed = [(r.id, n) for write in commit.leases for n, r in enumerate(write.after.reservations)]
    connection.execute(_PLACE, [{"key": id_, "place": number} for id_, number in placed])
