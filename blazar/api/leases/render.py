# SPDX-License-Identifier: Apache-2.0
"""Render leases as JSON of API 1.0: keys, order and formats that clients parse."""

from __future__ import annotations

from blazar.api.dates import iso, spaced, spaced_or_none
from blazar.api.leases import earlier
from blazar.api.shapes import Json
from blazar.api.since import without_newer
from blazar.model.lease import HIDDEN_EVENTS, Event, Lease, Reservation

_HIDDEN = frozenset(str(kind) for kind in HIDDEN_EVENTS)


def lease(value: Lease) -> Json:
    """Render a lease, without the events that the service creates for its own requests."""
    value = earlier.as_estimated(value)
    return {
        "id": value.id,
        "name": value.name,
        "user_id": value.user_id,
        "project_id": value.project_id,
        "start_date": iso(value.window.start),
        "end_date": iso(value.window.end),
        "trust_id": value.trust_id,
        "status": earlier.status(value),
        "degraded": value.degraded,
        "created_at": spaced(value.created_at),
        "updated_at": spaced_or_none(value.updated_at),
        "reservations": [_reservation(value.id, reservation) for reservation in value.asked_for],
        "events": [_event(value.id, event) for event in value.events if event.event_type not in _HIDDEN],
    }


def _reservation(lease_id: str, value: Reservation) -> Json:
    return {
        **without_newer(value.shown, value.resource_type, 0),
        "id": value.id,
        "lease_id": lease_id,
        "resource_id": value.resource_id,
        "resource_type": value.resource_type,
        "status": value.status.value,
        "missing_resources": value.missing_resources,
        "resources_changed": value.resources_changed,
        "created_at": spaced(value.created_at),
        "updated_at": spaced_or_none(value.updated_at),
    }


def _event(lease_id: str, value: Event) -> Json:
    return {
        "id": value.id,
        "lease_id": lease_id,
        "event_type": str(value.event_type),
        "time": iso(value.time) if value.time else None,
        "status": value.status.value if value.status else None,
        "created_at": spaced(value.created_at),
        "updated_at": spaced_or_none(value.updated_at),
    }
