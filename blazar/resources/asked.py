# SPDX-License-Identifier: Apache-2.0
"""Which properties of hosts a reservation asks about."""

from __future__ import annotations

from blazar.model.lease import Reservation
from blazar.model.requirements import keys
from blazar.resources import physical_host, virtual_instance
from blazar.resources.parameters import requirement_of

REQUIREMENTS = {module.RESOURCE_TYPE: module.REQUIREMENTS for module in (physical_host, virtual_instance)}
"""Which parameters of a resource type ask for properties of hosts; of others (flavors) none do."""


def asked_about(reservation: Reservation) -> frozenset[str]:
    """Return the properties of hosts that a reservation's requirements are about."""
    return keys(requirement_of(reservation.parameters, REQUIREMENTS.get(reservation.resource_type, ())))


def asks_otherwise(before: Reservation, after: Reservation) -> bool:
    """Tell whether a change of a reservation changes what it asks about properties of hosts."""
    fields = REQUIREMENTS.get(after.resource_type, ())
    return any(before.parameters[field] != after.parameters[field] for field in fields)
