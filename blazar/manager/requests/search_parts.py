# SPDX-License-Identifier: Apache-2.0
"""The parts of a reservation's requirement, with their places in the request. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from blazar.calendar.reasons import Part, parts_of
from blazar.model.demand import Demand
from blazar.model.lease import Content
from blazar.model.regions import within
from blazar.model.requirements import All, Anything, all_of, parse_requirement

REQUIREMENTS = ("hypervisor_properties", "resource_properties")


@dataclass(frozen=True, slots=True)
class Place:
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


def parts_in(parameters: Content, demand: Demand, place: Place, *, region: str = "") -> tuple[Part, ...]:
    """Return the parts of a demand's requirement; those that the request names have a pointer.

    That of the region in which it lies cannot be left out.
    """
    if demand.requirement == Anything():
        return ()
    if demand.reference is not None:
        return (Part(demand.requirement, place.to(demand.reference), needed=True),)
    found = [Part(within(region), needed=True)] if region else []
    for name in REQUIREMENTS:
        match parse_requirement(parameters.values.get(name), field=name):
            case Anything():
                pass
            case All(terms):
                found += (Part(term, place.to(name, index)) for index, term in enumerate(terms, 1))
            case requirement:
                found.append(Part(requirement, place.to(name)))
    same = all_of(*(part.requirement for part in found)) == demand.requirement
    return tuple(found) if same else parts_of(demand.requirement)


def counted(parameters: Content, place: Place, count: int) -> Mapping[str, int | str]:
    """Return what to put over a reservation in the request, to ask for this many."""
    named = {} if place.id is None else {"id": place.id}
    counts = {"amount": count} if "amount" in parameters.values else {"min": count, "max": count}
    return {**named, **counts}
