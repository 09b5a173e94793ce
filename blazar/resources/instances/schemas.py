# SPDX-License-Identifier: Apache-2.0
"""What requests for reservations of instances may have."""

from __future__ import annotations

from blazar.resources.contract.schemas import COUNT, ID, REQUIREMENT, SAVES_WORK, SIZE, Schema, a_request
from blazar.resources.hosts import gpus
from blazar.resources.instances.extra_specs import MOST_SPECS

_AMOUNT: Schema = {**COUNT, "title": "Servers"}
_AFFINITY: Schema = {
    "type": ["boolean", "null"],
    "title": "All on one host",
    "description": "true, false or null",
    "default": None,
}

VIRTUAL = a_request(
    {
        "amount": _AMOUNT,
        "vcpus": {**COUNT, "title": "vCPUs of each"},
        "memory_mb": {**COUNT, "title": "Memory of each (MiB)"},
        "disk_gb": {**SIZE, "title": "Disk of each (GiB)"},
        "ephemeral_gb": {**SIZE, "title": "Ephemeral disk of each (GiB)", "default": 0},
        "extra_specs": {
            "type": "object",
            "additionalProperties": {"type": "string", "minLength": 1, "maxLength": 255, "description": "a text"},
            "maxProperties": MOST_SPECS,
            "title": "Extra specs of the flavor",
            "description": 'an object of names and texts, such as {"hw:cpu_policy": "dedicated"}',
            "default": {},
        },
        **gpus.SCHEMAS,
        "affinity": _AFFINITY,
        "resource_properties": {**REQUIREMENT, "default": []},
        "before_end": SAVES_WORK,
    },
    required=("amount", "vcpus", "memory_mb", "disk_gb"),
    before_start=("vcpus", "memory_mb", "disk_gb", "ephemeral_gb", "extra_specs", *gpus.FIELDS, "affinity"),
    example={"amount": 3, "vcpus": 2, "memory_mb": 4096, "disk_gb": 20, "affinity": False},
)
FLAVOR = a_request(
    {
        "flavor_id": {**ID, "title": "Id of the flavor"},
        "amount": _AMOUNT,
        "affinity": _AFFINITY,
        "before_end": SAVES_WORK,
    },
    required=("flavor_id", "amount"),
    before_start=("flavor_id", "affinity"),
    example={"flavor_id": "3", "amount": 2},
)
