# SPDX-License-Identifier: Apache-2.0
"""The schema of questions when something is free."""

from __future__ import annotations

from blazar.api.http import dates
from blazar.api.http.shapes import Json
from blazar.api.leases.v1_1.schemas import CHANGED_RESERVATIONS, RESERVATIONS

MOST_RESERVATIONS = 20

_DATE: Json = {"type": "string", "maxLength": dates.MOST_CHARACTERS}
_BEGIN: Json = {**_DATE, "description": dates.DATE_FORMAT}
_END: Json = {**_DATE, "description": f"{dates.DATE_FORMAT}, or a duration from the start such as +P3D or +72h"}
_FLAG: Json = {"type": "boolean", "description": "true or false"}
_FEW: Json = {
    "maxItems": MOST_RESERVATIONS,
    "description": f"a list of 1 to {MOST_RESERVATIONS} reservations, as in a new lease; with lease_id, of changes of "
    "the lease's reservations",
}

QUESTION: Json = {
    "type": "object",
    "additionalProperties": False,
    "required": [],
    "properties": {
        "reservations": {"type": "array", "minItems": 1, **_FEW},
        "duration": {**_DATE, "description": dates.DURATION_FORMAT},
        "earliest": _BEGIN,
        "latest": {**_END, "description": f"the last end: {_END['description']}"},
        "start_date": _BEGIN,
        "end_date": _END,
        "lease_id": {"type": "string", "minLength": 1, "maxLength": 255, "description": "the id of a lease"},
        "limit": {"type": "integer", "minimum": 1, "description": "a whole number from 1"},
        "explain": _FLAG,
        "alternatives": _FLAG,
        "time_zone": {**_DATE, "description": "the name of a time zone such as Europe/Paris"},
    },
    "if": {"required": ["lease_id"]},
    "then": {"type": "object", "properties": {"reservations": {**CHANGED_RESERVATIONS, **_FEW}}},
    "else": {"type": "object", "required": ["reservations"], "properties": {"reservations": {**RESERVATIONS, **_FEW}}},
}


EXAMPLE: Json = {
    "reservations": [
        {"resource_type": "physical:host", "min": 4, "max": 6, "resource_properties": ["==", "$gpu", "A100"]}
    ],
    "duration": "P3D",
    "earliest": "now",
    "latest": "+P60D",
    "limit": 2,
    "time_zone": "Europe/Paris",
}
OF_A_LEASE: Json = {"lease_id": "9f0d0a3e-6f0e-4f57-9d0a-0e1f2a3b4c5d"}
