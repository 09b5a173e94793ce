# SPDX-License-Identifier: Apache-2.0
"""Flags for failed resources: two on each reservation, and one on the lease that follows from them.

``missing_resources`` means that an allocated resource cannot be used: it has failed and was not replaced, or it was
left out of the start. It is true exactly as long as that lasts. ``resources_changed`` means that a resource was
replaced while the reservation was in use, and stays until its end. A lease with either is ``degraded``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from blazar.manager.common.notifications import DEGRADED, HEALED
from blazar.manager.leases import lifecycle
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.lease import Lease
from blazar.model.leases.reservation import Reservation
from blazar.model.leases.states import ReservationStatus
from blazar.resources.contract.values import Task

FLAGGED = frozenset({ReservationStatus.PENDING, ReservationStatus.ACTIVE})
"""Flags are updated in these states only: a reservation that has ended keeps its last ones."""


def find_failed(tasks: Iterable[Task], status: ReservationStatus) -> Mapping[str, frozenset[int]]:
    """Return the failed resources of reservations in a state; reservations without any are left out."""
    found = {
        task.reservation.id: frozenset(r.id for r in task.resources if r.failure)
        for task in tasks
        if task.reservation.status is status
    }
    return {id_: ids for id_, ids in found.items() if ids}


def set_flags(
    lease: Lease,
    allocations: Collection[Allocation],
    tasks: Iterable[Task],
    *,
    changed: Collection[str] = (),
    uncertain: Collection[str] = (),
    now: datetime,
) -> Lease:
    """Return a lease with the flags that follow from its allocations; ``changed`` ones got others while in use.

    ``tasks`` holds the resources from before; new resources are healthy. ``missing_resources`` of ``uncertain``
    reservations is not cleared yet: their recovered resources still have to be assigned.
    """
    failed_ids = {resource.id for task in tasks for resource in task.resources if resource.failure}
    after = []
    for reservation in lease.reservations:
        if reservation.status in FLAGGED:
            held = {a.resource_id for a in allocations if a.reservation_id == reservation.id}
            missing = bool(held & failed_ids) or bool(held & reservation.unassigned)
            still = not missing and reservation.missing_resources and reservation.id in uncertain
            gone = frozenset(held & (reservation.failed if still else failed_ids))
            noted = reservation if gone == reservation.failed else replace(reservation, failed=gone)
            after.append(_set_reservation_flags(noted, missing or still, reservation.id in changed, now))
    changed_lease = derive_degraded(lifecycle.with_reservations(lease, after))
    return lease if changed_lease == lease else changed_lease


def derive_degraded(lease: Lease) -> Lease:
    """Return the lease, degraded if one of its reservations has a flag."""
    degraded = any(r.missing_resources or r.resources_changed for r in lease.reservations)
    return lease if degraded == lease.degraded else replace(lease, degraded=degraded)


def mark_missing(reservation: Reservation, now: datetime) -> Reservation:
    """Return the reservation with resources missing: since ``now``, unless some were missing before."""
    if reservation.missing_resources:
        return reservation
    return replace(reservation, missing_resources=True, missing_since=now, updated_at=now)


def change_notification(before: Lease, after: Lease) -> str | None:
    """Return the notification for a change of flags: the worse one if there are two."""
    was = {r.id: (r.missing_resources, r.resources_changed) for r in before.reservations}
    worse = any(
        (r.missing_resources and not was[r.id][0]) or (r.resources_changed and not was[r.id][1] and not was[r.id][0])
        for r in after.reservations
        if r.id in was
    )
    if worse:
        return DEGRADED
    missed = any(r.missing_resources for r in before.reservations)
    return HEALED if missed and not any(r.missing_resources for r in after.reservations) else None


def _set_reservation_flags(reservation: Reservation, missing: bool, changed: bool, now: datetime) -> Reservation:
    differs = changed or reservation.resources_changed
    if (missing, differs) == (reservation.missing_resources, reservation.resources_changed):
        return reservation
    after = (
        mark_missing(reservation, now) if missing else replace(reservation, missing_resources=False, missing_since=None)
    )
    if differs and not reservation.resources_changed:
        after = replace(after, resources_changed=True, changed_since=now)
    return replace(after, updated_at=now)
