# SPDX-License-Identifier: Apache-2.0
"""Positions of entries: a reader who asks for what comes after one misses nothing, whenever it was committed.

The numbers of the database are those of insertion: what got the lower one may be committed later, after a reader has
gone past it. So entries get a second number once they are committed. Who gives numbers holds the one row that says
which was the last, so that they are committed in their order. Of one object that is the order of its revisions, since
each write of it follows the commit of the one before.

After that, the middle of long histories is left out, of entries with a number only: a reader has had the chance to see
them, and finds in their place one that says how many they were.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.journal.entries import ENTRIES, ObjectType, Verb
from blazar.store.journal.own_subscriptions import add_own_subscriptions, wake_own_subscriptions
from blazar.store.sql.tables import journal, journal_numbering
from blazar.store.work.claims import wake_subscriptions

NUMBERING_ROW = 1
"""The only row of the table."""
FIRST_ENTRIES = 100
"""The first entries of an object's history, which are always kept."""
PORTION = 10
"""More entries than are kept, after which those that are too many are left out."""

_J, _N = journal.c, journal_numbering.c
UNNUMBERED = sa.select(_J.seq).where(_J.position.is_(None)).order_by(_J.position, _J.seq)
_NEXT = sa.select(_J.seq, _J.object_type, _J.object_id, _J.revision, _J.project_id, _J.user_id, _J.verb).where(
    _J.position.is_(None)
)
_OF_THE_OBJECT = sa.or_(_J.object_type != str(ObjectType.LEASE), _J.revision.is_not(None))
"""Not what another project is told of a lease, too: that is no part of the lease's history."""
_ORDERED = _NEXT.order_by(_J.position, _J.seq)
_GIVE = (
    journal.update()
    .where(_J.seq == sa.bindparam("of_seq", type_=_J.seq.type))
    .values(position=sa.bindparam("new_position", type_=_J.position.type))
)
_GIVE_ALL = sa.text(
    "UPDATE journal SET position = given.position FROM unnest(CAST(:seqs AS BIGINT[]), CAST(:positions AS BIGINT[])) "
    "AS given (seq, position) WHERE journal.seq = given.seq"
)


def number_entries(
    connection: Connection, limit: int, *, kept: int, now: datetime, own_events: Sequence[str] = ()
) -> int:
    """Number at most so many committed entries, and wake those who are told of them; return how many.

    Users whose entries they are subscribe by that to their ``own_events``, if there are any. Six statements, two more
    for such users, one if histories may have become too long, and four more if some have: of those the first and the
    last ``kept`` entries stay.
    """
    last = hold_numbering(connection)
    rows = connection.execute(_ORDERED.limit(limit)).all()
    if not rows:
        return 0
    ordered = order_rows([(row.seq, (row.object_type, row.object_id), row.revision) for row in rows])
    _give_positions(connection, ordered, last)
    held = journal_numbering.update().where(_N.id == NUMBERING_ROW)
    connection.execute(held.values(position=last + len(rows)))
    newest = last + len(rows)
    users = {row.user_id for row in rows if row.user_id}
    if own_events and users:
        add_own_subscriptions(connection, users, own_events, last=last, newest=newest, now=now)
    wake_subscriptions(connection, {row.project_id for row in rows}, newest, now=now)
    wake_own_subscriptions(connection, users, last=last, newest=newest, now=now)
    _thin_out_histories(connection, rows, kept)
    return len(rows)


def _give_positions(connection: Connection, ordered: Sequence[int], last: int) -> None:
    """Write the positions after the last one, in one statement; PostgreSQL takes several times as long for many."""
    positions = list(range(last + 1, last + 1 + len(ordered)))
    if connection.dialect.name == "postgresql":
        connection.execute(_GIVE_ALL, {"seqs": list(ordered), "positions": positions})
        return
    pairs = zip(ordered, positions, strict=True)
    connection.execute(_GIVE, [{"of_seq": seq, "new_position": position} for seq, position in pairs])


def order_rows(rows: Sequence[tuple[int, object, int | None]]) -> list[int]:
    """Return the numbers of rows, each with an object and its revision, in the order in which they get positions.

    That is theirs, but for the entries of one object, which take the places of these in the order of revisions: nodes
    of one database may give numbers that do not follow each other.
    """
    places: dict[object, list[int]] = defaultdict(list)
    for place, (_, about, revision) in enumerate(rows):
        if revision is not None:
            places[about].append(place)
    found = [seq for seq, _, _ in rows]
    for of_one in places.values():
        for place, (_, seq) in zip(of_one, sorted((rows[at][2], rows[at][0]) for at in of_one), strict=True):
            found[place] = seq
    return found


