# SPDX-License-Identifier: Apache-2.0
"""Changes of the state of leases, as operators follow them in the log."""

from __future__ import annotations

from dataclasses import dataclass

from blazar.model.lease import Lease, LeaseStatus

NONE = "none"
"""The state of a lease before it exists."""
DELETED = "DELETED"
"""The state of a lease that its project does not see any more; in the database its status stays."""


@dataclass(frozen=True, slots=True)
class StateChange:
    """What state a lease was in and is in, and ``why``: what was done, or what went wrong."""

    lease_id: str
    project_id: str
    before: str
    after: str
    why: str


def state_of(lease: Lease | None) -> str:
    """Return the state of a lease as the log tells it."""
    if lease is None:
        return NONE
    return DELETED if lease.deleted_at is not None else str(lease.status)


def state_change(before: Lease | None, after: Lease, operation: str | None = None) -> StateChange | None:
    """Return how a write changes the state of a lease; None if it does not. ``operation`` is what the request does."""
    was, became = state_of(before), state_of(after)
    if was == became:
        return None
    return StateChange(after.id, after.project_id, was, became, _why(before, after, operation))


def _why(before: Lease | None, after: Lease, operation: str | None) -> str:
    known = {} if before is None else {event.id: event for event in before.events}
    if after.status is LeaseStatus.ERROR:
        failed = (event for event in after.events if event.reason and event != known.get(event.id))
        if (event := next(failed, None)) is not None:
            return f"{event.event_type}: {event.reason}"
    if operation is not None:
        return operation
    if before is None:
        return "created"
    if after.end_reason is not None and after.end_reason is not before.end_reason:
        return str(after.end_reason)
    if after.status is LeaseStatus.TIMED_OUT:
        return "waited in vain"
    changed = [
        event.event_type
        for event in after.events
        if event.id not in known or (event.status, event.claimed_by) != _progress(before, event.id)
    ]
    return ", ".join(changed) or ("changed" if after.deleted_at is None else "deleted")


def _progress(lease: Lease, event_id: str) -> tuple[object, object]:
    event = lease.event_with(event_id)
    return (None, None) if event is None else (event.status, event.claimed_by)
