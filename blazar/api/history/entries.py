# SPDX-License-Identifier: Apache-2.0
"""How an entry of a history is shown: who did what, and what that changed; the schemas of these."""

from __future__ import annotations

from blazar.api.http.shapes import (
    NUMBER,
    RESERVATION_ID,
    TEXT,
    TEXT_OR_NULL,
    ZULU,
    Json,
    a_list,
    an_object,
    one_of,
)
from blazar.model.base.clock import zulu
from blazar.model.journal.entries import By, FieldChange, NamedMove, PastEntry
from blazar.model.journal.views import is_of
from blazar.model.leases.requests import Actor

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
EXAMPLE: Json = {
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
FIELDS: Json = {
    "id": TEXT,
    "at": ZULU,
    "by": _BY,
    "changes": a_list(_CHANGE),
    "resources": a_list(_MOVE),
    "reason": {**TEXT_OR_NULL, "description": "the code of a reason, or the end_reason"},
}
"""The keys of each entry, besides its verb."""


def render_entry(entry: PastEntry, project_id: str | None) -> Json:
    """Return an entry as a project sees it (None: an operator); what of it is for others must be hidden before."""
    return {
        "id": entry.id,
        "at": zulu(entry.at),
        "by": _render_actor(entry.by, project_id),
        "verb": str(entry.verb),
        "changes": [_render_change(change) for change in entry.changes],
        "resources": [_render_move(move) for move in entry.moves],
        "reason": entry.reason,
    }


def _render_actor(actor: Actor | None, project_id: str | None) -> Json:
    """Return who did it. Ids of users of other projects are for operators only."""
    if actor is None:
        return {"kind": str(By.SERVICE), "user_id": None, "project_id": None}
    known = project_id is None or is_of(actor, project_id)
    return {
        "kind": str(By.OPERATOR if actor.operator else By.USER),
        "user_id": actor.user_id if known else None,
        "project_id": actor.project_id if known else None,
    }


def _render_change(change: FieldChange) -> Json:
    return {
        "field": change.field,
        "reservation_id": change.reservation_id,
        "before": change.before,
        "after": change.after,
    }


def _render_move(move: NamedMove) -> Json:
    return {
        "reservation_id": move.reservation_id,
        "gone": list(move.gone),
        "come": list(move.come),
        "gone_count": move.gone_count,
        "come_count": move.come_count,
    }
