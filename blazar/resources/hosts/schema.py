# SPDX-License-Identifier: Apache-2.0
"""What a request for a reservation of hosts may have."""

from __future__ import annotations

from blazar.resources.schemas import BEFORE_END, COUNT, REQUIREMENT, a_request

SCHEMA = a_request(
    {
        "min": {**COUNT, "title": "Hosts at least"},
        "max": {**COUNT, "title": "Hosts at most"},
        "hypervisor_properties": {**REQUIREMENT, "title": "Properties of the hypervisor", "default": []},
        "resource_properties": {**REQUIREMENT, "default": []},
        "before_end": BEFORE_END,
    },
    required=("min",),
    example={"min": 2, "max": 4, "resource_properties": ["==", "$gpu", "A100"], "before_end": "snapshot"},
)
