# SPDX-License-Identifier: Apache-2.0
"""Render values as JSON of API 1.0: keys, order and formats that clients parse."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any

from blazar.model.allocations import ResourceAllocations
from blazar.model.lease import REQUEST_EVENTS, Event, Lease, Reservation
from blazar.model.resource import PropertyValues, Resource, ResourceProperty

Json = dict[str, Any]
_HIDDEN = frozenset(str(kind) for kind in REQUEST_EVENTS)


def lease(value: Lease) -> Json:
    """Render a lease, without the events that the service creates for its own requests."""
    return {
        "id": value.id,
        "name": value.name,
        "user_id": value.user_id,
        "project_id": value.project_id,
        "start_date": iso(value.window.start),
        "end_date": iso(value.window.end),
        "trust_id": value.trust_id,
        "status": value.status.value,
        "degraded": value.degraded,
        "created_at": _spaced(value.created_at),
        "updated_at": _spaced_or_none(value.updated_at),
        "reservations": [_reservation(value.id, reservation) for reservation in value.reservations],
        "events": [_event(value.id, event) for event in value.events if event.event_type not in _HIDDEN],
    }


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
        "created_at": _spaced(value.created_at),
        "updated_at": _spaced_or_none(value.updated_at),
    }


def _condition(value: Resource) -> Json:
    """Render why a host takes no or only some leases; empty for other hosts, as clients of API 1.0 expect."""
    shown: Json = {}
    if value.disabled:
        shown["disabled"] = True
    if value.failure is not None and value.failed_since is not None:
        shown |= {"failure": value.failure, "failed_since": _spaced(value.failed_since)}
    if value.authorized_projects is not None:
        shown["authorized_projects"] = sorted(value.authorized_projects)
    return shown


def floating_ip(value: Resource) -> Json:
    """Render an address, with timestamps in the ISO format (hosts and leases use a space)."""
    return {
        "id": value.external_id,
        **value.attributes,
        "reservable": value.reservable,
        "created_at": iso(value.created_at),
        "updated_at": iso(value.updated_at) if value.updated_at else None,
    }


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


def _reservation(lease_id: str, value: Reservation) -> Json:
    return {
        **value.shown,
        "id": value.id,
        "lease_id": lease_id,
        "resource_id": value.resource_id,
        "resource_type": value.resource_type,
        "status": value.status.value,
        "missing_resources": value.missing_resources,
        "resources_changed": value.resources_changed,
        "created_at": _spaced(value.created_at),
        "updated_at": _spaced_or_none(value.updated_at),
    }


def _event(lease_id: str, value: Event) -> Json:
    return {
        "id": value.id,
        "lease_id": lease_id,
        "event_type": str(value.event_type),
        "time": iso(value.time) if value.time else None,
        "status": value.status.value if value.status else None,
        "created_at": _spaced(value.created_at),
        "updated_at": _spaced_or_none(value.updated_at),
    }


# All instants are UTC, so the zone after the fraction, or after the second, is constant and can be cut off.
# The same instants recur (a lease's end is also its event's time), and formatting one is the most expensive step.
@lru_cache(maxsize=8192)
def iso(instant: datetime) -> str:
    """Return an instant in ISO format with six fractional digits, which clients parse."""
    return instant.isoformat("T", "microseconds")[:26]


@lru_cache(maxsize=8192)
def _spaced(instant: datetime) -> str:
    return instant.isoformat(" ", "seconds")[:19]


def _spaced_or_none(instant: datetime | None) -> str | None:
    return None if instant is None else _spaced(instant)
