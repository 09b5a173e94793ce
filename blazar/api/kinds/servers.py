# SPDX-License-Identifier: Apache-2.0
"""Reservations of servers that are booted at the start, in the document. They have no routes of their own."""

from __future__ import annotations

from blazar.api.http.routes import Part
from blazar.api.http.shapes import BEFORE_END, COUNT, RESERVATION_ID, TEXT, TEXT_OR_NULL, Json, a_list, a_reservation
from blazar.resources.request_schemas import SCHEMAS

_REQUEST: Json = SCHEMAS["virtual:server"]["properties"]

_RESERVATION = a_reservation(
    "virtual:server",
    {
        "image": TEXT,
        "amount": COUNT,
        "name": TEXT,
        "flavor": {**TEXT_OR_NULL, "description": "the flavor that the servers are like; null if sizes were given"},
        "vcpus": COUNT,
        "memory_mb": {**COUNT, "description": "MiB"},
        "disk_gb": {**COUNT, "description": "GiB"},
        "gpus": {**COUNT, "description": "of each server; only if they were asked for beside sizes"},
        "gpu_model": {**TEXT, "description": "only if they were asked for beside sizes"},
        "affinity": {"type": ["boolean", "null"]},
        "resource_properties": TEXT_OR_NULL,
        "networks": {key: _REQUEST["networks"][key] for key in ("oneOf", "description")},
        "key_name": TEXT_OR_NULL,
        "public_key": TEXT_OR_NULL,
        "metadata": {"type": "object", "additionalProperties": TEXT},
        "security_groups": a_list(TEXT),
        "volumes": {key: _REQUEST["volumes"][key] for key in ("type", "items", "description")},
        "floating_ip": {key: _REQUEST["floating_ip"][key] for key in ("oneOf", "description")},
        "before_end": BEFORE_END,
        "flavor_id": {**TEXT_OR_NULL, "description": "the private flavor of the servers; null until it exists"},
        "aggregate_id": {"type": ["integer", "null"]},
        "server_group_id": {**TEXT_OR_NULL, "description": "null without affinity"},
        "server_ids": {"type": ["array", "null"], "items": TEXT, "description": "one by one, as they are booted"},
    },
    {
        "image": "6f1e8a52-1111-4222-8333-444455556666",
        "amount": 1,
        "name": "web",
        "flavor": "3",
        "vcpus": 2,
        "memory_mb": 4096,
        "disk_gb": 20,
        "affinity": None,
        "resource_properties": "",
        "networks": [{"uuid": "77771111-2222-4333-8444-555566667777"}],
        "key_name": "mine",
        "public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINZkG171DjZbTnvAsKfM4N0lbLF16hJvVKq9EBzZjWvF me@here",
        "metadata": {},
        "security_groups": [],
        "volumes": [{"reservation": "4d3c2b1a-1111-4222-8333-444455556666"}],
        "floating_ip": None,
        "before_end": "default",
        "flavor_id": RESERVATION_ID,
        "aggregate_id": 17,
        "server_group_id": None,
        "server_ids": ["5b1c2d3e-1111-4222-8333-444455556666"],
    },
    optional=("gpus", "gpu_model"),
)
RESERVATIONS: Json = {"ServerReservation": _RESERVATION}
FIELDS: Json = {
    name: {"description": f"virtual:server: {_REQUEST[name]['description']}"}
    for name in (
        "image",
        "name",
        "flavor",
        "networks",
        "key_name",
        "public_key",
        "user_data",
        "metadata",
        "security_groups",
        "volumes",
        "floating_ip",
    )
}
"""What a request for a reservation of servers may have, beside what one of instances has."""

PART = Part("servers", reservations=RESERVATIONS, fields=FIELDS)
