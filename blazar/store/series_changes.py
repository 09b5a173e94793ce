# SPDX-License-Identifier: Apache-2.0
"""The write of a change of a series: everything in one transaction, whose statements do not grow with occurrences."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.demand import Allocation
from blazar.model.errors import StaleCalendar, StaleLease
from blazar.model.lease import Event, Lease
from blazar.model.series_details import Series, SeriesOccurrence, SeriesStatus
from blazar.model.usage import OutboxMessage, ProjectUse
from blazar.store import allocation_writes, history, lease_writes, outbox, state_log, use_queries
from blazar.store.rows import chunks, event_row, local_text
from blazar.store.series_count import check_count
from blazar.store.series_rows import occurrence_row, series_row
from blazar.store.tables import UtcTime, allocations, events, leases, occurrences, series
from blazar.store.transactions import Clash, Transactions


@dataclass(frozen=True, slots=True)
class Moved:
    """A lease that gets other dates: as it was read, and as it is to be; nothing of its reservations changes."""

    before: Lease
    after: Lease


@dataclass(frozen=True, slots=True)
class SeriesExchange:
    """What a change of a series writes.

    ``before`` is the series as it was read, ``old`` what is left of it, None if nothing is: then ``new`` takes its
    place under its id, else it is another series. ``moved`` leases get other dates, those in ``gone`` are being
    deleted, and the ``added`` ones are being created. ``kept`` are the recurrence ids of occurrences from the
    ``first`` on that stay as they are, and are of ``new`` from now on; the other ones are ``occurrences``. ``most`` is
    how many series the project may have; what is left of one whose occurrences are over is not counted.
    """

    before: Series
    old: Series | None
    new: Series
    first: datetime
    moved: Sequence[Moved]
    gone: Sequence[Moved]
    added: Sequence[Lease]
    kept: Collection[datetime]
    occurrences: Sequence[SeriesOccurrence]
    allocations: Sequence[Allocation]
    generations: Mapping[int, int]
    messages: Sequence[OutboxMessage] = ()
    most: int | None = None


class SeriesChanges:
    """Writes changes of series. ``cleaning_time`` is kept free after each use of a resource."""

    def __init__(self, transactions: Transactions, *, cleaning_time: timedelta) -> None:
        self._transactions = transactions
        self._cleaning_time = cleaning_time

    def exchange(self, change: SeriesExchange, *, use: ProjectUse | None, now: datetime) -> None:
        """Write a change, or nothing: StaleLease if the series or a lease has changed, StaleCalendar, UsageDenied."""

        def work(connection: Connection) -> None:
            _check(connection, change)
            if change.most is not None and change.old is not None and _goes_on(connection, change, now):
                check_count(connection, change.new.project_id, change.most)
            if use is not None:
                use_queries.raise_version(connection, use)
            allocation_writes.raise_generations(connection, change.generations)
            _write_series(connection, change, now)
            free = [each.before.id for each in (*change.moved, *change.gone)]
            for part in chunks(free):
                allocation_writes.release(
                    connection, allocations.c.lease_id.in_(part), at=now, cleaning=self._cleaning_time
                )
            _write_leases(connection, change)
            if change.added:
                lease_writes.insert_many(connection, change.added)
            allocation_writes.insert(connection, change.allocations, self._cleaning_time)
            _write_history(connection, change, now)
            _write_occurrences(connection, change)
            outbox.write(connection, change.messages, at=now)

        try:
            self._transactions.write(work)
        except Clash as error:
            if use is None or use.version:
                raise
            raise StaleCalendar("the project was granted another lease or change in the meantime") from error


def _check(connection: Connection, change: SeriesExchange) -> None:
    """Raise StaleLease unless the series and its leases are as they were read; they stay so until the end."""
    before = change.before
    unclaimed = (series.c.id == before.id, series.c.revision == before.revision, series.c.claimed_by.is_(None))
    raised = connection.execute(
        series.update()
        .where(*unclaimed, series.c.status == str(SeriesStatus.ACTIVE))
        .values(revision=series.c.revision + 1)
    )
    if not raised.rowcount:
        raise StaleLease(f"series {before.id} has changed since revision {before.revision}, or is being worked on")
    known = {each.before.id: each.before.revision for each in (*change.moved, *change.gone)}
    for part in chunks(sorted(known)):
        query = sa.select(leases.c.id, leases.c.revision).where(leases.c.id.in_(part)).with_for_update()
        found = {row[0]: row[1] for row in connection.execute(query)}
        if any(found.get(id_) != known[id_] for id_ in part):
            raise StaleLease(f"a lease of series {before.id} has changed")


def _goes_on(connection: Connection, change: SeriesExchange, now: datetime) -> bool:
    """Return whether an occurrence before the change is not over: then there are two series from now on."""
    before = (occurrences.c.series_id == change.before.id, occurrences.c.recurrence_id < local_text(change.first))
    query = sa.select(sa.exists().where(*before, occurrences.c.ends_at > now))
    return bool(connection.execute(query).scalar_one())


def _write_series(connection: Connection, change: SeriesExchange, now: datetime) -> None:
    """Write both series; there is work on them at once, as on one that has just been booked further."""
    due = {"due_at": now, "claimed_by": None}
    kept = change.new if change.old is None else change.old
    row = {name: value for name, value in series_row(kept).items() if name not in ("id", "revision", "created_at")}
    connection.execute(series.update().where(series.c.id == change.before.id).values(**row, **due))
    if change.old is not None:
        connection.execute(series.insert(), [{**series_row(change.new), **due}])


def _write_leases(connection: Connection, change: SeriesExchange) -> None:
    changed = (*change.moved, *change.gone)
    if not changed:
        return
    connection.execute(_LEASE, [_lease_values(each.after) for each in changed])
    for each in changed:
        state_log.note(connection, each.before, each.after)
    known = {event.id for each in changed for event in each.before.events}
    every = [(each.after.id, number, event) for each in changed for number, event in enumerate(each.after.events)]
    if old := [_event_values(event) for _, _, event in every if event.id in known]:
        connection.execute(_EVENT, old)
    if new := [event_row(lease_id, number, event) for lease_id, number, event in every if event.id not in known]:
        connection.execute(events.insert(), new)


def _write_history(connection: Connection, change: SeriesExchange, now: datetime) -> None:
    told: list[history.Written] = [
        (each.before, replace(each.after, revision=each.before.revision + 1), ())
        for each in (*change.moved, *change.gone)
    ]
    added = {lease.id for lease in change.added}
    new = [each for each in change.allocations if each.lease_id in added]
    history.write(connection, [*told, *history.made(change.added, new)], at=now)


def _write_occurrences(connection: Connection, change: SeriesExchange) -> None:
    from_first = (
        occurrences.c.series_id == change.before.id,
        occurrences.c.recurrence_id >= local_text(change.first),
    )
    kept = [local_text(each) for each in sorted(change.kept)]
    connection.execute(occurrences.delete().where(*from_first, occurrences.c.recurrence_id.not_in(kept)))
    if change.old is not None and kept:
        # Leases that stay as they are.
        of_kept = sa.select(occurrences.c.lease_id).where(*from_first, occurrences.c.lease_id.is_not(None))
        stay = (leases.c.series_id == change.before.id, leases.c.id.in_(of_kept))
        connection.execute(leases.update().where(*stay).values(series_id=change.new.id))
        connection.execute(occurrences.update().where(*from_first).values(series_id=change.new.id))
    if change.occurrences:
        connection.execute(occurrences.insert(), [occurrence_row(change.new.id, each) for each in change.occurrences])


_LEASE = (
    leases.update()
    .where(leases.c.id == sa.bindparam("key"))
    .values(
        name=sa.bindparam("new_name"),
        starts_at=sa.bindparam("begin", type_=UtcTime),
        ends_at=sa.bindparam("end", type_=UtcTime),
        status=sa.bindparam("new_status"),
        end_reason=sa.bindparam("why"),
        series_id=sa.bindparam("part_of"),
        recurrence_id=sa.bindparam("which"),
        series_changed=sa.bindparam("itself"),
        updated_at=sa.bindparam("at", type_=UtcTime),
        revision=leases.c.revision + 1,
    )
)
_EVENT = (
    events.update()
    .where(events.c.id == sa.bindparam("key"))
    .values(
        time=sa.bindparam("new_time", type_=UtcTime),
        due_at=sa.bindparam("due", type_=UtcTime),
        updated_at=sa.bindparam("at", type_=UtcTime),
    )
)


def _lease_values(lease: Lease) -> dict[str, object]:
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
        "at": lease.updated_at,
    }


def _event_values(event: Event) -> dict[str, object]:
    return {"key": event.id, "new_time": event.time, "due": event.due_at, "at": event.updated_at}
