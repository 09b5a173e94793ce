# SPDX-License-Identifier: Apache-2.0
"""How the units of one demand lie to each other: together where a property has one value, or spread over its values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from blazar.model.base.values import dataclass
from blazar.model.resources.resource import Resource


@dataclass(frozen=True, slots=True)
class Together:
    """All units where the property ``key`` has one value.

    ``prefer``: if no value has enough, as few values as possible. ``size``: in groups of so many, each within one
    value; 0: all in one.
    """

    key: str
    prefer: bool = False
    size: int = 0

    def __post_init__(self) -> None:
        if self.size < 0 or (self.size and self.prefer):
            raise ValueError("groups have a size of at least 1, and are firm")


@dataclass(frozen=True, slots=True)
class SpreadOver:
    """At most ``most`` units where the property ``key`` has the same value."""

    key: str
    most: int = 1

    def __post_init__(self) -> None:
        if self.most < 1:
            raise ValueError("at least one of each value must be allowed")


@dataclass(frozen=True, slots=True)
class Topology:
    """What a demand asks of where its units are; empty if it does not matter."""

    together: Together | None = None
    spread: SpreadOver | None = None

    def __bool__(self) -> bool:
        return self.together is not None or self.spread is not None

    @property
    def keys(self) -> frozenset[str]:
        """Return the properties that it names."""
        return frozenset(one.key for one in (self.together, self.spread) if one is not None)


ANYWHERE = Topology()


def describe_topology(topology: Topology) -> str:
    """Return where units are to lie, in words that follow a number of resources."""
    words = []
    if (together := topology.together) is not None:
        groups = f"in groups of {together.size} " if together.size else ""
        words.append(f"{groups}of one {together.key}")
    if (spread := topology.spread) is not None:
        most = spread.most
        words.append(f"at most {most} of a {spread.key}" if most > 1 else f"of a different {spread.key} apiece")
    return ", ".join(words)


def value_of(resource: Resource, key: str) -> str | None:
    """Return the value of a property as text; None if the resource has none, or it is not known."""
    value = resource.capabilities.get(key) if key not in resource.attributes else resource.attributes[key]
    return None if value is None else str(value)


def group_by_value(resources: Iterable[Resource], key: str) -> Mapping[str, list[Resource]]:
    """Return resources by the value of a property, each group in their order; those without one are left out."""
    groups: dict[str, list[Resource]] = {}
    for resource in resources:
        value = value_of(resource, key)
        if value is not None:
            groups.setdefault(value, []).append(resource)
    return groups


def do_lie(topology: Topology, resources: Collection[Resource]) -> bool:
    """Return whether resources lie to each other as it asks."""
    together, spread = topology.together, topology.spread
    if together is not None and not together.prefer:
        values = Counter(value_of(resource, together.key) for resource in resources)
        if None in values or any(count % (together.size or len(resources)) for count in values.values()):
            return False
    if spread is None:
        return True
    values = Counter(value_of(resource, spread.key) for resource in resources)
    return None not in values and all(count <= spread.most for count in values.values())


def lie_alike(topology: Topology, one: Resource, other: Resource) -> bool:
    """Return whether a resource may take the place of another one without a change of how all of them lie."""
    return all(value_of(one, key) == value_of(other, key) for key in topology.keys)
