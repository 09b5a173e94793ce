# SPDX-License-Identifier: Apache-2.0
"""Floating IPs and their reservations as JSON: the schema of a request, the rendering, and the components."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from blazar.api.dates import iso
from blazar.api.shapes import (
    BEFORE_END,
    COUNT,
    FLAG,
    ISO,
    ISO_OR_NULL,
    TEXT,
    Json,
    a_list,
    a_reservation,
    an_object,
    with_zulu,
)
from blazar.api.validation import Schema
from blazar.model.resource import Resource

_NETWORK_ID = "88889999-aaaa-4bbb-8ccc-ddddeeeeffff"

FLOATING_IP_CREATE: Schema = {
    "type": "object",
    "required": ["floating_network_id", "floating_ip_address"],
    "additionalProperties": False,
    "properties": {
        "floating_network_id": {
            "type": "string",
            "minLength": 1,
            "maxLength": 64,
            "description": "the id of an external network",
        },
        "floating_ip_address": {
            "type": "string",
            "maxLength": 64,
            "description": "an IPv4 address in a subnet of the network, outside its allocation pools",
        },
    },
}

RESERVATIONS: Json = {
    "AddressReservation": a_reservation(
        "virtual:floatingip",
        {"network_id": TEXT, "amount": COUNT, "required_floatingips": a_list(TEXT), "before_end": BEFORE_END},
        {"network_id": _NETWORK_ID, "amount": 2, "required_floatingips": ["203.0.113.10"], "before_end": "default"},
    ),
}

FIELDS: Json = {
    "network_id": {"description": "virtual:floatingip: the id of the external network; it cannot be changed"},
    "required_floatingips": {"description": "virtual:floatingip: a list of addresses that the reservation must get"},
}
"""What a request for a reservation of addresses may have."""

_ADDRESS = an_object(
    {
        "id": TEXT,
        "floating_network_id": TEXT,
        "subnet_id": TEXT,
        "floating_ip_address": TEXT,
        "reservable": FLAG,
        "created_at": ISO,
        "updated_at": ISO_OR_NULL,
    },
    example={
        "id": "0b1c2d3e-1111-4222-8333-444455556666",
        "floating_network_id": _NETWORK_ID,
        "subnet_id": "7c6d5e4f-2222-4333-8444-555566667777",
        "floating_ip_address": "203.0.113.10",
        "reservable": True,
        "created_at": "2030-03-01T09:00:00.000000",
        "updated_at": None,
    },
)
KEYS = tuple(_ADDRESS["properties"])
COMPONENTS: Json = {
    "FloatingIp": _ADDRESS,
    "FloatingIp1_1": with_zulu(_ADDRESS),
    "FloatingIpInList1_1": {**with_zulu(_ADDRESS), "required": ["id"]},
}


def floating_ip(value: Resource, date: Callable[[datetime], str] = iso) -> Json:
    """Render an address, in 1.0 with timestamps in the ISO format (hosts and leases use a space)."""
    return {
        "id": value.external_id,
        **value.attributes,
        "reservable": value.reservable,
        "created_at": date(value.created_at),
        "updated_at": date(value.updated_at) if value.updated_at else None,
    }
