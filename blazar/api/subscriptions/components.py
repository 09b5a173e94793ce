# SPDX-License-Identifier: Apache-2.0
"""Schemas of subscriptions, and how one is shown."""

from __future__ import annotations

import json
from collections.abc import Mapping

from blazar.api.http.answers import Answer, Tags
from blazar.api.http.shapes import (
    FLAG,
    LEASE_ID,
    NUMBER,
    TEXT,
    TEXT_OR_NULL,
    ZULU,
    ZULU_OR_NULL,
    Json,
    a_list,
    an_object,
    one_of,
)
from blazar.clouds.outgoing.addresses import LONGEST_URL
from blazar.model.base.clock import zulu
from blazar.model.subscriptions.details import Channel, DeliveryFailure, Digest, Subscription, SubscriptionState
from blazar.model.subscriptions.events import LONGEST_NAME, MOST_EVENTS

_EXAMPLE: Json = {
    "id": "0b7e3c1a-5d2f-4e6b-8a90-1c2d3e4f5a6b",
    "project_id": "71bb40c6a5b94e0f8f2f0a3d1c9e7b55",
    "user_id": "3c1f9a7d2b6e4f58a0c1d2e3f4a5b6c7",
    "channel": "webhook",
    "url": "https://ci.example/blazar",
    "events": ["lease.started", "lease.failed"],
    "lease_id": None,
    "batch": False,
    "state": "active",
    "reason": None,
    "position": 81234,
    "behind": 0,
    "last_delivered_at": "2026-11-26T13:00:02Z",
    "failing_since": None,
    "dead": 0,
    "dropped": 0,
    "digest": "none",
    "time_zone": "UTC",
    "secret": None,
    "revision": 3,
    "created_at": "2026-11-20T08:00:00Z",
    "updated_at": None,
}
KEYS = tuple(_EXAMPLE)

# What is sent goes on without a new revision.
TAGS = Tags("-n", parted=True)
_MOVING = ("state", "reason", "position", "behind", "last_delivered_at", "failing_since", "dead", "dropped")

_PROPERTIES: Json = {
    "id": TEXT,
    "project_id": {
        **TEXT_OR_NULL,
        "description": "null: everything is sent, to an operator; in mine: the leases of the user in any project",
    },
    "user_id": {**TEXT, "description": "who has made it"},
    "channel": one_of(Channel),
    "url": {**TEXT_OR_NULL, "description": "null of a subscription by mail"},
    "events": {**a_list(TEXT), "description": "names of what is sent"},
    "lease_id": {**TEXT_OR_NULL, "description": "not null: only what happens to this lease is sent"},
    "batch": {**FLAG, "description": "a message has up to 50 events, and not one"},
    "state": {**one_of(SubscriptionState), "description": "unconfirmed: its receiver has not accepted a test yet"},
    "reason": {**TEXT_OR_NULL, "description": "why the last message was not accepted, or nothing is sent any more"},
    "position": {**NUMBER, "description": "the place in the history of everything up to which it has been sent"},
    "behind": {**NUMBER, "description": "how many entries may still have to be sent"},
    "last_delivered_at": ZULU_OR_NULL,
    "failing_since": ZULU_OR_NULL,
    "dead": {**NUMBER, "description": "messages that were refused for good in the last 30 days, 1000 at most"},
    "dropped": {**NUMBER, "description": "messages that were refused for good and were too many to be kept"},
    "digest": {**one_of(Digest), "description": "daily: mail comes once a day, in the morning"},
    "time_zone": {**TEXT, "description": "the zone of times in mails"},
    "secret": {**TEXT_OR_NULL, "description": "of signatures; only in the answer that makes one"},
    "revision": NUMBER,
    "created_at": ZULU,
    "updated_at": ZULU_OR_NULL,
}

_FAILURE: Json = {
    "id": "6b1f0c2d-3e4f-4a5b-8c6d-7e8f90a1b2c3",
    "position": 81230,
    "type": "blazar.lease.started",
    "subject": f"leases/{LEASE_ID}",
    "reason": "it refuses the message (400)",
    "at": "2026-11-26T13:05:00Z",
}
COMPONENTS: Json = {
    "Subscription": an_object(_PROPERTIES, optional=KEYS[1:], example=_EXAMPLE),
    "DeliveryFailure": an_object({**dict.fromkeys(_FAILURE, TEXT), "position": NUMBER, "at": ZULU}, example=_FAILURE),
}

