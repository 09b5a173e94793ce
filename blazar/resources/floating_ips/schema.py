# SPDX-License-Identifier: Apache-2.0
"""What a request for a reservation of floating IP addresses may have."""

from __future__ import annotations

from blazar.resources.schemas import BEFORE_END, COUNT, ID, a_request

SCHEMA = a_request(
    {
        "network_id": {**ID, "title": "Id of the external network"},
        "amount": {**COUNT, "title": "Addresses"},
        "required_floatingips": {
            "type": "array",
            "maxItems": 1000,
            "items": {"type": "string", "maxLength": 64, "description": "an IP address"},
            "title": "These addresses",
            "description": "a list of addresses",
            "default": [],
        },
        "before_end": BEFORE_END,
    },
    required=("network_id", "amount"),
    fixed=("network_id",),
    example={"network_id": "c5b1d7a2-0f3e-4f57-9d0a-0e1f2a3b4c5d", "amount": 2},
)
