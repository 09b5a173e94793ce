# SPDX-License-Identifier: Apache-2.0
"""A change of a lease as values: as asked for, as drafted, and as decided. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from blazar.manager.booking.booking import PlacementRequest
from blazar.manager.booking.quotas import LeaseNeeds
from blazar.model.base.amounts import Amounts
from blazar.model.base.values import dataclass, replace
from blazar.model.calendar.allocations import Allocation, AllocationPlan
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import LeaseChange
from blazar.model.leases.states import ReservationStatus
from blazar.resources.contract.actions import differ_beside_action
from blazar.resources.contract.values import Given, Task
from blazar.store.booking.commit import LeaseWrite


@dataclass(frozen=True, slots=True)
class ChangeDraft:
    """The lease after a change, and whether its resources have to be planned again."""

    after: Lease
    replan: bool
    warning_off: bool
    to_prepare: frozenset[str]
    """Reservations that have not started and whose cloud objects from before the start have to be made again."""

    def changes_nothing(self, lease: Lease) -> bool:
        """Tell whether the lease would be as it is."""
        if self.replan or self.warning_off or self.to_prepare:
            return False
        return replace(self.after, updated_at=lease.updated_at, series=lease.series) == lease


@dataclass(frozen=True, slots=True)
class Unchanged:
    """A change that does not touch the calendar: a new name, or nothing."""

    lease: Lease
    after: Lease


@dataclass(frozen=True, slots=True)
class DecidedChange:
    """A decided change: lease and allocations before and after, and the reservations in use that get ``new`` ones.

    ``moved`` are leases of others that make room for it.
    """

    lease: Lease
    draft: ChangeDraft
    plan: AllocationPlan
    tasks: tuple[Task, ...]
    allocations: tuple[Allocation, ...]
    new: frozenset[str]
    moved: tuple[LeaseWrite, ...] = ()

    @property
    def needs_cloud(self) -> bool:
        """Tell whether something in the cloud has to change with the lease."""
        return bool(self.new or self.draft.to_prepare)


@dataclass(frozen=True, slots=True)
class ChangeQuestion:
    """What a change asks of the calendar: a lease before and ``after`` it, and its allocations before it.

    ``replan``: its resources would be chosen again; else it keeps them for a part of their time.
    """

    lease: Lease
    after: Lease
    replan: bool
    placement_requests: tuple[PlacementRequest, ...]
    allocations: tuple[Allocation, ...]


@dataclass(frozen=True, slots=True)
class RequestedChange:
    """A requested change, with what was read from the cloud for it, by reservation.

    ``avoided`` are resources, by calendar id, that it must not get: only what it has in use stays.
    """

    change: LeaseChange
    given: Mapping[str, Given]
    usage: Mapping[str, Mapping[int, int]]
    quotas: LeaseNeeds | None = None
    avoided: frozenset[int] = frozenset()


def find_changed_in_content(before: Lease, after: Lease) -> list[str]:
    """Return the reservations in use that ask for something else than before."""
    return [
        old.id
        for old in before.reservations
        if old.status is ReservationStatus.ACTIVE
        and (new := after.reservation(old.id)) is not None
        and differ_beside_action(old.parameters, new.parameters)
    ]


def find_changed_in_use(
    after: Lease, before: Collection[Allocation], planned: Collection[Allocation]
) -> frozenset[str]:
    """Return the reservations in use that get other resources, or another count or size on one, than they hold."""
    held, wanted = _group_by_reservation(before), _group_by_reservation(planned)
    return frozenset(
        r.id
        for r in after.reservations
        if r.status is ReservationStatus.ACTIVE and held.get(r.id, {}) != wanted.get(r.id, {})
    )


def _group_by_reservation(
    allocations: Collection[Allocation],
) -> Mapping[str, Mapping[int, tuple[int, Amounts | None]]]:
    found: dict[str, dict[int, tuple[int, Amounts | None]]] = {}
    for allocation in allocations:
        found.setdefault(allocation.reservation_id, {})[allocation.resource_id] = (
            allocation.count,
            allocation.per_instance,
        )
    return found
