# SPDX-License-Identifier: Apache-2.0
"""The store of series of leases, with their occurrences: what is read of them, and what requests write."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.context import current
from blazar.model.base.errors import StaleLease
from blazar.model.base.values import dataclass, replace
from blazar.model.journal.object_entries import tell_series
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import IdempotencyKey
from blazar.model.leases.states import LeaseStatus
from blazar.model.series.details import (
    MOST_SHOWN,
    Series,
    SeriesDetails,
    SeriesOccurrence,
    SeriesOwner,
    SeriesPage,
    SeriesQuestion,
    SeriesStatus,
    unknown_series,
)
from blazar.store.booking.bookings import BookingStore
from blazar.store.booking.commit import Commit
from blazar.store.journal.rows import write_entries, write_entry
from blazar.store.leases.leases import read_leases
from blazar.store.series.series_rows import (
    OCCURRENCE_COLUMNS,
    SERIES_COLUMNS,
    WITH_LEASES,
    check_series_count,
    occurrence_of,
    occurrence_row,
    series_of,
    series_row,
)
from blazar.store.sql.paging import read_page
from blazar.store.sql.rows import local_text
from blazar.store.sql.tables import leases, occurrences, series
from blazar.store.sql.transactions import Transactions, atomic
from blazar.store.work import idempotency

_ORDER = (series.c.created_at, series.c.id)
_GONE = (str(LeaseStatus.TERMINATED), str(LeaseStatus.DELETING))
OF_SERIES = (leases.c.deleted_at.is_(None), leases.c.status.not_in(_GONE))
"""Leases that are still of use to their series."""


@dataclass(frozen=True, slots=True)
class SeriesExchange:
    """What a change of a series writes, beside its leases.

    ``before`` is the series as it was read, ``old`` what is left of it, None if nothing is: then ``new`` takes its
    place under its id, else it is another series. ``kept`` are the recurrence ids of occurrences from the ``first`` on
    that stay as they are, and are of ``new`` from now on; the other ones are ``occurrences``. ``most`` is how many
    series the project may have; what is left of one whose occurrences are over is not counted.
    """

    before: Series
    old: Series | None
    new: Series
    first: datetime
    kept: Collection[datetime]
    occurrences: Sequence[SeriesOccurrence]
    most: int | None = None


class SeriesStore:
    """Reads and writes series, for requests."""

    def __init__(self, transactions: Transactions, bookings: BookingStore) -> None:
        self._transactions = transactions
        self._bookings = bookings

    def owner(self, series_id: str) -> SeriesOwner:
        """Return whose a series is, deleted ones too, in one statement; NotFound."""
        columns = (series.c.id, series.c.project_id, series.c.user_id, series.c.deleted_at, leases.c.user_id)
        of_others = sa.and_(leases.c.series_id == series.c.id, leases.c.user_id != series.c.user_id, *OF_SERIES)
        query = sa.select(*columns).outerjoin_from(series, leases, of_others).where(series.c.id == series_id).distinct()
        rows = self._transactions.select(query)
        if not rows:
            raise unknown_series(series_id)
        id_, project_id, user_id, deleted_at, _ = rows[0]
        others = sorted(row[4] for row in rows if row[4] is not None)
        return SeriesOwner(id_, project_id, user_id, deleted_at is not None, tuple(others))

    def one(self, series_id: str, now: datetime) -> SeriesDetails:
        """Return a series with the last of its occurrences, deleted ones too, in two statements; NotFound."""
        with self._transactions.reading() as connection:
            found = read_series(connection, series_id)
            query = (
                sa.select(*OCCURRENCE_COLUMNS)
                .select_from(WITH_LEASES)
                .where(occurrences.c.series_id == series_id)
                .order_by(occurrences.c.starts_at.desc(), occurrences.c.recurrence_id.desc())
                .limit(MOST_SHOWN)
            )
            rows = connection.execute(query).all()
        return SeriesDetails(found, tuple(occurrence_of(row, now) for row in reversed(rows)))

    def page(self, question: SeriesQuestion) -> SeriesPage:
        """Return a page of series that are not deleted, in at most three statements. InvalidInput for its marker."""
        where: list[sa.ColumnElement[bool]] = [series.c.deleted_at.is_(None)]
        if question.project_id is not None:
            where.append(series.c.project_id == question.project_id)
        if question.statuses:
            where.append(series.c.status.in_([str(status) for status in question.statuses]))
        with self._transactions.reading() as connection:
            found = read_page(connection, question.page, sa.select(*SERIES_COLUMNS), _ORDER, where)
        return SeriesPage(tuple(map(series_of, found.rows)), found.last, found.count)

    def leases(self, series_id: str, *statuses: LeaseStatus) -> tuple[Lease, ...]:
        """Return the leases of a series in these states (none: in all) that are not deleted, in three statements."""
        where = [leases.c.series_id == series_id, leases.c.deleted_at.is_(None)]
        if statuses:
            where.append(leases.c.status.in_([str(status) for status in statuses]))
        with self._transactions.reading() as connection:
            return read_leases(connection, where, requests=True)

    def count_purgeable(self, before: datetime) -> Mapping[str, int]:
        """Return the number of series over since before then, of which no lease is on record, and their occurrences."""
        past = sa.select(series.c.id).where(_is_purgeable(before))
        with self._transactions.reading() as connection:
            total = connection.execute(sa.select(sa.func.count()).select_from(past.subquery())).scalar_one()
            of_them = sa.select(sa.func.count()).where(occurrences.c.series_id.in_(past)).select_from(occurrences)
            return {"series": total, "occurrences": connection.execute(of_them).scalar_one()}

    @atomic
    def purge(self, connection: Connection, before: datetime, limit: int) -> Mapping[str, int]:
        """Delete at most ``limit`` of these series for good; return the number of rows by table, empty if none is."""
        first = sa.select(series.c.id).where(_is_purgeable(before)).order_by(series.c.id).limit(limit)
        ids = list(connection.execute(first.with_for_update()).scalars())
        if not ids:
            return {}
        parts = connection.execute(occurrences.delete().where(occurrences.c.series_id.in_(ids))).rowcount
        return {
            "series": connection.execute(series.delete().where(series.c.id.in_(ids))).rowcount,
            "occurrences": parts,
        }

    @atomic
    def add(
        self,
        connection: Connection,
        new: Series,
        planned: Sequence[SeriesOccurrence],
        *,
        token: str | None,
        due_at: datetime,
        key: IdempotencyKey | None,
        most: int | None,
    ) -> None:
        """Insert a series with its occurrences, claimed with the ``token`` if there is one, in four statements.

        KeyTaken if another series has the ``key``; UsageDenied if the project has ``most`` series already.
        """
        if key is not None:
            idempotency.insert(connection, key, new.id, new.created_at)
        if most is not None:
            check_series_count(connection, new.project_id, most)
        connection.execute(series.insert(), [{**series_row(new), "due_at": due_at, "claimed_by": token}])
        rows = [occurrence_row(new.id, occurrence) for occurrence in planned]
        if rows:
            connection.execute(occurrences.insert(), rows)
        write_entry(connection, tell_series(None, new, at=new.created_at, by=current().actor))

    @atomic
    def begin_deletion(
        self,
        connection: Connection,
        series_id: str,
        *,
        token: str | None,
        due_at: datetime,
        ends_running: bool,
        now: datetime,
    ) -> Series:
        """Write that a series is being deleted; who works on it stops at the next write. NotFound."""
        found = read_series(connection, series_id)
        if found.status is SeriesStatus.DELETED:
            return found
        connection.execute(
            series.update()
            .where(series.c.id == series_id)
            .values(
                status=str(SeriesStatus.DELETING),
                ends_running=found.ends_running or ends_running,
                claimed_by=token,
                due_at=due_at,
                attempts=0,
                revision=series.c.revision + 1,
                updated_at=now,
            )
        )
        deleting = read_series(connection, series_id)
        write_entry(connection, tell_series(found, deleting, at=now, by=current().actor))
        return deleting

    def exchange(self, change: SeriesExchange, commit: Commit) -> tuple[Lease, ...]:
        """Write a change with its leases, or nothing: StaleLease if the series or a lease has changed, UsageDenied."""

        def fence(connection: Connection) -> None:
            _check_unchanged(connection, change)
            if (
                change.most is not None
                and change.old is not None
                and _has_open_occurrence(connection, change, commit.at)
            ):
                check_series_count(connection, change.new.project_id, change.most)
            _write_series(connection, change, commit.at)

        return self._bookings.commit(
            commit, fence=fence, rows=lambda connection: _write_occurrences(connection, change)
        )

    @atomic
    def forget(self, connection: Connection, series_id: str) -> None:
        """Remove a series that has failed while its request was answered; its leases are undone."""
        row = connection.execute(sa.select(*SERIES_COLUMNS).where(series.c.id == series_id)).one_or_none()
        if row is not None:
            found = series_of(row)
            failed = replace(found, status=SeriesStatus.FAILED)
            write_entry(connection, tell_series(found, failed, at=found.created_at, by=current().actor))
        connection.execute(occurrences.delete().where(occurrences.c.series_id == series_id))
        connection.execute(series.delete().where(series.c.id == series_id))
        idempotency.forget(connection, series_id)


def _is_purgeable(before: datetime) -> sa.ColumnElement[bool]:
    over = (str(SeriesStatus.ENDED), str(SeriesStatus.FAILED), str(SeriesStatus.DELETED))
    on_record = sa.exists().where(leases.c.series_id == series.c.id)
    return sa.and_(series.c.status.in_(over), series.c.updated_at < before, ~on_record)


def read_series(connection: Connection, series_id: str) -> Series:
    """Return a series, deleted ones too; NotFound. One statement."""
    row = connection.execute(sa.select(*SERIES_COLUMNS).where(series.c.id == series_id)).one_or_none()
    if row is None:
        raise unknown_series(series_id)
    return series_of(row)


def _check_unchanged(connection: Connection, change: SeriesExchange) -> None:
    """Raise StaleLease unless the series is as it was read; it stays so until the end."""
    before = change.before
    unclaimed = (series.c.id == before.id, series.c.revision == before.revision, series.c.claimed_by.is_(None))
    raised = connection.execute(
        series.update()
        .where(*unclaimed, series.c.status == str(SeriesStatus.ACTIVE))
        .values(revision=series.c.revision + 1)
    )
    if not raised.rowcount:
        raise StaleLease(f"series {before.id} has changed since revision {before.revision}, or is being worked on")


def _has_open_occurrence(connection: Connection, change: SeriesExchange, now: datetime) -> bool:
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
    actor = current().actor
    told = [tell_series(change.before, kept, at=now, by=actor)]
    if change.old is not None:
        connection.execute(series.insert(), [{**series_row(change.new), **due}])
        told.append(tell_series(None, change.new, at=now, by=actor))
    write_entries(connection, [entry for entry in told if entry is not None])


def _write_occurrences(connection: Connection, change: SeriesExchange) -> None:
    from_first = (occurrences.c.series_id == change.before.id, occurrences.c.recurrence_id >= local_text(change.first))
    kept = [local_text(local) for local in sorted(change.kept)]
    connection.execute(occurrences.delete().where(*from_first, occurrences.c.recurrence_id.not_in(kept)))
    if change.old is not None and kept:
        # Leases that stay as they are.
        of_kept = sa.select(occurrences.c.lease_id).where(*from_first, occurrences.c.lease_id.is_not(None))
        stay = (leases.c.series_id == change.before.id, leases.c.id.in_(of_kept))
        connection.execute(leases.update().where(*stay).values(series_id=change.new.id, revision=leases.c.revision + 1))
        connection.execute(occurrences.update().where(*from_first).values(series_id=change.new.id))
    if change.occurrences:
        connection.execute(
            occurrences.insert(), [occurrence_row(change.new.id, occurrence) for occurrence in change.occurrences]
        )
