# SPDX-License-Identifier: Apache-2.0
"""A lease as existing programs parse it: in answers of 1.0, in notifications, and in questions of enforcement. Pure.

All three have these keys; each has some more, and leaves out what its readers may not know. Dates are in UTC, and have
no zone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from blazar.model.base.clock import iso, spaced_or_none, spaced_text
from blazar.model.leases.lease import Event, Lease
from blazar.model.leases.reservation import Reservation
from blazar.model.leases.states import HIDDEN_EVENTS

Json = dict[str, Any]
Date = Callable[[datetime], str]

_HIDDEN = frozenset(str(kind) for kind in HIDDEN_EVENTS)


def describe_lease(lease: Lease, reservations: Iterable[Json], *, status: str | None = None, date: Date = iso) -> Json:
    """Return a lease with these reservations, without the events that the service creates for its own requests.

    ``status`` is the one to show, by default its own.
    """
    return {
        "id": lease.id,
        "name": lease.name,
        "user_id": lease.user_id,
        "project_id": lease.project_id,
        "start_date": date(lease.window.start),
        "end_date": date(lease.window.end),
        "trust_id": lease.trust_id,
        "status": status or lease.status.value,
        "degraded": lease.degraded,
        "created_at": spaced_text(lease.created_at),
        "updated_at": spaced_or_none(lease.updated_at),
        "reservations": [*reservations],
        "events": [_describe_event(lease.id, event, date) for event in lease.events if event.event_type not in _HIDDEN],
    }


def describe_reservation(lease_id: str, reservation: Reservation, shown: Mapping[str, Any]) -> Json:
    """Return a reservation; ``shown`` are its parameters and cloud ids, as far as they are told."""
    return {
        **shown,
        "id": reservation.id,
        "lease_id": lease_id,
        "resource_id": reservation.resource_id,
        "resource_type": reservation.resource_type,
        "status": reservation.status.value,
        "missing_resources": reservation.missing_resources,
        "resources_changed": reservation.resources_changed,
        "created_at": spaced_text(reservation.created_at),
        "updated_at": spaced_or_none(reservation.updated_at),
    }


def _describe_event(lease_id: str, event: Event, date: Date) -> Json:
    return {
        "id": event.id,
        "lease_id": lease_id,
        "event_type": str(event.event_type),
        "time": date(event.time) if event.time else None,
        "status": event.status.value if event.status else None,
        "created_at": spaced_text(event.created_at),
        "updated_at": spaced_or_none(event.updated_at),
    }
