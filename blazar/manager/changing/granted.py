# SPDX-License-Identifier: Apache-2.0
"""Which properties a reservation may go on to name because it was granted with them."""

from __future__ import annotations

from blazar.model.base.errors import BlazarError
from blazar.model.leases.reservation import Reservation
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
