# SPDX-License-Identifier: Apache-2.0
"""What a reservation gets of the calendar, and pages of that."""

from __future__ import annotations

from collections.abc import Mapping

from blazar.model.base.amounts import Amounts
from blazar.model.base.paging import Condition, Page, Position
from blazar.model.base.values import dataclass, field
from blazar.model.base.window import Window
from blazar.model.resources.resource import Resource, ResourceKind


@dataclass(frozen=True, slots=True)
class Allocation:
    """A promise of ``count`` instances on one resource to one reservation for one window.

    ``per_instance`` is as in Demand: None is the whole resource, with a ``count`` of 1.
    """

    kind: ResourceKind
    resource_id: int
    lease_id: str
    reservation_id: str
    window: Window
    count: int = 1
    per_instance: Amounts | None = None

    @property
    def amounts(self) -> Amounts | None:
        """Return the amounts that the allocation takes of its resource; None is all of it."""
        return None if self.per_instance is None else self.per_instance.times(self.count)

    @property
    def assignment(self) -> tuple[str, int, int, Amounts | None]:
        """Return what is promised of which resource to which reservation, without the window."""
        return self.reservation_id, self.resource_id, self.count, self.per_instance


@dataclass(frozen=True, slots=True)
class AllocationPlan:
    """Allocations that fit, and the generations that a booking must still find on newly taken resources, by id."""

    allocations: tuple[Allocation, ...] = ()
    generations: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResourceAllocations:
    """A resource with its live allocations, earliest first."""

    resource: Resource
    allocations: tuple[Allocation, ...]


@dataclass(frozen=True, slots=True)
class AllocationQuestion:
    """A page of the registered resources of a kind with their allocations, also of those that have none.

    Keys of the order are as for ``ResourceQuestion``. Without conditions the allocations are the live ones; conditions
    are about ``lease_id`` and ``reservation_id``, narrow the allocations, and include past ones.
    """

    page: Page
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class AllocationPage:
    """Resources with their allocations; the other fields are as in ``ResourcePage``."""

    items: tuple[ResourceAllocations, ...]
    following: Position | None = None
    count: int | None = None
