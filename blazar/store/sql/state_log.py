# SPDX-License-Identifier: Apache-2.0
"""One line in the log for each change of the state of a lease, as operators follow it: written after the commit."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.context import current
from blazar.model.base.log_lines import printable
from blazar.model.base.values import dataclass
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import LeaseStatus
from blazar.store.sql.tables import leases

LOG = logging.getLogger("blazar.leases")

STATES_NOTED = "blazar_states"
"""Key of the info of a connection: what its transaction does to leases."""

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


def _state_of(lease: Lease | None) -> str:
    """Return the state of a lease as the log tells it."""
    if lease is None:
        return NONE
    return DELETED if lease.deleted_at is not None else str(lease.status)


def find_change(before: Lease | None, after: Lease) -> StateChange | None:
    """Return how a write of the present request changes the state of a lease; None if it does not."""
    return _state_change(before, after, current().operation)


def _state_change(before: Lease | None, after: Lease, operation: str | None = None) -> StateChange | None:
    """Return how a write changes the state of a lease; None if it does not. ``operation`` is what the request does."""
    was, became = _state_of(before), _state_of(after)
    if was == became:
        return None
    return StateChange(after.id, after.project_id, was, became, _explain_change(before, after, operation))


def _explain_change(before: Lease | None, after: Lease, operation: str | None) -> str:
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
        if event.id not in known
        or (event.status, event.claimed_by) != (known[event.id].status, known[event.id].claimed_by)
    ]
    return ", ".join(changed) or ("changed" if after.deleted_at is None else "deleted")


def note_change(connection: Connection, before: Lease | None, after: Lease) -> None:
    """Note what a write does to a lease."""
    if (change := find_change(before, after)) is not None:
        connection.info.setdefault(STATES_NOTED, []).append(change)


def note_pending(connection: Connection, which: Sequence[sa.ColumnElement[bool]], why: str) -> None:
    """Note that the next statement makes all leases PENDING that are CREATING now; in one statement."""
    creating, pending = str(LeaseStatus.CREATING), str(LeaseStatus.PENDING)
    found = connection.execute(sa.select(leases.c.id, leases.c.project_id).where(*which))
    changes = [StateChange(id_, project_id, creating, pending, why) for id_, project_id in found]
    connection.info.setdefault(STATES_NOTED, []).extend(changes)


def noted_changes(connection: Connection) -> list[StateChange]:
    """Return what the transaction does to leases."""
    changes: list[StateChange] = connection.info.pop(STATES_NOTED, [])
    return changes


def log_changes(changes: Iterable[StateChange]) -> None:
    """Log changes that are committed."""
    request_id = current().request_id or "-"
    for change in changes:
        LOG.info(
            "Lease %s of project %s: %s -> %s (%s), request %s",
            change.lease_id,
            printable(change.project_id),
            change.before,
            change.after,
            printable(change.why, 200),
            request_id,
        )
