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
