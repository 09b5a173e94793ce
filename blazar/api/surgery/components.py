# SPDX-License-Identifier: Apache-2.0
"""Schemas of the requests for surgery on leases."""

from __future__ import annotations

from blazar.api.leases.full.view import OF_1_3
from blazar.api.shapes import LEASE_ID, RESERVATION_ID, Json, a_list, an_object, ref

_NAMED: Json = {"type": "string", "minLength": 1, "maxLength": 255}
_ID: Json = {"type": "string", "minLength": 1, "maxLength": 64}

LEASES = an_object({"leases": a_list(ref(OF_1_3.component("Lease")))})
"""The leases that are left, the one that the request named first."""

SWAP = an_object(
    {
        "host": {**_NAMED, "description": "the host to give up, as the lease shows it"},
        "for": {
            **_NAMED,
            "type": ["string", "null"],
            "description": "the host to get for it; null or left out: any that fits",
        },
        "with": {
            **an_object({"lease_id": _ID, "reservation_id": _ID}),
            "description": "the reservation of another lease that gets the host and gives up the other one",
        },
    },
    optional=("for", "with"),
)
SWAPS: tuple[Json, ...] = ({"host": "node-1"}, {"host": "node-1", "for": "node-3"})

SPLIT = an_object(
    {
        "name": {
            "type": "string",
            "minLength": 1,
            "maxLength": 255,
            "description": "the second lease's; default: same",
        },
        "reservations": {
            **a_list(
                an_object(
                    {
                        "id": {**_ID, "description": "the reservation that goes to the second lease, or is cut"},
                        "resources": {
                            **a_list(_NAMED),
                            "minItems": 1,
                            "maxItems": 1000,
                            "description": "the resources of it that go, as the lease shows them",
                        },
                        "count": {"type": "integer", "minimum": 1, "description": "how many of its resources go"},
                    },
                    optional=("resources", "count"),
                )
            ),
            "minItems": 1,
            "maxItems": 100,
            "description": "the reservations that go, or are cut",
        },
        "at": {"type": "string", "maxLength": 64, "description": "the date at which the second lease begins"},
    },
    optional=("name", "reservations", "at"),
)
SPLITS: tuple[Json, ...] = (
    {"name": "second half", "reservations": [{"id": RESERVATION_ID, "count": 1}]},
    {"at": "2030-05-02T08:00:00Z"},
)

MERGE = an_object({"with": {**_ID, "description": "the lease whose reservations, or whose time, this one gets"}})
MERGES: tuple[Json, ...] = ({"with": LEASE_ID},)
