# SPDX-License-Identifier: Apache-2.0
"""Where a question or a request names reservations, and the parts of what they require. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from blazar.calendar.reasons import RequirementPart, split_requirement
from blazar.model.base.values import dataclass
from blazar.model.calendar.demand import Demand
from blazar.model.leases.reservation import Content
from blazar.model.resources.regions import region_requirement
from blazar.model.resources.requirements import All, Anything, join_requirements, parse_requirement
from blazar.model.search.availability import name_count

REQUIREMENTS = ("hypervisor_properties", "resource_properties")


@dataclass(frozen=True, slots=True)
class RequestPlace:
    """Where a request names a reservation: its index in the list, and its ``keys`` there; None where it does not.

    A change names the reservation of a lease by ``id``, if at all, and only the keys that change.
    """

    index: int | None
    keys: Collection[str] | None = None
    id: str | None = None

    @property
    def pointer(self) -> str | None:
        """Return the JSON pointer of the reservation."""
        return None if self.index is None else f"/reservations/{self.index}"

    def to(self, key: str, *more: int) -> str | None:
        """Return the JSON pointer of a key, or of a part of its value."""
        if self.pointer is None or (self.keys is not None and key not in self.keys):
            return None
        return "/".join([self.pointer, key, *map(str, more)])


def find_parts(
    parameters: Content, demand: Demand, place: RequestPlace, *, region: str = ""
) -> tuple[RequirementPart, ...]:
    """Return the parts of a demand's requirement; those that the request names have a pointer.

    That of the region in which it lies cannot be left out.
    """
    if demand.requirement == Anything():
        return ()
    if demand.reference is not None:
        return (RequirementPart(demand.requirement, place.to(demand.reference), needed=True),)
    found = [RequirementPart(region_requirement(region), needed=True)] if region else []
    for name in REQUIREMENTS:
        match parse_requirement(parameters.values.get(name), field=name):
            case Anything():
                pass
            case All(terms):
                found += (RequirementPart(term, place.to(name, index)) for index, term in enumerate(terms, 1))
            case requirement:
                found.append(RequirementPart(requirement, place.to(name)))
    same = join_requirements(*(part.requirement for part in found)) == demand.requirement
    return tuple(found) if same else split_requirement(demand.requirement)


def ask_for_count(parameters: Content, place: RequestPlace, count: int) -> Mapping[str, int | str]:
    """Return what to put over a reservation in the request, to ask for this many."""
    named = {} if place.id is None else {"id": place.id}
    return {**named, **name_count(parameters.values, count)}
