# SPDX-License-Identifier: Apache-2.0
"""Anything that can be promised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from blazar.model.amounts import Amounts
from blazar.model.errors import NotFound

PropertyValue = str | int | float | bool | None
"""A property's value; None means that the resource does not tell."""


class ResourceKind(StrEnum):
    """What a resource is; a demand asks for one kind."""

    HOST = "host"
    FLOATING_IP = "floatingip"

    @property
    def noun(self) -> str:
        """What people call one resource of the kind; with an s for several."""
        return _NOUNS[self]


_NOUNS = {ResourceKind.HOST: "host", ResourceKind.FLOATING_IP: "floating IP"}


def unknown(kind: ResourceKind, external_id: str) -> NotFound:
    """Return the refusal of a resource that is not registered, in the words that clients of each kind know."""
    match kind:
        case ResourceKind.HOST:
            text = f"Host with {{'host_id': '{external_id[:80]}'}} not found; see the list of hosts for their ids"
        case ResourceKind.FLOATING_IP:
            text = f"Floating IP {external_id[:80]} not found."
    return NotFound(text)


@dataclass(frozen=True, slots=True)
class UnitLimits:
    """What one unit may take of a class: at least ``least``, at most ``most``, and a multiple of ``step``.

    Placement's ``min_unit``, ``max_unit`` and ``step_size``. A unit that takes nothing of the class is free of them.
    """

    least: int = 1
    most: int = 2**31 - 1
    step: int = 1

    def allow(self, amount: int) -> bool:
        """Tell whether one unit may take so much."""
        return self.least <= amount <= self.most and amount % self.step == 0


@dataclass(frozen=True, slots=True)
class Supply:
    """What a resource has to share out: its capacity, the limits of a unit by class, and its traits.

    A class without limits has none; classes and traits are named as in Placement.
    """

    capacity: Amounts = Amounts()
    limits: Mapping[str, UnitLimits] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Facts:
    """All that is kept of what the cloud tells of a resource, and written anew when it tells otherwise."""

    attributes: Mapping[str, PropertyValue]
    supply: Supply


@dataclass(frozen=True, slots=True)
class Resource:
    """One thing on the calendar: a compute host, an address, a segment, a device.

    ``id`` is the calendar's own key and never shown; ``external_id`` is the id that the cloud gives it
    and the API shows, ``name`` the name people know it by (a hypervisor's hostname).
    ``attributes`` are facts read from the cloud, ``capabilities`` are the operator's own key/value pairs.
    A resource that is not ``reservable`` takes no new allocation: it has failed (``failure`` says how, since
    ``failed_since``), or its operator has ``disabled`` it, or it is about to leave. Where ``authorized_projects`` are
    named, it takes allocations of theirs only. ``capacity`` may be empty for a resource that is only ever promised
    whole. ``limits`` and ``traits`` are as in Supply.
    """

    id: int
    kind: ResourceKind
    external_id: str
    name: str
    attributes: Mapping[str, PropertyValue]
    capabilities: Mapping[str, str]
    capacity: Amounts
    reservable: bool
    created_at: datetime
    updated_at: datetime | None = None
    limits: Mapping[str, UnitLimits] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    disabled: bool = False
    failure: str | None = None
    failed_since: datetime | None = None
    authorized_projects: frozenset[str] | None = None

    @property
    def facts(self) -> Facts:
        """What the cloud told of it when it was last asked."""
        return Facts(self.attributes, Supply(self.capacity, self.limits, self.traits))

    def count_beside(self, used: Amounts, per_instance: Amounts) -> int:
        """Return how many such units fit beside what is used: none if one of them would break a limit."""
        if self.limits and not all(
            self.limits[name].allow(amount) for name, amount in per_instance.items if name in self.limits
        ):
            return 0
        return per_instance.times_within(self.capacity, used)

    def is_open_to(self, project_id: str) -> bool:
        """Tell whether a project may see the resource and be promised it."""
        return self.authorized_projects is None or project_id in self.authorized_projects

    @property
    def properties(self) -> Mapping[str, PropertyValue]:
        """Everything a requirement can ask about; a fact outranks a capability of the same name."""
        return {
            **self.capabilities,
            **self.attributes,
            "id": self.external_id,
            "reservable": self.reservable,
            "created_at": self.created_at.isoformat(),
            "updated_at": self.updated_at.isoformat() if self.updated_at else None,
        }


@dataclass(frozen=True, slots=True)
class ResourceProperty:
    """A capability's name as such: which kind has it, and whether only operators see it."""

    id: str
    kind: ResourceKind
    name: str
    private: bool
    created_at: datetime
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class PropertyValues:
    """A capability with the distinct values it has over all registered resources, sorted."""

    property: ResourceProperty
    values: tuple[str, ...]
