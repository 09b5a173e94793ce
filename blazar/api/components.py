# SPDX-License-Identifier: Apache-2.0
"""Schemas of request and response bodies in the OpenAPI document, each with a valid example."""

from __future__ import annotations

from enum import Enum
from typing import Any

from blazar.api import schemas
from blazar.model.lease import EventStatus, LeaseStatus, ReservationStatus
from blazar.resources.actions import CHOICES

Json = dict[str, Any]

TEXT: Json = {"type": "string"}
TEXT_OR_NULL: Json = {"type": ["string", "null"]}
NUMBER: Json = {"type": "integer"}
FLAG: Json = {"type": "boolean"}
_ISO: Json = {
    "type": "string",
    "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$",
    "description": "UTC",
    "examples": ["2030-04-01T08:00:00.000000"],
}
ISO_OR_NULL: Json = {**_ISO, "type": ["string", "null"]}
_SPACED: Json = {
    "type": "string",
    "pattern": r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$",
    "description": "UTC",
    "examples": ["2030-03-30 11:22:33"],
}
_SPACED_OR_NULL: Json = {**_SPACED, "type": ["string", "null"]}

_LEASE_ID = "9f0d0a3e-6f0e-4f57-9d0a-0e1f2a3b4c5d"
_RESERVATION_ID = "1b2c3d4e-0a1b-4c2d-8e3f-405162738495"
_MADE = {"created_at": "2030-03-30 11:22:33", "updated_at": None}

_EVENT: Json = {
    "id": "a0b1c2d3-1111-4222-8333-444455556666",
    "lease_id": _LEASE_ID,
    "event_type": "start_lease",
    "time": "2030-04-01T08:00:00.000000",
    "status": "UNDONE",
    **_MADE,
}
_RESERVATION: Json = {
    "min": 1,
    "max": 2,
    "hypervisor_properties": '[">=", "$vcpus", "16"]',
    "resource_properties": "",
    "before_end": "default",
    "id": _RESERVATION_ID,
    "lease_id": _LEASE_ID,
    "resource_id": "22223333-4444-4555-8666-777788889999",
    "resource_type": "physical:host",
    "status": "pending",
    "missing_resources": False,
    "resources_changed": False,
    **_MADE,
}
_INSTANCES: Json = {
    "amount": 3,
    "vcpus": 2,
    "memory_mb": 4096,
    "disk_gb": 20,
    "affinity": False,
    "resource_properties": "",
    "before_end": "default",
    "flavor_id": _RESERVATION_ID,
    "aggregate_id": 17,
    "server_group_id": "5a5b5c5d-6666-4777-8888-9999aaaabbbb",
    "id": _RESERVATION_ID,
    "lease_id": _LEASE_ID,
    "resource_id": "22223333-4444-4555-8666-777788889999",
    "resource_type": "virtual:instance",
    "status": "pending",
    "missing_resources": False,
    "resources_changed": False,
    **_MADE,
}
_OF_FLAVOR: Json = {
    **_INSTANCES,
    "resource_type": "flavor:instance",
    "resource_properties": '{"id": "3", "name": "m1.medium", "vcpus": 2, "ram": 4096, "disk": 20, '
    '"OS-FLV-EXT-DATA:ephemeral": 0, "swap": "", "rxtx_factor": 1.0, "os-flavor-access:is_public": true, '
    '"OS-FLV-DISABLED:disabled": false, "extra_specs": {"hw:cpu_policy": "dedicated"}}',
}
_ADDRESSES: Json = {
    "network_id": "88889999-aaaa-4bbb-8ccc-ddddeeeeffff",
    "amount": 2,
    "required_floatingips": ["203.0.113.10"],
    "before_end": "default",
    "id": _RESERVATION_ID,
    "lease_id": _LEASE_ID,
    "resource_id": "22223333-4444-4555-8666-777788889999",
    "resource_type": "virtual:floatingip",
    "status": "pending",
    "missing_resources": False,
    "resources_changed": False,
    **_MADE,
}
_LEASE: Json = {
    "id": _LEASE_ID,
    "name": "nightly-ci",
    "user_id": "curie",
    "project_id": "physics",
    "start_date": "2030-04-01T08:00:00.000000",
    "end_date": "2030-04-01T20:00:00.000000",
    "trust_id": None,
    "status": "PENDING",
    "degraded": False,
    **_MADE,
    "reservations": [_RESERVATION],
    "events": [_EVENT],
}
_NEW_LEASE: Json = {
    "name": "nightly-ci",
    "start_date": "2030-04-01 08:00",
    "end_date": "2030-04-01 20:00",
    "before_end_date": None,
    "events": [],
    "reservations": [
        {
            "resource_type": "physical:host",
            "min": 1,
            "max": 2,
            "hypervisor_properties": '[">=", "$vcpus", "16"]',
            "resource_properties": "",
        }
    ],
}
_HOST: Json = {
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
    "status": None,
    "availability_zone": "nova",
    "trust_id": None,
    "reservable": True,
    **_MADE,
}


