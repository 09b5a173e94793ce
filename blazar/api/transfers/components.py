# SPDX-License-Identifier: Apache-2.0
"""Schemas of offers of leases."""

from __future__ import annotations

from blazar.api.leases.full.components import EXTEND, OFFER_EXAMPLE, OFFER_KEYS
from blazar.api.shapes import (
    LEASE_ID,
    NUMBER,
    RESERVATION_ID,
    TEXT,
    ZULU,
    ZULU_OR_NULL,
    Json,
    a_list,
    an_object,
    one_of,
)
from blazar.model.lease import LeaseKind, LeaseStatus, ReservationStatus

_ID: Json = {"type": "string", "minLength": 1, "maxLength": 255}

OFFER = an_object(
    {
        "project_id": {**_ID, "description": "the project that is to get it; left out: the lease's own"},
        "user_id": {
            **_ID,
            "type": ["string", "null"],
            "description": "the only user who may accept it; null or left out: any member of the project",
        },
        "message": {"type": ["string", "null"], "maxLength": 255, "description": "a text for who gets it"},
    },
    optional=("project_id", "user_id", "message"),
)
OFFERS: tuple[Json, ...] = (
    {"project_id": "71bb40c6a5b94e0f8f2f0a3d1c9e7b55", "message": "for your course"},
    {"user_id": "3c1f9a7d2b6e4f58a0c1d2e3f4a5b6c7"},
)

_RESERVATION = an_object(
    {
        "id": TEXT,
        "resource_type": TEXT,
        "region": TEXT,
        "status": one_of(ReservationStatus),
        "count": {**NUMBER, "description": "how many resources it has, or units of them"},
        "parameters": {"type": "object", "description": "as the request for it had them"},
    },
    optional=("region",),
)
_LEASE = an_object(
    {
        "id": TEXT,
        "name": TEXT,
        "kind": one_of(LeaseKind),
        "status": one_of(LeaseStatus),
        "revision": NUMBER,
        "start_date": ZULU,
        "end_date": ZULU,
        "before_end_date": ZULU_OR_NULL,
        "extend_if_free": EXTEND,
        "reservations": a_list(_RESERVATION),
    }
)
TRANSFER = an_object(
    {**OFFER_KEYS, "from_project_id": TEXT, "from_user_id": TEXT, "lease": _LEASE},
    example={
        **OFFER_EXAMPLE,
        "from_project_id": "9e0c7b1d4f6a4c3b8d2e5f7a1b3c5d7e",
        "from_user_id": "b7d1e5a3c9f24e6d8a0b2c4d6e8f0a1c",
        "lease": {
            "id": LEASE_ID,
            "name": "training",
            "kind": "scheduled",
            "status": "PENDING",
            "revision": 3,
            "start_date": "2030-05-01T08:00:00Z",
            "end_date": "2030-05-03T08:00:00Z",
            "before_end_date": "2030-05-03T07:00:00Z",
            "extend_if_free": None,
            "reservations": [
                {
                    "id": RESERVATION_ID,
                    "resource_type": "physical:host",
                    "status": "pending",
                    "count": 2,
                    "parameters": {"min": 2, "max": 2},
                }
            ],
        },
    },
)
