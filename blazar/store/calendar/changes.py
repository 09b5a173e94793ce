# SPDX-License-Identifier: Apache-2.0
"""What has changed in the calendar since it was read, which a manager that keeps it in memory asks before each answer.

What is booked newly is found by the ids of its rows, so that a creation writes nothing for that. Each write that
changes or releases what was booked notes the resources. Resources themselves, and maintenance, are known by the version
of their kind. Numbers are taken before a commit, so that a lower one may be committed after a higher one: those that
are missing are asked for again, until no transaction can be alive that has taken them.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from enum import IntEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.values import dataclass, field
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.states import LeaseStatus
from blazar.store.sql.rows import AnyRow, chunks
from blazar.store.sql.tables import allocations, calendar_changes, leases
from blazar.store.sql.versions import CATALOG_VERSION, PRICE_VERSION, Versions

MOST_GAPS = 2000
"""How many missing numbers are asked for one by one; of more, all rows from the first of them on are read."""
MOST_ROWS = 20_000
"""Who has missed more rows than this begins again."""
PATIENCE_SECONDS = 300.0
"""How long a number is asked for: a statement takes a minute at most, and a write a few of them."""


class NumberedRows(IntEnum):
    """The two sequences of numbers that are followed; each row that is read says of which one it is."""

    ALLOCATIONS = 0
    NOTES = 1


_COLUMNS = {
    NumberedRows.ALLOCATIONS: (
        allocations.c.id,
        allocations.c.kind,
        allocations.c.resource_id,
        allocations.c.lease_id,
    ),
    NumberedRows.NOTES: (
        calendar_changes.c.seq,
        calendar_changes.c.kind,
        calendar_changes.c.resource_id,
        calendar_changes.c.token,
    ),
}
"""Of each its number, the kind and the resource that it tells of, and the token by which a row is known again."""


@dataclass(slots=True)
class ReadPosition:
    """How far one of the two sequences was read: its last number, what that row says, and which ones were missing."""

    last: int = 0
    token: str | None = None
    gaps: dict[int, float] = field(default_factory=dict)
    """Numbers below the last that were not there, with the seconds at which that was seen."""

    def forget_gaps(self, now: float) -> None:
        """Forget numbers that nobody can commit any more."""
        for number in [number for number, since in self.gaps.items() if now - since > PATIENCE_SECONDS]:
            del self.gaps[number]

    @property
    def first(self) -> int:
        """The number from which on rows are read."""
        return min(self.last, *self.gaps) if len(self.gaps) > MOST_GAPS else self.last

    def advance(self, tokens: Mapping[int, str], now: float) -> Collection[int] | None:
        """Go on to rows that were read, by number; return which are new, None if all may be another.

        The last row is read again each time: if it is gone or another, the database is not the one that was read.
        """
        last = self.last
        if last and tokens.get(last) != self.token:
            return None
        new = [number for number in tokens if number > last or number in self.gaps]
        if not new:
            return new
        latest = max(last, *new)
        if latest > last + MOST_ROWS:
            return None
        for number in range(last + 1, latest):
            if number not in tokens:
                self.gaps[number] = now
        for number in new:
            self.gaps.pop(number, None)
        if latest > last:
            self.last, self.token = latest, tokens[latest]
        return new


@dataclass(frozen=True, slots=True)
class Positions:
    """How far the rows of allocations and the notes of changes were read; ``of_each`` has both."""

    rows: ReadPosition = field(default_factory=ReadPosition)
    notes: ReadPosition = field(default_factory=ReadPosition)
    of_each: Mapping[NumberedRows, ReadPosition] = field(init=False)

    def __post_init__(self) -> None:
        # Frozen.
        object.__setattr__(self, "of_each", {NumberedRows.ALLOCATIONS: self.rows, NumberedRows.NOTES: self.notes})


_FIRST = {which: f"first{which.value}" for which in NumberedRows}
_FIRST_ROW, _FIRST_NOTE = _FIRST[NumberedRows.ALLOCATIONS], _FIRST[NumberedRows.NOTES]
_GAPS = {which: f"gaps{which.value}" for which in NumberedRows}


def _select_new(which: NumberedRows) -> sa.Select[Any]:
    """Return the query for rows of a sequence from a number on."""
    return _select_rows(which).where(_COLUMNS[which][0] >= sa.bindparam(_FIRST[which]))


def _select_missed(which: NumberedRows) -> sa.Select[Any]:
    """Return the query for rows of a sequence with these numbers."""
    return _select_rows(which).where(_COLUMNS[which][0].in_(sa.bindparam(_GAPS[which], expanding=True)))


def _select_rows(which: NumberedRows) -> sa.Select[Any]:
    return sa.select(sa.literal_column(str(which.value)), *_COLUMNS[which])


WAITING = (leases.c.status == str(LeaseStatus.WAITING), leases.c.deleted_at.is_(None))
"""Selects the leases that wait for their turn."""

_ANYBODY = sa.select(sa.exists().where(*WAITING))
_FACTS = 2
"""What the first column says of the row with the versions, and whether a lease waits."""

_KNOWN = sa.select(
    sa.literal_column(str(_FACTS)),
    sa.func.coalesce(CATALOG_VERSION, 0),
    sa.cast(sa.null(), allocations.c.kind.type),
    sa.func.coalesce(PRICE_VERSION, 0),
    sa.case((sa.exists().where(*WAITING), sa.literal_column("'waits'")), else_=sa.null()),
)

# Statements of every question, built once.
_NEW = sa.union_all(_KNOWN, *map(_select_new, NumberedRows)).limit(MOST_ROWS)
_NEW_AND_MISSED = sa.union_all(_KNOWN, *map(_select_new, NumberedRows), *map(_select_missed, NumberedRows)).limit(
    MOST_ROWS
)


@dataclass(frozen=True, slots=True)
class CalendarNews:
    """What is known of a kind in one transaction: its versions, whether a lease waits, and what has ``changed``.

    These are the resources with changes since the last time, each with the leases of its new rows, and None for a note
    of another change. None if it cannot be told.
    """

    versions: Versions
    anybody_waits: bool
    changed: Mapping[int, Sequence[str | None]] | None


def read_news(connection: Connection, kind: str, positions: Positions, now: float) -> CalendarNews | None:
    """Return what is known of a kind, with what has changed since these positions, which are advanced; one statement.

    None if there are too many changes. ``now`` is in seconds of a clock that never goes back.
    """
    query, values = _NEW, {_FIRST_ROW: positions.rows.last, _FIRST_NOTE: positions.notes.last}
    if positions.rows.gaps or positions.notes.gaps:
        query, values = _NEW_AND_MISSED, _ask_for_gaps(positions)
    rows = connection.execute(query, {"of": kind, **values}).all()
    if len(rows) >= MOST_ROWS:
        return None
    (facts,) = (row for row in rows if row[0] == _FACTS)
    changed = _advance(positions, [row for row in rows if row[0] != _FACTS], kind, now)
    return CalendarNews((facts[1], facts[3]), facts[4] is not None, changed)


def is_anybody_waiting(connection: Connection) -> bool:
    """Return whether a lease waits; one statement."""
    return bool(connection.execute(_ANYBODY).scalar())


def _advance(
    positions: Positions, rows: Sequence[AnyRow], kind: str, now: float
) -> Mapping[int, Sequence[str | None]] | None:
    """Advance positions to these rows; return what has ``changed`` of a kind by those that are new."""
    tokens: Mapping[int, dict[int, str]] = {NumberedRows.ALLOCATIONS: {}, NumberedRows.NOTES: {}}
    for which, number, _, _, token in rows:
        tokens[which][number] = token
    changed: dict[int, list[str | None]] = defaultdict(list)
    for which, position in positions.of_each.items():
        found = position.advance(tokens[which], now)
        if found is None:
            return None
        # Only now: who was stopped for long has to ask once more for what was committed meanwhile.
        position.forget_gaps(now)
        new, is_row = set(found), which is NumberedRows.ALLOCATIONS
        for of_which, number, of_kind, id_, token in rows if new else ():
            if of_which == which and of_kind == kind and number in new:
                changed[id_].append(token if is_row else None)
    return changed


def _ask_for_gaps(positions: Positions) -> dict[str, Any]:
    """Return the values of the query for rows that are new or were missing."""
    values: dict[str, Any] = {}
    for which, position in positions.of_each.items():
        values[_FIRST[which]] = position.first
        values[_GAPS[which]] = sorted(position.gaps) if len(position.gaps) <= MOST_GAPS else []
    return values


def read_positions(connection: Connection, now: float) -> Positions:
    """Return how far one has read who reads all now; two statements.

    Of the last numbers those that are missing may still be committed.
    """
    found = []
    for columns in _COLUMNS.values():
        query = sa.select(*columns).order_by(columns[0].desc()).limit(MOST_GAPS)
        found.append(_find_gaps(connection.execute(query).all(), now))
    return Positions(*found)


def _find_gaps(rows: Sequence[AnyRow], now: float) -> ReadPosition:
    if not rows:
        return ReadPosition()
    there = {row[0] for row in rows}
    last, *_, token = rows[0]
    begin = max(1, last - MOST_GAPS + 1) if len(rows) < MOST_GAPS else rows[-1][0]
    missing = [number for number in range(max(begin, last - MOST_GAPS), last) if number not in there]
    return ReadPosition(last, token, dict.fromkeys(missing, now))


def note_changes(connection: Connection, changed: Iterable[Allocation], at: datetime) -> None:
    """Note the resources of allocations that are changed; one statement, none without them."""
    token, which = str(uuid.uuid4()), sorted({(str(a.kind), a.resource_id) for a in changed})
    rows = [{"kind": kind, "resource_id": id_, "token": token, "at": at} for kind, id_ in which]
    if rows:
        connection.execute(_NOTE, rows)


def note_changes_of(connection: Connection, which: sa.ColumnElement[bool], at: datetime) -> None:
    """Note the resources of those allocations that are about to be changed; one statement."""
    a = allocations.c
    query = sa.select(a.kind, a.resource_id, sa.literal(str(uuid.uuid4())), sa.literal(at, a.starts_at.type))
    names = ["kind", "resource_id", "token", "at"]
    connection.execute(calendar_changes.insert().from_select(names, query.where(which).distinct()))


def forget_changes(connection: Connection, before: datetime, limit: int) -> int:
    """Forget at most ``limit`` notes from before then, never the last; return how many.

    They go in their order, whatever the clocks were that noted them: who has read a note that is still there misses
    none after it.
    """
    c = calendar_changes.c
    last, recent = sa.select(sa.func.max(c.seq)), sa.select(sa.func.min(c.seq)).where(c.at >= before)
    until = sa.func.coalesce(recent.scalar_subquery(), last.scalar_subquery())
    old = sa.select(c.seq).where(c.seq < until).order_by(c.seq).limit(limit)
    numbers = list(connection.execute(old).scalars())
    for part in chunks(numbers):
        connection.execute(calendar_changes.delete().where(c.seq.in_(part)))
    return len(numbers)


_NOTE = calendar_changes.insert()
