# SPDX-License-Identifier: Apache-2.0
"""Schemas of hosts from version 1.1 on: requests, and components of the OpenAPI document."""

from __future__ import annotations

from blazar.api.kinds import changes
from blazar.api.kinds.hosts.schemas import HOST_CREATE as CREATE_1_0
from blazar.api.shapes import LINKS, NUMBER, TEXT, TEXT_OR_NULL, Json, a_list, an_object
from blazar.api.validation import Schema

HOST_CREATE: Schema = {
    "type": "object",
    "additionalProperties": False,
    "description": "an object with name or id",
    "properties": {
        "name": CREATE_1_0["properties"]["name"],
        "id": CREATE_1_0["properties"]["id"],
        **changes.fields(changes.CAPABILITY),
    },
}

_HOST: Json = {
    "id": TEXT,
    "label": {**TEXT, "description": "what users see of it: random, and new at each registration"},
    "hypervisor_hostname": TEXT,
    "service_name": TEXT_OR_NULL,
    "hypervisor_type": TEXT_OR_NULL,
    "hypervisor_version": {"type": ["integer", "null"]},
    "availability_zone": TEXT_OR_NULL,
    "cpu_info": {"description": "what Nova says of the processor"},
    "capacity": {"type": "object", "additionalProperties": NUMBER},
    "traits": a_list(TEXT),
    **changes.SHOWN,
    "links": LINKS,
}
HOST_KEYS = tuple(key for key in _HOST if key != "id")
_EXAMPLE: Json = {
    "id": "12",
    "label": "h-2mm8qe",
    "hypervisor_hostname": "cn12.example",
    "service_name": "cn12",
    "hypervisor_type": "QEMU",
    "hypervisor_version": 8002000,
    "availability_zone": "az-1",
    "cpu_info": {"arch": "x86_64"},
    "capacity": {"DISK_GB": 890, "MEMORY_MB": 515000, "VCPU": 64},
    "traits": ["HW_CPU_X86_AVX512F"],
    "properties": {"gpu": "A100", "rack": "r7"},
    "reservable": False,
    "disabled": {"reason": "fan replaced", "since": "2026-11-22T08:00:00Z", "until": "2026-12-01T00:00:00Z"},
    "failure": None,
    "authorized_projects": None,
    "created_at": "2026-03-01T09:00:00Z",
    "updated_at": "2026-11-22T08:00:00Z",
    "links": [],
}
COMPONENTS: Json = {
    "Host1_1": an_object(_HOST, example=_EXAMPLE),
    "HostInList1_1": an_object(_HOST, optional=HOST_KEYS, example={"id": "12", "label": "h-2mm8qe"}),
}
