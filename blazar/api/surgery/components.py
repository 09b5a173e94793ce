# SPDX-License-Identifier: Apache-2.0
"""Schemas of the requests for surgery on leases."""

from __future__ import annotations

from blazar.api.leases.full.view import OF_1_3
from blazar.api.shapes import Json, a_list, an_object, ref

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
