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
    """``min_units`` to ``max_units`` units of a kind of resource that meets ``requirement`` and ``traits``.

    ``unit`` says what one unit takes of a resource; None means the *whole* resource, which then is shared
    with nobody (so whole units always lie apart). ``preferred`` resources are chosen before others if they can be.
    What is in use stays: whole resources that are ``pinned`` must be among the chosen ones, and of shared ones at
    least the units in ``kept``. All three go by calendar ids. ``entitled``: what is kept was promised for the whole
    window before, and is not given up even if its resource has less by now than is promised of it. ``required`` are
    the names of whole resources that must be among the chosen ones as well, and which have to match, to be reservable
    and free like any other.
    """

    kind: ResourceKind
    min_units: int
    max_units: int
    requirement: Requirement = Anything()
    unit: Amounts | None = None
    affinity: Affinity = Affinity.ANY
    pinned: frozenset[int] = frozenset()
    preferred: frozenset[int] = frozenset()
    kept: Mapping[int, int] = field(default_factory=dict)
    traits: TraitRequirements = TraitRequirements()
    entitled: bool = False
    required: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not 1 <= self.min_units <= self.max_units:
            raise ValueError(f"a demand for {self.min_units} to {self.max_units} units makes no sense")
        if self.unit is not None and not self.unit:
            raise ValueError("a unit must take something")
        if self.unit is None and self.affinity is Affinity.TOGETHER and self.max_units > 1:
            raise ValueError("several whole resources can not lie on one resource")
        if self.kept if self.unit is None else self.pinned:
            raise ValueError("whole resources are pinned, units are kept")
        if self.required and (self.unit is not None or len(self.required) + len(self.pinned) > self.min_units):
            raise ValueError("only whole resources are required, and no more than there are to be with those pinned")

    @property
    def whole(self) -> bool:
        """Tell whether each unit is a whole resource."""
        return self.unit is None


@dataclass(frozen=True, slots=True)
class Allocation:
    """Promises ``units`` units of one resource of a kind to one reservation for one window.

    ``unit`` is as in Demand: None is the whole resource, and then ``units`` is 1.
    """

    kind: ResourceKind
    resource_id: int
    lease_id: str
    reservation_id: str
    window: Window
    units: int = 1
    unit: Amounts | None = None

    @property
    def amounts(self) -> Amounts | None:
        """What the allocation takes of its resource; None is all of it."""
        return None if self.unit is None else self.unit.times(self.units)

    @property
    def assignment(self) -> tuple[str, int, int, Amounts | None]:
        """What of which resource is promised to which reservation, whenever that is."""
        return self.reservation_id, self.resource_id, self.units, self.unit


@dataclass(frozen=True, slots=True)
class Plan:
    """Allocations that fit, and what a booking of them must find: the generations of resources taken anew, by id."""

    allocations: tuple[Allocation, ...] = ()
    generations: Mapping[int, int] = field(default_factory=dict)
