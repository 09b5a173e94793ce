# SPDX-License-Identifier: Apache-2.0
"""The components of leases of 1.1 in the OpenAPI document."""

from __future__ import annotations

from blazar.api.http.shapes import (
    FLAG,
    LEASE_ID,
    LINKS,
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
from blazar.api.leases.v1_1 import reminders
from blazar.api.leases.v1_1.prices import PRICE
from blazar.api.leases.v1_1.reasons import WAKING, sentence_of_missing
from blazar.model.base.reasons import ReasonCode
from blazar.model.leases.states import EndReason, EventStatus, LeaseKind, LeaseStatus, ReservationStatus
from blazar.model.queue import TryFailure
from blazar.model.use.policy import Usage

CONDITIONS = ("missing_resources", "resources_changed", "start_delayed", "start_failed", "save_failed", "end_delayed")
_OR_NULL: Json = {"type": "null"}
_REASON = an_object({"code": one_of(ReasonCode), "message": TEXT, "detail": TEXT_OR_NULL}, optional=("detail",))
_REASON_OR_NULL: Json = {"oneOf": [_REASON, _OR_NULL]}
_A_REASON = {"code": "resource_failed", "message": sentence_of_missing(1, 2, "host", " (h-9xw1tb)")}
_NUMBER_OR_NULL: Json = {"type": ["integer", "null"]}
_RESOURCE = an_object(
    {"id": TEXT, "type": TEXT, "name": TEXT_OR_NULL, "label": {**TEXT, "description": "for operators"}},
    optional=("label",),
)
_ALLOCATION = an_object(
    {
        "resource": _RESOURCE,
        "count": NUMBER,
        "used": {"type": ["object", "null"], "description": "what it takes of the resource; null: all of it"},
        "status": {"enum": ["promised", "in_use", "failed", "released"]},
    }
)
_USE = an_object(
    {
        "scheduler_hints": {"type": "object"},
        "flavor_id": TEXT_OR_NULL,
        "server_group_id": TEXT_OR_NULL,
        "network_id": TEXT_OR_NULL,
        "addresses": a_list(TEXT),
    }
)
_RESERVATION_EXAMPLE: Json = {
    "id": RESERVATION_ID,
    "resource_type": "physical:host",
    "status": "active",
    "missing_resources": True,
    "resources_changed": False,
    "min": 2,
    "max": 2,
    "hypervisor_properties": [],
    "resource_properties": ["==", "$gpu", "A100"],
    "before_end": "snapshot",
    "allocations": [
        {"resource": {"id": "h-4kq2mz", "type": "host", "name": None}, "count": 1, "used": None, "status": "in_use"}
    ],
    "use": {
        "scheduler_hints": {"reservation": RESERVATION_ID},
        "flavor_id": None,
        "server_group_id": None,
        "network_id": None,
        "addresses": [],
    },
    "created_at": "2030-03-30T11:22:33Z",
    "updated_at": None,
}
_EVENT_EXAMPLE: Json = {
    "id": "a0b1c2d3-1111-4222-8333-444455556666",
    "event_type": "start_lease",
    "time": "2030-04-01T08:00:00Z",
    "status": "DONE",
    "finished_at": "2030-04-01T08:00:21Z",
    "attempts": 0,
    "next_attempt_at": None,
    "reason": None,
}
_CONDITION_EXAMPLE: Json = {
    "type": "missing_resources",
    "reservation_id": RESERVATION_ID,
    "since": "2030-04-02T09:58:40Z",
    "count": 1,
    "reason": _A_REASON,
}
_LEASE_EXAMPLE: Json = {
    "id": LEASE_ID,
    "name": "gan-training",
    "project_id": "physics",
    "user_id": "curie",
    "status": "ACTIVE",
    "degraded": True,
    "revision": 14,
    "start_date": "2030-04-01T08:00:00Z",
    "end_date": "2030-04-04T08:00:00Z",
    "before_end_date": "2030-04-04T07:00:00Z",
    "created_at": "2030-03-30T11:22:33Z",
    "updated_at": "2030-04-02T09:58:40Z",
    "deleted_at": None,
    "conditions": [_CONDITION_EXAMPLE],
    "reservations": [_RESERVATION_EXAMPLE],
    "events": [_EVENT_EXAMPLE],
    "kind": "scheduled",
    "end_reason": None,
    "usage": "unused",
    "used_at": None,
    "release_at": "2030-04-01T17:00:00Z",
    "held": False,
    "wait": None,
    "extend_if_free": None,
    "keep_hosts": False,
    "confirm_by": None,
    "reminders": [reminders.SHOWN_EXAMPLE],
    "transfer": None,
    "series_id": None,
    "recurrence_id": None,
    "links": [{"rel": "self", "href": f"https://cloud.example/reservation/v1/leases/{LEASE_ID}"}],
}


_MADE: Json = {
    **a_list(
        an_object(
            {
                "id": TEXT,
                "deleted_at": {**ZULU_OR_NULL, "description": "when it was first seen that it is not there any more"},
            }
        )
    ),
    "description": "the servers, volumes or network in the project; those deleted meanwhile are not made again",
}
_RESERVATION: Json = an_object(
    {
        "id": TEXT_OR_NULL,
        "resource_type": TEXT,
        "status": one_of(ReservationStatus),
        "missing_resources": FLAG,
        "resources_changed": FLAG,
        "allocations": a_list(_ALLOCATION),
        "use": _USE,
        "cloud_ids": {"type": "object", "description": "for operators"},
        "created_at": ZULU,
        "updated_at": ZULU_OR_NULL,
        "made": _MADE,
        "region": {**TEXT, "description": "where its resources are, if the service has several regions"},
        "children": {
            **a_list(ref("Reservation1_1")),
            "description": "the reservations that it is made of, if it is made of others",
        },
    },
    optional=("cloud_ids", "children", "region", "made"),
    more=True,
    example=_RESERVATION_EXAMPLE,
)
_WHY_TRY_FAILED: Json = an_object(
    {"code": one_of(TryFailure), "message": TEXT, "detail": TEXT_OR_NULL}, optional=("detail",)
)
_WAIT: Json = {
    "queued_at": ZULU,
    "earliest": {**ZULU, "description": "the earliest start that it asks for"},
    "until": {**ZULU, "description": "when it stops waiting"},
    "latest": {**ZULU_OR_NULL, "description": "the latest start that will do, none after until; null: any up to until"},
    "at_least": {**TEXT_OR_NULL, "description": "how long it has to be at least, a duration; null: as it asks for"},
    "position": {**_NUMBER_OR_NULL, "description": "from 1; null before the first plan"},
    "estimated_start": {**ZULU_OR_NULL, "description": "when it will probably start; null if that is not known"},
    "reason": {**TEXT_OR_NULL, "description": "why no waiting helps as things are, or why its turn did not"},
    "advance": {**FLAG, "description": "its start was promised: it may become earlier, and never later"},
    "max_price": {**TEXT_OR_NULL, "description": "the most that it may cost; null: whatever it costs"},
    "tries": {**_NUMBER_OR_NULL, "description": "how many tries may fail; null: they are not counted"},
    "failed_tries": {
        **a_list(an_object({"at": ZULU, "reason": _WHY_TRY_FAILED})),
        "description": "those that did, of those for which there were resources",
    },
}
EXTEND: Json = {
    "type": ["object", "null"],
    "required": ["until", "reason"],
    "additionalProperties": False,
    "properties": {"until": ZULU, "reason": {**TEXT_OR_NULL, "description": "why it was not prolonged so far"}},
    "description": "up to when it is prolonged if nobody else wants its resources; else null",
}
OFFER_KEYS: Json = {
    "project_id": {**TEXT, "description": "the project that may accept it"},
    "user_id": {**TEXT_OR_NULL, "description": "the only user who may; null: any member of the project"},
    "message": TEXT_OR_NULL,
    "offered_at": ZULU,
    "expires_at": ZULU,
}
OFFER_EXAMPLE: Json = {
    "project_id": "71bb40c6a5b94e0f8f2f0a3d1c9e7b55",
    "user_id": None,
    "message": "for your course",
    "offered_at": "2030-04-30T08:00:00Z",
    "expires_at": "2030-05-01T08:00:00Z",
}
_LEASE: Json = {
    "id": {**TEXT_OR_NULL, "description": "null for a dry run"},
    "name": TEXT,
    "project_id": TEXT,
    "user_id": TEXT,
    "status": one_of(LeaseStatus),
    "degraded": FLAG,
    "revision": NUMBER,
    "start_date": ZULU,
    "end_date": ZULU,
    "before_end_date": ZULU_OR_NULL,
    "created_at": ZULU,
    "updated_at": ZULU_OR_NULL,
    "deleted_at": ZULU_OR_NULL,
    "conditions": a_list(ref("LeaseCondition1_1")),
    "reservations": a_list(ref("Reservation1_1")),
    "events": a_list(ref("Event1_1")),
    "links": LINKS,
    "kind": one_of(LeaseKind),
    "end_reason": {
        **one_of(EndReason, None),
        "description": "why it has ended, or is being ended; null before that, and if an earlier version has ended it",
    },
    "usage": {**one_of(Usage, None), "description": "what a look has last found; null: nobody looks"},
    "used_at": {**ZULU_OR_NULL, "description": "the last look that found it used"},
    "release_at": {**ZULU_OR_NULL, "description": "when it is released, unless somebody uses or keeps it"},
    "held": {
        "type": ["boolean", "null"],
        "description": "whether an operator wants it to stay, used or not; null: nobody looks",
    },
    "wait": {
        "type": ["object", "null"],
        "required": list(_WAIT),
        "additionalProperties": False,
        "properties": _WAIT,
        "description": "while it waits for its turn, or for a promised start, after it has in vain, and of the kind "
        "retries; else null",
    },
    "extend_if_free": EXTEND,
    "keep_hosts": {**FLAG, "description": "whether it keeps its hosts until it starts; else others may move it"},
    "confirm_by": {
        **ZULU_OR_NULL,
        "description": "when it is deleted unless somebody confirms it before; null: it is firm",
    },
    "reminders": reminders.SHOWN,
    "price": PRICE,
    "waking": WAKING,
    "moves_others": {
        **_NUMBER_OR_NULL,
        "description": "of a dry run: how many other leases would get other hosts; else null",
    },
    "transfer": {
        **an_object(OFFER_KEYS),
        "type": ["object", "null"],
        "description": "to whom it was offered last, until that is accepted, declined or withdrawn; else null",
    },
    "series_id": {**TEXT_OR_NULL, "description": "the series that it belongs to"},
    "recurrence_id": {
        **TEXT_OR_NULL,
        "description": "which occurrence of the series it is: the local start by its rule",
    },
}
LEASE_KEYS = tuple(_LEASE)
"""The keys of a lease, which ``fields`` may name."""

COMPONENTS: Json = {
    "LeaseCondition1_1": an_object(
        {
            "type": {"enum": list(CONDITIONS)},
            "reservation_id": TEXT_OR_NULL,
            "since": ZULU,
            "count": _NUMBER_OR_NULL,
            "reason": _REASON_OR_NULL,
        },
        example=_CONDITION_EXAMPLE,
    ),
    "Reservation1_1": _RESERVATION,
    "Event1_1": an_object(
        {
            "id": TEXT_OR_NULL,
            "event_type": TEXT,
            "time": ZULU_OR_NULL,
            "status": one_of(EventStatus, None),
            "finished_at": ZULU_OR_NULL,
            "attempts": NUMBER,
            "next_attempt_at": ZULU_OR_NULL,
            "reason": _REASON_OR_NULL,
        },
        example=_EVENT_EXAMPLE,
    ),
    "Lease1_1": an_object(_LEASE, optional=tuple(_LEASE), example=_LEASE_EXAMPLE),
}
