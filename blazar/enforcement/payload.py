# SPDX-License-Identifier: Apache-2.0
"""The JSON bodies that are sent to the external service, with the names and formats that such services expect.

Dates of leases are written without a zone and are in UTC; times of creation and change have a space between date and
time.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from blazar.enforcement.values import AllocatedResource, Context, FilterNotification, LeaseView, Question
from blazar.model.base.clock import iso, spaced_or_none, spaced_text
from blazar.model.leases.descriptions import describe_lease, describe_reservation
from blazar.model.leases.reservation import Reservation

Json = dict[str, Any]


def question_body(question: Question) -> Json:
    """Return the body of a check."""
    return {"context": _context(question.context), **_leases(question.wanted, question.current)}


def notification_body(notification: FilterNotification) -> Json:
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
        **describe_lease(lease, (_reservation(view, reservation) for reservation in lease.reservations), date=_date),
        "before_end_date": _date(view.warning_time) if view.warning_time else None,
        "resource_requests": dict(view.resource_requests),
    }


def _reservation(view: LeaseView, reservation: Reservation) -> Json:
    held = [allocated for allocated in view.allocated_resources if allocated.reservation_id == reservation.id]
    # Before the reservation's own flavor exists, it shows the one that was requested.
    asked = {} if reservation.cloud_ids.values else reservation.shown_parameters
    return {
        **describe_reservation(view.lease.id, reservation, {**reservation.shown, **asked}),
        "allocations": [_resource(allocated) for allocated in held for _ in range(allocated.count)],
    }


def _resource(allocated: AllocatedResource) -> Json:
    resource = allocated.resource
    return {
        **resource.capabilities,
        **resource.attributes,
        "id": resource.external_id,
        "reservable": resource.reservable,
        "created_at": spaced_text(resource.created_at),
        "updated_at": spaced_or_none(resource.updated_at),
    }


def _date(instant: datetime) -> str:
    return iso(instant)[:19]
