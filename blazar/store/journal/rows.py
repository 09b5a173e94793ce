# SPDX-License-Identifier: Apache-2.0
"""Entries of the journal as rows: each is written in the transaction of the change that it tells of."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.context import current
from blazar.model.journal.entries import (
    LONGEST,
    Announcement,
    FieldChange,
    JournalEntry,
    NamedMove,
    NumberedEntry,
    ObjectType,
    PastEntry,
    Subject,
    Verb,
)
from blazar.model.journal.lease_entries import announce
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor
from blazar.store.sql import prepared
from blazar.store.sql.tables import journal, leases
from blazar.store.sql.transactions import JOURNAL_WRITTEN


def write_entries(connection: Connection, entries: Iterable[JournalEntry]) -> None:
    """Insert entries, in one statement; none if there is nothing to tell. They are numbered after the commit."""
    insert_rows(connection, make_rows(entries))


def make_rows(entries: Iterable[JournalEntry]) -> Sequence[Mapping[str, Any]]:
    """Return the rows of entries that are written for the present request."""
    here = current()
    asked = {
        "request_id": _cut(here.local_id or here.request_id),
        "global_request_id": _cut(here.request_id) if here.local_id else None,
    }
    return [{**entry_row(told), **asked} for told in entries]


def insert_rows(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows of entries, in one statement; none if there are none."""
    if rows:
        prepared.insert_rows(connection, journal, rows)
        connection.info[JOURNAL_WRITTEN] = True


def write_entry(connection: Connection, told: JournalEntry | None) -> None:
    """Insert an entry, if there is something to tell."""
    if told is not None:
        write_entries(connection, [told])


def write_once(connection: Connection, entries: Sequence[JournalEntry]) -> None:
    """Insert entries that have an id of their own, but for those that are there; two statements, none without entries.

    The caller keeps others from writing them at the same time.
    """
    if not entries:
        return
    by_id = {told.id: told for told in entries}
    of_objects = journal.c.object_id.in_(sorted({told.about.id for told in entries}))
    types = {str(told.about.object_type) for told in entries}
    query = sa.select(journal.c.id).where(journal.c.object_type.in_(sorted(types)), of_objects)
    there = set(connection.execute(query).scalars())
    write_entries(connection, [told for id_, told in by_id.items() if id_ not in there])


def write_announcement(connection: Connection, lease: Lease, announces: Announcement, *, at: datetime) -> None:
    """Insert what the owner of a lease is told without a change of the lease: it belongs to its present revision.

    Two statements. Nothing is told of a lease that does not exist any more.
    """
    query = sa.select(leases.c.revision).where(leases.c.id == lease.id).with_for_update()
    revision = connection.execute(query).scalar()
    if revision is not None:
        write_entries(connection, [announce(replace(lease, revision=revision), announces, at=at)])


def entry_row(told: JournalEntry) -> dict[str, Any]:
    """Return the columns of an entry, but for those of the request."""
    about, by = told.about, told.by
    return {
        "id": told.id or str(uuid.uuid4()),
        "at": told.at,
        "object_type": str(about.object_type),
        "object_id": about.id,
        "object_name": _cut(about.name),
        "revision": about.revision,
        "verb": str(told.verb),
        "project_id": about.project_id,
        "user_id": about.user_id,
        "by_user_id": None if by is None else by.user_id,
        "by_project_id": None if by is None else by.project_id,
        "by_operator": by is not None and by.operator,
        "changes": [[c.field, c.before, c.after, c.reservation_id] for c in told.changes],
        "moves": [[m.reservation_id, m.gone, m.come, m.gone_count, m.come_count] for m in told.moves],
        "reason": told.reason,
        "snapshot": told.snapshot,
    }


def parse_past(id_: str, row: Mapping[Any, Any], labels: Mapping[int, str]) -> PastEntry:
    """Return what an entry says; ``labels`` are the public ids of the resources that it names, by calendar id."""
    user_id = row["by_user_id"]
    return PastEntry(
        id_,
        row["at"],
        Verb(row["verb"]),
        None if user_id is None else Actor(user_id, row["by_project_id"], bool(row["by_operator"])),
        tuple(FieldChange(*change) for change in row["changes"]),
        tuple(
            NamedMove(
                reservation_id,
                tuple(labels[number] for number in gone if number in labels),
                tuple(labels[number] for number in come if number in labels),
                gone_count,
                come_count,
            )
            for reservation_id, gone, come, gone_count, come_count in row["moves"]
        ),
        row["reason"],
    )


def parse_numbered(row: Mapping[Any, Any], labels: Mapping[int, str]) -> NumberedEntry:
    """Return an entry that has its position."""
    return NumberedEntry(
        row["position"],
        Subject(
            ObjectType(row["object_type"]),
            row["object_id"],
            row["object_name"],
            row["project_id"],
            row["user_id"],
            row["revision"],
        ),
        parse_past(row["id"], row, labels),
        row["request_id"],
        row["global_request_id"],
        row["snapshot"],
    )


def _cut(text: str | None) -> str | None:
    return None if text is None else text[:LONGEST]
