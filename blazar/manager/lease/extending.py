# SPDX-License-Identifier: Apache-2.0
"""Up to when a lease is prolonged by itself, as requests ask for it."""

from __future__ import annotations

from datetime import datetime, timedelta

from blazar.model.clock import END_OF_TIME, to_second, zulu
from blazar.model.duration import Duration
from blazar.model.errors import InvalidInput
from blazar.model.lease import ExtendIfFree, Lease
from blazar.model.requests import LeaseChange

MOST = timedelta(days=366)
"""How long after its end a lease may be prolonged by itself."""

_POINTER = "/extend_if_free/until"


def asked(until: datetime | Duration | None, end: datetime, now: datetime) -> ExtendIfFree | None:
    """Return what a request asks for a lease with this end; None if it asks for nothing. InvalidInput."""
    if until is None:
        return None
    try:
        at = to_second(until.after(end) if isinstance(until, Duration) else until)
    except (OverflowError, ValueError):
        at = END_OF_TIME
    if at <= max(end, now):
        raise InvalidInput(
            f"extend_if_free.until is {zulu(at)}, and the lease ends at {zulu(end)}; give a later date",
            pointer=_POINTER,
        )
    if at - end > MOST:
        raise InvalidInput(
            f"extend_if_free.until is more than {MOST.days} days after the end of the lease; give an earlier date",
            pointer=_POINTER,
        )
    return ExtendIfFree(at)


def changed(lease: Lease, change: LeaseChange, end: datetime, now: datetime) -> ExtendIfFree | None:
    """Return what a lease has after a change of it, with this end then. InvalidInput.

    One that ends later than it would be prolonged is not prolonged any more.
    """
    if change.stops_extending:
        return None
    if change.extend_until is not None:
        return asked(change.extend_until, end, now)
    kept = lease.extend
    return None if kept is None or kept.until <= end else kept
