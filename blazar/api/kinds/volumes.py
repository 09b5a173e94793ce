# SPDX-License-Identifier: Apache-2.0
"""Reservations of volumes in the document. The pools themselves are served at ``/v1/resources``."""

from __future__ import annotations

from blazar.api.http.routes import Part
from blazar.api.http.shapes import COUNT, TEXT, TEXT_OR_NULL, Json, a_list, a_reservation
from blazar.resources.volumes.parameters import ACTIONS

_IDS: Json = {**a_list(TEXT), "type": ["array", "null"]}

_RESERVATION = a_reservation(
    "virtual:volume",
    {
        "size": {**COUNT, "description": "GiB of each volume"},
        "amount": {**COUNT, "description": "volumes"},
        "mode": {"enum": ["volume", "quota"]},
        "volume_type": TEXT_OR_NULL,
        "name": TEXT_OR_NULL,
        "image": TEXT_OR_NULL,
        "resource_properties": TEXT_OR_NULL,
        "before_end": {"enum": ["default", "", *(str(action) for action in ACTIONS)]},
        "volume_ids": {**_IDS, "description": "once they are made"},
        "volume_types": {**_IDS, "description": "of the pools, once it is in use"},
        "image_ids": {**_IDS, "description": "images of them that were made before the end"},
        "backup_ids": {**_IDS, "description": "backups of them that were made before the end"},
    },
    {
        "size": 100,
        "amount": 1,
        "mode": "volume",
        "volume_type": "fast",
        "name": "data",
        "image": None,
        "resource_properties": "",
        "before_end": "default",
        "volume_ids": ["6c1f2d3e-1111-4222-8333-444455556666"],
        "volume_types": ["fast"],
        "image_ids": None,
        "backup_ids": None,
    },
)
RESERVATIONS: Json = {"VolumeReservation": _RESERVATION}
FIELDS: Json = {
    "size": {"description": "virtual:volume: GiB of each volume"},
    "mode": {"description": "virtual:volume: volume (they are made for the project) or quota (it makes them)"},
}
"""What a request for a reservation of volumes may have."""

PART = Part("volumes", reservations=RESERVATIONS, fields=FIELDS)
