# SPDX-License-Identifier: Apache-2.0
"""The components of leases of 1.1 in the OpenAPI document."""

from __future__ import annotations

from blazar.api.leases.full.reasons import sentence_of_missing
from blazar.api.shapes import (
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
from blazar.model.lease import EventStatus, LeaseStatus, ReservationStatus
from blazar.model.reasons import ReasonCode

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
    "links": [{"rel": "self", "href": f"https://cloud.example/reservation/v1/leases/{LEASE_ID}"}],
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
}
_RESERVATION: Json = {
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
    "Reservation1_1": an_object(_RESERVATION, optional=("cloud_ids",), more=True, example=_RESERVATION_EXAMPLE),
    "Reservation1_2": an_object(
        {
            **_RESERVATION,
            "region": {**TEXT, "description": "where its resources are, if the service has several regions"},
            "children": {
                **a_list(ref("Reservation1_2")),
                "description": "the reservations that it is made of, if it is made of others",
            },
        },
        optional=("cloud_ids", "children", "region"),
        more=True,
        example=_RESERVATION_EXAMPLE,
    ),
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
    "Lease1_1": an_object(_LEASE, optional=LEASE_KEYS, example=_LEASE_EXAMPLE),
    "Lease1_2": an_object(
        {**_LEASE, "reservations": a_list(ref("Reservation1_2"))}, optional=LEASE_KEYS, example=_LEASE_EXAMPLE
    ),
}
