# SPDX-License-Identifier: Apache-2.0
"""The work on series: who does it has claimed the series in its row, as that on a lease is claimed in its events.

Each write checks the claim in its own transaction, so that nothing is booked for a series that was deleted, or that
another manager has taken over. The number of writes grows with the occurrences in chunks only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.context import current
from blazar.model.base.reasons import Cause, ReasonCode
from blazar.model.calendar.allocations import Allocation
from blazar.model.journal.object_entries import tell_series
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus
from blazar.model.leases.stored import cause_json
from blazar.model.series.details import OccurrenceState, Series, SeriesOccurrence, SeriesStatus, Template
from blazar.model.use.resource_hours import OutboxMessage
from blazar.store.booking import lease_writes
from blazar.store.booking.bookings import BookingStore
from blazar.store.booking.commit import Commit
from blazar.store.journal.rows import write_entry
from blazar.store.series.series import OF_SERIES, read_series
from blazar.store.series.series_rows import occurrence_row, template_json
from blazar.store.sql import state_log
from blazar.store.sql.rows import ALLOCATION_COLUMNS, allocation_of, local_text
from blazar.store.sql.tables import allocations, events, leases, occurrences, series
from blazar.store.sql.transactions import Transactions, atomic
from blazar.store.work import outbox
from blazar.store.work.claims import SERIES

_UNBOOKED = Cause(ReasonCode.RESOURCE_NOT_READY)


class SeriesWorkStore:
    """Reads the work to do for series, and writes what was done."""

    def __init__(self, transactions: Transactions, bookings: BookingStore) -> None:
        self._transactions = transactions
        self._bookings = bookings

    def find_due(self, now: datetime, limit: int) -> tuple[str, ...]:
        """Return the ids of series on which there is work to do, the longest waiting first; one statement."""
        query = sa.select(series.c.id).where(series.c.due_at <= now).order_by(series.c.due_at).limit(limit)
        return tuple(self._transactions.scalars(query))

    def load_planned(self, series_id: str) -> tuple[SeriesOccurrence, ...]:
        """Return the occurrences that are to be booked, earliest first; one statement."""
        where = (occurrences.c.series_id == series_id, occurrences.c.state == str(OccurrenceState.PLANNED))
        query = sa.select(occurrences).where(*where).order_by(occurrences.c.starts_at, occurrences.c.recurrence_id)
        rows = self._transactions.select(query)
        return tuple(
            SeriesOccurrence(datetime.fromisoformat(row.recurrence_id), row.starts_at, row.ends_at) for row in rows
        )

    def load_recurrence_ids(self, series_id: str, since: datetime) -> frozenset[datetime]:
        """Return the recurrence ids of the occurrences on record that start from then on; one statement."""
        where = (occurrences.c.series_id == series_id, occurrences.c.starts_at >= since)
        with self._transactions.reading() as connection:
            found = connection.execute(sa.select(occurrences.c.recurrence_id).where(*where)).scalars()
            return frozenset(map(datetime.fromisoformat, found))

    def find_last_end(self, series_id: str) -> datetime | None:
        """Return when the last lease of a series ends that has not; None if there is none. One statement."""
        where = (leases.c.series_id == series_id, *OF_SERIES, leases.c.status != str(LeaseStatus.ERROR))
        query = sa.select(sa.func.max(leases.c.ends_at, type_=leases.c.ends_at.type)).where(*where)
        found: datetime | None = self._transactions.scalar(query)
        return found

    def load_new_allocations(self, series_id: str) -> Mapping[str, tuple[Allocation, ...]]:
        """Return what the leases of a series that are being created have, by lease; one statement."""
        query = sa.select(*ALLOCATION_COLUMNS).join(leases, leases.c.id == allocations.c.lease_id)
        live = (*_creation_conditions(series_id), allocations.c.released_at.is_(None))
        found: dict[str, list[Allocation]] = defaultdict(list)
        with self._transactions.reading() as connection:
            for row in connection.execute(query.where(*live).order_by(allocations.c.id)):
                found[row.lease_id].append(allocation_of(row))
        return {lease_id: tuple(allocations) for lease_id, allocations in found.items()}

    @atomic
    def claim(
        self, connection: Connection, series_id: str, token: str, *, now: datetime, until: datetime
    ) -> Series | None:
        """Claim a series on which there is work to do; None if another manager was faster."""
        claimed = SERIES.claim(connection, series_id, token, series.c.due_at <= now, until=until)
        return read_series(connection, series_id) if claimed else None

    @atomic
    def release(
        self,
        connection: Connection,
        series_id: str,
        token: str,
        *,
        due_at: datetime | None,
        now: datetime,
        failed: bool = False,
    ) -> None:
        """Let go of a series, on which there is work again then; ``failed``: this attempt counts. ClaimLost."""
        attempts = series.c.attempts + 1 if failed else 0
        _write_claimed(connection, series_id, token, now, **_release_row(due_at, attempts))

    @atomic
    def insert_occurrences(
        self,
        connection: Connection,
        series_id: str,
        token: str,
        found: Collection[SeriesOccurrence],
        *,
        booked_until: datetime,
        now: datetime,
    ) -> None:
        """Insert occurrences that have come near, in two statements. ClaimLost."""
        _write_claimed(connection, series_id, token, now, booked_until=booked_until)
        if found:
            connection.execute(occurrences.insert(), [occurrence_row(series_id, occurrence) for occurrence in found])

    def book_occurrences(
        self, series_id: str, token: str, commit: Commit, unfit: Collection[SeriesOccurrence]
    ) -> tuple[Lease, ...]:
        """Write the new leases of some occurrences, and why others are unfit; return them. One transaction.

        ClaimLost, and the errors of ``BookingStore.commit``.
        """
        booked = [
            {"of": series_id, "which": local_text(part.recurrence_id), "lease": write.after.id}
            for write in commit.new
            if (part := write.after.series) is not None
        ]

        def rows(connection: Connection) -> None:
            if booked:
                connection.execute(_BOOKED, booked)
            _write_unfit(connection, series_id, unfit)

        return self._bookings.commit(
            commit, fence=lambda connection: _write_claimed(connection, series_id, token, commit.at), rows=rows
        )

    @atomic
    def write_messages(
        self, connection: Connection, series_id: str, token: str, messages: Collection[OutboxMessage], *, now: datetime
    ) -> None:
        """Write outbox messages before they are sent. ClaimLost."""
        _write_claimed(connection, series_id, token, now)
        outbox.write_messages(connection, messages, at=now)

    @atomic
    def activate_leases(
        self,
        connection: Connection,
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
        _write_claimed(connection, series_id, token, now, status=str(SeriesStatus.ACTIVE), **_release_row(due_at))
        created = sa.select(leases.c.id).where(*_creation_conditions(series_id))
        lease_writes.save_cloud_ids(connection, ready)
        connection.execute(
            events.update()
            .where(events.c.lease_id.in_(created), events.c.event_type == str(EventType.CREATE))
            .values(status=str(EventStatus.DONE), due_at=None, updated_at=now)
        )
        timetable = [str(kind) for kind in (EventType.START, EventType.BEFORE_END, EventType.END, EventType.REMIND)]
        connection.execute(
            events.update()
            .where(events.c.lease_id.in_(created), events.c.event_type.in_(timetable))
            .values(due_at=events.c.time)
        )
        state_log.note_pending(connection, _creation_conditions(series_id), f"series {series_id}")
        connection.execute(
            leases.update()
            .where(*_creation_conditions(series_id))
            .values(status=str(LeaseStatus.PENDING), revision=leases.c.revision + 1, updated_at=now)
        )
        outbox.write_messages(connection, messages, at=now)

    @atomic
    def end_series(
        self,
        connection: Connection,
        series_id: str,
        token: str,
        template: Template,
        *,
        now: datetime,
        deleted: bool = False,
    ) -> None:
        """Write that a series has ended, or is ``deleted``; its ``template`` has no secrets any more. ClaimLost."""
        status = SeriesStatus.DELETED if deleted else SeriesStatus.ENDED
        values: dict[str, Any] = {"status": str(status), "template": template_json(template), **_release_row(None)}
        if deleted:
            values["deleted_at"] = now
        _write_claimed(connection, series_id, token, now, **values)
        if not deleted:
            _tell_end(connection, series_id, now)

    @atomic
    def undo_leases(
        self, connection: Connection, series_id: str, token: str, *, reason: str, now: datetime, left: Template | None
    ) -> None:
        """Undo all leases of a series that are being created: their creations are due, and any manager undoes them.

        ``left``: the series has failed, and that is left of its template. Else it goes on without them, and its
        occurrences are unfit for that reason. ClaimLost.
        """
        ends = left is not None
        values: dict[str, Any] = {}
        if left is not None:
            values = {"status": str(SeriesStatus.FAILED), "reason": reason, "template": template_json(left)}
            values |= _release_row(None)
        _write_claimed(connection, series_id, token, now, **values)
        if ends:
            _tell_end(connection, series_id, now)
        undone = (OccurrenceState.PLANNED, OccurrenceState.BOOKED) if ends else (OccurrenceState.PLANNED,)
        of_created = occurrences.c.lease_id.in_(sa.select(leases.c.id).where(*_creation_conditions(series_id)))
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
        _undo_leases(connection, _creation_conditions(series_id), reason, now=now)

    @atomic
    def refuse_occurrence(
        self,
        connection: Connection,
        series_id: str,
        token: str,
        lease: Lease,
        unfit: SeriesOccurrence,
        *,
        now: datetime,
    ) -> None:
        """Undo the lease of one occurrence that is being created; the occurrence is unfit. ClaimLost."""
        _write_claimed(connection, series_id, token, now)
        _write_unfit(connection, series_id, [unfit])
        _undo_leases(
            connection, [*_creation_conditions(series_id), leases.c.id == lease.id], unfit.reason or "", now=now
        )


_BOOKED = (
    occurrences.update()
    .where(occurrences.c.series_id == sa.bindparam("of"), occurrences.c.recurrence_id == sa.bindparam("which"))
    .values(state=str(OccurrenceState.BOOKED), lease_id=sa.bindparam("lease"), reason=None)
)
_UNFIT = (
    occurrences.update()
    .where(occurrences.c.series_id == sa.bindparam("of"), occurrences.c.recurrence_id == sa.bindparam("which"))
    .values(
        state=str(OccurrenceState.UNFIT),
        lease_id=None,
        reason=sa.bindparam("why"),
        opening_starts_at=sa.bindparam("opens", type_=occurrences.c.opening_starts_at.type),
        opening_ends_at=sa.bindparam("closes", type_=occurrences.c.opening_ends_at.type),
    )
)


def _tell_end(connection: Connection, series_id: str, now: datetime) -> None:
    """Tell that a series has ended or failed, as this transaction has written."""
    found = read_series(connection, series_id)
    before = replace(found, status=SeriesStatus.ACTIVE)
    write_entry(connection, tell_series(before, found, at=now, by=current().actor))


def _write_unfit(connection: Connection, series_id: str, unfit: Collection[SeriesOccurrence]) -> None:
    rows = [
        {
            "of": series_id,
            "which": local_text(occurrence.recurrence_id),
            "why": occurrence.reason,
            "opens": None if occurrence.opening is None else occurrence.opening.start,
            "closes": None if occurrence.opening is None else occurrence.opening.end,
        }
        for occurrence in unfit
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
            events.c.lease_id.in_(sa.select(leases.c.id).where(*which)), events.c.event_type == str(EventType.CREATE)
        )
        .values(due_at=now, updated_at=now, reason=reason, cause=cause_json(_UNBOOKED, reason))
    )
    connection.execute(
        leases.update().where(*which).values(series_id=None, recurrence_id=None, revision=leases.c.revision + 1)
    )


def _creation_conditions(series_id: str) -> list[sa.ColumnElement[bool]]:
    return [
        leases.c.series_id == series_id,
        leases.c.status == str(LeaseStatus.CREATING),
        leases.c.deleted_at.is_(None),
    ]


def _write_claimed(connection: Connection, series_id: str, token: str, now: datetime, **values: Any) -> None:
    """Write to a series that is claimed with the token; ClaimLost if it is not any more."""
    SERIES.write_claimed(connection, series_id, token, updated_at=now, revision=series.c.revision + 1, **values)


def _release_row(due_at: datetime | None, attempts: object = 0) -> dict[str, Any]:
    """Return the columns of a series that nobody works on any more, with when there is work on it again."""
    return {"claimed_by": None, "due_at": due_at, "attempts": attempts}