def an_object(properties: Json, *, optional: tuple[str, ...] = (), more: object = False, example: Any = None) -> Json:
    """Return the schema of an object with these keys; other keys must match ``more``."""
    required = [name for name in properties if name not in optional]
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": more}
    return schema if example is None else {**schema, "examples": [example]}


def a_list(item: Json) -> Json:
    """Return the schema of an array."""
    return {"type": "array", "items": item}


def ref(name: str) -> Json:
    """Return a reference to a component."""
    return {"$ref": f"#/components/schemas/{name}"}


def _one_of(states: type[Enum], *more: object) -> Json:
    return {"enum": [*(state.value for state in states), *more]}


def with_examples(schema: Json, *examples: Json) -> Json:
    """Return a schema with examples, which must be valid."""
    return {**schema, "examples": list(examples)}


_COUNT: Json = {"type": "integer", "minimum": 1}
_OF_ANY_TYPE: Json = {
    "id": TEXT,
    "lease_id": TEXT,
    "resource_id": TEXT_OR_NULL,
    "status": _one_of(ReservationStatus),
    "missing_resources": {**FLAG, "description": "fewer resources are allocated than were reserved"},
    "resources_changed": {**FLAG, "description": "failed resources were replaced by others"},
    "created_at": _SPACED,
    "updated_at": _SPACED_OR_NULL,
}

