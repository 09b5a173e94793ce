# SPDX-License-Identifier: Apache-2.0
"""The journal as its readers see it: who asks for what, and what of an entry a project is told.

Other projects that a lease was with, and their users, are for operators; a project that a lease was offered to is also
for the one that has offered it. What operators say for what they do is for operators.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from blazar.model.base.moments import DayOrMoment
from blazar.model.base.paging import Page, Position
from blazar.model.base.values import dataclass, replace
from blazar.model.journal.entries import (
    OFFERED_TO,
    OTHER_LEASE,
    PROJECT_ID,
    USER_ID,
    WHY,
    FieldChange,
    NumberedEntry,
    ObjectType,
    PastEntry,
    Verb,
)
from blazar.model.leases.requests import Actor


@dataclass(frozen=True, slots=True)
class JournalQuestion:
    """A page of the journal: of a project (None: of all, and of operators), after a position, and as filters say.

    ``by`` is the id of a user, and ``by_project_id`` the project in which they worked; entries are ``since`` an instant
    or later, and before ``until``. What only one user of the project is told is for nobody else: ``reader_id`` asks.
    """

    page: Page
    project_id: str | None = None
    after: int | None = None
    object_type: ObjectType | None = None
    object_id: str | None = None
    verb: Verb | None = None
    by: str | None = None
    since: DayOrMoment | None = None
    until: DayOrMoment | None = None
    by_project_id: str | None = None
    reader_id: str | None = None


@dataclass(frozen=True, slots=True)
class JournalPage:
    """A page of the journal, and where the next one begins; ``projects`` as of a ``HistoryPage``."""

    items: tuple[NumberedEntry, ...]
    following: Position | None = None
    count: int | None = None
    projects: Mapping[str, str] = dataclasses.field(default_factory=dict)


def show_to(entry: PastEntry, project_id: str, projects: Mapping[str, str]) -> PastEntry:
    """Return what an entry says to a project. Who did it may still be a user of another one: ``is_of`` tells.

    ``projects`` is whose the leases and reservations are now that the entry names: those of others are hidden.
    """
    changes = (
        _hide(change, entry, project_id)
        for change in entry.changes
        if change.field != WHY
        and (change.field != OTHER_LEASE or projects.get(change.after or "") == project_id)
        and (change.reservation_id is None or projects.get(change.reservation_id) == project_id)
    )
    moves = (move for move in entry.moves if projects.get(move.reservation_id) == project_id)
    return replace(entry, changes=tuple(changes), moves=tuple(moves))


def show_entry(entry: NumberedEntry, project_id: str, projects: Mapping[str, str]) -> NumberedEntry:
    """Return what an entry of the journal says to a project, as ``show_to``: also in messages.

    Ids of requests are shown where these came from the project: by others' it could tell who did what together.
    """
    known = is_of(entry.past.by, project_id)
    return replace(
        entry,
        past=show_to(entry.past, project_id, projects),
        request_id=entry.request_id if known else None,
        global_request_id=entry.global_request_id if known else None,
    )


def is_of(actor: Actor | None, project_id: str) -> bool:
    """Return whether somebody works in a project: others have no ids for it."""
    return actor is not None and actor.project_id == project_id


def _hide(change: FieldChange, entry: PastEntry, project_id: str) -> FieldChange:
    """Return a change without the ids of other projects and of their users."""
    if change.field == PROJECT_ID or (change.field == OFFERED_TO and not is_of(entry.by, project_id)):
        return replace(change, before=_own(change.before, project_id), after=_own(change.after, project_id))
    if change.field == USER_ID:
        giver, taker = _projects(entry)
        return replace(
            change,
            before=change.before if giver == project_id else None,
            after=change.after if taker == project_id else None,
        )
    return change


def _projects(entry: PastEntry) -> tuple[str | None, str | None]:
    """Return with which project a lease was before and after it got another user, who accepted it."""
    found = next((change for change in entry.changes if change.field == PROJECT_ID), None)
    if found is not None:
        return found.before, found.after
    within = None if entry.by is None else entry.by.project_id
    return within, within


def _own(value: str | None, project_id: str) -> str | None:
    return value if value == project_id else None
