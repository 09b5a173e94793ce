# SPDX-License-Identifier: Apache-2.0
"""A bad request with the answer it gets, and the good bodies that bad ones are made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

NOBODY = "11111111-2222-3333-4444-555555555555"


@dataclass(frozen=True, slots=True)
class Bad:
    """A request and what must come of it: the status, and a part of the sentence."""

    name: str
    method: str
    path: str
    status: int
    says: str
    body: Any = None
    raw: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)


MEMBER = {"X-Auth-Token": "curie:physics"}

READER = {"X-Auth-Token": "pierre:physics:reader"}

OTHER = {"X-Auth-Token": "frida:art"}

FORMAT = "Required format: %Y-%m-%d %H:%M"


HOST_RESERVATION = {
    "resource_type": "physical:host",
    "min": 1,
    "max": 1,
    "hypervisor_properties": "",
    "resource_properties": "",
}


INSTANCE_RESERVATION = {
    "resource_type": "virtual:instance",
    "amount": 1,
    "vcpus": 1,
    "memory_mb": 512,
    "disk_gb": 1,
    "affinity": None,
    "resource_properties": "",
}

FLAVOR_RESERVATION = {"resource_type": "flavor:instance", "flavor_id": "small", "amount": 1, "affinity": None}


ADDRESSES = {
    "resource_type": "virtual:floatingip",
    "network_id": "public",
    "amount": 1,
    "required_floatingips": [],
}

NEW_ADDRESS = {"floating_network_id": "public", "floating_ip_address": "203.0.113.20"}


LEASE = {
    "name": "x",
    "start_date": "2030-05-01 10:00",
    "end_date": "2030-05-01 12:00",
    "reservations": [HOST_RESERVATION],
}


def without(key: str) -> dict[str, Any]:
    return {k: v for k, v in LEASE.items() if k != key}


def reservation(**changes: Any) -> dict[str, Any]:
    return {**LEASE, "reservations": [{**HOST_RESERVATION, **changes}]}


def room_without(key: str) -> dict[str, Any]:
    return {**LEASE, "reservations": [{k: v for k, v in HOST_RESERVATION.items() if k != key}]}


def servers(**changes: Any) -> dict[str, Any]:
    return {**LEASE, "reservations": [{**INSTANCE_RESERVATION, **changes}]}


def flavored(**changes: Any) -> dict[str, Any]:
    return {**LEASE, "reservations": [{**FLAVOR_RESERVATION, **changes}]}


def flavored_without(key: str) -> dict[str, Any]:
    return {**LEASE, "reservations": [{k: v for k, v in FLAVOR_RESERVATION.items() if k != key}]}


def servers_without(key: str) -> dict[str, Any]:
    return {**LEASE, "reservations": [{k: v for k, v in INSTANCE_RESERVATION.items() if k != key}]}


def ips(**changes: Any) -> dict[str, Any]:
    return {**LEASE, "reservations": [{**ADDRESSES, **changes}]}


def ips_without(key: str) -> dict[str, Any]:
    return {**LEASE, "reservations": [{k: v for k, v in ADDRESSES.items() if k != key}]}


def post(name: str, body: Any, says: str, status: int = 400) -> Bad:
    return Bad(f"create: {name}", "POST", "/v1/leases", status, says, body, headers=MEMBER)


def put(name: str, body: Any, says: str, status: int = 400, lease: str = "{lease}") -> Bad:
    return Bad(f"update: {name}", "PUT", f"/v1/leases/{lease}", status, says, body, headers=MEMBER)


def change(
    name: str, says: str, status: int = 400, lease: str = "{lease}", id: str = "{reservation}", **values: Any
) -> Bad:
    return put(name, {"reservations": [{"id": id, **values}]}, says, status, lease)
