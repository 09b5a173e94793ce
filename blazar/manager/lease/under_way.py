# SPDX-License-Identifier: Apache-2.0
"""Reservations in use whose servers are being moved to another of their hosts: until that is over they keep both."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from blazar.manager.common.runtime import Runtime
from blazar.model.demand import Allocation
from blazar.model.errors import WrongState
from blazar.model.lease import Lease

NOWHERE: Mapping[str, str] = MappingProxyType({})


def under_way(runtime: Runtime, lease_id: str, allocations: Collection[Allocation]) -> frozenset[str]:
    """Return the reservations of a lease that have two hosts for one, as their servers move; one statement.

    To be asked after the lease was read: what begins later changes its revision.
    """
    held = {(each.reservation_id, each.resource_id) for each in allocations}
    return frozenset(
        id_
        for plan in runtime.store.maintenances.begun_plans(lease_id)
        for id_, sources in plan.targets.items()
        for source, targets in sources.items()
        if (id_, source) in held and any((id_, target) in held for target in targets)
    )


def check_not_under_way(
    runtime: Runtime,
    lease: Lease,
    allocations: Collection[Allocation],
    reservation_ids: Collection[str],
    places: Mapping[str, str] = NOWHERE,
) -> None:
    """Raise WrongState if servers of one of these reservations are being moved to another of its hosts.

    One statement. ``places`` are the pointers to reservations in the request.
    """
    if moving := sorted(under_way(runtime, lease.id, allocations).intersection(reservation_ids)):
        raise WrongState(
            f"servers of reservation {moving[0]} are being moved off a host before its maintenance; its hosts can be "
            "changed when that has finished",
            code="lease_busy",
            pointer=places.get(moving[0]),
            data={"status": str(lease.status)},
        )
