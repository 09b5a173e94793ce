# SPDX-License-Identifier: Apache-2.0
"""The store of the journal: its entries get positions, and are read by these."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.journal.entries import NumberedEntry
from blazar.store.journal.numbering import NUMBERING_ROW, UNNUMBERED, number_entries
from blazar.store.journal.rows import parse_numbered
from blazar.store.sql.rows import chunks
from blazar.store.sql.tables import journal, journal_numbering, resources
from blazar.store.sql.transactions import Clash, Transactions, atomic

KEPT_ENTRIES = 200


class JournalStore:
    """Numbers and reads entries. Of an object the last ``kept`` ones stay, beside the first, when it has many."""

    def __init__(self, transactions: Transactions, *, kept: int = KEPT_ENTRIES) -> None:
        self._transactions = transactions
        self._kept = kept

    def listen(self, listener: Callable[[], None]) -> None:
        """Call a listener, too, whenever entries were committed here."""
        self._transactions.journal_listeners.append(listener)

    def number(self, limit: int) -> int:
        """Give positions to at most so many committed entries; return how many. Only a read if there are none."""
        if self._transactions.scalar(UNNUMBERED.limit(1)) is None:
            return 0
        try:
            return self._number(limit)
        except Clash:
            # Another manager has just made the row that both hold from now on.
            return self._number(limit)

    @atomic
    def _number(self, connection: Connection, limit: int) -> int:
        return number_entries(connection, limit, kept=self._kept)

    def last_position(self) -> int:
        """Return the last position that was given; 0 if none was."""
        row = journal_numbering.c
        found: int | None = self._transactions.scalar(sa.select(row.position).where(row.id == NUMBERING_ROW))
        return found or 0

    def entries_after(self, position: int, projects: Collection[str] | None, limit: int) -> tuple[NumberedEntry, ...]:
        """Return the first entries after a position, of objects of these projects or of all; two statements.

        Who goes on after the last of them, or after ``last_position`` read before it got none, misses nothing.
        """
        j = journal.c
        query = sa.select(journal).where(j.position > position).order_by(j.position).limit(limit)
        if projects is not None:
            query = query.where(j.project_id.in_(sorted(projects)))
        with self._transactions.reading() as connection:
            rows = connection.execute(query).mappings().all()
            labels = read_labels(connection, rows)
        return tuple(parse_numbered(row, labels) for row in rows)


def read_labels(connection: Connection, rows: Sequence[Any]) -> dict[int, str]:
    """Return the public ids of the resources that entries name, in one statement for each few thousand."""
    ids = sorted({id_ for row in rows for _, gone, come, *_ in row["moves"] for id_ in (*gone, *come)})
    found: dict[int, str] = {}
    for part in chunks(ids):
        query = sa.select(resources.c.id, resources.c.label).where(resources.c.id.in_(part))
        for id_, label in connection.execute(query):
            found[id_] = label
    return found
