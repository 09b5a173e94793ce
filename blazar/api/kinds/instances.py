# SPDX-License-Identifier: Apache-2.0
"""Reservations of instances on shared hosts, by size or by flavor. They have no routes of their own."""

from __future__ import annotations

from blazar.api.http.routes import Part
from blazar.api.http.shapes import BEFORE_END, COUNT, RESERVATION_ID, TEXT, TEXT_OR_NULL, Json, a_reservation

_EXAMPLE: Json = {
    "amount": 3,
    "vcpus": 2,
    "memory_mb": 4096,
    "disk_gb": 20,
    "affinity": False,
    "resource_properties": "",
    "before_end": "default",
    "flavor_id": RESERVATION_ID,
    "aggregate_id": 17,
    "server_group_id": "5a5b5c5d-6666-4777-8888-9999aaaabbbb",
}
_SOURCE_FLAVOR = (
    '{"id": "3", "name": "m1.medium", "vcpus": 2, "ram": 4096, "disk": 20, "OS-FLV-EXT-DATA:ephemeral": 0, "swap": "", '
    '"rxtx_factor": 1.0, "os-flavor-access:is_public": true, "OS-FLV-DISABLED:disabled": false, '
    '"extra_specs": {"hw:cpu_policy": "dedicated"}}'
)

_RESERVATIONS: Json = {
    "InstanceReservation": a_reservation(
        "virtual:instance",
        {
            "amount": COUNT,
            "vcpus": COUNT,
            "memory_mb": {**COUNT, "description": "MiB"},
            "disk_gb": {"type": "integer", "minimum": 0, "description": "GiB"},
            "ephemeral_gb": {"type": "integer", "minimum": 1, "description": "GiB; only if there is such a disk"},
            "extra_specs": {
                "type": "object",
                "additionalProperties": TEXT,
                "description": "those that were asked for; only if there are any",
            },
            "gpus": {**COUNT, "description": "of each server; only if there are any"},
            "gpu_model": {**TEXT, "description": "only if there are any"},
            "affinity": {"type": ["boolean", "null"]},
            "resource_properties": TEXT_OR_NULL,
            "before_end": BEFORE_END,
            "flavor_id": {**TEXT_OR_NULL, "description": "the flavor to boot servers with; null until it exists"},
            "aggregate_id": {"type": ["integer", "null"]},
            "server_group_id": {**TEXT_OR_NULL, "description": "null without affinity"},
        },
        {
            **_EXAMPLE,
            "ephemeral_gb": 30,
            "extra_specs": {"hw:cpu_policy": "dedicated"},
            "gpus": 2,
            "gpu_model": "A100",
        },
        optional=("ephemeral_gb", "extra_specs", "gpus", "gpu_model"),
    ),
    "FlavorReservation": a_reservation(
        "flavor:instance",
        {
            "amount": COUNT,
            "vcpus": {**COUNT, "description": "of the source flavor"},
            "memory_mb": {**COUNT, "description": "of the source flavor, in MiB"},
            "disk_gb": {"type": "integer", "minimum": 0, "description": "the root disk of the source flavor, in GiB"},
            "affinity": {"type": ["boolean", "null"]},
            "resource_properties": {
                **TEXT,
                "description": "JSON: the source flavor at the time of the request, with the keys of Nova",
            },
            "before_end": BEFORE_END,
            "flavor_id": {
                **TEXT_OR_NULL,
                "description": "the flavor to boot servers with (not the source flavor); null until it exists",
            },
            "aggregate_id": {"type": ["integer", "null"]},
            "server_group_id": {**TEXT_OR_NULL, "description": "null without affinity"},
        },
        {**_EXAMPLE, "resource_properties": _SOURCE_FLAVOR},
    ),
}
_FIELDS: Json = {
    "flavor_id": {"description": "flavor:instance: the id of a flavor that your project can access"},
    "vcpus": {"description": "virtual:instance: the VCPUs of a server, a whole number from 1"},
    "memory_mb": {"description": "virtual:instance: the memory of a server in MiB, a whole number from 1"},
    "disk_gb": {"description": "virtual:instance: the disk of a server in GiB, a whole number; 0 to boot from volumes"},
    "ephemeral_gb": {
        "description": "virtual:instance: the ephemeral disk of a server in GiB, a whole number; left out, or 0, for "
        "none"
    },
    "extra_specs": {
        "description": "virtual:instance: extra specs for the flavor of the reservation, an object of names and texts "
        "of 1 to 255 characters, such as {'hw:cpu_policy': 'dedicated'}; which ones, the operator decides"
    },
    "gpus": {"description": "virtual:instance, virtual:server: the GPUs of a server, a whole number; 0 if left out"},
    "gpu_model": {
        "description": "virtual:instance, virtual:server: the model of the GPUs, one of those that the operator offers"
    },
    "affinity": {
        "description": "virtual:instance, flavor:instance: true (all servers on one host), false (each on its own "
        "host) or null (no constraint); also as a string: 'True', 'yes', '1' or 'None'"
    },
}
"""What a request for a reservation of instances may have."""

PART = Part("instances", reservations=_RESERVATIONS, fields=_FIELDS)
