# SPDX-License-Identifier: Apache-2.0
"""Render hosts, their allocations and capabilities as JSON of API 1.0: keys, order and formats that clients parse.

From 1.1 on some routes keep these keys, with dates in another format: ``date`` writes one.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from blazar.api.dates import iso, spaced
from blazar.api.shapes import Json
from blazar.model.demand import ResourceAllocations
from blazar.model.resource import PropertyValues, Resource, ResourceProperty

Writer = Callable[[datetime], str]


def host(value: Resource, date: Writer = spaced) -> Json:
    """Render a host, with its capabilities as keys beside its attributes."""
    return {
        **value.capabilities,
        "id": value.external_id,
        "status": None,
        "trust_id": None,
        **value.attributes,
        "reservable": value.reservable,
        **_condition(value, date),
        "created_at": date(value.created_at),
        "updated_at": None if value.updated_at is None else date(value.updated_at),
    }


def _condition(value: Resource, date: Writer) -> Json:
    """Render why a host takes no or only some leases; empty for other hosts, as clients of API 1.0 expect."""
    shown: Json = {}
    if value.disabled:
        shown["disabled"] = True
    if value.failure is not None and value.failed_since is not None:
        shown |= {"failure": value.failure, "failed_since": date(value.failed_since)}
    if value.authorized_projects is not None:
        shown["authorized_projects"] = sorted(value.authorized_projects)
    return shown


def allocation(value: ResourceAllocations) -> Json:
    """Render the allocations of a host; a reservation of n instances on it appears n times."""
    return {
        "resource_id": value.resource.external_id,
        "reservations": [
            {
                "id": a.reservation_id,
                "lease_id": a.lease_id,
                "start_date": iso(a.window.start),
                "end_date": iso(a.window.end),
            }
            for a in value.allocations
            for _ in range(a.count)
        ],
    }


def property_values(value: PropertyValues, *, detail: bool) -> Json:
    """Render a capability as an item of a list."""
    if not detail:
        return {"property": value.property.name}
    return {"property": value.property.name, "private": value.property.private, "values": list(value.values)}


def resource_property(value: ResourceProperty, date: Writer = iso) -> Json:
    """Render a capability after a change."""
    return {
        "id": value.id,
        "resource_type": "physical:host",
        "property_name": value.name,
        "private": value.private,
        "created_at": date(value.created_at),
        "updated_at": date(value.updated_at) if value.updated_at else None,
    }
