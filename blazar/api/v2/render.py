# SPDX-License-Identifier: Apache-2.0
"""Values as JSON of version 2: formats as in version 1, other keys."""

from __future__ import annotations

from typing import Any

from blazar.api import render
from blazar.model.lease import EventType, Lease
from blazar.model.resource import Resource
from blazar.resources.actions import ALIAS, BEFORE_END

Json = dict[str, Any]

LEASE_KEYS = (
    "id",
    "name",
    "start_date",
    "end_date",
    "before_end_date",
    "user_id",
    "project_id",
    "trust_id",
    "reservations",
    "events",
    "status",
    "created_at",
    "updated_at",
)
HOST_KEYS = (
    "id",
    "hypervisor_hostname",
    "hypervisor_type",
    "vcpus",
    "hypervisor_version",
    "memory_mb",
    "local_gb",
    "cpu_info",
    "trust_id",
    "extra_capas",
    "created_at",
    "updated_at",
)
FACTS_AMONG_CAPABILITIES = ("service_name", "availability_zone", "reservable")
"""Read from the cloud as the others are, but shown in ``extra_capas``."""


def lease(value: Lease) -> Json:
    """Render a lease, with the time of its event before the end."""
    known = render.lease(value)
    warning = value.event(EventType.BEFORE_END)
    known["before_end_date"] = render.iso(warning.time) if warning and warning.time else None
    known["reservations"] = [_reservation(reservation) for reservation in known["reservations"]]
    return {key: known[key] for key in LEASE_KEYS}


def host(value: Resource) -> Json:
    """Render a host, its id a number and its capabilities in a map of their own."""
    known = render.host(value)
    facts = {key: known[key] for key in FACTS_AMONG_CAPABILITIES}
    known |= {"id": int(value.external_id), "extra_capas": {**value.capabilities, **facts}}
    return {key: known[key] for key in HOST_KEYS}


def _reservation(shown: Json) -> Json:
    # One name only: a client that changes what it was shown and sends all of it back shall not contradict itself.
    return {ALIAS if key == BEFORE_END else key: value for key, value in shown.items()}
