# SPDX-License-Identifier: Apache-2.0
"""The host properties that a reservation's requirements name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from blazar.model.lease import Content, Reservation
from blazar.model.requirements import Anything, Requirement, keys
from blazar.resources import physical_host, virtual_instance
from blazar.resources.physical_host import HostParameters
from blazar.resources.virtual_instance import VirtualInstanceParameters

_REQUIREMENT: Mapping[str, Callable[[Content], Requirement]] = {
    physical_host.RESOURCE_TYPE: lambda content: HostParameters.of(content).requirement,
    virtual_instance.RESOURCE_TYPE: lambda content: VirtualInstanceParameters.of(content).requirement,
}
"""The requirement on hosts, by resource type; other types (flavors) have none."""


def requirement(reservation: Reservation) -> Requirement:
    """Return what a reservation requires of hosts."""
    of = _REQUIREMENT.get(reservation.resource_type)
    return Anything() if of is None else of(reservation.parameters)


def required_properties(reservation: Reservation) -> frozenset[str]:
    """Return the host properties that a reservation's requirements name."""
    return keys(requirement(reservation))
