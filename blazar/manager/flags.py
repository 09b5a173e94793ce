# SPDX-License-Identifier: Apache-2.0
"""What a lease says of resources that have failed: two flags on each reservation, and one that follows from them.

``missing_resources`` means that something promised can not be used: it has failed and nothing has taken its place, or
it was left out of the start. It is true exactly as long as that is so. ``resources_changed`` means that something was
exchanged while the reservation was in use, and stays until its end. A lease with either is ``degraded``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from blazar.manager import lifecycle
from blazar.manager.notifications import DEGRADED, HEALED
from blazar.model.demand import Allocation
from blazar.model.lease import Lease, Reservation, ReservationStatus
from blazar.resources.base import Work

LEFT_OUT = "left_out"
"""Artefact of a reservation in use: the calendar ids of what could not be handed over at its start."""

FLAGGED = frozenset({ReservationStatus.PENDING, ReservationStatus.ACTIVE})
"""Of what has ended the flags stay as they were."""


def left_out(reservation: Reservation) -> frozenset[int]:
    """Return what was promised to a reservation in use and is not handed over."""
    return frozenset(reservation.artefacts.get(LEFT_OUT) or ())


def leaving_out(reservation: Reservation, ids: Collection[int]) -> Reservation:
    """Return a reservation that has all but these handed over."""
    artefacts = {key: value for key, value in reservation.artefacts.items() if key != LEFT_OUT}
    if ids:
        artefacts[LEFT_OUT] = sorted(ids)
    return reservation if artefacts == reservation.artefacts else replace(reservation, artefacts=artefacts)


def failed(works: Iterable[Work], status: ReservationStatus) -> Mapping[str, frozenset[int]]:
    """Return what has failed of what reservations in a state hold; those that hold nothing of the kind are left out."""
    found = {
        work.reservation.id: frozenset(r.id for r in work.resources if r.failure)
        for work in works
        if work.reservation.status is status
    }
    return {id_: ids for id_, ids in found.items() if ids}


def flagged(
    lease: Lease,
    allocations: Collection[Allocation],
    works: Iterable[Work],
    *,
    changed: Collection[str] = (),
    unsure: Collection[str] = (),
    now: datetime,
) -> Lease:
    """Return a lease with the flags that follow from what it holds; ``changed`` reservations got others while in use.

    ``works`` are what it held before; anything else was found well a moment ago. Of ``unsure`` reservations nothing is
    said to be back: that is still to be handed over.
    """
    sick = {resource.id for work in works for resource in work.resources if resource.failure}
    after = []
    for reservation in lease.reservations:
        if reservation.status in FLAGGED:
            held = {a.resource_id for a in allocations if a.reservation_id == reservation.id}
            missing = bool(held & sick) or bool(held & left_out(reservation))
            missing |= reservation.missing_resources and reservation.id in unsure
            after.append(_flagged(reservation, missing, reservation.id in changed, now))
    changed_lease = derived(lifecycle.with_reservations(lease, after))
    return lease if changed_lease == lease else changed_lease


def derived(lease: Lease) -> Lease:
    """Return a lease that is degraded if one of its reservations is."""
    degraded = any(r.missing_resources or r.resources_changed for r in lease.reservations)
    return lease if degraded == lease.degraded else replace(lease, degraded=degraded)


def news(before: Lease, after: Lease) -> str | None:
    """Return the notification that a change of flags is worth: the worse if there are two."""
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


def _flagged(reservation: Reservation, missing: bool, changed: bool, now: datetime) -> Reservation:
    differs = changed or reservation.resources_changed
    if (missing, differs) == (reservation.missing_resources, reservation.resources_changed):
        return reservation
    return replace(reservation, missing_resources=missing, resources_changed=differs, updated_at=now)
