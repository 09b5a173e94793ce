# SPDX-License-Identifier: Apache-2.0
"""What a reservation keeps because it was granted: what it has, and the properties that it names."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from blazar.manager.booking.booking import PlacementRequest
from blazar.model.base.errors import BlazarError
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.lease import Lease
from blazar.model.leases.reservation import Reservation
from blazar.model.leases.states import ReservationStatus
from blazar.model.resources.requirements import property_keys
from blazar.resources.contract.type import ResourceType
from blazar.store.resources.catalog import ResourceCatalog


def find_granted(
    kind: ResourceType, before: Reservation, after: Reservation, catalog: ResourceCatalog
) -> frozenset[str]:
    """Return the properties that a reservation names, if it asks for the same as before of what it gets and where.

    What it was granted may stay, with properties that were hidden since. Each other request that names them would tell
    by its answer which resource has which value.
    """
    names = catalog.property_names()
    try:
        was, now = (kind.demand(reservation.parameters, known=names) for reservation in (before, after))
    except BlazarError:
        # What is not in order whatever is known is refused with its reason where it is planned.
        return frozenset()
    if (was.requirement, was.topology) != (now.requirement, now.topology):
        return frozenset()
    return (property_keys(was.requirement) | was.topology.keys) & names


def entitle(request: PlacementRequest, held: Collection[Allocation]) -> PlacementRequest:
    """Return a request for a window in which the lease has what it holds: it keeps that, and no more of it.

    Larger instances on the same resource were not promised: there must be room for them.
    """
    mine = [allocation for allocation in held if allocation.reservation_id == request.reservation_id]
    is_promised = all(allocation.per_instance == request.demand.per_instance for allocation in mine)
    return replace(request, demand=replace(request.demand, entitled=is_promised))


def resources_in_use(lease: Lease, held: Collection[Allocation]) -> frozenset[int]:
    """Return the resources that a lease keeps whatever changes: those of its reservations that have started."""
    started = {r.id for r in lease.reservations if r.status is ReservationStatus.ACTIVE}
    return frozenset(allocation.resource_id for allocation in held if allocation.reservation_id in started)
