# SPDX-License-Identifier: Apache-2.0
"""Reservations of generic resources in the document. The resources themselves are served at ``/v1/resources``."""

from __future__ import annotations

from blazar.api.http.routes import Part
from blazar.api.http.shapes import BEFORE_END, COUNT, TEXT, TEXT_OR_NULL, Json, a_reservation
from blazar.api.resources.components import HANDED_OVER

_RESERVATION = a_reservation(
    "generic",
    {
        "class": TEXT,
        "min": {**COUNT, "description": "whole resources"},
        "max": {**COUNT, "description": "whole resources"},
        "amount": {**COUNT, "description": "units of one resource, in the place of min and max"},
        "resource_properties": TEXT_OR_NULL,
        "before_end": BEFORE_END,
        "resources": HANDED_OVER,
    },
    {
        "class": "microscope",
        "min": 1,
        "max": 2,
        "resource_properties": '[">", "$lens", "40"]',
        "before_end": "default",
        "resources": [{"id": "9a31", "name": "microscope-1", "answer": {"url": "https://m1.lab.example"}}],
    },
)
RESERVATIONS: Json = {
    "GenericReservation": {
        **_RESERVATION,
        "required": [name for name in _RESERVATION["required"] if name not in ("min", "max", "amount", "resources")],
    },
}
FIELDS: Json = {
    "class": {"description": "generic: the class of the resources, such as microscope"},
}
"""What a request for a reservation of generic resources may have."""

PART = Part("generic", reservations=RESERVATIONS, fields=FIELDS)
