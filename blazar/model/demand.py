# SPDX-License-Identifier: Apache-2.0
"""What a reservation asks of the calendar, and what the calendar promises it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from blazar.model.amounts import Amounts
from blazar.model.requirements import Anything, Requirement
from blazar.model.resource import ResourceKind
from blazar.model.window import Window


class Affinity(StrEnum):
    """How the units of one demand lie on resources towards each other."""

    ANY = "any"
    TOGETHER = "together"
    """All units on one resource."""
    APART = "apart"
    """Every unit on a resource of its own."""


@dataclass(frozen=True, slots=True)
class TraitRequirements:
    """Traits that a resource must have, and traits that it must not have."""

    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.required or self.forbidden)

    def met_by(self, traits: frozenset[str]) -> bool:
        """Tell whether a resource with these traits will do."""
        return self.required <= traits and not self.forbidden & traits


@dataclass(frozen=True, slots=True)
class Demand:
    """``min_count`` to ``max_count`` units of a kind of resource that meets ``requirement`` and ``traits``.

    ``per_instance`` says what one unit takes of a resource; None means the *whole* resource, which then is shared
    with nobody (so whole units always lie apart). ``preferred`` resources are chosen before others if they can be.
    What is in use stays: whole resources that are ``pinned`` must be among the chosen ones, and of shared ones at
    least the units in ``kept``. All three go by calendar ids. ``entitled``: what is kept was promised for the whole
    window before, and is not given up even if its resource has less by now than is promised of it. ``required`` are
    the names of whole resources that must be among the chosen ones as well, and which have to match, to be reservable
    and free like any other.
    """

    kind: ResourceKind
    min_count: int
    max_count: int
    requirement: Requirement = Anything()
    per_instance: Amounts | None = None
    affinity: Affinity = Affinity.ANY
    pinned: frozenset[int] = frozenset()
    preferred: frozenset[int] = frozenset()
    kept: Mapping[int, int] = field(default_factory=dict)
    traits: TraitRequirements = TraitRequirements()
    entitled: bool = False
    required: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not 1 <= self.min_count <= self.max_count:
            raise ValueError(f"a demand for {self.min_count} to {self.max_count} units makes no sense")
        if self.per_instance is not None and not self.per_instance:
            raise ValueError("a unit must take something")
        if self.per_instance is None and self.affinity is Affinity.TOGETHER and self.max_count > 1:
            raise ValueError("several whole resources can not lie on one resource")
        if self.kept if self.per_instance is None else self.pinned:
            raise ValueError("whole resources are pinned, units are kept")
        if self.required and (self.per_instance is not None or len(self.required) + len(self.pinned) > self.min_count):
            raise ValueError("only whole resources are required, and no more than there are to be with those pinned")

    @property
    def whole(self) -> bool:
        """Tell whether each unit is a whole resource."""
        return self.per_instance is None


@dataclass(frozen=True, slots=True)
class Allocation:
    """Promises ``count`` units of one resource of a kind to one reservation for one window.

    ``per_instance`` is as in Demand: None is the whole resource, and then ``count`` is 1.
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
        """What the allocation takes of its resource; None is all of it."""
        return None if self.per_instance is None else self.per_instance.times(self.count)

    @property
    def assignment(self) -> tuple[str, int, int, Amounts | None]:
        """What of which resource is promised to which reservation, whenever that is."""
        return self.reservation_id, self.resource_id, self.count, self.per_instance


@dataclass(frozen=True, slots=True)
class Plan:
    """Allocations that fit, and what a booking of them must find: the generations of resources taken anew, by id."""

    allocations: tuple[Allocation, ...] = ()
    generations: Mapping[int, int] = field(default_factory=dict)
