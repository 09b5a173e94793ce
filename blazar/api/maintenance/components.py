# SPDX-License-Identifier: Apache-2.0
"""Schemas of maintenance windows and of what they would do."""

from __future__ import annotations

from blazar.api.http.shapes import (
    FLAG,
    LEASE_ID,
    NUMBER,
    RESERVATION_ID,
    TEXT,
    TEXT_OR_NULL,
    ZULU,
    ZULU_OR_NULL,
    Json,
    a_list,
    an_object,
    one_of,
    ref,
)
from blazar.model.maintenance.windows import ActivePolicy, MaintenanceStatus, Outcome, PendingPolicy

_ID = "0d9c8b7a-6f5e-4d3c-8b2a-190817263544"
_MOVE: Json = {"reservation_id": RESERVATION_ID, "from_host": "12", "to_host": "31", "count": 1}
_LEASE: Json = {
    "lease_id": LEASE_ID,
    "name": "gan-training",
    "project_id": "71bb40c6a5b94e0f8f2f0a3d1c9e7b55",
    "user_id": "3c1f9a7d2b6e4f58a0c1d2e3f4a5b6c7",
    "start_date": "2030-05-01T08:00:00Z",
    "end_date": "2030-05-04T08:00:00Z",
    "status": "PENDING",
    "outcome": "moved",
    "makes_room": False,
    "hosts": ["12"],
    "moves": [_MOVE],
    "openings": [],
    "done": False,
    "told_at": None,
    "note": None,
}
_IMPACT: Json = {
    "id": "5f0c1d2e3a4b5c6d7e8f90a1b2c3d4e5",
    "start_date": "2030-05-02T06:00:00Z",
    "end_date": "2030-05-02T18:00:00Z",
    "hosts": ["12"],
    "summary": {str(outcome): int(outcome is Outcome.MOVED) for outcome in Outcome},
    "leases": [_LEASE],
}
_MAINTENANCE: Json = {
    "id": _ID,
    "name": "firmware of rack r7",
    "reason": "power supplies are replaced",
    "start_date": "2030-05-02T06:00:00Z",
    "end_date": "2030-05-02T18:00:00Z",
    "status": "PLANNED",
    "hosts": [{"id": "12", "name": "cn12.example", "servers": None}],
    "requirement": None,
    "pending": "move",
    "active": "list",
    "disable_service": True,
    "trouble": None,
    "revision": 0,
    "created_at": "2030-04-20T09:12:00Z",
    "updated_at": None,
}
KEYS = tuple(_MAINTENANCE)
_HOST = an_object(
    {
        "id": TEXT,
        "name": TEXT,
        "servers": {"type": ["integer", "null"], "description": "how many it ran at the start; null: not known"},
    }
)
_PROPERTIES: Json = {
    "id": TEXT,
    "name": TEXT,
    "reason": TEXT_OR_NULL,
    "start_date": ZULU,
    "end_date": ZULU,
    "status": one_of(MaintenanceStatus),
    "hosts": a_list(_HOST),
    "requirement": {**TEXT_OR_NULL, "description": "what its hosts were chosen by, as a JSON text"},
    "pending": {**one_of(PendingPolicy), "description": "what becomes of leases that have not started"},
    "active": {**one_of(ActivePolicy), "description": "what becomes of leases that have started"},
    "disable_service": {**FLAG, "description": "the nova-computes of its hosts are disabled meanwhile"},
    "trouble": {**TEXT_OR_NULL, "description": "why its last step could not be made; it is tried again"},
    "revision": NUMBER,
    "created_at": ZULU,
    "updated_at": ZULU_OR_NULL,
}

