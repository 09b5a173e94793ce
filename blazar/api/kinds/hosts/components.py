# SPDX-License-Identifier: Apache-2.0
"""Schemas of hosts, their allocations and capabilities, and reservations of hosts, in the OpenAPI document."""

from __future__ import annotations

from blazar.api.http.shapes import (
    BEFORE_END,
    COUNT,
    EXAMPLE_TIMESTAMPS,
    FLAG,
    ISO,
    ISO_OR_NULL,
    LEASE_ID,
    NUMBER,
    RESERVATION_ID,
    SPACED,
    TEXT,
    TEXT_OR_NULL,
    TIMESTAMPS,
    Json,
    a_list,
    a_reservation,
    an_object,
)

RESERVATIONS: Json = {
    "HostReservation": a_reservation(
        "physical:host",
        {
            "min": COUNT,
            "max": COUNT,
            "hypervisor_properties": TEXT_OR_NULL,
            "resource_properties": TEXT_OR_NULL,
            "before_end": BEFORE_END,
            "together": {"type": "object", "description": "how its hosts lie together"},
            "spread": {"type": "object", "description": "how its hosts are spread"},
            "lend_beyond": {"type": "integer", "description": "how many idle hosts are kept while others are lent"},
        },
        {
            "min": 1,
            "max": 2,
            "hypervisor_properties": '[">=", "$vcpus", "16"]',
            "resource_properties": "",
            "before_end": "default",
        },
        optional=("together", "spread", "lend_beyond"),
    ),
}

FIELDS: Json = {
    "min": {"description": "physical:host: the minimum number of hosts, a whole number from 1"},
    "max": {"description": "physical:host: the maximum number of hosts, not less than min"},
    "hypervisor_properties": {
        "description": 'physical:host: requirements on each host, for example [">=", "$vcpus", "16"]'
    },
}
"""What a request for a reservation of hosts may have."""

ATTRIBUTES: Json = {
    "hypervisor_hostname": TEXT,
    "service_name": TEXT,
    "hypervisor_type": TEXT,
    "hypervisor_version": NUMBER,
    "vcpus": NUMBER,
    "memory_mb": {**NUMBER, "description": "MiB"},
    "local_gb": {**NUMBER, "description": "GiB"},
    "cpu_info": {**TEXT, "description": "JSON"},
    "availability_zone": TEXT,
}
"""What the cloud says of a host."""

EXAMPLE: Json = {
    "rack": "r7",
    "id": "12",
    "hypervisor_hostname": "cn12.example",
    "service_name": "cn12",
    "hypervisor_type": "QEMU",
    "hypervisor_version": 8002000,
    "vcpus": 64,
    "memory_mb": 515000,
    "local_gb": 890,
    "cpu_info": '{"arch": "x86_64"}',
    "availability_zone": "nova",
}
"""A host with a capability."""

COMPONENTS: Json = {
    "Host": an_object(
        {
            "id": TEXT,
            **ATTRIBUTES,
            "status": {"type": "null"},
            "trust_id": TEXT_OR_NULL,
            "reservable": {**FLAG, "description": "accepts new leases: it has not failed and is not disabled"},
            "disabled": {
                **FLAG,
                "description": "present and true while an operator has disabled new leases on the host",
            },
            "failure": {**TEXT, "description": "present while the host has failed: the reason"},
            "failed_since": SPACED,
            "authorized_projects": {
                **a_list(TEXT),
                "description": "present if only these projects may reserve the host",
            },
            **TIMESTAMPS,
        },
        optional=("disabled", "failure", "failed_since", "authorized_projects"),
        more={**TEXT, "description": "a capability"},
        example={**EXAMPLE, "status": None, "trust_id": None, "reservable": True, **EXAMPLE_TIMESTAMPS},
    ),
    "Allocation": an_object(
        {
            "resource_id": {**TEXT, "description": "the host's id"},
            "reservations": a_list(
                an_object({"id": TEXT, "lease_id": TEXT, "start_date": ISO, "end_date": ISO}),
            ),
        },
        example={
            "resource_id": "12",
            "reservations": [
                {
                    "id": RESERVATION_ID,
                    "lease_id": LEASE_ID,
                    "start_date": "2030-04-01T08:00:00.000000",
                    "end_date": "2030-04-01T20:00:00.000000",
                }
            ],
        },
    ),
    "PropertyInList": an_object(
        {"property": TEXT, "private": FLAG, "values": a_list(TEXT)},
        optional=("private", "values"),
        example={"property": "gpu", "private": False, "values": ["A100", "H100"]},
    ),
    "ResourceProperty": an_object(
        {
            "id": TEXT,
            "resource_type": TEXT,
            "property_name": TEXT,
            "private": FLAG,
            "created_at": ISO,
            "updated_at": ISO_OR_NULL,
        },
        example={
            "id": "33334444-5555-4666-8777-88889999aaaa",
            "resource_type": "physical:host",
            "property_name": "gpu",
            "private": True,
            "created_at": "2030-03-30T11:22:33.000000",
            "updated_at": "2030-03-30T11:25:00.000000",
        },
    ),
}
