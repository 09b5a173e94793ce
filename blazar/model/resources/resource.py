# SPDX-License-Identifier: Apache-2.0
"""Resources: everything that can be reserved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NewType

from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import NotFound
from blazar.model.base.json_text import Json
from blazar.model.base.values import dataclass, field
from blazar.model.resources.pools import CardPool, UnitLimits, declared_cards

PropertyValue = str | int | float | bool | None
"""The value of a property; None means that it is not known."""


ResourceKind = NewType("ResourceKind", str)
"""The kind of a resource, as stored; a demand asks for one kind. Other packages bring kinds of their own.

It is a word for one resource, as ``telescope``; the plural adds an s.
"""

HOST = ResourceKind("host")
FLOATING_IP = ResourceKind("floatingip")
NETWORK = ResourceKind("network")
DEVICE = ResourceKind("device")
GENERIC = ResourceKind("generic")
VOLUME = ResourceKind("volume")
KINDS = (HOST, FLOATING_IP, NETWORK, DEVICE)
"""Our own kinds; they are served whatever resource types are enabled, because API 1.0 has their routes."""

NAMED_KINDS = frozenset({FLOATING_IP, DEVICE, GENERIC})
"""Our kinds whose ids and names everybody may see; of others members see labels."""

RESERVED_NAMES = frozenset({"id", "reservable", "created_at", "updated_at"})
"""Properties that every resource has; they override attributes and capabilities of these names."""

NAMES = RESERVED_NAMES | {"hypervisor_hostname", "service_name"}
"""Properties that no two resources have in common, or that say nothing of what they are."""

EVACUABLE = "evacuable"
"""The attribute of a host that everybody's servers use until it is emptied for a lease of the kind ``best_effort``."""

REGION = "region"
"""The attribute with the region of a resource, where several are configured; requirements may name it."""

_NOUNS = {FLOATING_IP: "floating IP", NETWORK: "network segment", GENERIC: "generic resource", VOLUME: "volume pool"}
_UNKNOWN = {
    HOST: "Host with {{'host_id': '{id}'}} not found; see the list of hosts for their ids",
    FLOATING_IP: "Floating IP {id} not found.",
    NETWORK: "Object with {{'network_id': '{id}'}} not found; see the list of networks for their ids",
    DEVICE: "Object with {{'device_id': '{id}'}} not found; see the list of devices for their ids",
}

_CODES = {
    HOST: "host_not_found",
    FLOATING_IP: "floating_ip_not_found",
    NETWORK: "network_not_found",
    DEVICE: "device_not_found",
}


_SHARES = {HOST: "instance", VOLUME: "volume"}


def part_noun(kind: ResourceKind) -> str:
    """Return the word for one of the equal parts of a shared resource that are asked for; the plural adds an s."""
    return _SHARES.get(kind, "unit")


def noun(kind: ResourceKind) -> str:
    """Return the word for one resource of a kind; the plural adds an s."""
    return _NOUNS.get(kind, kind)


def unknown_resource(kind: ResourceKind, external_id: str) -> NotFound:
    """Return the error for a resource that is not registered, in the words that clients of each kind expect."""
    text = _UNKNOWN.get(kind, "no {kind} {id} is registered; see the list of {kind}s for their ids")
    code = _CODES.get(kind, "resource_not_found")
    return NotFound(text.format(kind=noun(kind), id=external_id[:80]), code=code)


@dataclass(frozen=True, slots=True)
class ResourceInventory:
    """The inventory and traits of a resource: its capacity, the limits per instance by class, and its traits.

    A class that ``limits`` does not name is not limited; classes and traits are named as in Placement. ``pools`` are
    its nested providers, which have their part of the capacity; a class of several providers has limits only there.
    """

    capacity: Amounts = Amounts()
    limits: Mapping[str, UnitLimits] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    pools: tuple[CardPool, ...] = ()

    def allows(self, resource_class: str, amount: int) -> bool:
        """Return whether one instance may take this amount of a class, all of it from one provider."""
        parts = [pool for pool in self.pools if pool.resource_class == resource_class]
        if sum(pool.providers for pool in parts) > 1:
            return amount <= 1
        return resource_class not in self.limits or self.limits[resource_class].allows(amount)


@dataclass(frozen=True, slots=True)
class ResourceDetails:
    """What is stored of the cloud's data about a resource, and updated when the cloud reports other values."""

    attributes: Mapping[str, PropertyValue]
    inventory: ResourceInventory


def is_evacuable(kind: ResourceKind, attributes: Mapping[str, PropertyValue]) -> bool:
    """Return whether a resource with these attributes is a host that can be emptied for a lease."""
    return kind == HOST and attributes.get(EVACUABLE) is True


