# SPDX-License-Identifier: Apache-2.0
"""The store of the journal: its entries get positions, and are read by these."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.paging import Page, Position, unknown_marker
from blazar.model.journal.entries import OTHER_LEASE, ObjectType, Verb
from blazar.model.journal.object_entries import SERVICE_ID, tell_configuration
from blazar.model.journal.views import JournalPage, JournalQuestion
from blazar.store.journal.numbering import NUMBERING_ROW, UNNUMBERED, hold_numbering, number_entries
from blazar.store.journal.rows import parse_numbered, write_entry
from blazar.store.sql.rows import chunks
from blazar.store.sql.tables import journal, journal_numbering, leases, reservations, resources
from blazar.store.sql.transactions import Clash, Transactions, atomic

KEPT_ENTRIES = 900
_OF_OFFERS = (str(Verb.OFFERED), str(Verb.WITHDRAWN))
"""What somebody is told of a lease that is not theirs: such an entry belongs to no revision."""


class JournalStore:
    """Numbers and reads entries. Of an object the last ``kept`` ones stay, beside the first, when it has many."""

    def __init__(self, transactions: Transactions, *, kept: int = KEPT_ENTRIES) -> None:
        self._transactions = transactions
        self._kept = kept

    def listen(self, listener: Callable[[], None]) -> None:
        """Call a listener, too, whenever entries were committed here."""
        self._transactions.journal_listeners.append(listener)

    def number(self, limit: int, *, now: datetime, own_events: Sequence[str] = ()) -> int:
        """Give positions to at most so many committed entries; return how many. Only a read if there are none.

        ``own_events`` are those that users of these entries are told of theirs, if they have said nothing else.
        """
        if self._transactions.scalar(UNNUMBERED.limit(1)) is None:
            return 0
        try:
            return self._number(limit, now, own_events)
        except Clash:
            # Another manager has just made the row that both hold from now on, or a user has just subscribed.
            return self._number(limit, now, own_events)

    @atomic
    def _number(self, connection: Connection, limit: int, now: datetime, own_events: Sequence[str]) -> int:
        return number_entries(connection, limit, kept=self._kept, now=now, own_events=own_events)

    def note_configuration(self, options: Mapping[str, str], *, version: str, at: datetime) -> bool:
        """Write that the service is configured otherwise than when that was last written; return whether it is.

        Managers that start at once write it once. ``options`` are fingerprints of values, by name.
        """
        try:
            return self._note_configuration(options, version, at)
        except Clash:
            # Another manager has just made the row that both hold from now on.
            return self._note_configuration(options, version, at)

    @atomic
    def _note_configuration(
        self, connection: Connection, options: Mapping[str, str], version: str, at: datetime
    ) -> bool:
        hold_numbering(connection)
        j = journal.c
        this = (j.object_type == str(ObjectType.SERVICE), j.object_id == SERVICE_ID, j.verb == str(Verb.CONFIGURED))
        query = sa.select(j.snapshot).where(*this, j.snapshot.is_not(None)).order_by(j.seq.desc()).limit(1)
        before = connection.execute(query).scalar()
        told = tell_configuration(before, options, version=version, at=at)
        write_entry(connection, told)
        return told is not None

    @atomic
    def forget(self, connection: Connection, before: datetime, limit: int) -> int:
        """Forget at most so many entries from before then, but those of leases, which go with these; return how many.

        Two statements, one if there are none. Entries without a position stay: nobody has had the chance to read them.
        """
        j = journal.c
        others = [str(type_) for type_ in ObjectType if type_ is not ObjectType.LEASE]
        old = (j.object_type.in_(others), j.at < before, j.position.is_not(None))
        ids = list(connection.execute(sa.select(j.seq).where(*old).order_by(j.seq).limit(limit)).scalars())
        if ids:
            connection.execute(journal.delete().where(j.seq.in_(ids)))
        return len(ids)

    def last_position(self) -> int:
        """Return the last position that was given; 0 if none was."""
        row = journal_numbering.c
        found: int | None = self._transactions.scalar(sa.select(row.position).where(row.id == NUMBERING_ROW))
        return found or 0

    def entries_after(
        self,
        position: int,
        projects: Collection[str] | None,
        limit: int,
        *,
        user_id: str | None = None,
        reader_id: str | None = None,
    ) -> JournalPage:
        """Return the first entries after a position, of objects of these projects or of all; three statements.

        With ``user_id`` of what is that user's, in whatever project. Of projects, without what others than the user
        ``reader_id`` are told alone. Whose the leases are that entries name is only
        read where it is needed: not of all.

        Who goes on after the last of them, or after ``last_position`` read before it got none, misses nothing.
        """
        j = journal.c
        query = sa.select(journal).where(j.position > position).order_by(j.position).limit(limit)
        if user_id is not None:
            query = query.where(j.user_id == user_id)
        elif projects is not None:
            query = query.where(j.project_id.in_(sorted(projects)))
            query = query.where(_select_audience(reader_id))
        with self._transactions.reading() as connection:
            rows = connection.execute(query).mappings().all()
            labels = read_labels(connection, rows)
            everything = projects is None and user_id is None
            whose = {} if everything else read_projects(connection, rows)
        return JournalPage(tuple(parse_numbered(row, labels) for row in rows), projects=whose)

    def page(
        self, question: JournalQuestion, *, since: datetime | None = None, until: datetime | None = None
    ) -> JournalPage:
        """Return a page of numbered entries, in four statements at most. InvalidInput for an unknown marker.

        ``since`` and ``until`` are the instants that the question names.
        """
        j, page = journal.c, question.page
        where = _select_wanted(question, guessing=self._transactions.engine.dialect.name == "sqlite")
        if since is not None:
            where.append(j.at >= since)
        if until is not None:
            where.append(j.at < until)
        with self._transactions.reading() as connection:
            order = j.position.desc() if page.descending else j.position
            follows = [] if page.after is None else [_follow(page)]
            query = sa.select(journal).where(*where, *follows).order_by(order).limit(page.limit + 1)
            rows = connection.execute(query).mappings().all()
            shown = rows[: page.limit]
            labels = read_labels(connection, shown)
            projects = read_projects(connection, shown)
            count = None
            if page.with_count:
                count = connection.execute(sa.select(sa.func.count()).select_from(journal).where(*where)).scalar_one()
        items = tuple(parse_numbered(row, labels) for row in shown)
        following = Position(None, str(items[-1].position)) if len(rows) > page.limit else None
        return JournalPage(items, following, count, projects)


def _select_wanted(question: JournalQuestion, *, guessing: bool) -> list[sa.ColumnElement[bool]]:
    """Select the entries that a question is about, on any page.

    ``guessing``: the database does not know how many entries have a value, and must not begin with what most have.
    """
    j = journal.c
    narrow = question.project_id or question.object_id or question.by
    verb = sa.func.lower(j.verb) if guessing and narrow else j.verb
    object_type = sa.func.lower(j.object_type) if guessing and question.object_id is None else j.object_type
    equal: tuple[tuple[sa.ColumnElement[Any], str | None], ...] = (
        (j.project_id, question.project_id),
        (object_type, question.object_type),
        (j.object_id, question.object_id),
        (verb, question.verb),
        (j.by_user_id, question.by),
        (j.by_project_id, question.by_project_id),
    )
    where: list[sa.ColumnElement[bool]] = [column == str(value) for column, value in equal if value is not None]
    where.append(j.position > question.after if question.after is not None else j.position.is_not(None))
    return where if question.reader_id is None else [*where, _select_audience(question.reader_id)]


def _select_audience(reader_id: str | None) -> sa.ColumnElement[bool]:
    """Select what all of a project are told, and what this user of it is told alone: of an offer to them."""
    j = journal.c
    for_all = (j.verb.not_in(_OF_OFFERS), j.revision.is_not(None), sa.func.coalesce(j.user_id, "") == "")
    return sa.or_(*for_all, j.user_id == reader_id)


def _follow(page: Page) -> sa.ColumnElement[bool]:
    """Return the condition for what follows the marker of a page, which is a position."""
    text = page.after if isinstance(page.after, str) else "" if page.after is None else page.after.id
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise unknown_marker()
    return journal.c.position < int(text) if page.descending else journal.c.position > int(text)


def read_projects(connection: Connection, rows: Sequence[Any]) -> dict[str, str]:
    """Return whose the leases and reservations are now that entries name, in one statement."""
    named = {change[2] for row in rows for change in row["changes"] if change[0] == OTHER_LEASE}
    parts = {change[3] for row in rows for change in row["changes"] if change[3]}
    parts |= {move[0] for row in rows for move in row["moves"]}
    if not named and not parts:
        return {}
    whose = sa.select(leases.c.id, leases.c.project_id).where(leases.c.id.in_(sorted(named)))
    of_parts = (
        sa.select(reservations.c.id, leases.c.project_id).join(leases).where(reservations.c.id.in_(sorted(parts)))
    )
    return {row[0]: row[1] for row in connection.execute(sa.union_all(whose, of_parts))}


def read_labels(connection: Connection, rows: Sequence[Any]) -> dict[int, str]:
    """Return the public ids of the resources that entries name, in one statement for each few thousand."""
    ids = sorted({id_ for row in rows for _, gone, come, *_ in row["moves"] for id_ in (*gone, *come)})
    found: dict[int, str] = {}
    for part in chunks(ids):
        query = sa.select(resources.c.id, resources.c.label).where(resources.c.id.in_(part))
        for id_, label in connection.execute(query):
            found[id_] = label
    return found
