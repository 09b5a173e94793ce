# SPDX-License-Identifier: Apache-2.0
"""``/v1/leases/{lease_id}/history``, from version 1.1 on: who did what to a lease, past ones too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from blazar.api.http.answers import Answer, link_pages
from blazar.api.http.context import Call
from blazar.api.http.queries import paging
from blazar.api.http.routes import Caching, Part, Root, Route, Rule, all_of, in_path
from blazar.api.http.shapes import (
    LINKS,
    NUMBER,
    RESERVATION_ID,
    TEXT,
    TEXT_OR_NULL,
    ZULU,
    Json,
    a_list,
    an_object,
    one_of,
    ref,
)
from blazar.api.leases.rules import GET as SEE_LEASE
from blazar.api.leases.rules import visible
from blazar.model.base.clock import zulu
from blazar.model.journal.entries import (
    OFFERED_TO,
    OTHER_LEASE,
    PROJECT_ID,
    USER_ID,
    By,
    FieldChange,
    NamedMove,
    PastEntry,
    Verb,
)
from blazar.model.leases.requests import Actor

GET = Rule("blazar:leases:get_history", all_of(SEE_LEASE), "Show what was done to a lease, and by whom.")

_BY = an_object(
    {
        "kind": {
            **one_of(By),
            "description": "service: the life cycle of the lease, healing, maintenance",
        },
        "user_id": {**TEXT_OR_NULL, "description": "null of the service, and of users of other projects"},
        "project_id": TEXT_OR_NULL,
    }
)
_CHANGE = an_object(
    {
        "field": {**TEXT, "description": "a key of the lease, or of the reservation"},
        "reservation_id": {**TEXT_OR_NULL, "description": "null: it is of the lease"},
        "before": TEXT_OR_NULL,
        "after": TEXT_OR_NULL,
    }
)
_MOVE = an_object(
    {
        "reservation_id": TEXT,
        "gone": {**a_list(TEXT), "description": "ids of resources that it gave up, 100 at most"},
        "come": {**a_list(TEXT), "description": "ids of resources that it got, 100 at most"},
        "gone_count": NUMBER,
        "come_count": NUMBER,
    }
)
_EXAMPLE: Json = {
    "id": "3",
    "at": "2030-05-01T08:00:00Z",
    "by": {
        "kind": "user",
        "user_id": "3c1f9a7d2b6e4f58a0c1d2e3f4a5b6c7",
        "project_id": "71bb40c6a5b94e0f8f2f0a3d1c9e7b55",
    },
    "verb": "extended",
    "changes": [
        {
            "field": "end_date",
            "reservation_id": None,
            "before": "2030-05-02T08:00:00Z",
            "after": "2030-05-03T08:00:00Z",
        }
    ],
    "resources": [
        {"reservation_id": RESERVATION_ID, "gone": [], "come": ["h-4kq2mz"], "gone_count": 0, "come_count": 1}
    ],
    "reason": None,
}
ENTRY = an_object(
    {
        "id": TEXT,
        "at": ZULU,
        "by": _BY,
        "verb": one_of(Verb),
        "changes": a_list(_CHANGE),
        "resources": a_list(_MOVE),
        "reason": {**TEXT_OR_NULL, "description": "the code of a reason, or the end_reason"},
    },
    example=_EXAMPLE,
)


def index(call: Call, lease_id: str) -> Answer:
    """List what was done to a lease."""
    owner = visible(call, lease_id)
    asked = call.asked
    page = call.manager.leases.history(owner.id, asked.page("at"))
    sees_all, own = call.is_operator, call.caller.project_id
    items = page.items if sees_all else [_own_part(past_entry, page.projects, own) for past_entry in page.items]
    found: Json = {"history": [_render_entry(past_entry, sees_all, own) for past_entry in items]}
    return link_pages(found if page.count is None else {**found, "count": page.count}, page.following)


def _own_part(entry: PastEntry, projects: Mapping[str, str], own: str) -> PastEntry:
    """Return an entry without what it says of leases and reservations that are another project's now."""
    return replace(
        entry,
        changes=tuple(
            change
            for change in entry.changes
            if (change.field != OTHER_LEASE or projects.get(change.after or "") == own)
            and (change.reservation_id is None or projects.get(change.reservation_id) == own)
        ),
        moves=tuple(move for move in entry.moves if projects.get(move.reservation_id) == own),
    )


def _render_entry(entry: PastEntry, sees_all: bool, project_id: str) -> Json:
    return {
        "id": entry.id,
        "at": zulu(entry.at),
        "by": _render_actor(entry.by, sees_all, project_id),
        "verb": str(entry.verb),
        "changes": [_change(change, entry, sees_all, project_id) for change in entry.changes],
        "resources": [_move(move) for move in entry.moves],
        "reason": entry.reason,
    }


def _render_actor(actor: Actor | None, sees_all: bool, project_id: str) -> Json:
    """Return who did it. Ids of users of other projects are for operators only."""
    if actor is None:
        return {"kind": str(By.SERVICE), "user_id": None, "project_id": None}
    known = sees_all or _is_of(actor, project_id)
    return {
        "kind": str(By.OPERATOR if actor.operator else By.USER),
        "user_id": actor.user_id if known else None,
        "project_id": actor.project_id if known else None,
    }


def _change(change: FieldChange, entry: PastEntry, sees_all: bool, project_id: str) -> Json:
    """Return a change.

    Other projects that a lease was with, and their users, are for operators; one that it was offered to is also for
    who has offered it.
    """
    if not sees_all:
        if change.field == PROJECT_ID or change.field == OFFERED_TO and not _is_of(entry.by, project_id):
            change = replace(change, before=_own(change.before, project_id), after=_own(change.after, project_id))
        elif change.field == USER_ID:
            giver, taker = _projects(entry)
            change = replace(
                change,
                before=change.before if giver == project_id else None,
                after=change.after if taker == project_id else None,
            )
    return {
        "field": change.field,
        "reservation_id": change.reservation_id,
        "before": change.before,
        "after": change.after,
    }


def _projects(entry: PastEntry) -> tuple[str | None, str | None]:
    """Return with which project a lease was before and after it got another user, who accepted it."""
    found = next((change for change in entry.changes if change.field == PROJECT_ID), None)
    if found is not None:
        return found.before, found.after
    within = None if entry.by is None else entry.by.project_id
    return within, within


def _is_of(actor: Actor | None, project_id: str) -> bool:
    return actor is not None and actor.project_id == project_id


def _own(value: str | None, project_id: str) -> str | None:
    return value if value == project_id else None


def _move(move: NamedMove) -> Json:
    return {
        "reservation_id": move.reservation_id,
        "gone": list(move.gone),
        "come": list(move.come),
        "gone_count": move.gone_count,
        "come_count": move.come_count,
    }


PART = Part(
    "history",
    routes=(
        Route(
            root=Root.V1,
            method="GET",
            path="/leases/{lease_id}/history",
            name="list_lease_history",
            summary="List what was done to a lease, and by whom",
            handler=index,
            rule=GET,
            on_target=True,
            caching=Caching.NONE,
            errors=(404,),
            answers={
                200: an_object(
                    {"history": a_list(ref("LeaseHistoryEntry")), "count": NUMBER, "links": LINKS}, optional=("count",)
                )
            },
            parameters=(in_path("lease_id", "the lease's id"), *paging(["at"])),
        ),
    ),
    rules=(GET,),
    components={"LeaseHistoryEntry": ENTRY},
)
