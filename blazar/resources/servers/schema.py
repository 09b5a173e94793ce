# SPDX-License-Identifier: Apache-2.0
"""What a request for a reservation of servers may have."""

from __future__ import annotations

from blazar.resources.contract.schemas import COUNT, REQUIREMENT, SAVES_WORK, SIZE, TEXT, Schema, a_reference, a_request
from blazar.resources.hosts import gpus
from blazar.resources.servers.access import LONGEST_KEY, LONGEST_USER_DATA
from blazar.resources.servers.parameters import (
    MOST_GROUPS,
    MOST_METADATA,
    MOST_NETWORKS,
    MOST_VOLUMES,
)

_MAYBE: Schema = {**TEXT, "type": ["string", "null"]}
_OF_FLAVOR = "; left out with a flavor"

_OWN: Schema = {
    "type": "object",
    "required": ["uuid"],
    "additionalProperties": False,
    "properties": {"uuid": {**TEXT, "minLength": 1}},
}
_NETWORK: Schema = {
    "oneOf": [_OWN, a_reference("network")],
    "description": 'a network such as {"uuid": "<its id>"}, or one of the same lease, such as {"reservation": 0}',
}

SCHEMA = a_request(
    {
        "image": {**TEXT, "minLength": 1, "title": "Image", "description": "the id of an image that servers boot from"},
        "amount": {**COUNT, "title": "Servers", "default": 1},
        "name": {**TEXT, "title": "Name", "default": ""},
        "flavor": {
            "type": ["string", "integer", "null"],
            "maxLength": 255,
            "title": "Flavor",
            "description": "the id of a flavor, or null with vcpus, memory_mb and disk_gb",
        },
        "vcpus": {**COUNT, "title": "vCPUs of each", "description": f"a whole number from 1{_OF_FLAVOR}"},
        "memory_mb": {**COUNT, "title": "Memory of each (MiB)", "description": f"a whole number from 1{_OF_FLAVOR}"},
        "disk_gb": {**SIZE, "title": "Disk of each (GiB)", "description": f"a whole number from 1{_OF_FLAVOR}"},
        **gpus.SCHEMAS,
        "affinity": {
            "type": ["boolean", "null"],
            "title": "All on one host",
            "description": "true, false or null",
            "default": None,
        },
        "resource_properties": {**REQUIREMENT, "default": []},
        "networks": {
            "oneOf": [
                {"enum": ["auto", "none"]},
                {"type": "array", "minItems": 1, "maxItems": MOST_NETWORKS, "items": _NETWORK},
            ],
            "title": "Networks",
            "description": '"auto", "none", or a list such as [{"uuid": "<id of a network>"}, {"reservation": 0}]',
            "default": "auto",
        },
        "key_name": {**_MAYBE, "title": "Key pair", "description": "the name of a key pair of yours, or null"},
        "public_key": {
            "type": ["string", "null"],
            "maxLength": LONGEST_KEY,
            "title": "Public key",
            "description": "a public key of SSH in one line, or null",
        },
        "user_data": {
            "type": ["string", "null"],
            "maxLength": LONGEST_USER_DATA,
            "writeOnly": True,
            "title": "User data",
            "description": f"base64 of at most {LONGEST_USER_DATA} characters, or null",
        },
        "metadata": {
            "type": "object",
            "maxProperties": MOST_METADATA,
            "additionalProperties": TEXT,
            "title": "Metadata",
            "description": f"an object of at most {MOST_METADATA} strings",
            "default": {},
        },
        "security_groups": {
            "type": "array",
            "maxItems": MOST_GROUPS,
            "items": {**TEXT, "minLength": 1},
            "title": "Security groups",
            "description": f"a list of at most {MOST_GROUPS} names or ids of security groups",
            "default": [],
        },
        "volumes": {
            "type": "array",
            "maxItems": MOST_VOLUMES,
            "items": a_reference("virtual:volume"),
            "title": "Volumes",
            "description": 'a list of reservations of volumes of the same lease, such as [{"reservation": 0}]',
            "default": [],
        },
        "floating_ip": {
            "oneOf": [{"type": "null"}, a_reference("virtual:floatingip")],
            "title": "Floating IPs",
            "description": 'a reservation of addresses of the same lease, such as {"reservation": 0}, or null',
            "default": None,
        },
        "before_end": SAVES_WORK,
    },
    required=("image",),
    before_start=(
        *(
            "image",
            "name",
            "flavor",
            "vcpus",
            "memory_mb",
            "disk_gb",
            *gpus.FIELDS,
            "affinity",
            "networks",
            "key_name",
            "public_key",
        ),
        *("user_data", "metadata", "security_groups", "volumes", "floating_ip"),
    ),
    example={"flavor": "3", "image": "6f1e8a52-1111-4222-8333-444455556666", "key_name": "mine"},
)
