# SPDX-License-Identifier: Apache-2.0
"""What clients see of a lease that know nothing of waiting, or of room that is made.

Programs wait at CREATING and STARTING, and give up at ERROR.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from blazar.api.shapes import Json
from blazar.model.lease import EventStatus, EventType, Lease, LeaseStatus

EARLIER: Mapping[LeaseStatus, LeaseStatus] = {
    LeaseStatus.WAITING: LeaseStatus.CREATING,
    LeaseStatus.TIMED_OUT: LeaseStatus.ERROR,
    LeaseStatus.IN_PROGRESS: LeaseStatus.STARTING,
}
"""The status that is shown before 1.3."""

KNOWN: tuple[LeaseStatus, ...] = tuple(each for each in LeaseStatus if each not in EARLIER)
"""The states that requests before 1.3 know."""

STATES: Json = {"enum": [each.value for each in KNOWN]}
"""The schema of the states before 1.3."""


def meant(states: Collection[str]) -> tuple[str, ...]:
    """Return all states that are shown before 1.3 as one of these."""
    hidden = (each.value for each, shown in EARLIER.items() if shown.value in states)
    return (*states, *hidden)


def status(lease: Lease) -> str:
    """Return the status of a lease as it is shown before 1.3."""
    return EARLIER.get(lease.status, lease.status).value


def known_states(data: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the data of a fault with a status that was known before 1.3."""
    if data is None or data.get("status") not in EARLIER:
        return data
    return {**data, "status": EARLIER[LeaseStatus(data["status"])].value}


def as_estimated(lease: Lease) -> Lease:
    """Return a lease that waits, or did so until it was deleted, with the timetable of its dates; any other as it is.

    While it waits its dates are those of the estimate, and what is stored of the timetable is what it asked for.
    """
    start = lease.event(EventType.START)
    waits = lease.wait is not None and start is not None and start.status is EventStatus.UNDONE
    return lease.in_window(lease.window) if waits else lease
