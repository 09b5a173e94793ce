# SPDX-License-Identifier: Apache-2.0
"""What a reservation asks of the calendar."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from blazar.model.base.amounts import Amounts
from blazar.model.base.values import dataclass, field
from blazar.model.calendar.cards import Cards
from blazar.model.calendar.cells import GuestCells
from blazar.model.calendar.topology import ANYWHERE, Topology
from blazar.model.resources.requirements import Anything, Requirement
from blazar.model.resources.resource import Resource, ResourceKind, part_noun


class Affinity(StrEnum):
    """How the instances of one demand are spread over resources."""

    ANY = "any"
    TOGETHER = "together"
    """All instances on one resource."""
    APART = "apart"
    """Each instance on a different resource."""


@dataclass(frozen=True, slots=True)
class TraitRequirements:
    """Required and forbidden traits of a resource."""

    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.required or self.forbidden)

    def met_by(self, traits: frozenset[str]) -> bool:
        """Return whether a resource with these traits qualifies."""
        return self.required <= traits and not self.forbidden & traits


@dataclass(frozen=True, slots=True)
class Demand:
    """A request for ``min_count`` to ``max_count`` instances on resources that meet ``requirement`` and ``traits``.

    * ``per_instance``: the amounts that one instance takes of a resource. None: each takes a *whole* resource, which is
      then not shared (so whole resources are always apart).
    * ``preferred``: calendar ids of resources to choose before others, if possible.
    * ``pinned``: calendar ids of whole resources in use; all of them must be chosen.
    * ``kept``: the count in use on a shared resource, by its calendar id; at least that many must stay there.
    * ``entitled``: what is ``kept`` was already promised for the whole window, with the same ``per_instance``. It
      stays, even if the resource now has less capacity than is promised of it.
    * ``required``: names of whole resources that must be chosen as well; they must match, be reservable and be free.
    * ``cells``: the NUMA cells of one instance; None if it has none of its own.
    * ``cards``: what one instance takes from providers nested in a resource; ``per_instance`` has the amounts, too.
    * ``reference``: the parameter that names what the requirement looks for, as a network: if no resource meets the
      requirement, what it names does not exist.
    * ``topology``: how whole resources lie to each other.
    * ``word``: what its type calls one instance, if that is not what those on all shared resources of the kind are.
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
    cells: GuestCells | None = None
    cards: tuple[Cards, ...] = ()
    reference: str | None = None
    topology: Topology = ANYWHERE
    word: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not 1 <= self.min_count <= self.max_count:
            raise ValueError(f"a demand for {self.min_count} to {self.max_count} instances is not possible")
        if self.per_instance is not None and not self.per_instance:
            raise ValueError("per_instance must not be empty")
        if self.per_instance is None and self.affinity is Affinity.TOGETHER and self.max_count > 1:
            raise ValueError("several whole resources cannot be on one resource")
        if self.topology and self.per_instance is not None:
            raise ValueError("a topology is for whole resources only")
        if self.kept if self.per_instance is None else self.pinned:
            raise ValueError("pinned is for whole resources, kept is for shared ones")
        if self.required and (self.per_instance is not None or self.fixed_count > self.min_count):
            raise ValueError("required is for whole resources only, and with pinned at most min_count")

    @property
    def whole(self) -> bool:
        """Return whether each instance takes a whole resource."""
        return self.per_instance is None

    @property
    def hardware(self) -> object:
        """Return what an instance needs of the hardware of a resource besides amounts, to compare it; None if nothing.

        Resources that do not have it are those that ``is_met_by`` refuses.
        """
        return (self.traits, self.cells, self.cards) if self.traits or self.cells or self.cards else None

    def is_met_by(self, resource: Resource) -> bool:
        """Return whether a resource has the hardware that an instance needs, whatever is free of it."""
        return (
            self.traits.met_by(resource.traits)
            and (self.cells is None or self.cells.fit(resource))
            and all(cards.fit(resource) for cards in self.cards)
        )

    @property
    def share(self) -> str:
        """Return the word for one instance on a shared resource; the plural adds an s."""
        return self.word or part_noun(self.kind)

    @property
    def fixed_count(self) -> int:
        """Return how many are chosen already: those in use, and those required by name."""
        return len(self.pinned) + len(self.required) + sum(self.kept.values())