COMPONENTS: Json = {
    "HostMove": an_object({"reservation_id": TEXT, "from_host": TEXT, "to_host": TEXT, "count": NUMBER}, example=_MOVE),
    "AffectedLease": an_object(
        {
            "lease_id": TEXT,
            "name": TEXT,
            "project_id": TEXT,
            "user_id": TEXT,
            "start_date": ZULU,
            "end_date": ZULU,
            "status": TEXT,
            "outcome": {**one_of(Outcome), "description": "what becomes of the lease; its time never changes"},
            "makes_room": {**FLAG, "description": "none of its hosts is in maintenance; it moves so that others can"},
            "hosts": {**a_list(TEXT), "description": "the ids of those of its hosts that are in maintenance"},
            "moves": a_list(ref("HostMove")),
            "openings": {**a_list(ZULU), "description": "starts near its own at which it fits"},
            "done": {**FLAG, "description": "what is planned has been carried out"},
            "told_at": {**ZULU_OR_NULL, "description": "when its owner was told last"},
            "note": {**TEXT_OR_NULL, "description": "why a lease in use keeps hosts, or how far its migration is"},
        },
        example=_LEASE,
    ),
    "MaintenanceImpact": an_object(
        {
            "id": {**TEXT, "description": "changes with what is said here; for impact_id"},
            "start_date": ZULU,
            "end_date": ZULU,
            "hosts": a_list(TEXT),
            "summary": an_object({str(outcome): NUMBER for outcome in Outcome}),
            "leases": a_list(ref("AffectedLease")),
        },
        example=_IMPACT,
    ),
    "Maintenance": an_object(
        {**_PROPERTIES, "leases": a_list(ref("AffectedLease"))},
        optional=("leases",),
        example={**_MAINTENANCE, "leases": [_LEASE]},
    ),
    "MaintenanceInList": an_object(_PROPERTIES, optional=KEYS[1:], example=_MAINTENANCE),
}

_DATE: Json = {"type": "string", "maxLength": 64}
_START: Json = {**_DATE, "description": "a date, or 'now'"}
_END: Json = {**_DATE, "description": "a date, or a duration from the start with its sign, as +PT12H"}
_NAME: Json = {
    "type": "string",
    "minLength": 1,
    "maxLength": 80,
    "pattern": r"\S",
    "description": "a string of 1 to 80 characters, not all of them spaces",
}
_IMPACT_ID: Json = {
    "type": "string",
    "minLength": 1,
    "maxLength": 64,
    "description": "the id of the impact that was shown; a 409 if it is another one by now",
}
CREATE: Json = {
    "type": "object",
    "required": ["name", "start_date", "end_date"],
    "additionalProperties": False,
    "properties": {
        "name": _NAME,
        "reason": {"type": ["string", "null"], "maxLength": 1000, "description": "a string of up to 1000 characters"},
        "start_date": _START,
        "end_date": _END,
        "hosts": {
            "type": "array",
            "minItems": 1,
            "maxItems": 10000,
            "items": {"type": "string", "minLength": 1, "maxLength": 105, "description": "the id of a host"},
            "description": "the ids of hosts",
        },
        "requirement": {
            "type": ["array", "string"],
            "maxLength": 65536,
            "description": 'what hosts must have, instead of their ids: ["==", "$rack", "r7"], or that as a JSON text',
        },
        "pending": {
            "enum": [str(pending_policy) for pending_policy in PendingPolicy],
            "description": "move (the default) or leave: what becomes of leases that have not started",
        },
        "active": {
            "enum": ["list", "migrate", "end"],
            "description": "list (the default) or migrate: what becomes of leases that have started",
        },
        "disable_service": {
            "type": "boolean",
            "description": "true: the nova-computes of the hosts are disabled meanwhile; false is the default",
        },
        "impact_id": _IMPACT_ID,
    },
}
CHANGE: Json = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": False,
    "description": "an object with name, start_date, end_date or impact_id",
    "properties": {"name": _NAME, "start_date": _START, "end_date": _END, "impact_id": _IMPACT_ID},
}
CREATED: tuple[Json, ...] = (
    {
        "name": "firmware of rack r7",
        "reason": "power supplies are replaced",
        "start_date": "2030-05-02T06:00:00Z",
        "end_date": "+PT12H",
        "requirement": ["==", "$rack", "r7"],
        "disable_service": True,
    },
    {"name": "new disks", "start_date": "now", "end_date": "+P1D", "hosts": ["12", "13"], "pending": "leave"},
)
CHANGES: tuple[Json, ...] = (
    {"end_date": "2030-05-02T20:00:00Z"},
    {"start_date": "2030-05-03T06:00Z", "end_date": "+PT12H"},
)
