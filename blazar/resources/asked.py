# SPDX-License-Identifier: Apache-2.0
"""The host properties that a reservation's requirements name."""

from __future__ import annotations

from blazar.model.lease import Reservation
from blazar.model.requirements import keys
from blazar.resources import physical_host, virtual_instance
from blazar.resources.parameters import requirement_of

REQUIREMENTS = {module.RESOURCE_TYPE: module.REQUIREMENTS for module in (physical_host, virtual_instance)}
"""The parameters of a resource type that are requirements on hosts; other types (flavors) have none."""


def required_properties(reservation: Reservation) -> frozenset[str]:
    """Return the host properties that a reservation's requirements name."""
    return keys(requirement_of(reservation.parameters, REQUIREMENTS.get(reservation.resource_type, ())))


def requirements_differ(before: Reservation, after: Reservation) -> bool:
    """Return whether a change of a reservation changes its requirements on hosts."""
    fields = REQUIREMENTS.get(after.resource_type, ())
    return any(before.parameters[field] != after.parameters[field] for field in fields)
