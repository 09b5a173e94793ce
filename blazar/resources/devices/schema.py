# SPDX-License-Identifier: Apache-2.0
"""What a request for a reservation of devices may have."""

from __future__ import annotations

from blazar.resources.schemas import COUNT, NOTICE, REQUIREMENT, a_request

SCHEMA = a_request(
    {
        "min": {**COUNT, "title": "Devices, at least"},
        "max": {**COUNT, "title": "Devices, at most"},
        "resource_properties": {**REQUIREMENT, "default": []},
        "before_end": NOTICE,
    },
    required=("min", "max"),
    example={"min": 1, "max": 2, "resource_properties": ["==", "$machine_name", "jetson-nano"]},
)
