# SPDX-License-Identifier: Apache-2.0
"""Regions: the clouds that one Blazar serves, by name, and in which of them a reservation may lie. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from blazar.model.base.errors import InvalidInput, query_field
from blazar.model.base.values import dataclass
from blazar.model.resources.requirements import Comparison, Requirement, can_match, property_keys
from blazar.model.resources.resource import REGION


@dataclass(frozen=True, slots=True)
class Regions:
    """The names of the regions; the first one is the default. Without names there is one region, which has none."""

    names: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.names)

    def __iter__(self) -> Iterator[str]:
        """Yield the names, the default first; an empty one if there are none."""
        return iter(self.names or ("",))

    @property
    def default(self) -> str:
        """Return the region of what names none."""
        return self.names[0] if self.names else ""

    def list_allowed(self, requirement: Requirement) -> tuple[str, ...]:
        """Return the regions in which resources can meet a requirement, the default first."""
        return tuple(name for name in self if can_match(requirement, REGION, name))

    def check_any_allowed(self, requirement: Requirement, field: str) -> None:
        """Raise InvalidInput if a requirement asks for a region, and for none of these."""
        if REGION in property_keys(requirement) and not self.list_allowed(requirement):
            raise InvalidInput(
                f"{field} asks for a $region that this service does not have; its regions are {', '.join(self)}",
                code="unknown_reference",
                at=f"/{field}",
                data={"allowed": list(self)},
            )

    def check_known(self, names: Iterable[str]) -> None:
        """Raise InvalidInput, which names the regions, if a list is asked for what lies in one that is none of them."""
        if unknown := [name for name in names if name not in self.names]:
            there = f"its regions are {', '.join(self)}" if self else "it has none; leave it out"
            raise InvalidInput(
                f"region is {unknown[0][:40]!r}, which this service does not have; {there}",
                code="unknown_reference",
                at=query_field("region"),
                data={"allowed": list(self.names)},
            )


def region_requirement(region: str) -> Requirement:
    """Return the requirement that a resource lies in a region."""
    return Comparison("==", REGION, region)


@dataclass(frozen=True, slots=True)
class Choice:
    """Where the reservations of a lease may lie: each wholly in one region.

    ``fixed`` has the region of each reservation that has one, None for the others: these lie in one region together,
    one of ``shared``, which are to be tried in this order.
    """

    fixed: tuple[str | None, ...]
    shared: tuple[str, ...] = ()

    def iterate_options(self) -> Iterator[tuple[str, ...]]:
        """Yield the regions of all reservations, one option after the other."""
        for region in self.shared or ("",):
            yield tuple(region if name is None else name for name in self.fixed)


def choose_regions(allowed: Sequence[Sequence[str]]) -> Choice:
    """Return where reservations may lie that are each allowed some regions, at least one, in order of preference.

    One that is allowed a single region lies there. The others share a region, so that they can be used together: if
    they can, one in which another reservation of the lease lies already. If no region suits them all, each lies in the
    first one that it is allowed.
    """
    fixed = [names[0] if len(names) == 1 else None for names in allowed]
    free = [names for names, region in zip(allowed, fixed, strict=True) if region is None]
    if not free:
        return Choice(tuple(fixed))
    shared = [name for name in free[0] if all(name in names for names in free)]
    if not shared:
        return Choice(tuple(names[0] for names in allowed))
    beside = [name for name in shared if name in fixed]
    return Choice(tuple(fixed), tuple(beside or shared))