COMPONENTS: Json = {
    "Event": an_object(
        {
            "id": TEXT,
            "lease_id": TEXT,
            "event_type": {
                **TEXT,
                "description": "start_lease, before_end_lease, end_lease, or a custom type that the client sent",
            },
            "time": ISO_OR_NULL,
            "status": _one_of(EventStatus, None),
            "created_at": _SPACED,
            "updated_at": _SPACED_OR_NULL,
        },
        example=_EVENT,
    ),
    "Reservation": {
        "oneOf": [
            ref("HostReservation"),
            ref("InstanceReservation"),
            ref("FlavorReservation"),
            ref("AddressReservation"),
        ],
        "examples": [_RESERVATION, _INSTANCES, _OF_FLAVOR, _ADDRESSES],
    },
    "HostReservation": an_object(
        {
            **_OF_ANY_TYPE,
            "resource_type": {"enum": ["physical:host"]},
            "min": _COUNT,
            "max": _COUNT,
            "hypervisor_properties": TEXT_OR_NULL,
            "resource_properties": TEXT_OR_NULL,
            "before_end": {"enum": list(CHOICES)},
        },
        example=_RESERVATION,
    ),
    "InstanceReservation": an_object(
        {
            **_OF_ANY_TYPE,
            "resource_type": {"enum": ["virtual:instance"]},
            "amount": _COUNT,
            "vcpus": _COUNT,
            "memory_mb": {**_COUNT, "description": "MiB"},
            "disk_gb": {"type": "integer", "minimum": 0, "description": "GiB"},
            "affinity": {"type": ["boolean", "null"]},
            "resource_properties": TEXT_OR_NULL,
            "before_end": {"enum": list(CHOICES)},
            "flavor_id": {**TEXT_OR_NULL, "description": "the flavor to boot servers with; null until it exists"},
            "aggregate_id": {"type": ["integer", "null"]},
            "server_group_id": {**TEXT_OR_NULL, "description": "null without affinity"},
        },
        example=_INSTANCES,
    ),
    "FlavorReservation": an_object(
        {
            **_OF_ANY_TYPE,
            "resource_type": {"enum": ["flavor:instance"]},
            "amount": _COUNT,
            "vcpus": {**_COUNT, "description": "of the source flavor"},
            "memory_mb": {**_COUNT, "description": "of the source flavor, in MiB"},
            "disk_gb": {"type": "integer", "minimum": 0, "description": "the root disk of the source flavor, in GiB"},
            "affinity": {"type": ["boolean", "null"]},
            "resource_properties": {
                **TEXT,
                "description": "JSON: the source flavor at the time of the request, with the keys of Nova",
            },
            "before_end": {"enum": list(CHOICES)},
            "flavor_id": {
                **TEXT_OR_NULL,
                "description": "the flavor to boot servers with (not the source flavor); null until it exists",
            },
            "aggregate_id": {"type": ["integer", "null"]},
            "server_group_id": {**TEXT_OR_NULL, "description": "null without affinity"},
        },
        example=_OF_FLAVOR,
    ),
    "AddressReservation": an_object(
        {
            **_OF_ANY_TYPE,
            "resource_type": {"enum": ["virtual:floatingip"]},
            "network_id": TEXT,
            "amount": _COUNT,
            "required_floatingips": a_list(TEXT),
            "before_end": {"enum": list(CHOICES)},
        },
        example=_ADDRESSES,
    ),
    "Lease": an_object(
        {
            "id": TEXT,
            "name": TEXT,
            "user_id": TEXT,
            "project_id": TEXT,
            "start_date": _ISO,
            "end_date": _ISO,
            "trust_id": TEXT_OR_NULL,
            "status": _one_of(LeaseStatus),
            "degraded": FLAG,
            "created_at": _SPACED,
            "updated_at": _SPACED_OR_NULL,
            "reservations": a_list(ref("Reservation")),
            "events": a_list(ref("Event")),
        },
        example=_LEASE,
    ),
    "Host": an_object(
        {
            "id": TEXT,
            "hypervisor_hostname": TEXT,
            "service_name": TEXT,
            "hypervisor_type": TEXT,
            "hypervisor_version": NUMBER,
            "vcpus": NUMBER,
            "memory_mb": {**NUMBER, "description": "MiB"},
            "local_gb": {**NUMBER, "description": "GiB"},
            "cpu_info": {**TEXT, "description": "JSON"},
            "status": {"type": "null"},
            "availability_zone": TEXT,
            "trust_id": TEXT_OR_NULL,
            "reservable": {**FLAG, "description": "accepts new leases: it has not failed and is not disabled"},
            "disabled": {
                **FLAG,
                "description": "present and true while an operator has disabled new leases on the host",
            },
            "failure": {**TEXT, "description": "present while the host has failed: the reason"},
            "failed_since": _SPACED,
            "authorized_projects": {
                **a_list(TEXT),
                "description": "present if only these projects may reserve the host",
            },
            "created_at": _SPACED,
            "updated_at": _SPACED_OR_NULL,
        },
        optional=("disabled", "failure", "failed_since", "authorized_projects"),
        more={**TEXT, "description": "a capability"},
        example=_HOST,
    ),
    "Allocation": an_object(
        {
            "resource_id": {**TEXT, "description": "the host's id"},
            "reservations": a_list(
                an_object({"id": TEXT, "lease_id": TEXT, "start_date": _ISO, "end_date": _ISO}),
            ),
        },
        example={
            "resource_id": "12",
            "reservations": [
                {
                    "id": _RESERVATION_ID,
                    "lease_id": _LEASE_ID,
                    "start_date": "2030-04-01T08:00:00.000000",
                    "end_date": "2030-04-01T20:00:00.000000",
                }
            ],
        },
    ),
    "FloatingIp": an_object(
        {
            "id": TEXT,
            "floating_network_id": TEXT,
            "subnet_id": TEXT,
            "floating_ip_address": TEXT,
            "reservable": FLAG,
            "created_at": _ISO,
            "updated_at": ISO_OR_NULL,
        },
        example={
            "id": "0b1c2d3e-1111-4222-8333-444455556666",
            "floating_network_id": "88889999-aaaa-4bbb-8ccc-ddddeeeeffff",
            "subnet_id": "7c6d5e4f-2222-4333-8444-555566667777",
            "floating_ip_address": "203.0.113.10",
            "reservable": True,
            "created_at": "2030-03-01T09:00:00.000000",
            "updated_at": None,
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
            "created_at": _ISO,
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
    "Version": an_object(
        {
            "id": TEXT,
            "status": TEXT,
            "min_version": TEXT,
            "max_version": TEXT,
            "links": a_list(an_object({"rel": TEXT, "href": TEXT})),
        },
        optional=("min_version", "max_version"),
        example={
            "id": "v1.0",
            "status": "CURRENT",
            "min_version": "1.0",
            "max_version": "1.0",
            "links": [{"rel": "self", "href": "http://controller:1234/v1"}],
        },
    ),
    "Health": an_object(
        {"status": {"enum": ["ok", "failing"]}, "reason": TEXT}, optional=("reason",), example={"status": "ok"}
    ),
    "ApplicationError": an_object(
        {"error_code": NUMBER, "error_message": TEXT, "error_name": {"type": ["integer", "string"]}},
        example={
            "error_code": 404,
            "error_message": f"Lease with {{'lease_id': '{_LEASE_ID}'}} not found",
            "error_name": 404,
        },
    ),
    "FrameError": an_object(
        {"error": NUMBER, "error_message": TEXT},
        example={"error": 400, "error_message": "The body is not UTF-8; send JSON in UTF-8."},
    ),
    "RoutingError": an_object(
        {"code": NUMBER, "title": TEXT, "description": TEXT},
        example={"code": 404, "title": "Not Found", "description": "This URL does not exist."},
    ),
    "AuthenticationError": an_object(
        {"error": an_object({"code": NUMBER, "title": TEXT, "message": TEXT})},
        example={
            "error": {
                "code": 401,
                "title": "Unauthorized",
                "message": "The request you have made requires authentication.",
            }
        },
    ),
    "LeaseCreate": with_examples(schemas.LEASE_CREATE, _NEW_LEASE),
    "LeaseUpdate": with_examples(
        schemas.LEASE_UPDATE,
        {"end_date": "2030-04-01 22:00"},
        {"name": "nightly", "reservations": [{"id": _RESERVATION_ID, "max": 3}]},
    ),
    "HostCreate": with_examples(schemas.HOST_CREATE, {"name": "cn12.example", "rack": "r7"}),
    "HostUpdate": with_examples(
        schemas.HOST_UPDATE, {"rack": "r8", "gpu": None}, {"disabled": True, "authorized_projects": ["physics"]}
    ),
    "AllocationUpdate": with_examples(schemas.ALLOCATION_UPDATE, {"reservation_id": _RESERVATION_ID}),
    "FloatingIpCreate": with_examples(
        schemas.FLOATING_IP_CREATE,
        {"floating_network_id": "88889999-aaaa-4bbb-8ccc-ddddeeeeffff", "floating_ip_address": "203.0.113.10"},
    ),
    "PropertyUpdate": with_examples(schemas.PROPERTY_UPDATE, {"private": True}),
}
