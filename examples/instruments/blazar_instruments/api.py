# SPDX-License-Identifier: Apache-2.0
"""Reservations of instruments in the OpenAPI document. Instruments themselves are served at ``/v1/resources``."""

from __future__ import annotations

from blazar.api.http.routes import Part
from blazar.api.http.shapes import COUNT, TEXT, a_reservation
from blazar_instruments.type import SCHEMA

_SOURCE = {"type": ["object", "null"], "properties": {"reservation": {"type": "string"}}}
PART = Part(
    "instruments",
    reservations={
        "InstrumentReservation": a_reservation(
            "lab:instrument",
            {"channels": COUNT, "resource_properties": TEXT, "samples_from": _SOURCE, "instrument": TEXT},
            {"channels": 2, "resource_properties": "", "samples_from": None, "instrument": "microscope-1"},
        ),
    },
    requests={"lab:instrument": SCHEMA},
    fields={"channels": {"description": "lab:instrument: the number of channels of one instrument"}},
)
