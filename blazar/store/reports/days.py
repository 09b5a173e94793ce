# SPDX-License-Identifier: Apache-2.0
"""The store of closed days: each is written as a whole, or not at all, as often as need be."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date, datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.journal.entries import ObjectType, Verb
from blazar.model.reports.days import ClosedDay, TouchedTime, UsageDay, find_touched_time
from blazar.model.reports.sums import DrawnEnergy, RecordedSum, ResourceUse
from blazar.model.reports.usage import Measure
from blazar.store.sql.rows import CHUNK, chunks
from blazar.store.sql.tables import journal, journal_numbering, leases, usage_closed_days, usage_days
from blazar.store.sql.transactions import Transactions, atomic

_D = usage_days.c
_WHOSE = (_D.lease_id, _D.project_id, _D.user_id, _D.lease_kind, _D.resource_type, _D.resource_id, _D.kind, _D.region)
MOST_ENTRIES = 5000
"""Entries that are read at a time."""


class UsageDayStore:
    """Reads and writes closed days."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def list_closed(self, time_zone: str, first: date | None = None, last: date | None = None) -> Mapping[date, int]:
        """Return the closed days of a zone, and until which position each is computed; one statement."""
        c = usage_closed_days.c
        query = sa.select(c.day, c.computed_through).where(c.time_zone == time_zone)
        if first is not None and last is not None:
            query = query.where(c.day >= first, c.day <= last)
        with self._transactions.reading() as connection:
            return {day: int(position) for day, position in connection.execute(query)}

    def read_position(self) -> int:
        """Return the position of the last entry of the journal; one statement."""
        with self._transactions.reading() as connection:
            return int(connection.execute(sa.select(journal_numbering.c.position)).scalar() or 0)

    def list_touched(self, after: int) -> tuple[int, Sequence[TouchedTime]]:
        """Return what the next entries after a position may have changed, and the position of the last of them."""
        j = journal.c
        query = (
            sa.select(j.position, j.object_type, j.verb, j.at, j.snapshot)
            .where(j.position > after)
            .order_by(j.position)
            .limit(MOST_ENTRIES)
        )
        times = []
        last = after
        with self._transactions.reading() as connection:
            for position, object_type, verb, at, snapshot in connection.execute(query):
                last = int(position)
                start = (snapshot or {}).get("start_date")
                begins = None if start is None else datetime.fromisoformat(start)
                time = find_touched_time(ObjectType(object_type), Verb(verb), at, begins)
                if time is not None:
                    times.append(time)
        return last, times

    def replace_day(self, closed: ClosedDay, rows: Sequence[UsageDay], *, at: datetime) -> None:
        """Write a day in the place of what is on record of it. What purged leases had in it stays."""
        values = [_row_of(row) for row in rows]

        def write_day(connection: Connection) -> None:
            known = sa.select(leases.c.id)
            connection.execute(usage_days.delete().where(_D.day == closed.day, _D.lease_id.in_(known)))
            connection.execute(usage_closed_days.delete().where(usage_closed_days.c.day == closed.day))
            for start in range(0, len(values), CHUNK):
                connection.execute(usage_days.insert(), values[start : start + CHUNK])
            connection.execute(
                usage_closed_days.insert().values(
                    day=closed.day, time_zone=closed.time_zone, computed_through=closed.computed_through, computed_at=at
                )
            )

        self._transactions.write_beside_others(write_day)

    @atomic
    def note_position(
        self, connection: Connection, time_zone: str, days: Collection[date], *, after: int, position: int
    ) -> None:
        """Write that no entry after a position, and until another one, has changed what is on record of closed days.

        Not of one that a slow manager has written meanwhile as it was before.
        """
        c = usage_closed_days.c
        behind = (c.time_zone == time_zone, c.computed_through >= after, c.computed_through < position)
        for part in chunks(sorted(days)):
            change = usage_closed_days.update().where(*behind, c.day.in_(part))
            connection.execute(change.values(computed_through=position))

    def sum_days(
        self, first: date, last: date, borders: Sequence[date], *, project_id: str | None = None
    ) -> Iterator[RecordedSum]:
        """Yield what leases had from one day to another, by part: each begins with one of the borders, in order.

        One statement.
        """
        number = sa.case(*((_D.day >= borders[index], index) for index in range(len(borders) - 1, 0, -1)), else_=0)
        part = number.label("part") if len(borders) > 1 else sa.literal(0).label("part")
        sums = [sa.func.sum(_D[str(measure)]) for measure in Measure]
        unmetered = sa.case((_D.milliwatt_seconds.is_(None), _D.reserved + _D.overrun), else_=0)
        energy = [sa.func.sum(column) for column in (unmetered, _D.milliwatt_seconds, _D.carbon_mg)]
        query = sa.select(part, *_WHOSE, *sums, *energy).where(_D.day >= first, _D.day <= last)
        if project_id is not None:
            query = query.where(_D.project_id == project_id)
        with self._transactions.reading() as connection:
            for place, *rest in connection.execute(query.group_by(sa.text("part"), *_WHOSE)):
                *values, unmetered, milliwatts, carbon = rest[len(_WHOSE) :]
                drawn = None
                if milliwatts is not None:
                    drawn = DrawnEnergy(int(milliwatts), None if carbon is None else int(carbon))
                seconds = dict(zip(Measure, map(int, values), strict=True))
                use = ResourceUse(*(*rest[: len(_WHOSE)], 0, 0, 0))
                yield RecordedSum(int(place), use, seconds, int(unmetered), drawn)


def _row_of(row: UsageDay) -> dict[str, object]:
    whose = {column.name: getattr(row.whose, column.name) for column in _WHOSE}
    drawn = row.drawn
    return {
        **{"day": row.day, **whose, **{str(measure): row.seconds.get(measure, 0) for measure in Measure}},
        "milliwatt_seconds": None if drawn is None else drawn.milliwatt_seconds,
        "carbon_mg": None if drawn is None else drawn.carbon_mg,
    }
