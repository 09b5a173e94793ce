# SPDX-License-Identifier: Apache-2.0
"""What a kind of resource does, and the defaults: what operators register, and what is polled.

A resource type says what reservations do with resources; its kind says where the resources come from. Several types
may share a kind, as those on hosts do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import ClassVar

from blazar.model.base.errors import InvalidInput, NotFound, pointing_at
from blazar.model.base.json_text import Json
from blazar.model.base.values import dataclass, field, replace
from blazar.model.resources.changes import Registration
from blazar.model.resources.pages import Candidate
from blazar.model.resources.resource import (
    KindDescription,
    KindShape,
    PropertyValue,
    Resource,
    ResourceDetails,
    ResourceKind,
    noun,
)
from blazar.resources.contract.plugin import Plugin


@dataclass(frozen=True, slots=True)
class CloudResource:
    """A resource of the cloud that an operator registers or unregisters; ``name`` is unique within kind and region.

    Kinds leave the ``region`` out: each knows one cloud.
    """

    external_id: str
    name: str
    attributes: Mapping[str, PropertyValue] = field(default_factory=dict)
    region: str = ""


def as_stored(resource: Resource) -> CloudResource:
    """Return a registered resource as it is stored."""
    return CloudResource(resource.external_id, resource.name, resource.attributes, resource.region)


Holders = Callable[[Collection[str]], Mapping[str, Collection[str]]]
"""Returns, for ids of reservations, the names of the resources that each holds at present."""

InUse = Mapping[str, Collection[str]]
"""Reservations in use → the names of the resources that each of them holds."""


@dataclass(frozen=True, slots=True)
class CalendarReads:
    """What the calendar knows of the use of a kind; each is read when it is called, in a statement or two.

    ``report_lacking`` records that reservations in use should have a healthy resource, and do not have it in the cloud.
    It is called as soon as that is seen: another manager may mend it meanwhile. ``projects`` returns the projects of
    reservations: what bears the mark of a reservation, and is another project's, is not of that reservation. ``held``
    returns those of some resources, by calendar id, that a lease has or will have.
    """

    in_use: Callable[[], InUse]
    holders: Holders
    report_lacking: Callable[[Resource, Collection[str]], None]
    projects: Callable[[Collection[str]], Mapping[str, str]]
    held: Callable[[Collection[int]], Collection[int]]


@dataclass(frozen=True, slots=True)
class Polled:
    """The result of a poll.

    ``failures`` says by name how resources have failed, None if healthy; one that is missing here has vanished. A poll
    that names none of the registered resources is ignored: the cloud can hardly have lost all of them at once.
    ``details`` are the cloud's data of resources by calendar id, where they differ from those stored. ``unseen`` are
    the names of healthy resources of which a start has found out what no poll can see: they stay failed for an hour,
    so that few starts fail on them and nobody has to enable them again.
    """

    failures: Mapping[str, str | None]
    details: Mapping[int, ResourceDetails] = field(default_factory=dict)
    unseen: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Glance:
    """How a resource is in the cloud whose power may be switched.

    ``up`` tells whether what serves it runs, ``mark`` for which reason that was closed, None if it is open; and
    ``occupants`` how many servers or the like are on it.
    """

    up: bool
    mark: str | None = None
    occupants: int = 0


class Kind(Plugin):
    """A kind of resource. By default its resources are healthy, and registration changes nothing in the cloud."""

    needed = ("kind", "find", "details")
    together: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("check_unused", "current", "enter", "leave"),
        ("close", "reopen", "occupants"),
        ("look", "list_awake"),
    )
    kind: ResourceKind
    """Its name, as stored: a word for one resource."""
    usual_type: str | None = None
    """The type that may be asked for in calendars even if no reservations of it are enabled."""
    own_properties: frozenset[str] = frozenset()
    """Names of properties that come from the cloud and cannot be set: no capability may have one of them."""

    @cached_property
    def shape(self) -> KindShape:
        """Its words and schemas, for ``/v1/resources``. By default any field may be sent, and members see little."""
        return KindShape(noun(self.kind), f"{noun(self.kind)}s")

    def located(self, request: Registration) -> Registration:
        """Return a request to register with the region that it names; there is one."""
        return request

    def find(self, request: Registration) -> CloudResource:
        """Return the resource that a request to register names. InvalidInput names the field; NotFound."""
        raise NotImplementedError

    def details(self, in_cloud: CloudResource) -> ResourceDetails:
        """Return the attributes, capacity and traits of a resource that can be registered.

        InvalidInput or NotFound if it cannot be; Conflict if it is in use.
        """
        raise NotImplementedError

    def check_unused(self, in_cloud: CloudResource) -> None:
        """Raise Conflict if a registered resource is in use outside of reservations, so that it cannot leave."""

    def current(self, resource: Resource) -> CloudResource:
        """Return a registered resource as the cloud knows it now, by default as it is stored; NotFound."""
        return as_stored(resource)

    def enter(self, in_cloud: CloudResource) -> bool:
        """Ensure that a resource is prepared for reservations; return whether anything was missing."""
        return False

    def leave(self, in_cloud: CloudResource) -> None:
        """Ensure that a resource is as it was before its registration, also if the cloud no longer knows it."""

    def candidates(self, registered: Collection[Resource]) -> tuple[Candidate, ...]:
        """Return what the cloud has, registered or not; a constant number of calls. CloudError. By default nothing.

        Of what is too much to be listed, it has all that is ``registered``, and some that can be registered beside.
        Where it has another name than the resource, its ``resource_id`` is set here.
        """
        return ()

    def close(self, resources: Collection[Resource], mark: str) -> None:
        """Ensure that resources are closed for a maintenance window: the cloud itself gives nothing of them out.

        Those that are open get the mark in the cloud, and nothing else says so. What others have closed stays.
        """

    def reopen(self, resources: Collection[Resource], mark: str, others: Mapping[int, str]) -> None:
        """Ensure that no resource has this mark: it is open, or has the other mark that is given for it by its id."""

    def occupants(self, resources: Collection[Resource]) -> Mapping[int, int]:
        """Return how many servers or the like are on resources, by calendar id; few calls. By default not known."""
        return {}

    def check_switch(self, resource: Resource) -> None:
        """Raise Conflict if a resource cannot be switched off alone, as what serves it serves others, too."""

    def look(self, resource: Resource) -> Glance:
        """Return how a resource is now whose power may be switched; NotFound. By default none is switched."""
        raise NotFound(f"the power of a {noun(self.kind)} is not switched")

    def list_awake(self, resources: Collection[Resource]) -> frozenset[int]:
        """Return, by calendar id, the resources that run, of those whose power may be switched; one call."""
        return frozenset()

    def poll(self, registered: Collection[Resource], uses: CalendarReads) -> Polled:
        """Return the state of all registered resources; the number of calls does not depend on theirs."""
        return Polled({resource.name: None for resource in registered})

    def refresh(self, resource: Resource, uses: CalendarReads, prepare: Callable[[CloudResource], None]) -> Polled:
        """Return the state of one resource that an operator has refreshed, by default by a poll of this one. NotFound.

        It is first returned to where it belongs, by ``prepare`` if it is not prepared any more.
        """
        return self.poll((resource,), uses)


def describe(kind: Kind, types: Mapping[str, Json | None]) -> KindDescription:
    """Return what users read of a kind; ``types`` are those that reserve it, with their schemas, where known."""
    schemas = {name: schema for name, schema in types.items() if schema is not None}
    return KindDescription(kind.kind, kind.shape, tuple(sorted(types)), kind.has("candidates"), schemas)


def details_with(kind: Kind, resource: Resource, attributes: Mapping[str, PropertyValue]) -> ResourceDetails:
    """Return what is stored of a registered resource with other attributes: as if it were registered with them.

    InvalidInput, also for attributes that are not ``changeable``.
    """
    shape = kind.shape
    for name in sorted(attributes.keys() - set(shape.changeable)):
        can = f"; what can be changed is {', '.join(shape.changeable)}" if shape.changeable else ""
        with pointing_at("/attributes"):
            raise InvalidInput(f"{name[:80]} of a {shape.noun} cannot be changed{can}", at=f"/{name}")
    fields = shape.registration.get("properties")
    names = fields.keys() if isinstance(fields, Mapping) else ()
    known = {name: resource.attributes[name] for name in names if name in resource.attributes}
    with pointing_at("/attributes"):
        found = kind.find(Registration({"name": resource.name, **known, **attributes}, {}))
        return kind.details(replace(as_stored(resource), attributes=found.attributes))