def hold_numbering(connection: Connection) -> int:
    """Lock the row of the last position until the end of the transaction; return that position.

    Clash if another transaction has just made the row.
    """
    query = sa.select(_N.position).where(_N.id == NUMBERING_ROW).with_for_update()
    last: int | None = connection.execute(query).scalar()
    if last is None:
        last = connection.execute(sa.select(sa.func.coalesce(sa.func.max(_J.position), 0))).scalar_one()
        connection.execute(journal_numbering.insert().values(id=NUMBERING_ROW, position=last))
    return last


History = tuple[str, str, str | None]
"""The type and the id of an object, and the project that has given a lease away: what it is told is one of its own."""


_GIVER: sa.Label[str | None] = sa.literal_column(
    f"CASE WHEN journal.object_type = '{ObjectType.LEASE}' AND journal.revision IS NULL THEN journal.project_id END",
    _J.project_id.type,
).label("giver")


def _history_of(row: Any) -> History:
    given = row.object_type == str(ObjectType.LEASE) and row.revision is None
    return row.object_type, row.object_id, row.project_id if given else None


def _may_be_long(row: Any, most: int) -> bool:
    """Return whether the history may have become long that an entry belongs to; of most leases revisions tell."""
    return row.revision is None or row.revision >= most or row.verb == str(Verb.MAINTENANCE)


def _thin_out_histories(connection: Connection, rows: Collection[Any], kept: int) -> None:
    """Leave out the middle of histories that have become long; most leases have had too few revisions for that.

    What is left out at a time is a few entries, so that it is rarely done. One statement, which counts them; four more
    if some are too many.
    """
    most = FIRST_ENTRIES + 1 + kept
    perhaps = {_history_of(row) for row in rows if _may_be_long(row, most)}
    if not perhaps or not (long := _find_long(connection, perhaps, most + PORTION)):
        return
    columns = (_J.seq, _J.position, _J.object_type, _J.object_id, _J.revision, _J.project_id, _J.verb, _J.changes)
    of_these = sa.or_(*map(_select_history, sorted(long, key=str)))
    query = sa.select(*columns).where(of_these, _J.position.is_not(None))
    found: dict[History, list[Any]] = defaultdict(list)
    for row in connection.execute(query.order_by(_J.object_type, _J.object_id, _J.position)):
        found[_history_of(row)].append(row)
    gone = [every[FIRST_ENTRIES:-kept] for every in found.values()]
    last = sa.select(journal).where(_J.seq.in_([some[-1].seq for some in gone]))
    kept_rows = {row["seq"]: dict(row) for row in connection.execute(last).mappings()}
    connection.execute(journal.delete().where(sa.or_(*(_select_between(some) for some in gone))))
    sums = [_sum_up_entries(kept_rows[some[-1].seq], some) for some in gone]
    connection.execute(journal.insert(), sums)


def _find_long(connection: Connection, perhaps: Collection[History], count: int) -> set[History]:
    """Return which histories have so many entries; in one statement, which reads no more than their number."""
    query = (
        sa.select(_J.object_type, _J.object_id, _GIVER)
        .where(sa.or_(*map(_select_history, sorted(perhaps, key=str))), _J.position.is_not(None))
        .group_by(_J.object_type, _J.object_id, "giver")
        .having(sa.func.count() >= count)
    )
    return {(row.object_type, row.object_id, row.giver) for row in connection.execute(query)}


def _select_history(history: History) -> sa.ColumnElement[bool]:
    object_type, object_id, giver = history
    given = sa.and_(_J.revision.is_(None), _J.project_id == giver)
    of_one = (_J.object_type == object_type, _J.object_id == object_id)
    return sa.and_(*of_one, _OF_THE_OBJECT if giver is None else given)


def _select_between(some: Sequence[Any]) -> sa.ColumnElement[bool]:
    """Select entries of one history that follow each other."""
    first, last = some[0], some[-1]
    return sa.and_(_select_history(_history_of(first)), _J.position.between(first.position, last.position))


def _sum_up_entries(last: Mapping[str, Any], gone: Sequence[Any]) -> dict[str, Any]:
    """Return the entry in the place of others, at that of the last one; one that stood for more counts as these."""
    count = sum(count_entries(row.verb, row.changes) for row in gone)
    return {
        **{key: value for key, value in last.items() if key != "seq"},
        "id": str(uuid.uuid4()),
        "verb": str(Verb.LEFT_OUT),
        "by_user_id": None,
        "by_project_id": None,
        "by_operator": False,
        "request_id": None,
        "global_request_id": None,
        "changes": [[ENTRIES, None, str(count), None]],
        "moves": [],
        "reason": None,
        "snapshot": None,
    }


def count_entries(verb: str, changes: Sequence[Sequence[Any]]) -> int:
    """Return for how many entries an entry stands."""
    return int(changes[0][2]) if verb == str(Verb.LEFT_OUT) else 1
