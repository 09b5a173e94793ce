# SPDX-License-Identifier: Apache-2.0
"""What a request for a reservation of generic resources may have."""

from __future__ import annotations

from blazar.resources.schemas import COUNT, INSTEAD_OF, NOTICE, REQUIREMENT, a_request

SCHEMA = a_request(
    {
        "class": {
            "type": "string",
            "minLength": 1,
            "maxLength": 64,
            "title": "Class",
            "description": "the class of the resources, such as microscope",
        },
        "min": {**COUNT, "title": "Whole resources, at least"},
        "max": {
            **COUNT,
            "title": "Whole resources, at most",
            "description": "a whole number from 1; as many as at least, if it is left out",
        },
        "amount": {**COUNT, "title": "Units of a shared one", INSTEAD_OF: ["min", "max"]},
        "resource_properties": REQUIREMENT,
        "before_end": NOTICE,
    },
    required=("class",),
    fixed=("class",),
    example={"class": "microscope", "min": 1, "max": 2, "resource_properties": [">", "$lens", "40"]},
)