_URL: Json = {
    "type": "string",
    "minLength": 1,
    "maxLength": LONGEST_URL,
    "description": "an https:// URL to which messages are posted, of a web hook",
}
_EVENTS: Json = {
    "type": "array",
    "minItems": 1,
    "maxItems": MOST_EVENTS,
    "items": {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME, "description": "the name of an event"},
    "description": "names of events, such as lease.started, or lease.* for all of leases",
}
_BATCH: Json = {"type": "boolean", "description": "true: up to 50 events in one message; false is the default"}
CREATE: Json = {
    "type": "object",
    "required": ["events"],
    "additionalProperties": False,
    "properties": {
        "channel": {
            "enum": [str(channel) for channel in Channel],
            "description": "webhook, the default, or mail, to your address in Keystone",
        },
        "url": _URL,
        "events": _EVENTS,
        "lease_id": {
            "type": ["string", "null"],
            "minLength": 1,
            "maxLength": 36,
            "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
            "description": "the id of the only lease whose events are sent",
        },
        "batch": _BATCH,
        "project_id": {
            "type": ["string", "null"],
            "minLength": 1,
            "maxLength": 255,
            "description": "the own project, which is the default; null for everything, for operators",
        },
    },
}
CHANGE: Json = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": False,
    "description": "an object with url, events, batch, state or new_secret",
    "properties": {
        "url": _URL,
        "events": _EVENTS,
        "batch": _BATCH,
        "state": {
            "enum": ["active", "paused"],
            "description": "active, or paused: nothing is sent until it is active again",
        },
        "new_secret": {
            "enum": [True],
            "description": "true: make a secret, which this answer has; the former one signs, too, for 24 hours",
        },
    },
}
CREATED: tuple[Json, ...] = (
    {"url": "https://ci.example/blazar", "events": ["lease.started", "lease.failed"]},
    {"url": "https://ci.example/one", "events": ["lease.*"], "lease_id": LEASE_ID, "batch": True},
    {"channel": "mail", "events": ["lease.started", "lease.failed"]},
    {"url": "https://chat.example/ops", "events": ["maintenance.*", "resource.*"], "project_id": None},
)
CHANGES: tuple[Json, ...] = ({"state": "paused"}, {"new_secret": True}, {"events": ["lease.*"], "batch": True})


CHANGE_MINE: Json = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": False,
    "description": "an object with events, digest, time_zone or state",
    "properties": {
        "events": {**_EVENTS, "minItems": 0, "description": "names of events; none for no mail"},
        "digest": {"enum": [str(digest) for digest in Digest], "description": "none, or daily: one mail each morning"},
        "time_zone": {
            "type": "string",
            "minLength": 1,
            "maxLength": 64,
            "description": "the zone of times in mails, such as Europe/Paris",
        },
        "state": {
            "enum": ["active", "paused"],
            "description": "active, or paused: nothing is sent until it is active again",
        },
    },
}
CHANGES_OF_MINE: tuple[Json, ...] = (
    {"events": []},
    {"events": ["lease.before_end", "lease.failed"], "digest": "daily", "time_zone": "Europe/Paris"},
)

REWIND: Json = {
    "type": "object",
    "additionalProperties": False,
    "description": "an object with after or from",
    "properties": {
        "after": {
            "type": "integer",
            "minimum": 0,
            "maximum": 2**53,
            "description": "a position: what comes after it is sent again",
        },
        "from": {
            "type": "string",
            "maxLength": 64,
            "description": "a date: what has happened since then is sent again",
        },
    },
}
REWINDS: tuple[Json, ...] = ({"after": 0}, {"from": "2030-04-01T08:00:00Z"})


def render_failure(failure: DeliveryFailure) -> Json:
    """Return a message that was refused for good as it is shown."""
    return {
        "id": failure.id,
        "position": failure.position,
        "type": failure.type,
        "subject": failure.subject,
        "reason": failure.reason,
        "at": zulu(failure.at),
    }


def render_subscription(subscription: Subscription) -> Json:
    """Return a subscription as it is shown."""
    delivered, failing, updated = (
        None if instant is None else zulu(instant)
        for instant in (subscription.last_delivered_at, subscription.failing_since, subscription.updated_at)
    )
    return {
        "id": subscription.id,
        "project_id": subscription.project_id or None,
        "user_id": subscription.user_id,
        "channel": str(subscription.channel),
        "url": subscription.url,
        "events": list(subscription.events),
        "lease_id": subscription.lease_id,
        "batch": subscription.batch,
        "state": str(subscription.state),
        "reason": subscription.reason,
        "position": subscription.position,
        "behind": subscription.behind,
        "last_delivered_at": delivered,
        "failing_since": failing,
        "dead": subscription.dead,
        "dropped": subscription.dropped,
        "digest": str(subscription.digest),
        "time_zone": subscription.time_zone,
        "secret": subscription.secret,
        "revision": subscription.revision,
        "created_at": zulu(subscription.created_at),
        "updated_at": updated,
    }


def answer_with(found: Subscription, *, headers: Mapping[str, str] | None = None, status: int | None = None) -> Answer:
    """Return the answer that shows a subscription."""
    value = render_subscription(found)
    moving = json.dumps([value[key] for key in _MOVING])
    return Answer({"subscription": value}, etag=TAGS.of(found.revision, moving), headers=headers or {}, status=status)