@dataclass(frozen=True, slots=True)
class Resource:
    """One entry of the calendar: a compute host, an address, a segment, a device.

    ``id`` is the calendar's own key and never shown; ``external_id`` is the resource's id in the cloud, which the API
    shows; ``name`` is its usual name (the hostname of a hypervisor); ``label`` is what users see who may not see the
    name. ``revision`` counts the changes of all that operators see of it. ``attributes`` are read from the cloud,
    ``capabilities`` are the operator's own key/value pairs; cards that
    they declare are in the ``capacity``. A resource that is not ``reservable`` takes no new
    allocation: it has failed (``failure`` is the reason, since ``failed_since``), or its operator has ``disabled`` it
    (``disabled_since`` may not be known; at ``disabled_until`` it is enabled), or its removal has begun (it is
    ``withdrawn``). If ``authorized_projects`` are set, only these projects may have allocations. An ``evacuable`` host
    is not reservable either: it is used by anybody until it is emptied. ``capacity`` may be empty for a resource
    that is only ever promised whole. ``limits``, ``traits`` and ``pools`` are as in ResourceInventory. ``region`` is
    also one of the attributes; it is empty where no regions are configured. The lower its ``tier``, the sooner it is
    taken.
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
    label: str = ""
    revision: int = 0
    disabled_reason: str | None = None
    disabled_since: datetime | None = None
    disabled_until: datetime | None = None
    region: str = ""
    withdrawn: bool = False
    pools: tuple[CardPool, ...] = ()
    tier: int = field(default=0, compare=False)

    @property
    def evacuable(self) -> bool:
        """Return whether it is a host that can be emptied for a lease."""
        return is_evacuable(self.kind, self.attributes)

    @property
    def details(self) -> ResourceDetails:
        """Return what the cloud reported about it when it was last polled."""
        capacity = self.capacity.minus(declared_cards(self.capabilities))
        return ResourceDetails(self.attributes, ResourceInventory(capacity, self.limits, self.traits, self.pools))

    def count_beside(self, used: Amounts, per_instance: Amounts) -> int:
        """Return how many such instances fit beside what is used; 0 if one instance would break a limit."""
        for name, amount in per_instance.items if self.limits else ():
            limit = self.limits.get(name)
            if limit is not None and not limit.allows(amount):
                return 0
        return per_instance.times_within(self.capacity, used)

    def is_open_to(self, project_id: str) -> bool:
        """Return whether a project may see and reserve the resource."""
        return self.authorized_projects is None or project_id in self.authorized_projects

    @property
    def properties(self) -> Mapping[str, PropertyValue]:
        """Return all that a requirement can use; an attribute overrides a capability of the same name."""
        return {
            **self.capabilities,
            **self.attributes,
            # RESERVED_NAMES
            "id": self.external_id,
            "reservable": self.reservable,
            "created_at": self.created_at.isoformat(),
            "updated_at": self.updated_at.isoformat() if self.updated_at else None,
        }

    def pick(self, names: Iterable[str]) -> Mapping[str, PropertyValue]:
        """Return those of its properties that have one of these names."""
        found: dict[str, PropertyValue] = {}
        for name in names:
            if name in RESERVED_NAMES:
                found[name] = self.properties[name]
            elif name in self.attributes:
                found[name] = self.attributes[name]
            elif name in self.capabilities:
                found[name] = self.capabilities[name]
        return found


@dataclass(frozen=True, slots=True)
class ResourceProperty:
    """The name of a capability: the kind that has it, and whether only operators see it."""

    id: str
    kind: ResourceKind
    name: str
    private: bool
    created_at: datetime
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class PropertyValues:
    """A capability with its distinct values over all registered resources, sorted."""

    property: ResourceProperty
    values: tuple[str, ...]


GENERAL_FIELDS = ("properties", "disabled", "authorized_projects")
"""Fields that every request to register has; no kind has one of these names."""


@dataclass(frozen=True, slots=True)
class KindShape:
    """What a kind says of itself.

    ``noun`` and ``nouns`` are the words for one resource and for several. ``registration`` is the JSON schema of the
    fields that name a resource to register, ``attributes`` has the schemas of what the cloud tells of it, by name.
    Everybody may see the ``public`` attributes, of which a row of the calendar has the ``shown`` ones (the others are
    in its capacity), and if it is ``named`` also ids and names; members see a label in their place otherwise.
    ``changeable`` are the fields of the registration that can be changed later, as attributes of the same names.
    """

    noun: str
    nouns: str
    registration: Json = field(default_factory=lambda: {"type": "object"})
    attributes: Json = field(default_factory=dict)
    public: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    named: bool = False
    changeable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KindDescription:
    """A kind that is served: its name and shape, the resource types that reserve it, and if it lists candidates.

    ``parameters`` has the JSON schemas of requests for reservations, by resource type, where they are known.
    """

    kind: ResourceKind
    shape: KindShape
    resource_types: tuple[str, ...] = ()
    has_candidates: bool = False
    parameters: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KindList:
    """All kinds that are served, by name."""

    items: tuple[KindDescription, ...]
