# SPDX-License-Identifier: Apache-2.0
"""The JSON bodies that are sent to the external service, with the names and formats that such services expect.

Dates of leases are written without a zone and are in UTC; times of creation and change have a space between date and
time.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from blazar.enforcement.values import AllocatedResource, Context, FilterNotification, LeaseView, Question
from blazar.model.lease import HIDDEN_EVENTS, Event, Reservation

Json = dict[str, Any]


def of_question(question: Question) -> Json:
    """Return the body of a check."""
    return {"context": _context(question.context), **_leases(question.wanted, question.current)}


def of_notification(notification: FilterNotification) -> Json:
    """Return the body of a notification about a committed change."""
    return {
        "context": _context(notification.context),
        "lease_id": notification.view.lease.id,
        **_leases(notification.view, notification.before),
        "occurred_at": _date(notification.at),
    }


def _leases(lease: LeaseView, before: LeaseView | None) -> Json:
    return {"lease": _lease(lease)} if before is None else {"current_lease": _lease(before), "lease": _lease(lease)}


def _context(context: Context) -> Json:
    by = context.requested_by
    return {
        "user_id": context.user_id,
        "project_id": context.project_id,
        "auth_url": context.auth_url,
        "region_name": context.region_name,
        "requested_by": by and {"user_id": by.user_id, "project_id": by.project_id},
    }


def _lease(view: LeaseView) -> Json:
    lease = view.lease
    return {
        "id": lease.id,
        "name": lease.name,
        "user_id": lease.user_id,
        "project_id": lease.project_id,
        "start_date": _date(lease.window.start),
        "end_date": _date(lease.window.end),
        "before_end_date": _date(view.before_end),
        "status": str(lease.status),
        "degraded": lease.degraded,
        "trust_id": lease.trust_id,
        "created_at": _spaced(lease.created_at),
        "updated_at": _spaced(lease.updated_at),
        "resource_requests": dict(view.resource_requests),
        "reservations": [_reservation(view, reservation) for reservation in lease.reservations],
        "events": [_event(lease.id, event) for event in lease.events if event.event_type not in HIDDEN_EVENTS],
    }


def _reservation(view: LeaseView, reservation: Reservation) -> Json:
    held = [allocated for allocated in view.allocated_resources if allocated.reservation_id == reservation.id]
    return {
        # Before the reservation's own flavor exists, it shows the one that was requested.
        **(
            reservation.shown if reservation.cloud_ids.values else {**reservation.shown, **reservation.shown_parameters}
        ),
        "id": reservation.id,
        "lease_id": view.lease.id,
        "resource_id": reservation.resource_id,
        "resource_type": reservation.resource_type,
        "status": str(reservation.status),
        "missing_resources": reservation.missing_resources,
        "resources_changed": reservation.resources_changed,
        "created_at": _spaced(reservation.created_at),
        "updated_at": _spaced(reservation.updated_at),
        "allocations": [_resource(allocated) for allocated in held for _ in range(allocated.count)],
    }


def _resource(allocated: AllocatedResource) -> Json:
    resource = allocated.resource
    return {
        **resource.capabilities,
        **resource.attributes,
        "id": resource.external_id,
        "reservable": resource.reservable,
        "created_at": _spaced(resource.created_at),
        "updated_at": _spaced(resource.updated_at),
    }


def _event(lease_id: str, event: Event) -> Json:
    return {
        "id": event.id,
        "lease_id": lease_id,
        "event_type": event.event_type,
        "time": _date(event.time),
        "status": str(event.status) if event.status else None,
        "created_at": _spaced(event.created_at),
        "updated_at": _spaced(event.updated_at),
    }


def _date(instant: datetime | None) -> str | None:
    return f"{instant:%Y-%m-%dT%H:%M:%S}" if instant else None


def _spaced(instant: datetime | None) -> str | None:
    return f"{instant:%Y-%m-%d %H:%M:%S}" if instant else None
