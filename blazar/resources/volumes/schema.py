# SPDX-License-Identifier: Apache-2.0
"""What a request for a reservation of volumes may have."""

from __future__ import annotations

from blazar.resources.schemas import COUNT, REQUIREMENT, TEXT, a_choice, a_request
from blazar.resources.volumes.parameters import ACTIONS

_MAYBE: dict[str, object] = {**TEXT, "type": ["string", "null"], "default": None}

SCHEMA = a_request(
    {
        "size": {**COUNT, "title": "Size of each, GiB", "description": "a whole number of GiB from 1"},
        "amount": {**COUNT, "title": "Volumes", "default": 1},
        "mode": {
            "enum": ["volume", "quota"],
            "title": "Who makes them",
            "description": "volume (they are made for the project) or quota (the project makes them)",
            "default": "volume",
        },
        "volume_type": {**_MAYBE, "title": "Volume type", "description": "the name of a volume type, or null"},
        "name": {**_MAYBE, "title": "Name", "description": "a name of at most 255 characters, or null"},
        "image": {**_MAYBE, "title": "Image", "description": "the id of an image, or null"},
        "resource_properties": {**REQUIREMENT, "default": ""},
        "before_end": a_choice("default", *(str(action) for action in ACTIONS), title="At the end"),
    },
    required=("size",),
    before_start=("name",),
    fixed=("mode", "volume_type", "image"),
    example={"size": 100, "amount": 2, "volume_type": "fast"},
)
