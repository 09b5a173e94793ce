# SPDX-License-Identifier: Apache-2.0
"""The allocations of the resources of a kind, as operators read them."""

from __future__ import annotations

from datetime import datetime

from blazar.model.allocations import ResourceAllocations
from blazar.model.demand import Allocation
from blazar.model.resource import ResourceKind
from blazar.store.store import Store


def promised(
    store: Store,
    kind: ResourceKind,
    *,
    external_id: str | None,
    lease_id: str | None,
    reservation_id: str | None,
    now: datetime,
) -> tuple[ResourceAllocations, ...]:
    """Return live allocations by resource: of all of a kind, or of one (NotFound).

    For a given lease or reservation, past allocations are included.
    """
    resources = store.resources.of_kind(kind) if external_id is None else (store.resources.one(kind, external_id),)
    asked = lease_id is not None or reservation_id is not None
    allocations = store.calendar.live(
        kind,
        resource_id=None if external_id is None else resources[0].id,
        lease_id=lease_id,
        reservation_id=reservation_id,
        ending_after=None if asked else now,
    )
    found: dict[int, list[Allocation]] = {resource.id: [] for resource in resources}
    for allocation in allocations:
        if allocation.resource_id in found:
            found[allocation.resource_id].append(allocation)
    return tuple(ResourceAllocations(resource, tuple(found[resource.id])) for resource in resources)
