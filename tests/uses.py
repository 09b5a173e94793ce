# SPDX-License-Identifier: Apache-2.0
"""Reservations of things that may use others of their lease, for tests that have all sorts of trouble.

They tell if one of them was started too soon, or if one ended too late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from blazar.clouds.ports import Cloud
from blazar.model.leases.requests import ReservationRequest
from blazar.model.leases.reservation import Content
from blazar.model.leases.states import ReservationStatus
from blazar.resources.contract.parameters import reference_of
from blazar.resources.contract.type import ResourceType
from blazar.resources.contract.values import Given, Progress, Reference, Task
from blazar.resources.generic.type import Generic
from blazar.resources.hosts.options import HostSettings
from tests.world import TYPES

USES = "uses"


class OutOfOrder(AssertionError):
    """A reservation was started or ended at the wrong time."""


class UsingThings(Generic):
    """The type ``generic``, with ``uses``: references to others of the lease, of any type."""

    def parameters(self, given: Given) -> Content:
        return _with(super().parameters(given), given.values.get(USES, []))

    def changed(self, current: Content, change: Given) -> Content:
        return _with(super().changed(current, change), change.values.get(USES, current.values[USES]))

    def references(self, parameters: Content) -> tuple[Reference, ...]:
        uses = parameters.values[USES]
        assert isinstance(uses, Sequence)
        return tuple(reference_of(use, f"/{USES}/{number}") for number, use in enumerate(uses))

    def start(self, task: Task) -> Progress:
        for used in self.references(task.reservation.parameters):
            if task.referent(str(used.reservation)).status is not ReservationStatus.ACTIVE:
                raise OutOfOrder(f"{task.reservation.id} was started before {used.reservation}")
        return super().start(task)

    def end(self, task: Task) -> Progress:
        for other in task.lease.reservations:
            used = other.resource_type == self.resource_type and self.references(other.parameters)
            needed = used and any(each.reservation == task.reservation.id for each in used)
            if needed and other.status is not ReservationStatus.DELETED:
                raise OutOfOrder(f"{task.reservation.id} was ended before {other.id}")
        return super().end(task)


def _with(content: Content, uses: object) -> Content:
    return Content({**content.values, USES: uses})


def _using(cloud: Cloud, settings: HostSettings) -> ResourceType:
    return UsingThings(cloud.hooks, before_end=settings.before_end)


TYPES_WITH_USES = (*(each for each in TYPES if each.__name__ != "_things"), _using)
"""All types, with this one in the place of ``generic``."""


def using(rooms: Sequence[ReservationRequest]) -> tuple[ReservationRequest, ...]:
    """Return the requests of a lease, in which things use all other reservations that come later."""
    return tuple(
        replace(
            room,
            parameters={**room.parameters, USES: [{"reservation": other} for other in range(number + 1, len(rooms))]},
        )
        if room.resource_type == "generic"
        else room
        for number, room in enumerate(rooms)
    )
