# SPDX-License-Identifier: Apache-2.0
"""The store of series of leases, with their occurrences.

Work on a series is claimed in its row, as that on a lease is in its events. Each write of who works on it checks the
claim in its own transaction, so that nothing is booked for a series that was deleted, or that another manager has taken
over. Their number grows with the occurrences in chunks only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.bounds import Bounds
from blazar.model.demand import Allocation
from blazar.model.errors import ClaimLost, StaleCalendar
from blazar.model.lease import EventStatus, EventType, Lease, LeaseStatus
from blazar.model.lease_json import cause_json
from blazar.model.paging import Position
from blazar.model.reasons import Cause, ReasonCode
from blazar.model.requests import IdempotencyKey
from blazar.model.series_details import (
    MOST_SHOWN,
    OccurrenceState,
    Series,
    SeriesDetails,
    SeriesOccurrence,
    SeriesOwner,
    SeriesPage,
    SeriesQuestion,
    SeriesStatus,
    Template,
    unknown_series,
)
from blazar.model.usage import OutboxMessage, ProjectUse
from blazar.store import allocation_writes, history, idempotency, lease_writes, outbox, state_log, use_queries
from blazar.store.leases import many
from blazar.store.paging import after_marker, ordered_by
from blazar.store.rows import ALLOCATION_COLUMNS, allocation_of, local_text
from blazar.store.series_count import check_count
from blazar.store.series_rows import (
    OCCURRENCE_COLUMNS,
    SERIES_COLUMNS,
    WITH_LEASES,
    occurrence_of,
    occurrence_row,
    series_of,
    series_row,
    template_json,
)
from blazar.store.tables import allocations, events, leases, occurrences, series
from blazar.store.transactions import Clash, Transactions

_ORDER = (series.c.created_at, series.c.id)
_GONE = (str(LeaseStatus.TERMINATED), str(LeaseStatus.DELETING))
_THERE = (leases.c.deleted_at.is_(None), leases.c.status.not_in(_GONE))
_UNBOOKED = Cause(ReasonCode.RESOURCE_NOT_READY)


class SeriesStore:
    """Reads and writes series. ``cleaning_time`` is kept free after each use of a resource."""

    def __init__(self, transactions: Transactions, *, cleaning_time: timedelta) -> None:
        self._transactions = transactions
        self._cleaning_time = cleaning_time

    # What is read.

    def owner(self, series_id: str) -> SeriesOwner:
        """Return whose a series is, deleted ones too, in one statement; NotFound."""
        columns = (series.c.id, series.c.project_id, series.c.user_id, series.c.deleted_at, leases.c.user_id)
        of_others = sa.and_(leases.c.series_id == series.c.id, leases.c.user_id != series.c.user_id, *_THERE)
        query = sa.select(*columns).outerjoin_from(series, leases, of_others).where(series.c.id == series_id).distinct()
        with self._transactions.reading() as connection:
            rows = connection.execute(query).all()
        if not rows:
            raise unknown_series(series_id)
        id_, project_id, user_id, deleted_at, _ = rows[0]
        others = sorted(row[4] for row in rows if row[4] is not None)
        return SeriesOwner(id_, project_id, user_id, deleted_at is not None, tuple(others))

    def one(self, series_id: str, now: datetime) -> SeriesDetails:
        """Return a series with the last of its occurrences, deleted ones too, in two statements; NotFound."""
        with self._transactions.reading() as connection:
            found = _one(connection, series_id)
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
        page = question.page
        where: list[sa.ColumnElement[bool]] = [series.c.deleted_at.is_(None)]
        if question.project_id is not None:
            where.append(series.c.project_id == question.project_id)
        if question.statuses:
            where.append(series.c.status.in_([str(status) for status in question.statuses]))
        with self._transactions.reading() as connection:
            after = after_marker(connection, page, *_ORDER, where)
            query = sa.select(*SERIES_COLUMNS).where(*where, *after).order_by(*ordered_by(page, *_ORDER))
            found = [series_of(row) for row in connection.execute(query.limit(page.limit + 1))]
            total = sa.select(sa.func.count()).select_from(series).where(*where)
            count = connection.execute(total).scalar_one() if page.with_count else None
        shown = tuple(found[: page.limit])
        if len(found) <= page.limit:
            return SeriesPage(shown, None, count)
        return SeriesPage(shown, Position(shown[-1].created_at.isoformat(), shown[-1].id), count)

    def due(self, now: datetime, limit: int) -> tuple[str, ...]:
        """Return the ids of series on which there is work to do, the longest waiting first; one statement."""
        query = sa.select(series.c.id).where(series.c.due_at <= now).order_by(series.c.due_at).limit(limit)
        with self._transactions.reading() as connection:
            return tuple(connection.execute(query).scalars())

    def planned(self, series_id: str) -> tuple[SeriesOccurrence, ...]:
        """Return the occurrences that are to be booked, earliest first; one statement."""
        where = (occurrences.c.series_id == series_id, occurrences.c.state == str(OccurrenceState.PLANNED))
        query = sa.select(occurrences).where(*where).order_by(occurrences.c.starts_at, occurrences.c.recurrence_id)
        with self._transactions.reading() as connection:
            rows = connection.execute(query).all()
        return tuple(
            SeriesOccurrence(datetime.fromisoformat(row.recurrence_id), row.starts_at, row.ends_at) for row in rows
        )

    def known(self, series_id: str, since: datetime) -> frozenset[datetime]:
        """Return the recurrence ids of the occurrences on record that start from then on; one statement."""
        where = (occurrences.c.series_id == series_id, occurrences.c.starts_at >= since)
        with self._transactions.reading() as connection:
            found = connection.execute(sa.select(occurrences.c.recurrence_id).where(*where)).scalars()
            return frozenset(map(datetime.fromisoformat, found))

    def leases(self, series_id: str, *statuses: LeaseStatus) -> tuple[Lease, ...]:
        """Return the leases of a series in these states (none: in all) that are not deleted, in three statements."""
        where = [leases.c.series_id == series_id, leases.c.deleted_at.is_(None)]
        if statuses:
            where.append(leases.c.status.in_([str(status) for status in statuses]))
        with self._transactions.reading() as connection:
            return many(connection, where, requests=True)

    def last_end(self, series_id: str) -> datetime | None:
        """Return when the last lease of a series ends that has not; None if there is none. One statement."""
        where = (leases.c.series_id == series_id, *_THERE, leases.c.status != str(LeaseStatus.ERROR))
        query = sa.select(sa.func.max(leases.c.ends_at, type_=leases.c.ends_at.type)).where(*where)
        with self._transactions.reading() as connection:
            found: datetime | None = connection.execute(query).scalar()
        return found

    def allocations(self, series_id: str) -> Mapping[str, tuple[Allocation, ...]]:
        """Return what the leases of a series that are being created have, by lease; one statement."""
        query = sa.select(*ALLOCATION_COLUMNS).join(leases, leases.c.id == allocations.c.lease_id)
        live = (*_creating(series_id), allocations.c.released_at.is_(None))
        found: dict[str, list[Allocation]] = defaultdict(list)
        with self._transactions.reading() as connection:
            for row in connection.execute(query.where(*live).order_by(allocations.c.id)):
                found[row.lease_id].append(allocation_of(row))
        return {lease_id: tuple(each) for lease_id, each in found.items()}

    def purgeable(self, before: datetime) -> Mapping[str, int]:
        """Return the number of series over since before then, of which no lease is on record, and their occurrences."""
        past = sa.select(series.c.id).where(_is_purgeable(before))
        with self._transactions.reading() as connection:
            total = connection.execute(sa.select(sa.func.count()).select_from(past.subquery())).scalar_one()
            of_them = sa.select(sa.func.count()).where(occurrences.c.series_id.in_(past)).select_from(occurrences)
            return {"series": total, "occurrences": connection.execute(of_them).scalar_one()}

    def purge(self, before: datetime, limit: int) -> Mapping[str, int]:
        """Delete at most ``limit`` of these series for good; return the number of rows by table, empty if none is."""

        def work(connection: Connection) -> Mapping[str, int]:
            first = sa.select(series.c.id).where(_is_purgeable(before)).order_by(series.c.id).limit(limit)
            ids = list(connection.execute(first.with_for_update()).scalars())
            if not ids:
                return {}
            parts = connection.execute(occurrences.delete().where(occurrences.c.series_id.in_(ids))).rowcount
            return {
                "series": connection.execute(series.delete().where(series.c.id.in_(ids))).rowcount,
                "occurrences": parts,
            }

        return self._transactions.write(work)

    # What requests write.

    def add(
        self,
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

        def work(connection: Connection) -> None:
            if key is not None:
                idempotency.insert(connection, key, new.id, new.created_at)
            if most is not None:
                check_count(connection, new.project_id, most)
            connection.execute(series.insert(), [{**series_row(new), "due_at": due_at, "claimed_by": token}])
            rows = [occurrence_row(new.id, each) for each in planned]
            if rows:
                connection.execute(occurrences.insert(), rows)

        self._transactions.write(work)

    def begin_deletion(
        self, series_id: str, *, token: str | None, due_at: datetime, ends_running: bool, now: datetime
    ) -> Series:
        """Write that a series is being deleted, whoever works on it: that work ends at its next write. NotFound."""

        def work(connection: Connection) -> Series:
            found = _one(connection, series_id)
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
            return _one(connection, series_id)

        return self._transactions.write(work)

    # What who has claimed a series writes.

    def claim(self, series_id: str, token: str, *, now: datetime, until: datetime) -> Series | None:
        """Claim a series on which there is work to do; None if another manager was faster."""
        claimed = (
            series.update()
            .where(series.c.id == series_id, series.c.due_at <= now)
            .values(claimed_by=token, due_at=until)
        )

        def work(connection: Connection) -> Series | None:
            return _one(connection, series_id) if connection.execute(claimed).rowcount else None

        return self._transactions.write(work)

    def release(
        self, series_id: str, token: str, *, due_at: datetime | None, now: datetime, failed: bool = False, **values: Any
    ) -> None:
        """Let go of a series, on which there is work again at ``due_at``; ``failed``: this attempt counts. ClaimLost.

        ``values`` are columns to set.
        """
        attempts = series.c.attempts + 1 if failed else 0
        more = {"claimed_by": None, "due_at": due_at, "attempts": attempts, **values}
        self._transactions.write(lambda connection: _hold(connection, series_id, token, now, **more))

    def record(
        self,
        series_id: str,
        token: str,
        found: Collection[SeriesOccurrence],
        *,
        booked_until: datetime,
        now: datetime,
    ) -> None:
        """Insert occurrences that have come near, in two statements. ClaimLost."""

        def work(connection: Connection) -> None:
            _hold(connection, series_id, token, now, booked_until=booked_until)
            if found:
                connection.execute(occurrences.insert(), [occurrence_row(series_id, each) for each in found])

        self._transactions.write(work)

    def book(
        self,
        series_id: str,
        token: str,
        new: Sequence[Lease],
        granted: Collection[Allocation],
        generations: Mapping[int, int],
        unfit: Collection[SeriesOccurrence],
        *,
        now: datetime,
        use: ProjectUse | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        """Insert the leases of some occurrences with what they get, and write why others are unfit. One transaction.

        ClaimLost, StaleCalendar as for ``CalendarStore.book``, UsageDenied.
        """

        def work(connection: Connection) -> None:
            _hold(connection, series_id, token, now)
            if new:
                if use is not None:
                    use_queries.raise_version(connection, use)
                if bounds is not None and bounds.of_project:
                    # Each is checked as if it was booked after those before it.
                    more = len(new[0].reservations)
                    so_far, of_them = use_queries.count(connection, new[0].project_id, now)
                    bounds.check_project(so_far + len(new) - 1, of_them + more * (len(new) - 1), more=more)
                allocation_writes.raise_generations(connection, generations)
                lease_writes.insert_many(connection, new)
                allocation_writes.insert(connection, granted, self._cleaning_time)
                history.write(connection, history.made(new, granted), at=now)
                booked = [
                    {"of": series_id, "which": local_text(lease.series.recurrence_id), "lease": lease.id}
                    for lease in new
                    if lease.series is not None
                ]
                connection.execute(_BOOKED, booked)
            _write_unfit(connection, series_id, unfit)

        try:
            self._transactions.write(work)
        except Clash as error:
            if use is None or use.version:
                raise
            raise StaleCalendar("the project was granted another lease or change in the meantime") from error

    def note(self, series_id: str, token: str, messages: Collection[OutboxMessage], *, now: datetime) -> None:
        """Write outbox messages before they are sent. ClaimLost."""

        def work(connection: Connection) -> None:
            _hold(connection, series_id, token, now)
            outbox.write(connection, messages, at=now)

        self._transactions.write(work)

    def activate(
        self,
        series_id: str,
        token: str,
        ready: Sequence[Lease],
        messages: Collection[OutboxMessage],
        *,
        due_at: datetime | None,
        now: datetime,
    ) -> None:
        """Make all leases of a series that are being created PENDING at once, and let go of it. ClaimLost.

        ``ready`` are those leases as they have been prepared. One transaction, whose statements do not grow with them.
        """
        created = sa.select(leases.c.id).where(*_creating(series_id))

        def work(connection: Connection) -> None:
            _hold(
                connection,
                series_id,
                token,
                now,
                status=str(SeriesStatus.ACTIVE),
                claimed_by=None,
                due_at=due_at,
                attempts=0,
            )
            lease_writes.save_cloud_ids(connection, ready)
            connection.execute(
                events.update()
                .where(events.c.lease_id.in_(created), events.c.event_type == str(EventType.CREATE))
                .values(status=str(EventStatus.DONE), due_at=None, updated_at=now)
            )
            timetable = [str(EventType.START), str(EventType.BEFORE_END), str(EventType.END)]
            connection.execute(
                events.update()
                .where(events.c.lease_id.in_(created), events.c.event_type.in_(timetable))
                .values(due_at=events.c.time)
            )
            state_log.note_pending(connection, _creating(series_id), f"series {series_id}")
            connection.execute(
                leases.update()
                .where(*_creating(series_id))
                .values(status=str(LeaseStatus.PENDING), revision=leases.c.revision + 1, updated_at=now)
            )
            outbox.write(connection, messages, at=now)

        self._transactions.write(work)

    def end(self, series_id: str, token: str, template: Template, *, now: datetime, deleted: bool = False) -> None:
        """Write that a series has ended, or is ``deleted``; its ``template`` has no secrets any more. ClaimLost."""
        values: dict[str, Any] = {"status": str(SeriesStatus.ENDED)}
        if deleted:
            values = {"status": str(SeriesStatus.DELETED), "deleted_at": now}
        self.release(series_id, token, due_at=None, now=now, template=template_json(template), **values)

    def undo(self, series_id: str, token: str, *, reason: str, now: datetime, left: Template | None) -> None:
        """Undo all leases of a series that are being created: their creations are due, and any manager undoes them.

        ``left``: the series has failed, and that is left of its template. Else it goes on without them, and its
        occurrences are unfit for that reason. ClaimLost.
        """

        def work(connection: Connection) -> None:
            ends = left is not None
            values: dict[str, Any] = {}
            if left is not None:
                values = {"status": str(SeriesStatus.FAILED), "reason": reason, "template": template_json(left)}
                values |= {"claimed_by": None, "due_at": None, "attempts": 0}
            _hold(connection, series_id, token, now, **values)
            undone = (OccurrenceState.PLANNED, OccurrenceState.BOOKED) if ends else (OccurrenceState.PLANNED,)
            of_created = occurrences.c.lease_id.in_(sa.select(leases.c.id).where(*_creating(series_id)))
            connection.execute(
                occurrences.update()
                .where(
                    occurrences.c.series_id == series_id,
                    sa.or_(occurrences.c.state.in_([str(state) for state in undone]), of_created),
                )
                .values(
                    state=str(OccurrenceState.CANCELLED if ends else OccurrenceState.UNFIT),
                    reason=None if ends else reason,
                    lease_id=None,
                )
            )
            _undo_leases(connection, _creating(series_id), reason, now=now)

        self._transactions.write(work)

    def refuse(self, series_id: str, token: str, lease: Lease, unfit: SeriesOccurrence, *, now: datetime) -> None:
        """Undo the lease of one occurrence that is being created; the occurrence is unfit. ClaimLost."""

        def work(connection: Connection) -> None:
            _hold(connection, series_id, token, now)
            _write_unfit(connection, series_id, [unfit])
            _undo_leases(connection, [*_creating(series_id), leases.c.id == lease.id], unfit.reason or "", now=now)

        self._transactions.write(work)

    def forget(self, series_id: str) -> None:
        """Remove a series that has failed while its request was answered; its leases are undone."""

        def work(connection: Connection) -> None:
            connection.execute(occurrences.delete().where(occurrences.c.series_id == series_id))
            connection.execute(series.delete().where(series.c.id == series_id))
            idempotency.forget(connection, series_id)

        self._transactions.write(work)


_BOOKED = (
    occurrences.update()
    .where(
        occurrences.c.series_id == sa.bindparam("of"),
        occurrences.c.recurrence_id == sa.bindparam("which"),
    )
    .values(state=str(OccurrenceState.BOOKED), lease_id=sa.bindparam("lease"), reason=None)
)
_UNFIT = (
    occurrences.update()
    .where(
        occurrences.c.series_id == sa.bindparam("of"),
        occurrences.c.recurrence_id == sa.bindparam("which"),
    )
    .values(
        state=str(OccurrenceState.UNFIT),
        lease_id=None,
        reason=sa.bindparam("why"),
        opening_starts_at=sa.bindparam("opens", type_=occurrences.c.opening_starts_at.type),
        opening_ends_at=sa.bindparam("closes", type_=occurrences.c.opening_ends_at.type),
    )
)


def _write_unfit(connection: Connection, series_id: str, unfit: Collection[SeriesOccurrence]) -> None:
    rows = [
        {
            "of": series_id,
            "which": local_text(each.recurrence_id),
            "why": each.reason,
            "opens": None if each.opening is None else each.opening.start,
            "closes": None if each.opening is None else each.opening.end,
        }
        for each in unfit
    ]
    if rows:
        connection.execute(_UNFIT, rows)


def _undo_leases(
    connection: Connection, which: Sequence[sa.ColumnElement[bool]], reason: str, *, now: datetime
) -> None:
    """Let the creations of leases fall due: who works on them undoes them. They are no part of the series any more."""
    connection.execute(
        events.update()
        .where(
            events.c.lease_id.in_(sa.select(leases.c.id).where(*which)),
            events.c.event_type == str(EventType.CREATE),
        )
        .values(due_at=now, updated_at=now, reason=reason, cause=cause_json(_UNBOOKED, reason))
    )
    connection.execute(
        leases.update().where(*which).values(series_id=None, recurrence_id=None, revision=leases.c.revision + 1)
    )


def _creating(series_id: str) -> list[sa.ColumnElement[bool]]:
    return [
        leases.c.series_id == series_id,
        leases.c.status == str(LeaseStatus.CREATING),
        leases.c.deleted_at.is_(None),
    ]


def _hold(connection: Connection, series_id: str, token: str, now: datetime, **values: Any) -> None:
    """Write to a series that is claimed with the token; ClaimLost if it is not any more."""
    held = (series.c.id == series_id, series.c.claimed_by == token)
    written = connection.execute(
        series.update().where(*held).values(updated_at=now, revision=series.c.revision + 1, **values)
    )
    if not written.rowcount:
        raise ClaimLost(f"series {series_id} was deleted, or another manager works on it")


def _is_purgeable(before: datetime) -> sa.ColumnElement[bool]:
    over = (str(SeriesStatus.ENDED), str(SeriesStatus.FAILED), str(SeriesStatus.DELETED))
    on_record = sa.exists().where(leases.c.series_id == series.c.id)
    return sa.and_(series.c.status.in_(over), series.c.updated_at < before, ~on_record)


def _one(connection: Connection, series_id: str) -> Series:
    row = connection.execute(sa.select(*SERIES_COLUMNS).where(series.c.id == series_id)).one_or_none()
    if row is None:
        raise unknown_series(series_id)
    return series_of(row)
