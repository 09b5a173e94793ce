# SPDX-License-Identifier: Apache-2.0
"""Render hosts, their allocations and capabilities as JSON of API 1.0: keys, order and formats that clients parse."""

from __future__ import annotations

from blazar.api.http.shapes import Json
from blazar.model.base.clock import iso, spaced_or_none, spaced_text
from blazar.model.calendar.allocations import ResourceAllocations
from blazar.model.resources.resource import PropertyValues, Resource, ResourceProperty


def host(value: Resource) -> Json:
    """Render a host, with its capabilities as keys beside its attributes."""
    return {
        **value.capabilities,
        "id": value.external_id,
        "status": None,
        "trust_id": None,
        **value.attributes,
        "reservable": value.reservable,
        **_condition(value),
        "created_at": spaced_text(value.created_at),
        "updated_at": spaced_or_none(value.updated_at),
    }


def _condition(value: Resource) -> Json:
    """Render why a host takes no or only some leases; empty for other hosts, as clients of API 1.0 expect."""
    shown: Json = {}
    if value.disabled:
        shown["disabled"] = True
    if value.failure is not None and value.failed_since is not None:
        shown |= {"failure": value.failure, "failed_since": spaced_text(value.failed_since)}
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


def resource_property(value: ResourceProperty) -> Json:
    """Render a capability after a change."""
    return {
        "id": value.id,
        "resource_type": "physical:host",
        "property_name": value.name,
        "private": value.private,
        "created_at": iso(value.created_at),
        "updated_at": iso(value.updated_at) if value.updated_at else None,
    }
