# SPDX-License-Identifier: Apache-2.0
"""Immediate leases: the request is answered when the lease is handed over, or refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from blazar.api.http.context import Call
from blazar.api.leases.rules import View
from blazar.api.leases.services import LeaseServices
from blazar.api.leases.v1_1 import reasons
from blazar.model.base.errors import BlazarError, Conflict, ManagerUnavailable, OtherVersion
from blazar.model.leases.details import BookedLease, ImmediateVerdict, LeaseDetails
from blazar.model.leases.lease import reason_of
from blazar.model.leases.requests import LeaseRequest
from blazar.model.leases.states import EndReason, EventStatus, EventType, LeaseKind, LeaseStatus


def decide(call: Call, wanted: LeaseRequest, view: View) -> BookedLease:
    """Book an immediate lease, and return it when it is handed over. Conflict if it is refused, which leaves nothing.

    TooManyRequests if too many wait; ManagerUnavailable if no manager decides in time.
    """
    leases, waiters = call.manager.leases, call.services.feature(LeaseServices).waiters
    with waiters.place(wanted.project_id):
        booked = leases.book(wanted)
        lease_id = booked.details.lease.id
        if booked.limit is None:
            if booked.details.lease.kind is not LeaseKind.IMMEDIATE:
                # A manager of an earlier version does not read the kind.
                leases.delete(lease_id)
                raise OtherVersion("blazar-manager is older than blazar-api and knows no kinds of lease; try again")
            return booked
        found = waiters.outcome(lambda: leases.verdict(lease_id), booked.limit)
    if found is ImmediateVerdict.WAITING:
        raise ManagerUnavailable(
            f"lease {lease_id} is not decided in time, because no manager answers; it will be handed over, or deleted: "
            "check before you repeat the request"
        )
    details = leases.details(lease_id)
    if found is ImmediateVerdict.GRANTED:
        return replace(booked, details=details)
    raise _refusal(details, view, booked.limit)


def _refusal(details: LeaseDetails, view: View, limit: timedelta) -> BlazarError:
    """Return why an immediate lease was not handed over."""
    lease = details.lease
    if lease.end_reason is EndReason.DELETED:
        status = str(LeaseStatus.TERMINATED)
        return Conflict("the lease was deleted before it was handed over", code="lease_ended", data={"status": status})
    start = lease.event(EventType.START)
    why = None if start is None else reasons.of_event(start, details, view)
    failed = start is not None and start.status is EventStatus.ERROR
    head = "it could not be handed over" if failed else f"it was not handed over in {limit.total_seconds():.0f} seconds"
    said = why["message"] if why else "the resources are not ready yet"
    recorded = reason_of(start) if start is not None and view.operator else None
    more = f" ({recorded.text})" if recorded else ""
    return Conflict(
        f"{head}, and nothing is booked: {said}{more}",
        code="not_handed_over",
        data={"lease_id": lease.id, "reason": why, "limit_seconds": int(limit.total_seconds())},
    )
