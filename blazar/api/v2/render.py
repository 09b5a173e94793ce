# SPDX-License-Identifier: Apache-2.0
"""Render values as JSON of version 2: formats of version 1, other keys."""

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
"""Attributes of a host that are shown in ``extra_capas`` although they are not capabilities."""


def lease(value: Lease) -> Json:
    """Render a lease, with the time of its before-end event."""
    known = render.lease(value)
    warning = value.event(EventType.BEFORE_END)
    known["before_end_date"] = render.iso(warning.time) if warning and warning.time else None
    known["reservations"] = [_reservation(reservation) for reservation in known["reservations"]]
    return {key: known[key] for key in LEASE_KEYS}


def host(value: Resource) -> Json:
    """Render a host, with a numeric id and its capabilities in a separate map."""
    known = render.host(value)
    facts = {key: known[key] for key in FACTS_AMONG_CAPABILITIES}
    known |= {"id": int(value.external_id), "extra_capas": {**value.capabilities, **facts}}
    return {key: known[key] for key in HOST_KEYS}


def _reservation(shown: Json) -> Json:
    # Under one name only: a client that edits this object and sends it back must not send two differing values.
    return {ALIAS if key == BEFORE_END else key: value for key, value in shown.items()}
