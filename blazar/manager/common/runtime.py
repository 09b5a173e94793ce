# SPDX-License-Identifier: Apache-2.0
"""What all parts of a manager share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from blazar.manager.common.claims import Claims
from blazar.manager.common.notifications import Notifier
from blazar.manager.common.settings import Settings
from blazar.model.clock import Clock
from blazar.model.errors import NotFound
from blazar.model.lease import Lease, Reservation
from blazar.model.resource import ResourceKind
from blazar.resources.complete import CompleteType
from blazar.store.store import Store


@dataclass(frozen=True, slots=True)
class Runtime:
    """Database, clock, claims, settings, notifications and resource types of one manager.

    ``wake`` has the engine look for due events now: a new one may be due before the one that it sleeps for.
    """

    store: Store
    clock: Clock
    claims: Claims
    settings: Settings
    notifier: Notifier
    types: Mapping[str, CompleteType]
    wake: Callable[[], None]

    def type_of(self, reservation: Reservation) -> CompleteType:
        """Return the resource type of a reservation. NotFound if it is no longer enabled."""
        if reservation.resource_type not in self.types:
            raise NotFound(
                f"resource type {reservation.resource_type} is no longer enabled; an operator can enable it again"
            )
        return self.types[reservation.resource_type]

    def kinds_of(self, lease: Lease) -> Mapping[str, ResourceKind]:
        """Return the kind of resource that each reservation of a lease takes. NotFound as for ``type_of``."""
        return {reservation.id: self.type_of(reservation).kind for reservation in lease.reservations}
