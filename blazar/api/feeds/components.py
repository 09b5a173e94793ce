# SPDX-License-Identifier: Apache-2.0
"""Schemas of feeds, and how one is shown."""

from __future__ import annotations

from blazar.api.shapes import TEXT, TEXT_OR_NULL, ZULU, ZULU_OR_NULL, Json, an_object, one_of
from blazar.model.clock import zulu
from blazar.model.feed import Feed, FeedKind

_TIMES: Json = {"created_at": ZULU, "expires_at": ZULU, "last_used_at": ZULU_OR_NULL}
FIELDS = ("id", "kind", "name", "user_id", "project_id", "resource", "resource_type", "requirement", *_TIMES)

_EXAMPLE: Json = {
    "id": "c1d2e3f4-5a6b-4c7d-8e9f-0a1b2c3d4e5f",
    "kind": "user",
    "name": "my phone",
    "user_id": "3c1f9a7d2b6e4f58a0c1d2e3f4a5b6c7",
    "project_id": "71bb40c6a5b94e0f8f2f0a3d1c9e7b55",
    "resource": None,
    "resource_type": None,
    "requirement": None,
    "created_at": "2026-11-23T10:15:42Z",
    "expires_at": "2027-11-23T10:15:42Z",
    "last_used_at": None,
}
_URL = "https://cloud.example/reservation/feeds/Yk3v0q7nJ2xB5mT9sLwE4hRzC8dPfKuA6gVtQyHnM1o.ics"
_PROPERTIES: Json = {
    **dict.fromkeys(("id", "name", "user_id", "project_id"), TEXT),
    "kind": one_of(FeedKind),
    **dict.fromkeys(("resource", "resource_type", "requirement"), TEXT_OR_NULL),
    **_TIMES,
}

COMPONENTS: Json = {
    "Feed": an_object(_PROPERTIES, optional=FIELDS[1:], example=_EXAMPLE),
    "NewFeed": an_object({**_PROPERTIES, "url": TEXT}, example={**_EXAMPLE, "url": _URL}),
}

_REQUIREMENT = 'as in reservations: ["==", "$gpu", "A100"], or the same as a JSON text'
FEED_CREATE: Json = {
    "type": "object",
    "required": ["kind", "name"],
    "additionalProperties": False,
    "properties": {
        "kind": {
            "enum": [str(kind) for kind in FeedKind],
            "description": "one of user, project, resource and free_busy",
        },
        "name": {"type": "string", "minLength": 1, "maxLength": 80, "description": "a string of 1 to 80 characters"},
        "resource": {
            "type": "string",
            "minLength": 1,
            "maxLength": 255,
            "description": "for kind resource: the label or the id of a resource",
        },
        "resource_type": {
            "type": "string",
            "minLength": 1,
            "maxLength": 66,
            "description": "for kind free_busy: a resource type, by default physical:host",
        },
        "requirement": {
            "type": ["array", "string"],
            "maxLength": 65536,
            "description": f"for kind free_busy: what resources must have, {_REQUIREMENT}",
        },
    },
}
EXAMPLES: tuple[Json, ...] = (
    {"kind": "user", "name": "my phone"},
    {"kind": "free_busy", "name": "GPUs", "resource_type": "physical:host", "requirement": []},
)


def shown(feed: Feed) -> Json:
    """Return a feed as it is shown, without its link."""
    used = feed.last_used_at
    return {
        "id": feed.id,
        "kind": str(feed.kind),
        "name": feed.name,
        "user_id": feed.user_id,
        "project_id": feed.project_id,
        "resource": feed.resource,
        "resource_type": feed.resource_type,
        "requirement": feed.requirement,
        "created_at": zulu(feed.created_at),
        "expires_at": zulu(feed.expires_at),
        "last_used_at": None if used is None else zulu(used),
    }
